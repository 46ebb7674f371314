// Package leave connects the add-ons of a member with its leave: a gate on the hub that blocks the leave until all
// add-ons are removed.
//
//	hub.Options{Gates: []membership.LeaveGate{addonleave.Gate(client), workleave.Gate(client)}}
//
// The gate must precede the gate of the Works. The hub evaluates a gate only when the gates before it are open. The
// pre-delete hooks of an add-on therefore run while the add-on exists, and its Works are removed through its
// MemberAddon before any other Work of the member. Package removal decides the order of these steps.
//
// The gate deletes every MemberAddon in the member's namespace, regardless of its creator. It keeps no state: a
// restarted hub continues a leave. Hosted agents that run on this member for other members are not affected: their
// Works are removed with all other Works.
//
// # Kinds of leave
//
//	leave.resources     Delete                              Orphan
//	pre-delete hooks    run, and are awaited                the same
//	Works               deleted when the hooks have         the same, but all Works, including those of removals in
//	                    succeeded; the member removes       progress, are first set to orphan their objects: the add-on
//	                    their objects                       keeps running and has no owner
//	Works of hooks      deleted; the member removes         the same: completed Jobs are not worth keeping, and failed
//	                    their Jobs and Pods                 ones would block the next attempt
//	access to the hub   revoked after the Works are gone    the same: the add-on cannot reach the hub any more
//	MemberAddon         removed after all other steps,      the same
//	                    which opens the gate
//
// Works on a hosting member are deleted in both cases because that member stays.
//
// # Failures
//
// Two deadlines start at about the same time: the deadline of the removal of each add-on, and the deadline of the
// leave.
//
//	event                              effect
//	the member or its agent does not   The gate waits for hooks and Works until the earlier deadline. At the deadline of the removal, the
//	respond                            controller releases the add-on, reports it, and the gate opens; this does not force the rest of the
//	                                   leave. For the deadline of the leave, see "the leave is forced". Objects on the member stay there. An
//	                                   agent that returns and learns that it is deregistered applies the last known leave policy.
//	a hook fails                       The same, with retries until the deadline. A reachable member then has one more minute to remove the
//	                                   objects of the Works.
//	the leave is forced                The agent's access ends, Force is called, and the member's namespace is deleted with its Works, which
//	                                   orphan their objects if the leave does. The controller of MemberAddons records the forced leave,
//	                                   releases the Works on all members, and revokes the access of the add-on.
//	and the controller does not run    Force removes the finalizer of the MemberAddon, so that the namespace and the access objects in it
//	                                   can be deleted. The controller removes Works on a hosting member, and access that was granted
//	                                   elsewhere, when it runs again.
//
// # Force
//
// Force first lets the controller act, because only the controller keeps the order and reports what is left. It sets
// spec.removalDeadlineSeconds so that the deadline ends now: no hook is awaited any more, and every later call can
// compute for how long the controller is overdue. After 30 seconds, Force removes the finalizer, and changes nothing
// else. Force removes it at once
//
//   - if the deletion began 30 seconds ago and no controller has observed it (status.observedGeneration), or
//   - if a deadline that a user has set passed 30 seconds ago.
//
// # Requirements for the controller of MemberAddons
//
//   - Write status.observedGeneration when it has observed a deletion.
//   - Create no Works of an add-on after its deletion has begun, as package removal requires. Do not change the Works
//     of a leaving member until they must be deleted: the leave sets their deletion policy, as it does for a WorkSet.
//   - The name of the Work of hooks, and of no other Work, ends in -hooks. All Works have the label
//     addon.muster.dev/addon.
package leave
