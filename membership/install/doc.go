// Package install installs the agents of members from the hub: of MemberClusters with joinMode Install and a
// kubeconfig.
//
//	agent, err := deploy.Agent(deploy.AgentOptions{Image: "registry.example.com/agent:v1"})
//	...
//	runner, err := install.New(mgr, install.Options{Installer: agent})
//	...
//	fleet.Options{Runners: []fleet.Runner{runner}}
//	hub.Options{Gates: []membership.LeaveGate{..., runner}} // the last of them
//
// The product provides an [Installer], such as [Manifests], or that of package deploy, which contains the manifests of
// a complete agent.
//
// # When an agent is installed
//
// A member is installed when it is accepted: by an administrator, or by the Acceptor of package hub, which decides
// because no agent exists yet that could make a JoinRequest. Until then the hub does not change the member. After that
// the member is like one with an agent that was installed by hand: the agent makes its JoinRequest with its own
// credential, and the hub does not need to reach the member any more. The kubeconfig may be removed. A hub that
// restarts sends no requests to members.
//
// The agent is installed again when the annotation membership.muster.dev/install-requested-at gets a new value, which
// status.install.requestedAt confirms; when the hub's address or certificate authority, or what the Installer would
// install ([Reviser]), changes, with a rollout permit; and when the agent has not joined within the hour for which its
// credential is valid. The member keeps its identity, because that is in a Secret that only the agent changes.
//
// The agent is also installed again when its credential has expired (status.credentialExpirationTime) while its
// heartbeat was lost, for example on a member that was switched off for weeks: the agent could not come back with its
// credential. This happens when the hub reaches the member, at most six times for one credential, an hour after the
// first time and after twice as long each further time. Then the condition Installed is False with the reason
// AgentNotReturned, until the agent sends heartbeats, or a user requests another installation with the annotation.
//
// The condition Installed contains the state. While an attempt fails, its message says why, and what to do on the
// member or the hub, whichever failed, and the fleet retries; a previously installed agent continues. An attempt that
// may be incomplete is repeated from its beginning.
//
// # Rollout of another revision
//
// Another revision, or another address of the hub, is new for all members at once, but is not installed on all at once.
// First one agent of the fleet is installed again; when it is healthy, others follow, [Options].Concurrent at a time.
// An agent is healthy when its heartbeats have arrived for four periods, after which missing heartbeats would be known,
// and what was installed runs ([Checker]). Until then the condition Installed is False with the reason AgentStarting,
// and with the reason AgentNotHealthy if the agent is not healthy within [Options].HealthyWithin. While one is not
// healthy, or could not be installed, no further installation starts. Members that wait have the reason InstallWaiting.
// Of the members that the hub is connected to, those that an earlier revision has broken come first, then those with
// heartbeats, and silent ones last, each in the order of their names. A member that the hub does not reach waits until
// it does, and delays no others.
//
// The following members do not wait: those whose agent is not in the fleet yet, those with a request by the annotation,
// and those whose credential has expired. The whole state is in the MemberClusters, so a hub that restarts continues.
// The rollout uses the MemberClusters in the manager's cache, and only one hub may run it at a time: the leader, which
// also runs the fleet.
//
// # The credential
//
// The credential is that of a JoinToken "install-<UID of the MemberCluster>", valid for one use by one cluster ID:
// spec.clusterID, which is first set to the UID of the member's namespace kube-system if it is empty. So an agent with
// this credential can only become this member, and it is admitted because the member is accepted, not by the token. The
// JoinToken is deleted when the agent has joined, when it has expired, and with the MemberCluster. If an agent was in
// the fleet and got another JoinToken, that stays during a leave, because the agent may need it to come back and clean
// up.
//
// # Leaving
//
// An agent cleans up its member. When it has confirmed that, or never joined, what was installed is removed
// ([Uninstaller]), which delays the leave for a minute at most; if the hub does not reach the member any more it stays,
// and an Event says so. It also stays when the leave is forced: the agent cleans up when it comes back. A
// CustomResourceDefinition stays if an object of it exists, such as an AppliedWork of another hub, or if it was not
// installed by this package. If the [Runner] is not among the hub's Gates, all this must happen during the removal of
// the member's namespace, and may be incomplete.
package install
