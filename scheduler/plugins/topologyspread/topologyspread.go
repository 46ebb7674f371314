package topologyspread

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// Name is the name under which the plugin is registered.
const Name = "TopologySpread"

// New creates the plugin. It is a [scheduler.Factory] without arguments.
func New(args scheduler.Args, _ scheduler.Handle) (scheduler.Plugin, error) {
	return plugin{}, scheduler.DecodeArgs(args, &struct{}{})
}

type plugin struct{}

var (
	_ scheduler.SelectPlugin = plugin{}
	_ scheduler.HintPlugin   = plugin{}
)

// maxConstraints is the maximum number of constraints of a policy.
const maxConstraints = 4

// constraint is a constraint of a policy with its defaults.
type constraint struct {
	key        string
	noun       string // name of the kind of domain in messages: the key without its prefix
	noLabel    string // the reason against a cluster without the label
	maxSkew    int
	minDomains int
	anyway     bool
}

func (p plugin) compiled(r *scheduler.Request) ([]constraint, error) {
	return scheduler.Compiled(r.Policy, p, func(spec *v1alpha1.PlacementPolicy) ([]constraint, error) {
		if n := len(spec.TopologySpread); n > maxConstraints {
			return nil, fmt.Errorf("policy.topologySpread: has %d constraints, but at most %d are allowed", n, maxConstraints)
		}
		var out []constraint
		for _, c := range spec.TopologySpread {
			made := constraint{
				key: c.TopologyKey, noun: c.TopologyKey[strings.LastIndexByte(c.TopologyKey, '/')+1:],
				noLabel: "has no label " + c.TopologyKey, maxSkew: max(1, int(c.MaxSkew)),
				anyway: c.WhenUnsatisfiable == v1alpha1.ScheduleAnyway,
			}
			if c.MinDomains != nil {
				made.minDomains = int(*c.MinDomains)
			}
			out = append(out, made)
		}
		return out, nil
	})
}

func (plugin) Name() string { return Name }

// Selects returns true only for PickN with constraints: with other types, all feasible clusters are chosen.
func (plugin) Selects(request *scheduler.Request) bool {
	spec := request.Policy.Spec()
	return spec.Type == v1alpha1.PickN && len(spec.TopologySpread) > 0
}

func (p plugin) Select(ctx context.Context, state *scheduler.CycleState, request *scheduler.Request,
	candidates *scheduler.Candidates) *scheduler.Status {
	constraints, err := p.compiled(request)
	if err != nil {
		return scheduler.Fail(err)
	}
	s := gather(state, candidates, constraints)
	s.err = ctx.Err
	if kept := candidates.Kept(); !kept.Empty() {
		e := newExtension(s, kept)
		added := e.add(s.wanted - kept.Len())
		if err := ctx.Err(); err != nil {
			return scheduler.Fail(err)
		}
		s.keepWith(kept, added, e.taken)
		return nil
	}
	if s.members <= s.wanted && !slices.ContainsFunc(constraints, func(c constraint) bool { return !c.anyway }) {
		return nil
	}
	s.rank()
	picked := s.solve()
	if err := ctx.Err(); err != nil {
		return scheduler.Fail(err)
	}
	s.keep(picked)
	return nil
}

// Hint reports whether a cluster has joined or left a domain. A cluster that leaves makes room in the other domains. A
// cluster also leaves its domain if it is not a candidate any more. Hint detects this for changes of health, labels and
// taints. It does not for changes of resources, properties and scores, because these are too frequent.
func (p plugin) Hint(request *scheduler.Request, event scheduler.Event) bool {
	constraints, err := p.compiled(request)
	return err == nil && slices.ContainsFunc(constraints, func(c constraint) bool {
		was, is := has(event.Old, c.key), has(event.New, c.key)
		return was != is || was && mayRemoveCandidate(event.Old, event.New)
	})
}

func has(c *scheduler.Cluster, key string) bool {
	if c == nil {
		return false
	}
	_, has := c.Labels[key]
	return has
}

// mayRemoveCandidate reports whether a change may have removed a cluster from the candidates.
func mayRemoveCandidate(before, after *scheduler.Cluster) bool {
	return before.Joined != after.Joined || before.Leaving != after.Leaving || before.Healthy != after.Healthy ||
		!maps.Equal(before.Labels, after.Labels) || !slices.Equal(before.Taints, after.Taints)
}
