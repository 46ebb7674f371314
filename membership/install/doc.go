// Package install installs the agents of members from the hub, for MemberClusters with joinMode Install and a
// kubeconfig.
//
//	agent, err := deploy.Agent(deploy.AgentOptions{Image: "registry.example.com/agent:v1"})
//	...
//	runner, err := install.New(mgr, install.Options{Installer: agent})
//	...
//	fleet.Options{Runners: []fleet.Runner{runner}}
//	hub.Options{Gates: []membership.LeaveGate{..., runner}} // the last of them
//
// The product provides an [Installer], such as [Manifests], or the one of package deploy, which contains the manifests
// of a complete agent.
//
// # When an agent is installed
//
// The agent is installed when the member is accepted: by an administrator, or by the Acceptor of package hub, which is
// called because no agent exists yet that could create a JoinRequest. Until then the hub does not change the member.
// After that the member is like a member whose agent a user has installed: the agent creates its JoinRequest with its
// own credential, and the hub does not need to reach the member any more. The kubeconfig may be removed. A hub that
// restarts sends no requests to members.
//
// The agent is installed again in these cases: the annotation membership.muster.dev/install-requested-at gets a new
// value, which status.install.requestedAt confirms; the hub's address, its certificate authority or the revision of
// the Installer ([Reviser]) changes, and the member has a rollout permit; or the agent has not joined within the hour
// for which its credential is valid. The member keeps its identity, because the identity is in a Secret that only the
// agent changes.
//
// The agent is also installed again when its credential has expired (status.credentialExpirationTime) while its
// heartbeat was lost, for example on a member that was switched off for weeks: the agent cannot connect with its
// credential any more. The hub installs it when it reaches the member, at most six times for one credential: the
// second time an hour after the first, and then after pauses that are twice as long each time. After that the
// condition Installed is False with the reason AgentNotReturned, until the agent sends heartbeats, or a user requests
// another installation with the annotation.
//
// The condition Installed contains the state. While an attempt fails, its message contains the reason and the next
// step, on the member or on the hub, whichever has failed, and the fleet retries; a previously installed agent
// continues. An attempt that may be incomplete is repeated from its beginning.
//
// # Rollout of another revision
//
// Another revision, or another address of the hub, applies to all members at the same time, but is not installed on
// all at the same time. First one agent of the fleet is installed again. When it is healthy, others follow,
// [Options].Concurrent at a time. An agent is healthy when its heartbeats have arrived for four periods, after which
// missing heartbeats would be known, and the installed workloads run ([Checker]). Until then the condition Installed
// is False with the reason AgentStarting, and with the reason AgentNotHealthy if the agent is not healthy within
// [Options].HealthyWithin. While one agent is not healthy, or could not be installed, no further installation starts.
// Members that wait have the reason InstallWaiting. Among the members that the hub is connected to, those whose agent
// is not healthy since an earlier revision was installed are first, then those with heartbeats, then those without,
// each in the order of their names. A member that the hub cannot reach waits until it can, and does not delay others.
//
// The following members need no rollout permit: those whose agent has not joined yet, those with a request by the
// annotation, and those whose credential has expired. The whole state is in the MemberClusters, so a hub that restarts
// continues the rollout. The rollout uses the MemberClusters in the manager's cache, and only one hub may run it at a
// time: the leader, which also runs the fleet.
//
// # The credential
//
// The credential is that of a JoinToken "install-<UID of the MemberCluster>", valid for one use by one cluster ID:
// spec.clusterID, which is first set to the UID of the member's namespace kube-system if it is empty. Therefore an
// agent with this credential can join only as this member, and it is admitted because the member is accepted, not by
// the token. The JoinToken is deleted when the agent has joined, when the JoinToken has expired, and with the
// MemberCluster. If an agent had joined and received another JoinToken, this JoinToken is kept during a leave, because
// the agent may need it to connect again and clean up.
//
// # Leaving
//
// An agent cleans up its member. When the agent has confirmed the clean-up, or never joined, the installed objects are
// removed ([Uninstaller]), which delays the leave for a minute at most. If the hub cannot reach the member any more,
// the objects stay, and an Event reports this. They also stay when the leave is forced: the agent cleans up when it
// connects again. A CustomResourceDefinition stays if an object of it exists, such as an AppliedWork of another hub,
// or if it was not installed by this package. If the [Runner] is not among the hub's Gates, the removal must be
// completed during the deletion of the member's namespace, and may be incomplete.
package install
