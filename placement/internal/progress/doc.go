// Package progress says how far clusters are with what a WorkSet has given them: from the statuses of their Works to
// the health that a rollout goes by, and to the status of the WorkSet. It is pure: no client, no clock. All of it may
// be called concurrently.
//
// [Of] takes from a Work what matters, when the Work changes. [Cluster.Health] is for [rollout.Next], and [Status] for
// the WorkSet, whenever one of them is looked at: for thousands of clusters it takes milliseconds.
//
// # Health
//
// The first row counts that is true:
//
//	the cluster                                              health       since
//	has a Problem                                            Failed       nothing that the member does can change it
//	cannot be reached                                        Unknown      what it said last may not be so anymore
//	was told nothing yet, or is not Current                  Progressing  not all of it has been said
//	has a Work that is being deleted, or whose status is     Progressing  what it says is about something before
//	about another generation
//	has a Work that is Degraded, but see below               Failed       it says that it will not come right by itself
//	has only Works that are Applied and Available, or none   Succeeded    overrides may keep all objects from it
//	all else                                                 Progressing  it is on its way; the rollout has a deadline
//
// So failures are what agents say, not only time that has run out. An agent's Degraded means, of an object:
//
//	it cannot be applied as it is: Invalid, Rejected, Forbidden, AgentForbidden,     Failed
//	NotAccepted
//	another owner has it: InTheWay, Conflict                                         Failed (1)
//	the member does not know its kind: UnknownKind                                   Failed (1)
//	it says that it has failed: NotReady                                             Failed
//	a wave took too long: Timeout                                                    Failed
//	Drift is Report and it was edited: Drifted. What is new about it may not be      Failed (2)
//	applied, and will not be
//	mode Observe or ReportDiff, and it is not there, or another: NotFound, Differs   Failed (2)
//
//	(1) Not where the cluster has several Works, since one may define the kind, or give the object up to another, and the agent needs
//	    some seconds to find out. What is so for longer meets the deadline.
//	(2) The cluster has not what the revision says, which is what the rollout asks. Who wants it to go on allows for maxFailures, or
//	    leaves the fields to others by ignoredFields.
//
// And these are not Degraded:
//
//	mode CreateOnly, and it was there already: Exists        Applied, and well if it is ready
//	mode Observe or ReportDiff, and it is as it is to be     Applied, and well if it is ready
//	Jobs that have ended well: Complete                      Applied and Available
//	Jobs that run                                            Progressing
//	an attempt failed, and is repeated: Failed               Progressing
//	it waits: Pending, Terminating                           Progressing; for a wave there is Timeout
//	the Work is suspended                                    as it is: well if nothing is to be changed, else Progressing
//
// # Status
//
// [Status] of the same is the same, down to the order of what it lists and the times of conditions, so that a WorkSet
// at rest is not written.
//
//	condition    True                                                  False
//	Applied      no cluster lacks what it is to have by now: those     with the reason of a problem, NoClusters, NotApplied, Deleting
//	             that wait for their turn have what they were told,
//	             and none was told nothing
//	Available    all clusters can be reached, and all is ready there   NoClusters, NotAvailable, Deleting
//	Progressing  the rollout goes on or waits, also for a person       it has succeeded, failed, was rolled back, paused or stopped
//	Degraded     with the first reason of: a problem, RolloutHalted,   AsDesired
//	             that of a cluster's Problem, ClustersFailed
//
// A cluster that cannot be reached counts as applied by its last word, but not as available; what it fed back is not
// summed up.
//
// Members are not trusted: what they write is cut, numbers that would be long are texts, and objects that only some
// report give way to those that most do. A status is at most 256 KiB of JSON: if need be feedback is left out, then
// clusters.
//
// # What controllers owe
//
//   - A cluster that cannot be told a revision, since an override fails for it, is one that was told, to
//     [rollout.Next]: give its Target that revision. Otherwise it is pending, its failure does not count, and it takes
//     a slot with each look.
//   - [Work].Changed is by the member's clock. Whatever is reckoned from it must bear one that is wrong: take it as
//     HealthSince only if it is not after the time at which the change was seen.
package progress
