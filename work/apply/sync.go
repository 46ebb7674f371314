package apply

import (
	"context"
	"fmt"
	"slices"

	"github.com/muster-sdk/muster/work/v1alpha1"
)

// A SyncResult is the result of [Engine.Sync].
type SyncResult struct {
	// Applied has one entry for each object of the set, in the order of the set.
	Applied []Change
	// Pruned has one entry for each object that the set no longer contains, in the order of the inventory. It is empty
	// while an object of the set is not applied, because the object may replace one of these.
	Pruned []Change
	// Inventory is the recorded inventory, for the next call.
	Inventory []v1alpha1.AppliedResource
}

// Done reports whether all objects are applied, and all others are deleted or released. If it is false, call Sync again
// after a change of an object, or after a pause.
func (r SyncResult) Done() bool {
	return (ChangeSet{Changes: r.Applied}).Done() && (ChangeSet{Changes: r.Pruned}).Done() &&
		len(r.Inventory) <= len(r.Applied)
}

// Err returns the joined errors of all objects that failed. Nil: none failed.
func (r SyncResult) Err() error { return ChangeSet{Changes: slices.Concat(r.Applied, r.Pruned)}.Err() }

// Sync applies a set, and then deletes or releases the objects of its inventory that the set no longer contains: it
// calls [Engine.Apply], and [Engine.Prune] for what is [Stale]. Nothing is pruned while an object of the set is not
// applied. Sync calls Set.Record with each inventory that differs from the recorded one, and always before a write that
// needs it, so that a crash at any time leaves no unknown object.
//
// An empty set is a request to delete all objects of the inventory. A caller that could not read its desired objects
// must not call Sync.
//
// Sync returns an error if nothing was applied, or if an inventory could not be recorded. The result then has what was
// done until then.
func (e *Engine) Sync(ctx context.Context, set Set, gate Gate, policy v1alpha1.DeletePolicy) (SyncResult, error) {
	result := SyncResult{Inventory: set.Inventory}
	store := set.Record
	if store != nil {
		set.Record = func(ctx context.Context, inventory []v1alpha1.AppliedResource) error {
			if err := store(ctx, inventory); err != nil {
				return err
			}
			result.Inventory = inventory
			return nil
		}
	}
	record := func(inventory []v1alpha1.AppliedResource) error {
		if slices.Equal(inventory, result.Inventory) {
			return nil
		}
		if err := set.Record(ctx, inventory); err != nil {
			return fmt.Errorf("record the applied objects: %w", err)
		}
		return nil
	}
	applied, err := e.Apply(ctx, set, gate)
	if err != nil {
		return result, err
	}
	result.Applied = applied.Changes
	if err := record(applied.Inventory); err != nil || !applied.Done() {
		return result, err
	}
	stale := Stale(applied.Inventory, set.Objects)
	if len(stale) == 0 {
		return result, nil
	}
	pruned, err := e.Prune(ctx, set.Owner, stale, policy)
	if err != nil {
		return result, err
	}
	result.Pruned = pruned.Changes
	return result, record(inventory(applied.Inventory).after(pruned.Changes))
}
