package fleet

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// metrics are the metrics of one fleet, which is a separate collector. No series has a label for a single member: a
// hub may have thousands.
type metrics struct {
	members  *prometheus.GaugeVec
	probes   *prometheus.HistogramVec
	runners  *prometheus.GaugeVec
	failures *prometheus.CounterVec
}

// connecting is the reason of a member in the metrics whose state is not known yet; the other values are reasons of the
// condition Reachable.
const connecting = "Connecting"

// runnerState is the state of a runner for one member in the metrics.
type runnerState string

const (
	running runnerState = "Running"
	failing runnerState = "Failing" // it failed, and will be called again
	overdue runnerState = "Overdue" // it should have returned and has not
)

func newMetrics(runners []Runner) *metrics {
	m := &metrics{
		members: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "muster_fleet_members", Help: "Members that this process connects to, by the state of the connection.",
		}, []string{"reason"}),
		probes: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "muster_fleet_probe_duration_seconds", Help: "Duration of probes of members, by " +
				"result.",
			Buckets: prometheus.ExponentialBuckets(0.005, 2, 13), // 5 ms to 20 s
		}, []string{"reason"}),
		runners: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "muster_fleet_runners", Help: "Members for which a runner runs, by the state of the runner.",
		}, []string{"runner", "state"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "muster_fleet_runner_failures_total", Help: "Failures and panics of a runner for a member, after which the " +
				"runner is called again.",
		}, []string{"runner"}),
	}
	for _, reason := range []string{
		connecting, v1alpha1.ReasonReachable, v1alpha1.ReasonUnreachable, v1alpha1.ReasonUnauthorized,
		v1alpha1.ReasonKubeConfigMissing, v1alpha1.ReasonKubeConfigInvalid, v1alpha1.ReasonOtherCluster,
	} { // a reason without members is 0, not missing
		m.members.WithLabelValues(reason)
	}
	names := []string{(*clusters)(nil).Name()}
	for _, runner := range runners {
		names = append(names, runner.Name())
	}
	for _, name := range names {
		m.failures.WithLabelValues(name)
		for _, state := range []runnerState{running, failing, overdue} {
			m.runners.WithLabelValues(name, string(state))
		}
	}
	return m
}

// counted moves a member from one reason to another; empty: none.
func (m *metrics) counted(before, now string) {
	if now == before {
		return
	}
	if now != "" {
		m.members.WithLabelValues(now).Inc()
	}
	if before != "" {
		m.members.WithLabelValues(before).Dec()
	}
}

// enter counts a runner in a state until leave is called.
func (m *metrics) enter(runner string, state runnerState) (leave func()) {
	gauge := m.runners.WithLabelValues(runner, string(state))
	gauge.Inc()
	return gauge.Dec
}

func (m *metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.members, m.probes, m.runners, m.failures}
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, collector := range m.collectors() {
		collector.Describe(ch)
	}
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	for _, collector := range m.collectors() {
		collector.Collect(ch)
	}
}

// expose registers the metrics with controller-runtime until hide is called. Of several fleets in one process only the
// first is registered, because their metrics have the same names.
func (m *metrics) expose() (hide func(), _ error) {
	err := ctrlmetrics.Registry.Register(m)
	if _, already := errors.AsType[prometheus.AlreadyRegisteredError](err); already {
		return func() {}, nil
	}
	return func() { ctrlmetrics.Registry.Unregister(m) }, err
}
