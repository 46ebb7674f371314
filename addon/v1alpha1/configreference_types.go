package v1alpha1

// ConfigKind is a kind of configuration that an add-on supports.
// +kubebuilder:validation:XValidation:rule="self.group != 'addon.muster.dev' || self.resource != 'addonconfigs' || !has(self.defaults) || self.defaults.all(d, has(d.namespace) && size(d.namespace) > 0)",fieldPath=".defaults",reason=FieldValueRequired,message="namespace is required for an AddonConfig"
// +kubebuilder:validation:XValidation:rule="self.group != 'addon.muster.dev' || self.resource != 'addontemplates' || !has(self.defaults) || self.defaults.all(d, !has(d.namespace) || size(d.namespace) == 0)",fieldPath=".defaults",reason=FieldValueForbidden,message="namespace must not be set for an AddonTemplate, which is cluster-scoped"
// +kubebuilder:validation:XValidation:rule="self.group != 'addon.muster.dev' || self.resource != 'addontemplates' || !has(self.defaults) || size(self.defaults) <= 1",fieldPath=".defaults",message="an add-on must have at most one AddonTemplate: remove the others"
type ConfigKind struct {
	// group of the resource. If empty, the core group.
	// +required
	// +kubebuilder:default=""
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="group must be the group of an API, such as addon.muster.dev, or empty for the core group"
	Group string `json:"group"`
	// resource is the plural name of the kind, for example addonconfigs.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="resource must be the plural name of a kind in lower-case letters, such as addonconfigs"
	Resource string `json:"resource"`
	// defaults are the configurations of this kind that apply if no placement or member overrides them. The add-on defines
	// the meaning of their order; usually later ones take precedence. If a configuration is listed twice, only the last
	// entry is used.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Defaults []ObjectName `json:"defaults,omitempty"`
}

// ObjectName identifies an object of a given kind.
type ObjectName struct {
	// namespace of the object. It must be empty if the kind is cluster-scoped.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="namespace must be the name of a namespace, or empty for a cluster-scoped kind"
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name of the object.
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[^/%]+$') && self != '.' && self != '..'",message="name must be the name of an object, without / and %"
	Name string `json:"name"`
}

// ConfigReference identifies a configuration.
// +kubebuilder:validation:XValidation:rule="!has(self.group) || self.group != 'addon.muster.dev' || self.resource != 'addonconfigs' || has(self.namespace) && size(self.namespace) > 0",fieldPath=".namespace",reason=FieldValueRequired,message="namespace is required for an AddonConfig"
// +kubebuilder:validation:XValidation:rule="!has(self.group) || self.group != 'addon.muster.dev' || self.resource != 'addontemplates' || !has(self.namespace) || size(self.namespace) == 0",fieldPath=".namespace",reason=FieldValueForbidden,message="namespace must not be set for an AddonTemplate, which is cluster-scoped"
type ConfigReference struct {
	// group of the resource. If empty, the core group.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="group must be the group of an API, such as addon.muster.dev, or empty for the core group"
	// +optional
	Group string `json:"group,omitempty"`
	// resource is the plural name of the kind, for example addonconfigs.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="resource must be the plural name of a kind in lower-case letters, such as addonconfigs"
	Resource string `json:"resource"`
	// ObjectName identifies the object.
	ObjectName `json:",inline"`
}
