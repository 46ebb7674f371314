package apply_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/work/apply"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// intercept gives the owner an engine that calls a function before each request.
func (w *world) intercept(before func(*http.Request)) {
	config := w.server.Config()
	c := newClient(w.t, config) // for discovery before the function is called
	_, err := c.RESTMapper().RESTMapping(w.configMap("x", "{}").Manifest.GroupVersionKind().GroupKind())
	require.NoError(w.t, err)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			before(r)
			return next.RoundTrip(r)
		})
	})
	w.engine = apply.New(newClient(w.t, config), apply.Options{})
}

// TestApply_ConcurrentCreate checks that an object which another client creates between read and write is not changed.
func TestApply_ConcurrentCreate(t *testing.T) { testkit.Virtual(t, testApplyConcurrentCreate) }

func testApplyConcurrentCreate(t *testing.T) {
	w := newWorldInMemory(t)
	object := w.configMap("fresh", "{k: v}")
	once := func(method string, act func()) {
		done := false
		w.intercept(func(r *http.Request) {
			if r.Method == method && !done {
				done = true
				act()
			}
		})
	}
	foreign := func() {
		u := sameNamed(object)
		u.Object["data"] = map[string]any{"other": "x"}
		require.NoError(t, w.admin.Create(t.Context(), u))
	}
	once(http.MethodPatch, foreign)
	require.Equal(t, v1alpha1.ReasonInTheWay, w.one(object).Reason,
		"an object created in between is not taken over, although no field is in conflict")

	w.inventory = nil
	object = w.configMap("known", "{k: v}")
	w.one(object)
	once(http.MethodPatch, func() {
		require.NoError(t, w.admin.Delete(t.Context(), object.Manifest.DeepCopy()))
		foreign()
	})
	object = w.configMap("known", "{k: v2}")
	require.Equal(t, v1alpha1.ReasonInTheWay, w.one(object).Reason,
		"an object that replaces the applied one is not taken over")
}

func TestTakeover_ConcurrentEdit(t *testing.T) { testkit.Virtual(t, testTakeoverConcurrentEdit) }

func testTakeoverConcurrentEdit(t *testing.T) {
	w := newWorldInMemory(t)
	object := w.configMap("a", "{k: v}", takeover(v1alpha1.TakeoverIfNoDiff))
	require.NoError(t, w.admin.Create(t.Context(), object.Manifest.DeepCopy()))
	done := false
	w.intercept(func(r *http.Request) {
		if r.Method == http.MethodPatch && !r.URL.Query().Has("dryRun") && !done {
			done = true
			w.patch(object.Manifest, "{data: {k: edited}}")
		}
	})
	change := w.one(object)
	require.Equal(t, v1alpha1.ReasonInTheWay, change.Reason)
	require.Equal(t, []v1alpha1.FieldDiff{{Path: ".data.k", Wanted: `"v"`, Found: `"edited"`}}, change.Diffs)
}

func TestIgnoredFields_ConcurrentEdit(t *testing.T) {
	testkit.Virtual(t, testIgnoredFieldsConcurrentEdit)
}

func testIgnoredFieldsConcurrentEdit(t *testing.T) {
	w := newWorldInMemory(t)
	w.one(w.configMap("a", "{k: v, l: w}"))
	object := w.configMap("a", "{k: v, l: changed}", ignored(t, ".data.k"))
	done := false
	w.intercept(func(r *http.Request) {
		if r.Method == http.MethodPatch && !done {
			done = true
			w.patch(object.Manifest, "{data: {k: taken}}")
		}
	})
	require.Equal(t, apply.Configured, w.one(object).Action)
	require.Equal(t, map[string]any{"k": "taken", "l": "changed"}, w.get(object.Manifest).Object["data"],
		"the edit between read and write is kept")
}
