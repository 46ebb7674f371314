package workset

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/placement"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// Deliveries finds the clusters that have Works of the WorkSets of a Placement. It is the [placement.Options].Deliveries
// of a hub with WorkSets. It needs the permissions of the controller of WorkSets.
type Deliveries struct {
	// Client lists WorkSets. It can be a cache.
	Client client.Reader
	// Live lists Works and PlacementDecisions. It must not be a cache, which can be older than the Works.
	Live client.Reader
	// ClusterOf returns the name of the cluster whose Works are in a namespace. Empty: none.
	ClusterOf func(ctx context.Context, namespace string) (string, error)
}

var _ placement.Deliveries = Deliveries{}

// ClustersOf implements [placement.Deliveries]. A cluster that another Placement of the same WorkSet has selected is not
// among the results, because its Works can be those of the other Placement.
func (d Deliveries) ClustersOf(ctx context.Context, placement types.NamespacedName) ([]string, error) {
	worksets := &v1alpha1.WorkSetList{}
	if err := d.Client.List(ctx, worksets, client.InNamespace(placement.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list WorkSets in %s: %w", placement.Namespace, err)
	}
	clusters := sets.New[string]()
	for i := range worksets.Items {
		set := &worksets.Items[i]
		refers := slices.ContainsFunc(set.Spec.Placements, func(r v1alpha1.PlacementReference) bool { return r.Name == placement.Name })
		if !refers || set.DeletionTimestamp != nil {
			continue
		}
		delivered, err := d.ofWorkSet(ctx, client.ObjectKeyFromObject(set))
		if err != nil {
			return nil, err
		}
		if delivered.Len() > 0 && len(set.Spec.Placements) > 1 {
			others, err := d.selectedByOthers(ctx, set, placement.Name)
			if err != nil {
				return nil, err
			}
			delivered = delivered.Difference(others)
		}
		clusters = clusters.Union(delivered)
	}
	return sets.List(clusters), nil
}

// ofWorkSet returns the clusters that have Works of a WorkSet, without Works that are being deleted.
func (d Deliveries) ofWorkSet(ctx context.Context, set types.NamespacedName) (sets.Set[string], error) {
	works := &metav1.PartialObjectMetadataList{}
	works.SetGroupVersionKind(workv1alpha1.GroupVersion.WithKind("WorkList"))
	err := d.Live.List(ctx, works, client.MatchingLabels{
		v1alpha1.WorkSetLabel: v1alpha1.LabelValue(set.Name), v1alpha1.WorkSetNamespaceLabel: set.Namespace,
	})
	if err != nil {
		return nil, fmt.Errorf("list the Works of WorkSet %s: %w", set, err)
	}
	namespaces, clusters := sets.New[string](), sets.New[string]()
	for i := range works.Items {
		work := &works.Items[i]
		if work.DeletionTimestamp == nil && setOf(work.Labels, work.Annotations) == set {
			namespaces.Insert(work.Namespace)
		}
	}
	for namespace := range namespaces {
		cluster, err := d.ClusterOf(ctx, namespace)
		if err != nil {
			return nil, fmt.Errorf("find the cluster of namespace %s: %w", namespace, err)
		}
		if cluster != "" {
			clusters.Insert(cluster)
		}
	}
	return clusters, nil
}

// selectedByOthers returns the clusters in the PlacementDecisions of the other Placements of a WorkSet.
func (d Deliveries) selectedByOthers(ctx context.Context, set *v1alpha1.WorkSet, placement string) (sets.Set[string], error) {
	selected := sets.New[string]()
	for _, other := range set.Spec.Placements {
		if other.Name == placement {
			continue
		}
		decisions := &v1alpha1.PlacementDecisionList{}
		err := d.Live.List(ctx, decisions, client.InNamespace(set.Namespace),
			client.MatchingLabels{v1alpha1.PlacementLabel: v1alpha1.LabelValue(other.Name)})
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
