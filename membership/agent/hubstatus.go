package agent

import (
	"time"

	"github.com/muster-sdk/muster/membership/heartbeat"
	"github.com/muster-sdk/muster/membership/internal/cause"
	"github.com/muster-sdk/muster/membership/lifecycle"
)

// reportHub reports the state of the hub to the agent with several hubs.
func (a *agent) reportHub() {
	if beating := a.connection != nil && a.connection.beating(); !beating {
		a.reports.served(false)
	}
	if a.reports.onHub == nil {
		return
	}
	s := lifecycle.HubStatus{Unserved: a.reports.unservedSince}
	switch a.reports.shown.Phase {
	case lifecycle.Rejected:
		s.Refused = a.requests.state == lifecycle.JoinRequestDenied || a.requests.state == lifecycle.JoinRequestNoCredential
	case lifecycle.Leaving:
		s.Cleaning = time.Duration(leavePolicy(a.state.record.Leave).DeadlineSeconds) * time.Second
	default: // Unserved is sufficient
	}
	a.reports.onHub(s)
}

// heard records the result of a heartbeat. It logs a changed reason of failures, and the end of failures.
func (r *reporter) heard(status heartbeat.Status) {
	r.metrics.beat(status)
	// only the last of several results is received
	r.served(status.LastError == nil || status.LastSuccess.After(r.unservedSince))
	r.served(status.LastError == nil)
	why := cause.Of(status.LastError)
	switch {
	case why == r.heartbeatError:
	case status.LastError == nil:
		r.log.Info("The hub accepts heartbeats again")
	default:
		r.log.Info("A heartbeat failed, trying again", "why", why)
	}
	r.heartbeatError = why
}

// served records whether the hub accepts heartbeats.
func (r *reporter) served(is bool) {
	switch {
	case is:
		r.unservedSince = time.Time{}
	case r.unservedSince.IsZero():
		r.unservedSince = r.clock.Now()
	}
}
