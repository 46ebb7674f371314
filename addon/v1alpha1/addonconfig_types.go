package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MaxAddonConfigBytes is the maximum length of the spec of an AddonConfig in bytes, encoded as JSON.
const MaxAddonConfigBytes = 512 << 10

// AddonConfigSpec defines a configuration that many add-ons support. If several AddonConfigs apply to a member, later
// ones take precedence: registries, resources and variables are merged, and the last nodePlacement and the last proxy
// are used.
type AddonConfigSpec struct {
	// installNamespace is the namespace of the add-on's agent on the member. If empty, this configuration does not set it.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="installNamespace must be the name of a namespace: lower-case letters, digits and '-', starting and ending with a letter or digit"
	// +optional
	InstallNamespace string `json:"installNamespace,omitempty"`

	// variables are values to which manifests can refer. They must not contain confidential data: every user with the
	// permission to read AddonConfigs on the hub, or the objects of the add-on on the member, can read them.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=128
	// +optional
	Variables []Variable `json:"variables,omitempty"`

	// nodePlacement defines on which nodes the pods run.
	// +optional
	NodePlacement *NodePlacement `json:"nodePlacement,omitempty"`

	// registries replace the registries of images. The first entry whose source is a prefix of the image is used. If one
	// source is a prefix of another, list the longer source first.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Registries []Registry `json:"registries,omitempty"`

	// proxy defines the proxy that the containers use for outgoing connections.
	// +optional
	Proxy *Proxy `json:"proxy,omitempty"`

	// resources replace the resources of containers. The last entry that matches a container is used.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Resources []ContainerResources `json:"resources,omitempty"`
}

// Variable is a named value to which manifests can refer.
type Variable struct {
	// name of the variable. It consists of letters, digits and '_', and does not begin with a digit. CLUSTER_NAME,
	// ADDON_NAME and INSTALL_NAMESPACE are predefined and cannot be set.
	// +required
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z_][A-Za-z0-9_]*$')",message="the name of a variable must be letters, digits and '_', and not begin with a digit"
	// +kubebuilder:validation:XValidation:rule="!(self in ['CLUSTER_NAME', 'ADDON_NAME', 'INSTALL_NAMESPACE'])",reason=FieldValueForbidden,message="CLUSTER_NAME, ADDON_NAME and INSTALL_NAMESPACE are set by the hub: use another name"
	Name string `json:"name"`
	// value of the variable.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Value string `json:"value,omitempty"`
}

// NodePlacement defines on which nodes pods run.
type NodePlacement struct {
	// nodeSelector is merged into the node selector of the pods.
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(key, size(key) <= 317 && key.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="nodeSelector must have keys of labels such as node-role.kubernetes.io/infra"
	// +kubebuilder:validation:XValidation:rule="self.all(key, size(self[key]) <= 63)",message="nodeSelector must have values of labels: up to 63 letters, digits, '-', '_' or '.', starting and ending with a letter or digit"
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// tolerations are added to the tolerations of the pods.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:XValidation:rule="!has(self.operator) || self.operator in ['', 'Equal', 'Exists', 'Lt', 'Gt']",fieldPath=".operator",message="operator must be Equal, Exists, Lt or Gt"
	// +kubebuilder:validation:items:XValidation:rule="!has(self.effect) || self.effect in ['', 'NoSchedule', 'PreferNoSchedule', 'NoExecute']",fieldPath=".effect",message="effect must be NoSchedule, PreferNoSchedule or NoExecute, or empty for all effects"
	// +kubebuilder:validation:items:XValidation:rule="has(self.key) && size(self.key) > 0 || has(self.operator) && self.operator == 'Exists'",fieldPath=".key",reason=FieldValueRequired,message="key is required unless the operator is Exists, which tolerates every taint"
	// +kubebuilder:validation:items:XValidation:rule="!has(self.key) || size(self.key) <= 317",fieldPath=".key",message="key must be a qualified name such as example.com/maintenance"
	// +kubebuilder:validation:items:XValidation:rule="!has(self.value) || size(self.value) <= 63",fieldPath=".value",message="value must be up to 63 letters, digits, '-', '_' or '.', starting and ending with a letter or digit"
	// +kubebuilder:validation:items:XValidation:rule="!has(self.operator) || self.operator != 'Exists' || !has(self.value) || size(self.value) == 0",fieldPath=".value",reason=FieldValueForbidden,message="operator Exists tolerates every value: remove value, or use operator Equal"
	// +kubebuilder:validation:items:XValidation:rule="!has(self.tolerationSeconds) || has(self.effect) && self.effect == 'NoExecute'",fieldPath=".tolerationSeconds",reason=FieldValueForbidden,message="tolerationSeconds may only be set with effect NoExecute: remove it, or set the effect to NoExecute"
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
}

// Registry replaces the registry of images.
type Registry struct {
	// source is a prefix of image names that ends before a '/', '@' or ':', for example quay.io/example. If empty, it
	// matches all images.
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || self.matches('^([A-Za-z0-9]([-A-Za-z0-9._]*[A-Za-z0-9])?|[[][0-9A-Fa-f:]+[]])(:[0-9]{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*$')",message="source must be a registry, or a repository in one, such as quay.io/example: without https://, tag or / at its end"
	// +optional
	Source string `json:"source,omitempty"`
	// mirror replaces the source in the image name.
	// +required
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^([A-Za-z0-9]([-A-Za-z0-9._]*[A-Za-z0-9])?|[[][0-9A-Fa-f:]+[]])(:[0-9]{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*$')",message="mirror must be a registry, or a repository in one, such as mirror.example.com/quay: without https://, tag or / at its end"
	Mirror string `json:"mirror"`
}

// Proxy defines the proxy of containers. It sets the environment variables HTTP_PROXY, HTTPS_PROXY and NO_PROXY.
type Proxy struct {
	// http is the value of HTTP_PROXY.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^[!-~]*$')",message="http must be the URL of a proxy, such as http://proxy.example.com:3128: it has no spaces"
	// +optional
	HTTP string `json:"http,omitempty"`
	// https is the value of HTTPS_PROXY.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^[!-~]*$')",message="https must be the URL of a proxy, such as http://proxy.example.com:3128: it has no spaces"
	// +optional
	HTTPS string `json:"https,omitempty"`
	// noProxy is the value of NO_PROXY.
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:validation:XValidation:rule="self.matches('^[ -~]*$')",message="noProxy must be names of hosts and networks with commas between them, such as .svc,10.0.0.0/8"
	// +optional
	NoProxy string `json:"noProxy,omitempty"`
}

// ContainerResources replaces the resources of all containers that match.
type ContainerResources struct {
	// workload of the container in the form <kind>/<name>, for example Deployment/web. Either part can be *. If empty, all
	// workloads match.
	// +kubebuilder:validation:MaxLength=320
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || self.matches('^([A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?|[*])/([a-z0-9]([-a-z0-9.]*[a-z0-9])?|[*])$')",message="workload must be the kind and the name of a workload, such as Deployment/web, DaemonSet/* or */web"
	// +optional
	Workload string `json:"workload,omitempty"`
	// container is the name of the container. If empty, all containers of the workload match.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="container must be the name of a container: lower-case letters, digits and '-', starting and ending with a letter or digit"
	// +optional
	Container string `json:"container,omitempty"`
	// resources replace the resources of the container.
	// +required
	Resources Resources `json:"resources"`
}

// Resources are the requests and limits of a container. Claims are not supported because they belong to a pod.
type Resources struct {
	// requests are the minimum resources of the container.
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(name, type(self[name]) == int ? self[name] >= 0 : !self[name].startsWith('-'))",message="requests must not be negative"
	// +kubebuilder:validation:XValidation:rule="self.all(name, name.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="requests must have qualified names such as cpu or nvidia.com/gpu"
	// +optional
	Requests corev1.ResourceList `json:"requests,omitempty"`
	// limits are the maximum resources of the container.
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(name, type(self[name]) == int ? self[name] >= 0 : !self[name].startsWith('-'))",message="limits must not be negative"
	// +kubebuilder:validation:XValidation:rule="self.all(name, name.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="limits must have qualified names such as cpu or nvidia.com/gpu"
	// +optional
	Limits corev1.ResourceList `json:"limits,omitempty"`
}

// AddonConfig is a configuration that many add-ons support.
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=muster
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type AddonConfig struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the AddonConfig.
	// +kubebuilder:default={}
	// +optional
	Spec AddonConfigSpec `json:"spec,omitzero"`
}

// AddonConfigList is a list of AddonConfigs.
//
// +kubebuilder:object:root=true
type AddonConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AddonConfig `json:"items"`
}
