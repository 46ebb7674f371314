package clusterprofile_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/placement/clusterprofile"
)

// clusters returns the names of the clusters in an exported decision.
func clusters(u *unstructured.Unstructured) []string {
	list, _, _ := unstructured.NestedSlice(u.Object, "decisions")
	var names []string
	for _, d := range list {
		name, _, _ := unstructured.NestedString(d.(map[string]any), "clusterProfileRef", "name")
		names = append(names, name)
	}
	return names
}

func hasClusters(names ...string) func(*unstructured.Unstructured) bool {
	return func(u *unstructured.Unstructured) bool { return slices.Equal(clusters(u), names) }
}

// TestExport_Decisions checks that decisions are exported, follow each change, and are deleted.
func TestExport_Decisions(t *testing.T) { testkit.Virtual(t, testExportDecisions) }

func testExportDecisions(t *testing.T) {
	h := newHub(t, profiles, decisions)
	first := h.start()
	h.member("east")
	decision := h.createDecision("web-decision-0", "west", "east")
	exported := h.requireObject(decisions, "web-decision-0", hasClusters("west", "east"))
	want := clusterprofile.DecisionOf(decision, h.options)
	for _, field := range []string{"decisions", "schedulerName"} {
		if diff := cmp.Diff(want.Object[field], exported.Object[field]); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", field, diff)
		}
	}
	require.Equal(t, want.GetLabels(), exported.GetLabels())
	require.Equal(t, want.GetOwnerReferences(), exported.GetOwnerReferences())
	h.requireObject(profiles, "east", complete)

	decision.Decisions = decision.Decisions[1:]
	require.NoError(t, h.Client.Update(t.Context(), decision))
	h.requireObject(decisions, "web-decision-0", hasClusters("east"))
	h.patch(exported, `{"decisions":[]}`)
	h.requireObject(decisions, "web-decision-0", hasClusters("east"))
	decision.Decisions = nil
	require.NoError(t, h.Client.Update(t.Context(), decision))
	h.requireObject(decisions, "web-decision-0", hasClusters())

	first.awaitQuiet(t)
	first.stop()
	second := h.start()
	require.Empty(t, second.awaitQuiet(t))
	require.Contains(t, second.recorder.all(), "watch multicluster.x-k8s.io/placementdecisions")
	// The finalizer is removed after the export has observed that the source is deleted. Otherwise the export may observe
	// the deletion of the exported decision first, and create it once more.
	h.patch(exported, `{"metadata":{"finalizers":["example.com/test"]}}`)
	require.NoError(t, h.Client.Delete(t.Context(), decision))
	h.requireObject(decisions, "web-decision-0", func(u *unstructured.Unstructured) bool {
		return u.GetDeletionTimestamp() != nil
	})
	second.awaitQuiet(t)
	h.patch(exported, `{"metadata":{"finalizers":null}}`)
	h.requireGone(decisions, "web-decision-0")
	require.Empty(t, second.awaitQuiet(t), "the garbage collector deletes the decision")
	h.createDecision("web-decision-0", "east")
	h.requireObject(decisions, "web-decision-0", hasClusters("east"))
}

// TestExport_ForeignObjects checks that objects of other owners are never changed, also if they have the name of an
// exported object. An Event reports the owner, and the export continues when the objects are deleted.
func TestExport_ForeignObjects(t *testing.T) { testkit.Virtual(t, testExportForeignObjects) }

func testExportForeignObjects(t *testing.T) {
	h := newHub(t, profiles, decisions)
	foreign := []*unstructured.Unstructured{
		object(profiles, h.options.ProfileNamespace, "east",
			map[string]any{"spec": map[string]any{"clusterManager": map[string]any{"name": "other"}}}),
		object(profiles, h.options.ProfileNamespace, "west",
			map[string]any{"spec": map[string]any{"clusterManager": map[string]any{"name": "muster"}}}),
		object(profiles, h.options.ProfileNamespace, "unrelated",
			map[string]any{"spec": map[string]any{"clusterManager": map[string]any{"name": "other"}}}),
		object(decisions, h.Namespace, "web-decision-1", map[string]any{"decisions": []any{}}),
		object(decisions, h.Namespace, "unrelated", map[string]any{"decisions": []any{}}),
	}
	require.NoError(t,
		h.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.options.ProfileNamespace}}))
	for _, u := range foreign {
		require.NoError(t, h.Client.Create(t.Context(), u))
	}
	h.member("east")
	h.member("west")
	north := h.member("north")
	h.createDecision("web-decision-0", "east", "west", "north")
	h.createDecision("web-decision-1", "north")
	r := h.start()
	h.requireObject(profiles, "north", complete)
	h.requireObject(decisions, "web-decision-0", hasClusters("west", "north"))
	h.Holds("Events report the foreign objects", func() bool {
		var events eventsv1.EventList
		require.NoError(t, h.Client.List(t.Context(), &events))
		reported := map[string]bool{}
		for _, e := range events.Items {
			if e.Reason == "NameTaken" {
				reported[e.Note] = true
			}
		}
		const next = ", and is not changed. Delete or rename the object, so that this object can be exported."
		return reported["ClusterProfile "+h.options.ProfileNamespace+
			`/east is managed by cluster manager "other", or belongs to another member`+next] &&
			reported["ClusterProfile "+h.options.ProfileNamespace+
				`/west is managed by cluster manager "muster", or belongs to another member`+next] &&
			reported["PlacementDecision "+h.Namespace+"/web-decision-1 is not managed by muster"+next]
	})
	require.ElementsMatch(t, []string{
		"create multicluster.x-k8s.io/clusterprofiles", "patch multicluster.x-k8s.io/clusterprofiles/status",
		"create multicluster.x-k8s.io/placementdecisions",
	}, r.awaitQuiet(t))
	h.property("east", "1")
	h.patch(foreign[0], `{"spec":{"displayName":"Not the East"}}`)
	require.NoError(t, h.Client.Get(t.Context(), client.ObjectKeyFromObject(foreign[0]), foreign[0]))
	r.awaitQuiet(t)
	require.Equal(t, 3, r.recorder.times("create events.k8s.io/events"), "each object is reported once")
	for _, u := range foreign {
		now := u.DeepCopy()
		require.NoError(t, h.Client.Get(t.Context(), client.ObjectKeyFromObject(u), now))
		require.Equal(t, u.GetResourceVersion(), now.GetResourceVersion(), u.GetName())
	}
	for _, u := range foreign {
		require.NoError(t, h.Client.Delete(t.Context(), u))
	}
	h.requireObject(profiles, "east", complete)
	h.requireObject(profiles, "west", complete)
	h.requireObject(decisions, "web-decision-0", hasClusters("east", "west", "north"))
	h.requireObject(decisions, "web-decision-1", hasClusters("north"))

	// A foreign object that is created later is not changed either.
	r.awaitQuiet(t)
	require.NoError(t, h.Client.Delete(t.Context(), north))
	h.requireGone(profiles, "north")
	other := object(profiles, h.options.ProfileNamespace, "north",
		map[string]any{"spec": map[string]any{"clusterManager": map[string]any{"name": "other"}}})
	h.Holds("another client creates the profile", func() bool {
		// A reconcile with an older cache may create the profile once more.
		return h.Client.Create(t.Context(), other.DeepCopy()) == nil
	})
	h.requireObject(decisions, "web-decision-1", hasClusters())
}

func object(resource, namespace, name string, content map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(kindOf(resource))
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}
