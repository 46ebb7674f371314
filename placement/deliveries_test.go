package placement_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/placement"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// delivered contains the clusters with objects of Placements, by the name of the Placement.
type delivered struct {
	mu       sync.Mutex
	clusters map[string][]string
	err      error
	calls    map[string]int
}

func (d *delivered) ClustersOf(_ context.Context, placement types.NamespacedName) ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.calls == nil {
		d.calls = map[string]int{}
	}
	d.calls[placement.Name]++
	return d.clusters[placement.Name], d.err
}

func (d *delivered) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = err
}

func (h *hub) delete(name string) {
	h.T.Helper()
	require.NoError(h.T, h.Client.Delete(h.T.Context(), h.get(name)))
	h.Holds("the Placement and its decisions are deleted", func() bool {
		return len(h.slices()) == 0
	})
}

// TestDeliveries_CreatedAgain checks that a Placement which is created again selects the clusters that have its
// objects, although they are unhealthy or others are better, and that Deliveries is not called again later.
func TestDeliveries_CreatedAgain(t *testing.T) { testkit.Virtual(t, testDeliveriesCreatedAgain) }

func testDeliveriesCreatedAgain(t *testing.T) {
	unhealthy := func(c *scheduler.Cluster) { c.Healthy = false }
	for _, test := range []struct {
		name      string
		placement v1alpha1.Placement
		delivered []string
		want      []string
	}{
		{"unhealthy", v1alpha1.Placement{Spec: v1alpha1.PlacementSpec{Policy: pick(1)}}, []string{"sick"}, []string{"sick"}},
		{"all", v1alpha1.Placement{}, []string{"b", "sick"}, []string{"a", "b", "c", "sick"}},
		{"not in the fleet", v1alpha1.Placement{Spec: v1alpha1.PlacementSpec{Policy: pick(1)}}, []string{"lost"},
			[]string{"lost"}},
		{"fewer than before", v1alpha1.Placement{Spec: v1alpha1.PlacementSpec{Policy: pick(1)}}, []string{"b", "c"},
			[]string{"b"}},
		{"more than before", v1alpha1.Placement{Spec: v1alpha1.PlacementSpec{Policy: pick(2)}}, []string{"c"},
			[]string{"a", "c"}},
		{"another region", v1alpha1.Placement{Spec: v1alpha1.PlacementSpec{Policy: inRegion(pick(1), "eu")}}, []string{"us"},
			[]string{"a"}},
		{"an earlier request in its manifest", v1alpha1.Placement{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.RescheduleAnnotation: "monday"}},
			Spec:       v1alpha1.PlacementSpec{Policy: pick(1)},
		}, []string{"sick"}, []string{"sick"}},
		{"a new Placement", v1alpha1.Placement{Spec: v1alpha1.PlacementSpec{Policy: pick(1)}}, nil, []string{"a"}},
	} {
		h := newHub(t)
		us := func(c *scheduler.Cluster) { c.Labels = map[string]string{"region": "us"}; c.Healthy = false }
		clusters := []*scheduler.Cluster{cluster("a", "eu"), cluster("b", "eu"), cluster("c", "eu"),
			cluster("sick", "eu", unhealthy)}
		if test.name == "another region" {
			clusters = append(clusters, cluster("us", "us", us))
		}
		known := &delivered{clusters: map[string][]string{"web": test.delivered}}
		running := h.start(placement.Options{Clusters: newSource(clusters...), Deliveries: known})
		object := test.placement
		object.Namespace, object.Name = h.Namespace, "web"
		h.Create(&object)
		h.scheduled(v1alpha1.ReasonScheduled, "web")
		got := h.chosen("web")
		slices.Sort(got)
		require.Equal(t, test.want, got, test.name)
		h.change("web", func(p *v1alpha1.Placement) { p.Spec.Policy.Tolerations = []v1alpha1.Toleration{{Key: "again"}} })
		h.Holds("the placement is decided again", func() bool {
			p := h.get("web")
			return p.Status.DecidedGeneration == p.Generation
		})
		running.stop()
		require.Equal(t, 1, known.calls["web"], test.name)
		h.delete("web")
	}
}

// TestDeliveries_Errors checks that a Placement is not decided while the clusters with its objects are unknown, that
// its status states this, and that other Placements are decided.
func TestDeliveries_Errors(t *testing.T) { testkit.Virtual(t, testDeliveriesErrors) }

func testDeliveriesErrors(t *testing.T) {
	h, known := newHub(t), &delivered{clusters: map[string][]string{"web": {"b"}}, err: errors.New("timeout")}
	h.start(placement.Options{Clusters: newSource(cluster("a", "eu"), cluster("b", "eu")), Deliveries: known})
	h.create("web", pick(1))
	h.scheduled(v1alpha1.ReasonDecideFailed, "web")
	condition := meta.FindStatusCondition(h.get("web").Status.Conditions, v1alpha1.ConditionScheduled)
	require.Contains(t, condition.Message, "find the clusters that have objects of the placement: timeout")
	require.Empty(t, h.slices())
	known.fail(nil)
	h.scheduled(v1alpha1.ReasonScheduled, "web")
	require.Equal(t, []string{"b"}, h.chosen("web"))
}

// TestDeliveries_DecisionsDeleted checks that a Placement whose PlacementDecisions were deleted while no controller ran
// keeps its clusters, and that Deliveries is not called for a Placement that had selected no cluster.
func TestDeliveries_DecisionsDeleted(t *testing.T) {
	testkit.Virtual(t, testDeliveriesDecisionsDeleted)
}

func testDeliveriesDecisionsDeleted(t *testing.T) {
	h, known := newHub(t), &delivered{clusters: map[string][]string{"web": {"b"}}}
	options := placement.Options{Clusters: newSource(cluster("a", "eu"), cluster("b", "eu")), Deliveries: known}
	running := h.start(options)
	h.create("web", pick(1))
	h.create("none", inRegion(pick(1), "us"))
	h.scheduled(v1alpha1.ReasonScheduled, "web")
	h.scheduled(v1alpha1.ReasonUnschedulable, "none")
	running.stop()
	for _, s := range h.slices() {
		require.NoError(t, h.Client.Delete(t.Context(), &s))
	}
	h.start(options)
	h.Holds("the decision is created again", func() bool { return len(h.slices()) == 1 })
	require.Equal(t, []string{"b"}, h.chosen("web"))
	require.Equal(t, map[string]int{"web": 2, "none": 1}, known.calls)
}
