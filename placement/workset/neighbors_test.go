package workset_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/placement"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/placement/workset"
	"github.com/muster-sdk/muster/scheduler"
	"github.com/muster-sdk/muster/scheduler/replicas"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// fixedClusters is a ClusterSource whose clusters do not change.
type fixedClusters []*scheduler.Cluster

func (f fixedClusters) Run(ctx context.Context, fleet placement.Fleet) error {
	for _, c := range f {
		fleet.Set(c)
	}
	fleet.Synced()
	<-ctx.Done()
	return nil
}

func cluster(name string) *scheduler.Cluster {
	hub, _, _ := strings.Cut(strings.TrimPrefix(name, "test-"), "-")
	return &scheduler.Cluster{Name: name, Labels: map[string]string{"hub": "test-" + hub}, Joined: true, Healthy: true}
}

// TestMemberNamespace_Unknown checks that a chosen cluster keeps its Works while its namespace is unknown.
func TestMemberNamespace_Unknown(t *testing.T) { testkit.Virtual(t, testMemberNamespaceUnknown) }

func testMemberNamespaceUnknown(t *testing.T) {
	h := newHub(t)
	h.members("a", "b")
	h.place("all")
	h.simulateAgents()
	var unknown, panics atomic.Bool
	options := workset.Options{Clusters: fixedClusters{cluster(h.member("a")), cluster(h.member("b"))},
		Namespace: func(cluster string) string {
			if cluster == h.member("a") && unknown.Load() {
				if panics.Load() {
					panic("no idea")
				}
				return ""
			}
			return "member-" + cluster
		}}
	r := h.start(options)
	h.distribute("web", "all", rollBackOnFirstFailure, configMap("web", map[string]string{"color": "blue"}))
	h.succeeded("web", 2)
	for _, panicking := range []bool{false, true} {
		unknown.Store(true)
		panics.Store(panicking)
		h.change("web", func(s *v1alpha1.WorkSet) {
			s.Spec.Manifests = append(s.Spec.Manifests, configMap("more"+map[bool]string{true: "2"}[panicking], nil))
		})
		h.Holds("the other cluster has the new revision", func() bool {
			s := h.get("web").Status
			return len(s.Revisions) > 1 && h.works("web")["b/web-0"].Annotations[v1alpha1.RevisionAnnotation] == s.Revision
		})
		r.quiet(t)
		require.Zero(t, r.wire.Count("DELETE works"))
		unknown.Store(false)
		h.change("web", func(s *v1alpha1.WorkSet) { s.Spec.RevisionHistoryLimit = new(*s.Spec.RevisionHistoryLimit - 1) })
		h.succeeded("web", 2)
	}
}

// TestEstimator_Fails checks that an estimator that fails, panics or never returns does not block other WorkSets.
func TestEstimator_Fails(t *testing.T) { testkit.Virtual(t, testEstimatorFails) }

func testEstimatorFails(t *testing.T) {
	h := newHub(t)
	h.members("a", "b")
	h.place("all")
	h.simulateAgents()
	var mode atomic.Value
	mode.Store("well")
	release := make(chan struct{})
	estimator := replicas.EstimatorFunc(func(ctx context.Context, _ replicas.Requirements,
		clusters []string) ([]int32, error) {
		room := make([]int32, len(clusters))
		for i := range room {
			room[i] = 100
		}
		switch mode.Load() {
		case "error":
			return nil, errors.New("no idea")
		case "panic":
			panic("no idea")
		case "short":
			return room[1:], nil
		case "hang":
			<-release
		}
		return room, nil
	})
	t.Cleanup(func() { close(release) })
	r := h.start(workset.Options{Estimator: estimator, Workers: 1})
	h.distribute("web", "all", func(s *v1alpha1.WorkSetSpec) {
		s.Replicas = &v1alpha1.ReplicaDivision{Strategy: v1alpha1.DivisionDynamicWeight}
	}, deployment("web", 4))
	h.succeeded("web", 2)
	for i, now := range []string{"error", "panic", "short", "hang"} {
		mode.Store(now)
		h.change("web", func(s *v1alpha1.WorkSet) { s.Spec.Manifests[0] = deployment("web", 10+i) })
		h.Holds(now+": the WorkSet reports the failed division", func() bool {
			return h.condition("web", v1alpha1.ConditionDegraded).Reason == v1alpha1.ReasonDivisionFailed
		})
		h.distribute("other-"+now, "all", nil, configMap("other-"+now, nil))
		h.succeeded("other-"+now, 2)
		require.Zero(t, r.wire.Count("DELETE works"), now)
	}
}

// TestMemberNamespace_Deleted checks that a WorkSet reports the missing namespace of a member, without sending many
// requests.
func TestMemberNamespace_Deleted(t *testing.T) { testkit.Virtual(t, testMemberNamespaceDeleted) }

func testMemberNamespaceDeleted(t *testing.T) {
	h := newHub(t)
	h.members("a", "b")
	require.NoError(t, h.Client.Delete(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "member-" + h.member("a")}}))
	h.place("all")
	h.simulateAgents()
	r := h.start(workset.Options{})
	h.distribute("web", "all", nil, configMap("web", nil))
	h.Holds("the cluster is reported as failed", func() bool {
		c := h.cluster("web", "a")
		return c.State == v1alpha1.ClusterProgressing && strings.Contains(c.Message, "member-"+h.member("a"))
	})
	h.Holds("the other cluster is available", func() bool { return h.get("web").Status.Counts.Available == 1 })
	for range 5 { // changes of another cluster cause no additional attempts
		work := h.works("web")["b/web-0"].DeepCopy()
		work.Labels["touched"] = "yes" + work.ResourceVersion
		require.NoError(t, h.Client.Patch(t.Context(), work, client.MergeFrom(h.works("web")["b/web-0"])))
		synctest.Wait() // until the controller has observed the change
	}
	require.Less(t, r.wire.Count("POST works"), 15)
}

// TestWorks_EditedAnnotationsAndTakenNames checks that annotations of a Work that a user changed are restored, and that
// an object of another owner with the name of a Work stays unchanged.
func TestWorks_EditedAnnotationsAndTakenNames(t *testing.T) {
	testkit.Virtual(t, testWorksEditedAnnotationsAndTakenNames)
}

func testWorksEditedAnnotationsAndTakenNames(t *testing.T) {
	h := newHub(t)
	h.members("a", "b")
	taken := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "member-" + h.member("b"), Name: h.Namespace +
		".web-0"}, Spec: workv1alpha1.WorkSpec{Manifests: []workv1alpha1.Manifest{configMap("mine", nil)}}}
	require.NoError(t, h.Client.Create(t.Context(), taken))
	h.place("all")
	h.simulateAgents()
	h.start(workset.Options{})
	h.distribute("web", "all", nil, configMap("web", nil))
	h.Holds("the cluster is reported as failed", func() bool {
		c := h.cluster("web", "b")
		return c.State == v1alpha1.ClusterFailed && strings.Contains(c.Message, "does not belong to the WorkSet")
	})
	h.Holds("the other cluster is available", func() bool { return h.get("web").Status.Counts.Available == 1 })
	require.NoError(t, h.Client.Get(t.Context(), client.ObjectKeyFromObject(taken), taken))
	require.Empty(t, taken.Labels)
	require.NoError(t, h.Client.Delete(t.Context(), taken))
	h.succeeded("web", 2)

	bare := h.works("web")["a/web-0"].DeepCopy()
	bare.Annotations = nil
	require.NoError(t, h.Client.Patch(t.Context(), bare, client.MergeFrom(h.works("web")["a/web-0"])))
	h.Holds("the removed annotations are restored", func() bool {
		return h.works("web")["a/web-0"].Annotations[v1alpha1.RevisionAnnotation] == h.get("web").Status.Revision
	})
	edited := h.works("web")["a/web-0"].DeepCopy()
	edited.Annotations[v1alpha1.RevisionAnnotation], edited.Annotations[v1alpha1.RevisionSinceAnnotation] = "evil",
		"2099-01-01T00:00:00Z"
	require.NoError(t, h.Client.Patch(t.Context(), edited, client.MergeFrom(h.works("web")["a/web-0"])))
	h.Holds("the edited annotations are restored", func() bool {
		return h.works("web")["a/web-0"].Annotations[v1alpha1.RevisionAnnotation] == h.get("web").Status.Revision
	})
	h.succeeded("web", 2)
}

// TestWorkSet_DeletedAndCreatedAgain checks that a WorkSet that is deleted and immediately created again gets its
// clusters back.
func TestWorkSet_DeletedAndCreatedAgain(t *testing.T) {
	testkit.Virtual(t, testWorkSetDeletedAndCreatedAgain)
}

func testWorkSetDeletedAndCreatedAgain(t *testing.T) {
	h := newHub(t)
	h.members("a", "b")
	h.place("all")
	h.simulateAgents()
	h.start(workset.Options{})
	for _, color := range []string{"blue", "green", "red"} {
		h.distribute("web", "all", nil, configMap("web", map[string]string{"color": color}))
		if color != "green" { // the green WorkSet is deleted before a member has applied it
			h.succeeded("web", 2)
		}
		set := h.get("web")
		require.NoError(t, h.Client.Delete(t.Context(), set))
		h.Holds("the WorkSet is deleted", func() bool {
			return apierrors.IsNotFound(h.Client.Get(t.Context(), client.ObjectKeyFromObject(set), set))
		})
	}
	h.distribute("web", "all", nil, configMap("web", nil))
	h.succeeded("web", 2)
	h.change("web", func(s *v1alpha1.WorkSet) { s.Finalizers = append(s.Finalizers, "test.muster.dev/mine") })
	require.NoError(t, h.Client.Delete(t.Context(), h.get("web")))
	h.Holds("the Works are deleted", func() bool { return len(h.works("web")) == 0 })
	h.change("web", func(s *v1alpha1.WorkSet) { s.Finalizers = nil })
}

// TestRollout_UnknownDecisionGroups checks that a rollout does not continue while its decision groups are unknown.
func TestRollout_UnknownDecisionGroups(t *testing.T) {
	testkit.Virtual(t, testRolloutUnknownDecisionGroups)
}

func testRolloutUnknownDecisionGroups(t *testing.T) {
	h := newHub(t)
	h.members("a", "b")
	groups := []v1alpha1.DecisionGroup{{Name: "canary",
		Selector: metav1.LabelSelector{MatchLabels: map[string]string{"name": "a"}}}}
	h.place("all")
	grouped := &v1alpha1.Placement{}
	require.NoError(t, h.Client.Get(t.Context(), client.ObjectKey{Namespace: h.Namespace, Name: "all"}, grouped))
	grouped.Spec.DecisionGroups = groups
	require.NoError(t, h.Client.Update(t.Context(), grouped))
	h.simulateAgents()
	r := h.start(workset.Options{})
	h.distribute("web", "all", func(s *v1alpha1.WorkSetSpec) {
		s.Rollout = v1alpha1.RolloutStrategy{Type: v1alpha1.RolloutProgressivePerGroup}
	}, configMap("web", map[string]string{"color": "blue"}))
	h.succeeded("web", 2)
	r.stop()
	h.deletePlacement("all")
	h.change("web", func(s *v1alpha1.WorkSet) {
		s.Spec.Manifests[0] = configMap("web", map[string]string{"color": "green"})
	})
	r = h.start(workset.Options{})
	h.Holds("the WorkSet reports the missing Placement", func() bool {
		return h.condition("web", v1alpha1.ConditionDegraded).Reason == v1alpha1.ReasonPlacementNotFound
	})
	r.quiet(t)
	require.Zero(t, r.wire.Count("PATCH works")+r.wire.Count("DELETE works"))
	h.place("all")
	h.succeeded("web", 2)
}
