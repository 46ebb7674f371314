package workset

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
)

// metrics are registered in the registry of controller-runtime. controller-runtime adds the metrics of each controller:
// the durations, queue lengths and failures of reconciles and deliveries.
type metrics struct {
	written   *prometheus.CounterVec
	unclaimed prometheus.Gauge
}

func newMetrics() (*metrics, error) {
	m := &metrics{
		written: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "muster_workset_works_written_total", Help: "Number of writes of Works, by operation: create, update or " +
				"delete.",
		}, []string{"verb"}),
		unclaimed: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "muster_workset_unclaimed_works", Help: "Number of Works whose WorkSet does not exist. The controller keeps " +
				"these Works.",
		}),
	}
	return m, errors.Join(registered(&m.written), registered(&m.unclaimed))
}

// registered registers a collector. If another controller of the process has registered it already, registered replaces
// it with that one.
func registered[C prometheus.Collector](c *C) error {
	err := ctrlmetrics.Registry.Register(*c)
	if known, is := errors.AsType[prometheus.AlreadyRegisteredError](err); is {
		if shared, ours := known.ExistingCollector.(C); ours {
			*c, err = shared, nil
		}
	}
	return err
}
