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
//   - scheduler chooses clusters by plugins, and stands alone: it has no client. scheduler/plugins has those that come with
//     muster, scheduler/schedulertest tests yours.
//   - scheduler/queue holds what waits for a decision, and scheduler/replicas divides replicas among the chosen clusters.
//   - placement/v1alpha1 has the policies that the scheduler decides by.
//   - placement/rollout says who may be updated now, placement/override what one cluster gets of a manifest, and
//     placement/bundle how manifests become Works: pure functions, for controllers that are to come or for your own.
//   - work/apply brings objects of a cluster to what is wanted, for any controller; work/agent drives it from Works on a hub.
//
// The rest of placement, and package addon, are reserved for what comes next.
//
// The program examples/minimal-hub shows membership and works on real control planes, with nothing installed but Go, and
// examples/custom-plugin the scheduler with a plugin of one's own:
//
//	go run ./examples/minimal-hub
//	go run ./examples/custom-plugin
package muster
