package agent

import (
	"time"

	"github.com/muster-sdk/muster/membership/heartbeat"
	"github.com/muster-sdk/muster/membership/internal/cause"
	"github.com/muster-sdk/muster/membership/lifecycle"
)

// stand reports the state of the hub to the agent of several hubs.
func (a *agent) stand() {
	if beating := a.connection != nil && a.connection.beating(); !beating {
		a.served(false)
	}
	if a.stands == nil {
		return
	}
	s := lifecycle.HubStanding{Unserved: a.unserved}
	switch a.shown.Phase {
	case lifecycle.Rejected:
		s.Refused = a.requests.sight == lifecycle.JoinRequestDenied || a.requests.sight == lifecycle.JoinRequestNoCredential
	case lifecycle.Leaving:
		s.Cleaning = time.Duration(leavePolicy(a.record.Leave).DeadlineSeconds) * time.Second
	default: // Unserved is sufficient
	}
	a.stands(s)
}

// heard records the result of a heartbeat. A changed reason of failures, and their end, are logged.
func (a *agent) heard(status heartbeat.Status) {
	a.metrics.beat(status)
	// only the last of several results is received
	a.served(status.LastError == nil || status.LastSuccess.After(a.unserved))
	a.served(status.LastError == nil)
	why := cause.Of(status.LastError)
	switch {
	case why == a.unheard:
	case status.LastError == nil:
		a.log.Info("The hub accepts heartbeats again")
	default:
		a.log.Info("A heartbeat failed, trying again", "why", why)
	}
	a.unheard = why
}

// served records whether the hub accepts heartbeats.
func (a *agent) served(is bool) {
	switch {
	case is:
		a.unserved = time.Time{}
	case a.unserved.IsZero():
		a.unserved = a.Clock.Now()
	}
}
