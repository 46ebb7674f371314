package health

import (
	"cmp"
	"fmt"
	"time"

	"github.com/muster-sdk/muster/addon/internal/messages"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/bounded"
	"github.com/muster-sdk/muster/placement/rollout"
)

// message returns the errors, followed by the progress. It contains no text that changes with time alone.
func (m *member) message() string {
	if m.Removal != nil {
		return messages.Message(m.result.message)
	}
	var problem, more, waiting string
	switch {
	case len(m.Problems) == 0:
	case !m.blocked():
		problem = m.Problems[0].text()
	case len(m.Problems) > 1:
		more = fmt.Sprintf("There %s %s.", isOrAre(len(m.Problems)-1), messages.Count(len(m.Problems)-1, "more problem"))
	}
	if m.behind() && m.Hold != "" {
		waiting = holdMessage(m.Hold)
	}
	progress := messages.Message(m.result.message)
	switch {
	case m.Revision == "" && m.result.health == rollout.Progressing && problem != "", progress == waiting,
		progress == problem:
		progress = "" // nothing to add
	case m.updates() && m.result.health == rollout.Succeeded:
		progress = m.updating()
	}
	return messages.Join(problem, m.renewalError(), progress, more, waiting)
}

func isOrAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// unreachable returns the message about an unreachable member, including its last report.
func (m *member) unreachable() string {
	head := "The member cannot be reached."
	if m.Hosting != "" {
		head = bounded.Text(fmt.Sprintf("Member %s, which hosts the add-on agent, cannot be reached.", m.Hosting),
			messages.MaxPart)
	}
	last := ""
	switch {
	case m.Revision == "":
		return messages.Join(head, "The add-on is not installed yet.")
	case m.Check.Type == v1alpha1.HealthCustom && m.Answer.Message != "":
		last = m.answer()
	case m.Check.Type == v1alpha1.HealthLease && !m.Renewed.IsZero():
		return messages.Join(head,
			fmt.Sprintf("The Lease of the add-on agent was last renewed at %s.", m.Renewed.UTC().Format(time.RFC3339)))
	case m.worst != nil:
		last = m.worst.Message
	}
	if last == "" {
		return head
	}
	return messages.Join(head, "Last report: "+messages.Message(last))
}

// pendingMessage describes what must happen before the health can be evaluated.
func (m *member) pendingMessage() string {
	switch {
	case !m.Reachable:
		return m.unreachable()
	case m.Revision == "" && m.Hold != "":
		return holdMessage(m.Hold)
	case m.Revision == "" && !m.registered():
		return m.registering()
	case m.Revision == "" && m.blocked():
		return "The add-on is not installed yet."
	case m.Revision == "", m.updates():
		return m.updating()
	}
	return "The member has not reported the status of the add-on yet."
}

func (m *member) updating() string {
	if !m.registered() {
		return m.registering()
	}
	return "The add-on is being updated."
}

func (m *member) registering() string {
	if p := m.problem(v1alpha1.ConditionRegistrationReady); p != nil {
		return p.text()
	}
	return messages.Message(bounded.Text(cmp.Or(m.Registration.Message, "The add-on agent has no credential for the "+
		"hub yet."), messages.MaxPart))
}

// renewalError returns the error that prevents the renewal of a valid credential. Empty: none.
func (m *member) renewalError() string {
	if m.Registration.State != Registered {
		return ""
	}
	return messages.Message(bounded.Text(m.Registration.Message, messages.MaxPart))
}

func (m *member) answer() string {
	return messages.Message(bounded.Text(m.Answer.Message, messages.MaxPart))
}

// halted reports whether the reason stops the rollout instead of delaying the member.
func halted(reason rollout.HoldReason) bool {
	return reason == rollout.HoldPaused || reason == rollout.HoldStopped || reason == rollout.HoldFailures
}

func holdMessage(reason rollout.HoldReason) string {
	switch reason {
	case rollout.HoldConcurrency:
		return "The update waits until fewer members are being updated."
	case rollout.HoldOrder:
		return "The update waits for earlier members."
	case rollout.HoldApproval:
		return "The update waits for an approval."
	case rollout.HoldTime:
		return "The update waits until the configured time has passed."
	case rollout.HoldPaused:
		return "The update waits because the rollout is paused."
	case rollout.HoldStopped:
		return "The update waits because the rollout is stopped."
	case rollout.HoldFailures:
		return "The update waits because too many members have failed."
	}
	return fmt.Sprintf("The update waits: %s.", reason)
}
