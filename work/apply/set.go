package apply

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-sdk/muster/work/v1alpha1"
)

// Owner is in whose name objects are applied. An object belongs to an owner when it has the owner's [Owner.Mark], or is
// recorded by its UID.
type Owner struct {
	// Reference names the owner, which is in the same cluster. It is not put on objects: Kubernetes would delete them with
	// the owner, and so with the owner's definition. References that earlier releases put there are removed by the next
	// apply.
	Reference metav1.OwnerReference
	// Namespace of the owner, empty where it is cluster-scoped. Objects of a namespaced owner must be in its namespace;
	// others are refused.
	Namespace string
	// FieldOwner is the field manager, at most 128 characters. No two owners may have the same.
	FieldOwner string
}

// An Object is what is wanted of one object.
type Object struct {
	// Manifest is the object as it is wanted, as JSON decodes to. It is not changed, and must not be while it is being
	// applied.
	Manifest *unstructured.Unstructured
	// Mode is what is done to the object. Empty: ServerSideApply.
	Mode v1alpha1.ApplyMode
	// Takeover says what happens when the object is there and was not applied by this package for any owner. Empty: Never.
	Takeover v1alpha1.Takeover
	// Drift says what happens to edits of others. Empty: Correct.
	Drift v1alpha1.DriftPolicy
	// Additions says what happens to fields that others add to the object. Empty: Keep.
	Additions v1alpha1.AdditionPolicy
	// KeepConflicts leaves alone what another field manager owns.
	KeepConflicts bool
	// Recreate says what happens when the manifest changes a field that cannot be changed. Empty: Never.
	Recreate v1alpha1.RecreatePolicy
	// IgnoredFields are set when the object is created, and are then left to others.
	IgnoredFields []v1alpha1.FieldPath
	// Wave of the object. Nil: by its kind, see [Wave].
	Wave *int32
	// Delete is recorded in the inventory, for the day when the object is not wanted any more. Empty: as the owner says of
	// all.
	Delete v1alpha1.DeleteAction
}

// A Set is all that an owner wants.
type Set struct {
	Owner   Owner
	Objects []Object
	// Inventory is what was recorded last; nil at the first time.
	Inventory []v1alpha1.AppliedResource
	// Record stores an inventory, and returns when it is stored. It is called before the first write to an object
	// that is not recorded yet, so that a crash at any time leaves no unknown object.
	Record func(ctx context.Context, inventory []v1alpha1.AppliedResource) error
}

// check says why a set cannot be worked on at all.
func (s Set) check(resolve resolver) error {
	owner := s.Owner.Reference
	switch {
	case owner.UID == "" || owner.Name == "" || owner.Kind == "" || owner.APIVersion == "":
		return fmt.Errorf("%w: owner.reference needs apiVersion, kind, name and uid", ErrInvalid)
	case s.Owner.FieldOwner == "" || len(s.Owner.FieldOwner) > 128:
		return fmt.Errorf("%w: owner.fieldOwner must have 1 to 128 characters", ErrInvalid)
	case s.Record == nil:
		return fmt.Errorf("%w: record must be set: without an inventory nothing could be taken back", ErrInvalid)
	}
	seen := map[sameObject]int{}
	for i, object := range s.Objects {
		if object.Manifest == nil {
			return fmt.Errorf("%w: objects[%d] has no manifest", ErrInvalid, i)
		}
		id := identifier(object.Manifest)
		if other, twice := seen[keyOf(id)]; twice {
			return fmt.Errorf("%w: objects[%d] and objects[%d] are both %s", ErrInvalid, other, i, id)
		}
		seen[keyOf(id)] = i
	}
	mapping, err := resolve(schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind))
	if err != nil {
		return fmt.Errorf("find the kind of the owner: %w", err)
	}
	if namespaced(mapping) != (s.Owner.Namespace != "") {
		return fmt.Errorf("%w: owner.namespace must be set where the owner's kind is namespaced, and only there", ErrInvalid)
	}
	return nil
}

// Action is what became of an object.
type Action string

// The actions.
const (
	Created    Action = "Created"
	Configured Action = "Configured" // it was changed
	Unchanged  Action = "Unchanged"  // it is as it is wanted
	Observed   Action = "Observed"   // it is only looked at
	Skipped    Action = "Skipped"    // it is left as it is; Reason says why
	Conflict   Action = "Conflict"   // it belongs to others, in part or as a whole
	Failed     Action = "Failed"     // Err says why
	Deleted    Action = "Deleted"    // it is gone
	Deleting   Action = "Deleting"   // it is on its way out
	Released   Action = "Released"   // it stays, without the owner
)

// FieldConflict is a field that another field manager owns.
type FieldConflict struct {
	Field   string // as in .spec.replicas
	Manager string // as in "kubectl"
}

// A Change is what became of one object.
type Change struct {
	// Object that it is about.
	Object v1alpha1.ResourceIdentifier
	// UID of the object, where it is there.
	UID types.UID
	// Wave that the object is in.
	Wave int32
	// Action that was taken.
	Action Action
	// Drifted is true when the object had been edited, or deleted, by others since it was applied.
	Drifted bool
	// Reason and Message say why, in the words of the conditions of a Work.
	Reason  string
	Message string
	// Conflicts with other field managers.
	Conflicts []FieldConflict
	// Diffs between the manifest and the object, where the object was compared.
	Diffs []v1alpha1.FieldDiff
	// RetryAfter is when the object should be applied again though nothing changes by then; 0: there is no need to.
	RetryAfter time.Duration
	// Err is why it failed.
	Err error
	// Live is the object as the API server answered it; nil when nothing had to be asked.
	Live *unstructured.Unstructured
	// ResourceVersion of the object, as far as is known.
	ResourceVersion string

	applied string // the hash of the manifest that the object was applied by
}

// passable are the reasons to skip an object that nothing else needs to wait for.
var passable = []string{v1alpha1.ReasonExists, v1alpha1.ReasonContested, v1alpha1.ReasonCompleted}

// Done reports whether the manifest has been applied, so that others need not wait for it. An object that others
// change again and again is done: its reason is Contested.
func (c Change) Done() bool {
	switch c.Action {
	case Created, Configured, Unchanged, Observed, Deleted, Released:
		return c.Reason != v1alpha1.ReasonNotFound && c.Reason != v1alpha1.ReasonDiffers
	default:
		return c.Action == Skipped && slices.Contains(passable, c.Reason)
	}
}

// written reports whether the object was changed.
func (c Change) written() bool { return c.Action == Created || c.Action == Configured }

// A ChangeSet is what became of a [Set].
type ChangeSet struct {
	// Changes has one entry for each object, in the order of the set.
	Changes []Change
	// Inventory is what is to be recorded now: [Set.Record] was called with its objects, but not yet with their UIDs.
	Inventory []v1alpha1.AppliedResource
}

// Done reports whether all objects are as they are wanted.
func (s ChangeSet) Done() bool {
	for _, change := range s.Changes {
		if !change.Done() {
			return false
		}
	}
	return true
}

// Err is the errors of all objects that failed, or nil.
func (s ChangeSet) Err() error {
	var failed int
	var first error
	for _, change := range s.Changes {
		if change.Err == nil {
			continue
		}
		if failed++; first == nil {
			first = fmt.Errorf("%s: %w", change.Object, change.Err)
		}
	}
	if failed > 1 {
		return fmt.Errorf("%w (and %d more)", first, failed-1)
	}
	return first
}

// identifier of a manifest, without the resource's name.
func identifier(u *unstructured.Unstructured) v1alpha1.ResourceIdentifier {
	gvk := u.GroupVersionKind()
	return v1alpha1.ResourceIdentifier{
		Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Namespace: u.GetNamespace(), Name: u.GetName(),
	}
}

// sameObject is what two identifiers of one object have in common, whatever version they name it by.
type sameObject struct{ group, kind, namespace, name string }

func keyOf(id v1alpha1.ResourceIdentifier) sameObject {
	return sameObject{id.Group, id.Kind, id.Namespace, id.Name}
}
