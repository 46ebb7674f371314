package v1alpha1

// Conditions of a MemberCluster.
const (
	// ConditionAccepted is True if the cluster is accepted.
	ConditionAccepted = "Accepted"
	// ConditionStalled exists only while the cluster is denied, and is then True.
	ConditionStalled = "Stalled"
	// ConditionReadyToJoin is True if all objects that an agent needs exist on the hub.
	ConditionReadyToJoin = "ReadyToJoin"
	// ConditionJoined is True when the cluster is in the fleet.
	ConditionJoined = "Joined"
	// ConditionHealthy is True if heartbeats arrive and the agent reports that its cluster is ready, False if the agent
	// reports that it is not, and Unknown if heartbeats have stopped.
	ConditionHealthy = "Healthy"
	// ConditionCredentialValid is False when the hub refused or failed to renew the agent's credential.
	ConditionCredentialValid = "CredentialValid"
	// ConditionClusterIDUnique is False while another agent or another MemberCluster has the same cluster ID, while
	// several agents use the credential of the member, or after a request was signed with a replaced claim key. Otherwise,
	// the condition does not exist.
	ConditionClusterIDUnique = "ClusterIDUnique"
	// ConditionNoOrphans is False while the member has orphaned objects: objects that no Work contains any more although
	// no user requested their deletion. After that, it is True. It does not exist on a member that never had orphaned
	// objects.
	ConditionNoOrphans = "NoOrphans"
	// ConditionReachable is True if the hub can connect to the member with kubeConfigSecretRef. It exists only if
	// kubeConfigSecretRef is set.
	ConditionReachable = "Reachable"
	// ConditionInstalled is True if the hub has installed the desired agent. It exists only if joinMode is Install.
	ConditionInstalled = "Installed"
)

// Reasons of the conditions of a MemberCluster. The set is fixed, so that programs may match them.
const (
	// ReasonAccepted: the cluster is accepted.
	ReasonAccepted = "Accepted"
	// ReasonNotDecided: no administrator has accepted or denied the cluster; set spec.accepted.
	ReasonNotDecided = "NotDecided"
	// ReasonDenied: spec.accepted is false: the cluster is denied, or its acceptance was withdrawn.
	ReasonDenied = "Denied"
	// ReasonNotAccepted: the hub does not install the agent, because the cluster is not accepted; set spec.accepted.
	ReasonNotAccepted = "NotAccepted"
	// ReasonPrepared: the member's namespace and the permissions of its agent exist.
	ReasonPrepared = "Prepared"
	// ReasonPreparing: the hub is creating the objects that the agent needs; the message contains the last error.
	ReasonPreparing = "Preparing"
	// ReasonWaitingForAgent: no agent has joined as this member yet; the message names the component that starts it.
	ReasonWaitingForAgent = "WaitingForAgent"
	// ReasonAgentJoined: the agent has reported that it joined.
	ReasonAgentJoined = "AgentJoined"
	// ReasonLeaving: the member is leaving; the message contains the condition that the hub waits for.
	ReasonLeaving = "Leaving"
	// ReasonLeft: the member has left, and spec.state does not request that it joins again.
	ReasonLeft = "Left"
	// ReasonLeaveForced: the deadline of the leave passed, and the member was removed without the confirmation that the
	// message names.
	ReasonLeaveForced = "LeaveForced"
	// ReasonHeartbeating: heartbeats arrive, and the agent reports that its cluster is ready.
	ReasonHeartbeating = "Heartbeating"
	// ReasonHeartbeatLost: no heartbeat has arrived for longer than the grace period.
	ReasonHeartbeatLost = "HeartbeatLost"
	// ReasonHeartbeatAwaited: the member has joined, and the first heartbeat has not arrived yet.
	ReasonHeartbeatAwaited = "HeartbeatAwaited"
	// ReasonHeartbeatUnsteady: heartbeats arrive again after repeated interruptions; the message contains the time for
	// which they must continue.
	ReasonHeartbeatUnsteady = "HeartbeatUnsteady"
	// ReasonClusterNotReady: heartbeats arrive, and the agent reports that its cluster is not ready; the message contains
	// the cause.
	ReasonClusterNotReady = "ClusterNotReady"
	// ReasonAgentCloned: several agents send the heartbeats of the member with the same credential; the message names
	// their processes.
	ReasonAgentCloned = "AgentCloned"
	// ReasonClaimKeyReused: a request was signed with claim keys that the agent had replaced; the message contains the
	// time and the next step.
	ReasonClaimKeyReused = "ClaimKeyReused"
	// ReasonNotJoined: the cluster is not in the fleet.
	ReasonNotJoined = "NotJoined"
	// ReasonIssued: the hub has issued the credential.
	ReasonIssued = "Issued"
	// ReasonRenewalRefused: the hub refused to renew the credential; the message contains the cause.
	ReasonRenewalRefused = "RenewalRefused"
	// ReasonRenewalFailed: the renewal of the credential failed and is retried.
	ReasonRenewalFailed = "RenewalFailed"
	// ReasonObjectsOrphaned: the member has objects of Works that no Work contains any more; see the AppliedWorks of
	// the member.
	ReasonObjectsOrphaned = "ObjectsOrphaned"
	// ReasonNoOrphans: no orphaned object is left.
	ReasonNoOrphans = "NoOrphans"
	// ReasonReachable: the hub reaches the API server of the member.
	ReasonReachable = "Reachable"
	// ReasonUnreachable: the member's API server does not respond to the hub.
	ReasonUnreachable = "Unreachable"
	// ReasonUnauthorized: the member rejects the credential of kubeConfigSecretRef, or the credential lacks a permission.
	ReasonUnauthorized = "Unauthorized"
	// ReasonKubeConfigMissing: the Secret of kubeConfigSecretRef does not exist.
	ReasonKubeConfigMissing = "KubeConfigMissing"
	// ReasonKubeConfigInvalid: the Secret of kubeConfigSecretRef is invalid, or in a namespace that the hub does not
	// read.
	ReasonKubeConfigInvalid = "KubeConfigInvalid"
	// ReasonOtherCluster: the Secret of kubeConfigSecretRef belongs to a cluster with another cluster ID.
	ReasonOtherCluster = "OtherCluster"
	// ReasonInstalled: the hub has installed the desired agent.
	ReasonInstalled = "Installed"
	// ReasonInstalling: the hub is installing the agent.
	ReasonInstalling = "Installing"
	// ReasonInstallFailed: the installation failed and is retried; the message contains the cause.
	ReasonInstallFailed = "InstallFailed"
	// ReasonAgentNotReturned: the agent's credential expired, and the agent did not reconnect after repeated
	// installations.
	ReasonAgentNotReturned = "AgentNotReturned"
	// ReasonInstallWaiting: the agent must be installed again, and waits for a rollout permit.
	ReasonInstallWaiting = "InstallWaiting"
	// ReasonAgentStarting: the agent was installed again, and its health is being observed.
	ReasonAgentStarting = "AgentStarting"
	// ReasonAgentNotHealthy: the agent was installed again and is not healthy; the hub installs no other agent until this
	// agent is healthy.
	ReasonAgentNotHealthy = "AgentNotHealthy"
)
