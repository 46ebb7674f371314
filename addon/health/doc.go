// Package health determines the state of an add-on: on one member, from its Works, its Lease or a function of the
// add-on, and on all members together. The package is pure: it uses no client and no clock. All functions are safe for
// concurrent use.
//
// [Of] extracts what is needed from a Work when the Work changes. [Assess] combines it with the state of the hub into
// the conditions and the message of a MemberAddon and the health that a rollout uses. [MemberOf] extracts what is
// needed from a MemberAddon, and [Status] summarizes the MemberAddons of an Addon.
//
// # Health
//
// [Report].Health is the input of [github.com/muster-sdk/muster/placement/rollout.Next], which handles soak times and
// deadlines. The first matching row applies:
//
//	the add-on on the member                                 health        reason
//	has a Problem that is not Retried                        Failed        no action of the member can change it
//	is on an unreachable member                              Unknown       the last report may be outdated
//	has no revision yet, is not Current, or has a Work       Progressing   the report describes an earlier state
//	that is being deleted or whose status describes
//	another generation
//	has a Work that is Degraded and not fully applied        Failed (1)    the member reports a permanent failure
//	has a Work that is Degraded otherwise, with type Works,  Failed (1)    the objects report a failure
//	or with Workloads because of a workload
//	has a Work that is not fully applied                     Progressing
//	has no credential for the hub and needs one, or has a    Progressing
//	Retried problem with its credential
//	otherwise                                                the result of the health check
//
//	(1) Except if the add-on has several Works and the reason is UnknownKind or Conflict: another Work may define the
//	    kind or release the object, and the agent needs some seconds to notice.
//
// Failures are therefore reports of members and add-ons, not only expired timeouts. The health check:
//
//	type     state                                           health                  condition Available
//	Works    all applied objects are ready                   Succeeded               True/Available
//	         otherwise                                       Progressing             False/NotReady
//	Work-    all Deployments, StatefulSets and DaemonSets    Succeeded               True/Available
//	loads    are ready, or there are none
//	         otherwise                                       Progressing             False/NotReady
//	Lease    never renewed                                   Progressing             False/NotReady
//	         not renewed for its duration, or for 10         Failed                  False/LeaseExpired
//	         minutes if that is longer, since the member
//	         was assigned the revision
//	         renewed before the member was assigned its      Progressing             True/Available
//	         revision, less than its duration ago
//	         renewed since, less than its duration ago       Succeeded               True/Available
//	         not renewed for its duration                    Progressing             False/LeaseExpired
//	         and assigned at least that long ago             Failed                  False/LeaseExpired
//	Custom   the result of the add-on's function             that result             True/Available, False/NotReady, or
//	                                                                                 Unknown/NotReady for an unknown result
//	None     applied                                         Succeeded               True/Available
//
// # Conditions of a MemberAddon
//
//	condition           True                          False                                   Unknown
//	Configured          as its type                   ConfigNotFound, ConfigInvalid,
//	                                                  Unsupported
//	RegistrationReady   NotRequired, Registered       Registering
//	ManifestsApplied    Applied                       NoAgent, ManifestsFailed, Applying,
//	                                                  ApplyFailed, WaitingForTurn, Removing
//	Available           as its type                   NotReady, LeaseExpired, Removing        MemberUnknown, NotReady
//	Progressing         Updating, WaitingForTurn;     Updated; WaitingForTurn if the          MemberUnknown
//	                    during a removal PreDelete,   rollout is paused, stopped or halted;
//	                    Removing                      the reason of a failure
//	Degraded            the reason of a problem,      AsDesired                               MemberUnknown
//	                    ApplyFailed, NotReady,
//	                    LeaseExpired, HookFailed,
//	                    RevokeFailed,
//	                    DeadlineExceeded
//
// An invalid configuration changes neither Available nor the applied objects of the previous revision. An agent whose
// credential is valid but cannot be renewed is Registered, and the message contains the error. The conditions of an
// unreachable member that are not Unknown, and the message, use its last report. During a removal, Configured and
// RegistrationReady do not change.
//
// # Conditions of an Addon
//
//	condition   True                                                  False
//	Installed   Updated: all selected members have the desired        the reason of a problem, Updating, Removing
//	            revision, or no member is selected
//	Degraded    the reason of a problem; RolloutHalted and            AsDesired
//	            ClustersFailed of package placement/v1alpha1
//
// The status of the Addon records forced removals, the newest first, at most [v1alpha1.MaxForcedRemovals]. The member
// and the time identify a record, so that a repeated report does not add one.
//
// Input of members is not trusted and is truncated. Messages do not change with time alone, so that the status of an
// add-on at rest is not written.
//
// # Requirements for controllers
//
//   - rollout.Next must see a member with a Problem as a member that was assigned the desired revision: set it in its
//     Target. Otherwise the failure does not count.
//   - Health is the current health. Store the time of its last change, and use [Since] after a restart.
//   - Pass the result of [MemberOf] for a deleted MemberAddon, from its last known state, to Status: this may be the
//     last observation of a forced removal. It is safer to record the removal before the finalizer is removed.
//   - Call Assess again after [Report].After: a Lease expires without an event. Renewals that change nothing else need
//     no call.
package health
