package v1alpha1

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// Limits of an AddonTemplate.
const (
	// MaxTemplateManifests is the maximum number of manifests in an AddonTemplate.
	MaxTemplateManifests = 200
	// MaxTemplateBytes is the maximum total length of the manifests of an AddonTemplate in bytes, encoded as JSON. It is
	// two thirds of the limit of a Work, because the manifests become longer when variables are replaced.
	MaxTemplateBytes = 512 << 10
	// MaxTemplateSpecBytes is the maximum length of the spec of an AddonTemplate in bytes, encoded as JSON.
	MaxTemplateSpecBytes = 704 << 10
)

// AddonTemplateSpec defines an add-on without code.
type AddonTemplateSpec struct {
	// version is a version of the add-on for users. It has no effect on the installation.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Version string `json:"version,omitempty"`

	// manifests are the objects of the add-on on a member. In strings, ${NAME} is replaced by the value of the variable
	// NAME. The variables are those of AddonConfigs, CLUSTER_NAME, ADDON_NAME and INSTALL_NAMESPACE. Write $${ for a
	// literal ${. A namespaced object without a namespace gets the install namespace. If the hub does not know the kind,
	// the annotation addon.muster.dev/scope with the value Cluster or Namespaced defines its scope. The install namespace
	// is created unless it is one of the manifests. Jobs and Pods with the annotation addon.muster.dev/pre-delete: "true"
	// run before the add-on is removed. All of them run concurrently, and all must succeed. If one fails, the removal is
	// blocked until it succeeds or the deadline passes. The manifests can be at most 512 KiB long in total.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=200
	Manifests []TemplateManifest `json:"manifests"`

	// apply defines how the manifests are applied. For example, set takeover to Always if the add-on was installed by
	// other means before. fieldOwner cannot be set, because it is immutable and could not change from one template to the
	// next.
	// +kubebuilder:default={}
	// +kubebuilder:validation:XValidation:rule="!has(self.fieldOwner) || size(self.fieldOwner) == 0",fieldPath=".fieldOwner",reason=FieldValueForbidden,message="fieldOwner must not be set in a template, because it could not differ between templates"
	// +optional
	Apply workv1alpha1.ApplyPolicy `json:"apply,omitzero"`

	// manifestOptions override how individual manifests are handled, for example their readiness rule. Selectors can
	// contain variables and are compared with the manifests after variables are replaced. The options can be at most 128
	// KiB long in total.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=200
	// +optional
	ManifestOptions []workv1alpha1.ManifestOption `json:"manifestOptions,omitempty"`

	// waves define how one wave of manifests waits for the previous one.
	// +kubebuilder:default={}
	// +optional
	Waves workv1alpha1.WavePolicy `json:"waves,omitzero"`

	// executor is the ServiceAccount of the member whose permissions the agent uses to apply, read and delete the objects.
	// If unset, the agent uses its own permissions, if its policy allows that.
	// +optional
	Executor *workv1alpha1.Executor `json:"executor,omitempty"`

	// registration gives the add-on's agent access to the hub. If unset, the agent has no access.
	// +optional
	Registration *TemplateRegistration `json:"registration,omitempty"`
}

// TemplateManifest is one Kubernetes object, in the form that kubectl apply accepts, with variables. Unlike a
// [workv1alpha1.Manifest], the API server does not validate it as an object, because it would reject a namespace or
// label that contains a variable.
// +kubebuilder:pruning:PreserveUnknownFields
type TemplateManifest struct {
	runtime.RawExtension `json:",inline"`
}

// RegistrationCredential defines how an add-on's agent authenticates to the hub.
// +kubebuilder:validation:Enum=Token;Certificate
type RegistrationCredential string

const (
	// RegistrationToken is a bound token of a ServiceAccount in the member's namespace. It is the default.
	RegistrationToken RegistrationCredential = "Token"
	// RegistrationCertificate is a client certificate of the signer kubernetes.io/kube-apiserver-client. Some hubs do not
	// support this signer.
	RegistrationCertificate RegistrationCredential = "Certificate"
)

// TemplateRegistration gives an add-on's agent access to the hub.
type TemplateRegistration struct {
	// credential of the agent: Token or Certificate. Default: Token.
	// +kubebuilder:default=Token
	// +optional
	Credential RegistrationCredential `json:"credential,omitempty"`

	// expirationSeconds is the requested lifetime of the credential in seconds. The hub may grant less. The credential is
	// renewed before it expires, even while the member waits for a rollout permit or has an error. If unset, the hub
	// decides.
	// +kubebuilder:validation:Minimum=600
	// +kubebuilder:validation:Maximum=31536000
	// +optional
	ExpirationSeconds *int32 `json:"expirationSeconds,omitempty"`

	// rules are the permissions of the agent in the member's namespace on the hub, in addition to the permissions that the
	// health check needs: with health type Lease, the agent can always renew its Lease. A hub administrator can grant
	// further permissions to status.registration.subject of the MemberAddon.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:XValidation:rule="size(self.verbs) > 0",fieldPath=".verbs",reason=FieldValueRequired,message="verbs is required: a rule without them grants nothing"
	// +kubebuilder:validation:items:XValidation:rule="has(self.apiGroups) && size(self.apiGroups) > 0",fieldPath=".apiGroups",reason=FieldValueRequired,message="apiGroups is required; the core group is an empty string"
	// +kubebuilder:validation:items:XValidation:rule="has(self.resources) && size(self.resources) > 0",fieldPath=".resources",reason=FieldValueRequired,message="resources is required: name at least one resource"
	// +kubebuilder:validation:items:XValidation:rule="!has(self.nonResourceURLs) || size(self.nonResourceURLs) == 0",fieldPath=".nonResourceURLs",reason=FieldValueForbidden,message="nonResourceURLs must not be set in the rules of a namespace: remove them"
	// +optional
	Rules []rbacv1.PolicyRule `json:"rules,omitempty"`

	// secretName is the name of the Secret in the install namespace that contains the agent's kubeconfig in the key
	// kubeconfig. The kubeconfig refers to its token, or to its certificate and key, as files in the same directory.
	// Therefore, mount the Secret as a directory. Default: the name of the add-on followed by -hub-kubeconfig.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="secretName must be a DNS name: lower-case letters, digits, '-' and '.', with a letter or digit at either end of each part"
	// +optional
	SecretName string `json:"secretName,omitempty"`
}

// AddonTemplate defines an add-on without code. An Addon whose configs contain an AddonTemplate needs no agent in Go.
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories=muster
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.spec.version`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type AddonTemplate struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the AddonTemplate.
	// +required
	Spec AddonTemplateSpec `json:"spec"`
}

// AddonTemplateList is a list of AddonTemplates.
//
// +kubebuilder:object:root=true
type AddonTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AddonTemplate `json:"items"`
}
