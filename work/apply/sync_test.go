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
func (f *fixture) sync(objects ...apply.Object) apply.SyncResult {
	f.T.Helper()
	result, err := f.engine.Sync(f.T.Context(), f.set(objects...), nil, v1alpha1.DeletePolicy{})
	require.NoError(f.T, err)
	require.Equal(f.T, f.inventory, result.Inventory, "the result has the recorded inventory")
	return result
}

// awaitSync calls Sync until the result is done. The deletion of an object may take a moment.
func (f *fixture) awaitSync(objects ...apply.Object) {
	f.T.Helper()
	require.Eventually(f.T, func() bool { return f.sync(objects...).Done() }, deadline, tick)
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
	f := newMemoryFixture(t)
	a, b, c := f.configMap("a", "{k: v}"), f.configMap("b", "{k: v}"), f.configMap("c", "{k: v}")
	result := f.sync(a, b)
	require.True(t, result.Done())
	require.NoError(t, result.Err())
	require.Equal(t, []string{"a", "b"}, names(f.inventory))
	require.NotEmpty(t, f.inventory[0].UID, "the UIDs are recorded")

	broken := f.object("{apiVersion: v1, kind: Service, metadata: {name: broken, namespace: NS}, spec: {type: Nothing}}")
	result = f.sync(a, broken)
	require.False(t, result.Done())
	require.Error(t, result.Err())
	require.Empty(t, result.Pruned)
	require.False(t, f.isGone(b.Manifest), "nothing is pruned while an object fails")
	require.Contains(t, names(f.inventory), "b")

	f.awaitSync(a, c)
	require.True(t, f.isGone(b.Manifest))
	require.Equal(t, []string{"a", "c"}, names(f.inventory))

	recorded := 0
	set := f.set(a, c)
	set.Record = func(context.Context, []v1alpha1.AppliedResource) error { recorded++; return nil }
	f.counted.take()
	result, err := f.engine.Sync(t.Context(), set, nil, v1alpha1.DeletePolicy{})
	require.NoError(t, err)
	require.True(t, result.Done())
	_, writes := f.counted.take()
	require.Zero(t, recorded+writes)

	f.awaitSync()
	require.True(t, f.isGone(a.Manifest), "an empty set requests the deletion")
	require.Empty(t, f.inventory)
}

// TestSync_RecordFails checks at each record that Sync stops there, and that a later Sync has the same result without
// unrecorded objects.
func TestSync_RecordFails(t *testing.T) { testkit.Virtual(t, testSyncRecordFails) }

func testSyncRecordFails(t *testing.T) {
	first := newMemoryFixture(t)
	for failing := range 3 {
		f := first.in(t)
		f.restart()
		old, next := f.configMap("old", "{k: v}"), f.configMap("new", "{k: v}")
		f.awaitSync(old)
		records := 0
		var result apply.SyncResult
		var err error
		for err == nil {
			set := f.set(next)
			store := set.Record
			set.Record = func(ctx context.Context, inventory []v1alpha1.AppliedResource) error {
				if records++; records == failing+1 {
					return errors.New("crashed")
				}
				return store(ctx, inventory)
			}
			result, err = f.engine.Sync(t.Context(), set, nil, v1alpha1.DeletePolicy{})
			require.False(t, err == nil && result.Done(), "record %d did not happen", failing)
		}
		require.ErrorContains(t, err, "crashed", "record %d", failing)
		require.Equal(t, names(f.inventory), names(result.Inventory))
		if !f.isGone(next.Manifest) {
			require.True(t, slices.Contains(names(f.inventory), "new"), "record %d", failing)
		}
		f.restart()
		f.awaitSync(next)
		require.Equal(t, []string{"new"}, names(f.inventory))
		require.True(t, f.isGone(old.Manifest))
		f.awaitSync()
	}
}
