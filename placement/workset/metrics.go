package workset

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
)

// metrics are in the registry of controller-runtime, beside those that every controller has: how long looks and deliveries take, how many
// wait and how many fail.
type metrics struct{ written *prometheus.CounterVec }

func newMetrics() (*metrics, error) {
	m := &metrics{written: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "muster_workset_works_written_total", Help: "Writes of Works by what was done: create, update or delete.",
	}, []string{"verb"})}
	err := ctrlmetrics.Registry.Register(m.written)
	if known, is := errors.AsType[prometheus.AlreadyRegisteredError](err); is {
		if shared, ours := known.ExistingCollector.(*prometheus.CounterVec); ours {
			m.written, err = shared, nil
		}
	}
	return m, err
}
