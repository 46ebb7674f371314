package health

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/addon/internal/messages"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/bounded"
	"github.com/muster-sdk/muster/placement/rollout"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// defaultLease is how long a Lease is valid after its last observed renewal if the add-on sets no duration.
const defaultLease = 180 * time.Second

// startTime is the minimum time that an agent has to pull its image, start and renew its Lease for the first time, from
// the assignment of the revision. It equals the default progressDeadlineSeconds of a Deployment.
const startTime = 10 * time.Minute

// Observed is the observed state of an add-on on one member.
type Observed struct {
	// Generation is the generation of the MemberAddon to which the report applies.
	Generation int64
	// Before are the current conditions. A condition that does not change keeps its transition time, and conditions of
	// other types stay.
	Before []metav1.Condition
	// Now is the transition time of changed conditions. It must not be zero.
	Now time.Time

	// Reachable is true if the member, and the hosting member of its agent if there is one, are healthy.
	Reachable bool
	// Hosting is the name of the hosting member if that one is unreachable. Empty: the member itself.
	Hosting string
	// Problems are errors that no member can solve, in any order.
	Problems []Problem
	// Registration is the registration of the add-on's agent. The zero value: no registration is required.
	Registration Registration

	// Desired is the revision that the member must have in the end. Empty: not known yet.
	Desired string
	// Revision is the last revision that the member was assigned, and Since its time, by the clock of Now. Empty: none.
	Revision string
	Since    time.Time
	// Hold is the reason why the rollout blocks Desired. Empty: not blocked.
	Hold rollout.HoldReason
	// Current is true if the Works on the hub match Revision: up-to-date content, none missing, none in excess.
	Current bool
	// Works are the Works of the add-on without hooks, in any order.
	Works []Work

	// Check defines how the health is determined. The zero value is type Works.
	Check v1alpha1.HealthCheck
	// Renewed is the time of the last Lease renewal that the hub observed, by the clock of the hub. Zero: none. After a
	// restart, it is the time of the first observation.
	Renewed time.Time
	// Answer is the result of the add-on's health function.
	Answer Answer

	// Removal is the state of the removal. Nil: the MemberAddon is not being deleted.
	Removal *Removal
}

// Problem is an error that a member cannot solve.
type Problem struct {
	// Reason is a reason of the API. ConfigNotFound, ConfigInvalid and Unsupported belong to the condition Configured,
	// Registering belongs to RegistrationReady, and all others, such as NoAgent and ManifestsFailed, to ManifestsApplied.
	Reason string
	// Message describes the error and the next step.
	Message string
	// Retried is true if the operation is retried. Such a problem is reported, but is not a failure.
	Retried bool
}

// Registration is the state of the access of the add-on's agent to the hub.
type Registration struct {
	State RegistrationState
	// Message describes what the registration waits for. For a Registered one, it is an error that occurred since.
	// Empty: nothing to add.
	Message string
}

// RegistrationState is the progress of a registration.
type RegistrationState string

// The states of a registration. Other values are treated as Registering.
const (
	NotRequired RegistrationState = ""
	Registering RegistrationState = "Registering"
	Registered  RegistrationState = "Registered"
)

// Answer is the result of the add-on's health function.
type Answer struct {
	// Health is Succeeded for a healthy add-on and Failed for a failure that requires a change. Empty means Unknown.
	Health rollout.Health
	// Message is the reason.
	Message string
}

// Removal is the state of a removal, as package removal reports it.
type Removal struct {
	// Reason and Message describe the step.
	Reason, Message string
	// Failed is true if the removal does not proceed.
	Failed bool
}

// Report is the result of [Assess].
type Report struct {
	// Conditions are the conditions of the MemberAddon.
	Conditions []metav1.Condition
	// Message is a summary for users, at most 1024 bytes.
	Message string
	// Health is the health of the member at the revision that it was assigned.
	Health rollout.Health
	// After is the duration after which the result changes by time alone. Zero: never.
	After time.Duration
}

// Assess evaluates the state of an add-on on one member. It does not modify its argument.
//
// The result does not change before After has passed while only Now changes and Before is the previous result.
func Assess(o Observed) Report {
	m := newMember(o)
	report := Report{Message: bounded.Text(m.message(), messages.MaxMessage), Health: m.result.health,
		Conditions: m.conditions()}
	if m.next.After(o.Now) {
		report.After = m.next.Sub(o.Now)
	}
	return report
}

// Since returns the last time at which an input of [Report].Health changed, according to the stored conditions. It is
// not earlier than the change of the health itself. Use it for the HealthSince of a [rollout.Target] after a restart.
// Zero: never.
func Since(conditions []metav1.Condition) (since time.Time) {
	for _, condition := range conditions {
		switch condition.Type {
		case v1alpha1.ConditionRegistrationReady, v1alpha1.ConditionManifestsApplied, v1alpha1.ConditionAvailable,
			v1alpha1.ConditionDegraded:
			if condition.LastTransitionTime.After(since) {
				since = condition.LastTransitionTime.Time
			}
		}
	}
	return since
}

// result is a health and its reason.
type result struct {
	health  rollout.Health
	reason  string // a reason of the API
	message string
}

// member is one evaluation of an add-on on a member.
type member struct {
	Observed
	worst     *Work  // the Work with the most severe state; nil: no Works
	available result // the result of the health check
	result    result // the overall result
	next      time.Time
}

func newMember(o Observed) *member {
	m := &member{Observed: o}
	m.Problems = slices.SortedFunc(slices.Values(o.Problems), compareProblems)
	for i := range m.Works {
		w := &m.Works[i]
		if m.worst == nil ||
			cmp.Or(cmp.Compare(m.rank(m.worst), m.rank(w)), strings.Compare(w.Message, m.worst.Message),
				strings.Compare(w.Reason, m.worst.Reason)) < 0 {
			m.worst = w
		}
	}
	m.available = m.check()
	m.result = m.evaluate()
	return m
}

// evaluate returns the health of the member at its assigned revision; see the table of the package.
func (m *member) evaluate() result {
	switch {
	case m.Removal != nil:
		return m.available
	case m.blocked():
		return result{rollout.Failed, m.Problems[0].reason(), m.Problems[0].text()}
	case !m.Reachable:
		return result{rollout.Unknown, v1alpha1.ReasonMemberUnknown, m.unreachable()}
	case !m.reported():
		return result{rollout.Progressing, v1alpha1.ReasonApplying, m.pendingMessage()}
	case m.failedForGood(m.worst) && m.worst.applied():
		return result{rollout.Failed, v1alpha1.ReasonNotReady, m.unready(m.worst)}
	case m.failedForGood(m.worst):
		return result{rollout.Failed, v1alpha1.ReasonApplyFailed, m.worst.text()}
	case !m.all((*Work).applied):
		return result{rollout.Progressing, v1alpha1.ReasonApplying, m.worst.text()}
	case !m.registered():
		return result{rollout.Progressing, v1alpha1.ReasonRegistering, m.registering()}
	}
	return m.available
}

// blocked reports whether there is a problem that is not retried.
func (m *member) blocked() bool { return len(m.Problems) > 0 && !m.Problems[0].Retried }

func (m *member) registered() bool {
	if m.problem(v1alpha1.ConditionRegistrationReady) != nil {
		return false
	}
	return m.Registration.State == NotRequired || m.Registration.State == Registered
}

// reported reports whether all Works are up to date and the member has reported on their current generation.
func (m *member) reported() bool { return m.Revision != "" && m.Current && m.all((*Work).reported) }

// behind reports whether there is a newer revision than the assigned one.
func (m *member) behind() bool { return m.Desired != "" && m.Revision != m.Desired }

// updates reports whether a newer revision is about to be assigned. It is not while there is a problem.
func (m *member) updates() bool { return m.behind() && m.Hold == "" && !m.blocked() }

// applied reports whether the member had applied everything according to its last report.
func (m *member) applied() bool { return m.reported() && m.all((*Work).applied) }

func (m *member) all(is func(*Work) bool) bool {
	for i := range m.Works {
		if !is(&m.Works[i]) {
			return false
		}
	}
	return true
}

// failedForGood reports whether a Work has failed permanently and no other Work of the add-on can solve it. Another
// Work may define the kind or release the object, which the agent observes at its next attempt. A fully applied Work
// can still be Degraded, which counts only if the health check covers it.
func (m *member) failedForGood(w *Work) bool {
	switch {
	case w == nil || w.Degraded != metav1.ConditionTrue:
		return false
	case len(m.Works) > 1 && (w.Reason == workv1alpha1.ReasonUnknownKind || w.Reason == workv1alpha1.ReasonConflict):
		return false
	}
	return m.byWorks() || m.byWorkloads() && w.Workloads.Failed || !w.applied()
}

func (m *member) byWorkloads() bool { return m.Check.Type == v1alpha1.HealthWorkloads }

// unready returns the message of an applied Work that is not healthy.
func (m *member) unready(w *Work) string {
	if m.byWorkloads() && !w.running() {
		return messages.Message(w.Workloads.Message)
	}
	return w.text()
}

func (m *member) byWorks() bool {
	switch m.Check.Type {
	case v1alpha1.HealthWorkloads, v1alpha1.HealthLease, v1alpha1.HealthCustom, v1alpha1.HealthNone:
		return false
	}
	return true
}

// rank returns the severity of the state of a Work. Higher is worse.
func (m *member) rank(w *Work) int {
	switch {
	case m.failedForGood(w) && !w.applied():
		return 7
	case m.failedForGood(w):
		return 6
	case !w.applied() && w.Degraded == metav1.ConditionTrue:
		return 5
	case !w.applied():
		return 4
	case m.byWorkloads() && !w.running():
		return 3
	case w.Degraded == metav1.ConditionTrue:
		return 2
	case !w.available():
		return 1
	}
	return 0
}

func (p *Problem) reason() string { return cmp.Or(p.Reason, v1alpha1.ReasonManifestsFailed) }

func (p *Problem) text() string {
	return messages.Message(bounded.Text(cmp.Or(p.Message, p.reason()), messages.MaxPart))
}

// compareProblems sorts problems that hide others first.
func compareProblems(a, b Problem) int {
	return cmp.Or(cmp.Compare(severity(a), severity(b)), strings.Compare(a.Reason, b.Reason),
		strings.Compare(a.Message, b.Message))
}

func severity(p Problem) int {
	reasons := []string{
		v1alpha1.ReasonNoAgent, v1alpha1.ReasonUnsupported, v1alpha1.ReasonConfigInvalid, v1alpha1.ReasonConfigNotFound,
		v1alpha1.ReasonRegistering,
	}
	at := slices.Index(reasons, p.Reason)
	if at < 0 {
		at = len(reasons)
	}
	if p.Retried {
		at += len(reasons) + 1
	}
	return at
}
