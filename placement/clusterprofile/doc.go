// Package clusterprofile exports the fleet in the API of SIG Multicluster: members as ClusterProfiles, and decisions as
// PlacementDecisions of multicluster.x-k8s.io/v1alpha1. Tools for that API, such as controllers that connect to each
// cluster of an inventory, then work with the fleet.
//
//	if err := clusterprofile.SetupWithManager(mgr, clusterprofile.Options{ClusterManager: "acme"}); err != nil { ... }
//
// The export begins when the definition of a kind is installed, within seconds and without a restart, and ends when the
// definition is removed. Until then the package has two watches of one name each. The exported kinds are not part of a
// scheme or of a manager's cache, so a product can use its own types for them.
//
// The definitions are those of https://github.com/kubernetes-sigs/cluster-inventory-api since v0.1. The API server must
// serve the version v1alpha1. The API is described in KEP-4322 and KEP-5313:
//
//   - https://github.com/kubernetes/enhancements/tree/master/keps/sig-multicluster/4322-cluster-inventory
//   - https://github.com/kubernetes/enhancements/tree/master/keps/sig-multicluster/5313-placement-decision-api
//
// # ClusterProfiles
//
// An accepted MemberCluster gets a profile with its name in [Options].ProfileNamespace. The profile stays until the
// MemberCluster is deleted: conditions report that a cluster has left or was denied. A member that was never accepted
// has no profile. Otherwise every agent with a join credential could add a cluster to the inventory. [ProfileOf]
// returns the content of a profile:
//
//   - spec.displayName is the name of the member when the profile is created. Users may change it later.
//     spec.clusterManager.name and the label x-k8s.io/cluster-manager are [Options].ClusterManager.
//   - The label multicluster.x-k8s.io/inventory-member-id is the label of the member with that key, or its cluster ID.
//   - The conditions ControlPlaneHealthy and Joined are the conditions Healthy and Joined of the member, with their
//     reasons and times.
//   - status.version and status.properties contain the version and the properties that have a value, without
//     lastObservedTime, which members do not report. Resources are not exported: KEP-4322 excludes values that change
//     often.
//   - status.accessProviders contains [Options].AccessProviders, with which consumers get a connection to the cluster
//     (KEP-5339,
//     https://github.com/kubernetes/enhancements/tree/master/keps/sig-multicluster/5339-clusterprofile-plugin-credentials).
//
// Access providers of other names and conditions of other types are not changed, so another controller can add them.
// The list of properties belongs to this package.
//
// With [Options].Tenancy, the members of ClusterSets have additional profiles, by the convention of KEP-4322: a
// namespace with the label
//
//	multicluster.x-k8s.io/clusterset: <name of a ClusterSet>
//
// contains the profiles of the members of this set, if the namespace also has a ClusterSetBinding of the set. The label
// makes the namespace an inventory, and the binding permits it: a user who labels a namespace does not see clusters
// that the user may not use. These profiles have the label as well. By KEP-4322, a cluster is in at most one set.
// ClusterSets of muster may overlap, so label only namespaces of disjoint sets.
//
// Profiles in the namespaces of sets have the annotation placement.muster.dev/cluster-set-binding. Profiles without it
// are not changed. A profile is removed from the namespace of a set if the set does not select the member any more, if
// the deletion of the binding was requested, or if the namespace has lost the label. If a ClusterSet, a binding or the
// definition of either is only missing, the profiles stay. Remove the label of the namespaces before you turn off
// Tenancy.
//
// KEP-4322 limits the writes of a profile to one in 30 s on average, with bursts of 10. The export follows this limit:
// a change of the status of a condition is written immediately while the burst lasts. Other changes wait until 30 s
// have passed for each earlier write, and are written together. A restart resets the count. Unchanged profiles are not
// written, also not after a restart.
//
// # PlacementDecisions
//
// Each PlacementDecision of placement.muster.dev has an exported one of the same name in its namespace ([DecisionOf]):
// the same clusters in the same order, with the reasons, as references to their profiles. The labels decision-key and
// placement-key contain the name of the Placement, or its hash if the name is too long. A workload refers to its
// placement with the label
//
//	multicluster.x-k8s.io/placement-key: <name of the Placement>
//
// The label decision-index contains the index of the slice. Clusters never move between slices, so the index of an
// empty slice is missing. The owner of an exported PlacementDecision is the one that it was made from, so both are
// deleted together.
//
// Decisions refer to ClusterProfiles, so they are exported only while that kind is served. A cluster whose profile
// belongs to another manager is left out, because the reference would name another cluster.
//
// # Objects of other owners
//
// The export does not change a profile that has another manager, or that is not owned by the member with its name, and
// no PlacementDecision that it has not created. If such an object has the name of an exported one, the MemberCluster or
// PlacementDecision gets an event NameTaken. The export continues as soon as the name is free.
//
// # Permissions
//
// The permissions are in the folder rbac, as the ClusterRole muster-clusterprofile. If an administrator creates the
// namespace of the profiles, the permission to create namespaces can be removed. One replica exports, by leader
// election.
package clusterprofile
