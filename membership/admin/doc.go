// Package admin contains the tasks of a fleet administrator, as functions for a command line, a web console or an
// operator. Package examples/musterctl is a command line for them.
//
//   - [Join] gives the hub access to a cluster and registers it, so that the hub runs its agent (joinMode Push).
//   - [CreateToken] creates a JoinToken, and [Register] stores its contents on a cluster whose own agent joins (Pull).
//   - [Accept] and [Deny] decide on a cluster that waits for acceptance.
//   - [Unjoin] removes a member from the fleet, waits for the end of its leave, and removes the objects of [Join] and,
//     if the member is reachable, the definitions that were installed there.
//   - [Clean] removes the remains of muster from a member whose hub does not exist.
//
// # Several hubs
//
// A member may have several hubs, each with a name: its name in agent.Options.Hubs. One agent belongs to one of them
// at a time; with one agent for each hub, the member belongs to all of them. [Register] and [Clean] have an option for
// this name, and change neither objects of other hubs nor, while an agent of another hub exists, installed
// definitions. [Join] rejects a cluster that has or will have its own agent.
//
// # Idempotency
//
// Each function can be called again, after success and after an interruption at any point. It continues with the
// existing objects, and does not write objects that are up to date.
//
// # Remaining objects
//
// After Unjoin, a push member has no objects of muster on either side. The connection namespace stays on the hub,
// because all members share it. A pull member keeps its agent's deployment and the definitions that [Register]
// installed, because the hub cannot reach the member, and Unjoin can only with the option Member. Remove the agent
// with the tool that installed it, and then call Unjoin with the option Member, or [Clean]. For a member with joinMode
// Install the hub removes all objects that it installed.
//
// # Errors
//
// An error contains the failed operation, the cluster, and the next step. Match errors with errors.Is and errors.As:
// [ErrNameTaken], [ErrClusterTaken], [ErrExpired], [ErrDenied], [ErrNotFound], [*UnreachableError], [*PreflightError]
// and [*TimeoutError], which may be joined with the reason of the hub. An invalid option is a
// *membership.InvalidError. A finding of a [*PreflightError] may wrap one of the other errors, which errors.Is and
// errors.As find. Errors never contain secrets.
//
// # Timeouts
//
// Every wait has a timeout: that of an option, or a documented default. The error is a [*TimeoutError] with the last
// observed reason, as reported by the hub if available. Each request has a timeout of ten seconds, or that of the
// config.
//
// # Progress
//
// The option Progress is called with each [Step], synchronously in the goroutine of the caller.
//
// # Permissions
//
// The functions use the credentials of the given configs and require only the documented permissions. To give the hub
// access, [Join] must be permitted to grant it: as cluster-admin of the member, or with all of the granted rules.
package admin
