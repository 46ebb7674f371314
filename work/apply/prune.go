package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/precondition"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// Stale returns the entries of an inventory that a set no longer contains, for [Engine.Prune]. Objects that the set
// only observes now are released and not deleted.
//
// A manifest with a superfluous or missing namespace still refers to the same object as before.
func Stale(inventory []v1alpha1.AppliedResource, objects []Object) []v1alpha1.AppliedResource {
	const anywhere = "*"
	in := func(key sameObject, namespace string) sameObject { key.namespace = namespace; return key }
	wanted := make(map[sameObject]Object, 2*len(objects))
	for _, object := range objects {
		key := keyOf(identifier(object.Manifest))
		wanted[key], wanted[in(key, anywhere)] = object, object
	}
	var stale []v1alpha1.AppliedResource
	for _, resource := range inventory {
		key := keyOf(resource.ResourceIdentifier)
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
		case object.onlyLooks():
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
				t.looked = true // its manifest was rejected, so it does not exist
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
				blocked = fmt.Sprintf("The object is deleted after %s. %s", change.Object, change.Message)
				break
			}
		}
	}
	return ChangeSet{Changes: changes, Inventory: inventory{resources}.after(changes).resources}, nil
}

// takeBack is the action for an object that the set does not contain any more.
type takeBack string

const (
	takeGone    takeBack = "Gone"    // nothing: the object does not exist
	takeNotOurs takeBack = "NotOurs" // nothing: the object belongs to others
	takeWait    takeBack = "Wait"    // wait for a deletion that has begun
	takeDelete  takeBack = "Delete"
	// takeDisabled does nothing, because the member's administrator has stopped the deletion. The object keeps its owner.
	takeDisabled takeBack = "Disabled"
	takeOrphan   takeBack = "Orphan" // remove only the marks of the owner
	takeDisown   takeBack = "Disown" // remove the marks and the fields of the owner, for objects with other owners
)

// decideTakeBack decides about an observed object, given its UID in the inventory. It is pure.
func decideTakeBack(s *seen, uid types.UID, action v1alpha1.DeleteAction) takeBack {
	switch {
	case s == nil:
		return takeGone
	case !s.marks.ours && (s.uid != uid || !s.marked()):
		return takeNotOurs
	case action == v1alpha1.OrphanObject:
		return takeOrphan
	case s.marks.shared:
		return takeDisown
	case s.marks.owners > 0:
		return takeOrphan
	case s.deleting:
		return takeWait
	case s.noDelete:
		return takeDisabled
	default:
		return takeDelete
	}
}

func (e *Engine) pruneOne(ctx context.Context, owner Owner, t *task, propagation metav1.DeletionPropagation) Change {
	backoff := newBackoff()
	for range attempts {
		err := e.seeAnyVersion(ctx, owner, t)
		switch {
		case apierrors.IsForbidden(err) && t.recorded.uid == "":
			// The object was probably never applied, because that requires the same permission.
			return t.change(left(Released, "", "The object cannot be read, and is not known to have been applied."))
		case err != nil:
			return t.failed(err)
		}
		change, err := e.takeBack(ctx, owner, t, decideTakeBack(t.seen, t.recorded.uid, t.Delete), propagation)
		if err == nil {
			if change.Done() {
				e.forget(owner, t.id)
			}
			return change
		}
		if !overtaken(err) && !apierrors.IsNotFound(err) {
			return t.failed(err)
		}
		t.looked = false
		pause(ctx, &backoff)
	}
	return t.pending("Others change it all the time.")
}

// seeAnyVersion observes an object in any version in which its kind is served. If the kind does not exist any more, the
// object does not either.
func (e *Engine) seeAnyVersion(ctx context.Context, owner Owner, t *task) error {
	if t.looked {
		return nil
	}
	err := e.ask(ctx, owner, t)
	if !unserved(err) {
		return err
	}
	versions, err := e.servedVersions(ctx, t.id)
	if err != nil {
		return err
	}
	for _, version := range versions {
		t.id.Version = version
		if err := e.ask(ctx, owner, t); !unserved(err) {
			return err
		}
	}
	if len(versions) > 0 {
		return fmt.Errorf("find a version in which %s is served", t.id.Kind)
	}
	t.seen, t.looked = nil, true
	return nil
}

func (e *Engine) takeBack(ctx context.Context, owner Owner, t *task, what takeBack,
	propagation metav1.DeletionPropagation) (Change, error) {
	switch what {
	case takeGone:
		return t.change(left(Deleted, "", "")), nil
	case takeNotOurs:
		return t.change(left(Released, "", "The object belongs to other owners.")), nil
	case takeWait:
		message := "The object is being deleted."
		if len(t.seen.finalizers) > 0 {
			message = fmt.Sprintf("The object is being deleted, and waits for %s.", finalizers(t.seen.finalizers))
		}
		return t.change(left(Deleting, v1alpha1.ReasonTerminating, message)), nil
	case takeDisabled:
		return t.change(left(Skipped, v1alpha1.ReasonDisabled,
			"Annotation "+v1alpha1.DisabledAnnotation+" on the object stops its deletion. "+
				"Remove the annotation on the member to have the object deleted.")), nil
	case takeOrphan:
		return t.change(left(Released, "", "The object is not changed.")), e.orphan(ctx, owner, t)
	case takeDisown:
		answer, err := e.apply(ctx, owner, t.bare(), false)
		// The API server may reject the object without the owner's fields. The mark stays if another manager owns it, too.
		if permanent(err) && !overtaken(err) || err == nil && look(answer, owner).marks.ours {
			err = e.orphan(ctx, owner, t)
		}
		return t.change(left(Released, "", "The object stays, because other owners have applied it.")), err
	}
	if propagation == "" {
		propagation = metav1.DeletePropagationForeground
	}
	err := e.deleteOne(ctx, t, propagation)
	return t.change(left(Deleting, v1alpha1.ReasonTerminating, "The object is being deleted.")), err
}

// deleteOne starts the deletion of the object that was observed.
func (e *Engine) deleteOne(ctx context.Context, t *task, propagation metav1.DeletionPropagation) error {
	ctx, cancel := context.WithTimeout(ctx, e.options.Timeout)
	defer cancel()
	// The resourceVersion is a precondition because the metadata has shown that the object has no other owner.
	preconditions := client.Preconditions{UID: &t.seen.uid, ResourceVersion: &t.seen.version}
	return e.client.Delete(ctx, t.bare(), preconditions, client.PropagationPolicy(propagation))
}

// bare returns the identity of the observed object. Applying it removes all fields of the owner.
func (t *task) bare() *unstructured.Unstructured {
	bare := &unstructured.Unstructured{}
	bare.SetGroupVersionKind(t.id.GroupVersionKind())
	bare.SetNamespace(t.id.Namespace)
	bare.SetName(t.id.Name)
	bare.SetUID(t.seen.uid)
	return bare
}

// orphan removes the marks of the owner from an object, and nothing else.
func (e *Engine) orphan(ctx context.Context, owner Owner, t *task) error {
	ctx, cancel := context.WithTimeout(ctx, e.options.Timeout)
	defer cancel()
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(t.id.GroupVersionKind())
	if err := e.client.Get(ctx, objectKey(t.id), object); err != nil {
		return err
	}
	if object.UID != t.seen.uid {
		return apierrors.NewConflict(schema.GroupResource{Group: t.id.Group, Resource: t.id.Resource}, t.id.Name,
			errors.New("the object was created again"))
	}
	before := object.DeepCopy()
	unmark(object, owner, look(object, owner).marks.shared)
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
