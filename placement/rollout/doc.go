// Package rollout decides which clusters may be updated now, and does nothing about it.
//
// A change is a revision of something that clusters have: what is distributed to them, or how an add-on is
// configured. [Next] looks at all clusters, at the strategy and at what it has put into the status before, and
// answers with a [Plan]: which targets to update, which to hold and why, the status to store, and when to look again.
// It is a pure function: it does no I/O, reads no clock and keeps no state, and may be called concurrently. It is
// level-triggered: correct from any observation, however often it is asked.
//
// # Stages
//
// Every strategy is a list of stages, each of which is done before the next begins.
//
//	strategy             stages                                   order within                 on their way at a time
//	All                  one                                      group, name                  all
//	Progressive          one                                      group, name                  maxConcurrency of all, or 25%
//	ProgressivePerGroup  one for each decision group: mandatory   name                         maxConcurrency of all, or all
//	                     ones as listed, the others by index
//	Stages               as listed; a cluster is in the first     label if there is orderBy,   maxConcurrency of the stage, or 1; and
//	                     that selects it, or else in one more     group, name                  maxConcurrency of all, or all
//	                     at the end, "Remaining"
//
// If a Placement divides its decision groups into parts (spec.clustersPerDecisionGroup), each part is a stage. The
// parts of a group are in order, and all of them are mandatory if the group is.
//
// Percentages are rounded down, of the clusters that there are now. maxConcurrency is at least 1.
//
// # Clusters
//
// What a cluster is follows from its record, the deadline (progressDeadlineSeconds) and the soak (minSuccessSeconds),
// which count from when it was told its revision or when its health began, whichever is later:
//
//	at the revision   health                 for            is            holds      its stage is   counts as
//	no                any                                   pending       - (1)      not done       -
//	yes               Progressing, Unknown   < deadline     progressing   slot (2)   not done (2)   -
//	yes               Progressing, Unknown   the deadline   timed out     -          done           failure (3)
//	yes               Failed                                failed        -          done           failure (3)
//	yes               Succeeded              < soak         soaking       slot (2)   not done (2)   -
//	yes               Succeeded              the soak       succeeded     -          done           success
//
//	(1) It has one if it was told another revision since the last success, and is not well yet and within the
//	    deadline. A newer revision then takes it further within that slot, when its turn comes.
//	(2) Not if its stage was done when its health changed: it is not waited for again. Nor if it is where the last
//	    success, or the last way back, left it: then it is unwell for another reason.
//	(3) Not if it is where that left it.
//
// No more clusters are on their way than there are slots, and a slot that is left by a failure is free, since it is
// tolerated. So a revision makes no more than maxConcurrency + maxFailures clusters unavailable.
//
// # Events
//
//	event                                   what happens
//	more than maxFailures fail              halt: nothing more is updated, until fewer fail or there is another revision
//	one fails in a mandatory group          halt
//	some fail elsewhere while a mandatory   nothing: they count when the first group that is not mandatory is to begin
//	group is under way
//	a halt, with onFailure RollBack         whatever is not at the stable revision, the last that succeeded, goes there:
//	                                        what has failed first, within the same slots, without order, gates and soak.
//	                                        The revision is not tried again. With no stable revision it is a halt
//	no more than maxFailures fail           tolerated: their stage is done when all others in it are, and have soaked
//	a cluster was unwell before             it is updated in its turn, and counts from then on
//	a cluster falls ill at the revision     its stage waits for it. If that is done already, it counts only when it
//	                                        fails or times out
//	a cluster joins                         it is pending in its stage, to which the rollout returns before it goes on.
//	                                        Gates that were passed stay passed, and waits that are over stay over
//	a cluster leaves that has failed, or    it goes on to count as failed (4), also in the mandatory group that it was in
//	cannot be reached on its way
//	another cluster leaves                  it counts no more
//	a mandatory group loses its last        halt, without a way back, until one is back (4)
//	cluster when it is its turn
//	a cluster has nothing, and is held      it gets the stable revision, if there is one, whatever holds it and without a slot:
//	                                        to take the place of another cluster is no part of the rollout (5)
//	all clusters are away                   Succeeded, but not finished: it goes on as before when they are back
//	a newer revision                        a new rollout, from the first stage. Who is on the way keeps the slot (1)
//	a stage has no clusters                 its gates hold all the same: a selector that is wrong must not skip an
//	                                        approval
//	a group has no clusters                 there is no such stage
//	a mandatory group is not declared       halt, without a way back: a name that is wrong must not skip it
//	an approval is taken away               the gate is shut again, until the rollout has succeeded
//	Pause, Stop                             nothing more is updated, nor taken back. What is on the way comes to its
//	                                        end, waits go on, and so does all with Run
//	success                                 final. Clusters that join later are updated in order and within the slots,
//	                                        without gates; failures are no affair of the rollout anymore
//
//	(4) Until it is back at the revision, there is another one, or the state is Stop: a person who says Stop and then Run goes
//	    on without it. No more than 20 are remembered; when so many have left, the rollout is halted whatever maxFailures says.
//	    One that could not be reached does not count while there is no stable revision: those in its place would have nothing.
//	(5) It is on the way then, like one that was told an earlier revision (1). Where the stable revision is the goal, after a success
//	    or on the way back, it gets that in its turn, or at once if the state is Pause or Stop.
//
// A cluster that is well and unwell by turns, faster than it soaks, holds its stage for as long as it is.
//
// # What controllers owe
//
//   - Store the status before anything is updated. To lose it costs the way back and begins the waits anew, but no slot
//     is given away twice.
//   - Record with a cluster the revision that it is told and when, in one write, and read that back before looking
//     again. Where a write fails the cluster is named again.
//   - Tell clusters in [Plan].Stable that revision, and record it likewise; who no longer has it tells them nothing.
//   - Health is that at the recorded revision. An answer about one before is Unknown.
//   - Look again when a target, the strategy, the revision or an approval changes, and after [Plan].After.
//
// Times in the status are in whole seconds, rounded down, so a wait may end up to a second early.
package rollout
