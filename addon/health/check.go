package health

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/placement/rollout"
)

// check is what the health check says of what the member was told, if it has that.
func (m *member) check() verdict {
	switch {
	case m.Removal != nil:
		return verdict{rollout.Progressing, cmp.Or(m.Removal.Reason, v1alpha1.ReasonRemoving), m.Removal.Message}
	case !m.Reachable:
		return verdict{rollout.Unknown, v1alpha1.ReasonMemberUnknown, m.unreachable()}
	case m.Revision == "":
		return verdict{rollout.Progressing, v1alpha1.ReasonNotReady, m.unsettled()}
	}
	switch m.Check.Type {
	case v1alpha1.HealthLease:
		return m.byLease()
	case v1alpha1.HealthCustom:
		return m.byAnswer()
	}
	switch {
	case !m.settled():
		return verdict{rollout.Progressing, v1alpha1.ReasonNotReady, m.unsettled()}
	case m.byWorks() && !m.all((*Work).available), !m.byWorks() && !m.all((*Work).applied):
		return verdict{rollout.Progressing, v1alpha1.ReasonNotReady, m.worst.words()}
	case m.byWorks():
		return verdict{rollout.Succeeded, v1alpha1.ReasonAvailable, "All of it is applied and ready."}
	case m.byWorkloads() && !m.all((*Work).running):
		return verdict{rollout.Progressing, v1alpha1.ReasonNotReady, m.unready(m.worst)}
	case m.byWorkloads() && slices.ContainsFunc(m.Works, func(w Work) bool { return w.Workloads.Total > 0 }):
		return verdict{rollout.Succeeded, v1alpha1.ReasonAvailable, "All of it is applied, and its workloads are ready."}
	}
	return verdict{rollout.Succeeded, v1alpha1.ReasonAvailable, "All of it is applied."}
}

func (m *member) byAnswer() verdict {
	switch m.Answer.Health {
	case rollout.Succeeded:
		return verdict{rollout.Succeeded, v1alpha1.ReasonAvailable, cmp.Or(m.answer(), "The add-on says that it is well.")}
	case rollout.Failed:
		return verdict{rollout.Failed, v1alpha1.ReasonNotReady, cmp.Or(m.answer(), "The add-on says that it has failed.")}
	case rollout.Progressing:
		return verdict{rollout.Progressing, v1alpha1.ReasonNotReady, cmp.Or(m.answer(), "The add-on says that it is not ready yet.")}
	}
	return verdict{rollout.Unknown, v1alpha1.ReasonNotReady, cmp.Or(m.answer(), "The add-on does not say how it is doing.")}
}

// byLease goes by when the hub saw the Lease renewed. One that was renewed only before the member was told its revision says
// nothing about that, and gets as long anew: so an agent that an update has killed is a failure, and one that takes its time is not.
func (m *member) byLease() verdict {
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
	switch words := fmt.Sprintf("Its agent has not renewed its Lease since %s.", m.Renewed.UTC().Format(time.RFC3339)); {
	case !m.Now.Before(fails):
		return verdict{rollout.Failed, v1alpha1.ReasonLeaseExpired, words}
	case !m.Now.Before(ends):
		return verdict{rollout.Progressing, v1alpha1.ReasonLeaseExpired, words}
	case m.Since.After(m.Renewed):
		return verdict{rollout.Progressing, v1alpha1.ReasonAvailable, "Its agent has not renewed its Lease since it was updated."}
	}
	return verdict{rollout.Succeeded, v1alpha1.ReasonAvailable, "Its agent renews its Lease."}
}

// neverRenewed is what there is to say of an agent that nobody has heard of: it may be about to start, for as long as that may take.
func (m *member) neverRenewed(duration time.Duration) verdict {
	fails := m.Since.Add(max(duration, startTime))
	m.wake(fails)
	if m.Since.IsZero() || m.Now.Before(fails) {
		return verdict{rollout.Progressing, v1alpha1.ReasonNotReady, "Its agent has not renewed its Lease yet."}
	}
	return verdict{rollout.Failed, v1alpha1.ReasonLeaseExpired, "Its agent has never renewed its Lease."}
}

// wake has the member looked at again at a time, if that is still to come.
func (m *member) wake(at time.Time) {
	if at.After(m.Now) && (m.next.IsZero() || at.Before(m.next)) {
		m.next = at
	}
}
