package workset_test

import (
	"errors"
	"fmt"
	"maps"
	"testing"

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
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/placement/crds"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/placement/workset"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// uids returns the UIDs of the Works of a WorkSet whose deletion has not begun.
func (h *hub) uids(set string) map[string]types.UID {
	h.T.Helper()
	found := map[string]types.UID{}
	for name, work := range h.works(set) {
		if work.DeletionTimestamp == nil {
			found[name] = work.UID
		}
	}
	return found
}

// removeUnobserved removes a WorkSet without a deletion that the controller could observe. No controller may run.
func (h *hub) removeUnobserved(name string) {
	h.T.Helper()
	h.change(name, func(s *v1alpha1.WorkSet) { s.Finalizers = nil })
	require.NoError(h.T, h.Client.Delete(h.T.Context(), h.get(name)))
}

// TestUnclaimedWorks checks that Works of a missing WorkSet are kept and reported, and that a WorkSet with its name
// adopts them without writing to them.
func TestUnclaimedWorks(t *testing.T) { testkit.Virtual(t, testUnclaimedWorks) }

func testUnclaimedWorks(t *testing.T) {
	h := newHub(t)
	h.members("a", "b")
	h.place("all")
	h.simulateAgents()
	r := h.start(workset.Options{})
	h.distribute("web", "all", nil, configMap("web", nil))
	h.succeeded("web", 2)
	r.quiet(t)
	r.stop()
	before := h.works("web")
	h.removeUnobserved("web")

	r = h.start(workset.Options{})
	h.Holds("an Event reports the Works", func() bool { return h.hasEvent("WorksUnclaimed") })
	r.quiet(t)
	require.Zero(t, r.wire.Count("PATCH works")+r.wire.Count("DELETE works"))

	h.distribute("web", "all", nil, configMap("web", nil))
	h.succeeded("web", 2)
	r.quiet(t)
	for name, work := range h.works("web") {
		require.Equal(t, before[name].UID, work.UID)
		require.Equal(t, before[name].Generation, work.Generation)
		require.Nil(t, work.DeletionTimestamp)
	}
	require.Len(t, h.works("web"), 2)
	require.NoError(t, h.Client.Delete(t.Context(), h.get("web")))
	h.Holds("the deletion of the WorkSet deletes the Works", func() bool { return len(h.works("web")) == 0 })
}

func (h *hub) hasEvent(reason string) bool {
	var events unstructured.UnstructuredList
	events.SetGroupVersionKind(schema.GroupVersionKind{Group: "events.k8s.io", Version: "v1", Kind: "EventList"})
	require.NoError(h.T, h.Client.List(h.T.Context(), &events, client.InNamespace(h.Namespace)))
	for _, e := range events.Items {
		if e.Object["reason"] == reason {
			return true
		}
	}
	return false
}

// TestWorks_MissingMember checks that a cluster whose MemberCluster is missing stays chosen, because no request to
// remove it was observed, and that its Work is kept.
func TestWorks_MissingMember(t *testing.T) { testkit.Virtual(t, testWorksMissingMember) }

func testWorksMissingMember(t *testing.T) {
	h := newHub(t)
	h.members("a", "b")
	h.place("all")
	h.simulateAgents()
	r := h.start(workset.Options{})
	h.distribute("web", "all", nil, configMap("web", nil))
	h.succeeded("web", 2)
	before := h.uids("web")
	member := &membershipv1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: h.member("b")}}
	require.NoError(t, h.Client.Delete(t.Context(), member))
	h.Holds("the Placement reports the missing cluster", func() bool {
		p := &v1alpha1.Placement{}
		return h.Client.Get(t.Context(), client.ObjectKey{Namespace: h.Namespace, Name: "all"}, p) == nil &&
			p.Status.SelectedClusters == 2 &&
			meta.IsStatusConditionFalse(p.Status.Conditions, v1alpha1.ConditionClustersObserved)
	})
	r.quiet(t)
	require.Equal(t, before, h.uids("web"))
	h.chooseByName("all", "none")
	h.Holds("the Work of the deselected cluster is deleted", func() bool { return len(h.uids("web")) == 1 })
	require.Contains(t, h.uids("web"), "b/web-0")
}

// chooseByName changes a Placement so that it selects members by their names.
func (h *hub) chooseByName(placement string, names ...string) {
	h.T.Helper()
	p := &v1alpha1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: placement}}
	mustertest.Change(h.T, h.Client, p, func(p *v1alpha1.Placement) {
		p.Spec.Policy.Affinity.Required[0].LabelSelector.MatchExpressions = []metav1.LabelSelectorRequirement{
			{Key: "name", Operator: metav1.LabelSelectorOpIn, Values: names},
		}
	})
}

// TestEmptySelection checks that clusters stay unchanged if selectors match nothing although they matched objects
// before, until a user confirms that.
func TestEmptySelection(t *testing.T) { testkit.Virtual(t, testEmptySelection) }

func testEmptySelection(t *testing.T) {
	h := newHub(t)
	h.members("a")
	h.place("all")
	h.simulateAgents()
	r := h.start(workset.Options{})
	source := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: "source",
		Labels: map[string]string{"app": "web"}}}
	require.NoError(t, h.Client.Create(t.Context(), source))
	h.distribute("web", "all", func(s *v1alpha1.WorkSetSpec) {
		s.Resources = []v1alpha1.ResourceSelector{{Kind: "ConfigMap",
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}}
	}, configMap("web", nil))
	h.succeeded("web", 1)
	before := h.works("web")
	require.NoError(t, h.Client.Delete(t.Context(), source))
	h.Holds("the WorkSet reports the empty selection", func() bool {
		return h.condition("web", v1alpha1.ConditionDegraded).Reason == v1alpha1.ReasonSelectionEmpty
	})
	require.Contains(t, h.condition("web", v1alpha1.ConditionDegraded).Message, "set spec.allowEmpty to true")
	r.quiet(t)
	require.Equal(t, before["a/web-0"].Generation, h.works("web")["a/web-0"].Generation)

	// An edit of the selector does not change that, and a restart neither.
	r.stop()
	r = h.start(workset.Options{})
	h.change("web", func(s *v1alpha1.WorkSet) { s.Spec.Resources[0].LabelSelector.MatchLabels["app"] = "other" })
	h.Holds("the WorkSet reports the empty selection again", func() bool {
		return h.condition("web", v1alpha1.ConditionDegraded).Reason == v1alpha1.ReasonSelectionEmpty
	})
	r.quiet(t)
	require.Equal(t, before["a/web-0"].Generation, h.works("web")["a/web-0"].Generation)
	h.change("web", func(s *v1alpha1.WorkSet) { s.Spec.AllowEmpty = true })
	h.Holds("the object is removed", func() bool { return len(h.works("web")["a/web-0"].Spec.Manifests) == 1 })
	h.succeeded("web", 1)
}

// TestWorkSetDefinitionIsRemoved checks that the removal of the definition of WorkSets deletes no Work, and that
// WorkSets that are created again adopt them.
func TestWorkSetDefinitionIsRemoved(t *testing.T) {
	h := newHubOnPlane(t)
	c := h.Client
	h.members("a", "b")
	h.place("all")
	h.simulateAgents()
	r := h.start(workset.Options{})
	h.distribute("web", "all", nil, configMap("web", nil))
	h.succeeded("web", 2)
	before := h.uids("web")

	definition := &unstructured.Unstructured{}
	definition.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1",
		Kind: "CustomResourceDefinition"})
	definition.SetName("worksets." + v1alpha1.GroupVersion.Group)
	require.NoError(t, c.Delete(t.Context(), definition))
	h.Eventually("the definition is deleted", func() error {
		err := c.Get(t.Context(), client.ObjectKeyFromObject(definition), definition)
		if apierrors.IsNotFound(err) {
			return nil
		}
		var left v1alpha1.WorkSetList
		err = errors.Join(err, c.List(t.Context(), &left))
		conditions, _, _ := unstructured.NestedSlice(definition.Object, "status", "conditions")
		for _, set := range left.Items {
			err = errors.Join(err, fmt.Errorf("WorkSet %s/%s: finalizers %v, deleted %v", set.Namespace, set.Name,
				set.Finalizers, set.DeletionTimestamp))
		}
		return errors.Join(err, fmt.Errorf("definition: %v", conditions))
	})
	require.Equal(t, before, h.uids("web"))
	require.Zero(t, r.wire.Count("DELETE works"))
	require.NoError(t, crds.Install(t.Context(), c))
	h.Holds("a WorkSet can be created", func() bool {
		set := &v1alpha1.WorkSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: "web"},
			Spec: v1alpha1.WorkSetSpec{Placements: []v1alpha1.PlacementReference{{Name: "all"}},
				Manifests: []workv1alpha1.Manifest{configMap("web", nil)}},
		}
		return c.Create(t.Context(), set) == nil
	})
	h.succeeded("web", 2)
	require.True(t, maps.Equal(before, h.uids("web")))
	require.Zero(t, r.wire.Count("DELETE works"))
}
