// Package progress computes the progress of clusters with a WorkSet from the statuses of their Works: the health that a
// rollout uses, and the status of the WorkSet. It is pure: it uses no client and no clock. All functions may be called
// concurrently.
//
// [Of] extracts the relevant state of a Work; call it when the Work changes. [Cluster.Health] is the input of
// [rollout.Next], and [Status] returns the status of the WorkSet. Both are computed in every reconcile. For thousands
// of clusters this takes milliseconds.
//
// # Health
//
// The first row that applies determines the health:
//
//	the cluster                                              health       reason
//	has a Problem                                            Failed       no action of the member can resolve it
//	cannot be reached                                        Unknown      its last report may be outdated
//	has no revision, or is not Current                       Progressing  its Works are not completely written
//	has a Work that is being deleted, or whose status is     Progressing  the status describes an earlier state
//	about another generation
//	has a Work that is Degraded, but see below               Failed       the agent reports that only a change can help
//	has only Works that are Applied and Available, or none   Succeeded    overrides may remove all objects
//	all others                                               Progressing  the rollout has a deadline
//
// So agents report failures, and these do not only result from deadlines. An agent reports Degraded for an object if:
//
//	it cannot be applied: Invalid, Rejected, Forbidden, AgentForbidden, NotAccepted  Failed
//	another owner has it: InTheWay, Conflict                                         Failed (1)
//	the member does not know its kind: UnknownKind                                   Failed (1)
//	its status reports a failure: NotReady                                           Failed
//	a wave took too long: Timeout                                                    Failed
//	Drift is Report and it was edited: Drifted. New content is not applied to it     Failed (2)
//	with mode Observe or ReportDiff it is missing or differs: NotFound, Differs      Failed (2)
//
//	(1) Not if the cluster has several Works: another Work may define the kind, or give up the object, which the agent
//	    observes some seconds later. If the state lasts longer, the deadline applies.
//	(2) The cluster does not have the content of the revision, which is the criterion of a rollout. To let the rollout
//	    continue, allow maxFailures, or leave the fields to other clients with ignoredFields.
//
// The following are not Degraded:
//
//	mode CreateOnly, and the object existed already: Exists  Applied, and Succeeded if it is ready
//	mode Observe or ReportDiff, and no difference            Applied, and Succeeded if it is ready
//	Jobs that have succeeded: Complete                       Applied and Available
//	Jobs that are running                                    Progressing
//	an attempt failed, and is repeated: Failed               Progressing
//	the object waits: Pending, Terminating                   Progressing; a wave ends with Timeout
//	the Work is suspended                                    Succeeded if no change is necessary, else Progressing
//
// # Status
//
// For equal input, [Status] returns an equal status, including the order of lists and the times of conditions, so the
// status of an idle WorkSet is not written.
//
//	condition    True                                                  False
//	Applied      no cluster lacks content that it must have now:       with the reason of a problem, NoClusters, NotApplied, Deleting
//	             clusters that wait for the rollout have their
//	             assigned content, and every cluster has a revision
//	Available    all clusters can be reached, and all objects are      NoClusters, NotAvailable, Deleting
//	             ready
//	Progressing  the rollout continues or waits, also for a user       it has succeeded, failed, was rolled back, paused or stopped
//	Degraded     with the first reason of: a problem, RolloutHalted,   AsDesired
//	             that of a cluster's Problem, ClustersFailed
//
// A cluster that cannot be reached counts as applied according to its last report, but not as available. Its feedback
// is not added up.
//
// Members are not trusted. Their texts are truncated, numbers that would be long are treated as texts, and if there are
// too many objects, the ones that most clusters report are kept. A status has at most 256 KiB of JSON: if necessary,
// feedback is omitted first, then clusters.
//
// # Duties of controllers
//
//   - If no revision can be assigned to a cluster because an override fails, set the Revision of its Target for
//     [rollout.Next] to the revision anyway. Otherwise the cluster is pending, its failure does not count, and it takes
//     a slot in each evaluation.
//   - [Work].Changed is a time of the member's clock, which may be wrong. Use it as HealthSince only if it is not after
//     the time at which the change was observed.
package progress
