package health

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/addon/internal/messages"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/bounded"
	"github.com/muster-sdk/muster/internal/readycondition"
	"github.com/muster-sdk/muster/placement/rollout"
)

// conditions returns the previous conditions with the current ones merged in. During a removal, the configuration and
// the registration are no longer evaluated, and their conditions stay.
func (m *member) conditions() []metav1.Condition {
	current := []metav1.Condition{m.manifestsApplied(), m.isAvailable(), m.progressing(), m.degraded()}
	if m.Removal == nil {
		current = append([]metav1.Condition{m.configured(), m.registrationReady()}, current...)
	}
	conditions := set(m.Before, current, metav1.Condition{ObservedGeneration: m.Generation,
		LastTransitionTime: metav1.NewTime(m.Now)})
	memberReady.Set(&conditions, m.Generation, m.Now, nil)
	return conditions
}

// memberReady derives the condition Ready of a MemberAddon, and addonReady that of an Addon.
var (
	memberReady = readycondition.Rule{
		Required: []string{
			v1alpha1.ConditionConfigured, v1alpha1.ConditionRegistrationReady, v1alpha1.ConditionManifestsApplied,
			v1alpha1.ConditionAvailable,
		},
		Adverse: []string{v1alpha1.ConditionProgressing}, Failure: v1alpha1.ConditionDegraded,
	}
	addonReady = readycondition.Rule{
		Required: []string{v1alpha1.ConditionInstalled, v1alpha1.ConditionAvailable}, Failure: v1alpha1.ConditionDegraded,
	}
)

// set merges conditions into the previous ones.
func set(before, current []metav1.Condition, stamp metav1.Condition) []metav1.Condition {
	conditions := slices.Clone(before)
	for _, condition := range current {
		condition.Message = bounded.Text(condition.Message, messages.MaxMessage)
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

// problem returns the first problem of a condition, or nil.
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
		return not(kind, p.reason(), p.text())
	}
	return is(kind, v1alpha1.ReasonConfigured, "")
}

func (m *member) registrationReady() metav1.Condition {
	const kind = v1alpha1.ConditionRegistrationReady
	switch {
	case !m.registered():
		return not(kind, v1alpha1.ReasonRegistering, m.registering())
	case m.Registration.State == Registered:
		return is(kind, v1alpha1.ReasonRegistered, m.renewalError())
	}
	return is(kind, v1alpha1.ReasonNotRequired, "")
}

// manifestsApplied returns the condition ManifestsApplied. For an unreachable member, it is based on the last report.
// A member that waits for a rollout permit has its previous revision.
func (m *member) manifestsApplied() metav1.Condition {
	const kind = v1alpha1.ConditionManifestsApplied
	switch p := m.problem(kind); {
	case m.Removal != nil:
		return not(kind, v1alpha1.ReasonRemoving, m.Removal.Message)
	case p != nil:
		return not(kind, p.reason(), p.text())
	case m.Revision == "" && m.Hold != "":
		return not(kind, v1alpha1.ReasonWaitingForTurn, holdMessage(m.Hold))
	case !m.reported() || m.updates():
		return not(kind, v1alpha1.ReasonApplying, m.pendingMessage())
	case m.all((*Work).applied):
		return is(kind, v1alpha1.ReasonApplied, "")
	case m.failedForGood(m.worst):
		return not(kind, v1alpha1.ReasonApplyFailed, m.worst.text())
	}
	return not(kind, v1alpha1.ReasonApplying, m.worst.text())
}

// isAvailable returns the condition Available. It describes the revision that runs on the member: an invalid
// configuration does not make the previous revision unavailable.
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
		return is(kind, m.result.reason, m.Removal.Message)
	case m.result.health == rollout.Failed:
		return not(kind, m.result.reason, m.result.message)
	case m.behind() && halted(m.Hold):
		return not(kind, v1alpha1.ReasonWaitingForTurn, holdMessage(m.Hold))
	case m.behind() && m.Hold != "":
		return is(kind, v1alpha1.ReasonWaitingForTurn, holdMessage(m.Hold))
	case m.behind():
		return is(kind, v1alpha1.ReasonUpdating, m.updating())
	case !m.Reachable && !m.applied():
		return unknown(kind, v1alpha1.ReasonMemberUnknown, m.unreachable())
	case !m.Reachable || m.result.health == rollout.Succeeded:
		return not(kind, v1alpha1.ReasonUpdated, "")
	}
	return is(kind, v1alpha1.ReasonUpdating, m.result.message)
}

func (m *member) degraded() metav1.Condition {
	const kind = v1alpha1.ConditionDegraded
	switch {
	case m.Removal != nil && m.Removal.Failed:
		return is(kind, m.result.reason, m.Removal.Message)
	case m.Removal != nil:
	case m.result.health == rollout.Failed:
		return is(kind, m.result.reason, m.result.message)
	case !m.Reachable:
		return unknown(kind, v1alpha1.ReasonMemberUnknown, m.result.message)
	}
	return not(kind, v1alpha1.ReasonAsDesired, "")
}
