package addon

// The controllers need these permissions. The file in the folder rbac is generated from the markers. Configurations
// of other kinds need additional permissions: get, list and watch on each kind that an Addon names in spec.configs.

// +kubebuilder:rbac:groups=addon.muster.dev,resources=addons,verbs=list;watch;patch
// +kubebuilder:rbac:groups=addon.muster.dev,resources=addons/status,verbs=patch
// +kubebuilder:rbac:groups=addon.muster.dev,resources=memberaddons,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=addon.muster.dev,resources=memberaddons/status,verbs=patch
// +kubebuilder:rbac:groups=addon.muster.dev,resources=addonconfigs;addontemplates,verbs=list;watch
// +kubebuilder:rbac:groups=placement.muster.dev,resources=placements;clusterplacements;placementdecisions,verbs=list;watch
// +kubebuilder:rbac:groups=membership.muster.dev,resources=memberclusters,verbs=list;watch
// +kubebuilder:rbac:groups=work.muster.dev,resources=works,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
