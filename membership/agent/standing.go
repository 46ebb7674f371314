package agent

import (
	"time"

	"github.com/muster-sdk/muster/membership/heartbeat"
	"github.com/muster-sdk/muster/membership/internal/cause"
	"github.com/muster-sdk/muster/membership/lifecycle"
)

// stand tells whoever has to choose between several hubs how this one stands with the agent.
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
		s.Refused = a.door.sight == lifecycle.DoorDenied || a.door.sight == lifecycle.DoorNoCredential
	case lifecycle.Leaving:
		s.Cleaning = time.Duration(leavePolicy(a.record.Leave).DeadlineSeconds) * time.Second
	default: // it is served or not
	}
	a.stands(s)
}

// heard takes down how a heartbeat went. That it fails for another reason than before, or no longer, goes into the log.
func (a *agent) heard(status heartbeat.Status) {
	a.metrics.beat(status)
	a.served(status.LastError == nil || status.LastSuccess.After(a.unserved)) // of several outcomes the last is told
	a.served(status.LastError == nil)
	why := cause.Of(status.LastError)
	switch {
	case why == a.unheard:
	case status.LastError == nil:
		a.log.Info("The hub takes heartbeats again.")
	default:
		a.log.Info("A heartbeat failed; trying again.", "why", why)
	}
	a.unheard = why
}

// served takes down whether the hub takes heartbeats.
func (a *agent) served(is bool) {
	switch {
	case is:
		a.unserved = time.Time{}
	case a.unserved.IsZero():
		a.unserved = a.Clock.Now()
	}
}
