package override

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/muster-sdk/muster/placement/bundle"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// Plan contains objects and compiled overrides. It may be used concurrently.
type Plan struct {
	objects []bundle.Object
	targets []target // the objects that may differ between clusters
	rules   []rule
}

// target is an object that may differ between clusters.
type target struct {
	index     int            // in Plan.objects
	content   map[string]any // never changed
	rules     []int          // the rules that select the object; they apply if they also select the cluster
	variables bool
}

// Result contains the objects of one cluster.
type Result struct {
	// Objects are in the order of the input. Unchanged objects share their text with the input.
	Objects []bundle.Object
	// Deleted are the identifiers of the objects that rules remove for the cluster, in the same order.
	Deleted []workv1alpha1.ResourceIdentifier
	// Rules are the indices of the rules that select the cluster and at least one object.
	Rules []int
}

// Error is the error for one object and one cluster.
type Error struct {
	Cluster string
	Object  workv1alpha1.ResourceIdentifier
	// Field is the field of the rule, such as rules[2].jsonPatch[0].value.image. For a variable in an object, it is the
	// field of the object, such as .spec.image.
	Field string
	Err   error
}

func (e *Error) Error() string {
	return fmt.Sprintf("override %s for cluster %s: %s: %v", e.Object, e.Cluster, e.Field, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// Apply returns the objects of a cluster. It combines [New] and [Plan.For].
func Apply(objects []bundle.Object, overrides *v1alpha1.Overrides, cluster *scheduler.Cluster) (Result, error) {
	plan, err := New(objects, overrides)
	if err != nil {
		return Result{}, err
	}
	return plan.For(cluster)
}

// New compiles a plan. It retains the objects, and nothing of the overrides. The error contains all problems of the
// overrides with their fields, as [v1alpha1.Overrides.Validate] reports them, or all variables and CEL expressions that
// cannot be parsed.
func New(objects []bundle.Object, overrides *v1alpha1.Overrides) (*Plan, error) {
	if errs := overrides.Validate(nil); len(errs) > 0 {
		return nil, fmt.Errorf("invalid overrides: %w", errs.ToAggregate())
	}
	plan := &Plan{objects: slices.Clone(objects), rules: make([]rule, len(overrides.Rules))}
	path := field.NewPath("rules")
	var errs []error
	for i := range overrides.Rules {
		var err error
		plan.rules[i], err = compile(&overrides.Rules[i], path.Index(i))
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("invalid overrides: %w", err)
	}
	for i := range plan.objects {
		t := target{index: i}
		for r := range plan.rules {
			if plan.rules[r].isFor(&plan.objects[i]) {
				t.rules = append(t.rules, r)
			}
		}
		// No encoder escapes these characters, so text without them has no variable.
		t.variables = overrides.ExpandManifests && bytes.Contains(plan.objects[i].JSON, []byte(start))
		if !t.variables && len(t.rules) == 0 {
			continue
		}
		if id := plan.objects[i].ResourceIdentifier; t.variables &&
			strings.Contains(id.Group+id.Version+id.Kind+id.Namespace+id.Name, start) {
			return nil, fmt.Errorf("override %s: %w", id, ErrIdentity)
		}
		if err := utiljson.Unmarshal(plan.objects[i].JSON, &t.content); err != nil {
			return nil, fmt.Errorf("override %s: %w", plan.objects[i].ResourceIdentifier, bundle.ErrInvalid)
		}
		plan.targets = append(plan.targets, t)
	}
	return plan, nil
}

// For returns the objects for a cluster. The error is one [*Error] for each object that failed, joined if there are
// several. The result for a cluster is always the same, byte for byte.
func (p *Plan) For(cluster *scheduler.Cluster) (Result, error) {
	selected := make([]bool, len(p.rules))
	for i := range p.rules {
		selected[i] = p.rules[i].selects(cluster)
	}
	result := Result{Objects: slices.Clone(p.objects)}
	used := make([]bool, len(p.rules))
	gone := map[int]bool{}
	var errs []error
	for i := range p.targets {
		t := &p.targets[i]
		e := &edit{target: t, cluster: cluster, room: workv1alpha1.MaxManifestBytes}
		for _, r := range t.rules {
			if selected[r] {
				used[r] = true
				e.rules = append(e.rules, &p.rules[r])
			}
		}
		if e.deletes() {
			gone[t.index] = true
			result.Deleted = append(result.Deleted, p.objects[t.index].ResourceIdentifier)
			continue
		}
		if len(e.rules) == 0 && !t.variables {
			continue
		}
		object, at, err := e.apply()
		if err != nil {
			errs = append(errs, &Error{cluster.Name, p.objects[t.index].ResourceIdentifier, at, err})
			continue
		}
		result.Objects[t.index] = object
	}
	if len(errs) > 0 {
		return Result{}, errors.Join(errs...)
	}
	if len(gone) > 0 {
		kept := result.Objects[:0]
		for i := range result.Objects {
			if !gone[i] {
				kept = append(kept, result.Objects[i])
			}
		}
		result.Objects = kept
	}
	for r := range used {
		if used[r] {
			result.Rules = append(result.Rules, r)
		}
	}
	return result, nil
}
