// Package clusterapi creates MemberClusters for the Clusters of Cluster API, so that clusters that are provisioned from
// the hub become members without a registration:
//
//	err := clusterapi.SetupWithManager(mgr, clusterapi.Options{Namespaces: []string{"clusters"}})
//
// For each Cluster of a named namespace with the label [ImportLabel] and the value "true" the package creates a
// MemberCluster with joinMode Push or Install. Its kubeConfigSecretRef references the Secret "<name of the
// Cluster>-kubeconfig" that Cluster API writes (https://cluster-api.sigs.k8s.io/tasks/certs/generate-kubeconfig), key
// "value". Package [github.com/muster-sdk/muster/membership/fleet] connects to the member; list the namespaces in its
// option Namespaces. It rejects kubeconfigs that run programs or read files, and uses each new kubeconfig in the
// Secret. Nothing is copied, and this package reads no Secret.
//
// # Trust
//
// A created MemberCluster has no decision in spec.accepted: an administrator or the Acceptor of the hub accepts it.
// Labels of the Cluster are not copied, because placements select clusters by labels of MemberClusters. Users who
// write Clusters and Secrets in the named namespaces determine the address to which the hub connects, also before the
// member is accepted, so name only namespaces of users who may do this.
//
// # Absence is not a request
//
// A MemberCluster stays if its Cluster, its label, the Secret, the namespace, or the definition of Clusters is
// missing. It leaves only if [Options].LeaveDeleted is set and the deletion of the Cluster was requested: the importer
// reads the Cluster from the API server, and the Cluster must have a deletionTimestamp and the UID for which the
// MemberCluster was created. The importer then deletes the MemberCluster, which starts the leave. Cluster API keeps a
// deleted Cluster until its infrastructure is removed. If the importer does not observe the deletion of a Cluster, for
// example because it was not running, only an unreachable member remains.
//
// A MemberCluster that was not created for this Cluster is never changed or deleted. This includes the MemberCluster
// of an earlier Cluster with the same name, which may be another cluster. An Event of the Cluster contains the next
// step.
//
// To delete the MemberCluster, first remove the label from the Cluster. Otherwise, another MemberCluster is created,
// and waits for acceptance.
//
// # Cost
//
// The importer has one watch of the metadata of Clusters for each namespace. While the API server has no definition of
// Clusters, it sends one discovery request a minute. A Cluster costs one create request.
//
// # Permissions
//
// The ClusterRole in rbac applies to the whole hub. Bind the ClusterRole in internal/source/rbac in each namespace of
// Clusters, and the Role of package fleet as well.
package clusterapi
