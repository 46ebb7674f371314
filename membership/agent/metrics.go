package agent

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/muster-sdk/muster/membership/heartbeat"
	"github.com/muster-sdk/muster/membership/lifecycle"
)

// metrics are those of one agent, in the registry of controller-runtime that all agents of a process share; the
// labels "hub" and "member" tell them apart. A cluster may have the same name in several hubs.
type metrics struct {
	phases  *prometheus.GaugeVec
	beats   *prometheus.GaugeVec
	failed  *prometheus.GaugeVec
	expires *prometheus.GaugeVec
	places  *prometheus.GaugeVec

	place *int // of the hub among several; nil: there is one
	who   identity
	phase lifecycle.AgentPhase // as shown
}

// identity is the values of the labels.
type identity struct{ hub, member string }

func newMetrics() (*metrics, error) {
	m := &metrics{}
	for _, g := range []struct {
		vec        **prometheus.GaugeVec
		name, help string
		labels     []string
	}{
		{&m.phases, "muster_agent_phase", "1 for the phase that the agent is in.", []string{"hub", "member", "phase"}},
		{&m.beats, "muster_agent_last_heartbeat_timestamp_seconds", "When the hub last took a heartbeat.", []string{"hub", "member"}},
		{&m.failed, "muster_agent_heartbeat_failures", "Heartbeats that failed since the last that did not.", []string{"hub", "member"}},
		{&m.expires, "muster_agent_credential_expiration_timestamp_seconds", "When the agent's credential ends, by its own clock; 0: never.", []string{"hub", "member"}},
		{&m.places, "muster_agent_hub_index", "Which of several hubs the agent is at, in the order of its list; 0: the first.", []string{"hub", "member"}},
	} {
		*g.vec = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: g.name, Help: g.help}, g.labels)
		err := ctrlmetrics.Registry.Register(*g.vec)
		var known prometheus.AlreadyRegisteredError
		switch {
		case err == nil:
		case errors.As(err, &known):
			shared, ours := known.ExistingCollector.(*prometheus.GaugeVec)
			if !ours {
				return nil, err
			}
			*g.vec = shared
		default:
			return nil, err
		}
	}
	return m, nil
}

// set shows where the agent of this hub stands.
func (m *metrics) set(hub string, phase lifecycle.AgentPhase, r record) {
	if who := (identity{hub, r.member().Name}); who != m.who {
		m.forget()
		m.who = who
	}
	if phase != m.phase {
		m.phases.DeleteLabelValues(m.who.hub, m.who.member, string(m.phase))
		m.phases.WithLabelValues(m.who.hub, m.who.member, string(phase)).Set(1)
		m.phase = phase
	}
	if m.place != nil {
		m.places.WithLabelValues(m.who.hub, m.who.member).Set(float64(*m.place))
	}
	if r.Member != nil {
		m.expires.WithLabelValues(m.who.hub, m.who.member).Set(seconds(r.Member.Credential.expires()))
	}
}

func (m *metrics) beat(status heartbeat.Status) {
	m.beats.WithLabelValues(m.who.hub, m.who.member).Set(seconds(status.LastSuccess))
	m.failed.WithLabelValues(m.who.hub, m.who.member).Set(float64(status.Failures))
}

// forget removes all that was shown.
func (m *metrics) forget() {
	m.phases.DeleteLabelValues(m.who.hub, m.who.member, string(m.phase))
	for _, vec := range []*prometheus.GaugeVec{m.beats, m.failed, m.expires, m.places} {
		vec.DeleteLabelValues(m.who.hub, m.who.member)
	}
	m.phase = ""
}

func seconds(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMilli()) / 1000
}
