package health

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/addon/internal/words"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/bounded"
	"github.com/muster-sdk/muster/placement/rollout"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// defaultLease is how long a Lease counts after it was last seen to be renewed, where the add-on does not say.
const defaultLease = 180 * time.Second

// startTime is how long the agent of an add-on has at least, from when the member was told, to be pulled, to start and to renew its Lease for the first time: as
// long as Kubernetes gives a Deployment by default to make progress (progressDeadlineSeconds).
const startTime = 10 * time.Minute

// Observed is what is known of an add-on on a member.
type Observed struct {
	// Generation of the MemberAddon that this is about.
	Generation int64
	// Before are its conditions as they are: one that stays as it is keeps its time, and those of other types stay.
	Before []metav1.Condition
	// Now is the time of what changes. It must not be zero.
	Now time.Time

	// Reachable: the member is healthy, so that what it says is so; and so is the one that hosts its agent.
	Reachable bool
	// Hosting is the name of that one, if it is what cannot be reached. Empty: it is the member itself.
	Hosting string
	// Problems that no member can do anything about, in any order.
	Problems []Problem
	// Registration of the add-on's agent. Zero: it needs none.
	Registration Registration

	// Desired is the revision that the member is to have in the end. Empty: nobody knows yet.
	Desired string
	// Revision that it was told last, and Since when, by the clock that Now is of. Empty: none yet.
	Revision string
	Since    time.Time
	// Hold is why it has not been told Desired. Empty: it has, or is about to be.
	Hold rollout.HoldReason
	// Current: all Works are on the hub as Revision says: content written, none missing, none too many.
	Current bool
	// Works of the add-on, hooks excepted, in any order.
	Works []Work

	// Check says what its health is told by. The zero value is that by Works.
	Check v1alpha1.HealthCheck
	// Renewed is when the hub saw its Lease renewed last, by the hub's clock. Zero: it has not. After a restart, it is when it was seen
	// first.
	Renewed time.Time
	// Answer of the add-on's own function.
	Answer Answer

	// Removal is what the removal of the add-on says. Nil: its deletion has not begun.
	Removal *Removal
}

// Problem is one that a member can do nothing about.
type Problem struct {
	// Reason is one of those of the API: ConfigNotFound, ConfigInvalid and Unsupported are about the condition Configured, Registering is
	// about RegistrationReady, and all others, such as NoAgent and ManifestsFailed, are about ManifestsApplied.
	Reason string
	// Message is a sentence that says what is wrong, and what to do.
	Message string
	// Retried problems may pass: what led to them is tried again. They are told of, and are no failure.
	Retried bool
}

// Registration is what has become of the access of the add-on's agent to the hub.
type Registration struct {
	State RegistrationState
	// Message says in a sentence what it waits for, and of one that is Registered what is wrong all the same. Empty: nothing to add.
	Message string
}

// RegistrationState says how far a registration is.
type RegistrationState string

// The states of a registration. Any other is taken for Registering.
const (
	NotRequired RegistrationState = ""
	Registering RegistrationState = "Registering"
	Registered  RegistrationState = "Registered"
)

// Answer is what an add-on's own function says of its health.
type Answer struct {
	// Health: Succeeded is well, Failed will not come right by itself. Empty: it cannot say, as with Unknown.
	Health rollout.Health
	// Message says why in a sentence.
	Message string
}

// Removal is how far the removal of an add-on is, in the words of package removal.
type Removal struct {
	// Reason and Message of it.
	Reason, Message string
	// Failed: it does not go as it should.
	Failed bool
}

// Report is what is to be said of an add-on on a member.
type Report struct {
	// Conditions of the MemberAddon.
	Conditions []metav1.Condition
	// Message is the one sentence for people, of at most 1024 bytes.
	Message string
	// Health is how the member fares at the revision that it was told.
	Health rollout.Health
	// After is when time alone will have changed something. Zero: never.
	After time.Duration
}

// Assess says how an add-on is doing on a member. It changes nothing of what it is given.
//
// As long as nothing but Now and Before changes, before After has passed, and Before is what was said last, it says the same again.
func Assess(o Observed) Report {
	m := newMember(o)
	report := Report{Message: bounded.Text(m.message(), words.MaxSentence), Health: m.verdict.health, Conditions: m.conditions()}
	if m.next.After(o.Now) {
		report.After = m.next.Sub(o.Now)
	}
	return report
}

// Since is when what [Report].Health follows from has last changed, given the conditions that are stored: no earlier than the health
// itself did. It is for the HealthSince of a [rollout.Target], whoever restarts. Zero: never.
func Since(conditions []metav1.Condition) (since time.Time) {
	for _, condition := range conditions {
		switch condition.Type {
		case v1alpha1.ConditionRegistrationReady, v1alpha1.ConditionManifestsApplied, v1alpha1.ConditionAvailable, v1alpha1.ConditionDegraded:
			if condition.LastTransitionTime.After(since) {
				since = condition.LastTransitionTime.Time
			}
		}
	}
	return since
}

// verdict is a health, and why.
type verdict struct {
	health  rollout.Health
	reason  string // of the API
	message string
}

// member is one look at an add-on on a member.
type member struct {
	Observed
	worst     *Work   // that most wants to be looked at; nil: there is none
	available verdict // what the health check says of what is there
	verdict   verdict // what is to be said of all
	next      time.Time
}

func newMember(o Observed) *member {
	m := &member{Observed: o}
	m.Problems = slices.SortedFunc(slices.Values(o.Problems), compareProblems)
	for i := range m.Works {
		w := &m.Works[i]
		if m.worst == nil || cmp.Or(cmp.Compare(m.rank(m.worst), m.rank(w)), strings.Compare(w.Message, m.worst.Message), strings.Compare(w.Reason, m.worst.Reason)) < 0 {
			m.worst = w
		}
	}
	m.available = m.check()
	m.verdict = m.judge()
	return m
}

// judge says how the member fares at the revision that it was told; see the package's table.
func (m *member) judge() verdict {
	switch {
	case m.Removal != nil:
		return m.available
	case m.stuck():
		return verdict{rollout.Failed, m.Problems[0].reason(), m.Problems[0].words()}
	case !m.Reachable:
		return verdict{rollout.Unknown, v1alpha1.ReasonMemberUnknown, m.unreachable()}
	case !m.settled():
		return verdict{rollout.Progressing, v1alpha1.ReasonApplying, m.unsettled()}
	case m.hopeless(m.worst) && m.worst.applied():
		return verdict{rollout.Failed, v1alpha1.ReasonNotReady, m.unready(m.worst)}
	case m.hopeless(m.worst):
		return verdict{rollout.Failed, v1alpha1.ReasonApplyFailed, m.worst.words()}
	case !m.all((*Work).applied):
		return verdict{rollout.Progressing, v1alpha1.ReasonApplying, m.worst.words()}
	case !m.registered():
		return verdict{rollout.Progressing, v1alpha1.ReasonRegistering, m.registering()}
	}
	return m.available
}

// stuck reports whether there is a problem that is no passing one.
func (m *member) stuck() bool { return len(m.Problems) > 0 && !m.Problems[0].Retried }

func (m *member) registered() bool {
	if m.problem(v1alpha1.ConditionRegistrationReady) != nil {
		return false
	}
	return m.Registration.State == NotRequired || m.Registration.State == Registered
}

// settled reports whether all Works are as they are to be, and the member has looked at them as they are.
func (m *member) settled() bool { return m.Revision != "" && m.Current && m.all((*Work).settled) }

// behind reports whether there is a newer revision than the one that it was told.
func (m *member) behind() bool { return m.Desired != "" && m.Revision != m.Desired }

// updates reports whether it is about to be told a newer revision: it is not while anything is wrong.
func (m *member) updates() bool { return m.behind() && m.Hold == "" && !m.stuck() }

// applied reports whether the member had all that it was told when it was last heard of.
func (m *member) applied() bool { return m.settled() && m.all((*Work).applied) }

func (m *member) all(is func(*Work) bool) bool {
	for i := range m.Works {
		if !is(&m.Works[i]) {
			return false
		}
	}
	return true
}

// hopeless reports whether a Work will not come right by itself, nor by another Work of the add-on: that may define the kind, or
// give up the object, which the agent finds out when it tries again. What is all applied
// may still have failed by its own word, which counts where nothing else is asked.
func (m *member) hopeless(w *Work) bool {
	switch {
	case w == nil || w.Degraded != metav1.ConditionTrue:
		return false
	case len(m.Works) > 1 && (w.Reason == workv1alpha1.ReasonUnknownKind || w.Reason == workv1alpha1.ReasonConflict):
		return false
	}
	return m.byWorks() || m.byWorkloads() && w.Workloads.Failed || !w.applied()
}

func (m *member) byWorkloads() bool { return m.Check.Type == v1alpha1.HealthWorkloads }

// unready is what keeps a Work that is applied from being well.
func (m *member) unready(w *Work) string {
	if m.byWorkloads() && !w.running() {
		return words.Sentence(w.Workloads.Message)
	}
	return w.words()
}

func (m *member) byWorks() bool {
	switch m.Check.Type {
	case v1alpha1.HealthWorkloads, v1alpha1.HealthLease, v1alpha1.HealthCustom, v1alpha1.HealthNone:
		return false
	}
	return true
}

// rank says how wrong a Work is: more is worse.
func (m *member) rank(w *Work) int {
	switch {
	case m.hopeless(w) && !w.applied():
		return 7
	case m.hopeless(w):
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

func (p *Problem) words() string {
	return words.Sentence(bounded.Text(cmp.Or(p.Message, p.reason()), words.MaxPart))
}

// compareProblems puts first what keeps others from mattering.
func compareProblems(a, b Problem) int {
	return cmp.Or(cmp.Compare(severity(a), severity(b)), strings.Compare(a.Reason, b.Reason), strings.Compare(a.Message, b.Message))
}

func severity(p Problem) int {
	reasons := []string{
		v1alpha1.ReasonNoAgent, v1alpha1.ReasonUnsupported, v1alpha1.ReasonConfigInvalid, v1alpha1.ReasonConfigNotFound, v1alpha1.ReasonRegistering,
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
