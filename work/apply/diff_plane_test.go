package apply_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/work/apply"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

func TestDiff_WithoutOwnMarks(t *testing.T) { testkit.Virtual(t, testDiffWithoutOwnMarks) }

func testDiffWithoutOwnMarks(t *testing.T) {
	w := newWorldInMemory(t)
	object := w.configMap("a", "{k: v}")
	w.one(object)
	diffs, live, err := w.engine.Diff(t.Context(), w.owner, object.Manifest)
	require.NoError(t, err)
	require.Empty(t, diffs)
	require.NotNil(t, live)
	diffs, _, err = w.engine.Diff(t.Context(), w.owner, w.configMap("a", "{k: w}").Manifest)
	require.NoError(t, err)
	require.Equal(t, []v1alpha1.FieldDiff{{Path: ".data.k", Wanted: `"w"`, Found: `"v"`}}, diffs)
}

// TestDiff_Rejected checks that differences are reported even if the API server rejects the dry run.
func TestDiff_Rejected(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	service := func(options string) apply.Object {
		return w.object("{apiVersion: v1, kind: Service, metadata: {name: s, namespace: NS}, spec: {" + options + "}}")
	}
	w.one(service("ports: [{name: a, port: 80}], sessionAffinity: None"))
	refused := service("ports: [{name: a, port: 99999}], sessionAffinity: ClientIP")
	refused.Mode = v1alpha1.ReportDiff
	for range 2 {
		change := w.one(refused)
		require.Equal(t, v1alpha1.ReasonRejected, change.Reason)
		require.Error(t, change.Err)
		require.Equal(t, []v1alpha1.FieldDiff{
			{Path: `.spec.ports[name="a"].port`, Wanted: "99999", Found: "80"},
			{Path: ".spec.sessionAffinity", Wanted: `"ClientIP"`, Found: `"None"`},
		}, change.Diffs)
		require.Contains(t, change.Message, ".spec.sessionAffinity")
	}
	w.counted.take()
	w.one(refused)
	_, writes := w.counted.take()
	require.Zero(t, writes, "the response for this version of the object is cached")
}

// TestDiff_ChangesInBetween checks that changes of a controller between the read and the dry run are not differences.
func TestDiff_ChangesInBetween(t *testing.T) { testkit.Virtual(t, testDiffChangesInBetween) }

func testDiffChangesInBetween(t *testing.T) {
	w := newWorldInMemory(t)
	object := w.configMap("a", "{k: v}")
	w.one(object)
	report := w.configMap("a", "{k: other}", func(o *apply.Object) { o.Mode = v1alpha1.ReportDiff })
	edits := 0
	w.intercept(func(r *http.Request) {
		if r.Method == http.MethodPatch && r.URL.Query().Get("dryRun") != "" && edits < 2 {
			edits++
			w.patch(object.Manifest, "{data: {theirs: edited-"+lower(string(rune('A'+edits)))+"}}")
		}
	})
	change := w.one(report)
	require.Equal(t, 2, edits)
	require.Equal(t, []v1alpha1.FieldDiff{{Path: ".data.k", Wanted: `"other"`, Found: `"v"`}}, change.Diffs)
}
