package placement

// The permissions that the controllers need, from which the file in the folder rbac is made.

// +kubebuilder:rbac:groups=placement.muster.dev,resources=placements;clusterplacements,verbs=get;list;watch
// +kubebuilder:rbac:groups=placement.muster.dev,resources=placements/status;clusterplacements/status,verbs=patch
// The PlacementDecisions of ClusterPlacements are in a namespace that the controller creates.
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=create
// +kubebuilder:rbac:groups=placement.muster.dev,resources=placementdecisions,verbs=get;list;watch;create;update;delete
// +kubebuilder:rbac:groups=placement.muster.dev,resources=placementevictions,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups=placement.muster.dev,resources=placementevictions/status,verbs=patch
// +kubebuilder:rbac:groups=membership.muster.dev,resources=memberclusters,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
