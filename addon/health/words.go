package health

import (
	"cmp"
	"fmt"
	"time"

	"github.com/muster-sdk/muster/addon/internal/words"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/bounded"
	"github.com/muster-sdk/muster/placement/rollout"
)

// message is what people read: what is wrong, and then how far it is. Nothing in it goes on with time.
func (m *member) message() string {
	if m.Removal != nil {
		return words.Sentence(m.verdict.message)
	}
	var problem, more, waiting string
	switch {
	case len(m.Problems) == 0:
	case !m.stuck():
		problem = m.Problems[0].words()
	case len(m.Problems) > 1:
		more = fmt.Sprintf("There %s %s.", isOrAre(len(m.Problems)-1), words.Count(len(m.Problems)-1, "more problem"))
	}
	if m.behind() && m.Hold != "" {
		waiting = held(m.Hold)
	}
	standing := words.Sentence(m.verdict.message)
	switch {
	case m.Revision == "" && m.verdict.health == rollout.Progressing && problem != "", standing == waiting, standing == problem:
		standing = "" // nothing to add
	case m.updates() && m.verdict.health == rollout.Succeeded:
		standing = m.updating()
	}
	return words.Join(problem, m.hindered(), standing, more, waiting)
}

func isOrAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// unreachable keeps the last word of a member that cannot be reached.
func (m *member) unreachable() string {
	head := "The member cannot be reached."
	if m.Hosting != "" {
		head = bounded.Text(fmt.Sprintf("Member %s, which hosts its agent, cannot be reached.", m.Hosting), words.MaxPart)
	}
	last := ""
	switch {
	case m.Revision == "":
		return words.Join(head, "It has nothing yet.")
	case m.Check.Type == v1alpha1.HealthCustom && m.Answer.Message != "":
		last = m.answer()
	case m.Check.Type == v1alpha1.HealthLease && !m.Renewed.IsZero():
		return words.Join(head, fmt.Sprintf("Its Lease was renewed last at %s.", m.Renewed.UTC().Format(time.RFC3339)))
	case m.worst != nil:
		last = m.worst.Message
	}
	if last == "" {
		return head
	}
	return words.Join(head, "It said last: "+words.Sentence(last))
}

// unsettled is what is still to happen before anything can be said.
func (m *member) unsettled() string {
	switch {
	case !m.Reachable:
		return m.unreachable()
	case m.Revision == "" && m.Hold != "":
		return held(m.Hold)
	case m.Revision == "" && !m.registered():
		return m.registering()
	case m.Revision == "" && m.stuck():
		return "It has nothing yet."
	case m.Revision == "", m.updates():
		return m.updating()
	}
	return "The member has not reported on it yet."
}

func (m *member) updating() string {
	if !m.registered() {
		return m.registering()
	}
	return "It is being told what to have."
}

func (m *member) registering() string {
	if p := m.problem(v1alpha1.ConditionRegistrationReady); p != nil {
		return p.words()
	}
	return words.Sentence(bounded.Text(cmp.Or(m.Registration.Message, "Its agent has no credential for the hub yet."), words.MaxPart))
}

// hindered is what keeps a credential that is good from being renewed. Empty: nothing does.
func (m *member) hindered() string {
	if m.Registration.State != Registered {
		return ""
	}
	return words.Sentence(bounded.Text(m.Registration.Message, words.MaxPart))
}

func (m *member) answer() string {
	return words.Sentence(bounded.Text(m.Answer.Message, words.MaxPart))
}

// halted reports whether who is held for the reason is not on the way at all.
func halted(reason rollout.HoldReason) bool {
	return reason == rollout.HoldPaused || reason == rollout.HoldStopped || reason == rollout.HoldFailures
}

func held(reason rollout.HoldReason) string {
	switch reason {
	case rollout.HoldConcurrency:
		return "An update waits until fewer members are on their way."
	case rollout.HoldOrder:
		return "An update waits for the members before this one."
	case rollout.HoldApproval:
		return "An update waits for an approval."
	case rollout.HoldTime:
		return "An update waits for a time to pass."
	case rollout.HoldPaused:
		return "An update waits, for the rollout is paused."
	case rollout.HoldStopped:
		return "An update waits, for the rollout is stopped."
	case rollout.HoldFailures:
		return "An update waits, for too many members have failed."
	}
	return fmt.Sprintf("An update waits: %s.", reason)
}
