// Package clusterapi creates MemberClusters for the Clusters of Cluster API, so that clusters that are provisioned from
// the hub become members without a registration:
//
//	err := clusterapi.SetupWithManager(mgr, clusterapi.Options{Namespaces: []string{"clusters"}})
//
// A Cluster of a named namespace that has the label [ImportLabel] with the value "true" gets a MemberCluster with
// joinMode Push or Install. Its kubeConfigSecretRef references the Secret "<name of the Cluster>-kubeconfig" that
// Cluster API writes (https://cluster-api.sigs.k8s.io/tasks/certs/generate-kubeconfig), key "value". Package
// [github.com/muster-sdk/muster/membership/fleet] connects to the member; list the namespaces in its option Namespaces.
// It rejects kubeconfigs that run programs or read files, and follows each new kubeconfig in the Secret. Nothing is
// copied, and this package reads no Secret.
//
// # Trust
//
// A MemberCluster that is created has no decision in spec.accepted: an administrator accepts it, or the Acceptor of the
// hub does. Labels of the Cluster are not copied, because labels of MemberClusters select what a cluster receives.
// Users who write Clusters and Secrets in the named namespaces decide to which address the hub connects, before the
// member is accepted as well, so name only namespaces of users who may do this.
//
// # Absence is not a request
//
// A MemberCluster stays if its Cluster, its label, the Secret, the namespace, or the definition of Clusters is missing.
// It leaves only if [Options].LeaveDeleted is set and the deletion of the Cluster was requested: the Cluster is read
// from the API server, has a deletionTimestamp, and has the UID that the MemberCluster was created for. The importer
// then deletes the MemberCluster, and the hub lets the cluster leave. Cluster API keeps a deleted Cluster until its
// infrastructure is removed; a Cluster whose deletion the importer does not observe, for example because it was down,
// leaves nothing behind but a member that is not reachable.
//
// A MemberCluster that was not created for this Cluster is never changed or deleted. This includes one of an earlier
// Cluster with the same name, which may be another cluster. An Event of the Cluster names the remedy.
//
// A user who deletes the MemberCluster first removes the label from the Cluster. Otherwise, another MemberCluster is
// created, and waits for its acceptance.
//
// # Cost
//
// One watch of the metadata of Clusters for each namespace. While the API server has no definition of Clusters, one
// request a minute discovers whether it exists. A Cluster costs one create request.
//
// # Permissions
//
// The ClusterRole in rbac applies to the whole hub. Bind the ClusterRole in internal/source/rbac in each namespace of
// Clusters, and the Role of package fleet as well.
package clusterapi
