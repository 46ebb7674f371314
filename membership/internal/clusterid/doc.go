// Package clusterid identifies the cluster that a kubeconfig of an administrator leads to, and reserves its ID for the
// MemberCluster before any object is created on the member:
//
//	id, err := clusterid.Of(ctx, config)
//	...
//	err = reserver.Reserve(ctx, cluster, id)
//
// It requires on the hub list and patch on memberclusters, and on the member get on the namespace kube-system.
package clusterid
