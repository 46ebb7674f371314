package apply

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/work/v1alpha1"
)

func object(t testing.TB, text string) map[string]any {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	var content map[string]any
	require.NoError(t, utiljson.Unmarshal(data, &content))
	return content
}

func TestDecide(t *testing.T) {
	t.Parallel()
	fields := []byte(`{"f:data":{"f:k":{}}}`)
	ours := func() *observation {
		return &observation{uid: "1", marks: marks{ours: true, applied: "hash"}, labeled: true, fields: fields}
	}
	with := func(change func(*observation)) *observation {
		s := ours()
		change(s)
		return s
	}
	foreign := &observation{uid: "1"}
	for name, tc := range map[string]struct {
		reason  string
		object  Object
		known   applyHistory
		seen    *observation
		move    move
		action  Action // where nothing is done
		why     string
		drifted bool
	}{
		"absent": {reason: "what is missing is created", move: create},
		"deleted": {reason: "what was there once was deleted by others",
			known: applyHistory{recorded: recorded{uid: "1"}}, move: create,
			drifted: true},
		"deleted, report": {reason: "the deletion is left and reported", object: Object{Drift: v1alpha1.DriftReport},
			known: applyHistory{recorded: recorded{uid: "1"}}, move: doNothing, action: Skipped,
			why: v1alpha1.ReasonDrifted, drifted: true},
		"fresh, report": {reason: "what never was there has not drifted",
			object: Object{Drift: v1alpha1.DriftReport}, move: create},
		"deleted, create only": {reason: "it is created where it is missing, whatever there was",
			object: Object{Mode: v1alpha1.CreateOnly}, known: applyHistory{recorded: recorded{uid: "1"}}, move: create,
			drifted: true},
		"observe absent": {reason: "there is nothing to look at", object: Object{Mode: v1alpha1.Observe},
			move: doNothing, action: Observed, why: v1alpha1.ReasonNotFound},
		"observe terminating": {reason: "who looks does not mind", object: Object{Mode: v1alpha1.Observe},
			seen: &observation{deleting: true}, move: doNothing, action: Observed, why: v1alpha1.ReasonObserved},
		"report": {reason: "the API server is asked what differs", object: Object{Mode: v1alpha1.ReportDiff},
			seen: foreign, move: compare, action: Observed},
		"terminating": {reason: "nothing can be applied to what is going",
			seen: with(func(s *observation) { s.deleting = true }), move: doNothing, action: Skipped,
			why: v1alpha1.ReasonTerminating},
		"intact": {reason: "all as it was applied", seen: ours(), move: doNothing, action: Unchanged,
			why: v1alpha1.ReasonApplied},
		"owner reference": {reason: "the reference of an earlier release goes, which is no drift",
			seen: with(func(s *observation) { s.marks.former = true }), move: applyForced},
		"owner reference, report": {reason: "all fields are ours, so nothing is overwritten",
			object: Object{Drift: v1alpha1.DriftReport}, seen: with(func(s *observation) { s.marks.former = true }),
			move: applyForced},
		"owner reference, shared": {reason: "nothing is taken from the other owner",
			seen: with(func(s *observation) { s.marks.former, s.marks.shared = true, true }), move: applyShared},
		"owner reference, edited": {reason: "an edit is reported all the same", object: Object{Drift: v1alpha1.DriftReport},
			seen: with(func(s *observation) { s.marks.former, s.fields = true, []byte(`{}`) }), move: compare, action: Skipped,
			drifted: true},
		"changed": {reason: "another manifest is no drift", seen: with(func(s *observation) { s.marks.applied = "other" }),
			move: applyForced},
		"changed, kept": {reason: "nothing is taken from others", object: Object{KeepConflicts: true},
			seen: with(func(s *observation) { s.marks.applied = "other" }), move: applyKept},
		"changed, report": {reason: "what was edited is not overwritten", object: Object{Drift: v1alpha1.DriftReport},
			seen: with(func(s *observation) { s.marks.applied = "other" }), move: applyKept},
		"edited": {reason: "a field that is not ours any more was edited",
			seen: with(func(s *observation) { s.fields = []byte(`{}`) }), move: applyForced, drifted: true},
		"edited, report": {reason: "it is compared, to say what", object: Object{Drift: v1alpha1.DriftReport},
			seen: with(func(s *observation) { s.fields = []byte(`{}`) }), move: compare, action: Skipped, drifted: true},
		"hash lost": {reason: "it takes an edit to lose it", seen: with(func(s *observation) { s.marks.applied = "" }),
			move: applyForced, drifted: true},
		"hash lost, report": {reason: "whether the manifest has changed cannot be known, so nothing is written",
			object: Object{Drift: v1alpha1.DriftReport}, seen: with(func(s *observation) { s.marks.applied = "" }),
			move:   compare,
			action: Skipped, drifted: true},
		"label lost": {reason: "no watch would see it", seen: with(func(s *observation) { s.labeled = false }),
			move: applyForced, drifted: true},
		"owner lost": {reason: "the inventory has its UID", known: applyHistory{recorded: recorded{uid: "1"}},
			seen: with(func(s *observation) { s.marks.ours = false }), move: applyForced, drifted: true},
		"fields lost": {reason: "whether it is intact cannot be known",
			seen: with(func(s *observation) { s.fields = nil }), move: applyForced, drifted: true},
		"fields broken": {reason: "nor from what cannot be read", seen: with(func(s *observation) {
			s.fields = []byte("{")
		}), move: applyForced, drifted: true},
		"as good as it gets": {reason: "the API server took no more last time", known: applyHistory{accepted: []byte(`{}`)},
			seen: with(func(s *observation) { s.fields = []byte(`{ }`) }), move: doNothing, action: Unchanged,
			why: v1alpha1.ReasonApplied},
		"shared, edited": {reason: "the other owner's fields are not taken by force",
			seen: with(func(s *observation) { s.marks.shared, s.fields = true, nil }), move: applyShared, drifted: true},
		"another owner's": {reason: "takeover has no say in it", object: Object{Takeover: v1alpha1.TakeoverNever},
			seen: &observation{uid: "1", marks: marks{shared: true}}, move: applyShared},
		"create only, ours": {reason: "it is never changed", object: Object{Mode: v1alpha1.CreateOnly},
			seen: with(func(s *observation) { s.fields = nil }), move: doNothing, action: Unchanged,
			why: v1alpha1.ReasonApplied},
		"create only, another's": {reason: "nor joined", object: Object{Mode: v1alpha1.CreateOnly},
			seen: &observation{uid: "1", marks: marks{shared: true}}, move: doNothing, action: Skipped,
			why: v1alpha1.ReasonExists},
		"never": {reason: "by default nothing is taken over", seen: foreign, move: doNothing, action: Conflict,
			why: v1alpha1.ReasonInTheWay},
		"same": {reason: "the API server says whether it is the same",
			object: Object{Takeover: v1alpha1.TakeoverIfNoDiff}, seen: foreign, move: applyIfSame},
		"always": {reason: "all fields are taken", object: Object{Takeover: v1alpha1.TakeoverAlways},
			seen: foreign, move: applyForced},
		"always, kept": {reason: "but for those of others", object: Object{Takeover: v1alpha1.TakeoverAlways,
			KeepConflicts: true}, seen: foreign, move: applyKept},
		"made anew by others": {reason: "another UID is another object",
			known: applyHistory{recorded: recorded{uid: "2"}}, seen: foreign, move: doNothing,
			action: Conflict, why: v1alpha1.ReasonInTheWay},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.object.Manifest = &unstructured.Unstructured{Object: object(t, "{data: {k: v}}")}
			tc.known.hash = "hash"
			d := decide(tc.object, tc.known, tc.seen)
			require.Equal(t, []any{tc.move, tc.action, tc.why, tc.drifted}, []any{d.move, d.action, d.reason, d.drifted},
				tc.reason)
		})
	}
}

func TestDecideTakeBack(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		seen   *observation
		uid    types.UID
		action v1alpha1.DeleteAction
		want   pruneAction
	}{
		"gone": {"there is nothing", nil, "1", "", pruneGone},
		"ours": {"it has our reference, though a crash kept its UID from being recorded",
			&observation{uid: "1", marks: marks{ours: true}}, "", "", pruneDelete},
		"reference lost": {"the inventory and our marks say that it is ours",
			&observation{uid: "1", marks: marks{applied: "x"}}, "1", "",
			pruneDelete},
		"marks lost": {"nothing on it says that it is ours: somebody wants to keep it", &observation{uid: "1"}, "1", "",
			pruneNotOwned},
		"made anew": {"another UID, however it is marked, without our reference",
			&observation{uid: "2", marks: marks{applied: "x"}}, "1", "",
			pruneNotOwned},
		"never recorded": {"no UID is not the UID of anything",
			&observation{uid: "2", marks: marks{applied: "x"}}, "", "", pruneNotOwned},
		"orphan": {"as it is asked for",
			&observation{marks: marks{ours: true, shared: true}}, "1", v1alpha1.OrphanObject, pruneOrphan},
		"shared": {"it stays with the others",
			&observation{marks: marks{ours: true, shared: true, owners: 1}}, "1", "", pruneDisown},
		"owned": {"it stays with its other owners",
			&observation{marks: marks{ours: true, owners: 1}}, "1", "", pruneOrphan},
		"deleting": {"it is not deleted twice", &observation{marks: marks{ours: true}, deleting: true}, "1", "", pruneWait},
	} {
		require.Equal(t, tc.want, decidePrune(tc.seen, tc.uid, tc.action), "%s: %s", name, tc.reason)
	}
}
