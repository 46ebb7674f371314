package clusterprofile

// The permissions of the export. The file in the folder rbac is generated from them. RBAC permits a list or a watch of
// a single name if the field selector of the request selects that name only.

// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=clusterprofiles.multicluster.x-k8s.io;placementdecisions.multicluster.x-k8s.io,verbs=list;watch
// +kubebuilder:rbac:groups=multicluster.x-k8s.io,resources=clusterprofiles,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups=multicluster.x-k8s.io,resources=clusterprofiles/status,verbs=patch
// +kubebuilder:rbac:groups=multicluster.x-k8s.io,resources=placementdecisions,verbs=list;watch;create;patch
// +kubebuilder:rbac:groups=membership.muster.dev,resources=memberclusters,verbs=get;list;watch
// +kubebuilder:rbac:groups=placement.muster.dev,resources=placementdecisions,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=create;get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
