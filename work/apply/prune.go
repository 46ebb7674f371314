package apply

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/precondition"
	"github.com/muster-sdk/muster/internal/ssa"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// Stale returns the entries of an inventory that a set no longer contains, for [Engine.Prune]. Objects that the set
// only observes now are released and not deleted.
//
// A manifest with a superfluous or missing namespace still refers to the same object as before.
func Stale(inventory []v1alpha1.AppliedResource, objects []Object) []v1alpha1.AppliedResource {
	const anywhere = "*"
	in := func(key ssa.Key, namespace string) ssa.Key { key.Namespace = namespace; return key }
	wanted := make(map[ssa.Key]Object, 2*len(objects))
	for _, object := range objects {
		key := keyOf(identifier(object.Manifest))
		wanted[key], wanted[in(key, anywhere)] = object, object
	}
	var stale []v1alpha1.AppliedResource
	for _, resource := range inventory {
		key := entryKey(resource)
		object, is := wanted[key]
		if !is {
			object, is = wanted[in(key, "")]
		}
		if !is && resource.Namespace == "" {
			object, is = wanted[in(key, anywhere)]
		}
		switch {
		case !is:
			stale = append(stale, resource)
		case object.observesOnly():
			resource.Delete = v1alpha1.OrphanObject
			stale = append(stale, resource)
		}
	}
	return stale
}

// Prune deletes or releases objects, as the policy or their own entry requires: the highest wave first, and each wave
// after the wave above has been deleted. Prune starts deletions and does not wait for them: call it again for the
// objects that are not [Deleted] or [Released] yet.
//
// Prune changes only objects of the owner. If other owners share an object, Prune removes only the owner's fields. An
// object that another client has created again is not changed. Prune reads all of that from the API server, and not
// from a watch.
func (e *Engine) Prune(ctx context.Context, owner Owner, resources []v1alpha1.AppliedResource,
	policy v1alpha1.DeletePolicy) (ChangeSet, error) {
	plan := make(tasks, len(resources))
	for i, resource := range resources {
		plan[i] = task{Object: Object{Delete: cmp.Or(resource.Delete, policy.Action)}, index: i, wave: resource.Wave,
			id: resource.ResourceIdentifier, recorded: recorded{uid: resource.UID}}
	}
	resolve := e.resolver(ctx)
	changes := make([]Change, len(plan))
	blocked := ""
	for _, wave := range slices.Backward(plan.waves()) {
		if blocked != "" {
			for i := range wave {
				changes[wave[i].index] = wave[i].pending(blocked)
			}
			continue
		}
		var unknown []*task
		for i := range wave {
			t := &wave[i]
			mapping, err := resolve(t.id.GroupVersionKind())
			if err == nil && namespaced(mapping) != (t.id.Namespace != "") {
				t.fetched = true // its manifest was rejected, so it does not exist
				continue
			}
			unknown = append(unknown, t)
		}
		e.prefetch(ctx, owner, unknown)
		e.each(wave, func(t *task) { changes[t.index] = e.pruneOne(ctx, owner, t, policy.Propagation) })
		if err := ctx.Err(); err != nil {
			return ChangeSet{}, fmt.Errorf("prune wave %d: %w", wave[0].wave, err)
		}
		for _, t := range wave {
			if change := changes[t.index]; !change.Done() {
				blocked = fmt.Sprintf("Waiting for the deletion of %s. %s", change.Object, change.Message)
				break
			}
		}
	}
	return ChangeSet{Changes: changes, Inventory: inventory(resources).after(changes)}, nil
}

// executePrune is the action for an object that the set does not contain any more.
type pruneAction string

const (
	pruneGone     pruneAction = "Gone"    // nothing: the object does not exist
	pruneNotOwned pruneAction = "NotOurs" // nothing: the object belongs to others
	pruneWait     pruneAction = "Wait"    // wait for a deletion that has begun
	pruneDelete   pruneAction = "Delete"
	// pruneDisabled does nothing, because the member's administrator has stopped the deletion. The object keeps its owner.
	pruneDisabled pruneAction = "Disabled"
	pruneOrphan   pruneAction = "Orphan" // remove only the marks of the owner
	pruneDisown   pruneAction = "Disown" // remove the marks and the fields of the owner, for objects with other owners
)

// decidePrune decides about an observed object, given its UID in the inventory. It is pure.
func decidePrune(s *observation, uid types.UID, action v1alpha1.DeleteAction) pruneAction {
	switch {
	case s == nil:
		return pruneGone
	case !s.marks.ours && (s.uid != uid || !s.marked()):
		return pruneNotOwned
	case action == v1alpha1.OrphanObject:
		return pruneOrphan
	case s.marks.shared:
		return pruneDisown
	case s.marks.owners > 0:
		return pruneOrphan
	case s.deleting:
		return pruneWait
	case s.noDelete:
		return pruneDisabled
	default:
		return pruneDelete
	}
}

func (e *Engine) pruneOne(ctx context.Context, owner Owner, t *task, propagation metav1.DeletionPropagation) Change {
	backoff := newBackoff()
	for range attempts {
		err := e.observeAnyVersion(ctx, owner, t)
		switch {
		case apierrors.IsForbidden(err) && t.recorded.uid == "":
			// The object was probably never applied, because that requires the same permission.
			return t.change(reportOnly(Released, "", "The object cannot be read, and the inventory does not record "+
				"that it was applied."))
		case err != nil:
			return t.failed(err)
		}
		change, err := e.executePrune(ctx, owner, t, decidePrune(t.observed, t.recorded.uid, t.Delete), propagation)
		if err == nil {
			if change.Done() {
				e.forget(owner, t.id)
			}
			return change
		}
		if !changedConcurrently(err) && !apierrors.IsNotFound(err) {
			return t.failed(err)
		}
		t.fetched = false
		pause(ctx, &backoff)
	}
	return t.pending("Other clients keep modifying the object.")
}

// observeAnyVersion observes an object in any version in which its kind is served. If the kind does not exist any more,
// the object does not either.
func (e *Engine) observeAnyVersion(ctx context.Context, owner Owner, t *task) error {
	if t.fetched {
		return nil
	}
	err := e.fetchMetadata(ctx, owner, t)
	if !ssa.Unserved(err) {
		return err
	}
	versions, err := e.servedVersions(ctx, t.id)
	if err != nil {
		return err
	}
	for _, version := range versions {
		t.id.Version = version
		if err := e.fetchMetadata(ctx, owner, t); !ssa.Unserved(err) {
			return err
		}
	}
	if len(versions) > 0 {
		return fmt.Errorf("the API server serves kind %s in none of its discovered versions", t.id.Kind)
	}
	t.observed, t.fetched = nil, true
	return nil
}

func (e *Engine) executePrune(ctx context.Context, owner Owner, t *task, what pruneAction,
	propagation metav1.DeletionPropagation) (Change, error) {
	switch what {
	case pruneGone:
		return t.change(reportOnly(Deleted, "", "")), nil
	case pruneNotOwned:
		return t.change(reportOnly(Released, "", "The object belongs to other owners.")), nil
	case pruneWait:
		message := "The object is being deleted."
		if len(t.observed.finalizers) > 0 {
			message = fmt.Sprintf("The object is being deleted and waits for %s.", finalizers(t.observed.finalizers))
		}
		return t.change(reportOnly(Deleting, v1alpha1.ReasonTerminating, message)), nil
	case pruneDisabled:
		return t.change(reportOnly(Skipped, v1alpha1.ReasonDisabled,
			"Annotation "+v1alpha1.DisabledAnnotation+" on the object prevents its deletion. "+
				"Remove the annotation on the member to delete the object.")), nil
	case pruneOrphan:
		return t.change(reportOnly(Released, "", "The object is not changed.")), e.orphan(ctx, owner, t)
	case pruneDisown:
		answer, err := e.apply(ctx, owner, t.identityOnly(), false)
		// The API server may reject the object without the owner's fields. The mark stays if another manager owns it, too.
		if permanent(err) && !changedConcurrently(err) || err == nil && observe(answer, owner).marks.ours {
			err = e.orphan(ctx, owner, t)
		}
		return t.change(reportOnly(Released, "", "The object is kept because other owners have applied it.")), err
	}
	if propagation == "" {
		propagation = metav1.DeletePropagationForeground
	}
	err := e.deleteOne(ctx, t, propagation)
	return t.change(reportOnly(Deleting, v1alpha1.ReasonTerminating, "The object is being deleted.")), err
}

// deleteOne starts the deletion of the object that was observed.
func (e *Engine) deleteOne(ctx context.Context, t *task, propagation metav1.DeletionPropagation) error {
	ctx, cancel := context.WithTimeout(ctx, e.options.Timeout)
	defer cancel()
	observed := t.identityOnly()
	observed.SetResourceVersion(t.observed.version) // in this version, the object has no other owner
	return ssa.Delete(ctx, e.client, observed, client.PropagationPolicy(propagation))
}

// identityOnly returns the identity of the observed object. Applying it removes all fields of the owner.
func (t *task) identityOnly() *unstructured.Unstructured {
	bare := ssa.New(t.id.GroupVersionKind(), objectKey(t.id))
	bare.SetUID(t.observed.uid)
	return bare
}

// orphan removes the marks of the owner from an object, and nothing else.
func (e *Engine) orphan(ctx context.Context, owner Owner, t *task) error {
	ctx, cancel := context.WithTimeout(ctx, e.options.Timeout)
	defer cancel()
	object, err := ssa.Metadata(ctx, e.client, t.id.GroupVersionKind(), objectKey(t.id))
	if err != nil {
		return err
	}
	if object == nil || object.UID != t.observed.uid {
		return newConflict(t, errRecreated)
	}
	before := object.DeepCopy()
	unmark(object, owner, observe(object, owner).marks.shared)
	// A patch replaces whole lists, so it must fail if another client has changed the object since.
	return e.client.Patch(ctx, object, precondition.Patch(before), client.FieldOwner(owner.FieldOwner))
}

// unmark removes from an object what [stamp] adds.
func unmark(object *metav1.PartialObjectMetadata, owner Owner, shared bool) {
	object.OwnerReferences = slices.DeleteFunc(object.OwnerReferences, owner.isFormer)
	delete(object.Annotations, owner.Mark())
	delete(object.Annotations, formerMark(owner.Reference.UID))
	if !shared {
		delete(object.Labels, v1alpha1.AppliedLabel)
	}
	object.ManagedFields = slices.DeleteFunc(object.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == owner.FieldOwner
	})
	if len(object.ManagedFields) == 0 {
		object.ManagedFields = []metav1.ManagedFieldsEntry{{}} // this is how a client removes all entries
	}
}
