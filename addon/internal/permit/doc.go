// Package permit decides whether a member may get a new revision of an add-on: its rollout permit. The package is pure:
// it does no I/O, uses no clock and keeps no state.
//
// Two controllers share this decision. The controller of Addons runs the rollouts: it gives each member a [Permit] and
// uses [MemberState.Target] to describe the member to the rollout. The controller of MemberAddons knows the assigned
// and the desired revision of a member, and calls [Next].
//
// # Permits
//
//   - A member with a Placement may get the revision that the rollout of the Placement permits, and no other.
//   - A member without a Placement needs no permit.
//   - A member that leaves, is about to lose the add-on, or has an uncertain selection gets no new revision. A member
//     that has not joined gets no revision at all. Each keeps what it has.
//   - A member may always get its assigned revision again, except while it leaves: its Works then belong to the leave.
//
// # The rollout
//
// A member with a permit counts as being updated from the time of the permit, even before it gets the revision. A
// permit is therefore never given twice. A controller that stops between the permit and the assignment gives the permit
// to the same member again: the status of the MemberAddon records a revision that could not be assigned.
package permit
