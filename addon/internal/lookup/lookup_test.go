package lookup_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/addon/v1alpha1"
)

// pass advances the clock of the Finder until the condition holds, so that pauses end without real waiting.
func (h *hub) pass(what string, holds func() bool) {
	h.t.Helper()
	h.eventually(what, func() bool {
		h.clock.Step(time.Second)
		return holds()
	})
}

func TestFind(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	resource, widget := h.kind()
	template := &v1alpha1.AddonTemplate{ObjectMeta: metav1.ObjectMeta{Name: h.namespace},
		Spec: v1alpha1.AddonTemplateSpec{Version: "1.4", Manifests: []v1alpha1.TemplateManifest{}}}
	settings := &v1alpha1.AddonConfig{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "a"},
		Spec: v1alpha1.AddonConfigSpec{InstallNamespace: "logging"}}
	h.create(h.configMap("a", "blue"), widget("a"), template, settings)
	r := h.start()
	cluster := h.ref("addontemplates.addon.muster.dev", h.namespace)
	cluster.Namespace = ""
	nowhere := h.ref("configmaps", "a")
	nowhere.Namespace = ""
	misplaced := cluster
	misplaced.Namespace = h.namespace
	refs := []v1alpha1.ConfigReference{
		h.ref("configmaps", "a"), h.ref("configmaps", "b"), h.ref(resource, "a"), h.ref(resource, "b"), cluster,
		h.ref("addonconfigs.addon.muster.dev", "a"),
		nowhere, misplaced, h.ref("gadgets.example.com", "a"), h.ref("configmap", "a"), h.ref("deployments", "a"),
		h.ref("tokenreviews.authentication.k8s.io", "a"), h.ref("configmaps", "a"),
	}
	got := r.find("one", refs...)
	var is []string
	for _, f := range got {
		is = append(is, f.is)
	}
	require.Equal(t, []string{
		"ConfigMap blue", "missing", "Widget 1", "missing", "AddonTemplate 1.4", "AddonConfig logging",
		"unknown", "unknown", "unknown", "unknown", "unknown", "unknown", "ConfigMap blue",
	}, is)
	for at, want := range map[int]string{
		6: "configmaps a: the kind is namespaced: set the namespace.",
		7: "addontemplates.addon.muster.dev " + h.namespace + "/" + h.namespace + ": the kind is not namespaced: " +
			"remove the namespace.",
		8: "gadgets.example.com " + h.namespace + "/a: the hub has no resource gadgets of example.com: install its " +
			"definition, or correct the reference.",
		9: "configmap " + h.namespace + "/a: the hub has no resource configmap of the core group: install its " +
			"definition, or correct the reference.",
		10: "deployments " + h.namespace + "/a: the hub has no resource deployments of the core group: install its " +
			"definition, or correct the reference.",
		11: "tokenreviews.authentication.k8s.io " + h.namespace + "/a: tokenreviews.authentication.k8s.io cannot be " +
			"listed and watched: put the configuration into another kind.",
	} {
		require.Equal(t, want, got[at].problem.Message)
		require.False(t, got[at].problem.Retried, want)
	}
	require.Zero(t, r.asked("LIST secrets"), "they were not requested")

	objects, _, err := r.Find(t.Context(), types.NamespacedName{Name: "other"}, refs[:1])
	require.NoError(t, err)
	require.Empty(t, objects[refs[0]].GetManagedFields())
	require.Equal(t, "ConfigMap", objects[refs[0]].GetKind())
	require.Equal(t, 1, r.asked("GET a")-1, "one ConfigMap and one Widget were read, once each")
	require.Zero(t, r.called("one"))
}

// TestChanges checks that users are notified when an object is created, changed or deleted, and of nothing else.
func TestChanges(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	resource, widget := h.kind()
	r := h.start()
	type step struct {
		reason   string
		do       func()
		notified bool
		is       string
	}
	walk := func(user string, ref v1alpha1.ConfigReference, steps []step) {
		require.Equal(t, "missing", r.is(user, ref))
		notified := 0
		for _, s := range steps {
			before := r.called(user)
			s.do()
			if s.notified {
				notified++
				r.hears(user, before)
			}
			require.Equal(t, s.is, r.is(user, ref), s.reason)
			require.Equal(t, notified, r.called(user), s.reason)
		}
	}
	limits := h.configMap("limits", "1")
	label := func(o client.Object) {
		o.SetLabels(map[string]string{"n": fmt.Sprint(len(o.GetLabels()), o.GetResourceVersion())})
	}
	// That a silent change has been seen, and not told, is known when the one after it is told: so each has one behind it.
	walk("map", h.ref("configmaps", "limits"), []step{
		{"it appears", func() { h.create(limits) }, true, "ConfigMap 1"},
		{"it changes", func() { change(h, limits, func(c *corev1.ConfigMap) { c.Data["value"] = "2" }) }, true,
			"ConfigMap 2"},
		{"its labels say nothing", func() { change(h, limits, func(c *corev1.ConfigMap) { label(c) }) }, false,
			"ConfigMap 2"},
		{"it changes again, and one notification follows",
			func() { change(h, limits, func(c *corev1.ConfigMap) { c.Data["value"] = "3" }) }, true, "ConfigMap 3"},
		{"it goes", func() { require.NoError(t, h.client.Delete(t.Context(), limits)) }, true, "missing"},
		{"and is back as it was", func() { h.create(h.configMap("limits", "3")) }, true, "ConfigMap 3"},
	})
	w := widget("a")
	walk("widget", h.ref(resource, "a"), []step{
		{"it appears", func() { h.create(w) }, true, "Widget 1"},
		{"its status says nothing", func() {
			before := w.DeepCopy()
			w.Object["status"] = map[string]any{"phase": "Ready"}
			require.NoError(t, h.client.Status().Patch(t.Context(), w, client.MergeFrom(before)))
		}, false, "Widget 1"},
		{"nor do its labels", func() { change(h, w, func(u *unstructured.Unstructured) { label(u) }) }, false, "Widget 1"},
		{"its spec does", func() {
			change(h, w, func(u *unstructured.Unstructured) { u.Object["spec"] = map[string]any{"size": int64(2)} })
		}, true, "Widget 2"},
		{"nor does what is beside its spec",
			func() { change(h, w, func(u *unstructured.Unstructured) { u.Object["note"] = "x" }) }, false, "Widget 2"},
		{"it goes", func() { require.NoError(t, h.client.Delete(t.Context(), w)) }, true, "missing"},
	})
	settings := &v1alpha1.AddonConfig{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "a"},
		Spec: v1alpha1.AddonConfigSpec{InstallNamespace: "one"}}
	walk("settings", h.ref("addonconfigs.addon.muster.dev", "a"), []step{
		{"it appears", func() { h.create(settings) }, true, "AddonConfig one"},
		{"its labels say nothing", func() { change(h, settings, func(c *v1alpha1.AddonConfig) { label(c) }) }, false,
			"AddonConfig one"},
		{"it changes", func() {
			change(h, settings, func(c *v1alpha1.AddonConfig) { c.Spec.InstallNamespace = "two" })
		}, true, "AddonConfig two"},
	})
	require.LessOrEqual(t, r.asked("GET limits"), 5, "once for each version, that with other labels included: a "+
		"ConfigMap has no generation")
	require.LessOrEqual(t, r.asked("GET a"), 3, "of a Widget what changes metadata or status alone is not read, "+
		"and AddonConfigs are in the cache")
}

// TestManyUsers checks that a thousand members that share a configuration read each of its versions once.
func TestManyUsers(t *testing.T) {
	t.Parallel()
	const users = 1000
	h := newHub(t)
	shared := h.configMap("shared", "1")
	h.create(shared)
	r := h.start()
	all := func(want string) {
		var wait sync.WaitGroup
		got := make([]string, users)
		for i := range users {
			wait.Go(func() {
				objects, _, err := r.Find(t.Context(), types.NamespacedName{Name: fmt.Sprint(i)},
					[]v1alpha1.ConfigReference{h.ref("configmaps", "shared")})
				if err == nil {
					got[i] = says(objects[h.ref("configmaps", "shared")].Unstructured)
				}
			})
		}
		wait.Wait()
		for i := range users {
			require.Equal(t, want, got[i])
		}
	}
	all("ConfigMap 1")
	require.Equal(t, 1, r.asked("GET shared"))
	lists := r.asked("LIST configmaps") + r.asked("WATCH configmaps")
	for version := 2; version < 5; version++ {
		change(h, shared, func(c *corev1.ConfigMap) { c.Data["value"] = fmt.Sprint(version) })
		for i := range users {
			h.eventually("all are notified", func() bool { return r.called(fmt.Sprint(i)) == version-1 })
		}
		all(fmt.Sprint("ConfigMap ", version))
		require.Equal(t, version, r.asked("GET shared"))
	}
	require.Equal(t, lists, r.asked("LIST configmaps")+r.asked("WATCH configmaps"), "and watch it once")
	for i := range users {
		require.Equal(t, 3, r.called(fmt.Sprint(i)), "each is notified of each version once")
	}
}

// TestReadAheadOfTheCache checks that an object which was read before its event is not read again because of the
// event.
func TestReadAheadOfTheCache(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	a := h.configMap("a", "1")
	h.create(a)
	r := h.start()
	require.Equal(t, "ConfigMap 1", r.is("one", h.ref("configmaps", "a")))
	set := func(value string) {
		a := a.DeepCopy()
		a.Data["value"] = value
		a.ResourceVersion = ""
		require.NoError(t, h.client.Update(t.Context(), a))
	}
	once := sync.OnceFunc(func() { set("3") })
	r.failing(func(request *http.Request) error {
		if strings.HasSuffix(request.URL.Path, "/configmaps/a") {
			once()
		}
		return nil
	})
	set("2")
	r.hears("one", 0)
	require.Equal(t, "ConfigMap 3", r.is("one", h.ref("configmaps", "a")))
	h.create(h.configMap("b", "1"))
	h.eventually("the cache has come as far",
		func() bool { return r.is("other", h.ref("configmaps", "b")) == "ConfigMap 1" })
	require.Equal(t, "ConfigMap 3", r.is("one", h.ref("configmaps", "a")))
	require.Equal(t, 2, r.asked("GET a"))
	require.Equal(t, 1, r.called("one"))
}

// TestKindComesLater checks that a kind which is installed later is found without a restart, and does not delay any
// user until then.
func TestKindComesLater(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	r := h.start()
	ref := h.ref("widgets."+h.namespace+".example.com", "a")
	require.Equal(t, "unknown", r.is("one", ref))
	require.Equal(t, "unknown", r.is("two", ref))
	_, widget := h.kind()
	h.create(widget("a"))
	h.pass("both are notified", func() bool { return r.called("one") > 0 && r.called("two") > 0 })
	// That may have been no more than another trouble: discovery can have a kind before its objects can be listed.
	h.pass("both find it", func() bool { return r.is("one", ref) == "Widget 1" && r.is("two", ref) == "Widget 1" })
}

func TestForget(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	a, b := h.configMap("a", "1"), h.configMap("b", "1")
	h.create(a, b)
	r := h.start()
	require.Len(t, r.find("one", h.ref("configmaps", "a"), h.ref("configmaps", "b")), 2)
	require.Len(t, r.find("two", h.ref("configmaps", "a")), 1)
	r.find("one", h.ref("configmaps", "b")) // and not a any more
	change(h, a, func(c *corev1.ConfigMap) { c.Data["value"] = "2" })
	r.hears("two", 0)
	require.Zero(t, r.called("one"))
	r.Forget(types.NamespacedName{Namespace: h.namespace, Name: "two"})
	reads := r.asked("GET a")
	change(h, a, func(c *corev1.ConfigMap) { c.Data["value"] = "3" })
	change(h, b, func(c *corev1.ConfigMap) { c.Data["value"] = "3" })
	r.hears("one", 0)
	require.Equal(t, 1, r.called("two"))
	require.Equal(t, reads, r.asked("GET a"), "an unused object is not read")
	require.Equal(t, "ConfigMap 3", r.is("two", h.ref("configmaps", "a")), "nor is it kept")
	for _, user := range []string{"one", "two", "two", "nobody"} {
		r.Forget(types.NamespacedName{Namespace: h.namespace, Name: user})
	}
	require.Equal(t, "ConfigMap 3", r.is("one", h.ref("configmaps", "b")), "and may be asked for anew")
}

func TestEnds(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	r := h.start()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := r.Find(gone, types.NamespacedName{Name: "one"}, []v1alpha1.ConfigReference{h.ref("configmaps", "a")})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, "missing", r.is("one", h.ref("configmaps", "a")))
	r.stop()
	_, _, err = r.Find(t.Context(), types.NamespacedName{Name: "one"}, nil)
	require.ErrorContains(t, err, "is stopped")
	r.Forget(types.NamespacedName{Name: "one"})
}
