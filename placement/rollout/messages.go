package rollout

import (
	"fmt"
	"strings"
	"time"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// message returns the message for users. It contains nothing that changes with time alone, so that the status of an
// idle rollout does not change.
func (r *rollout) message(phase v1alpha1.RolloutPhase) string {
	updated := fmt.Sprintf("%d of %s at %s", r.count[succeeded], clusters(len(r.members)), r.goal())
	switch phase {
	case v1alpha1.PhaseSucceeded:
		return fmt.Sprintf("Complete: %s.", updated)
	case v1alpha1.PhaseRolledBack, v1alpha1.PhaseRollingBack:
		return fmt.Sprintf("Rolled back: %s. %s", updated, r.memory.Rollback.Cause)
	case v1alpha1.PhaseStopped, v1alpha1.PhasePaused:
		return fmt.Sprintf("%s: %s.", phase, updated)
	case v1alpha1.PhaseFailed:
		if r.blocked != "" {
			return r.blocked
		}
		text := r.failure()
		if len(r.left) > 0 {
			text += " Clusters that have left count until the revision changes or the rollout state is set to Stop."
		}
		if r.Strategy.OnFailure == v1alpha1.FailureRollBack && !r.hasStable() {
			text += " There is no revision to roll back to."
		}
		return text
	}
	s := &r.stages[r.current]
	switch phase {
	case v1alpha1.PhaseWaitingForApproval:
		return fmt.Sprintf("Waiting for the approval %s stage %s.", strings.ToLower(string(s.gate)), s.Name)
	case v1alpha1.PhaseWaitingForTime:
		return fmt.Sprintf("Waiting until %s %s stage %s.", s.until.UTC().Format(time.RFC3339),
			strings.ToLower(string(s.gate)), s.Name)
	case v1alpha1.PhaseSoaking:
		return fmt.Sprintf("Waiting%s for %s to stay healthy for %s: %s.", r.where(), clusters(r.taken),
			seconds(r.Strategy.MinSuccessSeconds), updated)
	}
	return fmt.Sprintf("Updating%s: %s, %d progressing.", r.where(), updated, r.updating+len(r.plan.Update))
}

func (r *rollout) where() string {
	switch name := r.stages[r.current].Name; r.Strategy.Type {
	case v1alpha1.RolloutStages:
		return " in stage " + name
	case v1alpha1.RolloutProgressivePerGroup:
		return " in group " + name
	}
	return ""
}

// failure returns a message with the clusters that have failed and the limit that they exceed.
func (r *rollout) failure() string {
	mandatory := r.failedMandatory() > 0
	var names []string
	for i := range r.members {
		if m := &r.members[i]; m.countsAsFailure && r.stages[m.stage].mandatory == mandatory {
			names = append(names, m.Name)
		}
	}
	for _, c := range r.left {
		if r.isMandatory(c.Group) == mandatory {
			names = append(names, c.Name+" (left)")
		}
	}
	if mandatory {
		return fmt.Sprintf("%s of a mandatory group failed: %s.", clusters(len(names)), few(names))
	}
	return fmt.Sprintf("%s failed, and maxFailures allows %d: %s.", clusters(len(names)), r.tolerated(), few(names))
}

func clusters(n int) string {
	if n == 1 {
		return "1 cluster"
	}
	return fmt.Sprintf("%d clusters", n)
}

// few returns some of the names, to limit the length of the message.
func few(names []string) string {
	const enough = 3
	if len(names) <= enough {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:enough], ", "), len(names)-enough)
}
