package scheduler

import (
	"sync"
)

// None is the group of the clusters that have no value.
const None = -1

// Groups divides the clusters of a snapshot by a text value. A cluster may have no value.
type Groups struct {
	of    []int32 // the group by slot
	names *names

	// whole are the groups of the unfiltered snapshot, and within are the clusters of the filtered one. Nil: not filtered.
	whole  *Groups
	within Set

	mu   sync.Mutex
	sets map[int32]Set // by group; only those that were used
}

// Of returns the group of the cluster in a slot, or [None] if the cluster has no value. Groups are numbered from 0, in
// no particular order.
func (g *Groups) Of(slot int) int { return int(g.of[slot]) }

// Name returns the value that all clusters of a group have.
func (g *Groups) Name(group int) string { return g.names.name(int32(group)) }

// Len returns the number of groups. Groups are numbered from 0, and some may be empty.
func (g *Groups) Len() int { return g.names.len() }

// Set returns the clusters with a value. The set is shared and must not be changed.
func (g *Groups) Set(name string) Set {
	if g.whole != nil {
		return within(g.whole.Set(name), g.within)
	}
	group, known := g.names.find(name)
	if !known {
		return Set{}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	set, known := g.sets[group]
	if known {
		return set
	}
	set = NewSet(len(g.of))
	for slot, of := range g.of {
		if of == group {
			set.Add(slot)
		}
	}
	g.sets[group] = set
	return set
}

// GroupBy divides the clusters by a function. The function returns the value of a cluster and whether the cluster has
// one. The rules of [Column] apply.
func (s *Snapshot) GroupBy(key string, of func(*Cluster) (string, bool)) *Groups {
	groups := s.groupBy(key, of)
	if s.filtered() {
		return &Groups{of: groups.of, names: groups.names, whole: groups, within: s.present}
	}
	return groups
}

func (s *Snapshot) groupBy(key string, of func(*Cluster) (string, bool)) *Groups {
	return resolve(s, groupsKey(key), func(old *Groups, changed []int32) *Groups {
		// Unused names are not deleted one by one. If most names may be unused, the groups are computed anew.
		if old == nil || old.names.len() > 2*len(s.clusters)+wordBits {
			g := &Groups{of: make([]int32, len(s.clusters)), names: &names{numbers: map[string]int32{}}, sets: map[int32]Set{}}
			for slot, cluster := range s.clusters {
				g.of[slot] = g.names.group(cluster, of)
			}
			return g
		}
		return old.update(s.clusters, changed, of)
	})
}

// Label divides the clusters by the value of a label.
func (s *Snapshot) Label(key string) *Groups {
	return s.GroupBy("label:"+key, func(c *Cluster) (string, bool) {
		value, has := c.Labels[key]
		return value, has
	})
}

type groupsKey string

// update returns the groups after a change of clusters. It returns the same Groups if no cluster changed its group.
func (g *Groups) update(clusters []*Cluster, changed []int32, of func(*Cluster) (string, bool)) *Groups {
	next := g
	if len(g.of) != len(clusters) {
		next = g.resized(len(clusters))
	}
	fresh := map[int32]bool{} // the sets that only next uses
	for _, slot := range changed {
		before, after := int32(None), int32(None)
		if int(slot) < len(g.of) {
			before = g.of[slot]
		}
		if int(slot) < len(clusters) {
			after = g.names.group(clusters[slot], of)
		}
		if before == after {
			continue
		}
		if next == g {
			next = g.resized(len(clusters))
		}
		if int(slot) < len(clusters) {
			next.of[slot] = after
		}
		next.move(int(slot), before, after, fresh)
	}
	return next
}

// resized returns a copy for a number of slots. New slots belong to no group.
func (g *Groups) resized(slots int) *Groups {
	next := &Groups{of: make([]int32, slots), names: g.names, sets: map[int32]Set{}}
	for i := copy(next.of, g.of); i < slots; i++ {
		next.of[i] = None
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for group, set := range g.sets {
		if len(next.of) != len(g.of) {
			words := set.words
			set = NewSet(slots)
			copy(set.words, words)
		}
		next.sets[group] = set
	}
	return next
}

func (g *Groups) move(slot int, before, after int32, fresh map[int32]bool) {
	own := func(group int32) (Set, bool) {
		set, asked := g.sets[group]
		if asked && !fresh[group] {
			set = set.Clone()
			g.sets[group], fresh[group] = set, true
		}
		return set, asked
	}
	if set, asked := own(before); asked && set.Has(slot) {
		set.Remove(slot)
	}
	if set, asked := own(after); asked {
		set.Add(slot)
	}
}

// names assigns a number to each text. All Groups that derive from the same Groups share it.
type names struct {
	mu      sync.RWMutex
	numbers map[string]int32
	texts   []string
}

// group returns the number of a cluster's text, or None. It assigns a number to a new text.
func (n *names) group(cluster *Cluster, of func(*Cluster) (string, bool)) int32 {
	if cluster == nil {
		return None
	}
	text, has := of(cluster)
	if !has {
		return None
	}
	if number, known := n.find(text); known {
		return number
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	number, known := n.numbers[text]
	if !known {
		number = int32(len(n.texts))
		n.numbers[text] = number
		n.texts = append(n.texts, text)
	}
	return number
}

func (n *names) find(text string) (int32, bool) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	number, known := n.numbers[text]
	return number, known
}

func (n *names) name(number int32) string {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.texts[number]
}

func (n *names) len() int {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return len(n.texts)
}
