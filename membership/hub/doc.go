// Package hub adds the hub's side of membership to a controller-runtime manager:
//
//	err := hub.SetupWithManager(mgr, hub.Options{})
//
// Package crds must have installed the definitions before; examples/minimal-hub/hub.go is a complete program.
// [Options] contain the policy of a product: which clusters are accepted ([membership.Acceptor]), how credentials are
// issued ([membership.Issuer]), and which objects must be removed before a cluster leaves ([membership.LeaveGate]).
//
// # Controllers
//
//   - The controller of MemberClusters prepares a member's namespace, grants and revokes access, and reports.
//     [lifecycle.NextHub] decides. The controller calls the Acceptor for members whose agent the hub starts, because
//     their agents send no JoinRequest before a decision.
//   - The controller of JoinRequests decides which agent receives a credential. [lifecycle.NextJoinRequest] decides.
//   - The controller of JoinTokens, of package jointoken, creates bootstrap credentials and renews them.
//   - The watcher of heartbeats, of package heartbeat, reports members whose heartbeats have stopped.
//     [lifecycle.Health] and [lifecycle.Taints] derive the condition Healthy and the taints
//     membership.muster.dev/unreachable and /not-ready.
//
// All of them run on the leader only. A hub may fail at any point: its successor continues from the observed state,
// and starts without a write if nothing has to change.
//
// # Cost of a member
//
// In steady state a member costs one update of its Lease per period, and no requests of the hub. A join consists of
// these writes. Those of the agent have an asterisk. Reads, and the write of one Event per change of phase, are not
// included:
//
//	JoinRequest          create*, status, delete
//	JoinToken            status (the use is counted)
//	MemberCluster        create, status when it is prepared, status when it has joined
//	Namespace            create
//	Membership           create, status*
//	RoleBinding          create
//	Lease                create, first renewal*
//	ServiceAccount       create, and a token (which is not stored), or
//	CertificateSigningRequest  create, approve, delete
//
// These are fourteen stored writes with a token, and sixteen with a certificate. If the hub observes the first
// heartbeat only after the agent's confirmation, the status of the MemberCluster is written once more. A MemberCluster
// that was created before, and a request without a JoinToken ([Options].AllowWithoutToken), save one write each.
// TestWritesOfAJoin and TestSteadyState check the numbers.
//
// A leave also reads the member's four objects without caches before each step that cannot be undone: two or three
// times.
//
// Joining 300 members at once takes 2.7 times as long as the same writes by a bare client in the same run, on two cores
// that hub, agents and API server share. The hub makes 27 requests per join, and an agent 14, including reads of its
// JoinRequest while the hub is busy:
//
//	go test -run '^$' -bench Join -benchtime 1x ./membership/hub
//
// # Permissions
//
// The folder rbac contains the roles for the manager's user; the package's tests use exactly these. The Role is for
// the namespace muster-registration: if [Options].RegistrationNamespace is another one, change its metadata.namespace.
// To grant agents more than membership's own permissions ([Options].AgentRules), the hub must have these permissions
// too.
//
// The hub grants [AgentRole] to each agent in its member's namespace, with one RoleBinding. The only cluster-scoped
// object of a member is its MemberCluster.
package hub
