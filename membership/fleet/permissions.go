package fleet

// The permissions that the hub needs, from which the file in the folder rbac is made. What it has read of a Secret it keeps, so it need not list
// any but by their metadata; Kubernetes cannot tell the one from the other.

// +kubebuilder:rbac:groups=membership.muster.dev,resources=memberclusters,verbs=list;watch
// +kubebuilder:rbac:groups=membership.muster.dev,resources=memberclusters/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=secrets,namespace=muster-connections,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
