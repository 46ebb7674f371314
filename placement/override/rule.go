package override

import (
	"errors"
	"fmt"
	"slices"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/muster-sdk/muster/placement/bundle"
	"github.com/muster-sdk/muster/placement/internal/selector"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// rule is a compiled rule.
type rule struct {
	path     string
	clusters []selector.Clusters // none: all
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
		selected, err := selector.ForClusters(&spec.Clusters[i], path.Child("clusters").Index(i))
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

var errNotJSON = errors.New("the JSON cannot be decoded, for example because a number is too large")

func (r *rule) isFor(o *bundle.Object) bool {
	return len(r.objects) == 0 || selector.Object(r.objects, &o.ResourceIdentifier)
}

// selects reports whether the rule applies to the cluster.
func (r *rule) selects(cluster *scheduler.Cluster) bool {
	return len(r.clusters) == 0 || slices.ContainsFunc(r.clusters, func(c selector.Clusters) bool {
		return c.Match(cluster)
	})
}
