package placement

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/placement/decision"
	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// labelFor is the value of the label that names a placement: its name, or a hash of it where that is too long for a label.
func labelFor(placement string) string {
	if len(placement) <= validation.LabelValueMaxLength {
		return placement
	}
	sum := sha256.Sum256([]byte(placement))
	return hex.EncodeToString(sum[:16])
}

// sliceName is the name of a PlacementDecision.
func sliceName(placement string, index int) string {
	const limit = validation.DNS1123SubdomainMaxLength - len("-decision-12345")
	if len(placement) > limit {
		placement = labelFor(placement)
	}
	return placement + "-decision-" + strconv.Itoa(index)
}

// slices are the PlacementDecisions of a placement.
func (d *deciding) slices(ctx context.Context, placement *v1alpha1.Placement) ([]v1alpha1.PlacementDecision, error) {
	var list v1alpha1.PlacementDecisionList
	err := d.cache.List(ctx, &list, client.InNamespace(placement.Namespace), client.MatchingLabels{v1alpha1.PlacementLabel: labelFor(placement.Name)})
	if err != nil {
		return nil, fmt.Errorf("list the PlacementDecisions of %s/%s: %w", placement.Namespace, placement.Name, err)
	}
	return slices.DeleteFunc(list.Items, func(item v1alpha1.PlacementDecision) bool { return !metav1.IsControlledBy(&item, placement) }), nil
}

func slicesOf(objects []v1alpha1.PlacementDecision) []decision.Slice {
	var laid []decision.Slice
	for _, object := range objects {
		if index, err := strconv.Atoi(object.Labels[v1alpha1.DecisionIndexLabel]); err == nil && index >= 0 {
			laid = append(laid, decision.Slice{Index: index, Decisions: object.Decisions})
		}
	}
	return laid
}

// bound are the clusters that were chosen before, in a stable order.
func bound(objects []v1alpha1.PlacementDecision) []string {
	var names []string
	for _, object := range objects {
		for _, d := range object.Decisions {
			names = append(names, d.ClusterName)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// write writes the slices that are not as they were. What goes goes last, so that nobody sees less than was chosen before or after.
func (d *deciding) write(ctx context.Context, placement *v1alpha1.Placement, p *placed, before []v1alpha1.PlacementDecision, laid []decision.Slice) error {
	old := map[string]*v1alpha1.PlacementDecision{}
	for i := range before {
		old[before[i].Name] = &before[i]
	}
	wanted := map[string]bool{}
	for _, slice := range laid {
		name := sliceName(placement.Name, slice.Index)
		wanted[name] = true
		d.wrote(p, name, slice.Decisions)
		switch have := old[name]; {
		case have == nil:
			object := &v1alpha1.PlacementDecision{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: placement.Namespace, Name: name,
					Labels: map[string]string{
						v1alpha1.PlacementLabel: labelFor(placement.Name), v1alpha1.DecisionIndexLabel: strconv.Itoa(slice.Index),
					},
					OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(placement, v1alpha1.GroupVersion.WithKind("Placement"))},
				},
				Decisions: slice.Decisions,
			}
			if err := d.client.Create(ctx, object); err != nil {
				return fmt.Errorf("create PlacementDecision %s/%s: %w", placement.Namespace, name, err)
			}
		case !slices.Equal(have.Decisions, slice.Decisions):
			next := have.DeepCopy()
			next.Decisions = slice.Decisions
			if err := d.client.Update(ctx, next); err != nil {
				return fmt.Errorf("write PlacementDecision %s/%s: %w", placement.Namespace, name, err)
			}
		}
	}
	for name, object := range old {
		if wanted[name] {
			continue
		}
		d.wrote(p, name, nil)
		if err := d.client.Delete(ctx, object, client.Preconditions{UID: &object.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete PlacementDecision %s/%s: %w", placement.Namespace, name, err)
		}
	}
	return nil
}

// wrote takes down what a PlacementDecision is to be, so that its coming is no news; nil: it is to go.
func (d *deciding) wrote(p *placed, name string, decisions []v1alpha1.ClusterDecision) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if decisions == nil {
		delete(p.slices, name)
	} else {
		p.slices[name] = decisions
	}
}
