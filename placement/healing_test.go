package placement_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/mustertest/localplane"
	"github.com/muster-sdk/muster/placement"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// TestCrash stops the controller after each write, whether the API server executed that write or not. It checks that
// the next process ends with the decisions of an uninterrupted run.
func TestCrash(t *testing.T) {
	s := newSource(many(230, "eu")...)
	policies := map[string]v1alpha1.PlacementPolicy{"all": {}, "few": pick(3)}
	check := func(t *testing.T, h *hub) {
		h.scheduled(v1alpha1.ReasonScheduled, "all", "few")
		seen := map[string]bool{}
		for _, c := range h.chosen("all") {
			require.False(t, seen[c], "%s is chosen twice", c)
			seen[c] = true
		}
		require.Len(t, seen, 230)
		require.Len(t, h.chosen("few"), 3)
		require.Len(t, h.slices(), 4)
	}
	for _, executed := range []bool{false, true} {
		for k := range int64(7) {
			t.Run(fmt.Sprintf("write %d, executed: %v", k, executed), func(t *testing.T) {
				testkit.Virtual(t, func(t *testing.T) {
					h := newHub(t)
					for name, policy := range policies {
						h.create(name, policy)
					}
					first := h.start(placement.Options{Clusters: s}, crashAfter(k, executed))
					h.Holds("the process crashes", func() bool {
						return first.transport.writes.Load() > k || h.condition("all").Reason != "" && h.condition("few").Reason != ""
					})
					first.stop()
					before := h.slices()
					h.start(placement.Options{Clusters: s})
					check(t, h)
					for _, slice := range before {
						now := &v1alpha1.PlacementDecision{}
						require.NoError(t, h.Client.Get(t.Context(), client.ObjectKeyFromObject(&slice), now))
						if diff := cmp.Diff(slice.Decisions, now.Decisions); diff != "" {
							t.Errorf("%s was changed (-before +after):\n%s", slice.Name, diff)
						}
					}
				})
			})
		}
	}
}

// TestDecisions_ChangesAreReverted checks that changes of PlacementDecisions by another client are reverted.
func TestDecisions_ChangesAreReverted(t *testing.T) {
	testkit.Virtual(t, testDecisionsChangesAreReverted)
}

func testDecisionsChangesAreReverted(t *testing.T) {
	h, s := newHub(t), newSource(many(120, "eu")...)
	long := "a." + strings.Repeat("b", 60) + "." + strings.Repeat("c", 60) + "." + strings.Repeat("d", 60) + "." +
		strings.Repeat("e", 60)
	for _, name := range []string{"all", long} {
		h.create(name, v1alpha1.PlacementPolicy{})
	}
	h.start(placement.Options{Clusters: s})
	h.scheduled(v1alpha1.ReasonScheduled, "all", long)
	want := map[string][]v1alpha1.ClusterDecision{}
	for _, slice := range h.slices() {
		want[slice.Name] = slice.Decisions
	}
	require.Len(t, want, 4)
	require.Contains(t, want, "all-decision-1")
	requireReverted := func(change string) {
		t.Helper()
		h.Holds(change, func() bool {
			items := h.slices()
			return len(items) == len(want) && !slices.ContainsFunc(items, func(item v1alpha1.PlacementDecision) bool {
				return !slices.Equal(item.Decisions, want[item.Name]) || item.Labels[v1alpha1.PlacementLabel] == "" ||
					!strings.HasSuffix(item.Name, "-"+item.Labels[v1alpha1.DecisionIndexLabel]) || metav1.GetControllerOf(&item) == nil
			})
		})
	}
	for name, change := range map[string]func(*v1alpha1.PlacementDecision){
		"another group":   func(d *v1alpha1.PlacementDecision) { d.Decisions[0].Group = "mine" },
		"a missing label": func(d *v1alpha1.PlacementDecision) { delete(d.Labels, v1alpha1.PlacementLabel) },
		"a wrong label":   func(d *v1alpha1.PlacementDecision) { d.Labels[v1alpha1.DecisionIndexLabel] = "0" },
	} {
		for decision := range want {
			object := &v1alpha1.PlacementDecision{}
			require.NoError(t, h.Client.Get(t.Context(), client.ObjectKey{Namespace: h.Namespace, Name: decision}, object))
			before := object.DeepCopy()
			change(object)
			require.NoError(t, h.Client.Patch(t.Context(), object, client.MergeFrom(before)))
		}
		requireReverted(name)
	}
	// This change affects no placement.
	s.set(cluster("eu-000", "eu", func(c *scheduler.Cluster) { c.Available = corev1.ResourceList{} }))
	for name := range want {
		require.NoError(t, h.Client.Delete(t.Context(),
			&v1alpha1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: name}}))
		h.Holds("the decision is created again", func() bool { return len(h.slices()) == len(want) })
	}
	requireReverted("deletion")
	owner := metav1.GetControllerOf(&h.slices()[0])
	orphan := &v1alpha1.PlacementDecision{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: "copy", OwnerReferences: []metav1.OwnerReference{*owner}},
		Decisions:  []v1alpha1.ClusterDecision{{ClusterName: "nowhere"}},
	}
	h.Create(orphan)
	requireReverted("a copy of another client")
}

// TestDecisions_NameIsTaken checks that a placement with the name of an earlier placement gets its own slices, and that
// objects of other owners are not changed.
func TestDecisions_NameIsTaken(t *testing.T) { testkit.Virtual(t, testDecisionsNameIsTaken) }

func testDecisionsNameIsTaken(t *testing.T) {
	h, s := newHub(t), newSource(many(3, "eu")...)
	old := h.create("web", pick(1))
	first := h.start(placement.Options{Clusters: s})
	h.scheduled(v1alpha1.ReasonScheduled, "web")
	first.stop() // so that the controller does not observe the change
	require.NoError(t, h.Client.Delete(t.Context(), old))
	h.create("web", pick(2))
	others := &v1alpha1.PlacementDecision{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: "taken-decision-0"},
		Decisions:  []v1alpha1.ClusterDecision{{ClusterName: "mine"}},
	}
	h.Create(others)
	h.create("taken", pick(1))
	h.start(placement.Options{Clusters: s})
	h.scheduled(v1alpha1.ReasonScheduled, "web")
	h.Holds("web has two clusters", func() bool { return len(h.chosen("web")) == 2 })
	h.scheduled(v1alpha1.ReasonDecideFailed, "taken")
	require.Contains(t, h.condition("taken").Message, "does not belong to the placement")
	require.NoError(t, h.Client.Delete(t.Context(), others))
	h.scheduled(v1alpha1.ReasonScheduled, "taken")
}

// TestPlacement_CreatedAgain checks that a placement that is deleted and created again with its name while the
// controller runs is treated as a new one, without the state of the first.
func TestPlacement_CreatedAgain(t *testing.T) { testkit.Virtual(t, testPlacementCreatedAgain) }

func testPlacementCreatedAgain(t *testing.T) {
	h, s := newHub(t), newSource(cluster("b", "eu"))
	h.start(placement.Options{Clusters: s})
	for _, want := range []string{"b", "a"} {
		p := h.create("web", pick(1))
		h.scheduled(v1alpha1.ReasonScheduled, "web")
		h.Holds("the placement has its own decision", func() bool {
			items := h.slices()
			return len(items) == 1 && metav1.IsControlledBy(&items[0], p) && items[0].Decisions[0].ClusterName == want
		})
		s.set(cluster("a", "eu"))
		require.Equal(t, []string{want}, h.chosen("web"))
		require.NoError(t, h.Client.Delete(t.Context(), p))
	}
}

// TestLaggingCache checks that a lagging cache causes neither a second write nor a write of an earlier state.
func TestLaggingCache(t *testing.T) {
	h, s := newHubOnPlane(t), newSource(many(3, "eu")...)
	proxy, err := localplane.NewProxy(strings.TrimPrefix(h.Config.Host, "https://"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, proxy.Close()) })
	laggingCache := func(s *setup) { s.options.NewCache = cacheOver(proxy.Config(s.config)) }
	r := h.start(placement.Options{Clusters: s}, laggingCache)
	h.create("web", pick(1))
	h.scheduled(v1alpha1.ReasonScheduled, "web")
	quiet(t, r.transport.writes.Load)
	require.EqualValues(t, 2, r.transport.writes.Load())
	proxy.Stall() // the watch does not deliver later writes
	for i := range 5 {
		former := h.chosen("web")[0]
		s.set(cluster(former, "eu", func(c *scheduler.Cluster) { c.Leaving = true }))
		h.Holds("the placement moves", func() bool { return !slices.Contains(h.chosen("web"), former) })
		s.set(cluster(former, "eu"))
		require.Len(t, h.slices(), 1)
		// The slice is written each time, and the status only the first time, because its message then changes.
		h.Holds("nothing else is written", func() bool { return r.transport.writes.Load() == int64(4+i) })
	}
	moved := versions(h.slices())
	proxy.Heal()
	quiet(t, r.transport.writes.Load)
	require.Equal(t, moved, versions(h.slices()))
	require.EqualValues(t, 8, r.transport.writes.Load())
}
