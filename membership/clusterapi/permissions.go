package clusterapi

// The permissions of the importer on MemberClusters, from which the file in the folder rbac is generated. The verb
// delete is used only with Options.LeaveDeleted.

// +kubebuilder:rbac:groups=membership.muster.dev,resources=memberclusters,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
