package push

// The permissions of a runner on the hub, from which the file in the folder rbac is generated. Its agents use the
// permissions of their members.

// +kubebuilder:rbac:groups=membership.muster.dev,resources=memberclusters,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=membership.muster.dev,namespace=muster-registration,resources=jointokens,verbs=create;get;delete
// +kubebuilder:rbac:groups="",namespace=muster-registration,resources=secrets,verbs=get
// +kubebuilder:rbac:groups="",namespace=muster-connections,resources=secrets,verbs=create;get;update;delete
