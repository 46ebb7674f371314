package topologyspread_test

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// naive is a reference implementation that evaluates every set of clusters as doc.go specifies.
type naive struct {
	clusters    []*scheduler.Cluster // the feasible clusters
	wanted      int
	constraints []v1alpha1.TopologySpreadConstraint
	bound       []string
}

// outcome is the value of a set. The greatest outcome is the best.
type outcome struct {
	valid                     bool
	count, lacks, total, kept int
	excess                    []int
	sorted                    []int // clusters in the order in which they are compared
}

// best returns the best set as a bit mask.
func (n *naive) best() (uint, outcome) {
	var set uint
	found := n.evaluate(0)
	for other := uint(1); other < 1<<len(n.clusters); other++ {
		if v := n.evaluate(other); v.valid && n.compare(v, found) > 0 {
			set, found = other, v
		}
	}
	return set, found
}

func (n *naive) compare(a, b outcome) int {
	if c := cmp.Or(a.count-b.count, b.lacks-a.lacks, slices.Compare(b.excess, a.excess), a.total-b.total,
		a.kept-b.kept); c != 0 {
		return c
	}
	for i := range a.sorted {
		if a.sorted[i] != b.sorted[i] {
			return n.order(b.sorted[i], a.sorted[i])
		}
	}
	return 0
}

func (n *naive) evaluate(set uint) outcome {
	v := outcome{valid: true, count: bits.OnesCount(set)}
	if v.count > n.wanted {
		return outcome{}
	}
	for i, c := range n.clusters {
		if set&(1<<i) != 0 {
			v.sorted = append(v.sorted, i)
			v.lacks += n.lacks(c)
			v.total += int(c.Scores["given"])
			if slices.Contains(n.bound, c.Name) {
				v.kept++
			}
		}
	}
	slices.SortFunc(v.sorted, n.order)
	for _, constraint := range n.constraints {
		counts := map[string]int{}
		for i, c := range n.clusters {
			value, has := c.Labels[constraint.TopologyKey]
			chosen := set&(1<<i) != 0
			switch {
			case has && chosen:
				counts[value]++
			case has && n.candidate(c):
				counts[value] += 0
			case chosen && constraint.WhenUnsatisfiable != v1alpha1.ScheduleAnyway:
				return outcome{}
			}
		}
		most, fewest := 0, 1000
		for _, count := range counts {
			most, fewest = max(most, count), min(fewest, count)
		}
		if constraint.MinDomains != nil && len(counts) < int(*constraint.MinDomains) || len(counts) == 0 {
			fewest = 0
		}
		excess := max(0, most-fewest-int(constraint.MaxSkew))
		if constraint.WhenUnsatisfiable == v1alpha1.ScheduleAnyway {
			v.excess = append(v.excess, excess)
		} else if excess > 0 {
			return outcome{}
		}
	}
	return v
}

// candidate reports whether a cluster has the required labels. Only such clusters form domains.
func (n *naive) candidate(c *scheduler.Cluster) bool {
	for _, constraint := range n.constraints {
		if _, has := c.Labels[constraint.TopologyKey]; !has && constraint.WhenUnsatisfiable != v1alpha1.ScheduleAnyway {
			return false
		}
	}
	return true
}

func (n *naive) lacks(c *scheduler.Cluster) int {
	lacks := 0
	for _, constraint := range n.constraints {
		if _, has := c.Labels[constraint.TopologyKey]; !has {
			lacks++
		}
	}
	return lacks
}

// order compares two clusters: the preferred one comes first.
func (n *naive) order(i, j int) int {
	a, b := n.clusters[i], n.clusters[j]
	kept := func(c *scheduler.Cluster) int {
		if slices.Contains(n.bound, c.Name) {
			return 1
		}
		return 0
	}
	return cmp.Or(n.lacks(a)-n.lacks(b), cmp.Compare(b.Scores["given"], a.Scores["given"]), kept(b)-kept(a),
		cmp.Compare(a.Name, b.Name))
}

func (n *naive) names(set uint) []string {
	var out []string
	for i, c := range n.clusters {
		if set&(1<<i) != 0 {
			out = append(out, c.Name)
		}
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
