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
// label "member" tells them apart.
type metrics struct {
	phase   *prometheus.GaugeVec
	beats   *prometheus.GaugeVec
	failed  *prometheus.GaugeVec
	expires *prometheus.GaugeVec

	shown string // the value of the label
}

func newMetrics() (*metrics, error) {
	m := &metrics{}
	for _, g := range []struct {
		vec        **prometheus.GaugeVec
		name, help string
		labels     []string
	}{
		{&m.phase, "muster_agent_phase", "1 for the phase that the agent is in.", []string{"member", "phase"}},
		{&m.beats, "muster_agent_last_heartbeat_timestamp_seconds", "When the hub last took a heartbeat.", []string{"member"}},
		{&m.failed, "muster_agent_heartbeat_failures", "Heartbeats that failed since the last that did not.", []string{"member"}},
		{&m.expires, "muster_agent_credential_expiration_timestamp_seconds", "When the agent's credential ends, by its own clock; 0: never.", []string{"member"}},
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

// set shows where the agent stands.
func (m *metrics) set(phase lifecycle.AgentPhase, r record) {
	m.name(r.member().Name)
	m.phase.DeletePartialMatch(prometheus.Labels{"member": m.shown})
	m.phase.WithLabelValues(m.shown, string(phase)).Set(1)
	if r.Member != nil {
		m.expires.WithLabelValues(m.shown).Set(seconds(r.Member.Credential.expires()))
	}
}

func (m *metrics) beat(status heartbeat.Status) {
	m.beats.WithLabelValues(m.shown).Set(seconds(status.LastSuccess))
	m.failed.WithLabelValues(m.shown).Set(float64(status.Failures))
}

func (m *metrics) name(member string) {
	if member != m.shown {
		m.forget()
		m.shown = member
	}
}

// forget removes all that was shown.
func (m *metrics) forget() {
	for _, vec := range []*prometheus.GaugeVec{m.phase, m.beats, m.failed, m.expires} {
		vec.DeletePartialMatch(prometheus.Labels{"member": m.shown})
	}
}

func seconds(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMilli()) / 1000
}
