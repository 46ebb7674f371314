package revision

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/placement/internal/scope"
	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// The label and annotations of WorkSetRevisions, in addition to the labels of package v1alpha1. They repeat the data
// that List needs, because List reads only metadata, and not the megabytes of content.
const (
	revisionLabel     = v1alpha1.GroupName + "/revision"
	hashAnnotation    = v1alpha1.GroupName + "/revision-hash"
	partAnnotation    = v1alpha1.GroupName + "/revision-part"
	numberAnnotation  = v1alpha1.GroupName + "/revision-number"
	objectsAnnotation = v1alpha1.GroupName + "/revision-objects"
)

var (
	// ErrForeign is the error of [Store.Save] if a WorkSetRevision with the name of the revision, or of a part of it,
	// belongs to another owner or has another spec. The object is not changed: a user has to delete it.
	ErrForeign = errors.New(
		"a WorkSetRevision with this name belongs to another owner, or has a different spec: delete the WorkSetRevision")

	errLeftover = errors.New(
		"a WorkSetRevision with this name is being deleted, or belongs to a deleted WorkSet: retry after the " +
			"WorkSetRevision is gone")
)

// Save stores the content as a revision of the WorkSet. The revision gets this number or, if another revision has the
// same or a larger number, the next one. Existing objects are not written again, except that a complete revision that
// is not the newest gets the new number. An incomplete revision is completed. Save costs a request for the metadata of
// all revisions; after [Store.List], a caller can compare [Content.Hash] to determine whether Save is necessary.
//
// The error is [ErrForeign], or one after which the caller must try again: a conflict with another client, or
// WorkSetRevisions of an earlier WorkSet of this name, which the garbage collector deletes.
func (s *Store) Save(ctx context.Context, workSet *v1alpha1.WorkSet, c *Content, number int64) (Info, error) {
	info, err := s.save(ctx, workSet, c, number)
	if err != nil {
		return Info{}, fmt.Errorf("save a revision of WorkSet %s: %w", client.ObjectKeyFromObject(workSet), err)
	}
	return info, nil
}

func (s *Store) save(ctx context.Context, workSet *v1alpha1.WorkSet, c *Content, number int64) (Info, error) {
	all, err := s.List(ctx, workSet)
	if err != nil {
		return Info{}, err
	}
	want := Info{Hash: c.Hash(), Objects: len(c.Objects), Number: max(number, 1)}
	want.Name = Name(workSet, want.Hash)
	if len(all) > 0 {
		want.Number = max(want.Number, all[0].Number+1)
	}
	at := slices.IndexFunc(all, func(i Info) bool { return i.Name == want.Name })
	if at < 0 {
		return s.write(ctx, workSet, c, want)
	}
	have := all[at]
	if have.Hash != want.Hash {
		return Info{}, fmt.Errorf("revision %s has different content, with the hash %s", have.Name, have.Hash)
	}
	if at == 0 {
		want.Number = have.Number
	}
	if want.parts = have.parts; !have.Complete {
		return s.write(ctx, workSet, c, want)
	}
	if have.Number != want.Number {
		err = s.patch(ctx, workSet, have.parts[0], patch{Number: want.Number, Metadata: patchedMeta{
			Annotations: map[string]string{numberAnnotation: strconv.FormatInt(want.Number, 10)},
		}})
		have.Number = want.Number
	}
	return have, err
}

// write creates the missing parts of a revision.
func (s *Store) write(ctx context.Context, workSet *v1alpha1.WorkSet, c *Content, info Info) (Info, error) {
	specs, err := encode(c, s.limit)
	if err != nil {
		return Info{}, err
	}
	there := map[string]bool{}
	for _, p := range info.parts {
		if there[p.name] = p.place.parts == len(specs); there[p.name] {
			continue
		}
		if err := s.remove(ctx, workSet, p); err != nil { // another release has divided it into other parts
			return Info{}, err
		}
	}
	for i := range specs {
		if want := shape(workSet, &info, specs[i]); !there[want.Name] {
			if err := s.create(ctx, workSet, want); err != nil {
				return Info{}, fmt.Errorf("%s: %w", want.Name, err)
			}
		}
	}
	all, err := s.List(ctx, workSet)
	if err != nil {
		return Info{}, err
	}
	at := slices.IndexFunc(all, func(i Info) bool { return i.Hash == info.Hash && i.Complete })
	if at < 0 {
		return Info{}, fmt.Errorf("%s: %w", info.Name, ErrIncomplete) // a client deletes parts of it
	}
	return all[at], nil
}

// shape returns the WorkSetRevision for a part of a revision.
func shape(workSet *v1alpha1.WorkSet, info *Info, spec v1alpha1.WorkSetRevisionSpec) *v1alpha1.WorkSetRevision {
	spec.WorkSet, spec.Revision = workSet.Name, info.Name
	owner := *metav1.NewControllerRef(workSet, scope.WorkSetKind(workSet.Namespace))
	owner.BlockOwnerDeletion = nil // OwnerReferencesPermissionEnforcement would require a permission on finalizers
	labels := map[string]string(scope.RevisionLabels(client.ObjectKeyFromObject(workSet)))
	labels[revisionLabel] = v1alpha1.LabelValue(info.Name)
	return &v1alpha1.WorkSetRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: scope.ChildNamespace(workSet.Namespace), Name: placeOf(spec.Part).objectName(info.Name),
			OwnerReferences: []metav1.OwnerReference{owner},
			Labels:          labels,
			Annotations: map[string]string{
				hashAnnotation: spec.Hash, partAnnotation: spec.Part,
				numberAnnotation: strconv.FormatInt(info.Number, 10), objectsAnnotation: strconv.FormatInt(int64(spec.Objects), 10),
			},
		},
		Number: info.Number, Spec: spec,
	}
}

func (s *Store) create(ctx context.Context, workSet *v1alpha1.WorkSet, want *v1alpha1.WorkSetRevision) error {
	err := scope.CreateChild(ctx, s.client, want.DeepCopy())
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	found := &v1alpha1.WorkSetRevision{}
	switch err := s.live.Get(ctx, client.ObjectKeyFromObject(want), found); {
	case apierrors.IsNotFound(err):
		return errLeftover // it was deleted meanwhile
	case err != nil:
		return err
	}
	return s.mend(ctx, workSet, found, want)
}

// mend repairs the metadata of an existing WorkSetRevision, so that List finds it: another process has created it
// meanwhile, a user changed its labels, or its owner was deleted without its dependents. The WorkSet must control the
// object, or the object has no controller and the labels of the WorkSet. Its spec must be the expected one.
func (s *Store) mend(ctx context.Context, workSet *v1alpha1.WorkSet, found, want *v1alpha1.WorkSetRevision) error {
	owners := found.OwnerReferences
	switch owner := metav1.GetControllerOfNoCopy(found); {
	case owner == nil && sameOwnerLabels(found, want):
		owners = append(slices.Clone(owners), want.OwnerReferences...)
	case owner == nil || schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind() !=
		scope.WorkSetKind(workSet.Namespace).GroupKind() ||
		owner.Name != workSet.Name:
		return ErrForeign
	case owner.UID != workSet.UID:
		return errLeftover
	}
	if found.DeletionTimestamp != nil {
		return errLeftover
	}
	if !reflect.DeepEqual(found.Spec, want.Spec) {
		return ErrForeign
	}
	if len(owners) == len(found.OwnerReferences) &&
		sameOwnerLabels(found, want) &&
		len(summarize(workSet, []*metav1.ObjectMeta{&found.ObjectMeta})) == 1 {
		return nil
	}
	p := part{name: found.Name, resourceVersion: found.ResourceVersion}
	return s.patch(ctx, workSet, p, patch{Number: want.Number,
		Metadata: patchedMeta{Labels: want.Labels, Annotations: want.Annotations, OwnerReferences: owners}})
}

// sameOwnerLabels reports whether two WorkSetRevisions have the label of the same WorkSet or ClusterWorkSet.
func sameOwnerLabels(a, b *v1alpha1.WorkSetRevision) bool {
	return a.Labels[v1alpha1.WorkSetLabel] == b.Labels[v1alpha1.WorkSetLabel] &&
		a.Labels[v1alpha1.ClusterWorkSetLabel] == b.Labels[v1alpha1.ClusterWorkSetLabel]
}

// patch is a merge patch of a WorkSetRevision.
type patch struct {
	Metadata patchedMeta `json:"metadata"`
	Number   int64       `json:"number"`
}

type patchedMeta struct {
	ResourceVersion string                  `json:"resourceVersion"`
	Labels          map[string]string       `json:"labels,omitempty"`
	Annotations     map[string]string       `json:"annotations,omitempty"`
	OwnerReferences []metav1.OwnerReference `json:"ownerReferences,omitempty"`
}

// patch changes a part if it has not changed since it was read. The response contains only metadata.
func (s *Store) patch(ctx context.Context, workSet *v1alpha1.WorkSet, p part, change patch) error {
	change.Metadata.ResourceVersion = p.resourceVersion
	text, err := json.Marshal(change)
	if err != nil {
		return err
	}
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: scope.ChildNamespace(workSet.Namespace), Name: p.name,
	}}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("WorkSetRevision"))
	return s.client.Patch(ctx, object, client.RawPatch(types.MergePatchType, text))
}
