package scheduler

import (
	"cmp"
	"slices"
	"sort"
	"sync"
)

// Cache collects the changes of a fleet and returns snapshots of it. The zero Cache is an empty fleet. All methods may
// be called concurrently; the changes of one cluster must be made in order.
//
// A change is cheap: the next call of Snapshot applies all changes since the previous call together.
type Cache struct {
	mu      sync.Mutex
	slots   map[string]int32
	free    []int32
	latest  *Snapshot
	pending map[int32]*Cluster // by slot; nil: the cluster was removed
	columns columns
}

// Update adds a cluster, or replaces the cluster of the same name, and returns the change.
func (c *Cache) Update(cluster *Cluster) Event {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.slots == nil {
		c.slots, c.pending = map[string]int32{}, map[int32]*Cluster{}
	}
	slot, known := c.slots[cluster.Name]
	if !known {
		if n := len(c.free); n > 0 {
			slot, c.free = c.free[n-1], c.free[:n-1]
		} else {
			slot = int32(len(c.slots))
		}
		c.slots[cluster.Name] = slot
	}
	event := Event{Old: c.at(slot), New: cluster}
	c.pending[slot] = cluster
	return event
}

// Remove removes a cluster, if it exists, and returns the change.
func (c *Cache) Remove(name string) Event {
	c.mu.Lock()
	defer c.mu.Unlock()
	slot, known := c.slots[name]
	if !known {
		return Event{}
	}
	event := Event{Old: c.at(slot)}
	c.pending[slot] = nil
	delete(c.slots, name)
	c.free = append(c.free, slot)
	return event
}

// at returns the current cluster in a slot, including pending changes. Nil: the slot has no cluster.
func (c *Cache) at(slot int32) *Cluster {
	if cluster, pending := c.pending[slot]; pending {
		return cluster
	}
	if c.latest == nil {
		return nil
	}
	return c.latest.at(slot)
}

// Snapshot returns the current fleet. It returns the previous snapshot if nothing has changed.
func (c *Cache) Snapshot() *Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.latest != nil && len(c.pending) == 0 {
		return c.latest
	}
	before := c.latest
	if before == nil {
		before = &Snapshot{}
	}
	next := &Snapshot{
		columns: &c.columns, generation: before.generation + 1,
		present: before.present, size: before.size, rank: before.rank, order: before.order, ordered: before.ordered,
	}
	size := len(before.clusters)
	for slot := range c.pending {
		size = max(size, int(slot)+1)
	}
	next.clusters = make([]*Cluster, size)
	copy(next.clusters, before.clusters)
	changed := make([]int32, 0, len(c.pending))
	members := false
	for slot, cluster := range c.pending {
		old := next.clusters[slot]
		members = members || old == nil || cluster == nil || old.Name != cluster.Name
		next.clusters[slot] = cluster
		changed = append(changed, slot)
	}
	clear(c.pending)
	slices.Sort(changed)
	if members {
		next.arrange(before, changed)
	}
	c.columns.note(next.generation, changed, len(next.clusters))
	c.latest = next
	return next
}

// Snapshot is a fleet at one time. It never changes, and all of its methods may be called concurrently.
//
// Each cluster has a slot, a small number that identifies the cluster in a [Set] and in the columns of a snapshot. A
// cluster keeps its slot while it is in the fleet. The order of slots has no meaning; for the order of names, see
// [Snapshot.Rank].
type Snapshot struct {
	columns    *columns
	generation uint64
	clusters   []*Cluster // by slot, including those that Filter excluded; nil: the slot is unused
	present    Set        // the clusters of this snapshot
	size       int        // of present
	rank       []int32    // by slot: the position of its name among all names
	order      []int32    // slots, sorted by cluster name
	ordered    bool       // the used slots are themselves in the order of names

	// considered are the clusters from which Filter created this snapshot. The zero Set: Filter did not create it.
	considered Set
}

// arrange computes the set, the order and the ranks of the clusters from those of an earlier snapshot and the slots
// that have changed since.
func (s *Snapshot) arrange(before *Snapshot, changed []int32) {
	s.present = NewSet(len(s.clusters))
	for slot, cluster := range s.clusters {
		if cluster != nil {
			s.present.Add(slot)
		}
	}
	byName := func(a, b int32) int { return cmp.Compare(s.clusters[a].Name, s.clusters[b].Name) }
	moved := NewSet(len(s.clusters))
	var came []int32
	for _, slot := range changed {
		cluster := s.clusters[slot]
		if int(slot) < len(before.clusters) && before.clusters[slot] != nil {
			if cluster != nil && cluster.Name == before.clusters[slot].Name {
				continue
			}
			moved.Add(int(slot))
		}
		if cluster != nil {
			came = append(came, slot)
		}
	}
	slices.SortFunc(came, byName)
	s.order = make([]int32, 0, len(before.order)+len(came))
	for _, slot := range before.order {
		if moved.Has(int(slot)) {
			continue
		}
		for len(came) > 0 && byName(came[0], slot) < 0 {
			s.order, came = append(s.order, came[0]), came[1:]
		}
		s.order = append(s.order, slot)
	}
	s.order = append(s.order, came...)
	s.size = len(s.order)
	s.ordered = slices.IsSorted(s.order)
	s.rank = make([]int32, len(s.clusters))
	for rank, slot := range s.order {
		s.rank[slot] = int32(rank)
	}
}

// Filter returns a snapshot of the clusters for which keep returns true. The new snapshot shares the slots, the ranks
// and the columns of s, so that it needs one bit of memory per cluster. The result of keep must depend on the cluster
// only.
//
// Earlier is an earlier result of Filter with an equivalent function, or nil. If it belongs to the same [Cache], Filter
// calls keep only for the clusters that have changed since, and for those that the snapshot of the earlier call did not
// contain.
func (s *Snapshot) Filter(keep func(*Cluster) bool, earlier *Snapshot) *Snapshot {
	next := *s
	next.considered = s.present
	changed, known := s.since(earlier)
	if known && same(earlier.considered, s.present) {
		next.present, next.size = earlier.present, earlier.size
		next.decideAgain(keep, changed)
		return &next
	}
	next.present = NewSet(len(s.clusters))
	undecided := s.present
	if known {
		undecided = s.present.Clone()
		undecided.Discard(earlier.considered)
		next.present.Insert(earlier.present)
		next.present.Retain(s.present)
		for _, slot := range changed {
			if s.present.Has(int(slot)) {
				undecided.Add(int(slot))
				next.present.Remove(int(slot))
			}
		}
	}
	for slot := range undecided.All() {
		if keep(s.clusters[slot]) {
			next.present.Add(slot)
		}
	}
	next.size = next.present.Len()
	return &next
}

// since returns the slots that have changed since an earlier snapshot. known is false if there is no earlier snapshot
// of the same cache, or if the log of changes does not reach back to it.
func (s *Snapshot) since(earlier *Snapshot) (changed []int32, known bool) {
	if earlier == nil || s.columns == nil || earlier.columns != s.columns {
		return nil, false
	}
	return s.columns.since(earlier.generation, s.generation)
}

// decideAgain calls keep again for the clusters that have changed. Most changes do not change the result of keep, so
// the set of the earlier snapshot is shared until one does.
func (s *Snapshot) decideAgain(keep func(*Cluster) bool, changed []int32) {
	ours := false
	for _, i := range changed {
		slot := int(i)
		if !s.considered.Has(slot) || keep(s.clusters[slot]) == s.present.Has(slot) {
			continue
		}
		if !ours {
			s.present, ours = s.present.Clone(), true
		}
		if s.present.Has(slot) {
			s.present.Remove(slot)
			s.size--
		} else {
			s.present.Add(slot)
			s.size++
		}
	}
}

// filtered reports whether Filter created the snapshot.
func (s *Snapshot) filtered() bool { return s.considered.words != nil }

// at returns the cluster in a slot, even if Filter excluded it. The slot may belong only to another snapshot; the
// result is nil then.
func (s *Snapshot) at(slot int32) *Cluster {
	if int(slot) >= len(s.clusters) {
		return nil
	}
	return s.clusters[slot]
}

// changes returns the slots in which two snapshots of a cache differ, sorted and without duplicates. known is false if
// the log of changes does not reach back to the earlier snapshot.
func (s *Snapshot) changes(earlier *Snapshot) (changed []int32, known bool) {
	changed, known = s.since(earlier)
	if s.filtered() || earlier.filtered() {
		differ := NewSet(max(len(s.clusters), len(earlier.clusters)))
		differ.Insert(s.present)
		differ.Discard(earlier.present)
		lost := earlier.present.Clone()
		lost.Discard(s.present)
		differ.Insert(lost)
		for slot := range differ.All() {
			changed = append(changed, int32(slot))
		}
	}
	slices.Sort(changed)
	return slices.Compact(changed), known
}

// Len returns the number of clusters.
func (s *Snapshot) Len() int { return s.size }

// Slots returns the exclusive upper bound of all slots. Some slots may have no cluster.
func (s *Snapshot) Slots() int { return len(s.clusters) }

// Cluster returns the cluster in a slot. Nil: the snapshot has no cluster in this slot.
func (s *Snapshot) Cluster(slot int) *Cluster {
	if !s.present.Has(slot) {
		return nil
	}
	return s.clusters[slot]
}

// Rank returns the position, from 0, of the cluster in a slot in the order of all names. Clusters that
// [Snapshot.Filter] excluded are counted.
func (s *Snapshot) Rank(slot int) int { return int(s.rank[slot]) }

// Slot returns the slot of the cluster with a name.
func (s *Snapshot) Slot(name string) (slot int, found bool) {
	i, found := sort.Find(len(s.order), func(i int) int { return cmp.Compare(name, s.clusters[s.order[i]].Name) })
	if !found || !s.present.Has(int(s.order[i])) {
		return 0, false
	}
	return int(s.order[i]), true
}

// All returns the set of all clusters.
func (s *Snapshot) All() Set { return s.present }
