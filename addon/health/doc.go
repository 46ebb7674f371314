// Package health says how an add-on is doing: on one member, from what its Works, its Lease or its own function say, and on all members
// together. It is pure: no client, no clock. All of it may be called concurrently.
//
// [Of] takes from a Work what matters, when the Work changes. [Assess] makes of that, and of what the hub itself knows, the conditions of a
// MemberAddon, its one sentence, and the health that a rollout goes by. [MemberOf] takes from a MemberAddon what matters, and [Status] sums
// up those of an Addon.
//
// # Health
//
// [Report].Health is for [github.com/muster-sdk/muster/placement/rollout.Next], which knows of soaking and deadlines. The first row counts that is true:
//
//	the add-on on the member                                 health        since
//	has a Problem that is not Retried                        Failed        nothing that the member does can change it
//	is on a member that cannot be reached                    Unknown       what it said last may not be so anymore
//	was told nothing yet, is not Current, or has a Work      Progressing   what is known is about something before
//	that is being deleted or whose status is about another
//	generation
//	has a Work that is Degraded and not all applied          Failed (1)    the member says that it will not come right by itself
//	has a Work that is Degraded otherwise, with type Works,  Failed (1)    its objects say that they have failed
//	or with Workloads because of one of these
//	has a Work that is not all applied                       Progressing
//	has no credential for the hub and needs one, or a        Progressing
//	problem about it that is Retried
//	all else                                                 as the health check says
//
//	(1) Not where the add-on has several Works and the reason is UnknownKind or Conflict, since one of them may define the kind or
//	    give the object up to another, and the agent needs some seconds to find out.
//
// So failures are what members and add-ons say, not only time that has run out. And the health check says:
//
//	type     it goes by                                      health                  condition Available
//	Works    the readiness of all that was applied, such     Succeeded               True/Available
//	         as Deployments: all is ready
//	         not all is                                      Progressing             False/NotReady
//	Work-    that of Deployments, StatefulSets and           Succeeded               True/Available
//	loads    DaemonSets alone: all are ready, or there are
//	         none
//	         not all are                                     Progressing             False/NotReady
//	Lease    it was never renewed                            Progressing             False/NotReady
//	         nor for its duration, or 10 minutes if that     Failed                  False/LeaseExpired
//	         is longer, since the member was told
//	         it was renewed before the member was told       Progressing             True/Available
//	         its revision, less than its duration ago
//	         it was renewed since, likewise                  Succeeded               True/Available
//	         it has not been renewed for its duration        Progressing             False/LeaseExpired
//	         nor for as long since the member was told       Failed                  False/LeaseExpired
//	Custom   the add-on's own function                       as that says            True/Available, False/NotReady, or
//	                                                                                 Unknown/NotReady where it cannot say
//	None     that it is applied                              Succeeded               True/Available
//
// # Conditions of a MemberAddon
//
//	condition           True                                       False                                          Unknown
//	Configured          as it says                                 ConfigNotFound, ConfigInvalid, Unsupported
//	RegistrationReady   NotRequired, Registered                    Registering
//	ManifestsApplied    Applied: the member has what it was told   NoAgent, ManifestsFailed, Applying,
//	                                                               ApplyFailed, WaitingForTurn, Removing
//	Available           as it says                                 NotReady, LeaseExpired, Removing               MemberUnknown, NotReady
//	Progressing         Updating, WaitingForTurn, and while it     Updated, WaitingForTurn where the rollout is   MemberUnknown
//	                    is removed PreDelete, Removing             paused, stopped or halted, the failure
//	Degraded            the failure: the reason of a problem,      AsDesired                                      MemberUnknown
//	                    ApplyFailed, NotReady, LeaseExpired;
//	                    HookFailed, RevokeFailed, DeadlineExceeded
//
// A configuration that is wrong does not make unavailable what runs by the one before, nor is that applied any less. An agent whose credential is good and
// cannot be renewed is Registered, and the message says why. A member that cannot be reached has all that by its
// last word that is not Unknown, and its last word is in the message. Once the removal has begun Configured and RegistrationReady stay as
// they are.
//
// # Conditions of an Addon
//
//	condition   True                                                  False
//	Installed   Updated: all members that are to have it have what    the reason of a problem, Updating, Removing
//	            it is to be there, also if there are none
//	Degraded    the reason of a problem, RolloutHalted,               AsDesired
//	            ClustersFailed: of package placement/v1alpha1
//
// A removal that was forced is on record there, the newest first, for as long as no [v1alpha1.MaxForcedRemovals] others are newer. It is one
// by its member and time, however often it is told of.
//
// Members are not trusted: what they write is cut. Nothing that is said goes on with time, so that what is at rest is not written.
//
// # What controllers owe
//
//   - To rollout.Next a member with a Problem is one that was told the desired revision: give its Target that one. Otherwise its failure
//     does not count.
//   - Health is that of now. Remember since when, and after a restart take [Since].
//   - Give Status what [MemberOf] finds of a MemberAddon that goes, as the event of its deletion has it: where a removal was forced, that may be
//     the last that is seen of it. To put it on record before the finalizer goes is surer.
//   - Call Assess again after [Report].After: a Lease ends without an event. Renewals that change nothing else need no call.
package health
