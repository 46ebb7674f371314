package rollout

import "github.com/muster-sdk/muster/placement/v1alpha1"

// maxRows is the maximum number of stages in a status, as in the API. A stage that is left out is not stored, and is
// treated as not done, which costs at most another wait.
const maxRows = 256

// report returns the plan with the complete status.
func (r *rollout) report() Plan {
	status := r.memory
	status.Unwell = r.unwell()
	status.RolloutCounts = r.counts()
	status.Phase = r.phase()
	status.Message = r.message(status.Phase)
	status.Stages = make([]v1alpha1.RolloutStageStatus, 0, min(len(r.stages), maxRows))
	for i := range min(len(r.stages), maxRows) {
		s := &r.stages[i]
		status.Stages = append(status.Stages, v1alpha1.RolloutStageStatus{
			Name: s.Name, Phase: r.stagePhase(s), RolloutCounts: s.counts(), ReachedAt: s.reachedAt, FinishedAt: s.finishedAt,
		})
	}
	r.plan.Status = status
	if !r.next.IsZero() {
		r.plan.After = r.next.Sub(r.Now)
	}
	return r.plan
}

// withoutTargets returns the plan for a rollout without targets. It keeps the stored state, because the targets may be
// missing only temporarily. It does not finish the rollout: a revision that no target had is not known to work.
func (r *rollout) withoutTargets() Plan {
	status := r.memory
	status.Phase, status.Message = v1alpha1.PhaseSucceeded, "The rollout has no clusters."
	if status.Rollback != nil {
		status.Phase = v1alpha1.PhaseRolledBack
	}
	status.RolloutCounts = v1alpha1.RolloutCounts{}
	return Plan{Revision: r.goal(), Status: status}
}

func (t *tally) counts() v1alpha1.RolloutCounts {
	c := v1alpha1.RolloutCounts{
		Pending: int32(t.count[pending]), Progressing: int32(t.count[progressing]), Soaking: int32(t.count[soaking]),
		Succeeded: int32(t.count[succeeded]), Failed: int32(t.count[failed]), TimedOut: int32(t.count[timedOut]),
	}
	c.Total = c.Pending + c.Progressing + c.Soaking + c.Succeeded + c.Failed + c.TimedOut
	return c
}

// phase returns the phase of the rollout. An ended rollout takes precedence, then the state that the user requests.
func (r *rollout) phase() v1alpha1.RolloutPhase {
	rollback := r.memory.Rollback
	switch {
	case r.memory.FinishedAt != nil:
		return v1alpha1.PhaseSucceeded
	case rollback != nil && rollback.FinishedAt != nil:
		return v1alpha1.PhaseRolledBack
	case r.Strategy.State == v1alpha1.RolloutStop:
		return v1alpha1.PhaseStopped
	case r.Strategy.State == v1alpha1.RolloutPause:
		return v1alpha1.PhasePaused
	case rollback != nil:
		return v1alpha1.PhaseRollingBack
	case r.halted, r.blocked != "":
		return v1alpha1.PhaseFailed
	case r.stages[r.current].waiting != "":
		return r.stages[r.current].waiting
	case r.busy == 0 && r.taken > 0 && len(r.plan.Update) == 0:
		return v1alpha1.PhaseSoaking
	}
	return v1alpha1.PhaseProgressing
}

func (r *rollout) stagePhase(s *stage) v1alpha1.RolloutPhase {
	switch {
	case r.memory.Rollback != nil && s.open > 0:
		return v1alpha1.PhaseRollingBack
	case r.memory.Rollback != nil:
		return v1alpha1.PhaseRolledBack
	case s.lost, r.halted && s.failures > 0:
		return v1alpha1.PhaseFailed
	case s.waiting != "":
		return s.waiting
	case s.reachedAt == nil:
		return v1alpha1.PhasePending
	case s.open == 0 && s.finishedAt != nil:
		return v1alpha1.PhaseSucceeded
	case s.count[soaking] > 0 && s.busy == 0 && s.count[pending] == 0:
		return v1alpha1.PhaseSoaking
	}
	return v1alpha1.PhaseProgressing
}
