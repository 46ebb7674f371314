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
	// StateJoin requests that the cluster joins, or joins again after it left. It is the default.
	StateJoin DesiredState = "Join"
	// StateLeave requests that the cluster leaves while its MemberCluster is kept.
	StateLeave DesiredState = "Leave"
)

// HubIdentity identifies a hub, and distinguishes an earlier state of the hub from a later one.
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
	// DeleteResources deletes the objects. It is the default.
	DeleteResources ResourcePolicy = "Delete"
	// OrphanResources keeps the objects on the member, without an owner.
	OrphanResources ResourcePolicy = "Orphan"
)

// LeavePolicy defines how a member leaves.
type LeavePolicy struct {
	// resources defines what happens to the objects of the hub on the member: Delete or Orphan. Default: Delete.
	// +kubebuilder:default=Delete
	// +optional
	Resources ResourcePolicy `json:"resources,omitempty"`

	// deadlineSeconds is the maximum duration of the leave in seconds. After this time, the hub records the steps that are
	// still incomplete, for example because of an unavailable agent or a closed gate, and removes the member without them.
	// Default: 900.
	// +kubebuilder:default=900
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=604800
	// +optional
	DeadlineSeconds int32 `json:"deadlineSeconds,omitempty"`
}

// Taint excludes Placements that do not tolerate it from a member.
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

	// effect of the taint. NoSchedule prevents that Placements newly select the member. PreferNoSchedule does so if there
	// is an alternative. NoExecute also removes the member from Placements that have selected it.
	// +required
	// +kubebuilder:validation:Enum=NoSchedule;PreferNoSchedule;NoExecute
	Effect corev1.TaintEffect `json:"effect"`

	// timeAdded is the time at which the taint was added. The tolerationSeconds of a toleration start at this time. Unset:
	// they start when the component that evaluates the taint first observes it, and start again after each restart of that
	// component.
	// +optional
	TimeAdded *metav1.Time `json:"timeAdded,omitempty"`
}

// Property describes a member, such as its region. Placements can select members by properties.
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

	// works is the number of Works whose objects are orphaned, including Works that do not exist any more.
	// +required
	// +kubebuilder:validation:Minimum=0
	Works int64 `json:"works"`

	// workNames are the names of these Works in alphabetical order. Only the first ten are listed.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:MaxLength=253
	// +optional
	WorkNames []string `json:"workNames,omitempty"`
}

// MemberPolicySummary summarizes which objects a member accepts from the hub. It is informational: the agent enforces
// the MemberPolicies of the member.
type MemberPolicySummary struct {
	// policies is the number of MemberPolicies on the member. Zero: the agent requires a MemberPolicy, and the member has
	// none.
	// +required
	// +kubebuilder:validation:Minimum=0
	Policies int32 `json:"policies"`

	// kinds are the kinds of which the member accepts some objects, in the form kind.group and in alphabetical order. A
	// kind of the core group has no suffix. "*" means every kind or every group. Empty: the member accepts no object.
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

// ResourceUsage contains the resources of a member, summed over its nodes.
type ResourceUsage struct {
	// capacity is the total capacity of all nodes.
	// +kubebuilder:validation:MaxProperties=1024
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`

	// allocatable is the part of the capacity that Pods may use, on nodes that are ready and schedulable.
	// +kubebuilder:validation:MaxProperties=1024
	// +optional
	Allocatable corev1.ResourceList `json:"allocatable,omitempty"`

	// available is the part of allocatable that no Pod requests.
	// +kubebuilder:validation:MaxProperties=1024
	// +optional
	Available corev1.ResourceList `json:"available,omitempty"`
}

// ServedAPIs lists the kinds of one API group version that a member serves.
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
	// kubernetes is the version of the member's API server, as gitVersion in its version information.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Kubernetes string `json:"kubernetes,omitempty"`

	// agent is the version of the agent.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Agent string `json:"agent,omitempty"`
}

// AgentStatus describes the observed state of one agent of a member.
type AgentStatus struct {
	// type of the agent. "Membership" is the agent that joins, sends heartbeats and leaves.
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

	// lastHeartbeat is the time of the last heartbeat that the hub had observed when it last wrote this status. The hub
	// does not update this field for each heartbeat, so that a heartbeat costs only one write of a Lease. The Lease
	// "heartbeat" in the member's namespace contains the time of the latest heartbeat.
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
	// CredentialIdentity is an existing credential of the agent. An administrator sets its subject in spec.identity of the
	// MemberCluster.
	CredentialIdentity CredentialType = "Identity"
)

// CredentialRequest requests a credential that only the requesting agent can use. The hub checks that the fields which
// the type requires are set. A validation rule cannot check this, because the API server decodes the base64 of byte
// fields in CEL differently than in JSON.
type CredentialRequest struct {
	// type of the requested credential.
	// +required
	Type CredentialType `json:"type"`

	// certificateRequest is a PEM-encoded PKCS#10 certificate request, for type Certificate. The private key never leaves
	// the agent.
	// +kubebuilder:validation:MaxLength=8192
	// +optional
	CertificateRequest []byte `json:"certificateRequest,omitempty"`

	// publicKey is an X25519 key of 32 bytes that the agent created for this request only, for type Token. The hub
	// encrypts the token for this key with HPKE (RFC 9180).
	// +kubebuilder:validation:MaxLength=64
	// +optional
	PublicKey []byte `json:"publicKey,omitempty"`

	// expirationSeconds is the requested lifetime in seconds. The hub may grant less. The minimum of the API server is
	// 600. Unset: the hub decides.
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

	// sealedToken is the token, encrypted with HPKE for the public key of the request.
	// +kubebuilder:validation:MaxLength=65536
	// +optional
	SealedToken []byte `json:"sealedToken,omitempty"`

	// issuedAt is the time at which the credential was issued, by the clock of the hub.
	// +optional
	IssuedAt *metav1.Time `json:"issuedAt,omitempty"`

	// expirationTime is the time at which the credential expires, by the clock of the hub. Unset: the hub does not know
	// the time.
	// +optional
	ExpirationTime *metav1.Time `json:"expirationTime,omitempty"`
}

// Renewal is the agent's request for its next credential. The claim key, which never leaves the agent, must sign the
// request. The current credential alone is not sufficient: otherwise, an attacker who obtained a credential could renew
// it indefinitely.
type Renewal struct {
	// id distinguishes this request from earlier requests of the agent.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	ID string `json:"id"`

	// request is the requested credential.
	// +required
	Request CredentialRequest `json:"request"`

	// claimKey is the claim key of the agent, a P-256 public key in PKIX form. The hub rejects a key whose fingerprint is
	// not spec.claim of the MemberCluster.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	ClaimKey []byte `json:"claimKey,omitempty"`

	// signature of all fields above and of the UID of the MemberCluster by the claim key. The hub rejects a renewal
	// without a signature.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Signature []byte `json:"signature,omitempty"`

	// keys are the claim keys with which the agent has replaced claimKey, newest first. When the hub issues the
	// credential, the newest key becomes spec.claimKeys.current of the MemberCluster. The hub rejects a renewal that does
	// not prove that the agent has the current key. Empty: the agent has not replaced claimKey.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Keys []KeyProof `json:"keys,omitempty"`
}

// KeyProof proves that an agent has the private key of a claim key.
type KeyProof struct {
	// key is a P-256 public key in PKIX form.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Key []byte `json:"key"`

	// signature by the key. It covers the data that the first claim key signs, and all keys in the list.
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

	// credential is the issued credential. Unset if refused is set.
	// +optional
	Credential *Credential `json:"credential,omitempty"`

	// refused contains the reason why the hub issued no credential, and the next step. Empty if credential is set.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Refused string `json:"refused,omitempty"`
}
