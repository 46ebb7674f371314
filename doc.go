// Package muster is an SDK for products that manage many Kubernetes clusters. Clusters join a hub, report to it by
// heartbeat, receive work, run add-ons, and leave. A product adds the packages that it needs to its own
// controller-runtime managers, and can replace each part through a small interface.
//
// This package contains documentation only. Start with the package for your task:
//
//   - assembly sets up a complete hub or a complete agent in one call.
//   - membership/hub and membership/agent set up membership on either side. The zero value of their Options is valid.
//   - membership contains the interfaces for a product's own policies: which clusters are accepted, what must happen
//     before a cluster leaves, and how credentials are issued.
//   - membership/v1alpha1 contains the API types, and membership/crds installs their definitions.
//   - membership/lifecycle contains the decisions about joining and leaving as pure functions.
//   - membership/heartbeat renews Leases on members and evaluates them on the hub. It can be used on its own.
//   - membership/registration exchanges a bootstrap credential for a credential of the member.
//   - membership/fleet connects a hub to members by their kubeconfigs. membership/push runs agents on the hub,
//     membership/install installs agents on members, and deploy contains the manifests. membership/clusterapi creates
//     members for Clusters of Cluster API.
//   - membership/admin contains administrative tasks as functions.
//   - tenancy decides which namespaces may place on which members.
//   - scheduler selects clusters with plugins and has no client. scheduler/plugins contains the default plugins, and
//     scheduler/schedulertest tests other plugins.
//   - scheduler/queue contains the queue of pending decisions, and scheduler/replicas divides replicas among clusters.
//   - placement writes the PlacementDecisions of Placements, and placement/workset distributes WorkSets to the selected
//     clusters by revisions and rollouts. placement/v1alpha1 contains their API types.
//   - placement/rollout decides which clusters are updated now, placement/override patches objects for a cluster, and
//     placement/bundle divides objects among Works. They are pure functions for use in any controller.
//   - placement/clusterprofile exports members and decisions as ClusterProfiles and PlacementDecisions of SIG
//     Multicluster.
//   - work/apply applies sets of objects, for any controller. work/agent applies the Works of a hub with it.
//   - addon installs, configures, updates and removes add-ons: agents in Go, or templates without code.
//     addon/v1alpha1 contains the API types, and addon/leave delays a leave until the add-ons are removed.
//   - mustertest starts control planes, injects faults, and contains helpers for tests.
//
// The programs in examples run on local control planes and require only Go. minimal-hub shows membership, placement,
// works and an add-on. addon shows more of add-ons, custom-plugin shows the scheduler with a plugin of its own, agent
// is an agent in an image, and musterctl is a command line:
//
//	go run ./examples/minimal-hub
//	go run ./examples/addon
//	go run ./examples/custom-plugin
//	go -C examples/musterctl run . --help
package muster
