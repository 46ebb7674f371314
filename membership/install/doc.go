// Package install has the hub install the agents of members: those whose MemberCluster has the joinMode Install and a kubeconfig.
//
//	agent, err := deploy.Agent(deploy.AgentOptions{Image: "registry.example.com/agent:v1"})
//	...
//	runner, err := install.New(mgr, install.Options{Installer: agent})
//	...
//	fleet.Options{Runners: []fleet.Runner{runner}}
//	hub.Options{Gates: []membership.LeaveGate{..., runner}} // the last of them
//
// What is installed is the product's: an [Installer], such as [Manifests], or that of package deploy, which has manifests of a whole agent.
//
// # Once, and then no more
//
// A member is installed when it is accepted: by an administrator, or by the Acceptor of package hub, which is asked as nobody is there yet to ask at the
// door. Until then the member is left alone. From then on it is like one that somebody else has installed the agent of: the agent comes to the door by a
// credential of its own, and the hub need not reach the member any more. The kubeconfig may be taken back. A hub that starts again asks no member.
//
// The agent is installed again when the annotation membership.muster.dev/install-requested-at has a new value, which status.install.requestedAt
// answers; when the hub's address or certificate authority, or what the Installer would install ([Reviser]) is another one, in its turn; and when the agent has
// not joined within the hour for which its credential is good. The member keeps its identity, since that is in a Secret that nobody touches
// but the agent.
//
// It is installed again, too, when its credential has ended (status.credentialExpirationTime) while its heartbeat was lost, such as that of a member that was
// off for weeks: it could not come back by what it has. That is done when the hub reaches the member, six times at most for one credential, an hour after
// the first and twice as long after each of the others. Then the condition Installed is False for the reason AgentNotReturned, until the agent is heard, or
// somebody asks for more by the annotation.
//
// The condition Installed says how it stands. While an attempt fails the condition says why, and what to do about the member or the hub, whichever failed,
// and the fleet has it tried again; the agent that was installed before goes on. One that may have been half done is done again from its beginning.
//
// # Another revision
//
// What is to be installed, or the hub's address, is another one for all members at once. It does not come to all at once: one agent that is in the fleet is
// installed anew first, alone, and when it is healthy others are, [Options].Concurrent at a time. It is healthy when its heartbeat has been heard for four
// periods, after which it would be known if it did not beat, and what was installed runs ([Checker]); until then the condition Installed is False for
// the reason AgentStarting, and for the reason AgentNotHealthy when it is not within [Options].HealthyWithin. While one is not, or could not be installed, no
// other one is begun. Those that wait say so by the reason InstallWaiting. Of those that the hub is connected to, members that an earlier revision
// has left broken come first, then in the order of their names those that are heard, and the silent ones last; one that the hub does not reach waits
// until it does, and holds nobody up.
//
// Nobody waits who has no agent in the fleet yet, who asks by the annotation, or whose credential has ended. All that this goes by is in the
// MemberClusters, so a hub that starts again goes on where the last one was. It looks at those that the manager's cache shows, and only one hub may do that
// at a time, as the leader alone runs a fleet.
//
// # The credential
//
// It is that of a JoinToken "install-<UID of the MemberCluster>" which is good for one use by one cluster ID: the one in spec.clusterID, which is set to
// the UID of the member's namespace kube-system before anything else is done, where it is empty. So an agent that comes with it can be no other member than
// this one, and it comes in because that is accepted, not by the token. The JoinToken is deleted when the agent has joined,
// when it has ended, and with the MemberCluster. An agent that was in the fleet and got another one keeps it while it leaves, since it may need it to come back
// and clean up.
//
// # Leaving
//
// An agent cleans up after itself. When it has confirmed that, or was never there, what was installed is removed ([Uninstaller]), which holds up the
// leave for a minute at most; where the hub does not reach the member any more it stays, and an Event says so. It also stays when the leave is
// forced: the agent cleans up when it comes back. A CustomResourceDefinition stays where there is an object of what it defines, such as an AppliedWork of
// another hub, and where somebody else had installed it. Where the [Runner] is not among the hub's Gates all this is done in the time that the member's
// namespace takes to go, if it suffices.
package install
