package selection_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/placement/internal/selection"
	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// widgets returns the definition of a kind in a group that only this test uses, with these versions. The last one is
// stored.
func (h *hub) widgets(scope apiextensionsv1.ResourceScope,
	versions ...string) *apiextensionsv1.CustomResourceDefinition {
	group := h.Namespace + ".example.com"
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: scope, Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Kind: "Widget",
				ListKind: "WidgetList"},
		},
	}
	for i, version := range versions {
		crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: version, Served: true, Storage: i == len(versions)-1, Schema: &apiextensionsv1.CustomResourceValidation{
				OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)},
			},
		})
	}
	return crd
}

// install creates a definition and waits until the kind is served.
func (h *hub) install(crd *apiextensionsv1.CustomResourceDefinition) {
	h.T.Helper()
	h.Create(crd)
	h.T.Cleanup(func() { _ = h.Client.Delete(context.Background(), crd) })
	h.Holds("the kind is served", func() bool {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: crd.Spec.Group, Version: crd.Spec.Versions[0].Name,
			Kind: "WidgetList"})
		return h.Client.List(h.T.Context(), list) == nil
	})
}

// uninstall deletes a definition with its objects, and waits until it is removed.
func (h *hub) uninstall(crd *apiextensionsv1.CustomResourceDefinition) {
	h.T.Helper()
	require.NoError(h.T, h.Client.Delete(h.T.Context(), crd))
	h.Holds("the definition is deleted", func() bool {
		return h.Client.Get(h.T.Context(), client.ObjectKeyFromObject(crd), crd) != nil
	})
	crd.ResourceVersion = ""
}

func (h *hub) widget(version, name string) *unstructured.Unstructured {
	w := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": int64(1)}}}
	w.SetGroupVersionKind(schema.GroupVersionKind{Group: h.Namespace + ".example.com", Version: version, Kind: "Widget"})
	w.SetNamespace(h.Namespace)
	w.SetName(name)
	return w
}

// TestSelect_KindIsInstalledAndRemoved installs a kind while a WorkSet waits for it, removes it, and installs it again
// with another scope or version.
func TestSelect_KindIsInstalledAndRemoved(t *testing.T) {
	h := newHubOnPlane(t)
	clock := testclock.NewFakeClock(time.Now())
	r := h.start(withClock(clock))
	widgets := v1alpha1.ResourceSelector{Group: h.Namespace + ".example.com", Kind: "Widget"}
	missing := []selection.Problem{{Reason: selection.ReasonUnknownKind,
		Message: "the hub does not serve kind Widget of " +
			widgets.Group + ": install its CustomResourceDefinition, or correct the selector"}}
	require.Equal(t, missing, r.selectFor("web", widgets).Problems)
	gizmos := widgets
	gizmos.Kind = "Gizmo"
	require.Equal(t, []string{"UnknownKind"}, reasons(r.selectFor("other", gizmos)))
	requestsBefore := r.transport.requests("DISCOVER")
	h.Holds("the Watcher waits for the next discovery", clock.HasWaiters)
	clock.Step(time.Minute)
	h.Holds("the Watcher has discovered the kinds, and waits again", func() bool {
		return r.transport.requests("DISCOVER") == requestsBefore+2 && clock.HasWaiters()
	})
	require.Equal(t, requestsBefore+2, r.transport.requests("DISCOVER"), "two requests discover all kinds")
	require.Zero(t, r.changedCalls("web"), "Changed must not be called while the kind is still missing")
	require.Equal(t, missing, r.selectFor("web", widgets).Problems)
	require.Equal(t, requestsBefore+2, r.transport.requests("DISCOVER"), "another Select must not discover the kinds")

	v1 := h.widgets(apiextensionsv1.NamespaceScoped, "v1")
	h.install(v1)
	h.Create(h.widget("v1", "a"))
	h.Holds("the kind is found", func() bool { clock.Step(time.Minute); return r.changedCalls("web") > 0 })
	got := r.selectFor("web", widgets)
	require.Equal(t, []string{"Widget a"}, names(got))
	require.Empty(t, got.Problems)
	require.Equal(t, "v1", got.Objects[0].Version)

	// The Watcher does not poll when no kind is missing.
	h.Holds("the Watcher waits again", clock.HasWaiters)
	r.Forget(h.owner("other"))
	requestsBefore = r.transport.requests("DISCOVER")
	clock.Step(time.Minute)

	// The kind is removed. The deletion of its objects is observed first.
	calls := r.changedCalls("web")
	h.uninstall(v1)
	r.awaitChanged("web", calls)
	h.Holds("the removal is reported", func() bool {
		got = r.selectFor("web", widgets)
		return len(got.Problems) == 1 && got.Problems[0].Reason == selection.ReasonUnknownKind
	})
	require.Equal(t, "the hub no longer serves widgets."+widgets.Group+
		" of version v1: install the kind again, or correct the selector", got.Problems[0].Message)

	require.Equal(t, requestsBefore, r.transport.requests("DISCOVER"))
	h.Holds("the Watcher discovers the kind again", clock.HasWaiters)

	// The kind is installed again, in another version and cluster-scoped.
	h.install(h.widgets(apiextensionsv1.ClusterScoped, "v2"))
	h.Holds("the kind is found with its new scope", func() bool {
		clock.Step(time.Minute)
		got = r.selectFor("web", widgets)
		return len(got.Problems) == 1 && got.Problems[0].Reason == selection.ReasonOutOfBounds
	})
	require.Contains(t, got.Problems[0].Message, "cluster-scoped object")

	r.selectFor("web", all("ConfigMap"))
	h.Holds("the discovery ends", func() bool { clock.Step(time.Minute); return !clock.HasWaiters() })
	requestsBefore = r.transport.requests("DISCOVER")
	for i := range 3 { // other changes are observed meanwhile
		calls = r.changedCalls("web")
		h.Create(h.configMap(string(rune('a'+i)), nil))
		r.awaitChanged("web", calls)
	}
	require.False(t, clock.HasWaiters())
	require.Equal(t, requestsBefore, r.transport.requests("DISCOVER"))
}

// TestSelect_KindIsInstalledAgain checks that a kind that is removed and installed again unchanged is watched again.
func TestSelect_KindIsInstalledAgain(t *testing.T) {
	h := newHubOnPlane(t)
	v1 := h.widgets(apiextensionsv1.NamespaceScoped, "v1", "v2")
	h.install(v1)
	h.Create(h.widget("v1", "a"))
	r := h.start()
	widgets := v1alpha1.ResourceSelector{Group: h.Namespace + ".example.com", Version: "v1", Kind: "Widget", Name: "a"}
	got := r.selectFor("web", widgets)
	require.Equal(t, []string{"Widget a"}, names(got))
	require.Equal(t, "v1", got.Objects[0].Version, "the selected version")
	widgets.Version = ""
	require.Equal(t, "v2", r.selectFor("other", widgets).Objects[0].Version, "the preferred version")
	widgets.Version = "v1"

	h.uninstall(v1)
	h.Holds("the removal is reported", func() bool {
		got = r.selectFor("web", widgets)
		return len(got.Problems) == 1 && got.Problems[0].Reason == selection.ReasonUnknownKind
	})
	calls := r.changedCalls("web")
	h.install(v1)
	r.awaitChanged("web", calls)
	h.Holds("the kind is watched", func() bool {
		return strings.Join(reasons(r.selectFor("web", widgets)), "") == "NotFound"
	})
	h.Create(h.widget("v1", "a"))
	h.Holds("the object is selected", func() bool { return len(r.selectFor("web", widgets).Objects) == 1 })
}

// hangingMapper is a mapper that does not respond.
type hangingMapper struct {
	meta.RESTMapper
	released chan struct{}
}

func (h hangingMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	<-h.released
	return h.RESTMapper.RESTMapping(kind, versions...)
}

// TestSelect_DiscoveryHangs checks that Select waits at most a few seconds for the discovery of kinds.
func TestSelect_DiscoveryHangs(t *testing.T) { testkit.Virtual(t, testSelectDiscoveryHangs) }

func testSelectDiscoveryHangs(t *testing.T) {
	h := newHub(t)
	h.Create(h.configMap("a", nil))
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Version: "v1"}})
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	released := make(chan struct{})
	clock := testclock.NewFakeClock(time.Now())
	r := h.start(withClock(clock), func(o *selection.Options) { o.Mapper = hangingMapper{mapper, released} })
	selecting := make(chan selection.Selected)
	go func() { selecting <- r.selectFor("web", all("ConfigMap")) }()
	var got selection.Selected
	h.Holds("Select times out", func() bool {
		clock.Step(time.Second)
		select {
		case got = <-selecting:
			return true
		default:
			return false
		}
	})
	require.Equal(t, []selection.Problem{{Reason: selection.ReasonNotSynced,
		Message: "the kinds of the hub are not discovered yet: wait, or check why the API server is slow"}}, got.Problems)
	close(released)
	r.awaitChanged("web", 0)
	require.Equal(t, []string{"ConfigMap a"}, names(r.selectFor("web", all("ConfigMap"))))
}
