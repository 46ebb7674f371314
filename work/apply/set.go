package apply

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-sdk/muster/internal/ssa"
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

// MarkPrefix is the prefix of the annotations that record which owners have applied an object.
const MarkPrefix = annotationPrefix + "owner-"

// Mark is the name of the annotation that objects of this owner have. It is derived from Cluster, and from the group,
// kind, namespace and name of Reference, so an owner that is deleted and created again has the same mark. Without a
// Reference, it is derived from Cluster and FieldOwner.
func (o Owner) Mark() string {
	r := o.Reference
	group, _, _ := strings.Cut(r.APIVersion, "/")
	parts := []string{group, r.Kind, o.Namespace, r.Name}
	if r == (metav1.OwnerReference{}) {
		parts = []string{"", "", "", "", o.FieldOwner}
	}
	if o.Cluster != "" {
		parts = append([]string{"", o.Cluster}, parts...)
	}
	return MarkPrefix + digest([]byte(strings.Join(parts, "\x00")))
}

// ID identifies the owner in [Engine.Forget]: the UID of Reference or, without one, the mark.
func (o Owner) ID() types.UID {
	if o.Reference.UID != "" {
		return o.Reference.UID
	}
	return types.UID(o.Mark())
}

// formerMark is the annotation that earlier releases used. It was derived from the UID of the owner.
func formerMark(owner types.UID) string { return annotationPrefix + digest([]byte(owner)) }

// isFormer reports whether a reference is one that an earlier release put on an object for this owner. Kubernetes
// deletes the object when the owner is deleted, for example with its definition, so such references are removed.
func (o Owner) isFormer(r metav1.OwnerReference) bool {
	if o.Reference == (metav1.OwnerReference{}) || o.Cluster != "" {
		return false // Earlier releases had no such owners.
	}
	if r.UID == o.Reference.UID {
		return true
	}
	group, _, _ := strings.Cut(r.APIVersion, "/")
	own, _, _ := strings.Cut(o.Reference.APIVersion, "/")
	return group == own && r.Kind == o.Reference.Kind && r.Name == o.Reference.Name
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

// Wave returns the wave of a kind. Objects are applied from the lowest wave to the highest, and deleted in the reverse
// order.
func Wave(kind schema.GroupKind) int32 {
	if wave, known := waves[kind]; known {
		return wave
	}
	return WaveObjects
}

func (o Object) wave() int32 {
	if o.Wave != nil {
		return *o.Wave
	}
	return Wave(o.Manifest.GroupVersionKind().GroupKind())
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
	seen := map[ssa.Key]int{}
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

// identifier returns the identifier of a manifest, without the name of the resource.
func identifier(u *unstructured.Unstructured) v1alpha1.ResourceIdentifier {
	gvk := u.GroupVersionKind()
	return v1alpha1.ResourceIdentifier{
		Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Namespace: u.GetNamespace(), Name: u.GetName(),
	}
}

func keyOf(id v1alpha1.ResourceIdentifier) ssa.Key {
	return ssa.Key{Group: id.Group, Kind: id.Kind, Namespace: id.Namespace, Name: id.Name}
}

// inventory contains the objects that an owner has applied or was about to apply.
type inventory []v1alpha1.AppliedResource

func entryKey(entry v1alpha1.AppliedResource) ssa.Key { return keyOf(entry.ResourceIdentifier) }

func (v inventory) byKey() map[ssa.Key]v1alpha1.AppliedResource { return ssa.Index(v, entryKey) }

// Ahead returns the inventory that must be recorded before the objects are applied: the previous inventory and the new
// objects. Objects that can never be applied are not included, as far as that is known without the API server.
// [Engine.Apply] records it; a caller that creates the owner can create it with this inventory to save a write.
func Ahead(recorded []v1alpha1.AppliedResource, objects []Object) []v1alpha1.AppliedResource {
	before := inventory(recorded).byKey()
	desired := make([]v1alpha1.AppliedResource, 0, len(objects))
	for _, object := range objects {
		if object.observesOnly() || checkManifest(object.Manifest) != nil {
			continue
		}
		id := identifier(object.Manifest)
		entry := before[keyOf(id)]
		id.Resource = entry.Resource
		entry.ResourceIdentifier, entry.Delete, entry.Wave = id, object.Delete, object.wave()
		entry.OrphanedTime, entry.Released = nil, false
		desired = append(desired, entry)
	}
	return sorted(ssa.Ahead(recorded, desired, entryKey))
}

// observesOnly reports whether the object is only observed, so that it does not belong to the owner.
func (o Object) observesOnly() bool {
	return o.Mode == v1alpha1.Observe || o.Mode == v1alpha1.ReportDiff
}

// after returns the inventory after changes: with the UIDs that they revealed, and without the objects that are gone or
// belong to another owner.
func (v inventory) after(changes []Change) inventory {
	byKey := v.byKey()
	for _, change := range changes {
		key := keyOf(change.Object)
		entry, has := byKey[key]
		if !has {
			continue
		}
		switch change.Action {
		case Created, Configured, Unchanged:
			entry.UID, entry.Resource = change.Live.UID, change.Object.Resource
			byKey[key] = entry
		case Deleted, Released:
			delete(byKey, key)
		}
	}
	return sorted(slices.AppendSeq(make(inventory, 0, len(byKey)), maps.Values(byKey)))
}

// ran records the hashes of the manifests of Jobs with a TTL that were created.
func (v inventory) ran(plan tasks, changes []Change) inventory {
	hashes := map[ssa.Key]string{}
	for i := range plan {
		if t := &plan[i]; t.err == nil && removesItself(t.Manifest) && !t.observesOnly() {
			hashes[keyOf(t.id)] = changes[i].Live.applied
		}
	}
	for i := range v {
		if hash := hashes[entryKey(v[i])]; hash != "" {
			v[i].RanHash = hash
		}
	}
	return v
}

// Ran reports whether an entry of the inventory belongs to the object and records that its current manifest has run.
// This is recorded for Jobs that Kubernetes deletes after they have finished.
func (o Object) Ran(entry v1alpha1.AppliedResource) bool {
	if entry.RanHash == "" {
		return false
	}
	o.Manifest = prepared(o.Manifest)
	if entryKey(entry) != keyOf(identifier(o.Manifest)) {
		return false
	}
	hash, err := o.hash()
	return err == nil && hash == entry.RanHash
}

// removesItself reports whether an object is a Job that Kubernetes deletes after it has finished. Such a Job must not
// be created again only because it does not exist: running it twice could do harm.
func removesItself(manifest *unstructured.Unstructured) bool {
	_, found, _ := unstructured.NestedFieldNoCopy(manifest.Object, "spec", "ttlSecondsAfterFinished")
	return found && isKind(manifest, "batch", "Job")
}

func sorted(resources inventory) inventory {
	slices.SortFunc(resources, func(a, b v1alpha1.AppliedResource) int {
		return cmp.Or(cmp.Compare(a.Wave, b.Wave), strings.Compare(a.Group, b.Group), strings.Compare(a.Kind, b.Kind),
			strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return resources
}
