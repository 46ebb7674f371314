package workset_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/placement/workset"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// newClusterScopeHub returns a hub in memory whose managers observe cluster-scoped objects.
func newClusterScopeHub(t testing.TB) *hub {
	h := newHub(t)
	h.clusterScope = true
	h.simulateAgentsClusterScoped()
	return h
}

// simulateAgentsClusterScoped reports for all members that all Works of ClusterWorkSets are applied and available.
func (h *hub) simulateAgentsClusterScoped() {
	testkit.FollowWorks(h.T, h.Client, func(ctx context.Context, work *workv1alpha1.Work) {
		h.simulateAgent(ctx, work, nil)
	},
		client.MatchingLabels{v1alpha1.WorkSetNamespaceLabel: ""})
}

// placeClusterScoped creates a ClusterPlacement of the named members of this hub, or of all its members.
func (h *hub) placeClusterScoped(name string, members ...string) *v1alpha1.ClusterPlacement {
	h.T.Helper()
	p := &v1alpha1.ClusterPlacement{ObjectMeta: metav1.ObjectMeta{Name: name}}
	h.chooseClusterScoped(&p.Spec, members...)
	require.NoError(h.T, h.Client.Create(h.T.Context(), p))
	h.T.Cleanup(func() { _ = h.Client.Delete(context.Background(), p) })
	return p
}

func (h *hub) chooseClusterScoped(spec *v1alpha1.PlacementSpec, members ...string) {
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"hub": h.Namespace}}
	if len(members) > 0 {
		selector.MatchExpressions = []metav1.LabelSelectorRequirement{
			{Key: "name", Operator: metav1.LabelSelectorOpIn, Values: members},
		}
	}
	spec.Policy.Affinity = &v1alpha1.ClusterAffinity{Required: []v1alpha1.ClusterSelectorTerm{{LabelSelector: selector}}}
}

// distributeClusterScoped creates a ClusterWorkSet for the clusters of a ClusterPlacement.
func (h *hub) distributeClusterScoped(name, placement string, change func(*v1alpha1.WorkSetSpec),
	manifests ...workv1alpha1.Manifest) *v1alpha1.ClusterWorkSet {
	h.T.Helper()
	set := &v1alpha1.ClusterWorkSet{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.WorkSetSpec{
		Placements: []v1alpha1.PlacementReference{{Name: placement}}, Manifests: manifests,
	}}
	if change != nil {
		change(&set.Spec)
	}
	require.NoError(h.T, h.Client.Create(h.T.Context(), set))
	h.T.Cleanup(func() { _ = h.Client.Delete(context.Background(), set) })
	return set
}

func (h *hub) getClusterScoped(name string) *v1alpha1.ClusterWorkSet {
	h.T.Helper()
	set := &v1alpha1.ClusterWorkSet{}
	require.NoError(h.T, h.Client.Get(h.T.Context(), client.ObjectKey{Name: name}, set))
	return set
}

// clusterScopedWorks returns the Works of a ClusterWorkSet whose deletion has not begun, by <member>/<name>.
func (h *hub) clusterScopedWorks(set string) map[string]*workv1alpha1.Work {
	h.T.Helper()
	var list workv1alpha1.WorkList
	require.NoError(h.T, h.Client.List(h.T.Context(), &list,
		client.MatchingLabels{v1alpha1.WorkSetNamespaceLabel: "", v1alpha1.WorkSetLabel: set}))
	found := map[string]*workv1alpha1.Work{}
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			member := strings.TrimPrefix(list.Items[i].Namespace, "member-"+h.Namespace+"-")
			found[member+"/"+list.Items[i].Name] = &list.Items[i]
		}
	}
	return found
}

// succeededClusterScoped waits until a ClusterWorkSet is available on the given number of clusters.
func (h *hub) succeededClusterScoped(name string, clusters int32) {
	h.T.Helper()
	require.Eventually(h.T, func() bool {
		s := h.getClusterScoped(name)
		return s.Status.ObservedGeneration == s.Generation && s.Status.Rollout.Phase == v1alpha1.PhaseSucceeded &&
			s.Status.Rollout.Revision == s.Status.Revision && s.Status.Counts.Total == clusters &&
			s.Status.Counts.Available == clusters && s.Status.Counts.Leaving == 0
	}, 2*time.Minute, 20*time.Millisecond, "want %s to be available on %d clusters", name, clusters)
}

// sameWorks checks that Works have neither been deleted nor changed.
func sameWorks(t testing.TB, before, after map[string]*workv1alpha1.Work) {
	t.Helper()
	require.Equal(t, keys(before), keys(after))
	for name := range before {
		require.Equal(t, before[name].UID, after[name].UID, name)
		require.Equal(t, before[name].Generation, after[name].Generation, name)
	}
}

func (h *hub) clusterScopedRevisions() []v1alpha1.WorkSetRevision {
	h.T.Helper()
	var list v1alpha1.WorkSetRevisionList
	require.NoError(h.T, h.Client.List(h.T.Context(), &list, client.InNamespace(v1alpha1.ClusterScopeNamespace)))
	return list.Items
}

// TestClusterWorkSet_OnPlane checks on a real API server that a ClusterWorkSet reaches the clusters of a
// ClusterPlacement, that a cluster which is not chosen any more loses its Work on request, and that the deletion of the
// ClusterWorkSet requests the deletion of all Works before its finalizer is removed.
func TestClusterWorkSet_OnPlane(t *testing.T) {
	h := newHubOnPlane(t)
	h.clusterScope = true
	var requests = make(chan string, 16)
	testkit.FollowWorks(t, h.Client, func(ctx context.Context, work *workv1alpha1.Work) {
		if work.DeletionTimestamp != nil && len(work.Finalizers) > 0 {
			requests <- work.Annotations[workv1alpha1.DeletionRequestedByAnnotation]
		}
		h.simulateAgent(ctx, work, nil)
	}, client.MatchingLabels{v1alpha1.WorkSetNamespaceLabel: ""})
	h.members("a", "b")
	h.start(workset.Options{})
	p := h.placeClusterScoped(h.Namespace)
	set := h.distributeClusterScoped(h.Namespace, p.Name, nil, configMap("web", nil))
	h.succeededClusterScoped(set.Name, 2)
	work := h.clusterScopedWorks(set.Name)["a/clusterworkset-"+set.Name+"-0"]
	require.NotNil(t, work)
	require.Equal(t, "ClusterWorkSet "+set.Name, work.Annotations[workv1alpha1.GeneratedByAnnotation])
	require.Equal(t, string(set.UID), work.Annotations[v1alpha1.WorkSetUIDAnnotation])
	require.Contains(t, work.Finalizers, workv1alpha1.Finalizer)
	revisions := h.clusterScopedRevisions()
	require.Len(t, revisions, 1)
	require.True(t, metav1.IsControlledBy(&revisions[0], set))
	require.True(t, meta.IsStatusConditionTrue(h.getClusterScoped(set.Name).Status.Conditions, v1alpha1.ConditionReady))

	mustertest.Change(t, h.Client, p, func(p *v1alpha1.ClusterPlacement) { h.chooseClusterScoped(&p.Spec, "b") })
	h.Holds("a has no Work", func() bool {
		return keys(h.clusterScopedWorks(set.Name)) == "[b/clusterworkset-"+set.Name+"-0]"
	})
	require.Equal(t, string(set.UID), <-requests)
	h.succeededClusterScoped(set.Name, 1)

	require.NoError(t, h.Client.Delete(t.Context(), set))
	h.Holds("the ClusterWorkSet is gone", func() bool {
		return apierrors.IsNotFound(h.Client.Get(t.Context(), client.ObjectKeyFromObject(set), set))
	})
	require.Empty(t, h.clusterScopedWorks(set.Name))
	require.Equal(t, string(set.UID), <-requests)
	h.Holds("its revisions are gone", func() bool { return len(h.clusterScopedRevisions()) == 0 })
}

// TestClusterWorkSet_AbsenceIsNoRequest checks that no Work of a ClusterWorkSet is deleted or changed while the
// ClusterWorkSet, its ClusterPlacement, the decisions or their namespace are missing, and that the state is the same as
// before when the object exists again.
func TestClusterWorkSet_AbsenceIsNoRequest(t *testing.T) {
	for _, test := range []struct {
		name      string
		lose      func(*hub)
		condition string // reason of the condition Degraded meanwhile; empty: not degraded
		restore   func(*hub)
	}{
		{"the ClusterWorkSet is missing", func(h *hub) {
			mustertest.Change(h.T, h.Client, h.getClusterScoped("web"), func(s *v1alpha1.ClusterWorkSet) { s.Finalizers = nil })
			require.NoError(h.T, h.Client.Delete(h.T.Context(), h.getClusterScoped("web")))
		}, "", func(h *hub) { h.distributeClusterScoped("web", "all", nil, configMap("web", nil)) }},
		{"the ClusterPlacement is missing", func(h *hub) {
			require.NoError(h.T, h.Client.Delete(h.T.Context(),
				&v1alpha1.ClusterPlacement{ObjectMeta: metav1.ObjectMeta{Name: "all"}}))
		}, v1alpha1.ReasonPlacementNotFound, func(h *hub) { h.placeClusterScoped("all") }},
		{"the decisions are missing", func(h *hub) {
			require.NoError(h.T, h.Client.DeleteAllOf(h.T.Context(), &v1alpha1.PlacementDecision{},
				client.InNamespace(v1alpha1.ClusterScopeNamespace)))
		}, "", func(*hub) {}},
		{"the namespace of the decisions is missing", func(h *hub) {
			n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ClusterScopeNamespace}}
			require.NoError(h.T, h.Client.Delete(h.T.Context(), n))
			h.Holds("the namespace is gone", func() bool {
				return apierrors.IsNotFound(h.Client.Get(h.T.Context(), client.ObjectKeyFromObject(n), n))
			})
		}, "", func(*hub) {}},
	} {
		t.Run(test.name, func(t *testing.T) {
			testkit.Virtual(t, func(t *testing.T) {
				h := newClusterScopeHub(t)
				h.members("a", "b")
				r := h.start(workset.Options{})
				h.placeClusterScoped("all")
				h.distributeClusterScoped("web", "all", nil, configMap("web", nil))
				h.succeededClusterScoped("web", 2)
				r.quiet(t)
				r.stop()
				before := h.clusterScopedWorks("web")
				test.lose(h)
				r = h.start(workset.Options{})
				if test.condition != "" {
					h.Holds("the ClusterWorkSet reports "+test.condition, func() bool {
						c := meta.FindStatusCondition(h.getClusterScoped("web").Status.Conditions, v1alpha1.ConditionDegraded)
						return c != nil && c.Reason == test.condition
					})
				}
				r.quiet(t)
				sameWorks(t, before, h.clusterScopedWorks("web"))
				test.restore(h)
				h.succeededClusterScoped("web", 2)
				r.quiet(t)
				sameWorks(t, before, h.clusterScopedWorks("web"))
				require.NoError(t, h.Client.Delete(t.Context(), h.getClusterScoped("web")))
				h.Holds("the deletion of the ClusterWorkSet deletes the Works", func() bool {
					return len(h.clusterScopedWorks("web")) == 0
				})
			})
		})
	}
}

// TestClusterWorkSet_Unclaimed checks that Works of a ClusterWorkSet that does not exist are reported.
func TestClusterWorkSet_Unclaimed(t *testing.T) { testkit.Virtual(t, testClusterWorkSetUnclaimed) }

func testClusterWorkSetUnclaimed(t *testing.T) {
	h := newClusterScopeHub(t)
	h.members("a")
	r := h.start(workset.Options{})
	h.placeClusterScoped("all")
	h.distributeClusterScoped("web", "all", nil, configMap("web", nil))
	h.succeededClusterScoped("web", 1)
	r.stop()
	mustertest.Change(t, h.Client, h.getClusterScoped("web"), func(s *v1alpha1.ClusterWorkSet) { s.Finalizers = nil })
	require.NoError(t, h.Client.Delete(t.Context(), h.getClusterScoped("web")))
	h.start(workset.Options{})
	h.Holds("an Event reports the Works", func() bool {
		var events unstructured.UnstructuredList
		events.SetGroupVersionKind(schema.GroupVersionKind{Group: "events.k8s.io", Version: "v1", Kind: "EventList"})
		require.NoError(t, h.Client.List(t.Context(), &events))
		for _, e := range events.Items {
			kind, _, _ := unstructured.NestedString(e.Object, "regarding", "kind")
			if e.Object["reason"] == "WorksUnclaimed" && kind == "ClusterWorkSet" {
				return true
			}
		}
		return false
	})
	require.Len(t, h.clusterScopedWorks("web"), 1)
}

// TestClusterWorkSet_SameNames checks that a ClusterWorkSet and a WorkSet with its name and content, in the namespace
// of its revisions, have different revisions and Works, and that the deletion of one keeps those of the other.
func TestClusterWorkSet_SameNames(t *testing.T) { testkit.Virtual(t, testClusterWorkSetSameNames) }

func testClusterWorkSetSameNames(t *testing.T) {
	h := newClusterScopeHub(t)
	h.members("a")
	r := h.start(workset.Options{})
	h.placeClusterScoped("all")
	h.distributeClusterScoped("web", "all", nil, configMap("web", nil))
	h.succeededClusterScoped("web", 1)
	same := h.in(t, v1alpha1.ClusterScopeNamespace)
	same.simulateAgents()
	place := &v1alpha1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: same.Namespace, Name: "all"}}
	h.chooseClusterScoped(&place.Spec)
	require.NoError(t, h.Client.Create(t.Context(), place))
	same.distribute("web", "all", nil, configMap("web", nil))
	same.succeeded("web", 1)
	require.Len(t, h.clusterScopedRevisions(), 2)
	require.Len(t, same.works("web"), 1)
	before := h.clusterScopedWorks("web")
	require.Len(t, before, 1)

	require.NoError(t, h.Client.Delete(t.Context(), same.get("web")))
	h.Holds("the Works of the WorkSet are gone", func() bool { return len(same.works("web")) == 0 })
	r.quiet(t)
	sameWorks(t, before, h.clusterScopedWorks("web"))
	require.Len(t, h.clusterScopedRevisions(), 1)
}

// TestClusterWorkSet_LostLabels checks that a Work of a WorkSet that lost its annotation and its namespace label does
// not become a Work of the ClusterWorkSet with that name, which would delete it.
func TestClusterWorkSet_LostLabels(t *testing.T) { testkit.Virtual(t, testClusterWorkSetLostLabels) }

func testClusterWorkSetLostLabels(t *testing.T) {
	h := newClusterScopeHub(t)
	h.members("a")
	r := h.start(workset.Options{})
	h.placeClusterScoped("all")
	h.distributeClusterScoped("web", "all", nil, configMap("web", nil))
	h.succeededClusterScoped("web", 1)
	lost := &workv1alpha1.Work{
		ObjectMeta: metav1.ObjectMeta{Namespace: "member-" + h.member("a"), Name: "apps.web-0",
			Labels: map[string]string{v1alpha1.WorkSetLabel: "web"}, Finalizers: []string{workv1alpha1.Finalizer}},
		Spec: workv1alpha1.WorkSpec{Manifests: []workv1alpha1.Manifest{configMap("tenant", nil)}},
	}
	require.NoError(t, h.Client.Create(t.Context(), lost))
	r.quiet(t)
	require.NoError(t, h.Client.Get(t.Context(), client.ObjectKeyFromObject(lost), lost))
	require.Nil(t, lost.DeletionTimestamp)
	require.NoError(t, h.Client.Delete(t.Context(), h.getClusterScoped("web")))
	h.Holds("the Works of the ClusterWorkSet are gone", func() bool { return len(h.clusterScopedWorks("web")) == 0 })
	r.quiet(t)
	require.NoError(t, h.Client.Get(t.Context(), client.ObjectKeyFromObject(lost), lost))
	require.Nil(t, lost.DeletionTimestamp)
}

// TestClusterWorkSet_LabelRestored checks that the empty namespace label of a Work is restored. The deletion of a
// ClusterWorkSet finds its Works by this label.
func TestClusterWorkSet_LabelRestored(t *testing.T) {
	testkit.Virtual(t, testClusterWorkSetLabelRestored)
}

func testClusterWorkSetLabelRestored(t *testing.T) {
	h := newClusterScopeHub(t)
	h.members("a")
	h.start(workset.Options{})
	h.placeClusterScoped("all")
	h.distributeClusterScoped("web", "all", nil, configMap("web", nil))
	h.succeededClusterScoped("web", 1)
	work := h.clusterScopedWorks("web")["a/clusterworkset-web-0"]
	mustertest.Change(t, h.Client, work, func(w *workv1alpha1.Work) { delete(w.Labels, v1alpha1.WorkSetNamespaceLabel) })
	h.Holds("the label is back", func() bool { return len(h.clusterScopedWorks("web")) == 1 })
}

// TestClusterWorkSet_Selection checks that a ClusterWorkSet selects cluster-scoped objects and objects of any
// namespace, but none that belong to Kubernetes or muster, and that selectors of namespaced kinds need a namespace.
func TestClusterWorkSet_Selection(t *testing.T) { testkit.Virtual(t, testClusterWorkSetSelection) }

func testClusterWorkSetSelection(t *testing.T) {
	h := newClusterScopeHub(t)
	h.members("a")
	elsewhere := mustertest.Namespace(t, h.Client)
	require.NoError(t, h.Client.Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: elsewhere, Name: "ca"},
	}))
	h.start(workset.Options{Allow: func(types.NamespacedName, workset.Target) error {
		return nil // Allow is not called for ClusterWorkSets.
	}})
	h.placeClusterScoped("all")
	h.distributeClusterScoped("web", "all", func(s *v1alpha1.WorkSetSpec) {
		s.Resources = []v1alpha1.ResourceSelector{
			{Kind: "ConfigMap", Namespace: elsewhere, Name: "ca"}, {Kind: "Namespace", Name: elsewhere},
		}
	})
	h.succeededClusterScoped("web", 1)
	require.EqualValues(t, 2, h.getClusterScoped("web").Status.Objects)

	for name, selector := range map[string]v1alpha1.ResourceSelector{
		"kubernetes":    {Kind: "ConfigMap", Namespace: "kube-system"},
		"muster":        {Kind: "Secret", Namespace: "muster-registration"},
		"own":           {Kind: "ConfigMap", Namespace: v1alpha1.ClusterScopeNamespace},
		"member":        {Kind: "Secret", Namespace: "member-" + h.member("a")},
		"kind":          {Group: v1alpha1.GroupName, Kind: "ClusterPlacement", Name: "all"},
		"namespaces":    {Kind: "Namespace"},
		"a-namespace":   {Kind: "Namespace", Name: "kube-system"},
		"no-namespace":  {Kind: "ConfigMap", Name: "ca"},
		"every-nowhere": {Kind: v1alpha1.EveryKind},
	} {
		h.distributeClusterScoped(name, "all", func(s *v1alpha1.WorkSetSpec) {
			s.Resources = []v1alpha1.ResourceSelector{selector}
		})
		h.Holds("the selection of "+name+" fails", func() bool {
			c := meta.FindStatusCondition(h.getClusterScoped(name).Status.Conditions, v1alpha1.ConditionDegraded)
			return c != nil && c.Reason == v1alpha1.ReasonSelectionFailed
		})
		require.Empty(t, h.clusterScopedWorks(name), name)
	}
}

// TestClusterWorkSet_Deliveries checks that the clusters of a ClusterPlacement that is created again are the clusters
// with Works of its ClusterWorkSets, and not those with Works of WorkSets whose Placement has the same name.
func TestClusterWorkSet_Deliveries(t *testing.T) { testkit.Virtual(t, testClusterWorkSetDeliveries) }

func testClusterWorkSetDeliveries(t *testing.T) {
	h := newClusterScopeHub(t)
	h.simulateAgents()
	h.members("a", "b")
	h.start(workset.Options{})
	h.placeClusterScoped("all", "a")
	h.distributeClusterScoped("web", "all", nil, configMap("web", nil))
	h.place("all", "b")
	h.distribute("web", "all", nil, configMap("web", nil))
	h.succeededClusterScoped("web", 1)
	h.succeeded("web", 1)
	d := workset.Deliveries{Client: h.Client, Live: h.Client,
		ClusterOf: func(_ context.Context, namespace string) (string, error) { return namespace, nil }}
	for namespace, want := range map[string]string{"": "a", h.Namespace: "b"} {
		got, err := d.ClustersOf(t.Context(), types.NamespacedName{Namespace: namespace, Name: "all"})
		require.NoError(t, err)
		require.Equal(t, []string{"member-" + h.member(want)}, got)
	}
}

// TestClusterWorkSet_Tenancy checks on a hub that restricts namespaces that the clusters of a ClusterWorkSet, which
// needs no binding, receive a new revision, also while its ClusterPlacement is missing.
func TestClusterWorkSet_Tenancy(t *testing.T) { testkit.Virtual(t, testClusterWorkSetTenancy) }

func testClusterWorkSetTenancy(t *testing.T) {
	h := newTenantHub(t)
	h.simulateAgentsClusterScoped()
	h.members("a")
	p := h.placeClusterScoped("all")
	set := h.distributeClusterScoped("web", "all", nil, configMap("web", map[string]string{"color": "blue"}))
	h.succeededClusterScoped("web", 1)
	require.NoError(t, h.Client.Delete(t.Context(), p))
	h.Holds("the decisions are gone", func() bool {
		var list v1alpha1.PlacementDecisionList
		require.NoError(t, h.Client.List(t.Context(), &list))
		return len(list.Items) == 0
	})
	mustertest.Change(t, h.Client, set, func(s *v1alpha1.ClusterWorkSet) {
		s.Spec.Manifests[0] = configMap("web", map[string]string{"color": "green"})
	})
	h.Holds("the new revision arrives", func() bool {
		work := h.clusterScopedWorks("web")["a/clusterworkset-web-0"]
		return work != nil && strings.Contains(string(work.Spec.Manifests[0].Raw), "green")
	})
}
