package v1alpha1

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MemberClusterSpec is what an administrator wants of a member.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.clusterID) || (has(self.clusterID) && self.clusterID == oldSelf.clusterID)",message="clusterID cannot change once it is set: delete this MemberCluster, or let it leave, and join the other cluster under a name of its own"
// +kubebuilder:validation:XValidation:rule="!has(self.joinMode) || self.joinMode == 'Pull' || has(self.kubeConfigSecretRef)",message="kubeConfigSecretRef is required when joinMode is Push or Install: the hub has to reach the member"
type MemberClusterSpec struct {
	// Accepted lets the cluster in. Unset: nobody has decided. False: denied. Whatever is not true cuts all
	// permissions of the member at once, and true gives them back.
	// +optional
	Accepted *bool `json:"accepted,omitempty"`

	// State is Leave to make the cluster leave while this object is kept, and Join to make it join (again).
	// +kubebuilder:default=Join
	// +optional
	State DesiredState `json:"state,omitempty"`

	// ClusterID tells the cluster from all others, whatever it is called: the UID of its kube-system
	// namespace unless its agent is told otherwise. Set it beforehand to reserve this name for that cluster.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]([-A-Za-z0-9_.:]*[A-Za-z0-9])?$')",message="clusterID must be letters, digits, '-', '_', '.' or ':', and start and end with a letter or digit"
	// +optional
	ClusterID string `json:"clusterID,omitempty"`

	// Claim names the one agent that speaks for this cluster: the fingerprint of its claim key. The first
	// accepted JoinRequest sets it. To let a reinstalled agent take over, set the fingerprint that its
	// held JoinRequest shows. Clearing the field revokes the access of the agent that has it and lets the next one come
	// in. The agent that had the claim keeps everything on the member; set the field again to let it back in.
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	// +optional
	Claim string `json:"claim,omitempty"`

	// Credential is the type of the credential that the agent asked for. The JoinRequest of the agent that speaks for
	// the cluster sets it.
	// +optional
	Credential CredentialType `json:"credential,omitempty"`

	// Identity is the subject that the agent authenticates as, when it brings a credential of its own and
	// none is to be issued.
	// +kubebuilder:validation:XValidation:rule="self.kind in ['User', 'Group', 'ServiceAccount']",message="identity.kind must be User, Group or ServiceAccount"
	// +kubebuilder:validation:XValidation:rule="self.kind != 'ServiceAccount' || has(self.__namespace__) && size(self.__namespace__) > 0",message="identity.namespace is required when identity.kind is ServiceAccount"
	// +kubebuilder:validation:XValidation:rule="size(self.name) > 0 && !(self.name in ['system:authenticated', 'system:unauthenticated', 'system:anonymous', 'system:masters', 'system:serviceaccounts'])",message="identity.name must name one member's subject, not a system-wide group"
	// +optional
	Identity *rbacv1.Subject `json:"identity,omitempty"`

	// HeartbeatPeriodSeconds is the time between two heartbeats of the agent.
	// +kubebuilder:default=60
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 600",message="heartbeatPeriodSeconds must be from 1 to 600"
	// +optional
	HeartbeatPeriodSeconds int32 `json:"heartbeatPeriodSeconds,omitempty"`

	// JoinMode says who runs the agent of this member.
	// +kubebuilder:default=Pull
	// +optional
	JoinMode JoinMode `json:"joinMode,omitempty"`

	// KubeConfigSecretRef names the Secret by which the hub itself reaches the member. It may be replaced at any time, with a credential, an
	// address or a certificate authority that is new, but only with one that leads to the same cluster. Unset: the hub does not reach the member.
	// +optional
	KubeConfigSecretRef *KubeConfigSecretRef `json:"kubeConfigSecretRef,omitempty"`

	// Leave says how the cluster leaves.
	// +kubebuilder:default={}
	// +optional
	Leave LeavePolicy `json:"leave,omitempty"`

	// Taints keep placements off the cluster. The hub puts on and takes off those of its own prefix
	// "membership.muster.dev/" and keeps all others as they are.
	// +listType=map
	// +listMapKey=key
	// +listMapKey=effect
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.filter(t, !t.key.startsWith('membership.muster.dev/')).size() <= 62",message="at most 62 taints: the hub needs room for its own"
	// +optional
	Taints []Taint `json:"taints,omitempty"`
}

// JoinMode says who runs the agent of a member.
//
// +kubebuilder:validation:Enum=Pull;Push;Install
type JoinMode string

// The join modes. All of them go through the same door and the same life.
const (
	// JoinPull: somebody runs the agent on the member, or beside it, and the hub need not reach the member.
	JoinPull JoinMode = "Pull"
	// JoinPush: the hub runs the agent, by kubeConfigSecretRef.
	JoinPush JoinMode = "Push"
	// JoinInstall: the hub installs the agent on the member, by kubeConfigSecretRef, and need not reach the member after that.
	JoinInstall JoinMode = "Install"
)

// KubeConfigSecretRef names a Secret on the hub with what it takes to reach a member: a kubeconfig, as cluster-api writes it, in one key; or,
// where that key is not there, the keys of package registration/kubeconfig.
type KubeConfigSecretRef struct {
	// Name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Namespace of the Secret. A hub reads no Secrets but in the namespaces that it is told to. Empty: muster-connections, or what the hub is
	// told instead.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Key whose value is the kubeconfig.
	// +kubebuilder:default=value
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Key string `json:"key,omitempty"`
}

// Endpoint is where the API server of a member is, and by what to know it.
type Endpoint struct {
	// Server is its URL.
	// +kubebuilder:validation:MaxLength=2048
	Server string `json:"server"`

	// CABundle is the PEM-encoded bundle that its certificate is verified by. Empty: the authorities that the host trusts.
	// +kubebuilder:validation:MaxLength=65536
	// +optional
	CABundle []byte `json:"caBundle,omitempty"`

	// TLSServerName is the name that its certificate is for. Empty: the host of the URL.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	TLSServerName string `json:"tlsServerName,omitempty"`

	// ProxyURL of the proxy on the way, without a password. Empty: none.
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	ProxyURL string `json:"proxyURL,omitempty"`
}

// Phase sums up where a member stands in its life. Programs should look at the conditions.
//
// +kubebuilder:validation:Enum=Pending;Accepted;Joining;Joined;Leaving;Left;Denied
type Phase string

// The phases of a MemberCluster; package lifecycle has the machine that moves between them.
const (
	PhasePending  Phase = "Pending"  // known, and nobody has decided
	PhaseAccepted Phase = "Accepted" // let in; its namespace is ready and no agent has come yet
	PhaseJoining  Phase = "Joining"  // its agent has a credential and has not confirmed yet
	PhaseJoined   Phase = "Joined"   // in the fleet
	PhaseLeaving  Phase = "Leaving"  // on its way out, bounded by a deadline
	PhaseLeft     Phase = "Left"     // out; nothing of it is left on the hub but this object
	PhaseDenied   Phase = "Denied"   // not let in, or acceptance was withdrawn
)

// Conditions of a MemberCluster.
const (
	// ConditionAccepted is True when the cluster is let in.
	ConditionAccepted = "Accepted"
	// ConditionStalled exists, and is True, only while the cluster is denied.
	ConditionStalled = "Stalled"
	// ConditionReadyToJoin is True when all that an agent needs on the hub is there.
	ConditionReadyToJoin = "ReadyToJoin"
	// ConditionJoined is True when the cluster is in the fleet.
	ConditionJoined = "Joined"
	// ConditionHealthy is True when heartbeats arrive and the agent finds its cluster ready, False when the
	// agent reports that it is not, and Unknown when heartbeats have stopped.
	ConditionHealthy = "Healthy"
	// ConditionCredentialValid is False when the hub refused or failed to renew the agent's credential.
	ConditionCredentialValid = "CredentialValid"
	// ConditionClusterIDUnique is False while another agent or another MemberCluster has the cluster ID as well. It exists
	// only then.
	ConditionClusterIDUnique = "ClusterIDUnique"
	// ConditionNoOrphans is False while the member has orphaned objects: objects that no Work has any more although no user
	// asked for their deletion. After that it is True. It does not exist on a member that never had any.
	ConditionNoOrphans = "NoOrphans"
	// ConditionReachable is True when the hub itself reaches the member by kubeConfigSecretRef. It is there only where that is set.
	ConditionReachable = "Reachable"
	// ConditionInstalled is True when the hub has installed the agent as it is to be. It is there only where joinMode is Install.
	ConditionInstalled = "Installed"
)

// Reasons of the conditions of a MemberCluster: a fixed set, which programs may match.
const (
	ReasonAccepted          = "Accepted"
	ReasonNotDecided        = "NotDecided"
	ReasonDenied            = "Denied"
	ReasonNotAccepted       = "NotAccepted"
	ReasonPrepared          = "Prepared"
	ReasonPreparing         = "Preparing"
	ReasonWaitingForAgent   = "WaitingForAgent"
	ReasonAgentJoined       = "AgentJoined"
	ReasonLeaving           = "Leaving"
	ReasonLeft              = "Left"
	ReasonLeaveForced       = "LeaveForced"
	ReasonHeartbeating      = "Heartbeating"
	ReasonHeartbeatLost     = "HeartbeatLost"
	ReasonHeartbeatAwaited  = "HeartbeatAwaited"
	ReasonHeartbeatUnsteady = "HeartbeatUnsteady"
	ReasonClusterNotReady   = "ClusterNotReady"
	ReasonNotJoined         = "NotJoined"
	ReasonIssued            = "Issued"
	ReasonRenewalRefused    = "RenewalRefused"
	ReasonRenewalFailed     = "RenewalFailed"
	ReasonObjectsOrphaned   = "ObjectsOrphaned"
	ReasonNoOrphans         = "NoOrphans"
	ReasonReachable         = "Reachable"
	ReasonUnreachable       = "Unreachable"
	ReasonUnauthorized      = "Unauthorized"
	ReasonKubeConfigMissing = "KubeConfigMissing"
	ReasonKubeConfigInvalid = "KubeConfigInvalid"
	ReasonOtherCluster      = "OtherCluster"
	ReasonInstalled         = "Installed"
	ReasonInstalling        = "Installing"
	ReasonInstallFailed     = "InstallFailed"
	ReasonAgentNotReturned  = "AgentNotReturned"
	ReasonInstallWaiting    = "InstallWaiting"
	ReasonAgentStarting     = "AgentStarting"
	ReasonAgentNotHealthy   = "AgentNotHealthy"
)

// InstallStatus is what the hub installed on a member last.
type InstallStatus struct {
	// Hash of what was installed, and of the hub's address and certificate authority that it was given.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Hash string `json:"hash,omitempty"`

	// RequestedAt is the value of the annotation membership.muster.dev/install-requested-at that was answered last.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	RequestedAt string `json:"requestedAt,omitempty"`

	// InstalledAt is when it was installed.
	// +optional
	InstalledAt *metav1.Time `json:"installedAt,omitempty"`

	// Recovery counts how often the agent was installed again because its credential had ended and it was not heard. Unset: never since it was
	// heard last.
	// +optional
	Recovery *InstallRecovery `json:"recovery,omitempty"`
}

// InstallRecovery is how often an agent was installed again for the sake of one credential that had ended.
type InstallRecovery struct {
	// CredentialExpirationTime is when that credential ended. An agent that has another one has come back, and this counts no more.
	CredentialExpirationTime metav1.Time `json:"credentialExpirationTime"`

	// Attempts is how often.
	Attempts int32 `json:"attempts"`
}

// LeaveStatus is the progress of a leave.
type LeaveStatus struct {
	// StartedAt is when the leave began.
	StartedAt metav1.Time `json:"startedAt"`

	// Deadline is when it will be forced.
	Deadline metav1.Time `json:"deadline"`

	// Waiting says what the leave waits for now: the name of a gate, or "agent".
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Waiting string `json:"waiting,omitempty"`

	// Remaining lists what is still there, the first twenty entries.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	// +optional
	Remaining []string `json:"remaining,omitempty"`

	// Forced is true when the deadline passed and the member was removed with something still remaining.
	// +optional
	Forced bool `json:"forced,omitempty"`

	// ForcedAt is when that was put on record, before it was done: at the deadline, or later where that was shortened to a
	// time in the past, or the hub was away. Unset where forced is false.
	// +optional
	ForcedAt *metav1.Time `json:"forcedAt,omitempty"`

	// Ended is true when the leave has come to its end.
	// +optional
	Ended bool `json:"ended,omitempty"`
}

// MemberClusterStatus is what the hub knows of a member.
type MemberClusterStatus struct {
	// Phase sums up the conditions for people.
	// +optional
	Phase Phase `json:"phase,omitempty"`

	// Namespace of the member on the hub: all that its agents may touch is in it.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Subject is whom the member's permissions are bound to.
	// +optional
	Subject *rbacv1.Subject `json:"subject,omitempty"`

	// CredentialExpirationTime is when the agent that has joined is left without a credential, unless it renews that before: the last of the times at
	// which those end that were issued to it. Unset where none ends.
	// +optional
	CredentialExpirationTime *metav1.Time `json:"credentialExpirationTime,omitempty"`

	// Conditions: Accepted, ReadyToJoin, Joined, Healthy, CredentialValid, ClusterIDUnique, NoOrphans, PropertiesCollected,
	// Reachable, Installed.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

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

	// Orphans summarizes the orphaned objects on the member, as its agent reports them. Unset: none are reported.
	// +optional
	Orphans *OrphanSummary `json:"orphans,omitempty"`

	// Agents of the member.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Agents []AgentStatus `json:"agents,omitempty"`

	// Endpoint is where the hub reaches the member, as the Secret of kubeConfigSecretRef says.
	// +optional
	Endpoint *Endpoint `json:"endpoint,omitempty"`

	// Install is what the hub installed on the member last, where joinMode is Install.
	// +optional
	Install *InstallStatus `json:"install,omitempty"`

	// Leave is the progress of a leave, and how it ended. It goes when the cluster joins again.
	// +optional
	Leave *LeaveStatus `json:"leave,omitempty"`
}

// MemberCluster is one cluster of the fleet.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=mc,categories=muster
// +kubebuilder:selectablefield:JSONPath=`.spec.clusterID`
// +kubebuilder:selectablefield:JSONPath=`.spec.claim`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Joined",type=string,JSONPath=`.status.conditions[?(@.type=="Joined")].status`
// +kubebuilder:printcolumn:name="Healthy",type=string,JSONPath=`.status.conditions[?(@.type=="Healthy")].status`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.version.kubernetes`
// +kubebuilder:printcolumn:name="CPU",type=string,JSONPath=`.status.resources.allocatable.cpu`
// +kubebuilder:printcolumn:name="Memory",type=string,JSONPath=`.status.resources.allocatable.memory`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Mode",type=string,priority=1,JSONPath=`.spec.joinMode`
// +kubebuilder:printcolumn:name="Orphans",type=integer,priority=1,JSONPath=`.status.orphans.objects`
// +kubebuilder:printcolumn:name="Why",type=string,priority=1,JSONPath=`.status.conditions[?(@.status!="True")].message`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must be a DNS label of at most 63 characters: lower-case letters, digits and '-', starting and ending with a letter or digit"
type MemberCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:default={}
	Spec MemberClusterSpec `json:"spec,omitempty"`
	// +optional
	Status MemberClusterStatus `json:"status,omitempty"`
}

// MemberClusterList is a list of MemberClusters.
//
// +kubebuilder:object:root=true
type MemberClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MemberCluster `json:"items"`
}
