package apply

import (
	"context"
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/ssa"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// Detach removes owner references to the owner from objects, and the mark of the owner. Earlier releases added owner
// references to every object. Nothing else changes. Objects of other owners, and kinds that are not served, are
// ignored. Detach is idempotent, and costs one read for each object that [Options.Metadata] does not know.
func (e *Engine) Detach(ctx context.Context, owner Owner, resources []v1alpha1.AppliedResource) error {
	errs := make([]error, len(resources))
	plan := make([]task, len(resources))
	for i, resource := range resources {
		plan[i] = task{index: i, id: resource.ResourceIdentifier, recorded: recorded{uid: resource.UID}}
	}
	e.each(plan, func(t *task) {
		backoff := newBackoff()
		for range attempts {
			err := e.observeObject(ctx, owner, t)
			if err == nil && t.observed != nil && t.observed.marks.former {
				err = e.detach(ctx, owner, t)
			}
			if errs[t.index] = err; !changedConcurrently(err) {
				break
			}
			t.fetched = false
			pause(ctx, &backoff)
		}
		if ssa.Unserved(errs[t.index]) {
			errs[t.index] = nil
		}
	})
	return errors.Join(errs...)
}

// detach removes owner references to the owner from one object that was observed to have them.
func (e *Engine) detach(ctx context.Context, owner Owner, t *task) error {
	ctx, cancel := context.WithTimeout(ctx, e.options.Timeout)
	defer cancel()
	object, err := ssa.Metadata(ctx, e.client, t.id.GroupVersionKind(), objectKey(t.id))
	if err != nil || object == nil {
		return client.IgnoreNotFound(err)
	}
	if object.UID != t.observed.uid {
		return newConflict(t, errRecreated)
	}
	now := observe(object, owner)
	if !now.marks.former {
		t.observed = now
		return nil
	}
	before := object.DeepCopy()
	object.OwnerReferences = slices.DeleteFunc(object.OwnerReferences, func(r metav1.OwnerReference) bool {
		if !owner.isFormer(r) {
			return false
		}
		delete(object.Annotations, formerMark(r.UID))
		return true
	})
	if now.marks.applied != "" {
		metav1.SetMetaDataAnnotation(&object.ObjectMeta, owner.Mark(), now.marks.applied)
	}
	err = e.client.Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}),
		client.FieldOwner(owner.FieldOwner))
	if err != nil {
		return err
	}
	t.observed = observe(object, owner)
	return nil
}
