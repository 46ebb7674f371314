package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// MembershipSpec describes the desired state of a member. The hub writes it, and the agents of the member read it.
type MembershipSpec struct {
	// memberName is the name of the MemberCluster.
	// +required
	// +kubebuilder:validation:MaxLength=63
	MemberName string `json:"memberName"`

	// memberUID is the UID of the MemberCluster. A MemberCluster that was deleted and created again is another member.
	// +required
	MemberUID types.UID `json:"memberUID"`

	// claim is spec.claim of the MemberCluster. If an agent with this claim key is registered with another MemberUID, for
	// example because the MemberCluster was lost and created again, the agent registers with the new MemberUID.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Claim string `json:"claim,omitempty"`

	// hub identifies the hub of the member. Its epoch is the last epoch that the hub has confirmed to this member. A
	// confirmed epoch means that the hub has read all of its objects since the epoch began. The hub confirms an epoch
	// when status.requiredHubEpoch requires it.
	// +optional
	Hub *HubIdentity `json:"hub,omitempty"`

	// state is the desired state: Join or Leave. Default: Join.
	// +required
	// +kubebuilder:default=Join
	State DesiredState `json:"state"`

	// rejoin is true if the MemberCluster is kept after a leave. The agent then creates JoinRequests after it has left, so
	// that the member can join again.
	// +optional
	Rejoin bool `json:"rejoin,omitempty"`

	// clean is true after all gates of the hub have opened. The agent must then remove the objects of the hub from the
	// member and confirm that.
	// +optional
	Clean bool `json:"clean,omitempty"`

	// heartbeatPeriodSeconds is the time in seconds between two heartbeats. Default: 60.
	// +required
	// +kubebuilder:default=60
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=600
	HeartbeatPeriodSeconds int32 `json:"heartbeatPeriodSeconds"`

	// leave defines how the member leaves. The agent stores it and uses it if the hub deregisters the member while the
	// agent is disconnected.
	// +required
	// +kubebuilder:default={}
	Leave LeavePolicy `json:"leave"`

	// taints of the member.
	// +listType=map
	// +listMapKey=key
	// +listMapKey=effect
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Taints []Taint `json:"taints,omitempty"`

	// renewal is the hub's answer to status.renewal.
	// +optional
	Renewal *RenewalAnswer `json:"renewal,omitempty"`
}

// Conditions of a Membership, written by the agent.
const (
	// ConditionPropertiesCollected is False if a collector failed, or if the number of properties exceeds the limit of a
	// Membership. A MemberCluster has this condition only while it is False.
	ConditionPropertiesCollected = "PropertiesCollected"
)

// Reasons of the conditions of a Membership.
const (
	// ReasonCollected: all properties are collected.
	ReasonCollected = "Collected"
	// ReasonCollectorFailed: a collector failed; the message contains the cause.
	ReasonCollectorFailed = "CollectorFailed"
	// ReasonTruncated: the number of properties exceeds the limit of a Membership; the message contains the limit.
	ReasonTruncated = "Truncated"
	// ReasonClusterReady: the agent reports that its cluster is ready.
	ReasonClusterReady = "ClusterReady"
	// ReasonCompanionReady: the companion has not failed, or has run for a minute since its last failure.
	ReasonCompanionReady = "CompanionReady"
	// ReasonCompanionFailed: the companion failed and is restarted; the message contains the last error.
	ReasonCompanionFailed = "CompanionFailed"
	// ReasonCleaningUp: the member is leaving, and the agent removes the objects of the hub.
	ReasonCleaningUp = "CleaningUp"
	// ReasonCleanedUp: the member has no objects of the hub any more.
	ReasonCleanedUp = "CleanedUp"
	// ReasonRenewalPending: the agent has requested another credential, and the hub has not answered yet.
	ReasonRenewalPending = "RenewalPending"
	// ReasonCredentialIssued: the agent has a valid credential.
	ReasonCredentialIssued = "CredentialIssued"
)

// MembershipStatus describes the observed state of a member. The agents of the member write it, and the hub reads it.
type MembershipStatus struct {
	// claim is the fingerprint of the claim key of the agent that writes this status. The hub ignores the report of an
	// agent that does not have the claim of the MemberCluster.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Claim string `json:"claim,omitempty"`

	// requiredHubEpoch is the minimum epoch that the hub must confirm before the agent deletes objects on the member. An
	// agent sets it when it observes that the hub was restored to an earlier state. The hub then increases its epoch to at
	// least this value. Zero: the agent does not wait.
	// +kubebuilder:validation:Minimum=0
	// +optional
	RequiredHubEpoch int64 `json:"requiredHubEpoch,omitempty"`

	// conditions of the Membership: Joined, PropertiesCollected, CredentialValid. Joined=False with reason CleanedUp
	// confirms that the member has no objects of the hub any more.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// remaining lists the objects that the agent must still clean up, at most twenty entries. If there are more, the last
	// entry contains their number.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MaxLength=4096
	// +optional
	Remaining []string `json:"remaining,omitempty"`

	// version of the member.
	// +optional
	Version VersionInfo `json:"version,omitempty"`

	// resources of the member.
	// +optional
	Resources ResourceUsage `json:"resources,omitempty"`

	// properties of the member.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=128
	// +optional
	Properties []Property `json:"properties,omitempty"`

	// apis are the API kinds that the member serves. Empty: the agent does not report them.
	// +listType=map
	// +listMapKey=groupVersion
	// +kubebuilder:validation:MaxItems=512
	// +optional
	APIs []ServedAPIs `json:"apis,omitempty"`

	// orphans summarizes the orphaned objects on the member. Unset: the member has none, or its agent applies no Works.
	// +optional
	Orphans *OrphanSummary `json:"orphans,omitempty"`

	// memberPolicy summarizes which objects the member accepts from the hub. Unset: the member accepts every object, or
	// its agent does not report its MemberPolicies.
	// +optional
	MemberPolicy *MemberPolicySummary `json:"memberPolicy,omitempty"`

	// agents of the member.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Agents []AgentStatus `json:"agents,omitempty"`

	// renewal is the agent's request for its next credential. Unset: the agent requests none.
	// +optional
	Renewal *Renewal `json:"renewal,omitempty"`
}

// Membership represents a member for its agents. The hub writes the desired state to the spec, and the agents report
// the observed state in the status. Each member's namespace contains one Membership, with the name "self".
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=muster
// +kubebuilder:printcolumn:name="Member",type=string,JSONPath=`.spec.memberName`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.spec.state`
// +kubebuilder:printcolumn:name="Joined",type=string,JSONPath=`.status.conditions[?(@.type=="Joined")].status`
// +kubebuilder:printcolumn:name="Healthy",type=string,JSONPath=`.status.agents[?(@.type=="Membership")].conditions[?(@.type=="Healthy")].status`
// +kubebuilder:printcolumn:name="Orphans",type=integer,JSONPath=`.status.orphans.objects`
// +kubebuilder:printcolumn:name="Period",type=integer,JSONPath=`.spec.heartbeatPeriodSeconds`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name == 'self'",message="a Membership must be named self: there is one in the namespace of each member"
type Membership struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the Membership.
	// +required
	Spec MembershipSpec `json:"spec"`
	// status is the observed state of the Membership.
	// +optional
	Status MembershipStatus `json:"status,omitempty"`
}

// MembershipList is a list of Memberships.
//
// +kubebuilder:object:root=true
type MembershipList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Membership `json:"items"`
}
