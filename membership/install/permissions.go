package install

// The permissions of a Runner on the hub, from which the file in the folder rbac is generated.

// +kubebuilder:rbac:groups=membership.muster.dev,resources=memberclusters,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=membership.muster.dev,resources=memberclusters/status,verbs=patch
// +kubebuilder:rbac:groups=membership.muster.dev,resources=memberships,verbs=get
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// +kubebuilder:rbac:groups=membership.muster.dev,namespace=muster-registration,resources=jointokens,verbs=get;create;delete
// +kubebuilder:rbac:groups="",namespace=muster-registration,resources=secrets,verbs=get
