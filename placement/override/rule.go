package override

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/muster-sdk/muster/placement/bundle"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
	"github.com/muster-sdk/muster/scheduler/plugins/celaffinity"
	"github.com/muster-sdk/muster/scheduler/plugins/clusteraffinity"
)

// rule is one that was read.
type rule struct {
	path     string
	clusters []clusters // none: all
	objects  []v1alpha1.ObjectSelector
	ops      []operation
	merge    map[string]any
	deletes  bool
}

func compile(spec *v1alpha1.OverrideRule, path *field.Path) (rule, error) {
	r := rule{path: path.String(), deletes: spec.Delete}
	for i := range spec.Objects {
		r.objects = append(r.objects, *spec.Objects[i].DeepCopy())
	}
	var errs []error
	for i := range spec.Clusters {
		selected, err := selectClusters(&spec.Clusters[i], path.Child("clusters").Index(i))
		r.clusters = append(r.clusters, selected)
		errs = append(errs, err)
	}
	for i := range spec.JSONPatch {
		op, err := compileOperation(&spec.JSONPatch[i], path.Child("jsonPatch").Index(i))
		r.ops = append(r.ops, op)
		errs = append(errs, err)
	}
	if spec.MergePatch != nil {
		at := path.Child("mergePatch").String()
		err := utiljson.Unmarshal(spec.MergePatch.Raw, &r.merge)
		if err != nil {
			err = fmt.Errorf("%s: %w", at, errNotJSON)
		} else {
			err = checkVariables(r.merge, at)
		}
		errs = append(errs, err)
	}
	return r, errors.Join(errs...)
}

var errNotJSON = errors.New("it has what cannot be decoded, such as a number that is too large")

func (r *rule) isFor(o *bundle.Object) bool {
	return len(r.objects) == 0 || slices.ContainsFunc(r.objects, func(s v1alpha1.ObjectSelector) bool {
		return (s.Group == nil || *s.Group == o.Group) && matches(s.Kind, o.Kind) && matches(s.Namespace, o.Namespace) && matches(s.Name, o.Name)
	})
}

func matches(wanted, is string) bool { return wanted == "" || wanted == is }

// selects says whether the rule is for the cluster.
func (r *rule) selects(cluster *scheduler.Cluster) bool {
	return len(r.clusters) == 0 || slices.ContainsFunc(r.clusters, func(c clusters) bool { return c.match(cluster) })
}

// clusters are those of one selector.
type clusters struct {
	names   map[string]bool        // nil: any
	filter  scheduler.FilterPlugin // nil: it asks for no labels, and has no expressions
	request *scheduler.Request
}

// selectClusters has the scheduler's own plugin read labels and expressions, so that they mean here what they mean in a policy.
func selectClusters(spec *v1alpha1.ClusterSelector, path *field.Path) (clusters, error) {
	var c clusters
	if len(spec.Names) > 0 {
		c.names = make(map[string]bool, len(spec.Names))
	}
	for _, name := range spec.Names {
		c.names[name] = true
	}
	if len(spec.CEL) == 0 && (spec.LabelSelector == nil || len(spec.LabelSelector.MatchLabels)+len(spec.LabelSelector.MatchExpressions) == 0) {
		return c, nil
	}
	term := v1alpha1.ClusterSelectorTerm{LabelSelector: spec.LabelSelector, CEL: spec.CEL}
	policy, err := scheduler.NewPolicy(&v1alpha1.PlacementPolicy{Affinity: &v1alpha1.ClusterAffinity{Required: []v1alpha1.ClusterSelectorTerm{term}}})
	if err != nil {
		return c, fmt.Errorf("%s: %w", path, err)
	}
	plugin, err := clusteraffinity.New(celaffinity.Matcher(celaffinity.Options{}))(nil, scheduler.Handle{})
	if err != nil {
		return c, fmt.Errorf("%s: %w", path, err)
	}
	c.filter, c.request = plugin.(scheduler.FilterPlugin), &scheduler.Request{Policy: policy}
	// What cannot be compiled fails for every cluster alike.
	if status := plugin.(scheduler.PreFilterPlugin).PreFilter(context.Background(), nil, c.request); status.Code() == scheduler.Error {
		return c, errors.New(strings.ReplaceAll(status.Reason(), "policy.affinity.required[0]", path.String()))
	}
	return c, nil
}

func (c *clusters) match(cluster *scheduler.Cluster) bool {
	return (c.names == nil || c.names[cluster.Name]) &&
		(c.filter == nil || c.filter.Filter(context.Background(), nil, c.request, cluster) == nil)
}
