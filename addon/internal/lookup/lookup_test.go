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
	"github.com/muster-sdk/muster/internal/testkit"
)

// pass advances the clock of the Finder until the condition holds, so that pauses end without real waiting.
func (h *hub) pass(description string, condition func() bool) {
	h.T.Helper()
	h.Holds(description, func() bool {
		h.clock.Step(time.Second)
		return condition()
	})
}

func TestFind(t *testing.T) { testkit.Virtual(t, testFind) }

func testFind(t *testing.T) {
	h := newHub(t)
	resource, widget := h.kind()
	template := &v1alpha1.AddonTemplate{ObjectMeta: metav1.ObjectMeta{Name: h.Namespace},
		Spec: v1alpha1.AddonTemplateSpec{Version: "1.4", Manifests: []v1alpha1.TemplateManifest{}}}
	settings := &v1alpha1.AddonConfig{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: "a"},
		Spec: v1alpha1.AddonConfigSpec{InstallNamespace: "logging"}}
	h.Create(h.configMap("a", "blue"), widget("a"), template, settings)
	r := h.start()
	cluster := h.ref("addontemplates.addon.muster.dev", h.Namespace)
	cluster.Namespace = ""
	withoutNamespace := h.ref("configmaps", "a")
	withoutNamespace.Namespace = ""
	withNamespace := cluster
	withNamespace.Namespace = h.Namespace
	refs := []v1alpha1.ConfigReference{
		h.ref("configmaps", "a"), h.ref("configmaps", "b"), h.ref(resource, "a"), h.ref(resource, "b"), cluster,
		h.ref("addonconfigs.addon.muster.dev", "a"),
		withoutNamespace, withNamespace, h.ref("gadgets.example.com", "a"), h.ref("configmap", "a"),
		h.ref("deployments", "a"),
		h.ref("tokenreviews.authentication.k8s.io", "a"), h.ref("configmaps", "a"),
	}
	got := r.find("one", refs...)
	var values []string
	for _, f := range got {
		values = append(values, f.value)
	}
	require.Equal(t, []string{
		"ConfigMap blue", "missing", "Widget 1", "missing", "AddonTemplate 1.4", "AddonConfig logging",
		"unknown", "unknown", "unknown", "unknown", "unknown", "unknown", "ConfigMap blue",
	}, values)
	for at, want := range map[int]string{
		6: "configmaps a: the kind is namespaced: set the namespace.",
		7: "addontemplates.addon.muster.dev " + h.Namespace + "/" + h.Namespace + ": the kind is not namespaced: " +
			"remove the namespace.",
		8: "gadgets.example.com " + h.Namespace + "/a: the hub has no resource gadgets of example.com: install its " +
			"definition, or correct the reference.",
		9: "configmap " + h.Namespace + "/a: the hub has no resource configmap of the core group: install its " +
			"definition, or correct the reference.",
		10: "deployments " + h.Namespace + "/a: the hub has no resource deployments of the core group: install its " +
			"definition, or correct the reference.",
		11: "tokenreviews.authentication.k8s.io " + h.Namespace + "/a: tokenreviews.authentication.k8s.io cannot be " +
			"listed and watched: put the configuration into another kind.",
	} {
		require.Equal(t, want, got[at].problem.Message)
		require.False(t, got[at].problem.Retried, want)
	}
	require.Zero(t, r.requestsOf("LIST secrets"), "want no list of an unreferenced kind")

	objects, _, err := r.Find(t.Context(), types.NamespacedName{Name: "other"}, refs[:1])
	require.NoError(t, err)
	require.Empty(t, objects[refs[0]].GetManagedFields())
	require.Equal(t, "ConfigMap", objects[refs[0]].GetKind())
	require.Equal(t, 1, r.requestsOf("GET a")-1, "want one read of the ConfigMap and one read of the Widget")
	require.Zero(t, r.called("one"))
}

// TestFind_NotifiesOfChanges checks that users are notified when an object is created, changed or deleted, and of
// nothing else.
func TestFind_NotifiesOfChanges(t *testing.T) { testkit.Virtual(t, testFindNotifiesOfChanges) }

func testFindNotifiesOfChanges(t *testing.T) {
	h := newHub(t)
	resource, widget := h.kind()
	r := h.start()
	type step struct {
		reason   string
		do       func()
		notified bool
		value    string
	}
	walk := func(user string, ref v1alpha1.ConfigReference, steps []step) {
		require.Equal(t, "missing", r.value(user, ref))
		notified := 0
		for _, s := range steps {
			before := r.called(user)
			s.do()
			if s.notified {
				notified++
				r.waitForCall(user, before)
			}
			require.Equal(t, s.value, r.value(user, ref), s.reason)
			require.Equal(t, notified, r.called(user), s.reason)
		}
	}
	limits := h.configMap("limits", "1")
	label := func(o client.Object) {
		o.SetLabels(map[string]string{"n": fmt.Sprint(len(o.GetLabels()), o.GetResourceVersion())})
	}
	// A change without a notification is observed when the following change is notified. Each of them is followed by one.
	walk("map", h.ref("configmaps", "limits"), []step{
		{"the object is created", func() { h.Create(limits) }, true, "ConfigMap 1"},
		{"data changes", func() { change(h, limits, func(c *corev1.ConfigMap) { c.Data["value"] = "2" }) }, true,
			"ConfigMap 2"},
		{"labels change", func() { change(h, limits, func(c *corev1.ConfigMap) { label(c) }) }, false,
			"ConfigMap 2"},
		{"data changes again",
			func() { change(h, limits, func(c *corev1.ConfigMap) { c.Data["value"] = "3" }) }, true, "ConfigMap 3"},
		{"the object is deleted", func() { require.NoError(t, h.Client.Delete(t.Context(), limits)) }, true, "missing"},
		{"the ConfigMap is created again with the same data",
			func() { h.Create(h.configMap("limits", "3")) }, true, "ConfigMap 3"},
	})
	w := widget("a")
	walk("widget", h.ref(resource, "a"), []step{
		{"the object is created", func() { h.Create(w) }, true, "Widget 1"},
		{"the status changes", func() {
			before := w.DeepCopy()
			w.Object["status"] = map[string]any{"phase": "Ready"}
			require.NoError(t, h.Client.Status().Patch(t.Context(), w, client.MergeFrom(before)))
		}, false, "Widget 1"},
		{"labels change", func() { change(h, w, func(u *unstructured.Unstructured) { label(u) }) }, false, "Widget 1"},
		{"the spec changes", func() {
			change(h, w, func(u *unstructured.Unstructured) { u.Object["spec"] = map[string]any{"size": int64(2)} })
		}, true, "Widget 2"},
		{"a field outside spec and status changes",
			func() { change(h, w, func(u *unstructured.Unstructured) { u.Object["note"] = "x" }) }, false, "Widget 2"},
		{"the object is deleted", func() { require.NoError(t, h.Client.Delete(t.Context(), w)) }, true, "missing"},
	})
	settings := &v1alpha1.AddonConfig{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: "a"},
		Spec: v1alpha1.AddonConfigSpec{InstallNamespace: "one"}}
	walk("settings", h.ref("addonconfigs.addon.muster.dev", "a"), []step{
		{"the object is created", func() { h.Create(settings) }, true, "AddonConfig one"},
		{"labels change", func() { change(h, settings, func(c *v1alpha1.AddonConfig) { label(c) }) }, false,
			"AddonConfig one"},
		{"the spec changes", func() {
			change(h, settings, func(c *v1alpha1.AddonConfig) { c.Spec.InstallNamespace = "two" })
		}, true, "AddonConfig two"},
	})
	require.LessOrEqual(t, r.requestsOf("GET limits"), 5, "want one read for each version, including changed labels: a "+
		"ConfigMap has no generation")
	require.LessOrEqual(t, r.requestsOf("GET a"), 3, "want no read of a Widget after changes of metadata or status only, "+
		"and none of an AddonConfig, which is in the cache")
}

// TestFind_ManyUsers checks that a thousand members that share a configuration read each of its versions once.
func TestFind_ManyUsers(t *testing.T) { testkit.Virtual(t, testFindManyUsers) }

func testFindManyUsers(t *testing.T) {
	const users = 1000
	h := newHub(t)
	shared := h.configMap("shared", "1")
	h.Create(shared)
	r := h.start()
	all := func(want string) {
		var wait sync.WaitGroup
		got := make([]string, users)
		for i := range users {
			wait.Go(func() {
				objects, _, err := r.Find(t.Context(), types.NamespacedName{Name: fmt.Sprint(i)},
					[]v1alpha1.ConfigReference{h.ref("configmaps", "shared")})
				if err == nil {
					got[i] = textOf(objects[h.ref("configmaps", "shared")].Unstructured)
				}
			})
		}
		wait.Wait()
		for i := range users {
			require.Equal(t, want, got[i])
		}
	}
	all("ConfigMap 1")
	require.Equal(t, 1, r.requestsOf("GET shared"))
	lists := r.requestsOf("LIST configmaps") + r.requestsOf("WATCH configmaps")
	for version := 2; version < 5; version++ {
		change(h, shared, func(c *corev1.ConfigMap) { c.Data["value"] = fmt.Sprint(version) })
		for i := range users {
			h.Holds("all are notified", func() bool { return r.called(fmt.Sprint(i)) == version-1 })
		}
		all(fmt.Sprint("ConfigMap ", version))
		require.Equal(t, version, r.requestsOf("GET shared"))
	}
	require.Equal(t, lists, r.requestsOf("LIST configmaps")+r.requestsOf("WATCH configmaps"),
		"want no additional list or watch")
	for i := range users {
		require.Equal(t, 3, r.called(fmt.Sprint(i)), "want one notification for each user and version")
	}
}

// TestFind_ReadAheadOfTheCache checks that an object which was read before its event is not read again because of the
// event.
func TestFind_ReadAheadOfTheCache(t *testing.T) {
	testkit.Virtual(t, testFindReadAheadOfTheCache)
}

func testFindReadAheadOfTheCache(t *testing.T) {
	h := newHub(t)
	a := h.configMap("a", "1")
	h.Create(a)
	r := h.start()
	require.Equal(t, "ConfigMap 1", r.value("one", h.ref("configmaps", "a")))
	set := func(value string) {
		a := a.DeepCopy()
		a.Data["value"] = value
		a.ResourceVersion = ""
		require.NoError(t, h.Client.Update(t.Context(), a))
	}
	once := sync.OnceFunc(func() { set("3") })
	r.failing(func(request *http.Request) error {
		if strings.HasSuffix(request.URL.Path, "/configmaps/a") {
			once()
		}
		return nil
	})
	set("2")
	r.waitForCall("one", 0)
	require.Equal(t, "ConfigMap 3", r.value("one", h.ref("configmaps", "a")))
	h.Create(h.configMap("b", "1"))
	h.Holds("the cache contains the event",
		func() bool { return r.value("other", h.ref("configmaps", "b")) == "ConfigMap 1" })
	require.Equal(t, "ConfigMap 3", r.value("one", h.ref("configmaps", "a")))
	require.Equal(t, 2, r.requestsOf("GET a"))
	require.Equal(t, 1, r.called("one"))
}

// TestFind_KindInstalledLater checks that a kind which is installed later is found without a restart, and does not
// delay any user until then.
func TestFind_KindInstalledLater(t *testing.T) {
	t.Parallel()
	h := newHubOnPlane(t)
	r := h.start()
	ref := h.ref("widgets."+h.Namespace+".example.com", "a")
	require.Equal(t, "unknown", r.value("one", ref))
	require.Equal(t, "unknown", r.value("two", ref))
	_, widget := h.kind()
	h.Create(widget("a"))
	h.pass("both are notified", func() bool { return r.called("one") > 0 && r.called("two") > 0 })
	// The notification can be about another problem: discovery can have a kind before its objects can be listed.
	h.pass("both find the Widget", func() bool {
		return r.value("one", ref) == "Widget 1" && r.value("two", ref) == "Widget 1"
	})
}

func TestForget_StopsNotifications(t *testing.T) {
	testkit.Virtual(t, testForgetStopsNotifications)
}

func testForgetStopsNotifications(t *testing.T) {
	h := newHub(t)
	a, b := h.configMap("a", "1"), h.configMap("b", "1")
	h.Create(a, b)
	r := h.start()
	require.Len(t, r.find("one", h.ref("configmaps", "a"), h.ref("configmaps", "b")), 2)
	require.Len(t, r.find("two", h.ref("configmaps", "a")), 1)
	r.find("one", h.ref("configmaps", "b")) // the user no longer references a
	change(h, a, func(c *corev1.ConfigMap) { c.Data["value"] = "2" })
	r.waitForCall("two", 0)
	require.Zero(t, r.called("one"))
	r.Forget(types.NamespacedName{Namespace: h.Namespace, Name: "two"})
	reads := r.requestsOf("GET a")
	change(h, a, func(c *corev1.ConfigMap) { c.Data["value"] = "3" })
	change(h, b, func(c *corev1.ConfigMap) { c.Data["value"] = "3" })
	r.waitForCall("one", 0)
	require.Equal(t, 1, r.called("two"))
	require.Equal(t, reads, r.requestsOf("GET a"), "an unused object must not be read")
	require.Equal(t, "ConfigMap 3", r.value("two", h.ref("configmaps", "a")), "an unused object must not be cached")
	for _, user := range []string{"one", "two", "two", "nobody"} {
		r.Forget(types.NamespacedName{Namespace: h.Namespace, Name: user})
	}
	require.Equal(t, "ConfigMap 3", r.value("one", h.ref("configmaps", "b")), "want the current object after Forget")
}

func TestFind_Stopped(t *testing.T) { testkit.Virtual(t, testFindStopped) }

func testFindStopped(t *testing.T) {
	h := newHub(t)
	r := h.start()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := r.Find(gone, types.NamespacedName{Name: "one"}, []v1alpha1.ConfigReference{h.ref("configmaps", "a")})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, "missing", r.value("one", h.ref("configmaps", "a")))
	r.stop()
	_, _, err = r.Find(t.Context(), types.NamespacedName{Name: "one"}, nil)
	require.ErrorContains(t, err, "is stopped")
	r.Forget(types.NamespacedName{Name: "one"})
}
