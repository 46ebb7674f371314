package health

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/addon/internal/words"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/bounded"
	"github.com/muster-sdk/muster/internal/readycondition"
	"github.com/muster-sdk/muster/placement/rollout"
)

// conditions of the MemberAddon: those of before, with what is to be said now. While it is removed nobody looks at its
// configuration and its registration any more: what was said of them stays.
func (m *member) conditions() []metav1.Condition {
	said := []metav1.Condition{m.manifestsApplied(), m.isAvailable(), m.progressing(), m.degraded()}
	if m.Removal == nil {
		said = append([]metav1.Condition{m.configured(), m.registrationReady()}, said...)
	}
	conditions := set(m.Before, said, metav1.Condition{ObservedGeneration: m.Generation, LastTransitionTime: metav1.NewTime(m.Now)})
	memberReady.Set(&conditions, m.Generation, m.Now, nil)
	return conditions
}

// memberReady derives the condition Ready of a MemberAddon, and addonReady that of an Addon.
var (
	memberReady = readycondition.Rule{
		Required: []string{
			v1alpha1.ConditionConfigured, v1alpha1.ConditionRegistrationReady, v1alpha1.ConditionManifestsApplied, v1alpha1.ConditionAvailable,
		},
		Adverse: []string{v1alpha1.ConditionProgressing}, Failure: v1alpha1.ConditionDegraded,
	}
	addonReady = readycondition.Rule{
		Required: []string{v1alpha1.ConditionInstalled, v1alpha1.ConditionAvailable}, Failure: v1alpha1.ConditionDegraded,
	}
)

// set puts what is said among the conditions of before.
func set(before, said []metav1.Condition, stamp metav1.Condition) []metav1.Condition {
	conditions := slices.Clone(before)
	for _, condition := range said {
		condition.Message = bounded.Text(condition.Message, words.MaxSentence)
		condition.ObservedGeneration, condition.LastTransitionTime = stamp.ObservedGeneration, stamp.LastTransitionTime
		meta.SetStatusCondition(&conditions, condition)
	}
	return conditions
}

func is(kind, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message}
}

func not(kind, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message}
}

func unknown(kind, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionUnknown, Reason: reason, Message: message}
}

// problem is the first about a condition. Nil: there is none.
func (m *member) problem(kind string) *Problem {
	for i := range m.Problems {
		about := v1alpha1.ConditionManifestsApplied
		switch m.Problems[i].Reason {
		case v1alpha1.ReasonConfigNotFound, v1alpha1.ReasonConfigInvalid, v1alpha1.ReasonUnsupported:
			about = v1alpha1.ConditionConfigured
		case v1alpha1.ReasonRegistering:
			about = v1alpha1.ConditionRegistrationReady
		}
		if about == kind {
			return &m.Problems[i]
		}
	}
	return nil
}

func (m *member) configured() metav1.Condition {
	const kind = v1alpha1.ConditionConfigured
	if p := m.problem(kind); p != nil {
		return not(kind, p.reason(), p.words())
	}
	return is(kind, v1alpha1.ReasonConfigured, "")
}

func (m *member) registrationReady() metav1.Condition {
	const kind = v1alpha1.ConditionRegistrationReady
	switch {
	case !m.registered():
		return not(kind, v1alpha1.ReasonRegistering, m.registering())
	case m.Registration.State == Registered:
		return is(kind, v1alpha1.ReasonRegistered, m.hindered())
	}
	return is(kind, v1alpha1.ReasonNotRequired, "")
}

// manifestsApplied goes by the last word of a member that cannot be reached. Who waits for a turn has what it was told.
func (m *member) manifestsApplied() metav1.Condition {
	const kind = v1alpha1.ConditionManifestsApplied
	switch p := m.problem(kind); {
	case m.Removal != nil:
		return not(kind, v1alpha1.ReasonRemoving, m.Removal.Message)
	case p != nil:
		return not(kind, p.reason(), p.words())
	case m.Revision == "" && m.Hold != "":
		return not(kind, v1alpha1.ReasonWaitingForTurn, held(m.Hold))
	case !m.settled() || m.updates():
		return not(kind, v1alpha1.ReasonApplying, m.unsettled())
	case m.all((*Work).applied):
		return is(kind, v1alpha1.ReasonApplied, "")
	case m.hopeless(m.worst):
		return not(kind, v1alpha1.ReasonApplyFailed, m.worst.words())
	}
	return not(kind, v1alpha1.ReasonApplying, m.worst.words())
}

// isAvailable is about what is there: a configuration that is wrong does not make unwell what runs by the one before.
func (m *member) isAvailable() metav1.Condition {
	const kind = v1alpha1.ConditionAvailable
	switch a := m.available; {
	case m.Removal != nil:
		return not(kind, v1alpha1.ReasonRemoving, m.Removal.Message)
	case a.reason == v1alpha1.ReasonAvailable:
		return is(kind, a.reason, a.message)
	case a.health == rollout.Unknown:
		return unknown(kind, a.reason, a.message)
	default:
		return not(kind, a.reason, a.message)
	}
}

func (m *member) progressing() metav1.Condition {
	const kind = v1alpha1.ConditionProgressing
	switch {
	case m.Removal != nil:
		return is(kind, m.verdict.reason, m.Removal.Message)
	case m.verdict.health == rollout.Failed:
		return not(kind, m.verdict.reason, m.verdict.message)
	case m.behind() && halted(m.Hold):
		return not(kind, v1alpha1.ReasonWaitingForTurn, held(m.Hold))
	case m.behind() && m.Hold != "":
		return is(kind, v1alpha1.ReasonWaitingForTurn, held(m.Hold))
	case m.behind():
		return is(kind, v1alpha1.ReasonUpdating, m.updating())
	case !m.Reachable && !m.applied():
		return unknown(kind, v1alpha1.ReasonMemberUnknown, m.unreachable())
	case !m.Reachable || m.verdict.health == rollout.Succeeded:
		return not(kind, v1alpha1.ReasonUpdated, "")
	}
	return is(kind, v1alpha1.ReasonUpdating, m.verdict.message)
}

func (m *member) degraded() metav1.Condition {
	const kind = v1alpha1.ConditionDegraded
	switch {
	case m.Removal != nil && m.Removal.Failed:
		return is(kind, m.verdict.reason, m.Removal.Message)
	case m.Removal != nil:
	case m.verdict.health == rollout.Failed:
		return is(kind, m.verdict.reason, m.verdict.message)
	case !m.Reachable:
		return unknown(kind, v1alpha1.ReasonMemberUnknown, m.verdict.message)
	}
	return not(kind, v1alpha1.ReasonAsDesired, "")
}
