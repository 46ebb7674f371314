package rollout

import (
	"errors"
	"fmt"
	"time"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// Observed is what is known of a rollout.
type Observed struct {
	Now      time.Time
	Strategy v1alpha1.RolloutStrategy
	// Revision that is to be rolled out. It names what is distributed, a hash for example: one that was rolled back is
	// not tried again under its name.
	Revision string
	// Targets are the clusters, in any order, each once.
	Targets []Target
	// Groups are all decision groups that are declared, with clusters or without, for ProgressivePerGroup: a
	// mandatory group that is none of them holds the rollout. Nil: not known; every group is taken for a declared
	// one.
	Groups    []Group
	Approvals []v1alpha1.RolloutApproval
	// Status is that of the last [Plan]. Zero: there is none yet.
	Status v1alpha1.RolloutStatus
}

// Target is a cluster, and what is on record about it.
type Target struct {
	Name   string
	Group  Group             // for ProgressivePerGroup
	Labels map[string]string // for Stages
	// Revision that it is at or on its way to: the one that it was last told. Empty: none.
	Revision string
	// Since is when it was told that, by the clock that Now is of.
	Since time.Time
	// Health is how it fares at Revision. What is known only of another revision is [Unknown].
	Health Health
	// HealthSince is since when. It need not start anew where Progressing and Unknown follow on each other.
	HealthSince time.Time
}

// Group is the decision group that a cluster is in, or a part of it. A reference to a group by name or index is a
// reference to all of its parts.
type Group struct {
	Name  string // may be empty
	Index int32
	Part  int32 // counted from 0; parts of a group are updated in this order
}

// Health is how a cluster fares at a revision.
type Health string

// The healths of a cluster. Any other is taken for Unknown.
const (
	Progressing Health = "Progressing"
	Succeeded   Health = "Succeeded"
	Failed      Health = "Failed"
	Unknown     Health = "Unknown" // its cluster cannot be reached, for example
)

// Plan is what may be done now.
type Plan struct {
	// Update names the clusters to take to Revision, those first that are to be first.
	Update   []string
	Revision string
	// Hold has every other cluster that is not at Revision, in the order in which they will get their turn.
	Hold []Hold
	// Stable names those on Hold that have nothing, and can have Status.StableRevision until it is their turn: at once,
	// whatever holds them, in their order. To have a cluster take the place of another one is no part of the rollout.
	Stable []string
	// Problem is what is wrong with the strategy and holds everybody, as the path of a field in it and what to do. Empty:
	// nothing.
	Problem string
	// Status to store. It must be stored before anything is updated.
	Status v1alpha1.RolloutStatus
	// After is when time alone will have changed something, and not before. Zero: never.
	After time.Duration
}

// Hold is a cluster that is not to be updated yet, and why.
type Hold struct {
	Target string
	Reason HoldReason
}

// HoldReason says why a cluster is not to be updated yet.
type HoldReason string

// The reasons to hold a cluster.
const (
	HoldConcurrency HoldReason = "MaxConcurrency" // as many as may be are on their way
	HoldOrder       HoldReason = "Order"          // a stage or group before its own is not done
	HoldApproval    HoldReason = "Approval"       // its stage waits for one
	HoldTime        HoldReason = "Time"           // its stage waits for some to pass
	HoldPaused      HoldReason = "Paused"
	HoldStopped     HoldReason = "Stopped"
	HoldFailures    HoldReason = "MaxFailures" // more clusters have failed than may
)

// Next decides which clusters may be updated now. It fails only for what can never be carried out: a strategy that is
// not valid, or no revision.
func Next(o Observed) (Plan, error) {
	if errs := o.Strategy.Validate(nil); len(errs) > 0 {
		return Plan{}, fmt.Errorf("roll out %q: strategy: %w", o.Revision, errs.ToAggregate())
	}
	if o.Revision == "" {
		return Plan{}, errors.New("roll out: there is no revision")
	}
	r := &rollout{Observed: o, memory: remember(o)}
	if len(o.Targets) == 0 {
		return r.withoutTargets(), nil
	}
	if err := r.arrange(); err != nil {
		return Plan{}, fmt.Errorf("roll out %q: %w", o.Revision, err)
	}
	r.recall()
	r.assess()
	r.advance()
	r.choose()
	return r.report(), nil
}

// rollout is one look at a rollout.
type rollout struct {
	Observed
	memory v1alpha1.RolloutStatus // what of the status is not said anew each time

	members []member // in their order
	stages  []stage  // each with its part of them
	tally

	left    []v1alpha1.UnwellCluster // that have failed, and left
	current int                      // the stage whose turn it is; len(stages): all are done
	halted  bool                     // by failures
	blocked string                   // by what else; empty: by nothing
	plan    Plan
	next    time.Time // when time alone changes something; zero: never
}

// remember keeps what a status remembers of the revision, and nothing of one before but which was stable.
func remember(o Observed) v1alpha1.RolloutStatus {
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

// goal is the revision that clusters shall be at.
func (r *rollout) goal() string {
	if r.memory.Rollback != nil {
		return r.memory.StableRevision
	}
	return r.Revision
}

// over reports whether the rollout has come to an end that nothing but another revision changes.
func (r *rollout) over() bool {
	return r.memory.FinishedAt != nil || r.memory.Rollback != nil && r.memory.Rollback.FinishedAt != nil
}

// wake has the rollout looked at again at a time, if that is still to come.
func (r *rollout) wake(at time.Time) {
	if at.After(r.Now) && (r.next.IsZero() || at.Before(r.next)) {
		r.next = at
	}
}
