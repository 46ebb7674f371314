package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TokenProof proves that a request was made with a JoinToken.
type TokenProof struct {
	// name of the JoinToken.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// mac is the HMAC-SHA256 of the request, keyed by the key in the token's Secret.
	// +required
	// +kubebuilder:validation:MaxLength=64
	MAC []byte `json:"mac"`
}

// JoinRequestSpec describes the request of a cluster to join. A changed request is denied, because the signature covers
// the whole spec.
type JoinRequestSpec struct {
	// clusterID identifies the cluster. By default, it is the UID of the cluster's namespace kube-system.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9_.:]*[A-Za-z0-9])?$`
	ClusterID string `json:"clusterID"`

	// name is the requested name of the MemberCluster. If a MemberCluster with this cluster ID exists, its name is used
	// instead.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="name must be a DNS label: lower-case letters, digits and '-', starting and ending with a letter or digit"
	Name string `json:"name"`

	// labels are the initial labels of the MemberCluster. They have no effect on an existing MemberCluster. Each key has
	// at most 317 characters, and each value at most 63.
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(key, size(key) <= 317 && size(self[key]) <= 63)",message="a label's key has at most 317 characters, and its value at most 63"
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// memberUID is the UID of the MemberCluster that the agent is registered as. If the hub has a record that this member
	// left on request, the answer is Deregistered. If the hub has neither the member nor such a record, the request is
	// pending until an administrator accepts it. Empty: the cluster is not a member.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	// +optional
	MemberUID types.UID `json:"memberUID,omitempty"`

	// hubID is the identity of the hub that the agent is registered with. A hub with another identity rejects the request
	// with the reason DifferentHub. Empty: the cluster is not a member, or its agent does not know the identity yet.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	HubID string `json:"hubID,omitempty"`

	// token proves that the request was made with a JoinToken. A hub denies a request without a token, unless the hub is
	// configured to accept requests that were created with another credential.
	// +optional
	Token *TokenProof `json:"token,omitempty"`

	// claimKey is the claim key of the agent: a P-256 public key in PKIX form. The owner of the private key represents the
	// cluster.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	ClaimKey []byte `json:"claimKey"`

	// credential is the requested credential.
	// +required
	Credential CredentialRequest `json:"credential"`

	// signature of all fields above by the claim key.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Signature []byte `json:"signature"`

	// keys are the claim keys with which the agent has replaced claimKey, newest first. If claimKey is the claim of a
	// MemberCluster, claimKey or one of the keys must be the current key of the MemberCluster. Empty: the agent has not
	// replaced claimKey.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Keys []KeyProof `json:"keys,omitempty"`
}

// JoinAnswer is the hub's decision on a request.
//
// +kubebuilder:validation:Enum=Pending;Held;Denied;Deregistered;Issued
type JoinAnswer string

const (
	// AnswerPending means that the hub is processing the request.
	AnswerPending JoinAnswer = "Pending"
	// AnswerHeld means that the request is pending until an administrator or the agent acts. The condition Issued contains
	// the reason.
	AnswerHeld JoinAnswer = "Held"
	// AnswerDenied means that the request is denied permanently.
	AnswerDenied JoinAnswer = "Denied"
	// AnswerDeregistered means that a user requested that the member leaves that the agent is registered as, and the hub
	// recorded this.
	AnswerDeregistered JoinAnswer = "Deregistered"
	// AnswerIssued means that status.credential contains the issued credential.
	AnswerIssued JoinAnswer = "Issued"
)

// ConditionIssued of a JoinRequest is True when status.credential contains the issued credential.
const ConditionIssued = "Issued"

// Reasons of the conditions of a JoinRequest.
const (
	// ReasonWaitingForAcceptance: no administrator has accepted or denied the cluster; set spec.accepted of its
	// MemberCluster.
	ReasonWaitingForAcceptance = "WaitingForAcceptance"
	// ReasonClusterIDTaken: another agent has claimed the MemberCluster with this cluster ID.
	ReasonClusterIDTaken = "ClusterIDTaken"
	// ReasonNameTaken: another cluster has a MemberCluster with the requested name.
	ReasonNameTaken = "NameTaken"
	// ReasonNameReserved: the MemberCluster with the requested name is accepted without a cluster ID; set its
	// spec.clusterID.
	ReasonNameReserved = "NameReserved"
	// ReasonStateLeave: the MemberCluster is leaving or has left; set its spec.state to Join.
	ReasonStateLeave = "StateLeave"
	// ReasonInvalidRequest: the request is invalid and is never accepted; the message names the field.
	ReasonInvalidRequest = "InvalidRequest"
	// ReasonTokenRefused: the JoinToken does not permit the request, or the request has no token; the message contains the
	// cause.
	ReasonTokenRefused = "TokenRefused"
	// ReasonTokenEnded: the JoinToken expired or was deleted while the request was pending; the message names the
	// JoinToken.
	ReasonTokenEnded = "TokenEnded"
	// ReasonDeregistered: a user requested that the member leaves, and the hub recorded this.
	ReasonDeregistered = "Deregistered"
	// ReasonDifferentHub: the agent is registered with another hub.
	ReasonDifferentHub = "DifferentHub"
	// ReasonUnknownMember: the agent is registered as a member that does not exist on the hub, and the hub has no record
	// that the member left.
	ReasonUnknownMember = "UnknownMember"
	// ReasonClaimReleased: the claim of the agent's MemberCluster was cleared, and the member did not leave.
	ReasonClaimReleased = "ClaimReleased"
	// ReasonClaimKeyReplaced: the request is not signed with the current claim key of the agent.
	ReasonClaimKeyReplaced = "ClaimKeyReplaced"
	// ReasonClusterIDChanged: the claim of the agent belongs to a MemberCluster with another cluster ID.
	ReasonClusterIDChanged = "ClusterIDChanged"
	// ReasonIdentityMissing: the agent uses an existing credential; set spec.identity of its MemberCluster.
	ReasonIdentityMissing = "IdentityMissing"
	// ReasonIssuing: the hub is issuing the credential.
	ReasonIssuing = "Issuing"
	// ReasonIssueFailed: the credential could not be issued; the hub retries.
	ReasonIssueFailed = "IssueFailed"
	// ReasonPolicyFailed: the evaluation of the hub's acceptance policy failed, and the hub retries. It is also a reason
	// of the condition Accepted of a MemberCluster.
	ReasonPolicyFailed = "PolicyFailed"
)

// JoinRequestStatus describes the hub's answer to a JoinRequest.
type JoinRequestStatus struct {
	// answer summarizes the conditions: Pending, Held, Denied, Deregistered or Issued. Empty: the hub has not processed
	// the request yet.
	// +optional
	Answer JoinAnswer `json:"answer,omitempty"`

	// claim is the fingerprint of the claim key. Before you accept the cluster, compare it with the fingerprint that the
	// agent prints.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Claim string `json:"claim,omitempty"`

	// hub is the identity of the hub that wrote this answer.
	// +optional
	Hub *HubIdentity `json:"hub,omitempty"`

	// memberName is the name of the MemberCluster of the request.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	MemberName string `json:"memberName,omitempty"`

	// memberUID is the UID of the MemberCluster of the request.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	// +optional
	MemberUID types.UID `json:"memberUID,omitempty"`

	// namespace is the member's namespace on the hub, which contains its Membership.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// credential is the issued credential.
	// +optional
	Credential *Credential `json:"credential,omitempty"`

	// conditions of the JoinRequest: Issued.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// JoinRequest is the request of a cluster to join the fleet.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=muster
// +kubebuilder:printcolumn:name="Wants",type=string,JSONPath=`.spec.name`
// +kubebuilder:printcolumn:name="Answer",type=string,JSONPath=`.status.answer`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Issued")].reason`
// +kubebuilder:printcolumn:name="Member",type=string,JSONPath=`.status.memberName`
// +kubebuilder:printcolumn:name="Token",type=string,JSONPath=`.spec.token.name`
// +kubebuilder:printcolumn:name="Cluster-ID",type=string,JSONPath=`.spec.clusterID`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Why",type=string,JSONPath=`.status.conditions[?(@.type=="Issued")].message`,priority=1
type JoinRequest struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the JoinRequest.
	// +required
	Spec JoinRequestSpec `json:"spec"`
	// status is the observed state of the JoinRequest.
	// +optional
	Status JoinRequestStatus `json:"status,omitempty"`
}

// JoinRequestList is a list of JoinRequests.
//
// +kubebuilder:object:root=true
type JoinRequestList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []JoinRequest `json:"items"`
}
