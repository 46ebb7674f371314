package placement

import (
	"errors"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/muster-sdk/muster/placement/internal/decision"
	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// metrics contains the counters and the histogram of one controller. The controller itself is the
// [prometheus.Collector], and adds gauges of its current state.
type metrics struct {
	decisions *prometheus.CounterVec
	seconds   prometheus.Histogram
	clusters  *prometheus.CounterVec
	evictions *prometheus.CounterVec
}

// Values of labels.
const (
	resultWriteFailed = "WriteFailed" // in addition to the reasons of the condition Scheduled
	added, removed    = "added", "removed"
	byHand            = "hand"
	byFailover        = "failover"
)

func newMetrics() *metrics {
	m := &metrics{
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "muster_placement_decisions_total", Help: "Number of decisions about placements, by result.",
		}, []string{"result"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "muster_placement_decision_duration_seconds",
			Help:    "Duration of a selection of clusters in seconds, without the writes of its result.",
			Buckets: prometheus.ExponentialBuckets(10e-6, 4, 11), // 10 µs to 10 s
		}),
		clusters: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "muster_placement_cluster_changes_total", Help: "Number of clusters that were added to or removed from " +
				"placements.",
		}, []string{"change"}),
		evictions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "muster_placement_evictions_total", Help: "Number of clusters that were evicted from placements.",
		}, []string{"by"}),
	}
	for vec, values := range map[*prometheus.CounterVec][]string{
		m.decisions: {
			v1alpha1.ReasonScheduled, v1alpha1.ReasonUnschedulable, v1alpha1.ReasonInvalidPolicy, v1alpha1.ReasonDecideFailed,
			resultWriteFailed,
		},
		m.clusters: {added, removed}, m.evictions: {byHand, byFailover},
	} {
		for _, value := range values { // values that have not occurred are 0, not missing
			vec.WithLabelValues(value)
		}
	}
	return m
}

var (
	queueDesc = prometheus.NewDesc("muster_placement_queue",
		"Number of placements in the scheduling queue, by state.", []string{"state"}, nil)
	waitingDesc = prometheus.NewDesc("muster_placement_evictions_waiting",
		"Number of PlacementEvictions that are not executed yet, by the reason of their condition.", []string{"reason"}, nil)
)

// moved counts the clusters that a decision adds to a placement and removes from it.
func (m *metrics) moved(before, after []decision.Slice) {
	came, left := movedBetween(before, after)
	m.clusters.WithLabelValues(added).Add(float64(len(came)))
	m.clusters.WithLabelValues(removed).Add(float64(len(left)))
}

// failedOver counts the clusters that are evicted by failover, without a PlacementEviction.
func (m *metrics) failedOver(a *attempt, s *step) {
	for _, name := range s.left {
		if !slices.ContainsFunc(a.evictions, func(e *v1alpha1.PlacementEviction) bool { return e.Spec.Cluster == name }) {
			m.evictions.WithLabelValues(byFailover).Inc()
		}
	}
}

func (m *metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.decisions, m.seconds, m.clusters, m.evictions}
}

// Describe implements prometheus.Collector.
func (d *decisionController) Describe(ch chan<- *prometheus.Desc) {
	for _, collector := range d.metrics.collectors() {
		collector.Describe(ch)
	}
	ch <- queueDesc
	ch <- waitingDesc
}

// Collect implements prometheus.Collector.
func (d *decisionController) Collect(ch chan<- prometheus.Metric) {
	for _, collector := range d.metrics.collectors() {
		collector.Collect(ch)
	}
	gauge := func(desc *prometheus.Desc, value int, label string) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value), label)
	}
	stats := d.queue.Stats()
	gauge(queueDesc, stats.Active, "active")
	gauge(queueDesc, stats.Backoff, "backoff")
	gauge(queueDesc, stats.Unschedulable, "unschedulable")
	gauge(queueDesc, stats.InFlight, "in_flight")
	waiting := d.evictions.waiting()
	for _, reason := range []string{
		v1alpha1.ReasonBudgetExhausted, v1alpha1.ReasonWaitsForReplacement, v1alpha1.ReasonWaitsForTurn,
		v1alpha1.ReasonPlacementNotFound, v1alpha1.ReasonNotDecided, v1alpha1.ReasonPickFixed,
	} {
		gauge(waitingDesc, waiting[reason], reason)
	}
}

// expose registers a collector in the registry of controller-runtime until hide is called. If several controllers run
// in one process, only the first one is registered, because names of metrics are unique.
func expose(collector prometheus.Collector) (hide func(), _ error) {
	err := ctrlmetrics.Registry.Register(collector)
	if _, already := errors.AsType[prometheus.AlreadyRegisteredError](err); already {
		return func() {}, nil
	}
	return func() { ctrlmetrics.Registry.Unregister(collector) }, err
}
