package placement

import (
	"cmp"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-sdk/muster/placement/internal/decision"
	"github.com/muster-sdk/muster/placement/internal/scope"
	"github.com/muster-sdk/muster/placement/internal/version"
	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// decisionCache contains the PlacementDecisions that the watch has reported or that this process has written. An
// informer's cache lags behind the last write, and a decision based on it would choose again what is chosen already.
//
// Of two versions of an object it keeps the newer one. The objects are shared with the informer's cache and must not be
// modified.
type decisionCache struct {
	mu      sync.Mutex
	records map[types.NamespacedName]*record
	owned   map[key]map[types.NamespacedName]*record
}

// record is the state of one PlacementDecision.
type record struct {
	owner   key
	object  *v1alpha1.PlacementDecision // nil: it does not exist
	writing *v1alpha1.PlacementDecision // being written: the event of the write is expected
	going   bool                        // being deleted
	gone    types.UID                   // of a deleted object that the watch can still report
}

func newDecisionCache() *decisionCache {
	return &decisionCache{records: map[types.NamespacedName]*record{}, owned: map[key]map[types.NamespacedName]*record{}}
}

// observe records an object that the watch reported, and returns the placements to decide again because of it.
func (l *decisionCache) observe(object *v1alpha1.PlacementDecision) []key {
	l.mu.Lock()
	defer l.mu.Unlock()
	name := types.NamespacedName{Namespace: object.Namespace, Name: object.Name}
	r, owner := l.records[name], ownerOf(object)
	if r == nil {
		if owner == "" {
			return nil
		}
		r = l.open(name)
	}
	if r.gone == object.UID || r.object != nil && !version.Newer(object, r.object) {
		return nil
	}
	news := (r.object == nil || !same(r.object, object)) && (r.writing == nil || !same(r.writing, object))
	before := r.owner
	r.object = object
	l.give(name, r, owner)
	if !news {
		return nil
	}
	return slices.DeleteFunc(slices.Compact([]key{before, owner}), func(k key) bool { return k == "" })
}

// observeDeletion records that an object is deleted, and returns the placements to decide again because of it.
func (l *decisionCache) observeDeletion(object *v1alpha1.PlacementDecision) []key {
	l.mu.Lock()
	defer l.mu.Unlock()
	name := types.NamespacedName{Namespace: object.Namespace, Name: object.Name}
	r := l.records[name]
	if r == nil {
		return nil
	}
	if r.gone == object.UID {
		r.gone = ""
	}
	if r.object == nil || r.object.UID != object.UID {
		l.close(name, r)
		return nil
	}
	r.object = nil
	if r.writing != nil {
		r.gone = object.UID
	}
	owner, expected := r.owner, r.going
	l.close(name, r)
	if expected {
		return nil
	}
	return []key{owner}
}

// writing records that an object is about to be written. Nil: it is about to be deleted.
func (l *decisionCache) writing(k key, name types.NamespacedName, writing *v1alpha1.PlacementDecision) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.records[name]
	if r == nil {
		r = l.open(name)
		l.give(name, r, k)
	}
	r.writing, r.going = writing, writing == nil
}

// written records the result of a write. Nil: the write failed.
func (l *decisionCache) written(name types.NamespacedName, object *v1alpha1.PlacementDecision) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.records[name]
	if r == nil {
		return
	}
	r.writing = nil
	if object != nil && r.gone != object.UID && (r.object == nil || version.Newer(object, r.object)) {
		r.object = object
		l.give(name, r, ownerOf(object))
	}
	if object == nil || r.gone == object.UID {
		r.gone = ""
	}
	l.close(name, r)
}

// deleted records that an object is deleted. An empty UID means that the deletion failed.
func (l *decisionCache) deleted(name types.NamespacedName, uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.records[name]
	if r == nil {
		return
	}
	r.going = false
	if r.object != nil && r.object.UID == uid {
		r.object, r.gone = nil, uid
	}
	l.close(name, r)
}

// slices returns the PlacementDecisions of a placement by name. Objects without a controller, as backup tools restore
// them, are adopted with their content, so that the placement stays where it was.
func (l *decisionCache) slices(k key, placement types.UID) []*v1alpha1.PlacementDecision {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []*v1alpha1.PlacementDecision
	for _, r := range l.owned[k] {
		if r.object == nil || r.object.DeletionTimestamp != nil {
			continue
		}
		if by := controller(r.object); by == placement || by == "" {
			found = append(found, r.object)
		}
	}
	slices.SortFunc(found, func(a, b *v1alpha1.PlacementDecision) int { return cmp.Compare(a.Name, b.Name) })
	return found
}

// each calls a function with the slices of each placement that has any, of all Placements with its name.
func (l *decisionCache) each(do func(k key, laid []decision.Slice)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for k, records := range l.owned {
		var laid []decision.Slice
		for _, r := range records {
			if r.object != nil {
				laid = append(laid, decision.Slice{Decisions: r.object.Decisions})
			}
		}
		do(k, laid)
	}
}

func (l *decisionCache) open(name types.NamespacedName) *record {
	r := &record{}
	l.records[name] = r
	return r
}

// give sets the owner of a record. Empty: no placement owns the object.
func (l *decisionCache) give(name types.NamespacedName, r *record, owner key) {
	if r.owner == owner {
		return
	}
	l.take(name, r)
	if r.owner = owner; owner == "" {
		r.object = nil
		l.close(name, r)
		return
	}
	if l.owned[owner] == nil {
		l.owned[owner] = map[types.NamespacedName]*record{}
	}
	l.owned[owner][name] = r
}

func (l *decisionCache) take(name types.NamespacedName, r *record) {
	if delete(l.owned[r.owner], name); len(l.owned[r.owner]) == 0 {
		delete(l.owned, r.owner)
	}
}

// close removes a record without content.
func (l *decisionCache) close(name types.NamespacedName, r *record) {
	if r.object == nil && r.writing == nil && !r.going && r.gone == "" {
		l.take(name, r)
		delete(l.records, name)
	}
}

// ownerOf returns the placement of a PlacementDecision. Empty: none. An object without a controller, as backup tools
// restore it, belongs to the placement in its label and name. Only objects in [v1alpha1.ClusterScopeNamespace] belong
// to a ClusterPlacement: tenants can write PlacementDecisions in their namespaces.
func ownerOf(object *v1alpha1.PlacementDecision) key {
	owner := metav1.GetControllerOf(object)
	for _, placement := range []struct{ namespace, label string }{
		{object.Namespace, v1alpha1.PlacementLabel}, {"", v1alpha1.ClusterPlacementLabel},
	} {
		if scope.ChildNamespace(placement.namespace) != object.Namespace {
			continue
		}
		k := types.NamespacedName{Namespace: placement.namespace}
		if owner == nil {
			k.Name = object.Labels[placement.label]
			if _, ok := indexOf(k, object.Name); ok && k.Name != "" {
				return k.String()
			}
			continue
		}
		kind := scope.PlacementKind(placement.namespace)
		if owner.APIVersion == kind.GroupVersion().String() && owner.Kind == kind.Kind {
			k.Name = owner.Name
			return k.String()
		}
	}
	return ""
}

// same reports whether two versions of a PlacementDecision have the same content.
func same(a, b *v1alpha1.PlacementDecision) bool {
	return slices.Equal(a.Decisions, b.Decisions) &&
		a.Labels[v1alpha1.PlacementLabel] == b.Labels[v1alpha1.PlacementLabel] &&
		a.Labels[v1alpha1.ClusterPlacementLabel] == b.Labels[v1alpha1.ClusterPlacementLabel] &&
		a.Labels[v1alpha1.DecisionIndexLabel] == b.Labels[v1alpha1.DecisionIndexLabel] &&
		(a.DeletionTimestamp == nil) == (b.DeletionTimestamp == nil) &&
		metav1.IsControlledBy(a, &metav1.ObjectMeta{UID: controller(b)})
}

func controller(object metav1.Object) types.UID {
	if owner := metav1.GetControllerOf(object); owner != nil {
		return owner.UID
	}
	return ""
}
