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
		reason     string
		object     Object
		known      applyHistory
		observed   *observation
		move       move
		action     Action // if nothing is written
		wantReason string
		drifted    bool
	}{
		"absent": {reason: "a missing object is created", move: create},
		"deleted": {reason: "a recorded object was deleted by another client",
			known: applyHistory{recorded: recorded{uid: "1"}}, move: create,
			drifted: true},
		"deleted, report": {reason: "the deletion is reported, and not reverted", object: Object{Drift: v1alpha1.DriftReport},
			known: applyHistory{recorded: recorded{uid: "1"}}, move: doNothing, action: Skipped,
			wantReason: v1alpha1.ReasonDrifted, drifted: true},
		"fresh, report": {reason: "an object that was never applied has not drifted",
			object: Object{Drift: v1alpha1.DriftReport}, move: create},
		"deleted, create only": {reason: "a missing object is created, also if it existed before",
			object: Object{Mode: v1alpha1.CreateOnly}, known: applyHistory{recorded: recorded{uid: "1"}}, move: create,
			drifted: true},
		"observe absent": {reason: "the missing object is reported", object: Object{Mode: v1alpha1.Observe},
			move: doNothing, action: Observed, wantReason: v1alpha1.ReasonNotFound},
		"observe terminating": {reason: "mode Observe reports an object that is being deleted",
			object:   Object{Mode: v1alpha1.Observe},
			observed: &observation{deleting: true}, move: doNothing, action: Observed, wantReason: v1alpha1.ReasonObserved},
		"report": {reason: "a dry run finds the differences", object: Object{Mode: v1alpha1.ReportDiff},
			observed: foreign, move: compare, action: Observed},
		"terminating": {reason: "no manifest is applied to an object that is being deleted",
			observed: with(func(s *observation) { s.deleting = true }), move: doNothing, action: Skipped,
			wantReason: v1alpha1.ReasonTerminating},
		"intact": {reason: "all fields have the applied values", observed: ours(), move: doNothing, action: Unchanged,
			wantReason: v1alpha1.ReasonApplied},
		"owner reference": {reason: "the removal of the reference of an earlier release is no drift",
			observed: with(func(s *observation) { s.marks.former = true }), move: applyForced},
		"owner reference, report": {reason: "the owner has all fields, so no edit is overwritten",
			object: Object{Drift: v1alpha1.DriftReport}, observed: with(func(s *observation) { s.marks.former = true }),
			move: applyForced},
		"owner reference, shared": {reason: "no field is taken from the other owner",
			observed: with(func(s *observation) { s.marks.former, s.marks.shared = true, true }), move: applyShared},
		"owner reference, edited": {reason: "an edit is reported nevertheless", object: Object{Drift: v1alpha1.DriftReport},
			observed: with(func(s *observation) {
				s.marks.former, s.fields = true,
					[]byte(`{}`)
			}), move: compare, action: Skipped,
			drifted: true},
		"changed": {reason: "a change of the manifest is no drift",
			observed: with(func(s *observation) { s.marks.applied = "other" }),
			move:     applyForced},
		"changed, kept": {reason: "no field is taken from other managers", object: Object{KeepConflicts: true},
			observed: with(func(s *observation) { s.marks.applied = "other" }), move: applyKept},
		"changed, report": {reason: "an edit is not overwritten", object: Object{Drift: v1alpha1.DriftReport},
			observed: with(func(s *observation) { s.marks.applied = "other" }), move: applyKept},
		"edited": {reason: "a field that the owner has lost was edited",
			observed: with(func(s *observation) { s.fields = []byte(`{}`) }), move: applyForced, drifted: true},
		"edited, report": {reason: "a comparison finds the edited fields", object: Object{Drift: v1alpha1.DriftReport},
			observed: with(func(s *observation) { s.fields = []byte(`{}`) }), move: compare, action: Skipped, drifted: true},
		"hash lost": {reason: "only an edit removes the hash", observed: with(func(s *observation) { s.marks.applied = "" }),
			move: applyForced, drifted: true},
		"hash lost, report": {reason: "it is unknown whether the manifest has changed, so nothing is written",
			object: Object{Drift: v1alpha1.DriftReport}, observed: with(func(s *observation) { s.marks.applied = "" }),
			move:   compare,
			action: Skipped, drifted: true},
		"label lost": {reason: "watches do not observe an object without the label",
			observed: with(func(s *observation) { s.labeled = false }),
			move:     applyForced, drifted: true},
		"owner lost": {reason: "the inventory has the UID of the object", known: applyHistory{recorded: recorded{uid: "1"}},
			observed: with(func(s *observation) { s.marks.ours = false }), move: applyForced, drifted: true},
		"fields lost": {reason: "it is unknown whether the object has changed",
			observed: with(func(s *observation) { s.fields = nil }), move: applyForced, drifted: true},
		"fields broken": {reason: "unreadable fields are treated as lost", observed: with(func(s *observation) {
			s.fields = []byte("{")
		}), move: applyForced, drifted: true},
		"accepted fields": {reason: "the API server accepted the same fields last time",
			known:    applyHistory{accepted: []byte(`{}`)},
			observed: with(func(s *observation) { s.fields = []byte(`{ }`) }), move: doNothing, action: Unchanged,
			wantReason: v1alpha1.ReasonApplied},
		"shared, edited": {reason: "the fields of the other owner are not taken by force",
			observed: with(func(s *observation) { s.marks.shared, s.fields = true, nil }), move: applyShared, drifted: true},
		"other owner": {reason: "takeover does not apply to objects of other owners",
			object:   Object{Takeover: v1alpha1.TakeoverNever},
			observed: &observation{uid: "1", marks: marks{shared: true}}, move: applyShared},
		"create only, own": {reason: "the created object is never changed", object: Object{Mode: v1alpha1.CreateOnly},
			observed: with(func(s *observation) { s.fields = nil }), move: doNothing, action: Unchanged,
			wantReason: v1alpha1.ReasonApplied},
		"create only, other owner": {reason: "an object of another owner is not shared",
			object:   Object{Mode: v1alpha1.CreateOnly},
			observed: &observation{uid: "1", marks: marks{shared: true}}, move: doNothing, action: Skipped,
			wantReason: v1alpha1.ReasonExists},
		"never": {reason: "by default no object is taken over", observed: foreign, move: doNothing, action: Conflict,
			wantReason: v1alpha1.ReasonInTheWay},
		"same": {reason: "a dry run finds whether the object differs",
			object: Object{Takeover: v1alpha1.TakeoverIfNoDiff}, observed: foreign, move: applyIfSame},
		"always": {reason: "all fields are taken over", object: Object{Takeover: v1alpha1.TakeoverAlways},
			observed: foreign, move: applyForced},
		"always, kept": {reason: "fields of other managers are not taken over",
			object: Object{Takeover: v1alpha1.TakeoverAlways,
				KeepConflicts: true}, observed: foreign, move: applyKept},
		"created again by another client": {reason: "another UID is another object",
			known: applyHistory{recorded: recorded{uid: "2"}}, observed: foreign, move: doNothing,
			action: Conflict, wantReason: v1alpha1.ReasonInTheWay},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.object.Manifest = &unstructured.Unstructured{Object: object(t, "{data: {k: v}}")}
			tc.known.hash = "hash"
			d := decide(tc.object, tc.known, tc.observed)
			require.Equal(t, []any{tc.move, tc.action, tc.wantReason, tc.drifted}, []any{d.move, d.action, d.reason, d.drifted},
				tc.reason)
		})
	}
}

func TestDecidePrune(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason   string
		observed *observation
		uid      types.UID
		action   v1alpha1.DeleteAction
		want     pruneAction
	}{
		"gone": {"the object does not exist", nil, "1", "", pruneGone},
		"own": {"the object has the mark of the owner, although a crash prevented the record of the UID",
			&observation{uid: "1", marks: marks{ours: true}}, "", "", pruneDelete},
		"reference lost": {"the UID of the inventory and the mark of an apply identify the object",
			&observation{uid: "1", marks: marks{applied: "x"}}, "1", "",
			pruneDelete},
		"marks lost": {"a user has removed the marks to keep the object", &observation{uid: "1"}, "1", "",
			pruneNotOwned},
		"created again": {"another UID without the mark of the owner is another object",
			&observation{uid: "2", marks: marks{applied: "x"}}, "1", "",
			pruneNotOwned},
		"never recorded": {"an empty UID matches no object",
			&observation{uid: "2", marks: marks{applied: "x"}}, "", "", pruneNotOwned},
		"orphan": {"the policy keeps the object",
			&observation{marks: marks{ours: true, shared: true}}, "1", v1alpha1.OrphanObject, pruneOrphan},
		"shared": {"the other owners keep the object",
			&observation{marks: marks{ours: true, shared: true, owners: 1}}, "1", "", pruneDisown},
		"owned": {"the objects of other ownerReferences keep the object",
			&observation{marks: marks{ours: true, owners: 1}}, "1", "", pruneOrphan},
		"deleting": {"an object that is being deleted is not deleted again",
			&observation{marks: marks{ours: true}, deleting: true}, "1", "", pruneWait},
	} {
		require.Equal(t, tc.want, decidePrune(tc.observed, tc.uid, tc.action), "%s: %s", name, tc.reason)
	}
}
