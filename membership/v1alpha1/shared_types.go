package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DesiredState defines whether a cluster should be in the fleet.
//
// +kubebuilder:validation:Enum=Join;Leave
type DesiredState string

const (
	// StateJoin requests that the cluster joins, or joins again after it left.
	StateJoin DesiredState = "Join"
	// StateLeave requests that the cluster leaves while its MemberCluster is kept.
	StateLeave DesiredState = "Leave"
)

// HubIdentity distinguishes hubs, and an earlier state of a hub from a later one.
type HubIdentity struct {
	// id of the hub. It never changes.
	// +required
	// +kubebuilder:validation:MaxLength=64
	ID string `json:"id"`

	// epoch of the hub. It only increases, unless the hub is restored from a backup.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Epoch int64 `json:"epoch,omitempty"`
}

// ResourcePolicy defines what happens to the objects of the hub on a member that leaves.
//
// +kubebuilder:validation:Enum=Delete;Orphan
type ResourcePolicy string

const (
	// DeleteResources deletes the objects.
	DeleteResources ResourcePolicy = "Delete"
	// OrphanResources keeps the objects unchanged on the member, without an owner.
	OrphanResources ResourcePolicy = "Orphan"
)

// LeavePolicy defines how a member leaves.
type LeavePolicy struct {
	// resources defines what happens to the objects of the hub on the member.
	// +kubebuilder:default=Delete
	// +optional
	Resources ResourcePolicy `json:"resources,omitempty"`

	// deadlineSeconds limits the duration of the leave. After that, what is still missing (for example a dead agent, or a
	// closed gate) is recorded and the member is removed from the hub without it.
	// +kubebuilder:default=900
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=604800
	// +optional
	DeadlineSeconds int32 `json:"deadlineSeconds,omitempty"`
}

// Taint excludes placements that do not tolerate it from a member.
type Taint struct {
	// key of the taint, a qualified name such as "example.com/maintenance".
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=316
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$')",message="key must be a qualified name such as example.com/maintenance: an optional DNS prefix and a slash, then up to 63 letters, digits, '-', '_' or '.'"
	Key string `json:"key"`

	// value of the taint.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`
	// +optional
	Value string `json:"value,omitempty"`

	// effect of the taint: NoSchedule prevents new placements, PreferNoSchedule does so if there is an alternative,
	// NoExecute also moves existing placements away.
	// +required
	// +kubebuilder:validation:Enum=NoSchedule;PreferNoSchedule;NoExecute
	Effect corev1.TaintEffect `json:"effect"`

	// timeAdded is when the taint was added; toleration seconds count from it. Unset: they count from when the reader of
	// the taint first observed it, again after each restart of the reader.
	// +optional
	TimeAdded *metav1.Time `json:"timeAdded,omitempty"`
}

// Property is a fact about a member, such as its region. Placements can select by it.
type Property struct {
	// name of the property, a qualified name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// value of the property.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Value string `json:"value"`
}

// OrphanSummary summarizes the orphaned objects on a member: objects that no Work contains any more although no user
// requested their deletion.
type OrphanSummary struct {
	// objects is the number of orphaned objects.
	// +required
	// +kubebuilder:validation:Minimum=0
	Objects int64 `json:"objects"`

	// works is the number of Works, existing or missing, whose objects are orphaned.
	// +required
	// +kubebuilder:validation:Minimum=0
	Works int64 `json:"works"`

	// workNames are the names of the first of these Works in alphabetical order, at most ten.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:MaxLength=253
	// +optional
	WorkNames []string `json:"workNames,omitempty"`
}

// MemberPolicySummary summarizes what a member accepts from the hub. The MemberPolicies of the member decide; the
// summary only informs the hub.
type MemberPolicySummary struct {
	// policies is the number of MemberPolicies. Zero: the agent requires a MemberPolicy, and the member has none.
	// +required
	// +kubebuilder:validation:Minimum=0
	Policies int32 `json:"policies"`

	// kinds are the kinds of which the member accepts some objects, in alphabetical order, as kind.group. A kind of the
	// core group has no group, and "*" means every kind or every group. Empty: the member accepts no object.
	// +listType=set
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MaxLength=317
	// +optional
	Kinds []string `json:"kinds,omitempty"`

	// namespaces are the namespaces in which the member accepts some objects, in alphabetical order. An entry that ends
	// with "*" is a prefix.
	// +listType=set
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MaxLength=63
	// +optional
	Namespaces []string `json:"namespaces,omitempty"`

	// truncated is true if the member accepts more kinds or namespaces than the lists contain.
	// +optional
	Truncated bool `json:"truncated,omitempty"`
}

// ResourceUsage is the sum over the nodes of a member.
type ResourceUsage struct {
	// capacity is the total capacity of all nodes.
	// +kubebuilder:validation:MaxProperties=1024
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`

	// allocatable is the part of the capacity that pods may use, on nodes that are ready and schedulable.
	// +kubebuilder:validation:MaxProperties=1024
	// +optional
	Allocatable corev1.ResourceList `json:"allocatable,omitempty"`

	// available is the part of allocatable that no pod has requested.
	// +kubebuilder:validation:MaxProperties=1024
	// +optional
	Available corev1.ResourceList `json:"available,omitempty"`
}

// ServedAPIs are the kinds of one version of an API group that a member serves.
type ServedAPIs struct {
	// groupVersion such as "apps/v1", or "v1" for the core group.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	GroupVersion string `json:"groupVersion"`

	// kinds in alphabetical order.
	// +required
	// +listType=set
	// +kubebuilder:validation:MaxItems=512
	// +kubebuilder:validation:items:MaxLength=63
	Kinds []string `json:"kinds"`
}

// VersionInfo contains the versions of a member.
type VersionInfo struct {
	// kubernetes is the git version of the member's API server.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Kubernetes string `json:"kubernetes,omitempty"`

	// agent is the version of the agent's program.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Agent string `json:"agent,omitempty"`
}

// AgentStatus is the state of one agent of a member.
type AgentStatus struct {
	// type of the agent; "Membership" is the agent that joins, sends heartbeats and leaves.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Type string `json:"type"`

	// conditions of the agent: Joined and Healthy.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// lastHeartbeat is the last heartbeat that the hub had observed when it last wrote this status. It is not kept
	// current, because a heartbeat costs the hub one Lease write only. The Lease "heartbeat" in the member's namespace
	// contains the latest.
	// +optional
	LastHeartbeat *metav1.MicroTime `json:"lastHeartbeat,omitempty"`
}

// MembershipAgent is the type of the agent that joins, sends heartbeats and leaves.
const MembershipAgent = "Membership"

// CredentialType defines how a member authenticates to the hub.
//
// +kubebuilder:validation:Enum=Certificate;Token;Identity
type CredentialType string

const (
	// CredentialCertificate is a client certificate of the signer kubernetes.io/kube-apiserver-client.
	CredentialCertificate CredentialType = "Certificate"
	// CredentialToken is a bound token of a ServiceAccount in the member's namespace.
	CredentialToken CredentialType = "Token"
	// CredentialIdentity is an existing credential of the agent, of a subject that an administrator has set.
	CredentialIdentity CredentialType = "Identity"
)

// CredentialRequest requests a credential that only the requesting agent can use. The hub checks the fields that each
// type requires, and not a validation rule: the API server's CEL decodes byte fields with another base64 than its JSON.
type CredentialRequest struct {
	// type of the requested credential.
	// +required
	Type CredentialType `json:"type"`

	// certificateRequest is a PEM-encoded PKCS#10 request. Its private key never leaves the agent.
	// +kubebuilder:validation:MaxLength=8192
	// +optional
	CertificateRequest []byte `json:"certificateRequest,omitempty"`

	// publicKey is an X25519 key of 32 bytes, created for this request only. The hub seals the token for it with HPKE (RFC
	// 9180).
	// +kubebuilder:validation:MaxLength=64
	// +optional
	PublicKey []byte `json:"publicKey,omitempty"`

	// expirationSeconds is the requested lifetime. The hub may grant less. The API server's minimum is 600.
	// +kubebuilder:validation:Minimum=600
	// +kubebuilder:validation:Maximum=31536000
	// +optional
	ExpirationSeconds *int32 `json:"expirationSeconds,omitempty"`
}

// Credential is an issued credential for a [CredentialRequest].
type Credential struct {
	// type of the credential.
	// +required
	Type CredentialType `json:"type"`

	// certificate is the PEM-encoded client certificate.
	// +kubebuilder:validation:MaxLength=65536
	// +optional
	Certificate []byte `json:"certificate,omitempty"`

	// sealedToken is the token, sealed with HPKE for the public key of the request.
	// +kubebuilder:validation:MaxLength=65536
	// +optional
	SealedToken []byte `json:"sealedToken,omitempty"`

	// issuedAt is when the credential was issued, by the hub's clock.
	// +optional
	IssuedAt *metav1.Time `json:"issuedAt,omitempty"`

	// expirationTime is when the credential expires, by the hub's clock. Empty: unknown to the hub.
	// +optional
	ExpirationTime *metav1.Time `json:"expirationTime,omitempty"`
}

// Renewal is the agent's request for its next credential. The current credential is not sufficient to get the next one,
// because a thief of a credential would have access for ever. The claim key, which never leaves the agent, must sign
// the request.
type Renewal struct {
	// id distinguishes this request from the agent's earlier ones.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	ID string `json:"id"`

	// request is the requested credential.
	// +required
	Request CredentialRequest `json:"request"`

	// claimKey is the agent's claim key, a P-256 public key in PKIX form. The hub refuses one whose fingerprint is not
	// the spec.claim of the MemberCluster.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	ClaimKey []byte `json:"claimKey,omitempty"`

	// signature by the claim key of all fields above and the UID of the MemberCluster. The hub refuses a renewal without
	// it.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Signature []byte `json:"signature,omitempty"`

	// keys are the later claim keys of the agent, newest first. When the hub issues the credential, the newest one
	// becomes spec.claimKeys.current of the MemberCluster. The hub refuses a renewal that does not prove the current key.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Keys []KeyProof `json:"keys,omitempty"`
}

// KeyProof proves that an agent has a claim key.
type KeyProof struct {
	// key is a P-256 public key in PKIX form.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Key []byte `json:"key"`

	// signature by the key of all that the first claim key signs, and of all keys in the list.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Signature []byte `json:"signature"`
}

// RenewalAnswer is the hub's answer to a [Renewal].
type RenewalAnswer struct {
	// id of the answered request.
	// +required
	// +kubebuilder:validation:MaxLength=63
	ID string `json:"id"`

	// credential is the issued credential. Empty if Refused is set.
	// +optional
	Credential *Credential `json:"credential,omitempty"`

	// refused is why no credential was issued, and what to do.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Refused string `json:"refused,omitempty"`
}
