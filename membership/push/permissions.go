package push

// The permissions that a runner needs on the hub, from which the file in the folder rbac is made. What its agents do they do as their members.

// +kubebuilder:rbac:groups=membership.muster.dev,resources=memberclusters,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=membership.muster.dev,namespace=muster-registration,resources=jointokens,verbs=create;get;delete
// +kubebuilder:rbac:groups="",namespace=muster-registration,resources=secrets,verbs=get
// +kubebuilder:rbac:groups="",namespace=muster-connections,resources=secrets,verbs=create;get;update;delete
