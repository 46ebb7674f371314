// Package muster is an SDK for products that manage many Kubernetes clusters: clusters join a hub, stay in it by
// heartbeat, and leave without a trace. It is taken with go get, wired into the product's own controller-runtime
// managers, and any part of it can be swapped through a small interface.
//
// This package is only the tour. Begin with the package that does what you need:
//
//   - membership/hub and membership/agent set up either side in a manager, and zero Options work.
//   - membership has the interfaces by which a product puts its own policy in: who may join, what has to happen
//     before a cluster leaves, how credentials are issued.
//   - membership/v1alpha1 has the API objects, and membership/crds installs them.
//   - membership/lifecycle has the decisions, as pure functions with a proof.
//   - membership/heartbeat can be used alone: a Lease on one side, and a judge of a hundred thousand of them on the other.
//   - membership/registration has the ways from a bootstrap credential to one of the member's own.
//   - membership/fleet connects a hub to members that it has kubeconfigs for, membership/push runs their agents on the hub, membership/install
//     brings agents to them, and deploy has manifests for that.
//   - membership/admin has what an administrator does, as functions.
//   - scheduler chooses clusters by plugins, and stands alone: it has no client. scheduler/plugins has those that come with
//     muster, scheduler/schedulertest tests yours.
//   - scheduler/queue holds what waits for a decision, and scheduler/replicas divides replicas among the chosen clusters.
//   - placement decides Placements into PlacementDecisions, and placement/workset brings WorkSets to the clusters that were chosen, by
//     revisions and rollouts. placement/v1alpha1 has their types and policies.
//   - placement/rollout says who may be updated now, placement/override what one cluster gets of an object, placement/internal/division how many
//     replicas, placement/bundle how objects become Works, and placement/internal/progress how far clusters are with them: pure functions, of
//     use to controllers of your own as well. placement/selection watches what is selected, and placement/internal/revision keeps what was.
//   - tenancy decides which namespaces may place on which members, by the ClusterSets and ClusterSetBindings of tenancy/v1alpha1.
//   - placement/interop shows members and decisions to tools that know those kinds of SIG Multicluster.
//   - work/apply brings objects of a cluster to what is wanted, for any controller; work/agent drives it from Works on a hub.
//   - addon installs add-ons on members, configures them, rolls out what is new, watches them, and takes them back: agents in Go, or
//     templates without code. addon/v1alpha1 has their types, addon/registration gives their agents access to the hub, and addon/leave has
//     a leave wait for them.
//
// The program examples/minimal-hub shows membership, placement, works and an add-on on real control planes, with nothing installed but
// Go, examples/addon more of add-ons, examples/custom-plugin the scheduler with a plugin of one's own, examples/agent an agent as an image,
// and examples/musterctl a command line:
//
//	go run ./examples/minimal-hub
//	go run ./examples/addon
//	go run ./examples/custom-plugin
//	go -C examples/musterctl run . --help
package muster
