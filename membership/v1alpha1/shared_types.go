package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DesiredState says whether a cluster shall be in the fleet.
//
// +kubebuilder:validation:Enum=Join;Leave
type DesiredState string

const (
	// StateJoin asks the cluster to join, and to join again after it left.
	StateJoin DesiredState = "Join"
	// StateLeave asks the cluster to leave while its MemberCluster is kept.
	StateLeave DesiredState = "Leave"
)

// HubIdentity tells one hub from another, and an earlier state of a hub from a later one.
type HubIdentity struct {
	// ID of the hub. It never changes.
	// +kubebuilder:validation:MaxLength=64
	ID string `json:"id"`

	// Epoch of the hub. It only increases, unless the hub is restored from a backup.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Epoch int64 `json:"epoch,omitempty"`
}

// ResourcePolicy says what becomes of the resources that the hub had applied on a member that leaves.
//
// +kubebuilder:validation:Enum=Delete;Orphan
type ResourcePolicy string

const (
	// DeleteResources removes them from the member.
	DeleteResources ResourcePolicy = "Delete"
	// OrphanResources leaves them on the member as they are, without an owner.
	OrphanResources ResourcePolicy = "Orphan"
)

// LeavePolicy says how a member leaves.
type LeavePolicy struct {
	// Resources says what becomes of what the hub had applied on the member.
	// +kubebuilder:default=Delete
	// +optional
	Resources ResourcePolicy `json:"resources,omitempty"`

	// DeadlineSeconds bounds the leave. When it has passed, whatever is still missing (a dead agent, a gate
	// that does not open) is recorded and the member is removed from the hub without it.
	// +kubebuilder:default=900
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=604800
	// +optional
	DeadlineSeconds int32 `json:"deadlineSeconds,omitempty"`
}

// Taint keeps placements off a member that do not tolerate it.
type Taint struct {
	// Key of the taint, a qualified name such as "example.com/maintenance".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=316
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$')",message="key must be a qualified name such as example.com/maintenance: an optional DNS prefix and a slash, then up to 63 letters, digits, '-', '_' or '.'"
	Key string `json:"key"`

	// Value of the taint.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`
	// +optional
	Value string `json:"value,omitempty"`

	// Effect of the taint: NoSchedule keeps new placements off, PreferNoSchedule does so where there is a
	// choice, NoExecute also moves away what is there.
	// +kubebuilder:validation:Enum=NoSchedule;PreferNoSchedule;NoExecute
	Effect corev1.TaintEffect `json:"effect"`

	// TimeAdded is when the taint was put on; toleration seconds count from it. Unset: from when who reads it saw the taint for
	// the first time, which is anew when that has been restarted.
	// +optional
	TimeAdded *metav1.Time `json:"timeAdded,omitempty"`
}

// Property is a fact about a member that placements can select by, such as its region.
type Property struct {
	// Name of the property, a qualified name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Value of the property.
	// +kubebuilder:validation:MaxLength=1024
	Value string `json:"value"`
}

// OrphanSummary summarizes the orphaned objects on a member: objects that no Work has any more although no user asked for
// their deletion.
type OrphanSummary struct {
	// Objects is the number of orphaned objects.
	// +kubebuilder:validation:Minimum=0
	Objects int64 `json:"objects"`

	// Works is the number of Works, existing or missing, whose objects are orphaned.
	// +kubebuilder:validation:Minimum=0
	Works int64 `json:"works"`

	// WorkNames are the names of the first of these Works in alphabetical order, at most ten.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:MaxLength=253
	// +optional
	WorkNames []string `json:"workNames,omitempty"`
}

// ResourceUsage sums up the nodes of a member that are ready and schedulable.
type ResourceUsage struct {
	// Capacity is what the nodes have.
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`

	// Allocatable is what of it pods may use.
	// +optional
	Allocatable corev1.ResourceList `json:"allocatable,omitempty"`

	// Available is what of that no pod has requested.
	// +optional
	Available corev1.ResourceList `json:"available,omitempty"`
}

// ServedAPIs are the kinds that a member serves of one version of an API group.
type ServedAPIs struct {
	// GroupVersion such as "apps/v1", or "v1" for the core group.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	GroupVersion string `json:"groupVersion"`

	// Kinds in the order of the alphabet.
	// +listType=set
	// +kubebuilder:validation:MaxItems=512
	// +kubebuilder:validation:items:MaxLength=63
	Kinds []string `json:"kinds"`
}

// VersionInfo names the versions that a member runs.
type VersionInfo struct {
	// Kubernetes is the git version of the member's API server.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Kubernetes string `json:"kubernetes,omitempty"`

	// Agent is the version of the program that the agent is part of, as its builder names it.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Agent string `json:"agent,omitempty"`
}

// AgentStatus is the state of one agent of a member.
type AgentStatus struct {
	// Type of the agent; "Membership" is the one that joins, beats and leaves.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Type string `json:"type"`

	// Conditions of the agent: Joined and Healthy.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// LastHeartbeat is the last heartbeat that the hub had observed when it last wrote this status. It is
	// not kept current: a heartbeat costs the hub one Lease write and nothing else. The Lease
	// "heartbeat" in the member's namespace has the latest.
	// +optional
	LastHeartbeat *metav1.MicroTime `json:"lastHeartbeat,omitempty"`
}

// MembershipAgent is the type of the agent that joins, beats and leaves.
const MembershipAgent = "Membership"

// CredentialType says how a member is to authenticate to the hub.
//
// +kubebuilder:validation:Enum=Certificate;Token;Identity
type CredentialType string

const (
	// CredentialCertificate is a client certificate of the signer kubernetes.io/kube-apiserver-client.
	CredentialCertificate CredentialType = "Certificate"
	// CredentialToken is a bound token of a ServiceAccount in the member's namespace.
	CredentialToken CredentialType = "Token"
	// CredentialIdentity is one that the agent has already, of a subject that an administrator named.
	CredentialIdentity CredentialType = "Identity"
)

// CredentialRequest asks for a credential that only the asking agent can use. That each type has what it needs is
// checked by the hub and not by a rule: the API server's CEL reads fields of bytes as another base64 than its JSON.
type CredentialRequest struct {
	// Type of the credential that is asked for.
	Type CredentialType `json:"type"`

	// CertificateRequest is a PEM-encoded PKCS#10 request. Its private key never leaves the agent.
	// +kubebuilder:validation:MaxLength=8192
	// +optional
	CertificateRequest []byte `json:"certificateRequest,omitempty"`

	// PublicKey is an X25519 key of 32 bytes, made for this request alone, that a token is sealed to by
	// HPKE (RFC 9180).
	// +kubebuilder:validation:MaxLength=64
	// +optional
	PublicKey []byte `json:"publicKey,omitempty"`

	// ExpirationSeconds is the lifetime asked for. The hub may grant less. The API server's minimum is 600.
	// +kubebuilder:validation:Minimum=600
	// +kubebuilder:validation:Maximum=31536000
	// +optional
	ExpirationSeconds *int32 `json:"expirationSeconds,omitempty"`
}

// Credential is what the hub issued for a [CredentialRequest].
type Credential struct {
	// Type of the credential.
	Type CredentialType `json:"type"`

	// Certificate is the PEM-encoded client certificate.
	// +kubebuilder:validation:MaxLength=65536
	// +optional
	Certificate []byte `json:"certificate,omitempty"`

	// SealedToken is the token, sealed by HPKE to the public key of the request.
	// +kubebuilder:validation:MaxLength=65536
	// +optional
	SealedToken []byte `json:"sealedToken,omitempty"`

	// IssuedAt is when the credential was issued, by the hub's clock.
	// +optional
	IssuedAt *metav1.Time `json:"issuedAt,omitempty"`

	// ExpirationTime is when it ends, by the hub's clock. Empty: the hub does not know.
	// +optional
	ExpirationTime *metav1.Time `json:"expirationTime,omitempty"`
}

// Renewal is the agent's request for its next credential. The credential that the agent has does not do to get the
// next one: whoever came by that would be in for ever. The claim key, which never leaves the agent, has to sign.
type Renewal struct {
	// ID tells this request from the agent's earlier ones.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	ID string `json:"id"`

	// Request is what the agent asks for.
	Request CredentialRequest `json:"request"`

	// ClaimKey is the agent's claim key, a P-256 public key in PKIX form. The hub refuses one whose fingerprint is not
	// the spec.claim of the MemberCluster.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	ClaimKey []byte `json:"claimKey,omitempty"`

	// Signature by the claim key over all of the above and the UID of the MemberCluster. The hub refuses a renewal
	// without it.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Signature []byte `json:"signature,omitempty"`
}

// RenewalAnswer is the hub's answer to a [Renewal].
type RenewalAnswer struct {
	// ID of the request that this answers.
	// +kubebuilder:validation:MaxLength=63
	ID string `json:"id"`

	// Credential is what was issued. Empty when Refused says why not.
	// +optional
	Credential *Credential `json:"credential,omitempty"`

	// Refused says why nothing was issued, and what to do.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Refused string `json:"refused,omitempty"`
}
