package apply_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/work/apply"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// intercept gives the owner an engine that calls a function before each request.
func (f *fixture) intercept(before func(*http.Request)) {
	config := rest.CopyConfig(f.Config)
	c := newClient(f.T, config) // for discovery before the function is called
	_, err := c.RESTMapper().RESTMapping(f.configMap("x", "{}").Manifest.GroupVersionKind().GroupKind())
	require.NoError(f.T, err)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			before(r)
			return next.RoundTrip(r)
		})
	})
	f.engine = apply.New(newClient(f.T, config), apply.Options{})
}

// TestApply_ConcurrentCreate checks that an object which another client creates between read and write is not changed.
func TestApply_ConcurrentCreate(t *testing.T) { testkit.Virtual(t, testApplyConcurrentCreate) }

func testApplyConcurrentCreate(t *testing.T) {
	f := newMemoryFixture(t)
	object := f.configMap("fresh", "{k: v}")
	once := func(method string, act func()) {
		done := false
		f.intercept(func(r *http.Request) {
			if r.Method == method && !done {
				done = true
				act()
			}
		})
	}
	foreign := func() {
		u := sameNamed(object)
		u.Object["data"] = map[string]any{"other": "x"}
		require.NoError(t, f.Client.Create(t.Context(), u))
	}
	once(http.MethodPatch, foreign)
	require.Equal(t, v1alpha1.ReasonInTheWay, f.one(object).Reason,
		"an object created in between is not taken over, although no field is in conflict")

	f.inventory = nil
	object = f.configMap("known", "{k: v}")
	f.one(object)
	once(http.MethodPatch, func() {
		require.NoError(t, f.Client.Delete(t.Context(), object.Manifest.DeepCopy()))
		foreign()
	})
	object = f.configMap("known", "{k: v2}")
	require.Equal(t, v1alpha1.ReasonInTheWay, f.one(object).Reason,
		"an object that replaces the applied one is not taken over")
}

func TestTakeover_ConcurrentEdit(t *testing.T) { testkit.Virtual(t, testTakeoverConcurrentEdit) }

func testTakeoverConcurrentEdit(t *testing.T) {
	f := newMemoryFixture(t)
	object := f.configMap("a", "{k: v}", takeover(v1alpha1.TakeoverIfNoDiff))
	require.NoError(t, f.Client.Create(t.Context(), object.Manifest.DeepCopy()))
	done := false
	f.intercept(func(r *http.Request) {
		if r.Method == http.MethodPatch && !r.URL.Query().Has("dryRun") && !done {
			done = true
			f.patch(object.Manifest, "{data: {k: edited}}")
		}
	})
	change := f.one(object)
	require.Equal(t, v1alpha1.ReasonInTheWay, change.Reason)
	require.Equal(t, []v1alpha1.FieldDiff{{Path: ".data.k", Wanted: `"v"`, Found: `"edited"`}}, change.Diffs)
}

func TestIgnoredFields_ConcurrentEdit(t *testing.T) {
	testkit.Virtual(t, testIgnoredFieldsConcurrentEdit)
}

func testIgnoredFieldsConcurrentEdit(t *testing.T) {
	f := newMemoryFixture(t)
	f.one(f.configMap("a", "{k: v, l: w}"))
	object := f.configMap("a", "{k: v, l: changed}", ignored(t, ".data.k"))
	done := false
	f.intercept(func(r *http.Request) {
		if r.Method == http.MethodPatch && !done {
			done = true
			f.patch(object.Manifest, "{data: {k: taken}}")
		}
	})
	require.Equal(t, apply.Configured, f.one(object).Action)
	require.Equal(t, map[string]any{"k": "taken", "l": "changed"}, f.get(object.Manifest).Object["data"],
		"the edit between read and write is kept")
}
