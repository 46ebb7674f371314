package v1alpha1

// ObjectKind identifies one kind, or several kinds by a wildcard.
type ObjectKind struct {
	// Group is an API group, or "*" for every group. The empty group is the core group.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Group string `json:"group,omitempty"`

	// Kind is a kind such as Deployment, or "*" for every kind of the group.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Kind string `json:"kind"`
}

// ServiceAccount identifies a ServiceAccount on a member.
type ServiceAccount struct {
	// Namespace is the namespace of the ServiceAccount.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Namespace string `json:"namespace"`

	// Name is the name of the ServiceAccount.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
}

// Matches reports whether k identifies the kind.
func (k ObjectKind) Matches(group, kind string) bool {
	return (k.Group == "*" || k.Group == group) && (k.Kind == "*" || k.Kind == kind)
}
