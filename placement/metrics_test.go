package placement_test

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/muster-sdk/muster/placement"
	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// measured returns the values of a metric by the value of its label. The key is empty for a metric without a label. The
// value of a histogram is the number of its observations.
func measured(t *testing.T, name string) map[string]int {
	t.Helper()
	families, err := ctrlmetrics.Registry.Gather()
	require.NoError(t, err)
	values := map[string]int{}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			label := ""
			for _, pair := range m.GetLabel() {
				label = pair.GetValue()
			}
			values[label] = int(m.GetCounter().GetValue()+m.GetGauge().GetValue()) + int(m.GetHistogram().GetSampleCount())
		}
	}
	return values
}

// TestMetrics checks that each change is counted once, and that gauges do not include objects that no longer exist. It
// is not parallel, because all tests of this process share the metrics.
func TestMetrics(t *testing.T) { synctest.Test(t, testMetrics) }

func testMetrics(t *testing.T) {
	h, s, decider := newHub(t), newSource(many(3, "eu")...), newCounting(t)
	r := h.start(placement.Options{Clusters: s, Decider: decider})
	h.evictable("web", v1alpha1.PlacementSpec{Policy: pick(2),
		DisruptionBudget: &v1alpha1.DisruptionBudget{MinAvailable: new(intstr.FromInt32(2))}})
	h.create("more", inRegion(pick(1), "us"))
	h.scheduled(v1alpha1.ReasonUnschedulable, "more")
	h.create("broken", inRegion(pick(1), "x y"))
	h.scheduled(v1alpha1.ReasonInvalidPolicy, "broken")
	h.evict("waits", "web", h.chosen("web")[0])
	h.executed("waits", metav1.ConditionFalse, v1alpha1.ReasonBudgetExhausted)
	h.evict("early", "nowhere", "eu-000")
	h.executed("early", metav1.ConditionFalse, v1alpha1.ReasonPlacementNotFound)
	h.Holds("both evictions wait", func() bool {
		waiting := measured(t, "muster_placement_evictions_waiting")
		return waiting[v1alpha1.ReasonBudgetExhausted] == 1 && waiting[v1alpha1.ReasonPlacementNotFound] == 1
	})
	require.Equal(t, map[string]int{"hand": 0, "failover": 0}, measured(t, "muster_placement_evictions_total"))

	h.change("web", func(p *v1alpha1.Placement) { p.Spec.DisruptionBudget = nil })
	h.executed("waits", metav1.ConditionTrue, v1alpha1.ReasonEvicted)
	h.evictable("fails", v1alpha1.PlacementSpec{Policy: pick(1), Failover: &v1alpha1.FailoverPolicy{}})
	left := h.chosen("fails")[0]
	s.set(tainted(left))
	h.Holds("the placement has moved", func() bool {
		return !slices.Contains(h.chosen("fails"), left) && len(h.chosen("fails")) == 1
	})
	quiet(t, func() int64 { return int64(decider.total()) })
	require.Equal(t, 1, measured(t, "muster_placement_evictions_total")["hand"])
	require.Equal(t, 1, measured(t, "muster_placement_evictions_total")["failover"])
	changes := measured(t, "muster_placement_cluster_changes_total")
	on := len(h.chosen("web")) + len(h.chosen("fails"))
	require.Equal(t, on, changes["added"]-changes["removed"])
	decisions := measured(t, "muster_placement_decisions_total")
	require.Equal(t, 1, decisions[v1alpha1.ReasonUnschedulable])
	require.Equal(t, 1, decisions[v1alpha1.ReasonInvalidPolicy])
	require.GreaterOrEqual(t, decisions[v1alpha1.ReasonScheduled], 4)
	require.Equal(t, decider.total(), measured(t, "muster_placement_decision_duration_seconds")[""])
	queue := measured(t, "muster_placement_queue")
	if diff := cmp.Diff(map[string]int{"active": 0, "backoff": 0, "in_flight": 0, "unschedulable": 1}, queue); diff != "" {
		t.Errorf("the queue (-want +got):\n%s", diff)
	}
	problems, err := testutil.GatherAndLint(ctrlmetrics.Registry, "muster_placement_decisions_total",
		"muster_placement_decision_duration_seconds",
		"muster_placement_cluster_changes_total", "muster_placement_evictions_total", "muster_placement_evictions_waiting",
		"muster_placement_queue")
	require.NoError(t, err)
	require.Empty(t, problems)
	require.NoError(t, h.Client.Delete(t.Context(),
		&v1alpha1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: "more"}},
		client.GracePeriodSeconds(0)))
	h.Holds("the placement is removed from the queue", func() bool {
		return measured(t, "muster_placement_queue")["unschedulable"] == 0
	})
	r.stop()
	require.Empty(t, measured(t, "muster_placement_queue"), "a stopped controller has no metrics")
}
