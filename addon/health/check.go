package health

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/placement/rollout"
)

// check evaluates the health check for the revision that the member was assigned.
func (m *member) check() result {
	switch {
	case m.Removal != nil:
		return result{rollout.Progressing, cmp.Or(m.Removal.Reason, v1alpha1.ReasonRemoving), m.Removal.Message}
	case !m.Reachable:
		return result{rollout.Unknown, v1alpha1.ReasonMemberUnknown, m.unreachable()}
	case m.Revision == "":
		return result{rollout.Progressing, v1alpha1.ReasonNotReady, m.pendingMessage()}
	}
	switch m.Check.Type {
	case v1alpha1.HealthLease:
		return m.byLease()
	case v1alpha1.HealthCustom:
		return m.byAnswer()
	}
	switch {
	case !m.reported():
		return result{rollout.Progressing, v1alpha1.ReasonNotReady, m.pendingMessage()}
	case m.byWorks() && !m.all((*Work).available), !m.byWorks() && !m.all((*Work).applied):
		return result{rollout.Progressing, v1alpha1.ReasonNotReady, m.worst.text()}
	case m.byWorks():
		return result{rollout.Succeeded, v1alpha1.ReasonAvailable, "All objects are applied and ready."}
	case m.byWorkloads() && !m.all((*Work).running):
		return result{rollout.Progressing, v1alpha1.ReasonNotReady, m.unready(m.worst)}
	case m.byWorkloads() && slices.ContainsFunc(m.Works, func(w Work) bool { return w.Workloads.Total > 0 }):
		return result{rollout.Succeeded, v1alpha1.ReasonAvailable, "All objects are applied, and all workloads are ready."}
	}
	return result{rollout.Succeeded, v1alpha1.ReasonAvailable, "All objects are applied."}
}

func (m *member) byAnswer() result {
	switch m.Answer.Health {
	case rollout.Succeeded:
		return result{rollout.Succeeded, v1alpha1.ReasonAvailable, cmp.Or(m.answer(), "The add-on reports that it is "+
			"healthy.")}
	case rollout.Failed:
		return result{rollout.Failed, v1alpha1.ReasonNotReady, cmp.Or(m.answer(), "The add-on reports a failure.")}
	case rollout.Progressing:
		return result{rollout.Progressing, v1alpha1.ReasonNotReady, cmp.Or(m.answer(), "The add-on reports that it is "+
			"not ready yet.")}
	}
	return result{rollout.Unknown, v1alpha1.ReasonNotReady, cmp.Or(m.answer(), "The add-on does not report its health.")}
}

// byLease evaluates the time at which the hub observed the last renewal. A renewal before the member was assigned its
// revision proves nothing about that revision, so the agent then has one more lease duration: an agent that an update
// has broken is a failure, and an agent that starts slowly is not.
func (m *member) byLease() result {
	duration := defaultLease
	if m.Check.LeaseDurationSeconds != nil {
		duration = time.Duration(*m.Check.LeaseDurationSeconds) * time.Second
	}
	if m.Renewed.IsZero() {
		return m.neverRenewed(duration)
	}
	ends, fails := m.Renewed.Add(duration), m.Renewed.Add(duration)
	if m.Since.After(m.Renewed) {
		fails = m.Since.Add(duration)
	}
	m.wake(ends)
	m.wake(fails)
	switch text := fmt.Sprintf("The add-on agent has not renewed its Lease since %s.",
		m.Renewed.UTC().Format(time.RFC3339)); {
	case !m.Now.Before(fails):
		return result{rollout.Failed, v1alpha1.ReasonLeaseExpired, text}
	case !m.Now.Before(ends):
		return result{rollout.Progressing, v1alpha1.ReasonLeaseExpired, text}
	case m.Since.After(m.Renewed):
		return result{rollout.Progressing, v1alpha1.ReasonAvailable, "The add-on agent has not renewed its Lease " +
			"since the update."}
	}
	return result{rollout.Succeeded, v1alpha1.ReasonAvailable, "The add-on agent renews its Lease."}
}

// neverRenewed evaluates an agent that has never renewed its Lease. The agent is starting until a grace period has
// passed since the assignment of its revision: [startTime], or the lease duration if that is longer.
func (m *member) neverRenewed(duration time.Duration) result {
	fails := m.Since.Add(max(duration, startTime))
	m.wake(fails)
	if m.Since.IsZero() || m.Now.Before(fails) {
		return result{rollout.Progressing, v1alpha1.ReasonNotReady, "The add-on agent has not renewed its Lease yet."}
	}
	return result{rollout.Failed, v1alpha1.ReasonLeaseExpired, "The add-on agent has never renewed its Lease."}
}

// wake schedules a reconcile at a time in the future.
func (m *member) wake(at time.Time) {
	if at.After(m.Now) && (m.next.IsZero() || at.Before(m.next)) {
		m.next = at
	}
}
