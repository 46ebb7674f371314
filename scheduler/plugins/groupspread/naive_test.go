package groupspread_test

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// naive is a reference implementation that evaluates every set of clusters as doc.go specifies.
type naive struct {
	clusters    []*scheduler.Cluster
	wanted      int
	constraints []v1alpha1.GroupSpreadConstraint
	bound       []string
}

// outcome is the value of a set. The greatest outcome is the best.
type outcome struct {
	valid              bool
	count, total, kept int
}

// best returns the outcome of the best set with PickN.
func (n *naive) best() outcome {
	var found outcome
	for set := uint(1); set < 1<<len(n.clusters); set++ {
		if v := n.evaluate(set); v.valid &&
			(!found.valid || cmp.Or(v.count-found.count, v.total-found.total, v.kept-found.kept) > 0) {
			found = v
		}
	}
	return found
}

func (n *naive) evaluate(set uint) outcome {
	v := outcome{valid: true, count: bits.OnesCount(set)}
	for i, c := range n.clusters {
		if set&(1<<i) != 0 {
			v.total += int(c.Scores["given"])
			if slices.Contains(n.bound, c.Name) {
				v.kept++
			}
		}
	}
	for _, constraint := range n.constraints {
		values := map[string]bool{}
		for i, c := range n.clusters {
			if set&(1<<i) == 0 {
				continue
			}
			value, has := c.Labels[constraint.Label]
			if !has {
				return outcome{}
			}
			values[value] = true
		}
		if len(values) < int(constraint.MinGroups) || constraint.MaxGroups > 0 && len(values) > int(constraint.MaxGroups) {
			return outcome{}
		}
	}
	if n.wanted >= 0 && v.count > n.wanted {
		return outcome{}
	}
	return v
}

// all returns the clusters that PickAll chooses with one constraint.
func (n *naive) all() []string {
	c := n.constraints[0]
	type group struct {
		name             string
		sum, size, bound int
		best             *scheduler.Cluster
		bestBound        int
		names            []string
	}
	var groups []*group
	for _, cluster := range n.clusters {
		value, has := cluster.Labels[c.Label]
		if !has {
			continue
		}
		at := slices.IndexFunc(groups, func(g *group) bool { return g.name == value })
		if at < 0 {
			at = len(groups)
			groups = append(groups, &group{name: value})
		}
		g, bound := groups[at], 0
		if slices.Contains(n.bound, cluster.Name) {
			bound = 1
		}
		g.sum += int(cluster.Scores["given"])
		g.size++
		g.bound += bound
		g.names = append(g.names, cluster.Name)
		if g.best == nil || cmp.Or(cmp.Compare(cluster.Scores["given"], g.best.Scores["given"]), bound-g.bestBound,
			cmp.Compare(g.best.Name, cluster.Name)) > 0 {
			g.best, g.bestBound = cluster, bound
		}
	}
	if len(groups) < int(c.MinGroups) {
		return nil
	}
	slices.SortFunc(groups, func(a, b *group) int {
		return cmp.Or(b.sum-a.sum, b.size-a.size, b.bound-a.bound,
			cmp.Compare(b.best.Scores["given"], a.best.Scores["given"]), b.bestBound-a.bestBound,
			cmp.Compare(a.best.Name, b.best.Name))
	})
	if c.MaxGroups > 0 && len(groups) > int(c.MaxGroups) {
		groups = groups[:c.MaxGroups]
	}
	var out []string
	for _, g := range groups {
		out = append(out, g.names...)
	}
	slices.Sort(out)
	return out
}

func (n *naive) setOf(names []string) uint {
	var set uint
	for i, c := range n.clusters {
		if slices.Contains(names, c.Name) {
			set |= 1 << i
		}
	}
	return set
}
