package clusteraffinity

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// Name is the name under which the plugin is registered.
const Name = "ClusterAffinity"

// New returns a [scheduler.Factory] of the plugin, without arguments. The plugin supports labels and the requirements
// of the matchers.
func New(matchers ...Matcher) scheduler.Factory {
	matchers = append([]Matcher{labelMatcher{}}, matchers...)
	return func(args scheduler.Args, _ scheduler.Handle) (scheduler.Plugin, error) {
		return &plugin{matchers}, scheduler.DecodeArgs(args, &struct{}{})
	}
}

type plugin struct{ matchers []Matcher }

var (
	_ scheduler.PreFilterPlugin   = &plugin{}
	_ scheduler.BatchFilterPlugin = &plugin{}
	_ scheduler.PreScorePlugin    = &plugin{}
	_ scheduler.BatchScorePlugin  = &plugin{}
	_ scheduler.HintPlugin        = &plugin{}
	_ scheduler.StrictPlugin      = &plugin{}
)

// Strict reports whether the required terms select by labels only, which users and administrators set.
func (p *plugin) Strict(request *scheduler.Request) bool {
	affinity := request.Policy.Spec().Affinity
	if affinity == nil {
		return true
	}
	for i := range affinity.Required {
		rest := affinity.Required[i]
		rest.LabelSelector = nil
		if !equality.Semantic.DeepEqual(rest, v1alpha1.ClusterSelectorTerm{}) {
			return false
		}
	}
	return true
}

// affinity is the compiled affinity of a policy.
type affinity struct {
	required  []term
	rejection *scheduler.Status // of a cluster that matches none of several required terms
	preferred []preference
	// least is the minimum sum of weights of a cluster, and scale converts the difference to it to a score.
	least, scale float64
}

type preference struct {
	term
	weight float64
}

func (p *plugin) compiled(r *scheduler.Request) (*affinity, error) {
	return scheduler.Compiled(r.Policy, p, func(spec *v1alpha1.PlacementPolicy) (*affinity, error) {
		a := &affinity{}
		if spec.Affinity == nil {
			return a, nil
		}
		path := field.NewPath("policy", "affinity")
		for i := range spec.Affinity.Required {
			t, err := compile(p.matchers, &spec.Affinity.Required[i], path.Child("required").Index(i))
			if err != nil {
				return nil, err
			}
			a.required = append(a.required, t)
		}
		if len(a.required) > 1 {
			a.rejection = scheduler.Rejectf("matches none of the %d required terms", len(a.required))
		}
		span := 0.0
		for i := range spec.Affinity.Preferred {
			preferred := &spec.Affinity.Preferred[i]
			t, err := compile(p.matchers, &preferred.Term, path.Child("preferred").Index(i).Child("term"))
			if err != nil {
				return nil, err
			}
			weight := float64(preferred.Weight)
			a.preferred = append(a.preferred, preference{t, weight})
			a.least += min(weight, 0)
			span += max(weight, -weight)
		}
		a.scale = scheduler.MaxScore / span
		return a, nil
	})
}

func (p *plugin) Name() string { return Name }

func (p *plugin) PreFilter(_ context.Context, _ *scheduler.CycleState, request *scheduler.Request) *scheduler.Status {
	a, err := p.compiled(request)
	if err == nil && len(a.required) == 0 {
		return scheduler.NothingToDo()
	}
	return scheduler.Fail(err)
}

func (p *plugin) Filter(_ context.Context, _ *scheduler.CycleState, request *scheduler.Request,
	cluster *scheduler.Cluster) *scheduler.Status {
	a, err := p.compiled(request)
	if err != nil {
		return scheduler.Fail(err)
	}
	var reason string
	for _, term := range a.required {
		if reason = term.mismatch(cluster); reason == "" {
			return nil
		}
	}
	if a.rejection != nil {
		return a.rejection
	}
	return scheduler.Reject(reason)
}

func (p *plugin) FilterAll(_ context.Context, state *scheduler.CycleState, request *scheduler.Request,
	feasible scheduler.Set) *scheduler.Status {
	a, err := p.compiled(request)
	if err != nil {
		return scheduler.Fail(err)
	}
	if len(a.required) == 1 {
		a.required[0].retain(state.Snapshot(), feasible)
		return nil
	}
	matching := scheduler.NewSet(state.Snapshot().Slots())
	for _, term := range a.required {
		some := feasible.Clone()
		term.retain(state.Snapshot(), some)
		matching.Insert(some)
	}
	feasible.Retain(matching)
	return nil
}

func (p *plugin) PreScore(_ context.Context, _ *scheduler.CycleState, request *scheduler.Request,
	_ scheduler.Set) *scheduler.Status {
	a, err := p.compiled(request)
	if err == nil && len(a.preferred) == 0 {
		return scheduler.NothingToDo()
	}
	return scheduler.Fail(err)
}

func (p *plugin) Score(_ context.Context, _ *scheduler.CycleState, request *scheduler.Request,
	cluster *scheduler.Cluster) (float64, *scheduler.Status) {
	a, err := p.compiled(request)
	if err != nil {
		return 0, scheduler.Fail(err)
	}
	sum := 0.0
	for _, preferred := range a.preferred {
		if preferred.mismatch(cluster) == "" {
			sum += preferred.weight
		}
	}
	return a.score(sum), nil
}

// score converts a sum of weights to a score. It limits the score to MaxScore, which rounding may exceed.
func (a *affinity) score(sum float64) float64 { return min((sum-a.least)*a.scale, scheduler.MaxScore) }

func (p *plugin) ScoreAll(_ context.Context, state *scheduler.CycleState, request *scheduler.Request,
	feasible scheduler.Set, scores []float64) *scheduler.Status {
	a, err := p.compiled(request)
	if err != nil {
		return scheduler.Fail(err)
	}
	matching := feasible.Clone()
	for i, preferred := range a.preferred {
		if i > 0 {
			matching.Insert(feasible)
		}
		preferred.retain(state.Snapshot(), matching)
		if len(a.preferred) == 1 && a.least == 0 { // common case: no addition is necessary
			for slot := range matching.All() {
				scores[slot] = a.score(preferred.weight)
			}
			return nil
		}
		for slot := range matching.All() {
			scores[slot] += preferred.weight
		}
	}
	for slot := range feasible.All() {
		scores[slot] = a.score(scores[slot])
	}
	return nil
}

// Local returns true.
func (p *plugin) Local(*scheduler.CycleState, *scheduler.Request) bool { return true }

// Hint reports whether the cluster matches the required terms and did not before.
func (p *plugin) Hint(request *scheduler.Request, event scheduler.Event) bool {
	a, err := p.compiled(request)
	return err == nil && event.Became(a.matches)
}

// matches reports whether a cluster matches a required term, or there are no required terms.
func (a *affinity) matches(cluster *scheduler.Cluster) bool {
	for _, term := range a.required {
		if term.mismatch(cluster) == "" {
			return true
		}
	}
	return len(a.required) == 0
}
