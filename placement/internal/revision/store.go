package revision

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/precondition"
	"github.com/muster-sdk/muster/placement/bundle"
	"github.com/muster-sdk/muster/placement/internal/scope"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// Store reads and writes the revisions of WorkSets on the hub. Its methods may be called concurrently, also for one
// WorkSet: a content that is saved twice at the same time exists once. WorkSets must be as read from the API server,
// with their UIDs.
type Store struct {
	client client.Client
	live   client.Reader
	cache  *cache
	limit  int // the maximum number of bytes of content in one WorkSetRevision
}

// NewStore returns a Store that writes with c and reads with live, the APIReader of a manager: a reader with a cache
// would keep all revisions of the hub in memory. The Store caches up to 64 MiB of contents.
func NewStore(c client.Client, live client.Reader) *Store {
	return &Store{client: c, live: live, cache: newCache(cacheBytes), limit: workv1alpha1.MaxManifestBytes}
}

// List returns the revisions of the WorkSet, the newest first, including incomplete ones. It reads only metadata, in
// one request. It excludes objects of an earlier WorkSet of the same name, and objects that are being deleted.
func (s *Store) List(ctx context.Context, workSet *v1alpha1.WorkSet) ([]Info, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("WorkSetRevisionList"))
	labels := scope.RevisionLabels(client.ObjectKeyFromObject(workSet))
	if err := s.live.List(ctx, list, client.InNamespace(scope.ChildNamespace(workSet.Namespace)), labels); err != nil {
		return nil, fmt.Errorf("list revisions of WorkSet %s: %w", client.ObjectKeyFromObject(workSet), err)
	}
	metas := make([]*metav1.ObjectMeta, len(list.Items))
	for i := range list.Items {
		metas[i] = &list.Items[i].ObjectMeta
	}
	return summarize(workSet, metas), nil
}

// summarize returns the revisions that the metadata of WorkSetRevisions describes.
func summarize(workSet *v1alpha1.WorkSet, metas []*metav1.ObjectMeta) []Info {
	infos := map[bundle.Hash]*Info{}
	for _, m := range metas {
		hash, err := hex.DecodeString(m.Annotations[hashAnnotation])
		if err != nil || len(hash) != len(bundle.Hash{}) || m.DeletionTimestamp != nil || !controlled(m, workSet) {
			continue
		}
		p := part{name: m.Name, uid: m.UID, resourceVersion: m.ResourceVersion, place: placeOf(m.Annotations[partAnnotation])}
		name := Name(workSet, bundle.Hash(hash))
		if p.name != p.place.objectName(name) {
			continue // a client changed its metadata
		}
		info := infos[bundle.Hash(hash)]
		if info == nil {
			info = &Info{Name: name, Hash: bundle.Hash(hash), CreatedAt: m.CreationTimestamp.Time}
			infos[info.Hash] = info
		}
		info.Number = max(info.Number, int64(number(m.Annotations[numberAnnotation])))
		info.Objects = max(info.Objects, number(m.Annotations[objectsAnnotation]))
		if m.CreationTimestamp.Time.Before(info.CreatedAt) {
			info.CreatedAt = m.CreationTimestamp.Time
		}
		info.parts = append(info.parts, p)
	}
	out := make([]Info, 0, len(infos))
	for _, info := range infos {
		slices.SortFunc(info.parts, func(a, b part) int {
			return cmp.Or(cmp.Compare(a.place.parts, b.place.parts), cmp.Compare(a.place.part, b.place.part))
		})
		info.Complete = complete(info.parts)
		out = append(out, *info)
	}
	slices.SortFunc(out, newestFirst)
	return out
}

// complete reports whether all parts of a revision exist. parts is sorted, and may include parts of the same revision
// with another number of parts.
func complete(parts []part) bool {
	have := place{}
	for _, p := range parts {
		if p.place.parts != have.parts {
			have = place{0, p.place.parts}
		}
		if p.place.part == have.part+1 {
			have.part++
		}
		if have.part == have.parts {
			return true
		}
	}
	return false
}

// number parses an annotation that a user may have changed. An invalid number is 0.
func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return max(n, 0)
}

func controlled(m *metav1.ObjectMeta, by *v1alpha1.WorkSet) bool {
	owner := metav1.GetControllerOfNoCopy(m)
	return owner != nil && owner.UID == by.UID
}

// Load returns the content of the revision with a name, which a user may have invented. The order of the objects is not
// significant, and fields that are not set have their defaults. The content is shared, and must not be changed.
//
// A revision that was used recently is in the cache and costs no request, so it may have been deleted since. Otherwise
// Load makes a request for each part, and one more if there are several. Load does not rely on labels, and verifies
// that the content is the one that was saved. The error is [ErrNotFound], [ErrIncomplete], [ErrCorrupt], [ErrLater], or
// an error of the API server.
func (s *Store) Load(ctx context.Context, workSet *v1alpha1.WorkSet, name string) (*Content, error) {
	key := cacheKey{workSet.UID, name}
	if c := s.cache.get(key); c != nil {
		return c, nil
	}
	c, size, err := s.load(ctx, workSet, name)
	if err != nil {
		return nil, fmt.Errorf("load revision %q of WorkSet %s: %w", name, client.ObjectKeyFromObject(workSet), err)
	}
	s.cache.add(key, c, size)
	return c, nil
}

func (s *Store) load(ctx context.Context, workSet *v1alpha1.WorkSet, name string) (c *Content, size int, err error) {
	if !isName(workSet, name) {
		return nil, 0, ErrNotFound
	}
	first, err := s.fetch(ctx, workSet, place{1, 1}.objectName(name))
	if errors.Is(err, ErrNotFound) {
		first, err = s.fetch(ctx, workSet, place{1, 2}.objectName(name))
	}
	if errors.Is(err, ErrNotFound) {
		infos, listErr := s.List(ctx, workSet)
		switch {
		case listErr != nil:
			err = listErr
		case slices.ContainsFunc(infos, func(i Info) bool { return i.Name == name }):
			err = ErrIncomplete
		}
	}
	if err != nil {
		return nil, 0, err
	}
	total := placeOf(first.Part).parts
	parts, size := []v1alpha1.WorkSetRevisionSpec{*first}, len(first.Content.Raw)
	for len(parts) < total {
		next, err := s.fetch(ctx, workSet, place{len(parts) + 1, total}.objectName(name))
		if errors.Is(err, ErrNotFound) {
			return nil, 0, ErrIncomplete
		}
		if err != nil {
			return nil, 0, err
		}
		parts, size = append(parts, *next), size+len(next.Content.Raw)
	}
	if c, err = decode(parts); err == nil && Name(workSet, c.Hash()) != name {
		err = ErrCorrupt
	}
	return c, size, err
}

// fetch reads one part. If the WorkSet does not control the object, the error is [ErrNotFound].
func (s *Store) fetch(ctx context.Context, workSet *v1alpha1.WorkSet,
	name string) (*v1alpha1.WorkSetRevisionSpec, error) {
	found := &v1alpha1.WorkSetRevision{}
	err := s.live.Get(ctx, client.ObjectKey{Namespace: scope.ChildNamespace(workSet.Namespace), Name: name}, found)
	if apierrors.IsNotFound(err) || err == nil && !controlled(&found.ObjectMeta, workSet) {
		return nil, ErrNotFound
	}
	return &found.Spec, err
}

// Delete deletes revisions as they were listed. An object that was created with the same name since is not deleted, and
// an object that does not exist any more is not an error.
func (s *Store) Delete(ctx context.Context, workSet *v1alpha1.WorkSet, infos ...Info) error {
	var errs []error
	for _, info := range infos {
		s.cache.remove(cacheKey{workSet.UID, info.Name})
		for _, p := range info.parts {
			if err := s.remove(ctx, workSet, p); err != nil {
				errs = append(errs, fmt.Errorf("delete revision %s of WorkSet %s: %w", info.Name,
					client.ObjectKeyFromObject(workSet), err))
			}
		}
	}
	return errors.Join(errs...)
}

func (s *Store) remove(ctx context.Context, workSet *v1alpha1.WorkSet, p part) error {
	object := &v1alpha1.WorkSetRevision{ObjectMeta: metav1.ObjectMeta{
		Namespace: scope.ChildNamespace(workSet.Namespace), Name: p.name,
	}}
	object.UID, object.ResourceVersion = p.uid, p.resourceVersion
	err := s.client.Delete(ctx, object, precondition.Unchanged(object))
	if !apierrors.IsConflict(err) {
		return client.IgnoreNotFound(err)
	}
	now := &metav1.PartialObjectMetadata{}
	now.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("WorkSetRevision"))
	found := s.live.Get(ctx, client.ObjectKeyFromObject(object), now)
	if found == nil && now.UID != p.uid || apierrors.IsNotFound(found) {
		return nil // the listed object is gone: another one has its name
	}
	return err
}
