// Package removal decides how an add-on is removed from one member. It does not perform the actions. The package is
// pure: it uses no client and no clock. All functions are safe for concurrent use.
//
// [Next] takes the observed state of the add-on and returns a [Step]: the actions to perform, the message to report,
// and the time of the next reconcile. The decision is level-triggered: it depends only on the observation, so a
// controller may stop between any two actions, and its successor continues from its own observation.
//
// # Stages
//
// Each stage completes before the next one begins:
//
//	stage         actions                                                    completes when
//	hooks         Jobs and Pods run on the member in a separate Work, and    all have succeeded, the deletion of the add-on's Works has
//	              the add-on's function is called                            begun, or there are no Works
//	works         the Works of the add-on are deleted                        the member has removed their objects
//	hook work     the Work of the hooks is deleted; until this stage its     the member has removed its objects
//	              status shows that the hooks have run
//	credentials   the access of the agent to the hub is revoked              the access no longer exists
//	finalizer     muster's finalizer is removed from the MemberAddon
//
// A failed Job is deleted and runs again after [RetryPause]. A function that fails or is not done is called again. Both
// are repeated until the deadline.
//
// # The deadline
//
// If the deadline passes while the removal waits, the removal is recorded as forced ([Step].Forced) before any action
// follows:
//
//	the member               actions
//	is reachable             hooks are skipped, and the member has [Timeout] more to remove the objects of its Works; others stay
//	is unreachable           the Works are released at once: applied objects stay on the member
//	does not exist           the same, before the deadline too; the add-on's function is still awaited
//	leaves, and its leave    the same, at once; also if removalDeadlineSeconds of the MemberAddon is 0
//	is forced
//
// Then the credentials are revoked and the finalizer is removed, regardless of the finalizers of others. Requests that
// the API server rejects are retried, and the message contains the error. A credential that cannot be revoked is never
// abandoned because no object would refer to it any more: past the deadline, the removal fails with the reason
// RevokeFailed, and the MemberAddon stays until the hub can delete the credential.
//
// # Hosted mode
//
// If the agent runs on a hosting member, both members have hooks and Works. [All] combines the state of their hooks.
// The Works of the member are deleted first, and the Works on the hosting member after that, because applied objects
// may need the agent for their deletion, for example if they have a finalizer of the agent. Works are therefore Present
// while any Work exists, and Member describes the member that must act next. Works on a hosting member that are no
// longer awaited are only deleted, and not released unless that member does not exist: its namespace stays on the hub,
// and the member removes the objects when it can.
//
// # Guarantees
//
// A test walks all reachable states of add-on, member, users and a controller that may stop at any time, and proves:
//
//   - The removal ends, even if neither the member nor the hooks ever respond. With a responsive member and hooks it
//     ends in time and is not forced.
//   - No Work is deleted before the hooks have succeeded, unless the deadline has passed, the leave is forced or, for
//     Jobs, the member does not exist.
//   - The credentials outlive the Works, including those of hooks, unless the removal is recorded as forced.
//   - A forced removal is recorded before any forced action, and only if something is pending.
//   - In the end there are no credentials, and no Works except those with finalizers of others.
//   - No action is repeated without effect, and while something is pending there is a time of the next reconcile.
//
// # Requirements for controllers
//
//   - Perform the actions in order up to the first that fails, report it in Failed, then observe again. If a step is
//     Final, observe without caches and decide again first.
//   - Record Forced as the condition Degraded with the reason DeadlineExceeded and as an Event before the next
//     reconcile.
//   - Set Jobs while their Work exists, even if the add-on has no hooks any more.
//   - Create no Work of the add-on after the deletion of its MemberAddon has begun.
package removal
