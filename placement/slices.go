package placement

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/placement/internal/decision"
	"github.com/muster-sdk/muster/placement/internal/scope"
	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// sliceName returns the name of a PlacementDecision. PlacementDecisions of a ClusterPlacement have another ending, so
// that they never have the name of one that belongs to a Placement in their namespace.
func sliceName(placement types.NamespacedName, index int) string {
	ending := "-decision-"
	if placement.Namespace == "" {
		ending = "-clusterdecision-"
	}
	name, limit := placement.Name, validation.DNS1123SubdomainMaxLength-len(ending+"12345")
	if len(name) > limit {
		name = v1alpha1.LabelValue(name)
	}
	return name + ending + strconv.Itoa(index)
}

// indexOf returns the index of a PlacementDecision of a placement. The index is parsed from the name, because labels
// can be changed.
func indexOf(placement types.NamespacedName, name string) (int, bool) {
	index, err := strconv.Atoi(name[strings.LastIndex(name, "-")+1:])
	return index, err == nil && index >= 0 && name == sliceName(placement, index)
}

// slicesOf converts PlacementDecisions to slices. Objects whose names are not those of slices are ignored.
func slicesOf(placement types.NamespacedName, objects []*v1alpha1.PlacementDecision) []decision.Slice {
	var laid []decision.Slice
	for _, object := range objects {
		if index, ok := indexOf(placement, object.Name); ok {
			laid = append(laid, decision.Slice{Index: index, Decisions: object.Decisions})
		}
	}
	return laid
}

// movedBetween returns the clusters that a decision added and those that it removed.
func movedBetween(before, after []decision.Slice) (came, left []string) {
	if slices.EqualFunc(before, after, func(a, b decision.Slice) bool { return slices.Equal(a.Decisions, b.Decisions) }) {
		return nil, nil
	}
	was, is := namesOf(before), namesOf(after)
	for name := range is {
		if !was[name] {
			came = append(came, name)
		}
	}
	for name := range was {
		if !is[name] {
			left = append(left, name)
		}
	}
	return came, left
}

// change is a change of one PlacementDecision.
type change struct {
	old, want *v1alpha1.PlacementDecision // nil: does not exist, must not exist
}

func (c change) growth() int {
	growth := 0
	if c.want != nil {
		growth += len(c.want.Decisions)
	}
	if c.old != nil {
		growth -= len(c.old.Decisions)
	}
	return growth
}

// changes returns the writes that turn the existing PlacementDecisions into the desired slices. Writes that add
// clusters come first, and writes that remove clusters last, so that readers never observe fewer clusters than were
// chosen before or are chosen now.
func changes(placement *v1alpha1.Placement, before []*v1alpha1.PlacementDecision, laid []decision.Slice) []change {
	old := make(map[string]*v1alpha1.PlacementDecision, len(before))
	for _, object := range before {
		old[object.Name] = object
	}
	k := client.ObjectKeyFromObject(placement)
	var todo []change
	for _, slice := range laid {
		want := &v1alpha1.PlacementDecision{}
		have := old[sliceName(k, slice.Index)]
		if have != nil {
			want = have.DeepCopy()
			delete(old, have.Name)
		}
		shape(want, placement, slice)
		if have == nil || !same(have, want) {
			todo = append(todo, change{have, want})
		}
	}
	for _, object := range before {
		if old[object.Name] != nil {
			todo = append(todo, change{old: object})
		}
	}
	slices.SortStableFunc(todo, func(a, b change) int { return b.growth() - a.growth() })
	return todo
}

// shape sets the content of a PlacementDecision. It keeps the labels and annotations of other clients.
func shape(object *v1alpha1.PlacementDecision, placement *v1alpha1.Placement, slice decision.Slice) {
	k := client.ObjectKeyFromObject(placement)
	object.Namespace, object.Name = scope.ChildNamespace(placement.Namespace), sliceName(k, slice.Index)
	if object.Labels == nil {
		object.Labels = map[string]string{}
	}
	maps.Copy(object.Labels, scope.DecisionLabels(k))
	object.Labels[v1alpha1.DecisionIndexLabel] = strconv.Itoa(slice.Index)
	if metav1.GetControllerOf(object) == nil {
		owner := *metav1.NewControllerRef(placement, scope.PlacementKind(placement.Namespace))
		// OwnerReferencesPermissionEnforcement would require update on the finalizers of Placements
		owner.BlockOwnerDeletion = nil
		object.OwnerReferences = append(object.OwnerReferences, owner)
	}
	object.Decisions = slice.Decisions
}
