package progress

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/internal/bounded"
	"github.com/muster-sdk/muster/internal/readycondition"
	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// conditions returns the former conditions of the WorkSet, updated to the current state.
func (s *summary) conditions() []metav1.Condition {
	conditions := slices.Clone(s.Before.Conditions)
	for _, condition := range []metav1.Condition{s.applied(), s.available(), s.progressing(), s.degraded()} {
		condition.Message = bounded.Text(condition.Message, maxMessageLength)
		condition.ObservedGeneration = s.Generation
		condition.LastTransitionTime = metav1.NewTime(s.Now)
		meta.SetStatusCondition(&conditions, condition)
	}
	readyRule.Set(&conditions, s.Generation, s.Now, nil)
	return conditions
}

// readyRule derives the condition Ready of a WorkSet: the rollout is complete, and its objects are available on all
// clusters.
var readyRule = readycondition.Rule{
	Required: []string{v1alpha1.ConditionApplied, v1alpha1.ConditionAvailable},
	Adverse:  []string{v1alpha1.ConditionProgressing}, Failure: v1alpha1.ConditionDegraded,
}

func is(kind, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message}
}

func not(kind, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message}
}

// applied returns the condition Applied. It is not True while there is a problem, because the clusters then do not, or
// not all, have the content of the spec.
func (s *summary) applied() metav1.Condition {
	const kind = v1alpha1.ConditionApplied
	switch {
	case s.Deleting:
		return not(kind, v1alpha1.ReasonDeleting, s.deletionMessage())
	case len(s.Problems) > 0:
		return not(kind, s.problemReason(), s.problemMessage())
	case s.counts.Total == 0:
		return not(kind, v1alpha1.ReasonNoClusters, noClusters)
	case s.lacking.n > 0:
		return not(kind, v1alpha1.ReasonNotApplied,
			s.groupMessage(s.lacking, fmt.Sprintf("Objects are not applied on %s", s.of(s.lacking.n))))
	}
	return is(kind, v1alpha1.ReasonApplied, "")
}

// available returns the condition Available. It is not True without clusters, because a user who waits for it expects
// at least one.
func (s *summary) available() metav1.Condition {
	const kind = v1alpha1.ConditionAvailable
	switch {
	case s.Deleting:
		return not(kind, v1alpha1.ReasonDeleting, s.deletionMessage())
	case s.counts.Total == 0:
		return not(kind, v1alpha1.ReasonNoClusters, noClusters)
	case s.unready.n > 0:
		return not(kind, v1alpha1.ReasonNotAvailable,
			s.groupMessage(s.unready, fmt.Sprintf("Objects are not available on %s", s.of(s.unready.n))))
	}
	return is(kind, v1alpha1.ReasonAvailable, "")
}

func (s *summary) progressing() metav1.Condition {
	const kind = v1alpha1.ConditionProgressing
	phase := cmp.Or(s.Rollout.Phase, v1alpha1.PhasePending)
	switch {
	case s.Deleting:
		return is(kind, v1alpha1.ReasonDeleting, s.deletionMessage())
	case s.Rollout.Phase == "":
		return not(kind, string(phase), "")
	}
	switch phase {
	case v1alpha1.PhaseSucceeded, v1alpha1.PhaseFailed, v1alpha1.PhaseRolledBack, v1alpha1.PhasePaused,
		v1alpha1.PhaseStopped:
		return not(kind, string(phase), s.Rollout.Message)
	}
	return is(kind, string(phase), s.Rollout.Message)
}

func (s *summary) degraded() metav1.Condition {
	const kind = v1alpha1.ConditionDegraded
	switch {
	case len(s.Problems) > 0:
		return is(kind, s.problemReason(), s.problemMessage())
	case s.Deleting:
	case s.halted():
		return is(kind, v1alpha1.ReasonRolloutHalted, s.failureMessage())
	case s.unassigned.n > 0:
		return is(kind, cmp.Or(s.unassigned.first.Reason, v1alpha1.ReasonOverrideFailed), s.failureMessage())
	case s.failed.n > 0:
		return is(kind, v1alpha1.ReasonClustersFailed, s.failureMessage())
	}
	return not(kind, v1alpha1.ReasonAsDesired, "")
}

// halted reports whether the rollout of the revision was halted or rolled back.
func (s *summary) halted() bool {
	switch s.Rollout.Phase {
	case v1alpha1.PhaseFailed, v1alpha1.PhaseRollingBack, v1alpha1.PhaseRolledBack:
		return true
	}
	return false
}

// problemReason returns a valid reason of a condition: the API server rejects a status with an empty one.
func (s *summary) problemReason() string { return cmp.Or(s.Problems[0].Reason, v1alpha1.ReasonInvalid) }

func (s *summary) problemMessage() string {
	first := bounded.Text(cmp.Or(s.Problems[0].Message, s.problemReason()), maxMessage)
	switch more := len(s.Problems) - 1; more {
	case 0:
		return limitMessage(first)
	case 1:
		return strings.TrimSuffix(first, ".") + " (1 more problem)."
	default:
		return fmt.Sprintf("%s (%d more problems).", strings.TrimSuffix(first, "."), more)
	}
}
