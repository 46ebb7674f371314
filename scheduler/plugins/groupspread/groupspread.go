package groupspread

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// Name is the name under which the plugin is registered.
const Name = "GroupSpread"

// New creates the plugin. It is a [scheduler.Factory] without arguments.
func New(args scheduler.Args, _ scheduler.Handle) (scheduler.Plugin, error) {
	return plugin{}, scheduler.DecodeArgs(args, &struct{}{})
}

type plugin struct{}

var (
	_ scheduler.SelectPlugin = plugin{}
	_ scheduler.HintPlugin   = plugin{}
)

func (plugin) Name() string { return Name }

func (plugin) Selects(request *scheduler.Request) bool {
	spec := request.Policy.Spec()
	return len(spec.GroupSpread) > 0 && spec.Type != v1alpha1.PickFixed
}

func (plugin) Select(_ context.Context, state *scheduler.CycleState, request *scheduler.Request,
	candidates *scheduler.Candidates) *scheduler.Status {
	spec := request.Policy.Spec()
	if candidates.Wanted() == 0 {
		return nil
	}
	s := &selection{candidates: candidates, snapshot: state.Snapshot(), bound: state.Placed(), kept: candidates.Kept()}
	for i := range spec.GroupSpread {
		if status := s.limitGroups(&spec.GroupSpread[i]); status != nil {
			return status
		}
	}
	if spec.Type == v1alpha1.PickN && len(spec.TopologySpread) == 0 {
		return s.pick(spec.GroupSpread)
	}
	return s.check(spec.GroupSpread)
}

// selection is the state of one decision.
type selection struct {
	candidates *scheduler.Candidates
	snapshot   *scheduler.Snapshot
	bound      scheduler.Set
	kept       scheduler.Set // the clusters that were chosen before and stay
}

// limitGroups drops the clusters outside of at most maxGroups groups. The groups of clusters that stay are always
// included.
func (s *selection) limitGroups(constraint *v1alpha1.GroupSpreadConstraint) *scheduler.Status {
	groups, left := s.snapshot.Label(constraint.Label), s.candidates.Left()
	sizes := make([]int, groups.Len()+1) // by group, starting with None
	stay := make([]bool, groups.Len()+1)
	for slot := range left.All() {
		switch group := groups.Of(slot); {
		case s.kept.Has(slot):
			sizes[group-scheduler.None]++
			stay[group-scheduler.None] = true
		case group == scheduler.None:
			s.candidates.Drop(slot, func() string { return "has no label " + constraint.Label })
		default:
			sizes[group-scheduler.None]++
		}
	}
	stay[0] = false
	count, stayed := 0, 0
	for i, size := range sizes[1:] {
		count += min(size, 1)
		if stay[i+1] {
			stayed++
		}
	}
	least, most := int(constraint.MinGroups), int(constraint.MaxGroups)
	wanted := s.candidates.Wanted()
	switch {
	case count < least:
		return scheduler.Rejectf("finds only %d of the %d required groups of label %s", count, least,
			constraint.Label)
	case wanted >= 0 && wanted < least:
		return scheduler.Rejectf("requires clusters of %d groups of label %s, but the policy selects only %d clusters", least,
			constraint.Label, wanted)
	case wanted >= 0 && wanted-s.kept.Len() < least-stayed:
		return scheduler.Rejectf("requires clusters of %d more groups of label %s, and the policy limits the additional "+
			"clusters to %d", least-stayed, constraint.Label, wanted-s.kept.Len())
	case most <= 0 || count <= most:
		return nil
	}
	if wanted >= 0 {
		wanted -= s.kept.Len()
	}
	chosen := map[int]bool{}
	for i := range stay {
		if stay[i] {
			sizes[i], chosen[i+scheduler.None] = 0, true
		}
	}
	if most > stayed {
		r := &ranking{selection: s, least: max(1, least-stayed), most: most - stayed}
		r.skip = stay
		if wanted < 0 {
			r.sum(groups, sizes)
		} else {
			r.gather(groups, sizes, wanted)
		}
		maps.Copy(chosen, r.choose(wanted))
	}
	for slot := range left.All() {
		if group := groups.Of(slot); !chosen[group] && !s.kept.Has(slot) {
			s.candidates.Drop(slot, func() string {
				return "is in " + noun(constraint.Label) + " " + groups.Name(group) + ", which was not chosen"
			})
		}
	}
	return nil
}

// check rejects the request if later constraints have left fewer groups than minGroups to a constraint.
func (s *selection) check(constraints []v1alpha1.GroupSpreadConstraint) *scheduler.Status {
	for i := range constraints {
		c := &constraints[i]
		groups := s.snapshot.Label(c.Label)
		seen := make([]bool, groups.Len()+1)
		count := 0
		for slot := range s.candidates.Left().All() {
			if group := groups.Of(slot) - scheduler.None; group != 0 && !seen[group] {
				seen[group] = true
				count++
			}
		}
		if count < int(c.MinGroups) {
			return scheduler.Rejectf(
				"finds only %d of the %d required groups of label %s, given the other constraints", count, c.MinGroups,
				c.Label)
		}
	}
	return nil
}

// noun returns the name of the kind of group in messages: the label without its prefix.
func noun(label string) string { return label[strings.LastIndexByte(label, '/')+1:] }

// Hint reports whether the cluster has joined a group. With several constraints it also reports whether the cluster has
// left a group, because this can change which groups rank highest, and thus the clusters for the next constraint.
func (plugin) Hint(request *scheduler.Request, event scheduler.Event) bool {
	constraints := request.Policy.Spec().GroupSpread
	return slices.ContainsFunc(constraints, func(c v1alpha1.GroupSpreadConstraint) bool {
		before, was := label(event.Old, c.Label)
		after, is := label(event.New, c.Label)
		return is && (!was || before != after) || was && !is && len(constraints) > 1
	})
}

func label(c *scheduler.Cluster, key string) (value string, has bool) {
	if c != nil {
		value, has = c.Labels[key]
	}
	return value, has
}
