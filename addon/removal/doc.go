// Package removal decides how an add-on goes from one member, and does nothing about it. It is pure: no client, no clock. All of it may be
// called concurrently.
//
// [Next] looks at what there is of the add-on and answers with a [Step]: what to do now, what to say, and when to look again. It is
// level-triggered: correct from any observation, however often it is asked, so a controller may die between any two actions and its
// successor goes on from what it then observes.
//
// # The way out
//
// Each row is done before the next begins:
//
//	stage         what happens                                               it is over when
//	hooks         Jobs and Pods run on the member, by a Work of their own,    all have succeeded, or the add-on's Works are going already,
//	              and the add-on's function is asked                         whoever began that, or there are none: what is not on the
//	                                                                         member needs no Job to say goodbye
//	works         the Works of the add-on are deleted                        the member has taken them back
//	hook work     and that of its hooks: until here it says that they       likewise
//	              have run
//	credentials   the access of its agent to the hub is revoked              it is gone
//	finalizer     ours is taken off the MemberAddon
//
// A Job that has failed is taken back and run anew after [RetryPause], and a function that has failed, or is not done, is asked anew, until
// the deadline.
//
// # The deadline
//
// When the deadline has passed, and something is still waited for, that is put on record, [Step].Forced, before anything is done about it:
//
//	the member               what happens
//	can be reached           hooks are given up, and the member has [Patience] more to take back the Works; what is left then stays there
//	cannot be reached        the Works let go at once: what they have applied stays there
//	is gone                  likewise, and not only at the deadline; but the add-on's function is waited for
//	leaves, and its leave    likewise at once, and so it is where the MemberAddon's
//	has been forced          removalDeadlineSeconds is 0
//
// Then the credentials are revoked and the finalizer goes, whatever others hold back. What the API server refuses is tried again, and the message says why
// it is refused. A credential that cannot be revoked is never given up, since nobody would know of it any more: past the deadline the removal has failed, with
// the reason RevokeFailed, and the MemberAddon stays until whoever refuses it lets the hub delete what the agent has.
//
// # Hosted mode
//
// Where the agent runs on another member, hooks and Works are on both. [All] says how far the hooks of both are together. The member's own Works go first, and
// those on the hosting member when these are gone: what they have applied may need the agent to go, as an object does that has a finalizer of
// the agent's. So Works are Present as long as any are, and Member is the one whose turn it is. Those on a hosting member that are not waited for any
// more are deleted and nothing else, unless it is gone: unlike the member's own namespace theirs stays, and it takes back what it has when it can.
//
// # What holds
//
// A test walks every state that add-on, member, people and a controller that may die at any moment can reach together, and proves of each:
//
//   - The removal ends, also when neither member nor hooks ever answer; with a member and hooks that do, in time and not forced.
//   - No Work is deleted before the hooks have succeeded, unless the deadline passed, the leave was forced or, for Jobs, the member is gone.
//   - The credentials outlive the Works, those of hooks included, unless that it is forced is on record.
//   - That it is forced is on record before anything is, and only if there is something to be waited for.
//   - In the end there are no credentials, and no Works but what others than the agent hold back.
//   - Nothing is done twice for nothing, and as long as something is to be waited for there is a time to look again.
//
// # What controllers owe
//
//   - Carry out actions in their order up to the first that fails, tell of that in Failed, then observe anew. Where a step is Final, observe past
//     all caches and decide again before.
//   - Put Forced on record, as the condition Degraded with the reason DeadlineExceeded and as an Event, before the next look.
//   - Give Jobs as long as their Work is there, also if the add-on has no hooks any more.
//   - Make no Work of the add-on once the deletion of its MemberAddon has begun.
package removal
