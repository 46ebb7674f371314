package workset

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/placement"
	"github.com/muster-sdk/muster/placement/internal/scope"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// Deliveries finds the clusters that have Works of the WorkSets of a Placement. A hub with WorkSets uses it as
// [placement.Options].Deliveries. It needs the permissions of the controller of WorkSets.
type Deliveries struct {
	// Client lists WorkSets. It can be a cache.
	Client client.Reader
	// Live lists Works and PlacementDecisions. It must not be a cache, which can be older than the Works.
	Live client.Reader
	// ClusterOf returns the name of the cluster whose Works are in a namespace, or an empty string if there is none.
	ClusterOf func(ctx context.Context, namespace string) (string, error)
}

var _ placement.Deliveries = Deliveries{}

// ClustersOf implements [placement.Deliveries]. If a WorkSet has several Placements, an annotation of its Works
// contains the Placements that selected the cluster. Works of earlier releases have no such annotation. In that case,
// the result does not include clusters that another Placement of the WorkSet selected, because their Works can belong
// to that Placement.
func (d Deliveries) ClustersOf(ctx context.Context, placement types.NamespacedName) ([]string, error) {
	worksets, err := scope.ListWorkSets(ctx, d.Client, placement.Namespace, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list WorkSets in %s: %w", placement.Namespace, err)
	}
	clusters := sets.New[string]()
	for _, set := range worksets {
		refers := slices.ContainsFunc(set.Spec.Placements, func(r v1alpha1.PlacementReference) bool {
			return r.Name == placement.Name
		})
		if !refers || set.DeletionTimestamp != nil {
			continue
		}
		delivered, err := d.ofWorkSet(ctx, set, placement.Name)
		if err != nil {
			return nil, err
		}
		clusters = clusters.Union(delivered)
	}
	return sets.List(clusters), nil
}

// ofWorkSet returns the clusters that have Works of a WorkSet because a Placement selected them. It ignores Works that
// are being deleted.
func (d Deliveries) ofWorkSet(ctx context.Context, set *v1alpha1.WorkSet, placement string) (sets.Set[string], error) {
	key := client.ObjectKeyFromObject(set)
	works := &metav1.PartialObjectMetadataList{}
	works.SetGroupVersionKind(workv1alpha1.GroupVersion.WithKind("WorkList"))
	err := d.Live.List(ctx, works, client.MatchingLabels{
		v1alpha1.WorkSetLabel: v1alpha1.LabelValue(set.Name), v1alpha1.WorkSetNamespaceLabel: set.Namespace,
	})
	if err != nil {
		return nil, fmt.Errorf("list the Works of WorkSet %s: %w", key, err)
	}
	selectedBy := map[string]sets.Set[string]{} // by namespace; empty: unknown
	for i := range works.Items {
		work := &works.Items[i]
		if work.DeletionTimestamp == nil && setOf(work.Labels, work.Annotations) == key {
			selectedBy[work.Namespace] = namedPlacements(set, work.Annotations).Union(selectedBy[work.Namespace])
		}
	}
	clusters, unnamed := sets.New[string](), sets.New[string]()
	for namespace, placements := range selectedBy {
		if placements.Len() > 0 && !placements.Has(placement) {
			continue
		}
		cluster, err := d.ClusterOf(ctx, namespace)
		switch {
		case err != nil:
			return nil, fmt.Errorf("find the cluster of namespace %s: %w", namespace, err)
		case cluster == "":
		case placements.Len() > 0:
			clusters.Insert(cluster)
		default:
			unnamed.Insert(cluster)
		}
	}
	if unnamed.Len() > 0 && len(set.Spec.Placements) > 1 {
		others, err := d.selectedByOthers(ctx, set, placement)
		if err != nil {
			return nil, err
		}
		unnamed = unnamed.Difference(others)
	}
	return clusters.Union(unnamed), nil
}

// namedPlacements returns those Placements of a WorkSet that selected the cluster of a Work according to the annotation
// of the Work. An empty set means that they are unknown.
func namedPlacements(set *v1alpha1.WorkSet, annotations map[string]string) sets.Set[string] {
	named := sets.New[string]()
	if len(set.Spec.Placements) < 2 {
		return named
	}
	for name := range strings.SplitSeq(annotations[v1alpha1.PlacementsAnnotation], ",") {
		if slices.ContainsFunc(set.Spec.Placements, func(r v1alpha1.PlacementReference) bool { return r.Name == name }) {
			named.Insert(name)
		}
	}
	return named
}

// selectedByOthers returns the clusters in the PlacementDecisions of the other Placements of a WorkSet.
func (d Deliveries) selectedByOthers(ctx context.Context, set *v1alpha1.WorkSet,
	placement string) (sets.Set[string], error) {
	selected := sets.New[string]()
	for _, other := range set.Spec.Placements {
		if other.Name == placement {
			continue
		}
		decisions := &v1alpha1.PlacementDecisionList{}
		err := d.Live.List(ctx, decisions, client.InNamespace(scope.ChildNamespace(set.Namespace)),
			scope.DecisionLabels(client.ObjectKey{Namespace: set.Namespace, Name: other.Name}))
		if err != nil {
			return nil, fmt.Errorf("list PlacementDecisions of %s: %w", other.Name, err)
		}
		for i := range decisions.Items {
			for _, decision := range decisions.Items[i].Decisions {
				selected.Insert(decision.ClusterName)
			}
		}
	}
	return selected, nil
}
