// Package rollout decides which clusters may be updated now. It does not update them.
//
// A rollout brings clusters to a revision, such as a revision of distributed objects or of the configuration of an
// add-on. [Next] evaluates all clusters, the strategy and the status of the last plan, and returns a [Plan]: the
// targets to update, the targets to hold with the reason, the status to store, and the time of the next evaluation.
// It is a pure function: it does no I/O, reads no clock, keeps no state, and may be called concurrently. It is
// level-triggered: its result is correct for any observation and any frequency of calls.
//
// # Stages
//
// Every strategy is a list of stages. Each stage must be done before the next one begins.
//
//	strategy             stages                                   order within a stage         updated at a time
//	All                  one                                      group, name                  all
//	Progressive          one                                      group, name                  maxConcurrency of all, or 25%
//	ProgressivePerGroup  one for each decision group: mandatory   name                         maxConcurrency of all, or all
//	                     groups as listed, the others by index
//	Stages               as listed; a cluster is in the first     label if orderBy is set,     maxConcurrency of the stage, or 1;
//	                     stage that selects it, or else in an     group, name                  and of all, or all
//	                     additional last stage, "Remaining"
//
// If a Placement divides its decision groups into parts (spec.clustersPerDecisionGroup), each part is a stage. The
// parts of a group are in order. If a group is mandatory, all of its parts are.
//
// Percentages refer to the clusters that exist now, and are rounded down. maxConcurrency is at least 1.
//
// # Clusters
//
// The state of a cluster follows from its recorded revision, its health, the deadline (progressDeadlineSeconds) and the
// soak time (minSuccessSeconds). Both times count from the assignment of the revision or the last change of the health,
// whichever is later:
//
//	at the revision   health                 for            state         holds      its stage is   counts as
//	no                any                                   pending       - (1)      not done       -
//	yes               Progressing, Unknown   < deadline     progressing   slot (2)   not done (2)   -
//	yes               Progressing, Unknown   the deadline   timed out     -          done           failure (3)
//	yes               Failed                                failed        -          done           failure (3)
//	yes               Succeeded              < soak         soaking       slot (2)   not done (2)   -
//	yes               Succeeded              the soak       succeeded     -          done           success
//
//	(1) The cluster holds a slot if another revision was assigned to it since the last success, and it is neither
//	    Succeeded nor Failed nor past the deadline. A newer revision is later assigned to it within this slot, in the
//	    order of stages.
//	(2) Not if the stage was done when the health changed: the stage does not wait for the cluster again. Nor if the
//	    revision was assigned before the last success or the last rollback ended: its health then has another cause.
//	(3) Not if the revision was assigned before the last success or the last rollback ended.
//
// At most as many clusters are being updated as there are slots. A failed cluster holds no slot, because a tolerated
// failure must not block the rollout. So a revision makes at most maxConcurrency + maxFailures clusters unavailable.
//
// # Events
//
//	event                                   effect
//	more than maxFailures clusters fail     halt: no cluster is updated until fewer have failed or there is another
//	                                        revision
//	a cluster fails in a mandatory group    halt
//	clusters fail in other groups during a  none: they count when the first group that is not mandatory is about to begin
//	mandatory group
//	a halt, with onFailure RollBack         clusters that are not at the stable revision, which is the last that
//	                                        succeeded, return to it: failed clusters first, within the same slots,
//	                                        without order, gates and soak time. The revision is not tried again. Without
//	                                        a stable revision the rollout only halts
//	at most maxFailures clusters fail       tolerated: a stage is done when all its other clusters are done and have
//	                                        soaked
//	a cluster was unhealthy before          it is updated in its order, and counts from then on
//	a cluster becomes unhealthy at the      its stage waits for it. If the stage is done already, the cluster counts only
//	revision                                when it fails or times out
//	a cluster joins                         it is pending in its stage, and the rollout returns to that stage before it
//	                                        continues. Gates stay passed, and waits that have ended stay ended
//	a cluster leaves that has failed, or    it still counts as failed (4), also in its mandatory group
//	cannot be reached during its update
//	another cluster leaves                  it no longer counts
//	a mandatory group loses its last        halt, without a rollback, until a cluster of the group is back (4)
//	cluster while it is the current stage
//	a cluster without a revision is held    it gets the stable revision, if there is one, regardless of the reason and
//	                                        without a slot: replacing a cluster is not part of the rollout (5)
//	all clusters are missing                Succeeded, but not finished: the rollout continues when they are back
//	a newer revision                        a new rollout, from the first stage. Clusters being updated keep their slots
//	                                        (1)
//	a stage has no clusters                 its gates apply nevertheless: a wrong selector must not skip an approval
//	a group has no clusters                 the stage does not exist
//	a mandatory group is not declared       halt, without a rollback: a wrong name must not skip the group
//	an approval is withdrawn                the gate is closed again, until the rollout has succeeded
//	Pause, Stop                             no cluster is updated or rolled back. Updates in progress are completed and
//	                                        waits continue. With Run the rollout continues
//	success                                 final. Clusters that join later are updated in order and within the slots,
//	                                        without gates. Failures no longer affect the rollout
//
//	(4) Until the cluster is back at the revision, there is another revision, or the state is Stop: a user who sets Stop
//	    and then Run continues without the cluster. At most 20 such clusters are stored. If 20 have left, the rollout
//	    halts regardless of maxFailures. A cluster that could not be reached does not count while there is no stable
//	    revision: its replacements would have none.
//	(5) The cluster is then being updated, as if an earlier revision had been assigned to it (1). If the stable revision
//	    is the goal, after a success or during a rollback, the cluster gets it in its order, or immediately if the state
//	    is Pause or Stop.
//
// A cluster whose health alternates faster than its soak time blocks its stage while that lasts.
//
// # Duties of controllers
//
//   - Store the status before any cluster is updated. If the status is lost, a rollback is no longer possible and waits
//     begin again, but no slot is used twice.
//   - Record the assigned revision of a cluster and the time in one write, and observe that write before the next
//     evaluation. If a write fails, the next plan names the cluster again.
//   - Assign the stable revision to the clusters in [Plan].Stable, and record it likewise. If its content no longer
//     exists, assign nothing to them.
//   - Report the health at the recorded revision. If only the health at an earlier revision is known, report Unknown.
//   - Evaluate again when a target, the strategy, the revision or an approval changes, and after [Plan].After.
//
// Times in the status are whole seconds, rounded down, so a wait may end up to a second early.
package rollout
