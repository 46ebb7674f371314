package apply_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/work/apply"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// sync calls Sync as a controller does.
func (w *world) sync(objects ...apply.Object) apply.SyncResult {
	w.t.Helper()
	result, err := w.engine.Sync(w.t.Context(), w.set(objects...), nil, v1alpha1.DeletePolicy{})
	require.NoError(w.t, err)
	require.Equal(w.t, w.inventory, result.Inventory, "the result has the recorded inventory")
	return result
}

// awaitSync calls Sync until the result is done. The deletion of an object may take a moment.
func (w *world) awaitSync(objects ...apply.Object) {
	w.t.Helper()
	require.Eventually(w.t, func() bool { return w.sync(objects...).Done() }, deadline, tick)
}

// names returns the names of an inventory.
func names(inventory []v1alpha1.AppliedResource) (all []string) {
	for _, resource := range inventory {
		all = append(all, resource.Name)
	}
	return all
}

// TestSync checks that one call applies and prunes, that nothing is pruned while an object of the set fails, and that a
// sync without a change records and writes nothing.
func TestSync(t *testing.T) { testkit.Virtual(t, testSync) }

func testSync(t *testing.T) {
	w := newWorldInMemory(t)
	a, b, c := w.configMap("a", "{k: v}"), w.configMap("b", "{k: v}"), w.configMap("c", "{k: v}")
	result := w.sync(a, b)
	require.True(t, result.Done())
	require.NoError(t, result.Err())
	require.Equal(t, []string{"a", "b"}, names(w.inventory))
	require.NotEmpty(t, w.inventory[0].UID, "the UIDs are recorded")

	broken := w.object("{apiVersion: v1, kind: Service, metadata: {name: broken, namespace: NS}, spec: {type: Nothing}}")
	result = w.sync(a, broken)
	require.False(t, result.Done())
	require.Error(t, result.Err())
	require.Empty(t, result.Pruned)
	require.False(t, w.isGone(b.Manifest), "nothing is pruned while an object fails")
	require.Contains(t, names(w.inventory), "b")

	w.awaitSync(a, c)
	require.True(t, w.isGone(b.Manifest))
	require.Equal(t, []string{"a", "c"}, names(w.inventory))

	recorded := 0
	set := w.set(a, c)
	set.Record = func(context.Context, []v1alpha1.AppliedResource) error { recorded++; return nil }
	w.counted.take()
	result, err := w.engine.Sync(t.Context(), set, nil, v1alpha1.DeletePolicy{})
	require.NoError(t, err)
	require.True(t, result.Done())
	_, writes := w.counted.take()
	require.Zero(t, recorded+writes)

	w.awaitSync()
	require.True(t, w.isGone(a.Manifest), "an empty set requests the deletion")
	require.Empty(t, w.inventory)
}

// TestSync_RecordFails checks at each record that Sync stops there, and that a later Sync has the same result without
// unrecorded objects.
func TestSync_RecordFails(t *testing.T) { testkit.Virtual(t, testSyncRecordFails) }

func testSyncRecordFails(t *testing.T) {
	first := newWorldInMemory(t)
	for failing := range 3 {
		w := first.in(t)
		w.restart()
		old, next := w.configMap("old", "{k: v}"), w.configMap("new", "{k: v}")
		w.awaitSync(old)
		records := 0
		var result apply.SyncResult
		var err error
		for err == nil {
			set := w.set(next)
			store := set.Record
			set.Record = func(ctx context.Context, inventory []v1alpha1.AppliedResource) error {
				if records++; records == failing+1 {
					return errors.New("crashed")
				}
				return store(ctx, inventory)
			}
			result, err = w.engine.Sync(t.Context(), set, nil, v1alpha1.DeletePolicy{})
			require.False(t, err == nil && result.Done(), "record %d did not happen", failing)
		}
		require.ErrorContains(t, err, "crashed", "record %d", failing)
		require.Equal(t, names(w.inventory), names(result.Inventory))
		if !w.isGone(next.Manifest) {
			require.True(t, slices.Contains(names(w.inventory), "new"), "record %d", failing)
		}
		w.restart()
		w.awaitSync(next)
		require.Equal(t, []string{"new"}, names(w.inventory))
		require.True(t, w.isGone(old.Manifest))
		w.awaitSync()
	}
}
