package agent

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/work/apply"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// TestReport_TextsExceedLimits checks that names and differences that are too long for the status of a Work
// are cut, that the status reports it and stays equal from then on, and that the results of the engine do not change.
func TestReport_TextsExceedLimits(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	diffs := func() []v1alpha1.FieldDiff {
		return []v1alpha1.FieldDiff{{Path: long(1025), Wanted: "1", Found: "2"}, {Path: ".spec", Wanted: long(300)}}
	}
	kept := [][]v1alpha1.FieldDiff{diffs(), diffs()}
	id := v1alpha1.ResourceIdentifier{Group: long(254), Version: long(64), Kind: long(64), Resource: long(254),
		Namespace: long(64), Name: long(4097)}
	f := reportInput{generation: 1, before: &v1alpha1.WorkStatus{}, now: noon, outcomes: []outcome{
		{id: id, refused: "Invalid."},
		{id: named("a"), change: apply.Change{Action: apply.Skipped, Reason: v1alpha1.ReasonDrifted, Diffs: kept[0]}},
		{id: named("b"), change: apply.Change{Action: apply.Skipped, Reason: v1alpha1.ReasonDrifted, Diffs: kept[1]}},
	}}
	status, _ := report(f)
	require.Equal(t, "Truncated because they are too long for a status: names of objects, differences.", status.Truncated)
	got := status.Manifests[0].ResourceIdentifier
	for field, limit := range map[string]int{got.Group: 253, got.Version: 63, got.Kind: 63, got.Resource: 253,
		got.Namespace: 63, got.Name: 4096} {
		require.Len(t, field, limit)
		require.True(t, strings.HasSuffix(field, "…"))
	}
	for i := range kept {
		require.Len(t, status.Manifests[i+1].Diffs[0].Path, 1024)
		require.Len(t, status.Manifests[i+1].Diffs[1].Wanted, 256)
		require.Equal(t, diffs(), kept[i])
	}

	f.before, f.now = &status, noon.Add(1)
	again, _ := report(f)
	require.Equal(t, status, again, "the times of the conditions stay")

	f.outcomes = f.outcomes[:0]
	status, _ = report(f)
	require.Empty(t, status.Truncated)
}
