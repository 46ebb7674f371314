package apply

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-sdk/muster/work/v1alpha1"
)

// Owner is the owner of applied objects. An object belongs to an owner if it has the owner's [Owner.Mark], or if its
// UID is recorded.
type Owner struct {
	// Reference identifies the owner by its apiVersion, kind, name and UID. It is not added to objects, because Kubernetes
	// would delete them with the owner, and thus with the owner's definition. The next apply removes references that
	// earlier releases added. The zero value: the owner is not an object, and FieldOwner identifies it.
	Reference metav1.OwnerReference
	// Namespace is the namespace of the owner. Empty: the owner is cluster-scoped. Its objects can be in any namespace.
	Namespace string
	// Cluster distinguishes owners of different clusters with the same kind and name, for example by the UID of the
	// namespace kube-system of their cluster. Empty: all owners are in one cluster.
	Cluster string
	// FieldOwner is the field manager, at most 128 characters. It must be unique to the owner.
	FieldOwner string
}

// An Object is the desired state of one object.
type Object struct {
	// Manifest is the desired object, as decoded from JSON. The engine does not change it, and it must not be changed
	// during Apply.
	Manifest *unstructured.Unstructured
	// Mode defines how the object is applied. Empty: ServerSideApply.
	Mode v1alpha1.ApplyMode
	// Takeover defines what happens if the object exists and this package did not apply it for any owner. Empty: Never.
	Takeover v1alpha1.Takeover
	// Drift defines what happens to changes by other clients. Empty: Correct.
	Drift v1alpha1.DriftPolicy
	// Additions defines what happens to fields that other clients add to the object. Empty: Keep.
	Additions v1alpha1.AdditionPolicy
	// KeepConflicts leaves fields of other field managers unchanged.
	KeepConflicts bool
	// Recreate defines what happens if the manifest changes an immutable field. Empty: Never.
	Recreate v1alpha1.RecreatePolicy
	// IgnoredFields are set when the object is created, and ignored afterwards.
	IgnoredFields []v1alpha1.FieldPath
	// Wave is the wave of the object. Nil: the wave of its kind, see [Wave].
	Wave *int32
	// Delete is recorded in the inventory and used when the set no longer contains the object. Empty: the policy of the
	// owner.
	Delete v1alpha1.DeleteAction
}

// A Set contains all desired objects of an owner.
type Set struct {
	Owner   Owner
	Objects []Object
	// Inventory is the inventory that was recorded last. Nil: there is none.
	Inventory []v1alpha1.AppliedResource
	// Record stores an inventory, and returns when it is stored. It is called before the first write to an object
	// that is not recorded yet, so that a crash at any time leaves no unknown object.
	Record func(ctx context.Context, inventory []v1alpha1.AppliedResource) error
}

// check returns why a set is invalid as a whole.
func (s Set) check() error {
	owner := s.Owner.Reference
	switch {
	case owner == metav1.OwnerReference{}:
		if s.Owner.Namespace != "" {
			return fmt.Errorf("%w: owner.namespace requires owner.reference", ErrInvalid)
		}
	case owner.UID == "" || owner.Name == "" || owner.Kind == "" || owner.APIVersion == "":
		return fmt.Errorf("%w: owner.reference needs apiVersion, kind, name and uid", ErrInvalid)
	}
	switch {
	case s.Owner.FieldOwner == "" || len(s.Owner.FieldOwner) > 128:
		return fmt.Errorf("%w: owner.fieldOwner must have 1 to 128 characters", ErrInvalid)
	case s.Record == nil:
		return fmt.Errorf("%w: record must be set: objects cannot be deleted without an inventory", ErrInvalid)
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
	return nil
}

// Action is the result for an object.
type Action string

// The actions.
const (
	// Created: the object was created.
	Created Action = "Created"
	// Configured: the object was changed.
	Configured Action = "Configured"
	// Unchanged: the object is as desired.
	Unchanged Action = "Unchanged"
	// Observed: the object is only observed.
	Observed Action = "Observed"
	// Skipped: the object was not changed; Reason explains why.
	Skipped Action = "Skipped"
	// Conflict: the object, or some of its fields, belong to another owner or field manager.
	Conflict Action = "Conflict"
	// Failed: an attempt failed; Err is the error.
	Failed Action = "Failed"
	// Deleted: the object does not exist any more.
	Deleted Action = "Deleted"
	// Deleting: the deletion of the object has started.
	Deleting Action = "Deleting"
	// Released: the object stays, without the owner.
	Released Action = "Released"
)

// FieldConflict is a field that another field manager owns.
type FieldConflict struct {
	// Field is the path of the field, such as .spec.replicas.
	Field string
	// Manager is the field manager, such as "kubectl".
	Manager string
}

// A Change is the result for one object.
type Change struct {
	// Object identifies the object.
	Object v1alpha1.ResourceIdentifier
	// Wave is the wave of the object.
	Wave int32
	// Action is the result.
	Action Action
	// Drifted is true if another client has changed or deleted the object since it was applied.
	Drifted bool
	// Reason and Message explain the result. Their values are those of the conditions of a Work.
	Reason  string
	Message string
	// Conflicts are the fields that other field managers own.
	Conflicts []FieldConflict
	// Diffs are the differences between the manifest and the object, if they were compared.
	Diffs []v1alpha1.FieldDiff
	// RetryAfter is how long to wait before the object is applied again although nothing has changed. Zero: not
	// necessary.
	RetryAfter time.Duration
	// Err is the error, if Action is Failed.
	Err error
	// Live is the last known state of the object.
	Live LiveObject
}

// A LiveObject is the last known state of an object on the cluster.
type LiveObject struct {
	// UID is the UID of the object. Empty: the object does not exist, or the UID is unknown.
	UID types.UID
	// ResourceVersion is the last known resourceVersion of the object.
	ResourceVersion string
	// Object is the object in the last response of the API server. Nil: no request was necessary.
	Object *unstructured.Unstructured

	applied string // the hash of the manifest that the object was applied by
}

// passable are the reasons of skipped objects that later waves need not wait for.
var passable = []string{v1alpha1.ReasonExists, v1alpha1.ReasonContested, v1alpha1.ReasonCompleted}

// Done reports whether the manifest has been applied, so that later waves need not wait for it. An object that other
// clients change again and again is done; its reason is Contested.
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

// A ChangeSet is the result for a [Set].
type ChangeSet struct {
	// Changes has one entry for each object, in the order of the set.
	Changes []Change
	// Inventory is the inventory to record now: [Set.Record] was called with its objects, but without their UIDs.
	Inventory []v1alpha1.AppliedResource
}

// Done reports whether all objects are done.
func (s ChangeSet) Done() bool {
	for _, change := range s.Changes {
		if !change.Done() {
			return false
		}
	}
	return true
}

// Err returns the joined errors of all objects that failed. Nil: none failed.
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

// identifier returns the identifier of a manifest, without the name of the resource.
func identifier(u *unstructured.Unstructured) v1alpha1.ResourceIdentifier {
	gvk := u.GroupVersionKind()
	return v1alpha1.ResourceIdentifier{
		Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Namespace: u.GetNamespace(), Name: u.GetName(),
	}
}

// sameObject identifies an object in all versions of its kind.
type sameObject struct{ group, kind, namespace, name string }

func keyOf(id v1alpha1.ResourceIdentifier) sameObject {
	return sameObject{id.Group, id.Kind, id.Namespace, id.Name}
}
