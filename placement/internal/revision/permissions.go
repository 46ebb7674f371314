package revision

// The permissions that a Store needs.

// +kubebuilder:rbac:groups=placement.muster.dev,resources=worksetrevisions,verbs=get;list;create;patch;delete
