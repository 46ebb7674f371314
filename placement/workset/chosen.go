package workset

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/withdrawal"
	"github.com/muster-sdk/muster/placement/internal/scope"
	"github.com/muster-sdk/muster/placement/rollout"
	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// selectedCluster is a cluster that a Placement has selected.
type selectedCluster struct {
	name       string
	group      rollout.Group
	placements []string // names of the Placements that selected the cluster
	binding    string   // the ClusterSetBinding that grants the cluster
}

// selected returns the clusters of all Placements, each once. certain reports whether all Placements exist, have a
// decision for their current spec, and all their decisions are known. Otherwise nothing may be deleted on other
// clusters.
func (l *reconciliation) selected(ctx context.Context) (all []selectedCluster, certain bool, _ error) {
	return l.selectedBy(ctx, l.api.cache)
}

// selectedBy is selected with a reader, either the cache or the API server.
func (l *reconciliation) selectedBy(ctx context.Context,
	reader client.Reader) (all []selectedCluster, certain bool, _ error) {
	certain = true
	indexOf := map[string]int{} // in all, by name of the cluster
	for _, reference := range l.set.Spec.Placements {
		name := client.ObjectKey{Namespace: l.set.Namespace, Name: reference.Name}
		placement, err := scope.ReadPlacement(ctx, reader, name)
		if apierrors.IsNotFound(err) {
			certain = false
			l.problem(v1alpha1.ReasonPlacementNotFound,
				"%s %s does not exist: create it, or remove the reference. Until then, its clusters keep their objects",
				scope.PlacementKind(name.Namespace).Kind, reference.Name)
			continue
		}
		if err != nil {
			return nil, false, fmt.Errorf("read Placement %s: %w", reference.Name, err)
		}
		var decisions v1alpha1.PlacementDecisionList
		err = reader.List(ctx, &decisions, client.InNamespace(scope.ChildNamespace(name.Namespace)),
			scope.DecisionLabels(name))
		if err != nil {
			return nil, false, fmt.Errorf("list PlacementDecisions of %s: %w", reference.Name, err)
		}
		known, groups := 0, groupsOf(placement, int32(len(l.placements.groups)))
		for i := range decisions.Items {
			if !metav1.IsControlledBy(&decisions.Items[i], placement) {
				continue
			}
			for _, d := range decisions.Items[i].Decisions {
				known++
				at, seen := indexOf[d.ClusterName]
				if !seen {
					group := groups(d.Group)
					group.Part = d.GroupPart
					at = len(all)
					indexOf[d.ClusterName], all = at, append(all, selectedCluster{
						name: d.ClusterName, group: group, binding: d.Binding,
					})
				}
				all[at].placements = append(all[at].placements, reference.Name)
			}
		}
		certain = certain && withdrawal.Complete(placement, known)
		for i := range placement.Spec.DecisionGroups {
			l.placements.groups = append(l.placements.groups, groups(placement.Spec.DecisionGroups[i].Name))
		}
		l.placements.groups = append(l.placements.groups, groups(""))
	}
	return all, certain, nil
}

// placementsOf returns the value of the annotation of a cluster's first Work. Empty: the existing value stays, because
// the WorkSet has one Placement, or because it is not known which Placements select the cluster.
func (l *reconciliation) placementsOf(c selectedCluster, certain bool) string {
	if !certain || len(l.set.Spec.Placements) < 2 {
		return ""
	}
	slices.Sort(c.placements)
	return strings.Join(slices.Compact(c.placements), ",")
}

// groupsOf returns a function that finds the decision groups of a Placement by name. The groups of one Placement
// precede those of the next.
func groupsOf(placement *v1alpha1.Placement, offset int32) func(name string) rollout.Group {
	return func(name string) rollout.Group {
		for i := range placement.Spec.DecisionGroups {
			if placement.Spec.DecisionGroups[i].Name == name {
				return rollout.Group{Name: name, Index: offset + int32(i)}
			}
		}
		return rollout.Group{Name: name, Index: offset + int32(len(placement.Spec.DecisionGroups))}
	}
}
