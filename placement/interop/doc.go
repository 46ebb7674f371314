// Package interop shows the fleet to other people's tools, in the words of SIG Multicluster: members as
// ClusterProfiles, and decisions as PlacementDecisions of multicluster.x-k8s.io/v1alpha1.
//
//	if err := interop.SetupWithManager(mgr, interop.Options{ClusterManager: "acme"}); err != nil { ... }
//
// That is all. While the API server has no definition of these kinds, it costs two watches of one name each, and
// nothing is polled. When a definition is installed, the export begins, within seconds and without a restart; when it
// is removed, the export ends. The kinds are neither in a scheme nor in a manager's cache, so a product may have
// types of its own for them.
//
// The definitions are those of https://github.com/kubernetes-sigs/cluster-inventory-api, from v0.1 on; v1alpha1 has to
// be served, whatever else is. What is meant by them is in KEP-4322 and KEP-5313:
//
//   - https://github.com/kubernetes/enhancements/tree/master/keps/sig-multicluster/4322-cluster-inventory
//   - https://github.com/kubernetes/enhancements/tree/master/keps/sig-multicluster/5313-placement-decision-api
//
// # ClusterProfiles
//
// A MemberCluster that is accepted gets a profile of its name in [Options].ProfileNamespace, and keeps it until it is
// deleted: a cluster that has left, or is denied after all, has one that says so. A member that was not accepted has
// none, because every agent with a join credential could have consumers believe in it. What is in a profile
// ([ProfileOf]):
//
//   - spec: the display name is the member's name when the profile is created, and the consumers' to change then; the
//     cluster manager is [Options].ClusterManager, in the label x-k8s.io/cluster-manager, too;
//   - the label multicluster.x-k8s.io/inventory-member-id: the member's own label of that key, or else its cluster ID;
//   - the condition ControlPlaneHealthy is the member's Healthy, and Joined is Joined. Reasons and times are those of
//     the member;
//   - the version, and the properties that have a value. Properties have no lastObservedTime, since a member's have
//     none. Resources are not exported: the KEP wants nothing dynamic there;
//   - access providers, where [Options].AccessProviders has any: how consumers get to the cluster by a credential
//     plugin of theirs (KEP-5339,
//     https://github.com/kubernetes/enhancements/tree/master/keps/sig-multicluster/5339-clusterprofile-plugin-credentials).
//
// Access providers of other names and conditions of other types are left as they are, so another controller can add
// them. Properties are not shared: the list is the cluster manager's.
//
// With [Options].Tenancy, ClusterSets have profiles in namespaces of their own, by the convention of KEP-4322: a
// namespace with the label
//
//	multicluster.x-k8s.io/clusterset: <name of a ClusterSet>
//
// contains the profiles of the members of this set, if it has a ClusterSetBinding of the set as well. The label says
// that the namespace is an inventory, and the binding that it may be one, so that a user who labels a namespace learns
// nothing about clusters that the user may not use. These profiles have the label, too. KEP-4322 wants each cluster in
// at most one set; ClusterSets of muster may overlap, so label namespaces of disjoint sets.
//
// Profiles in the namespaces of sets have the annotation placement.muster.dev/cluster-set-binding. Others in these
// namespaces are not changed. A profile is removed from the namespace of a set if the set does not select the member
// any more, if the deletion of the binding was requested, or if the namespace has lost the label. If a ClusterSet, a
// binding or the definition of either is only missing, the profiles stay. Remove the label of the namespaces before you
// turn off Tenancy.
//
// KEP-4322 allows a profile one write in 30 s on average, with bursts of 10, and so does the export: a condition that
// turns goes out at once, as long as the burst lasts; anything else waits until 30 s have passed for each write before
// it, and what changes again in the meantime is written once, as it is then. The count begins anew in a restart. What
// has not changed is not written, in a restart neither.
//
// # PlacementDecisions
//
// Each PlacementDecision of placement.muster.dev has one of its name in its namespace ([DecisionOf]): the same clusters
// in the same order, with the reasons, as references to their profiles. The labels decision-key and placement-key have
// the name of the Placement (or the hash that stands for it where it is too long), so a workload is tied to its
// placement by
//
//	multicluster.x-k8s.io/placement-key: <name of the Placement>
//
// and decision-index has the index of the slice. Clusters never move between slices, so an index may be missing where a
// slice has become empty. They are owned by the PlacementDecision that they were made of, and go with it.
//
// Decisions are exported only while there are ClusterProfiles, which they refer to. A cluster whose profile is of
// another manager is left out: who follows the reference would come to another cluster.
//
// # Objects of others
//
// A profile that has another manager, or is not owned by the member of its name, is never touched; nor is a
// PlacementDecision that was not made here. If one has a name that is needed, there is an event NameTaken about the
// MemberCluster or PlacementDecision that it is missing of, and the export is made up for as soon as the name is free.
//
// # Permissions
//
// The folder rbac has the ClusterRole muster-interop. An administrator who creates the namespace of the profiles can
// leave out the permission to do that. One replica exports, by leader election.
package interop
