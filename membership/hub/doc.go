// Package hub wires the hub's side of membership into a controller-runtime manager:
//
//	err := hub.SetupWithManager(mgr, hub.Options{})
//
// That is all, with package crds having installed the definitions before; examples/minimal-hub/hub.go is a whole
// program. What a product decides itself goes into [Options]: who may come in ([membership.Acceptor]), how credentials
// are issued ([membership.Issuer]), what has to happen before a cluster leaves ([membership.LeaveGate]).
//
// # What runs
//
//   - The controller of MemberClusters prepares a member's namespace, lets it in and out, and reports. What it does
//     is decided by [lifecycle.NextHub]. It asks the Acceptor about members that the hub is to bring an agent to, and that come to no door before that.
//   - The controller of JoinRequests is the door: it answers who may have a credential, by [lifecycle.NextDoor].
//   - The controller of JoinTokens, of package jointoken, makes bootstrap credentials and renews them.
//   - The watcher of heartbeats, of package heartbeat, tells who has fallen silent; the condition Healthy and the taints
//     membership.muster.dev/unreachable and /not-ready follow by [lifecycle.Health] and [lifecycle.Taints].
//
// All of them run on the leader alone. A hub may die at any point: its successor goes on from what it observes, and
// starts without a write when all is in place.
//
// # What a member costs
//
// In a quiet fleet one update of its Lease per period, and nothing else: the hub makes no request at all. A join is
// these writes, of which those of the agent are marked with an asterisk; those of Events, one for each change of phase, are not
// counted, nor are reads:
//
//	JoinRequest          create*, status, delete
//	JoinToken            status (the use is counted)
//	MemberCluster        create, status when it is prepared, status when it has joined
//	Namespace            create
//	Membership           create, status*
//	RoleBinding          create
//	Lease                create*
//	ServiceAccount       create, and a token (which is not stored), or
//	CertificateSigningRequest  create, approve, delete
//
// That is thirteen that are stored with a token, and fifteen with a certificate. Where the hub sees the first heartbeat only
// after the agent's confirmation the status of the MemberCluster is written once more. A MemberCluster that was made
// beforehand, and a request without a JoinToken ([Options].AllowWithoutToken), save one each. TestWritesOfAJoin and TestSteadyState hold the figures.
//
// A leave also reads the member's four objects past the caches before each step that cannot be taken back: two or three times.
//
// Joining 300 members at once takes 2.7 times as long as the same writes made by a bare client in the same run, on two cores
// that hub, agents and API server share; the requests of the hub are 27 a join, and those of an agent 14, among them some looks at its
// request while the hub is busy:
//
//	go test -run '^$' -bench Join -benchtime 1x ./membership/hub
//
// # Permissions
//
// The folder rbac has the roles that the manager's user needs; the package's tests run as a user who has these and nothing
// else. The Role among them is for the namespace muster-registration: where [Options].RegistrationNamespace is another,
// change its metadata.namespace to that. To give agents more than membership's own permissions ([Options].AgentRules)
// the hub must have those itself.
//
// Agents get [AgentRole] in their own namespace, by one RoleBinding each. Nothing of a member is cluster-scoped but its
// MemberCluster.
package hub
