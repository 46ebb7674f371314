package placement

import (
	"cmp"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/assume"
	"github.com/muster-sdk/muster/placement/internal/decision"
	"github.com/muster-sdk/muster/placement/internal/scope"
	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// decisionCache contains the PlacementDecisions that the watch has reported or that this process has written. The cache
// of an informer lags behind the last write: a decision based on it would choose clusters a second time.
type decisionCache struct {
	mu       sync.Mutex
	objects  assume.Cache[*v1alpha1.PlacementDecision]
	owned    map[key]map[types.NamespacedName]*v1alpha1.PlacementDecision
	expected map[types.NamespacedName]*v1alpha1.PlacementDecision // the writes in progress; nil: a deletion
}

func newDecisionCache() *decisionCache {
	return &decisionCache{owned: map[key]map[types.NamespacedName]*v1alpha1.PlacementDecision{},
		expected: map[types.NamespacedName]*v1alpha1.PlacementDecision{}}
}

// observe records an object that the watch reported, and returns the placements to decide again because of it.
func (l *decisionCache) observe(object *v1alpha1.PlacementDecision) []key {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.objects.Observe(object)
	owners := l.index(c)
	expected := l.expected[client.ObjectKeyFromObject(object)]
	if !c.Any() || c.Before != nil && same(c.Before, object) || expected != nil && same(expected, object) {
		return nil
	}
	return owners
}

// observeDeletion records that an object is deleted, and returns the placements to decide again because of it.
func (l *decisionCache) observeDeletion(object *v1alpha1.PlacementDecision) []key {
	l.mu.Lock()
	defer l.mu.Unlock()
	owners := l.index(l.objects.ObserveDeletion(object))
	if expected, writing := l.expected[client.ObjectKeyFromObject(object)]; writing && expected == nil {
		return nil
	}
	return owners
}

// beginWrite records that an object is about to be written. The returned function records the response; its argument is
// nil if the write failed.
func (l *decisionCache) beginWrite(want *v1alpha1.PlacementDecision) (end func(*v1alpha1.PlacementDecision)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	name := client.ObjectKeyFromObject(want)
	l.expected[name] = want
	record := l.objects.BeginWrite(name)
	return func(object *v1alpha1.PlacementDecision) {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.expected, name)
		l.index(record(object))
	}
}

// beginDeletion records that an object is about to be deleted. The returned function records the result.
func (l *decisionCache) beginDeletion(object *v1alpha1.PlacementDecision) (end func(deleted bool)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	name := client.ObjectKeyFromObject(object)
	l.expected[name] = nil
	return func(deleted bool) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if delete(l.expected, name); deleted {
			l.index(l.objects.AssumeDeletion(object))
		}
	}
}

// index updates the objects by owner, and returns the owners before and after a change.
func (l *decisionCache) index(c assume.Change[*v1alpha1.PlacementDecision]) []key {
	if !c.Any() {
		return nil
	}
	var owners []key
	if c.Before != nil {
		if owner := ownerOf(c.Before); owner != "" {
			owners = append(owners, owner)
			if delete(l.owned[owner], client.ObjectKeyFromObject(c.Before)); len(l.owned[owner]) == 0 {
				delete(l.owned, owner)
			}
		}
	}
	if c.After != nil {
		if owner := ownerOf(c.After); owner != "" {
			owners = append(owners, owner)
			if l.owned[owner] == nil {
				l.owned[owner] = map[types.NamespacedName]*v1alpha1.PlacementDecision{}
			}
			l.owned[owner][client.ObjectKeyFromObject(c.After)] = c.After
		}
	}
	return slices.Compact(owners)
}

// slices returns the PlacementDecisions of a placement, sorted by name. Objects without a controller, as backup tools
// restore them, are adopted with their content, so that the placement keeps its clusters.
func (l *decisionCache) slices(k key, placement types.UID) []*v1alpha1.PlacementDecision {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []*v1alpha1.PlacementDecision
	for _, object := range l.owned[k] {
		if object.DeletionTimestamp != nil {
			continue
		}
		if by := controller(object); by == placement || by == "" {
			found = append(found, object)
		}
	}
	slices.SortFunc(found, func(a, b *v1alpha1.PlacementDecision) int { return cmp.Compare(a.Name, b.Name) })
	return found
}

// each calls a function for each placement that has slices, with those of all Placements of its name.
func (l *decisionCache) each(do func(k key, laid []decision.Slice)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for k, objects := range l.owned {
		laid := make([]decision.Slice, 0, len(objects))
		for _, object := range objects {
			laid = append(laid, decision.Slice{Decisions: object.Decisions})
		}
		do(k, laid)
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
