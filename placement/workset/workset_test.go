package workset_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/placement/workset"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

func sorted(s []string) []string {
	s = slices.Clone(s)
	slices.Sort(s)
	return s
}

// TestWorkSet_Distributes checks that a WorkSet reaches the clusters of its Placement, and that its deletion removes
// its objects.
func TestWorkSet_Distributes(t *testing.T) { testkit.Virtual(t, testWorkSetDistributes) }

func testWorkSetDistributes(t *testing.T) {
	h := newHub(t)
	h.members("east", "west")
	h.place("all")
	h.simulateAgents()
	r := h.start(workset.Options{})
	h.distribute("web", "all", nil, configMap("web", map[string]string{"color": "blue"}))
	h.Holds("each cluster has a Work", func() bool { return keys(h.works("web")) == "[east/web-0 west/web-0]" })
	h.Holds("all is available", func() bool {
		return h.condition("web", v1alpha1.ConditionAvailable).Status == metav1.ConditionTrue
	})
	set := h.get("web")
	require.EqualValues(t, 2, set.Status.Counts.Updated)
	require.Equal(t, v1alpha1.PhaseSucceeded, set.Status.Rollout.Phase, set.Status.Message)
	require.Equal(t, 2, r.wire.Count("POST works"))

	h.change("web", func(s *v1alpha1.WorkSet) {
		s.Spec.Manifests[0] = configMap("web", map[string]string{"color": "green"})
	})
	h.Holds("the new revision is available everywhere", func() bool {
		s := h.get("web").Status
		return s.Revision != set.Status.Revision && s.Counts.Available == 2 && s.Rollout.Phase == v1alpha1.PhaseSucceeded
	})
	require.Equal(t, 2, r.wire.Count("PATCH works"), r.wire.Writes())

	require.NoError(t, h.Client.Delete(t.Context(), h.get("web")))
	h.Holds("nothing is left", func() bool { return len(h.works("web")) == 0 })
}

// TestRestart_WritesNothing checks that a restart without changes writes nothing.
func TestRestart_WritesNothing(t *testing.T) { testkit.Virtual(t, testRestartWritesNothing) }

func testRestartWritesNothing(t *testing.T) {
	h := newHub(t)
	h.members("a", "b", "c")
	h.place("all")
	h.simulateAgents()
	r := h.start(workset.Options{})
	h.distribute("web", "all", nil, configMap("web", map[string]string{"color": "blue"}))
	h.succeeded("web", 3)
	r.quiet(t)
	r.stop()
	before := h.get("web")

	r = h.start(workset.Options{})
	r.waitForWatch(t, h)
	r.quiet(t)
	require.Empty(t, r.wire.Writes())
	require.Equal(t, before.ResourceVersion, h.get("web").ResourceVersion)
}

// TestWorks_FollowDecisions checks that a newly chosen cluster gets the objects, and that a cluster that is not chosen
// any more loses them.
func TestWorks_FollowDecisions(t *testing.T) { testkit.Virtual(t, testWorksFollowDecisions) }

func testWorksFollowDecisions(t *testing.T) {
	h := newHub(t)
	h.members("a", "b", "c")
	h.place("some", "a", "b")
	h.simulateAgents()
	h.start(workset.Options{})
	h.distribute("web", "some", nil, configMap("web", nil))
	h.succeeded("web", 2)
	require.Equal(t, "[a/web-0 b/web-0]", keys(h.works("web")))
	h.choose("some", "b", "c")
	h.Holds("the Works have followed", func() bool { return keys(h.works("web")) == "[b/web-0 c/web-0]" })
	h.succeeded("web", 2)
}

// TestMissingPlacement checks that no cluster loses its objects while a Placement is missing.
func TestMissingPlacement(t *testing.T) { testkit.Virtual(t, testMissingPlacement) }

func testMissingPlacement(t *testing.T) {
	h := newHub(t)
	h.members("a", "b")
	h.place("some", "a", "b")
	h.simulateAgents()
	r := h.start(workset.Options{})
	h.distribute("web", "some", nil, configMap("web", nil))
	h.succeeded("web", 2)
	h.deletePlacement("some")
	h.Holds("the WorkSet reports the missing Placement", func() bool {
		c := h.condition("web", v1alpha1.ConditionDegraded)
		return c.Status == metav1.ConditionTrue && c.Reason == v1alpha1.ReasonPlacementNotFound
	})
	h.change("web", func(s *v1alpha1.WorkSet) {
		s.Spec.Manifests[0] = configMap("web", map[string]string{"color": "green"})
	})
	h.succeededWhileDegraded("web", 2)
	require.Zero(t, r.wire.Count("DELETE works"))
	h.place("some", "b")
	h.Holds("the deselected cluster has no Work", func() bool { return keys(h.works("web")) == "[b/web-0]" })
	h.succeeded("web", 1)
}

// TestWorks_NamePlacements checks that the Works of a WorkSet with several Placements name those that selected the
// cluster, also while a Placement is missing. A Placement that is created again finds its clusters by these names.
func TestWorks_NamePlacements(t *testing.T) { testkit.Virtual(t, testWorksNamePlacements) }

func testWorksNamePlacements(t *testing.T) {
	h := newHub(t)
	h.members("a", "b", "c")
	h.place("left", "a", "b")
	h.place("right", "b")
	h.simulateAgents()
	r := h.start(workset.Options{})
	h.distribute("web", "right", func(s *v1alpha1.WorkSetSpec) {
		s.Placements = append(s.Placements, v1alpha1.PlacementReference{Name: "left"})
	}, configMap("web", nil))
	h.succeeded("web", 2)
	named := func(want map[string]string) func() bool {
		return func() bool {
			got := map[string]string{}
			for name, work := range h.works("web") {
				got[name] = work.Annotations[v1alpha1.PlacementsAnnotation]
			}
			return maps.Equal(got, want)
		}
	}
	h.Holds("the Works name the Placements", named(map[string]string{"a/web-0": "left", "b/web-0": "left,right"}))
	h.choose("right", "c")
	h.Holds("the Works name the changed Placements", named(map[string]string{"a/web-0": "left", "b/web-0": "left",
		"c/web-0": "right"}))
	h.succeeded("web", 3)
	h.deletePlacement("left")
	h.deletePlacement("right")
	h.Holds("Placements are missing", func() bool {
		c := h.condition("web", v1alpha1.ConditionDegraded)
		return c.Status == metav1.ConditionTrue && c.Reason == v1alpha1.ReasonPlacementNotFound
	})
	h.change("web", func(s *v1alpha1.WorkSet) {
		s.Spec.Manifests[0] = configMap("web", map[string]string{"color": "green"})
	})
	h.succeededWhileDegraded("web", 3)
	require.True(t, named(map[string]string{"a/web-0": "left", "b/web-0": "left", "c/web-0": "right"})())
	require.Zero(t, r.wire.Count("DELETE works"))
}

// TestRollout_RollsBack checks that a rollout respects its concurrency, and that too many failures roll back all
// clusters.
func TestRollout_RollsBack(t *testing.T) { testkit.Virtual(t, testRolloutRollsBack) }

func testRolloutRollsBack(t *testing.T) {
	h := newHub(t)
	h.members("a", "b", "c", "d")
	h.place("all")
	stopAgents := h.simulateAgents()
	h.start(workset.Options{})
	h.distribute("web", "all", func(s *v1alpha1.WorkSetSpec) {
		s.Rollout = v1alpha1.RolloutStrategy{Type: v1alpha1.RolloutProgressive, MaxConcurrency: new(intstr.FromInt32(1)),
			OnFailure: v1alpha1.FailureRollBack}
	}, configMap("web", map[string]string{"color": "blue"}))
	h.succeeded("web", 4)
	stable := h.get("web").Status.Revision
	stopAgents()

	h.change("web", func(s *v1alpha1.WorkSet) {
		s.Spec.Manifests[0] = configMap("web", map[string]string{"color": "red"})
	})
	h.Holds("the first cluster is updated", func() bool { return h.get("web").Status.Counts.Updated == 1 })
	h.reportStatus(t.Context(), h.works("web")["a/web-0"], metav1.ConditionTrue)
	h.Holds("the second cluster is updated", func() bool { return h.get("web").Status.Counts.Updated == 2 })
	require.EqualValues(t, 1, h.works("web")["c/web-0"].Generation)
	h.reportStatus(t.Context(), h.works("web")["b/web-0"], metav1.ConditionFalse)
	h.simulateAgents()
	h.Holds("all clusters are rolled back", func() bool {
		s := h.get("web").Status
		return s.Rollout.Phase == v1alpha1.PhaseRolledBack && s.Counts.Available == 4
	})
	for name, work := range h.works("web") {
		require.Contains(t, string(work.Spec.Manifests[0].Raw), "blue", name)
		require.Equal(t, stable, work.Annotations[v1alpha1.RevisionAnnotation], name)
	}
}

// TestSelection_FollowsChanges checks that objects that are selected on the hub are distributed, and their later
// changes as well.
func TestSelection_FollowsChanges(t *testing.T) { testkit.Virtual(t, testSelectionFollowsChanges) }

func testSelectionFollowsChanges(t *testing.T) {
	h := newHub(t)
	h.members("a")
	h.place("all")
	h.simulateAgents()
	h.start(workset.Options{})
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: "colors"},
		Data: map[string]string{"sky": "blue"}}
	require.NoError(t, h.Client.Create(t.Context(), object))
	h.distribute("web", "all", func(s *v1alpha1.WorkSetSpec) {
		s.Resources = []v1alpha1.ResourceSelector{{Kind: "ConfigMap", Name: "colors"}}
	})
	h.succeeded("web", 1)
	object.Data["sky"] = "red"
	require.NoError(t, h.Client.Update(t.Context(), object))
	h.Holds("the change arrives", func() bool {
		return strings.Contains(string(h.works("web")["a/web-0"].Spec.Manifests[0].Raw), "red")
	})
	h.succeeded("web", 1)
	require.Len(t, h.get("web").Status.Revisions, 2)
	h.change("web", func(s *v1alpha1.WorkSet) { s.Spec.Revision = s.Status.Revisions[1].Name })
	h.Holds("the pinned revision arrives", func() bool {
		return strings.Contains(string(h.works("web")["a/web-0"].Spec.Manifests[0].Raw), "blue")
	})
}

// TestDivide_FollowsClusters checks that replicas are divided among the clusters, also when the clusters change.
func TestDivide_FollowsClusters(t *testing.T) { testkit.Virtual(t, testDivideFollowsClusters) }

func testDivideFollowsClusters(t *testing.T) {
	h := newHub(t)
	h.members("a", "b", "c")
	h.place("some", "a", "b")
	h.simulateAgents()
	h.start(workset.Options{})
	h.distribute("web", "some", func(s *v1alpha1.WorkSetSpec) {
		s.Replicas = &v1alpha1.ReplicaDivision{Strategy: v1alpha1.DivisionStaticWeight}
	}, deployment("web", 6))
	h.Holds("half each", func() bool {
		return reflect.DeepEqual(h.replicas("web"), map[string]int64{"a/web-0": 3, "b/web-0": 3})
	})
	h.choose("some", "a", "b", "c")
	h.Holds("a third each", func() bool {
		return reflect.DeepEqual(h.replicas("web"), map[string]int64{"a/web-0": 2, "b/web-0": 2, "c/web-0": 2})
	})
	h.succeeded("web", 3)
}

// replicas returns the replicas in the Works of a WorkSet.
func (h *hub) replicas(set string) map[string]int64 {
	h.T.Helper()
	found := map[string]int64{}
	for name, work := range h.works(set) {
		var o unstructured.Unstructured
		require.NoError(h.T, json.Unmarshal(work.Spec.Manifests[0].Raw, &o))
		found[name], _, _ = unstructured.NestedInt64(o.Object, "spec", "replicas")
	}
	return found
}

// TestDivide_BlockedClusters checks that clusters that are chosen while a rollout is blocked take no replicas from
// running clusters until their update begins.
func TestDivide_BlockedClusters(t *testing.T) {
	testkit.Virtual(t, testDivideBlockedClusters)
}

func testDivideBlockedClusters(t *testing.T) {
	h := newHub(t)
	h.members("a", "b", "c", "d")
	h.place("some", "a", "b")
	r := h.start(workset.Options{})
	h.distribute("web", "some", func(s *v1alpha1.WorkSetSpec) {
		s.Replicas = &v1alpha1.ReplicaDivision{Strategy: v1alpha1.DivisionStaticWeight}
	}, deployment("web", 12))
	half := map[string]int64{"a/web-0": 6, "b/web-0": 6}
	h.Holds("half each", func() bool { return reflect.DeepEqual(h.replicas("web"), half) })
	h.change("web", func(s *v1alpha1.WorkSet) { s.Spec.Rollout.State = v1alpha1.RolloutPause })
	h.choose("some", "a", "b", "c", "d")
	h.Holds("the other clusters are observed", func() bool { return h.get("web").Status.Counts.Total == 4 })
	r.quiet(t)
	require.Equal(t, half, h.replicas("web"))
	require.Equal(t, metav1.ConditionFalse, h.condition("web", v1alpha1.ConditionApplied).Status)
	h.change("web", func(s *v1alpha1.WorkSet) { s.Spec.Rollout.State = v1alpha1.RolloutRun })
	h.Holds("a quarter each", func() bool {
		return reflect.DeepEqual(h.replicas("web"), map[string]int64{"a/web-0": 3, "b/web-0": 3, "c/web-0": 3, "d/web-0": 3})
	})
}

// TestWorks_EditsAreReverted checks that changes of a Work on the hub by another client are reverted.
func TestWorks_EditsAreReverted(t *testing.T) { testkit.Virtual(t, testWorksEditsAreReverted) }

func testWorksEditsAreReverted(t *testing.T) {
	h := newHub(t)
	h.members("a", "b", "c")
	h.place("all")
	h.simulateAgents()
	h.start(workset.Options{})
	h.distribute("web", "all", nil, configMap("web", map[string]string{"color": "blue"}))
	h.succeeded("web", 3)
	works := h.works("web")
	edited := works["a/web-0"].DeepCopy()
	edited.Spec.Manifests = []workv1alpha1.Manifest{configMap("evil", nil)}
	require.NoError(t, h.Client.Patch(t.Context(), edited, client.MergeFrom(works["a/web-0"])))
	unlabeled := works["b/web-0"].DeepCopy()
	unlabeled.Labels = nil
	require.NoError(t, h.Client.Patch(t.Context(), unlabeled, client.MergeFrom(works["b/web-0"])))
	require.NoError(t, h.Client.Delete(t.Context(), works["c/web-0"]))
	h.Holds("the Works are restored", func() bool {
		now := h.works("web")
		if keys(now) != "[a/web-0 b/web-0 c/web-0]" || now["c/web-0"].UID == works["c/web-0"].UID {
			return false
		}
		for _, work := range now {
			if !strings.Contains(string(work.Spec.Manifests[0].Raw), "blue") {
				return false
			}
		}
		return true
	})
	h.succeeded("web", 3)
}
