package addon

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/muster-sdk/muster/addon/internal/calls"
	"github.com/muster-sdk/muster/addon/v1alpha1"
)

// metrics are the metrics of the add-ons. Only the leader exposes them, because other processes reconcile nothing.
type metrics struct {
	reader client.Reader // the cache
	calls  *prometheus.HistogramVec
	forced *prometheus.CounterVec
}

func newMetrics(reader client.Reader) *metrics {
	return &metrics{
		reader: reader,
		calls: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "muster_addon_call_duration_seconds",
			Help:    "Duration of the calls of an add-on's functions, by function and result.",
			Buckets: prometheus.ExponentialBuckets(1e-3, 4, 8), // 1 ms to 16 s
		}, []string{"addon", "function", "result"}),
		forced: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "muster_addon_forced_removals_total",
			Help: "Number of removals that were forced after their deadline. Remaining objects stay on the member.",
		}, []string{"addon"}),
	}
}

// Values of the label result of calls.
const (
	callSucceeded = "success"
	callFailed    = "error"
	callOverdue   = "timeout"
)

// observeCall records a call. It may be used concurrently.
func (m *metrics) observeCall(k calls.Key, took time.Duration, err error) {
	result := callSucceeded
	switch {
	case errors.Is(err, calls.ErrOverdue):
		result = callOverdue
	case err != nil:
		result = callFailed
	}
	function, _, _ := strings.Cut(k.Function, " ")
	m.calls.WithLabelValues(k.Owner.Name, function, result).Observe(took.Seconds())
}

// observeConditions records the change of the conditions of a MemberAddon.
func (m *metrics) observeConditions(addon string, before, after []metav1.Condition) {
	if isForced(after) && !isForced(before) {
		m.forced.WithLabelValues(addon).Inc()
	}
}

// States of an add-on on a member. The first one that applies is the state.
const (
	stateRemoving    = "removing"
	stateDegraded    = "degraded"
	stateUpdating    = "updating"
	stateAvailable   = "available"
	stateUnavailable = "unavailable"
)

var states = []string{stateRemoving, stateDegraded, stateUpdating, stateAvailable, stateUnavailable}

func stateOf(m *v1alpha1.MemberAddon) string {
	is := func(condition string) bool { return meta.IsStatusConditionTrue(m.Status.Conditions, condition) }
	switch {
	case m.DeletionTimestamp != nil:
		return stateRemoving
	case is(v1alpha1.ConditionDegraded):
		return stateDegraded
	case is(v1alpha1.ConditionProgressing):
		return stateUpdating
	case is(v1alpha1.ConditionAvailable):
		return stateAvailable
	}
	return stateUnavailable
}

var membersDesc = prometheus.NewDesc("muster_addon_members",
	"Number of members with an add-on, by state: removing, degraded, updating, available or unavailable.",
	[]string{"addon", "state"}, nil)

// Describe implements prometheus.Collector.
func (m *metrics) Describe(ch chan<- *prometheus.Desc) {
	m.calls.Describe(ch)
	m.forced.Describe(ch)
	ch <- membersDesc
}

// Collect implements prometheus.Collector. An Addon without members has values too, so that an alert can tell 0 from
// an add-on that does not exist.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	m.calls.Collect(ch)
	m.forced.Collect(ch)
	ctx, cancel := context.WithTimeout(context.Background(), collectTimeout)
	defer cancel()
	var addons v1alpha1.AddonList
	var members v1alpha1.MemberAddonList
	for _, list := range []client.ObjectList{&addons, &members} {
		if err := m.reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			ch <- prometheus.NewInvalidMetric(membersDesc, err)
			return
		}
	}
	counts := map[string]map[string]int{}
	for i := range addons.Items {
		counts[addons.Items[i].Name] = map[string]int{}
	}
	for i := range members.Items {
		m := &members.Items[i]
		if counts[m.Name] == nil { // its Addon was deleted
			counts[m.Name] = map[string]int{}
		}
		counts[m.Name][stateOf(m)]++
	}
	for name, of := range counts {
		for _, state := range states {
			ch <- prometheus.MustNewConstMetric(membersDesc, prometheus.GaugeValue, float64(of[state]), name, state)
		}
	}
}

// collectTimeout is the maximum duration of the lists of one scrape. They are served by the cache.
const collectTimeout = 5 * time.Second

// Start shows the metrics in the registry of controller-runtime until the context ends. If the process has several
// hubs, only the metrics of the first one are shown, because two metrics cannot have the same name.
func (m *metrics) Start(ctx context.Context) error {
	err := ctrlmetrics.Registry.Register(m)
	if _, already := errors.AsType[prometheus.AlreadyRegisteredError](err); already {
		return nil
	}
	if err != nil {
		return err
	}
	defer ctrlmetrics.Registry.Unregister(m)
	<-ctx.Done()
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (*metrics) NeedLeaderElection() bool { return true }
