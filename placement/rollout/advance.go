package rollout

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// advance finds the current stage, and records which stages, and whether the rollout, are done.
func (r *rollout) advance() {
	if r.memory.Rollback == nil {
		r.forward()
		if !r.halted || !r.mustRollBack() {
			return
		}
		r.memory.Rollback = &v1alpha1.RollbackStatus{StartedAt: *stamp(r.Now), Cause: r.failure()}
		r.assess()
	}
	r.current = len(r.stages)
	if r.open == 0 && r.memory.Rollback.FinishedAt == nil {
		rollback := *r.memory.Rollback // the original belongs to the caller
		rollback.FinishedAt = stamp(r.Now)
		r.memory.Rollback, r.memory.StableSince = &rollback, rollback.FinishedAt
	}
}

// forward goes through the stages up to the first one that is not done or has a closed gate.
func (r *rollout) forward() {
	if r.plan.Problem = r.undeclared(); r.plan.Problem != "" {
		r.blocked = "The rollout strategy is invalid: " + r.plan.Problem + "."
		return
	}
	for r.current = range r.stages {
		s := &r.stages[r.current]
		if r.tooManyFailed(s) {
			r.halted = true
			return
		}
		if s.lost {
			r.blocked = fmt.Sprintf("All clusters of mandatory group %s left before the group was updated. The rollout "+
				"continues when a cluster of the group returns. To continue without the group, set the rollout state to Stop and "+
				"back to Run.", s.Name)
			return
		}
		if s.reachedAt == nil {
			s.reachedAt = stamp(r.Now)
		}
		if !r.pass(s, v1alpha1.GateBefore, s.Before, s.reachedAt) || s.open > 0 {
			return
		}
		if s.finishedAt == nil {
			s.finishedAt = stamp(r.Now)
		}
		if !r.pass(s, v1alpha1.GateAfter, s.After, s.finishedAt) {
			return
		}
	}
	r.current = len(r.stages)
	if r.memory.FinishedAt == nil {
		r.memory.FinishedAt = stamp(r.Now)
		r.memory.StableRevision, r.memory.StableSince = r.Revision, r.memory.FinishedAt
	}
}

// tooManyFailed reports whether failures halt the rollout at a stage. A mandatory group tolerates no failure of a
// mandatory group. Failures in other groups do not affect it, because they do not indicate that its clusters would
// fail.
func (r *rollout) tooManyFailed(s *stage) bool {
	if r.isComplete() {
		return false
	}
	mandatory := r.failedMandatory()
	others := r.failures + len(r.left) - mandatory
	return mandatory > 0 || !s.mandatory && (others > r.tolerated() || len(r.left) >= maxUnwell)
}

func (r *rollout) failedMandatory() (n int) {
	for _, c := range r.left {
		if r.isMandatory(c.Group) {
			n++
		}
	}
	for i := range r.stages {
		if !r.stages[i].mandatory {
			return n // mandatory stages come first
		}
		n += r.stages[i].failures
	}
	return n
}

// pass reports whether a gate is open, and otherwise records what the gate waits for. If the rollout is over, all gates
// are open.
func (r *rollout) pass(s *stage, position v1alpha1.GatePosition, gate v1alpha1.RolloutGate, reached *metav1.Time) bool {
	if r.isComplete() {
		return true
	}
	until := reached.Add(seconds(gate.WaitSeconds))
	approval := v1alpha1.RolloutApproval{Revision: r.Revision, Stage: s.Name, Gate: position}
	switch {
	case gate.Approval && !slices.Contains(r.Approvals, approval):
		s.waiting = v1alpha1.PhaseWaitingForApproval
	case r.Now.Before(until):
		s.waiting = v1alpha1.PhaseWaitingForTime
		r.evaluateAt(until)
	default:
		return true
	}
	s.gate, s.until = position, until
	return false
}

// mustRollBack reports whether a failed rollout must be rolled back now.
func (r *rollout) mustRollBack() bool {
	return r.Strategy.OnFailure == v1alpha1.FailureRollBack && r.running() && r.hasStable()
}

func (r *rollout) hasStable() bool {
	return r.memory.StableRevision != "" && r.memory.StableRevision != r.Revision
}

func (r *rollout) running() bool {
	return r.Strategy.State != v1alpha1.RolloutPause && r.Strategy.State != v1alpha1.RolloutStop
}
