// Package turn decides whether a member may be told what is new of an add-on. It does no I/O, reads no clock and remembers nothing.
//
// Two controllers have to agree on that. The one of an Addon knows the rollouts: it gives each member a [Turn], and asks [Standing.Target] what the
// rollout should think of one. The other, of a MemberAddon, knows what the member was told and what it is to have: it asks [Next].
//
// # Who may be told
//
//   - A member that goes by a Placement may be told the revision that the Placement's rollout has come to with it, and no other.
//   - One that goes by none waits for nobody.
//   - One that leaves, is to lose the add-on, or of which nobody knows whether it is to have it, is told nothing new; nor is one that has not joined told
//     anything at all. It keeps what it has.
//   - What a member was told already it may be told again at any time, but when it leaves: its Works are its leave's then.
//
// # What a rollout counts
//
// Who may be told a revision is on the way to it, told or not, from when it may. So no turn is given twice, and a controller that dies between giving
// a turn and telling the member gives it again to the same one: what could not be told is on record with the MemberAddon.
package turn
