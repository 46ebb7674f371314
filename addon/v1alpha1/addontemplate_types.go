package v1alpha1

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// Limits of an AddonTemplate.
const (
	// MaxTemplateManifests is how many manifests an AddonTemplate may have.
	MaxTemplateManifests = 200
	// MaxTemplateBytes is how long the manifests of an AddonTemplate may be together, as JSON. What comes of them has to fit into a
	// Work, which may have half as much again.
	MaxTemplateBytes = 512 << 10
	// MaxTemplateSpecBytes is how long the spec of an AddonTemplate may be, as JSON.
	MaxTemplateSpecBytes = 704 << 10
)

// AddonTemplateSpec is an add-on without code.
type AddonTemplateSpec struct {
	// Version is for people.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Version string `json:"version,omitempty"`

	// Manifests are what the add-on consists of on a member. In their strings ${NAME} stands for a variable: those of AddonConfigs, and
	// CLUSTER_NAME, ADDON_NAME and INSTALL_NAMESPACE; ${ as text is $${. What has no namespace gets the one where the add-on is installed, if
	// its kind is namespaced; the annotation addon.muster.dev/scope, Cluster or Namespaced, says so where the hub cannot know. That namespace is made
	// if it is not among the manifests. Jobs and Pods with the annotation addon.muster.dev/pre-delete: "true" run before the add-on is removed: all
	// at once, and all must succeed. One that fails for good holds the removal until it is mended or the deadline passes. Together they may be 512 KiB long.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=200
	Manifests []TemplateManifest `json:"manifests"`

	// Apply says how the manifests are applied, such as with takeover Always where the add-on was installed by other means before. It has no
	// fieldOwner, which could not change from one template to the next.
	// +kubebuilder:default={}
	// +kubebuilder:validation:XValidation:rule="!has(self.fieldOwner) || size(self.fieldOwner) == 0",fieldPath=".fieldOwner",reason=FieldValueForbidden,message="fieldOwner cannot be set here, since it could not change from one template to the next: remove it"
	// +optional
	Apply workv1alpha1.ApplyPolicy `json:"apply,omitzero"`

	// ManifestOptions say how some of the manifests are to be treated unlike the others, for example by which rule they are ready. What they
	// select by may have variables, too, and is compared with what the manifests come to. Together they may be 128 KiB long.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=200
	// +optional
	ManifestOptions []workv1alpha1.ManifestOption `json:"manifestOptions,omitempty"`

	// Waves say how one wave of manifests waits for the one before.
	// +kubebuilder:default={}
	// +optional
	Waves workv1alpha1.WavePolicy `json:"waves,omitzero"`

	// Executor applies, reads and deletes the objects in the name of this ServiceAccount of the member.
	// +optional
	Executor *workv1alpha1.Executor `json:"executor,omitempty"`

	// Registration gives the add-on's agent access to the hub. Unset: it has none.
	// +optional
	Registration *TemplateRegistration `json:"registration,omitempty"`
}

// TemplateManifest is one object, as one would write it for kubectl, with variables. The API server does not know it for an object, as it does a
// [workv1alpha1.Manifest]: it would refuse a namespace or a label that has a variable.
//
// +kubebuilder:pruning:PreserveUnknownFields
type TemplateManifest struct {
	runtime.RawExtension `json:",inline"`
}

// RegistrationCredential is how an add-on's agent authenticates to the hub.
//
// +kubebuilder:validation:Enum=Token;Certificate
type RegistrationCredential string

const (
	// RegistrationToken is a bound token of a ServiceAccount in the member's namespace. It is the default.
	RegistrationToken RegistrationCredential = "Token"
	// RegistrationCertificate is a client certificate of the signer kubernetes.io/kube-apiserver-client, which not every hub has.
	RegistrationCertificate RegistrationCredential = "Certificate"
)

// TemplateRegistration gives an add-on's agent access to the hub.
type TemplateRegistration struct {
	// Credential that the agent gets: Token or Certificate.
	// +kubebuilder:default=Token
	// +optional
	Credential RegistrationCredential `json:"credential,omitempty"`

	// ExpirationSeconds is the lifetime of the credential, of which the hub may grant less. It is renewed in time, also where the member waits
	// for its turn or something is wrong. Unset: as the hub grants.
	// +kubebuilder:validation:Minimum=600
	// +kubebuilder:validation:Maximum=31536000
	// +optional
	ExpirationSeconds *int32 `json:"expirationSeconds,omitempty"`

	// Rules are what it may do there, in the member's namespace, beside what the add-on's health needs: with type Lease it may always
	// renew its Lease. What it is to have elsewhere is for the hub's administrator to grant, to status.registration.subject of the MemberAddon.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:XValidation:rule="size(self.verbs) > 0",fieldPath=".verbs",reason=FieldValueRequired,message="verbs is required: a rule without them grants nothing"
	// +kubebuilder:validation:items:XValidation:rule="has(self.apiGroups) && size(self.apiGroups) > 0",fieldPath=".apiGroups",reason=FieldValueRequired,message="apiGroups is required; the core group is written as an empty text"
	// +kubebuilder:validation:items:XValidation:rule="has(self.resources) && size(self.resources) > 0",fieldPath=".resources",reason=FieldValueRequired,message="resources is required: say of what"
	// +kubebuilder:validation:items:XValidation:rule="!has(self.nonResourceURLs) || size(self.nonResourceURLs) == 0",fieldPath=".nonResourceURLs",reason=FieldValueForbidden,message="rules in a namespace cannot be about nonResourceURLs: remove them"
	// +optional
	Rules []rbacv1.PolicyRule `json:"rules,omitempty"`

	// SecretName is where its kubeconfig is put, in the namespace where the agent is, under the key kubeconfig. It refers to its token,
	// or certificate and key, as files beside it: mount the Secret as a folder. Empty: the add-on's name and -hub-kubeconfig.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="secretName must be a DNS name: lower-case letters, digits, '-' and '.', with a letter or digit at either end of each part"
	// +optional
	SecretName string `json:"secretName,omitempty"`
}

// AddonTemplate is an add-on without code: an Addon whose configs name it needs no agent in Go.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories=muster
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.spec.version`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type AddonTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

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
