package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// MembershipSpec is what the hub tells the agents of a member.
type MembershipSpec struct {
	// MemberName is the name of the MemberCluster.
	// +kubebuilder:validation:MaxLength=63
	MemberName string `json:"memberName"`

	// MemberUID is its UID: a member that was deleted and made anew is another one.
	MemberUID types.UID `json:"memberUID"`

	// Claim is spec.claim of the MemberCluster. An agent with this claim key that is registered with another MemberUID,
	// such as that of a MemberCluster that was lost and created again, takes over the new one.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Claim string `json:"claim,omitempty"`

	// Hub identifies the hub that the member belongs to. Its epoch is the last one that the hub has confirmed to this
	// member: the hub has read all of its objects since it began that epoch. The hub confirms an epoch when
	// status.requiredHubEpoch asks for it.
	// +optional
	Hub *HubIdentity `json:"hub,omitempty"`

	// State is what the agents shall be doing: Join, or Leave.
	// +kubebuilder:default=Join
	State DesiredState `json:"state"`

	// Rejoin is true when the MemberCluster outlives a leave, so that an agent that left shall ask at the
	// door from time to time whether it may come back.
	// +optional
	Rejoin bool `json:"rejoin,omitempty"`

	// Clean is true from when all gates of the hub have opened: the agent shall now clean up what is its own and
	// confirm.
	// +optional
	Clean bool `json:"clean,omitempty"`

	// HeartbeatPeriodSeconds is the time between two heartbeats.
	// +kubebuilder:default=60
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=600
	HeartbeatPeriodSeconds int32 `json:"heartbeatPeriodSeconds"`

	// Leave says how to leave; an agent keeps it for the day on which it finds itself forgotten.
	// +kubebuilder:default={}
	Leave LeavePolicy `json:"leave"`

	// Taints of the member.
	// +listType=map
	// +listMapKey=key
	// +listMapKey=effect
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Taints []Taint `json:"taints,omitempty"`

	// Renewal is the hub's answer to the renewal that the agent asked for in its status.
	// +optional
	Renewal *RenewalAnswer `json:"renewal,omitempty"`
}

// Conditions of a Membership, written by the agent.
const (
	// ConditionPropertiesCollected is False when a collector failed, or when there were more properties than
	// a Membership holds. A MemberCluster has this condition while it is False.
	ConditionPropertiesCollected = "PropertiesCollected"
)

// Reasons of the conditions of a Membership.
const (
	ReasonCollected        = "Collected"
	ReasonCollectorFailed  = "CollectorFailed"
	ReasonTruncated        = "Truncated"
	ReasonClusterReady     = "ClusterReady"
	ReasonCleaningUp       = "CleaningUp"
	ReasonCleanedUp        = "CleanedUp"
	ReasonRenewalPending   = "RenewalPending"
	ReasonCredentialIssued = "CredentialIssued"
)

// MembershipStatus is what the agents of a member tell the hub.
type MembershipStatus struct {
	// Claim is the fingerprint of the claim key of the agent that writes this status. What an agent says that the
	// MemberCluster is not claimed by does not count.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Claim string `json:"claim,omitempty"`

	// RequiredHubEpoch is the least epoch that the agent waits for before it deletes anything on the member. An agent sets
	// it when it notices that the hub was restored to an earlier state. The hub raises its epoch to at least this value.
	// Zero: the agent waits for nothing.
	// +kubebuilder:validation:Minimum=0
	// +optional
	RequiredHubEpoch int64 `json:"requiredHubEpoch,omitempty"`

	// Conditions: Joined, PropertiesCollected, CredentialValid.
	// Joined=False with reason CleanedUp confirms that the member holds nothing of the hub any more.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Remaining lists what the agent has still to clean up, the first twenty entries.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	// +optional
	Remaining []string `json:"remaining,omitempty"`

	// Version of the member.
	// +optional
	Version VersionInfo `json:"version,omitempty"`

	// Resources of the member.
	// +optional
	Resources ResourceUsage `json:"resources,omitempty"`

	// Properties of the member.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=128
	// +optional
	Properties []Property `json:"properties,omitempty"`

	// APIs are the kinds that the member serves, if its agent is set up to tell them. Empty: nobody knows.
	// +listType=map
	// +listMapKey=groupVersion
	// +kubebuilder:validation:MaxItems=512
	// +optional
	APIs []ServedAPIs `json:"apis,omitempty"`

	// Orphans summarizes the orphaned objects on the member. Unset: the member has none, or its agent applies no Works.
	// +optional
	Orphans *OrphanSummary `json:"orphans,omitempty"`

	// Agents of the member.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Agents []AgentStatus `json:"agents,omitempty"`

	// Renewal asks the hub for the next credential.
	// +optional
	Renewal *Renewal `json:"renewal,omitempty"`
}

// Membership is a member as its agents see it: what the hub wants of them, and what they answer.
// There is one in each member's namespace, and its name is "self".
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
// +kubebuilder:validation:XValidation:rule="self.metadata.name == 'self'",message="a Membership is named self: there is one in each member's namespace"
type Membership struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec MembershipSpec `json:"spec"`
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
