package apply

import (
	"context"
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/muster-sdk/muster/work/v1alpha1"
)

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

// marks are the marks on an object that tell which owners have applied it.
type marks struct {
	ours           bool     // it has our mark
	former         bool     // it has an owner reference to our owner, from an earlier release
	owners         int      // the number of owner references to others
	shared         bool     // another owner has applied it with this package
	rivals         []string // the field managers of other owners
	sameFieldOwner bool     // another owner has applied it with our field manager
	applied        string   // the hash of the manifest that was applied last
}

// marksOf reads the marks from the metadata of an object.
func marksOf(meta metav1.Object, owner Owner) (m marks) {
	annotations := meta.GetAnnotations()
	mark := owner.Mark()
	m.applied, m.ours = annotations[mark], annotations[mark] != ""
	if m.applied == "" {
		m.applied = annotations[formerMark(owner.Reference.UID)]
	}
	for _, reference := range meta.GetOwnerReferences() {
		former, applied := annotations[formerMark(reference.UID)]
		switch {
		case owner.isFormer(reference):
			m.ours, m.former = true, true
			if m.applied == "" {
				m.applied = former
			}
			continue
		case applied: // another owner, with the marks of an earlier release
			m.shareWith(owner, managersOf(meta.GetManagedFields(), ownerReferencePath(reference.UID)))
		}
		m.owners++
	}
	for name := range annotations {
		if strings.HasPrefix(name, MarkPrefix) && name != mark {
			m.shareWith(owner, managersOf(meta.GetManagedFields(), annotationPath(name)))
		}
	}
	return m
}

func (m *marks) shareWith(owner Owner, managers []string) {
	m.shared = true
	m.rivals = append(m.rivals, managers...)
	m.sameFieldOwner = m.sameFieldOwner || slices.Contains(managers, owner.FieldOwner)
}

func ownerReferencePath(uid types.UID) fieldpath.Path {
	return fieldpath.MakePathOrDie("metadata", "ownerReferences", fieldpath.KeyByFields("uid", string(uid)))
}

func annotationPath(name string) fieldpath.Path {
	return fieldpath.MakePathOrDie("metadata", "annotations", name)
}

// managersOf returns the field managers that have a field.
func managersOf(entries []metav1.ManagedFieldsEntry, path fieldpath.Path) []string {
	var managers []string
	for _, entry := range entries {
		if entry.FieldsV1 == nil {
			continue
		}
		set, err := parseFields(entry.FieldsV1.GetRawBytes())
		if err != nil {
			continue
		}
		below := set
		for _, element := range path {
			below = below.WithPrefix(element)
		}
		if set.Has(path) || !below.Empty() {
			managers = append(managers, entry.Manager)
		}
	}
	return managers
}

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
		if unserved(errs[t.index]) {
			errs[t.index] = nil
		}
	})
	return errors.Join(errs...)
}

// detach removes owner references to the owner from one object that was observed to have them.
func (e *Engine) detach(ctx context.Context, owner Owner, t *task) error {
	ctx, cancel := context.WithTimeout(ctx, e.options.Timeout)
	defer cancel()
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(t.id.GroupVersionKind())
	if err := e.client.Get(ctx, objectKey(t.id), object); err != nil {
		return client.IgnoreNotFound(err)
	}
	if object.UID != t.observed.uid {
		return apierrors.NewConflict(schema.GroupResource{Group: t.id.Group, Resource: t.id.Resource}, t.id.Name,
			errors.New("the object was recreated"))
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
	err := e.client.Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}),
		client.FieldOwner(owner.FieldOwner))
	if err != nil {
		return err
	}
	t.observed = observe(object, owner)
	return nil
}
