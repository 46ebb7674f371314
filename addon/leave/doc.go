// Package leave ties the add-ons of a member to its leave: a gate on the hub that holds the leave back until all of them are removed.
//
//	hub.Options{Gates: []membership.LeaveGate{addonleave.Gate(client), workleave.Gate(client)}}
//
// It stands before the gate of the Works. Gates are asked in their order, and the next one only when those before it are open: an add-on
// says goodbye while it is still there, and its Works go through its MemberAddon, before any other Work of the member.
// What happens in between, and in which order, is decided by package removal.
//
// The gate deletes each MemberAddon in the member's namespace, whoever has made it and whenever. It has no memory: a hub that starts anew in the
// middle goes on. Agents that run here for other members, in hosted mode, are none of its business: their Works go with all others.
//
// # Kinds of leave
//
//	leave.resources     Delete                              Orphan
//	pre-delete hooks    run, and are waited for             likewise
//	Works               deleted when the hooks have         likewise, but before that, and before the MemberAddons are deleted,
//	                    succeeded; the member takes back    they are told to orphan all objects, also those of a removal that
//	                    what they have applied              has begun before: the add-on keeps running, and belongs to nobody
//	Works of hooks      deleted; the member takes back      likewise: Jobs that have run are nothing to keep, and those that have
//	                    their Jobs and Pods                 failed would be in the way of the next try
//	access to the hub   revoked after the Works are gone    likewise: what keeps running gets no answer from the hub any more
//	MemberAddon         gone when all that is done, which   likewise
//	                    opens the gate
//
// Works on another member, which hosts the add-on's agent, are deleted in either case, as that member stays.
//
// # When it does not go well
//
// Two deadlines count from about the same time: that of the removal, which each add-on has, and that of the leave.
//
//	what happens                       what becomes of the add-on
//	the member is dead, or its agent   Its hooks and its Works are waited for until the earlier of the deadlines. At that of the removal the
//	                                   add-on is let go by its controller, which says so, and the gate opens: the rest of the leave is not
//	                                   forced by it. At that of the leave see the next row. What is on the member stays there; an agent
//	                                   that comes back to find itself forgotten takes it back, by the leave policy that it last knew.
//	a hook fails                       likewise, but that it is run again and again until then; a member that can be reached has a minute
//	                                   more to take back the Works
//	the leave is forced                All at once: the agent's access ends, Force is called, and the member's namespace is deleted with the Works
//	                                   in it, which have been told to orphan their objects if the leave is to. The controller of MemberAddons sees that the leave is forced, puts that on record, lets go of the
//	                                   Works wherever they are, and revokes the add-on's access.
//	and that controller is dead, too   Force takes the MemberAddon's finalizer off, so that the namespace can go, and with it what there is in it
//	                                   of the add-on's access. Works on a hosting member, and what was granted elsewhere, are
//	                                   for that controller to take back when it runs again.
//
// # Force
//
// Force first gives the controller its chance, since that alone can keep the order and say what was left. It sets spec.removalDeadlineSeconds so that
// the deadline ends now: no hook is waited for any more, and from then on, whoever looks, it is known since when the controller is overdue. Where
// that is 30 seconds, Force takes the finalizer off, and nothing else. It does so without more ado
//
//   - where the deletion began as long ago, and the controller has not even taken notice of it (status.observedGeneration):
//     then there is none,
//   - where a deadline that somebody has set passed as long ago.
//
// # What the controller of MemberAddons owes
//
//   - Write status.observedGeneration when it has seen a deletion.
//   - As package removal asks: make no Works of an add-on once its deletion has begun. Besides, leave those of a member that leaves as they are,
//     until it is to delete them: their deletion policy is the leave's, as with those of a WorkSet.
//   - Names: the Work of an add-on's hooks ends in -hooks, and no other; all have the label addon.muster.dev/addon.
package leave
