package v1alpha1

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MemberClusterSpec describes the desired state of a member.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.clusterID) || (has(self.clusterID) && self.clusterID == oldSelf.clusterID)",message="clusterID cannot change once it is set: delete this MemberCluster, or let it leave, and join the other cluster under another name"
// +kubebuilder:validation:XValidation:rule="!has(self.joinMode) || self.joinMode == 'Pull' || has(self.kubeConfigSecretRef)",message="kubeConfigSecretRef is required when joinMode is Push or Install, because the hub connects to the member"
type MemberClusterSpec struct {
	// accepted is the decision of an administrator whether the cluster may be a member. True: accepted. False: denied.
	// Unset: not decided. Unless the value is true, the hub immediately revokes all permissions of the member. If the
	// value becomes true again, the hub restores them.
	// +optional
	Accepted *bool `json:"accepted,omitempty"`

	// state is Join or Leave. Default: Join. Leave requests that the cluster leaves, while this object is kept. Join
	// allows the cluster to join again.
	// +kubebuilder:default=Join
	// +optional
	State DesiredState `json:"state,omitempty"`

	// clusterID identifies the cluster independently of its name. By default, it is the UID of the cluster's namespace
	// kube-system. Set it before the cluster joins to reserve the name of this MemberCluster for that cluster. It cannot
	// change once it is set.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]([-A-Za-z0-9_.:]*[A-Za-z0-9])?$')",message="clusterID must be letters, digits, '-', '_', '.' or ':', and start and end with a letter or digit"
	// +optional
	ClusterID string `json:"clusterID,omitempty"`

	// claim is the fingerprint of the claim key of the agent that represents this cluster. The first accepted JoinRequest
	// sets it. To allow a reinstalled agent to take over, set it to status.claim of the agent's pending JoinRequest. If
	// you clear the field, the access of the current agent is revoked, and another agent can join. The agent that lost the
	// claim deletes nothing on the member. To restore its access, set the field to the former value.
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	// +optional
	Claim string `json:"claim,omitempty"`

	// claimKeys identifies the current claim key of the agent, if the agent has replaced its first claim key. The hub
	// writes it. Unset: the first claim key is the current one. If an agent was restored from a backup, remove the field
	// to accept its first claim key again.
	// +optional
	ClaimKeys *ClaimKeys `json:"claimKeys,omitempty"`

	// credential is the type of the credential that the agent requested. The JoinRequest of the agent with the claim sets
	// it.
	// +optional
	Credential CredentialType `json:"credential,omitempty"`

	// identity is the subject that the agent authenticates as. It is required if the agent uses an existing credential, so
	// that the hub issues none.
	// +kubebuilder:validation:XValidation:rule="self.kind in ['User', 'Group', 'ServiceAccount']",message="identity.kind must be User, Group or ServiceAccount"
	// +kubebuilder:validation:XValidation:rule="self.kind != 'ServiceAccount' || has(self.__namespace__) && size(self.__namespace__) > 0",message="identity.namespace is required when identity.kind is ServiceAccount"
	// +kubebuilder:validation:XValidation:rule="size(self.name) > 0 && !(self.name in ['system:authenticated', 'system:unauthenticated', 'system:anonymous', 'system:masters', 'system:serviceaccounts'])",message="identity.name must name one member's subject, not a system-wide group"
	// +optional
	Identity *rbacv1.Subject `json:"identity,omitempty"`

	// heartbeatPeriodSeconds is the time in seconds between two heartbeats of the agent, from 1 to 600. Default: 60.
	// +kubebuilder:default=60
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 600",message="heartbeatPeriodSeconds must be from 1 to 600"
	// +optional
	HeartbeatPeriodSeconds int32 `json:"heartbeatPeriodSeconds,omitempty"`

	// joinMode defines where the agent of this member runs and how it is installed: Pull, Push or Install. Default: Pull.
	// +kubebuilder:default=Pull
	// +optional
	JoinMode JoinMode `json:"joinMode,omitempty"`

	// kubeConfigSecretRef references the Secret that the hub uses to connect to the member. The credential, address and
	// certificate authority in the Secret may change at any time, but must belong to the same cluster. It is required if
	// joinMode is Push or Install. Unset: the hub does not connect to the member.
	// +optional
	KubeConfigSecretRef *KubeConfigSecretRef `json:"kubeConfigSecretRef,omitempty"`

	// leave defines how the cluster leaves.
	// +kubebuilder:default={}
	// +optional
	Leave LeavePolicy `json:"leave,omitempty"`

	// taints exclude Placements that do not tolerate them from the cluster. The hub adds and removes only taints with the
	// prefix "membership.muster.dev/". At most 62 other taints are allowed.
	// +listType=map
	// +listMapKey=key
	// +listMapKey=effect
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.filter(t, !t.key.startsWith('membership.muster.dev/')).size() <= 62",message="at most 62 taints: the hub needs room for its own"
	// +optional
	Taints []Taint `json:"taints,omitempty"`
}

// ClaimKeys are the claim keys of an agent that has renewed its credential. The fingerprint of the first one stays in
// spec.claim and identifies the agent.
type ClaimKeys struct {
	// claim is the spec.claim that these keys belong to. Keys of another claim have no effect.
	// +required
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	Claim string `json:"claim"`

	// current is the fingerprint of the newest key. A request must prove that the agent has it.
	// +required
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	Current string `json:"current"`

	// since is the time at which the key became the current one.
	// +required
	Since metav1.Time `json:"since"`

	// reusedAt is the time at which a request was first signed with replaced keys only. This means that two parties use
	// the credential of the agent. The condition ClusterIDUnique reports it until the field is removed. Unset: no such
	// request was observed.
	// +optional
	ReusedAt *metav1.Time `json:"reusedAt,omitempty"`
}

// JoinMode defines where the agent of a member runs and how it is installed.
//
// +kubebuilder:validation:Enum=Pull;Push;Install
type JoinMode string

// The join modes. JoinRequests and the lifecycle of a member do not depend on the join mode.
const (
	// JoinPull means that a user or another tool installs the agent on the member, or near it. The hub does not need
	// network access to the member.
	JoinPull JoinMode = "Pull"
	// JoinPush means that the agent runs on the hub, and connects to the member with kubeConfigSecretRef.
	JoinPush JoinMode = "Push"
	// JoinInstall means that the hub installs the agent on the member with kubeConfigSecretRef. After that, the hub does
	// not need network access to the member.
	JoinInstall JoinMode = "Install"
)

// KubeConfigSecretRef references a Secret on the hub that contains the address and the credential of a member. The
// Secret contains a kubeconfig in one key, as cluster-api writes it. If that key does not exist, the Secret must
// contain the keys of package registration/kubeconfig.
type KubeConfigSecretRef struct {
	// name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// namespace of the Secret. The hub reads Secrets only in the namespaces that it is configured with. Empty: the first
	// of these namespaces, by default muster-connections.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// key of the Secret whose value is the kubeconfig. Default: value.
	// +kubebuilder:default=value
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Key string `json:"key,omitempty"`
}

// Endpoint is the address of a member's API server and the data to verify the server's certificate.
type Endpoint struct {
	// server is the URL of the API server.
	// +required
	// +kubebuilder:validation:MaxLength=2048
	Server string `json:"server"`

	// caBundle is the PEM-encoded bundle that verifies the server's certificate. Empty: the certificate authorities of the
	// host.
	// +kubebuilder:validation:MaxLength=65536
	// +optional
	CABundle []byte `json:"caBundle,omitempty"`

	// tlsServerName is the name in the server's certificate. Empty: the host of the URL.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	TLSServerName string `json:"tlsServerName,omitempty"`

	// proxyURL is the URL of the proxy, without a password. Empty: no proxy.
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	ProxyURL string `json:"proxyURL,omitempty"`
}

// Phase summarizes the lifecycle of a member for users. Programs should use the conditions.
//
// +kubebuilder:validation:Enum=Pending;Accepted;Joining;Joined;Leaving;Left;Denied
type Phase string

// The phases of a MemberCluster; package lifecycle contains the state machine.
const (
	PhasePending  Phase = "Pending"  // known, without a decision
	PhaseAccepted Phase = "Accepted" // accepted; its namespace is ready and no agent has joined yet
	PhaseJoining  Phase = "Joining"  // its agent has a credential and has not confirmed yet
	PhaseJoined   Phase = "Joined"   // in the fleet
	PhaseLeaving  Phase = "Leaving"  // leaving, until a deadline
	PhaseLeft     Phase = "Left"     // left; only this object remains on the hub
	PhaseDenied   Phase = "Denied"   // denied, or acceptance was withdrawn
)

// InstallStatus describes the last installation of an agent by the hub.
type InstallStatus struct {
	// hash of the installed objects, and of the hub's address and certificate authority.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Hash string `json:"hash,omitempty"`

	// requestedAt is the last handled value of the annotation membership.muster.dev/install-requested-at.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	RequestedAt string `json:"requestedAt,omitempty"`

	// installedAt is the time of the installation.
	// +optional
	InstalledAt *metav1.Time `json:"installedAt,omitempty"`

	// recovery counts the installations that the hub repeated because the agent's credential had expired while its
	// heartbeat was lost. Unset: no such installation since the last heartbeat.
	// +optional
	Recovery *InstallRecovery `json:"recovery,omitempty"`
}

// InstallRecovery counts the repeated installations of an agent because of one expired credential.
type InstallRecovery struct {
	// credentialExpirationTime is the time at which the credential expired. The count ends when the agent reconnects with
	// another credential.
	// +required
	CredentialExpirationTime metav1.Time `json:"credentialExpirationTime"`

	// attempts is the number of installations.
	// +required
	Attempts int32 `json:"attempts"`
}

// LeaveStatus describes the progress of a leave.
type LeaveStatus struct {
	// startedAt is the time at which the leave began.
	// +required
	StartedAt metav1.Time `json:"startedAt"`

	// deadline is the time after which the leave is forced.
	// +required
	Deadline metav1.Time `json:"deadline"`

	// waiting is the current blocker of the leave: the name of a gate, "agent" or "namespace". Empty: none.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Waiting string `json:"waiting,omitempty"`

	// remaining lists the objects and conditions that block the leave, at most twenty entries.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	// +optional
	Remaining []string `json:"remaining,omitempty"`

	// forced is true if the deadline passed and the member was removed before the leave was complete.
	// +optional
	Forced bool `json:"forced,omitempty"`

	// forcedAt is the time at which the hub recorded that it forces the leave. The hub records it before it removes the
	// member: at the deadline, or later if the deadline was set to a time in the past, or if the hub was unavailable.
	// Unset if forced is false.
	// +optional
	ForcedAt *metav1.Time `json:"forcedAt,omitempty"`

	// ended is true after the leave has ended.
	// +optional
	Ended bool `json:"ended,omitempty"`
}

// MemberClusterStatus describes the observed state of a member.
type MemberClusterStatus struct {
	// phase summarizes the conditions for users. Programs should use the conditions.
	// +optional
	Phase Phase `json:"phase,omitempty"`

	// namespace of the member on the hub. It contains all objects that the member's agents may access.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// subject is the user, group or ServiceAccount to which the permissions of the member are granted.
	// +optional
	Subject *rbacv1.Subject `json:"subject,omitempty"`

	// credentialExpirationTime is the time at which the last credential of the joined agent expires, unless the agent
	// renews it before. Unset: the credentials do not expire.
	// +optional
	CredentialExpirationTime *metav1.Time `json:"credentialExpirationTime,omitempty"`

	// conditions of the MemberCluster: Ready, Stalled, Accepted, ReadyToJoin, Joined, Healthy, CredentialValid,
	// ClusterIDUnique, NoOrphans, PropertiesCollected, Reachable, Installed.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

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

	// orphans summarizes the orphaned objects on the member, as its agent reports them. Unset: the agent reports none.
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

	// endpoint is the address at which the hub connects to the member, from the Secret of kubeConfigSecretRef. Unset: the
	// hub does not connect to the member.
	// +optional
	Endpoint *Endpoint `json:"endpoint,omitempty"`

	// install is the state of the last installation by the hub, if joinMode is Install.
	// +optional
	Install *InstallStatus `json:"install,omitempty"`

	// leave describes the progress and the result of a leave. It is removed when the cluster joins again.
	// +optional
	Leave *LeaveStatus `json:"leave,omitempty"`
}

// MemberCluster represents one cluster of the fleet.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=mc,categories=muster
// +kubebuilder:selectablefield:JSONPath=`.spec.clusterID`
// +kubebuilder:selectablefield:JSONPath=`.spec.claim`
// +kubebuilder:printcolumn:name="Hub Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.spec.joinMode`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.version.kubernetes`
// +kubebuilder:printcolumn:name="Nodes",type=string,JSONPath=`.status.properties[?(@.name=="membership.muster.dev/node-count")].value`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Phase",type=string,priority=1,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Joined",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Joined")].status`
// +kubebuilder:printcolumn:name="Healthy",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Healthy")].status`
// +kubebuilder:printcolumn:name="Last Seen",type=date,priority=1,JSONPath=`.status.agents[?(@.type=="Membership")].lastHeartbeat`
// +kubebuilder:printcolumn:name="CPU",type=string,priority=1,JSONPath=`.status.resources.allocatable.cpu`
// +kubebuilder:printcolumn:name="Memory",type=string,priority=1,JSONPath=`.status.resources.allocatable.memory`
// +kubebuilder:printcolumn:name="Orphans",type=integer,priority=1,JSONPath=`.status.orphans.objects`
// +kubebuilder:printcolumn:name="Why",type=string,priority=1,JSONPath=`.status.conditions[?(@.status!="True")].message`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must be a DNS label of at most 63 characters: lower-case letters, digits and '-', starting and ending with a letter or digit"
type MemberCluster struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the MemberCluster.
	// +kubebuilder:default={}
	// +optional
	Spec MemberClusterSpec `json:"spec,omitempty"`
	// status is the observed state of the MemberCluster.
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
