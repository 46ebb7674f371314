package apiserver

import (
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-sdk/muster/mustertest/internal/kinds"
	"github.com/muster-sdk/muster/mustertest/internal/store"
)

func equalObjects(a, b kinds.Object) bool { return apiequality.Semantic.DeepEqual(a, b) }

// owner is an entry of metadata.ownerReferences.
type owner struct {
	gvk   schema.GroupVersionKind
	name  string
	uid   string
	block bool
}

func ownersOf(obj kinds.Object) []owner {
	refs, _ := metaOf(obj)["ownerReferences"].([]any)
	var out []owner
	for _, ref := range refs {
		fields, _ := ref.(map[string]any)
		version, _ := fields["apiVersion"].(string)
		gv, err := schema.ParseGroupVersion(version)
		if err != nil {
			continue
		}
		kind, _ := fields["kind"].(string)
		one := owner{gvk: gv.WithKind(kind)}
		one.name, _ = fields["name"].(string)
		one.uid, _ = fields["uid"].(string)
		one.block, _ = fields["blockOwnerDeletion"].(bool)
		out = append(out, one)
	}
	return out
}

// observeOwners updates the indexes of the garbage collector and queues its work.
func (s *Server) observeOwners(event store.Event) {
	c := &s.controllers
	item := event.Item
	if event.Before != nil {
		for _, o := range ownersOf(event.Before.Object) {
			delete(c.dependents[o.uid], item.Key)
			if len(c.dependents[o.uid]) == 0 {
				delete(c.dependents, o.uid)
			}
		}
	}
	uid := uidOf(item)
	if event.Type == store.Deleted {
		if c.byUID[uid] == item.Key {
			delete(c.byUID, uid)
		}
		for _, dependent := range sortedKeys(c.dependents[uid]) {
			c.later(func() { s.collect(dependent) })
		}
		for _, o := range ownersOf(item.Object) { // an owner may wait for the deletion of its dependents
			if key, ok := c.byUID[o.uid]; ok {
				c.later(func() { s.finishForeground(key) })
			}
		}
		return
	}
	c.byUID[uid] = item.Key
	owners := ownersOf(item.Object)
	for _, o := range owners {
		if c.dependents[o.uid] == nil {
			c.dependents[o.uid] = map[store.Key]bool{}
		}
		c.dependents[o.uid][item.Key] = true
	}
	if len(owners) > 0 {
		c.later(func() { s.collect(item.Key) })
	}
	if event.Before != nil {
		for _, o := range ownersOf(event.Before.Object) { // a removed reference may end a foreground deletion
			if key, ok := c.byUID[o.uid]; ok {
				c.later(func() { s.finishForeground(key) })
			}
		}
	}
	if deleted(item) {
		finalizers := finalizersOf(metaOf(item.Object))
		if slices.Contains(finalizers, metav1.FinalizerOrphanDependents) {
			c.later(func() { s.orphan(item.Key) })
		}
		if slices.Contains(finalizers, metav1.FinalizerDeleteDependents) {
			c.later(func() { s.deleteDependents(item.Key) })
		}
	}
}

func sortedKeys(set map[store.Key]bool) []store.Key {
	out := make([]store.Key, 0, len(set))
	for key := range set {
		out = append(out, key)
	}
	slices.SortFunc(out, func(a, b store.Key) int {
		return slices.Compare([]string{a.Resource.String(), a.Namespace, a.Name}, []string{b.Resource.String(), b.Namespace,
			b.Name})
	})
	return out
}

// collect deletes an object whose owners are all deleted. If some of the owners exist, it removes the references to the
// deleted ones.
func (s *Server) collect(key store.Key) {
	item := s.store.Get(key)
	if item == nil {
		return
	}
	refs := ownersOf(item.Object)
	if len(refs) == 0 {
		return
	}
	var solid, dangling, waiting []owner
	for _, ref := range refs {
		switch owner := s.ownerItem(item, ref); {
		case owner == nil:
			dangling = append(dangling, ref)
		case deleted(owner) && slices.Contains(finalizersOf(metaOf(owner.Object)), metav1.FinalizerDeleteDependents):
			waiting = append(waiting, ref)
		default:
			solid = append(solid, ref)
		}
	}
	switch {
	case len(solid) > 0:
		if len(dangling)+len(waiting) > 0 {
			s.dropReferences(key, append(dangling, waiting...))
		}
	case len(waiting) > 0 && len(s.controllers.dependents[uidOf(item)]) > 0:
		s.remove(item, metav1.DeletePropagationForeground)
	default:
		policy := metav1.DeletePropagationBackground
		finalizers := finalizersOf(metaOf(item.Object))
		switch {
		case slices.Contains(finalizers, metav1.FinalizerOrphanDependents):
			policy = metav1.DeletePropagationOrphan
		case slices.Contains(finalizers, metav1.FinalizerDeleteDependents):
			policy = metav1.DeletePropagationForeground
		}
		s.remove(item, policy)
	}
}

// ownerItem returns the owner of an owner reference, or nil. A namespaced owner must be in the namespace of the object.
func (s *Server) ownerItem(item *store.Item, ref owner) *store.Item {
	var kind *kinds.Kind
	for _, candidate := range s.served.inOrder() {
		if candidate.GVK == ref.gvk && !candidate.Virtual() {
			kind = candidate
		}
	}
	if kind == nil { // the garbage collector does not know the kind and does not delete the object
		return item
	}
	key := store.Key{Resource: kind.Storage, Name: ref.name}
	if kind.Namespaced {
		key.Namespace = item.Key.Namespace
	}
	found := s.store.Get(key)
	if found == nil || uidOf(found) != ref.uid {
		return nil
	}
	return found
}

// remove deletes an object, with its UID and resourceVersion as preconditions.
func (s *Server) remove(item *store.Item, policy metav1.DeletionPropagation) {
	if deleted(item) && policy != metav1.DeletePropagationForeground {
		return
	}
	r := s.controllerRequest(item.Key, "delete")
	if r == nil {
		return
	}
	uid := types.UID(uidOf(item))
	_ = s.store.Do(func(tx *store.Tx) error { // a conflict means that another event follows
		current := tx.Get(item.Key)
		if current == nil {
			return nil
		}
		_, err := s.deleteObject(tx, r, current, &metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &policy,
		})
		return err
	})
}

func (s *Server) dropReferences(key store.Key, gone []owner) {
	s.edit(key, func(obj kinds.Object) bool {
		refs, _ := metaOf(obj)["ownerReferences"].([]any)
		kept := slices.DeleteFunc(slices.Clone(refs), func(ref any) bool {
			fields, _ := ref.(map[string]any)
			return slices.ContainsFunc(gone, func(o owner) bool { return o.uid == fields["uid"] })
		})
		if len(kept) == 0 {
			delete(metaOf(obj), "ownerReferences")
		} else {
			metaOf(obj)["ownerReferences"] = kept
		}
		return true
	})
}

// orphan removes the references of all dependents to the owner, and then the orphan finalizer of the owner.
func (s *Server) orphan(key store.Key) {
	item := s.store.Get(key)
	if item == nil || !deleted(item) {
		return
	}
	uid := uidOf(item)
	for _, dependent := range sortedKeys(s.controllers.dependents[uid]) {
		s.dropReferences(dependent, []owner{{uid: uid}})
	}
	s.dropFinalizer(key, metav1.FinalizerOrphanDependents)
}

// deleteDependents starts the deletion of all dependents of an owner that is deleted in the foreground.
func (s *Server) deleteDependents(key store.Key) {
	item := s.store.Get(key)
	if item == nil {
		return
	}
	for _, dependent := range sortedKeys(s.controllers.dependents[uidOf(item)]) {
		s.collect(dependent)
	}
	s.finishForeground(key)
}

// finishForeground removes the foregroundDeletion finalizer of an owner if no dependent blocks its deletion any more.
func (s *Server) finishForeground(key store.Key) {
	item := s.store.Get(key)
	if item == nil || !deleted(item) || !slices.Contains(finalizersOf(metaOf(item.Object)),
		metav1.FinalizerDeleteDependents) {
		return
	}
	uid := uidOf(item)
	for dependent := range s.controllers.dependents[uid] {
		found := s.store.Get(dependent)
		if found != nil && slices.ContainsFunc(ownersOf(found.Object), func(o owner) bool {
			return o.uid == uid && o.block
		}) {
			return
		}
	}
	s.dropFinalizer(key, metav1.FinalizerDeleteDependents)
}

func (s *Server) dropFinalizer(key store.Key, finalizer string) {
	s.edit(key, func(obj kinds.Object) bool {
		finalizers := finalizersOf(metaOf(obj))
		kept := slices.DeleteFunc(slices.Clone(finalizers), func(f string) bool { return f == finalizer })
		setFinalizers(metaOf(obj), kept)
		return len(kept) < len(finalizers)
	})
}
