package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// JoinTokenType is the type of the bootstrap credential of a JoinToken.
// +kubebuilder:validation:Enum=ServiceAccount;BootstrapToken
type JoinTokenType string

// The types of JoinTokens.
const (
	// JoinTokenServiceAccount provides expiring tokens of a separate ServiceAccount. Every hub supports it. It is the
	// default.
	JoinTokenServiceAccount JoinTokenType = "ServiceAccount"
	// JoinTokenBootstrapToken provides a bootstrap token as kubeadm uses it, "<id>.<secret>", which is short enough to
	// type. The hub's API server must run with --enable-bootstrap-token-auth, and the muster hub with the option
	// BootstrapTokens.
	JoinTokenBootstrapToken JoinTokenType = "BootstrapToken"
)

// JoinTokenSpec defines which clusters may use a JoinToken, and for how long.
type JoinTokenSpec struct {
	// type is ServiceAccount or BootstrapToken. Default: ServiceAccount. The field is immutable. With BootstrapToken, the
	// JoinToken must be named bootstrap-token-<id>, where the id consists of six lower-case letters and digits.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="type cannot change: create another JoinToken"
	// +kubebuilder:default=ServiceAccount
	// +optional
	Type JoinTokenType `json:"type,omitempty"`

	// ttlSeconds is the time in seconds after its creation for which the JoinToken may be used. Unset, zero or negative:
	// no limit. In any case, the credential in the Secret is rotated and expires.
	// +optional
	TTLSeconds *int64 `json:"ttlSeconds,omitempty"`

	// credentialTTLSeconds is the lifetime in seconds of each credential in the Secret, from 600 to 31536000. The hub
	// replaces the credential after half of its lifetime, so a copy of it is valid for at least the other half. The hub
	// does not replace a bootstrap token but extends its expiration, so copies stay valid for as long as the hub extends
	// it. Default: 86400.
	// +kubebuilder:default=86400
	// +kubebuilder:validation:XValidation:rule="self >= 600 && self <= 31536000",message="credentialTTLSeconds must be from 600 (the API server's minimum) to 31536000 (a year)"
	// +optional
	CredentialTTLSeconds int64 `json:"credentialTTLSeconds,omitempty"`

	// maxUses is the maximum number of clusters that may join with the JoinToken, from 1 to 10000. Unset: no limit.
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 10000",message="maxUses must be from 1 to 10000; leave it out for no limit"
	// +optional
	MaxUses *int32 `json:"maxUses,omitempty"`

	// autoAccept is true if the hub accepts clusters that join with this JoinToken without an action by an administrator.
	// Default: false.
	// +optional
	AutoAccept bool `json:"autoAccept,omitempty"`

	// clusterID restricts the JoinToken to the cluster with this ID. Empty: no restriction.
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]([-A-Za-z0-9_.:]*[A-Za-z0-9])?$')",message="clusterID must be letters, digits, '-', '_', '.' or ':', and start and end with a letter or digit"
	// +optional
	ClusterID string `json:"clusterID,omitempty"`

	// labels are added to MemberClusters that are created with the JoinToken. They take precedence over the labels that an
	// agent requests.
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(key, size(key) <= 317 && size(self[key]) <= 63)",message="a label's key has at most 317 characters, and its value at most 63"
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// allowedLabels lists the labels that a cluster may request. The hub denies a JoinRequest for a new member that
	// contains any other label. Unset: every label is allowed, except labels whose key is used by the selector of a
	// ClusterSet, because such a label determines which namespaces can place on the cluster.
	// +listType=map
	// +listMapKey=key
	// +kubebuilder:validation:MaxItems=64
	// +optional
	AllowedLabels []AllowedLabel `json:"allowedLabels,omitempty"`
}

// AllowedLabel is a label that a cluster may request.
type AllowedLabel struct {
	// key is the key of the label.
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:MinLength=1
	// +required
	Key string `json:"key"`

	// values are the values that a cluster may request. Unset: every value.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	// +optional
	Values []string `json:"values,omitempty"`
}

// ConditionReady of a JoinToken is True when its Secret contains a valid credential. ConditionReady of a MemberCluster
// is True when the member is accepted, joined and healthy.
const ConditionReady = "Ready"

// Reasons of the conditions of a JoinToken.
const (
	// ReasonReady: the Secret of the JoinToken contains a valid credential.
	ReasonReady = "Ready"
	// ReasonExpired: the JoinToken has expired; create another one.
	ReasonExpired = "Expired"
	// ReasonUsedUp: as many clusters as spec.maxUses have used the JoinToken.
	ReasonUsedUp = "UsedUp"
	// ReasonInvalidLabel: spec.labels has a label that is invalid or reserved.
	ReasonInvalidLabel = "InvalidLabel"
	// ReasonFailed: the credential could not be created; the hub retries.
	ReasonFailed = "Failed"
	// ReasonNotEnabled: the hub does not support JoinTokens of this type.
	ReasonNotEnabled = "NotEnabled"
	// ReasonBootstrapTokenUnusable: the Secret in kube-system belongs to another owner, and cannot be used.
	ReasonBootstrapTokenUnusable = "BootstrapTokenUnusable"
)

// JoinTokenStatus describes the observed state of a JoinToken.
type JoinTokenStatus struct {
	// conditions of the JoinToken: Ready.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// secretName is the name of the Secret in the same namespace that contains the agent's bootstrap credential in the key
	// "join.yaml".
	// +kubebuilder:validation:MaxLength=253
	// +optional
	SecretName string `json:"secretName,omitempty"`

	// expirationTime is the time at which the JoinToken expires. Unset: never.
	// +optional
	ExpirationTime *metav1.Time `json:"expirationTime,omitempty"`

	// credentialExpirationTime is the time at which the current credential in the Secret expires.
	// +optional
	CredentialExpirationTime *metav1.Time `json:"credentialExpirationTime,omitempty"`

	// uses is the number of clusters that have used the JoinToken.
	// +optional
	Uses int32 `json:"uses,omitempty"`

	// usedUpTime is the time at which the hub first observed that spec.maxUses was reached. Ten minutes later, copies of
	// the credential become invalid.
	// +optional
	UsedUpTime *metav1.Time `json:"usedUpTime,omitempty"`

	// usedBy lists the cluster IDs that were counted last, at most 100. The hub does not count a listed cluster again.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	// +optional
	UsedBy []string `json:"usedBy,omitempty"`
}

// JoinToken allows clusters to create JoinRequests.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=muster
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Uses",type=integer,JSONPath=`.status.uses`
// +kubebuilder:printcolumn:name="Max",type=integer,JSONPath=`.spec.maxUses`
// +kubebuilder:printcolumn:name="Auto-Accept",type=boolean,JSONPath=`.spec.autoAccept`
// +kubebuilder:printcolumn:name="Expires",type=string,JSONPath=`.status.expirationTime`
// +kubebuilder:printcolumn:name="Secret",type=string,JSONPath=`.status.secretName`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Why",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 52 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must be a DNS label of at most 52 characters: lower-case letters, digits and '-', starting and ending with a letter or digit"
// +kubebuilder:validation:XValidation:rule="self.spec.type != 'BootstrapToken' || self.metadata.name.matches('^bootstrap-token-[a-z0-9]{6}$')",message="a JoinToken of type BootstrapToken must be named bootstrap-token-<id>, with an id of six lower-case letters and digits"
type JoinToken struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the JoinToken.
	// +kubebuilder:default={}
	// +optional
	Spec JoinTokenSpec `json:"spec,omitempty"`
	// status is the observed state of the JoinToken.
	// +optional
	Status JoinTokenStatus `json:"status,omitempty"`
}

// JoinTokenList is a list of JoinTokens.
//
// +kubebuilder:object:root=true
type JoinTokenList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []JoinToken `json:"items"`
}
