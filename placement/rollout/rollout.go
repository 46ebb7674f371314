package rollout

import (
	"errors"
	"fmt"
	"time"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// Observed is the observed state of a rollout.
type Observed struct {
	Now      time.Time
	Strategy v1alpha1.RolloutStrategy
	// Revision is the revision to roll out. It must identify the content, as a hash does: a revision that was rolled back
	// is not tried again under the same name.
	Revision string
	// Targets are the clusters, in any order, each once.
	Targets []Target
	// Groups are all declared decision groups, with or without clusters, for ProgressivePerGroup: a mandatory group that
	// is not declared blocks the rollout. Nil: unknown; every group counts as declared.
	Groups    []Group
	Approvals []v1alpha1.RolloutApproval
	// Status is the status of the last [Plan]. Zero: there is none yet.
	Status v1alpha1.RolloutStatus
}

// Target is a cluster and its recorded state.
type Target struct {
	Name string
	// Group is the decision group of the cluster, for the types Progressive and ProgressivePerGroup.
	Group Group
	// Labels are the labels of the cluster, for the selectors of Stages.
	Labels map[string]string
	// Revision is the revision that was last assigned to the cluster. Empty: none.
	Revision string
	// Since is the time at which Revision was assigned, by the clock of Now.
	Since time.Time
	// Health is the health of the cluster at Revision. If only the health at another revision is known, it is [Unknown].
	Health Health
	// HealthSince is the time of the last change of Health. It need not change between Progressing and Unknown.
	HealthSince time.Time
}

// Group is the decision group of a cluster, or a part of it. A reference to a group by name or index refers to all of
// its parts.
type Group struct {
	// Name is the name of the decision group. It may be empty.
	Name  string
	Index int32
	// Part is the number of the part, from 0. The parts of a group are updated in this order.
	Part int32
}

// Health is the health of a cluster at a revision.
type Health string

// The healths of a cluster. Any other value is treated as Unknown.
const (
	Progressing Health = "Progressing"
	Succeeded   Health = "Succeeded"
	Failed      Health = "Failed"
	// Unknown: the health cannot be determined, for example because the cluster cannot be reached.
	Unknown Health = "Unknown"
)

// Plan is the decision which clusters may be updated now.
type Plan struct {
	// Update names the clusters to update to Revision, in their order.
	Update   []string
	Revision string
	// Hold lists every other cluster that is not at Revision, in the order of their updates.
	Hold []Hold
	// Stable names the clusters in Hold that have no revision, and get Status.StableRevision until they are updated: at
	// once, for any reason of Hold, in their order. Replacing a cluster by another one is not part of a rollout.
	Stable []string
	// Problem is the error in the strategy that blocks every cluster: the path of the field, and what to change. Empty:
	// none.
	Problem string
	// Status is the new status. Store it before any cluster is updated.
	Status v1alpha1.RolloutStatus
	// After is the time after which the plan changes without any other change. Zero: never.
	After time.Duration
}

// Hold is a cluster that is not updated yet, and the reason.
type Hold struct {
	Target string
	Reason HoldReason
}

// HoldReason is the reason why a cluster is not updated yet.
type HoldReason string

// The reasons to hold a cluster.
const (
	HoldConcurrency HoldReason = "MaxConcurrency" // the maximum number of clusters is being updated
	HoldOrder       HoldReason = "Order"          // an earlier stage or group is not done
	HoldApproval    HoldReason = "Approval"       // its stage waits for an approval
	HoldTime        HoldReason = "Time"           // its stage waits for a time
	HoldPaused      HoldReason = "Paused"
	HoldStopped     HoldReason = "Stopped"
	HoldFailures    HoldReason = "MaxFailures" // more clusters have failed than maxFailures
)

// Next decides which clusters may be updated now. It returns an error only if the strategy is invalid or there is no
// revision.
func Next(o Observed) (Plan, error) {
	if errs := o.Strategy.Validate(nil); len(errs) > 0 {
		return Plan{}, fmt.Errorf("roll out %q: strategy: %w", o.Revision, errs.ToAggregate())
	}
	if o.Revision == "" {
		return Plan{}, errors.New("roll out: the revision must not be empty")
	}
	r := &rollout{Observed: o, memory: relevantStatus(o)}
	if len(o.Targets) == 0 {
		return r.withoutTargets(), nil
	}
	if err := r.arrange(); err != nil {
		return Plan{}, fmt.Errorf("roll out %q: %w", o.Revision, err)
	}
	r.findDeparted()
	r.assess()
	r.advance()
	r.choose()
	return r.report(), nil
}

// rollout is one evaluation of a rollout.
type rollout struct {
	Observed
	memory v1alpha1.RolloutStatus // the part of the status that is kept between evaluations

	members []member // in the order of their updates
	stages  []stage  // each with its members
	tally

	left    []v1alpha1.UnwellCluster // clusters that failed and then left
	current int                      // the current stage; len(stages): all are done
	halted  bool                     // too many clusters have failed
	blocked string                   // a message about another cause that blocks the rollout; empty: none
	plan    Plan
	next    time.Time // the next time at which the plan changes by itself
}

// relevantStatus returns the part of the last status that applies to the revision. Of a status for another revision,
// only the stable revision applies.
func relevantStatus(o Observed) v1alpha1.RolloutStatus {
	was := o.Status
	if was.Revision == o.Revision {
		if o.Strategy.State == v1alpha1.RolloutStop {
			was.Unwell = nil
		}
		return was
	}
	return v1alpha1.RolloutStatus{
		Revision: o.Revision, StartedAt: stamp(o.Now),
		StableRevision: was.StableRevision, StableSince: was.StableSince,
	}
}

// goal returns the revision that clusters must have.
func (r *rollout) goal() string {
	if r.memory.Rollback != nil {
		return r.memory.StableRevision
	}
	return r.Revision
}

// isComplete reports whether the rollout has ended: only another revision starts it again.
func (r *rollout) isComplete() bool {
	return r.memory.FinishedAt != nil || r.memory.Rollback != nil && r.memory.Rollback.FinishedAt != nil
}

// evaluateAt schedules an evaluation at a time, if that is in the future.
func (r *rollout) evaluateAt(at time.Time) {
	if at.After(r.Now) && (r.next.IsZero() || at.Before(r.next)) {
		r.next = at
	}
}
