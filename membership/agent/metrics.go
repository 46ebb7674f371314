package agent

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/muster-sdk/muster/membership/heartbeat"
	"github.com/muster-sdk/muster/membership/lifecycle"
)

// metrics are the metrics of one agent, in the registry of controller-runtime that all agents of a process share. The
// labels "hub" and "member" distinguish the agents. A cluster may have the same name in several hubs.
type metrics struct {
	phases  *prometheus.GaugeVec
	beats   *prometheus.GaugeVec
	failed  *prometheus.GaugeVec
	expires *prometheus.GaugeVec
	places  *prometheus.GaugeVec

	place   *int // index of the hub among several; nil: there is one
	subject identity
	phase   lifecycle.AgentPhase // the current value
}

// identity contains the values of the labels.
type identity struct{ hub, member string }

func newMetrics() (*metrics, error) {
	m := &metrics{}
	for _, g := range []struct {
		vec        **prometheus.GaugeVec
		name, help string
		labels     []string
	}{
		{&m.phases, "muster_agent_phase", "1 for the current phase of the agent.", []string{"hub", "member", "phase"}},
		{&m.beats, "muster_agent_last_heartbeat_timestamp_seconds", "Time at which the hub last accepted a heartbeat.",
			[]string{"hub", "member"}},
		{&m.failed, "muster_agent_heartbeat_failures", "Failed heartbeats since the last successful one.",
			[]string{"hub", "member"}},
		{&m.expires, "muster_agent_credential_expiration_timestamp_seconds",
			"Time at which the agent's credential expires, by the agent's clock; 0: never.", []string{"hub", "member"}},
		{&m.places, "muster_agent_hub_index", "Index of the current hub in the agent's list of hubs; 0: the first.",
			[]string{"hub", "member"}},
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

// set updates the metrics of the agent of this hub.
func (m *metrics) set(hub string, phase lifecycle.AgentPhase, r record) {
	if subject := (identity{hub, r.member().Name}); subject != m.subject {
		m.forget()
		m.subject = subject
	}
	if phase != m.phase {
		m.phases.DeleteLabelValues(m.subject.hub, m.subject.member, string(m.phase))
		m.phases.WithLabelValues(m.subject.hub, m.subject.member, string(phase)).Set(1)
		m.phase = phase
	}
	if m.place != nil {
		m.places.WithLabelValues(m.subject.hub, m.subject.member).Set(float64(*m.place))
	}
	if r.Member != nil {
		m.expires.WithLabelValues(m.subject.hub, m.subject.member).Set(seconds(r.Member.Credential.expires()))
	}
}

func (m *metrics) beat(status heartbeat.Status) {
	m.beats.WithLabelValues(m.subject.hub, m.subject.member).Set(seconds(status.LastSuccess))
	m.failed.WithLabelValues(m.subject.hub, m.subject.member).Set(float64(status.Failures))
}

// forget removes the agent's series.
func (m *metrics) forget() {
	m.phases.DeleteLabelValues(m.subject.hub, m.subject.member, string(m.phase))
	for _, vec := range []*prometheus.GaugeVec{m.beats, m.failed, m.expires, m.places} {
		vec.DeleteLabelValues(m.subject.hub, m.subject.member)
	}
	m.phase = ""
}

func seconds(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMilli()) / 1000
}
