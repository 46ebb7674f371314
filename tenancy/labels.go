package tenancy

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/tenancy/v1alpha1"
)

// ProtectedLabels returns a function for the option ProtectedLabels of package membership/hub. The function returns the
// keys of the labels in the selectors of ClusterSets, sorted. reader should not be a cache, so that a set protects its
// labels as soon as it exists. The function needs the verb list on clustersets, and may be called concurrently.
func ProtectedLabels(reader client.Reader) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		var sets v1alpha1.ClusterSetList
		if err := reader.List(ctx, &sets); err != nil {
			return nil, fmt.Errorf("list ClusterSets: %w", err)
		}
		keys := map[string]bool{}
		for i := range sets.Items {
			selector := sets.Items[i].Spec.Selector
			if selector == nil {
				continue
			}
			for key := range selector.MatchLabels {
				keys[key] = true
			}
			for _, requirement := range selector.MatchExpressions {
				keys[requirement.Key] = true
			}
		}
		return slices.Sorted(maps.Keys(keys)), nil
	}
}
