package fleet

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// metrics are those of one fleet. It shows them itself. No series is of one member alone: a hub may have thousands.
type metrics struct {
	members  *prometheus.GaugeVec
	probes   *prometheus.HistogramVec
	runners  *prometheus.GaugeVec
	failures *prometheus.CounterVec
}

// connecting is what a member is counted as before anything is known of it; the other values are reasons of the
// condition Reachable.
const connecting = "Connecting"

// runnerState is what a runner is counted as for one member.
type runnerState string

const (
	running runnerState = "Running"
	failing runnerState = "Failing" // it failed, and is about to be called again
	overdue runnerState = "Overdue" // it was to return and has not
)

func newMetrics(runners []Runner) *metrics {
	m := &metrics{
		members: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "muster_fleet_members", Help: "Members that this program connects to, by what it knows of the way there.",
		}, []string{"reason"}),
		probes: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "muster_fleet_probe_duration_seconds", Help: "How long members took to answer, or were waited for, by " +
				"what came of it.",
			Buckets: prometheus.ExponentialBuckets(0.005, 2, 13), // 5 ms to 20 s
		}, []string{"reason"}),
		runners: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "muster_fleet_runners", Help: "Members that a runner is there for, by how it stands with them.",
		}, []string{"runner", "state"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "muster_fleet_runner_failures_total", Help: "How often a runner failed for a member, or panicked, and " +
				"was to be called again.",
		}, []string{"runner"}),
	}
	for _, reason := range []string{
		connecting, v1alpha1.ReasonReachable, v1alpha1.ReasonUnreachable, v1alpha1.ReasonUnauthorized,
		v1alpha1.ReasonKubeConfigMissing, v1alpha1.ReasonKubeConfigInvalid, v1alpha1.ReasonOtherCluster,
	} { // what there is none of is 0, not missing
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

// counted has a member counted by another reason than before; empty: by none.
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

// enter has a runner counted in a state until leave is called.
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

// expose shows the metrics in the registry of controller-runtime until they are hidden. Of several fleets in one
// process the first one's are shown: two metrics of one name cannot be.
func (m *metrics) expose() (hide func(), _ error) {
	err := ctrlmetrics.Registry.Register(m)
	if _, already := errors.AsType[prometheus.AlreadyRegisteredError](err); already {
		return func() {}, nil
	}
	return func() { ctrlmetrics.Registry.Unregister(m) }, err
}
