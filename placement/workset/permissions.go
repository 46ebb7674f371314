package workset

// The permissions of the controller. The file in the folder rbac is generated from them. The permissions list and watch
// on each kind that WorkSets select must be granted separately.

// +kubebuilder:rbac:groups=placement.muster.dev,resources=worksets;clusterworksets,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=placement.muster.dev,resources=worksets/status;clusterworksets/status,verbs=patch
// +kubebuilder:rbac:groups=placement.muster.dev,resources=placements;clusterplacements;placementdecisions,verbs=get;list;watch
// The revisions of ClusterWorkSets are in a namespace that the controller creates.
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=create
// +kubebuilder:rbac:groups=work.muster.dev,resources=works,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=membership.muster.dev,resources=memberclusters,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
