// Package admin is what an administrator does to a fleet, as functions that a command line, a web console or an
// operator calls. Package examples/musterctl puts a command around each of them.
//
//   - [Join] gives the hub access to a cluster and registers it, so that the hub runs its agent (joinMode Push).
//   - [CreateToken] makes a JoinToken, and [Register] gives what is in it to a cluster whose own agent shall join (Pull).
//   - [Accept] and [Deny] decide on a cluster that waits to be let in.
//   - [Unjoin] has a member leave, waits until it is out, and removes what [Join] had made and, where it can reach the member, what was installed there.
//   - [Clean] removes what muster has left on a member whose hub is gone.
//
// # Several hubs
//
// A member may have several hubs, each by a name: the one that its agent has for it in agent.Options.Hubs. One agent is in one of them at a time; with an agent
// for each the member is in all at once. [Register] and [Clean] take that name and leave alone what is of the others, also what was installed as long as
// an agent of any of them is there. A cluster that has an agent of its own, or shall have one, cannot be joined by [Join].
//
// # Twice is harmless
//
// Each function can be called again, after success and after it was interrupted at any point: it goes on from what it
// finds. What is there already as it shall be is not written again.
//
// # What stays
//
// After Unjoin nothing of a push member is left on either side. The namespace of the connections stays on the hub, as it is that of all members. A member with an
// agent of its own keeps what runs that, and what [Register] has installed: the hub does not reach it, and so neither does Unjoin unless it is told how. Remove the
// agent in the way in which it was installed, and then call Unjoin with the option Member, or [Clean]. What a hub has installed (joinMode Install) that removes.
//
// # Errors
//
// Errors tell what was tried, on which of the two clusters, and what to do. Programs match them with errors.Is and
// errors.As: [ErrNameTaken], [ErrClusterTaken], [ErrExpired], [ErrDenied], [ErrNotFound], [*UnreachableError],
// [*PreflightError] and [*TimeoutError], which may come together with why the hub refuses. What an option should have been is told by a *membership.InvalidError. A finding of a
// [*PreflightError] may wrap one of the others, which errors.Is and errors.As then find. No error quotes a secret.
//
// # Waiting
//
// Every wait ends: after the time that an option gives, and after a documented one by default. It ends in a
// [*TimeoutError] with the reason that was seen last, which is the hub's own word where it has said one. Each request has
// ten seconds, or the timeout of the config.
//
// # Progress
//
// The option Progress is told each [Step]. It is called by the goroutine that called the function, and holds that up.
//
// # Permissions
//
// The functions act as the user of the configs that they are given and ask for no more than they use; each says which. To
// give the hub access, as [Join] does, needs the right to give it: to be cluster-admin of the member, or to have all of
// the rules that the hub gets.
package admin
