package selector

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
	"github.com/muster-sdk/muster/scheduler/plugins/celaffinity"
	"github.com/muster-sdk/muster/scheduler/plugins/clusteraffinity"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// Clusters is a compiled selector of clusters. The zero value selects all clusters. It may be used concurrently.
type Clusters struct {
	names   map[string]bool        // nil: any
	filter  scheduler.FilterPlugin // nil: the selector has neither labels nor expressions
	request *scheduler.Request
}

// ForClusters compiles a selector. The plugin of the scheduler evaluates labels and expressions, so that they have the
// same meaning as in a policy. ForClusters retains nothing of the spec. An error names the field below the path, such
// as weights[1].clusters.cel[0].
func ForClusters(spec *v1alpha1.ClusterSelector, path *field.Path) (Clusters, error) {
	var c Clusters
	if len(spec.Names) > 0 {
		c.names = make(map[string]bool, len(spec.Names))
	}
	for _, name := range spec.Names {
		c.names[name] = true
	}
	if len(spec.CEL) == 0 && (spec.LabelSelector == nil || len(spec.LabelSelector.MatchLabels)+
		len(spec.LabelSelector.MatchExpressions) == 0) {
		return c, nil
	}
	term := v1alpha1.ClusterSelectorTerm{LabelSelector: spec.LabelSelector, CEL: spec.CEL}
	policy, err := scheduler.NewPolicy(
		&v1alpha1.PlacementPolicy{Affinity: &v1alpha1.ClusterAffinity{Required: []v1alpha1.ClusterSelectorTerm{term}}})
	if err != nil {
		return c, fmt.Errorf("%s: %w", path, err)
	}
	plugin, err := clusteraffinity.New(celaffinity.Matcher(celaffinity.Options{}))(nil, scheduler.Handle{})
	if err != nil {
		return c, fmt.Errorf("%s: %w", path, err)
	}
	c.filter, c.request = plugin.(scheduler.FilterPlugin), &scheduler.Request{Policy: policy}
	// An expression that cannot be compiled fails for every cluster.
	if status := plugin.(scheduler.PreFilterPlugin).PreFilter(context.Background(), nil,
		c.request); status.Code() == scheduler.Error {
		return c, errors.New(strings.ReplaceAll(status.Reason(), "policy.affinity.required[0]", path.String()))
	}
	return c, nil
}

// Match reports whether the selector selects the cluster. A cluster for which an expression has no result is not
// selected.
func (c *Clusters) Match(cluster *scheduler.Cluster) bool {
	return (c.names == nil || c.names[cluster.Name]) &&
		(c.filter == nil || c.filter.Filter(context.Background(), nil, c.request, cluster) == nil)
}

// Object reports whether any of the selectors matches the object.
func Object(selectors []v1alpha1.ObjectSelector, id *workv1alpha1.ResourceIdentifier) bool {
	return slices.ContainsFunc(selectors, func(s v1alpha1.ObjectSelector) bool {
		return (s.Group == nil || *s.Group == id.Group) && matches(s.Kind, id.Kind) && matches(s.Namespace, id.Namespace) &&
			matches(s.Name, id.Name)
	})
}

func matches(wanted, is string) bool { return wanted == "" || wanted == is }
