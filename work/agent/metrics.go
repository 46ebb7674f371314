package agent

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
)

// metrics are in the registry of controller-runtime, which all agents of a process share; the label "hub" tells them apart.
// Besides there are those of every controller: how long looks take, and how many wait.
type metrics struct {
	heals *prometheus.CounterVec
}

func newMetrics() (*metrics, error) {
	m := &metrics{heals: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "muster_work_healed_total", Help: "Objects that others had changed or deleted, and that were brought back to their manifests.",
	}, []string{"hub"})}
	err := ctrlmetrics.Registry.Register(m.heals)
	if known, is := errors.AsType[prometheus.AlreadyRegisteredError](err); is {
		if shared, ours := known.ExistingCollector.(*prometheus.CounterVec); ours {
			m.heals, err = shared, nil
		}
	}
	return m, err
}

func (m *metrics) healed(hub string, objects int) {
	if objects > 0 {
		m.heals.WithLabelValues(hub).Add(float64(objects))
	}
}
