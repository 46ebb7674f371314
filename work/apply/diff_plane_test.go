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
	f := newMemoryFixture(t)
	object := f.configMap("a", "{k: v}")
	f.one(object)
	diffs, live, err := f.engine.Diff(t.Context(), f.owner, object.Manifest)
	require.NoError(t, err)
	require.Empty(t, diffs)
	require.NotNil(t, live)
	diffs, _, err = f.engine.Diff(t.Context(), f.owner, f.configMap("a", "{k: w}").Manifest)
	require.NoError(t, err)
	require.Equal(t, []v1alpha1.FieldDiff{{Path: ".data.k", Wanted: `"w"`, Found: `"v"`}}, diffs)
}

// TestDiff_Rejected checks that differences are reported even if the API server rejects the dry run.
func TestDiff_Rejected(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	service := func(options string) apply.Object {
		return f.object("{apiVersion: v1, kind: Service, metadata: {name: s, namespace: NS}, spec: {" + options + "}}")
	}
	f.one(service("ports: [{name: a, port: 80}], sessionAffinity: None"))
	refused := service("ports: [{name: a, port: 99999}], sessionAffinity: ClientIP")
	refused.Mode = v1alpha1.ReportDiff
	for range 2 {
		change := f.one(refused)
		require.Equal(t, v1alpha1.ReasonRejected, change.Reason)
		require.Error(t, change.Err)
		require.Equal(t, []v1alpha1.FieldDiff{
			{Path: `.spec.ports[name="a"].port`, Wanted: "99999", Found: "80"},
			{Path: ".spec.sessionAffinity", Wanted: `"ClientIP"`, Found: `"None"`},
		}, change.Diffs)
		require.Contains(t, change.Message, ".spec.sessionAffinity")
	}
	f.counted.take()
	f.one(refused)
	_, writes := f.counted.take()
	require.Zero(t, writes, "the response for this version of the object is cached")
}

// TestDiff_ChangesInBetween checks that changes of a controller between the read and the dry run are not differences.
func TestDiff_ChangesInBetween(t *testing.T) { testkit.Virtual(t, testDiffChangesInBetween) }

func testDiffChangesInBetween(t *testing.T) {
	f := newMemoryFixture(t)
	object := f.configMap("a", "{k: v}")
	f.one(object)
	report := f.configMap("a", "{k: other}", func(o *apply.Object) { o.Mode = v1alpha1.ReportDiff })
	edits := 0
	f.intercept(func(r *http.Request) {
		if r.Method == http.MethodPatch && r.URL.Query().Get("dryRun") != "" && edits < 2 {
			edits++
			f.patch(object.Manifest, "{data: {theirs: edited-"+lower(string(rune('A'+edits)))+"}}")
		}
	})
	change := f.one(report)
	require.Equal(t, 2, edits)
	require.Equal(t, []v1alpha1.FieldDiff{{Path: ".data.k", Wanted: `"other"`, Found: `"v"`}}, change.Diffs)
}
