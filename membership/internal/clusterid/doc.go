// Package clusterid is for those who let a cluster in that an administrator has only named by a kubeconfig: it finds
// out which cluster that is, and reserves that for its MemberCluster before anything is done there.
//
//	id, err := clusterid.Of(ctx, config)
//	...
//	err = reserver.Reserve(ctx, cluster, id)
//
// On the hub that takes list and patch of memberclusters, and on the member get of the namespace kube-system.
package clusterid
