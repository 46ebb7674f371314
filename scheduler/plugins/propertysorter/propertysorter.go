package propertysorter

import (
	"cmp"
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// Name is the name under which the plugin is registered.
const Name = "PropertySorter"

// New creates the plugin. It is a [scheduler.Factory] without arguments.
func New(args scheduler.Args, _ scheduler.Handle) (scheduler.Plugin, error) {
	return plugin{}, scheduler.DecodeArgs(args, &struct{}{})
}

type plugin struct{}

var (
	_ scheduler.PreScorePlugin   = plugin{}
	_ scheduler.BatchScorePlugin = plugin{}
)

// sorter is a compiled PropertySorter.
type sorter struct {
	key    string
	number func(*scheduler.Cluster) float64
	// ascending means that the cluster with the smallest number is first.
	ascending bool
	// share is the weight divided by the sum of the weights of all sorters.
	share float64
	// own is the quantity of the resource that the placement uses on each of its clusters, by the resources of the policy.
	// 0: unknown or none.
	own float64
}

func compiled(request *scheduler.Request) []sorter {
	sorters, _ := scheduler.Compiled(request.Policy, plugin{}, func(spec *v1alpha1.PlacementPolicy) ([]sorter, error) {
		sorters, sum := make([]sorter, len(spec.Sorters)), 0.0
		for i, s := range spec.Sorters {
			weight := float64(cmp.Or(s.Weight, 1))
			sorters[i] = sorter{
				key: "number:" + s.Name, number: numberOf(s.Name), ascending: s.Order == v1alpha1.Ascending, share: weight,
			}
			if resource, is := strings.CutPrefix(s.Name, "available/"); is {
				if asked, says := spec.Resources[corev1.ResourceName(resource)]; says {
					sorters[i].own = number(asked)
				}
			}
			sum += weight
		}
		for i := range sorters {
			sorters[i].share /= sum
		}
		return sorters, nil
	})
	return sorters
}

func (plugin) Name() string { return Name }

// PreScore computes the range of the numbers of the feasible clusters for each sorter.
func (plugin) PreScore(_ context.Context, state *scheduler.CycleState, request *scheduler.Request,
	feasible scheduler.Set) *scheduler.Status {
	sorters := compiled(request)
	if len(sorters) == 0 {
		return scheduler.NothingToDo()
	}
	scales := make([]scale, len(sorters))
	for i := range sorters {
		s := &sorters[i]
		numbers := scheduler.Column(state.Snapshot(), s.key, s.number)
		if placed := state.Placed(); s.own > 0 && !placed.Empty() {
			numbers = slices.Clone(numbers)
			for slot := range placed.All() {
				if numbers[slot] != none {
					numbers[slot] += s.own
				}
			}
		}
		scales[i] = newScale(numbers, feasible, s.ascending)
		scales[i].share = s.share
	}
	state.Write(stateKey{}, scales)
	return nil
}

type stateKey struct{}

func (plugin) Score(_ context.Context, state *scheduler.CycleState, _ *scheduler.Request,
	cluster *scheduler.Cluster) (float64, *scheduler.Status) {
	scales, _ := state.Read(stateKey{}).([]scale)
	slot, there := state.Snapshot().Slot(cluster.Name)
	if !there {
		return 0, nil
	}
	score := 0.0
	for i := range scales {
		score += scales[i].share * scales[i].score(scales[i].numbers[slot])
	}
	return min(score, scheduler.MaxScore), nil
}

func (plugin) ScoreAll(_ context.Context, state *scheduler.CycleState, _ *scheduler.Request, feasible scheduler.Set,
	scores []float64) *scheduler.Status {
	scales, _ := state.Read(stateKey{}).([]scale)
	if len(scales) == 1 { // the common case
		scale := scales[0]
		for slot := range feasible.All() {
			scores[slot] = scale.score(scale.numbers[slot])
		}
		return nil
	}
	for i := range scales {
		scale := scales[i]
		for slot := range feasible.All() {
			// The sum of the shares may exceed 1 by a rounding error.
			scores[slot] = min(scores[slot]+scale.share*scale.score(scale.numbers[slot]), scheduler.MaxScore)
		}
	}
	return nil
}

// Local reports whether the policy has no sorter. With a sorter, scores depend on the range of all feasible clusters.
func (plugin) Local(_ *scheduler.CycleState, request *scheduler.Request) bool {
	return len(compiled(request)) == 0
}
