package agent

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
)

// metrics are in the registry of controller-runtime, which all agents of a process share. The label "hub"
// distinguishes them. In addition, there are the metrics of every controller, such as the duration of reconciles and
// the depth of the workqueue.
type metrics struct {
	heals   *prometheus.CounterVec
	orphans *prometheus.GaugeVec
}

func newMetrics() (*metrics, error) {
	m := &metrics{heals: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "muster_work_healed_total",
		Help: "Number of objects that were restored to their manifest after another client changed or deleted them.",
	}, []string{"hub"})}
	m.orphans = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "muster_work_orphaned_objects",
		Help: "Number of objects on the member that no Work contains although their deletion was not requested.",
	}, []string{"hub"})
	return m, errors.Join(registered(&m.heals), registered(&m.orphans))
}

// registered registers a collector, or replaces it with the one that another agent of the process has registered.
func registered[C prometheus.Collector](c *C) error {
	err := ctrlmetrics.Registry.Register(*c)
	if known, is := errors.AsType[prometheus.AlreadyRegisteredError](err); is {
		if shared, ours := known.ExistingCollector.(C); ours {
			*c, err = shared, nil
		}
	}
	return err
}

func (m *metrics) orphaned(hub string, objects int) {
	m.orphans.WithLabelValues(hub).Set(float64(objects))
}

func (m *metrics) healed(hub string, objects int) {
	if objects > 0 {
		m.heals.WithLabelValues(hub).Add(float64(objects))
	}
}
