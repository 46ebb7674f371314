package fleet

// The permissions of the hub, from which the file in the folder rbac is generated. Contents of Secrets are cached after
// a get, so list is needed for metadata only; RBAC cannot distinguish the two.

// +kubebuilder:rbac:groups=membership.muster.dev,resources=memberclusters,verbs=list;watch
// +kubebuilder:rbac:groups=membership.muster.dev,resources=memberclusters/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=secrets,namespace=muster-connections,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
