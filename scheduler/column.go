package scheduler

import (
	"slices"
	"sort"
	"sync"
)

// A column has one value per cluster, indexed by slot, that does not change until the cluster changes. The first use
// computes all values; later uses recompute only the values of changed clusters. All decisions share the column.
// Plugins should therefore keep facts about a single cluster in a column.

// Column returns a slice with one value for each slot. The value of a slot without a cluster has no meaning. The key
// identifies the values: calls with the same key and type must pass the same function, and its result must depend on
// the cluster only. The slice is shared, also with snapshots of [Snapshot.Filter], and must not be changed.
//
// Column is a function because methods have no type parameters.
func Column[T comparable](s *Snapshot, key string, of func(*Cluster) T) []T {
	return resolve(s, columnKey[T]{key}, func(old []T, changed []int32) []T {
		if old == nil {
			values := make([]T, len(s.clusters))
			for slot, cluster := range s.clusters {
				if cluster != nil {
					values[slot] = of(cluster)
				}
			}
			return values
		}
		values, ours := old, false
		if len(old) != len(s.clusters) {
			values, ours = make([]T, len(s.clusters)), true
			copy(values, old)
		}
		for _, slot := range changed {
			if int(slot) >= len(values) {
				continue
			}
			var value T
			if cluster := s.clusters[slot]; cluster != nil {
				value = of(cluster)
			}
			if value == values[slot] {
				continue
			}
			if !ours {
				values, ours = slices.Clone(values), true
			}
			values[slot] = value
		}
		return values
	})
}

// Where returns the set of clusters for which a function returns true. The rules of [Column] apply.
func (s *Snapshot) Where(key string, holds func(*Cluster) bool) Set {
	set := s.where(key, holds)
	if s.filtered() {
		return within(set, s.present)
	}
	return set
}

func (s *Snapshot) where(key string, holds func(*Cluster) bool) Set {
	return resolve(s, setKey(key), func(old Set, changed []int32) Set {
		if old.words == nil {
			set := NewSet(len(s.clusters))
			for slot, cluster := range s.clusters {
				if cluster != nil && holds(cluster) {
					set.Add(slot)
				}
			}
			return set
		}
		set, ours := old, false
		if words := (len(s.clusters) + wordBits - 1) / wordBits; len(old.words) != words {
			set, ours = NewSet(len(s.clusters)), true
			copy(set.words, old.words)
		}
		for _, slot := range changed {
			// If old belongs to a later snapshot, it may contain slots that this snapshot does not have.
			cluster := s.at(slot)
			holds := cluster != nil && holds(cluster)
			if holds == set.Has(int(slot)) {
				continue
			}
			if !ours {
				set, ours = set.Clone(), true
			}
			if holds {
				set.Add(int(slot))
			} else {
				set.Remove(int(slot))
			}
		}
		return set
	})
}

type (
	columnKey[T comparable] struct{ name string }
	setKey                  string
)

// columns are the columns of all snapshots of a cache. Each entry has the generation of the latest snapshot that used
// the column. For another snapshot, older or newer, the values of the clusters that changed in between are recomputed.
type columns struct {
	mu      sync.Mutex
	entries map[any]*entry
	log     []change
	// The log contains the changes after generation begin, up to generation latest.
	begin, latest uint64
}

type entry struct {
	generation uint64
	value      any
}

// change records that a slot changed from the previous generation to this one.
type change struct {
	generation uint64
	slot       int32
}

const (
	// minLog is the minimum number of changes that the log keeps. If a column was not used during more changes than the
	// fleet has clusters, a full computation is no more expensive.
	minLog = 1024
	// idle is the number of generations for which an unused column is kept.
	idle = 4096
)

// note logs the changes from the previous generation to this one. It also deletes unused columns.
func (c *columns) note(generation uint64, changed []int32, clusters int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, slot := range changed {
		c.log = append(c.log, change{generation, slot})
	}
	c.latest = generation
	if keep := max(minLog, clusters); len(c.log) > 2*keep {
		c.begin = c.log[len(c.log)-keep-1].generation
		from := sort.Search(len(c.log), func(i int) bool { return c.log[i].generation > c.begin })
		c.log = slices.Clone(c.log[from:])
	}
	if generation%idle == 0 {
		for key, entry := range c.entries {
			if generation-entry.generation >= idle {
				delete(c.entries, key)
			}
		}
	}
}

// between returns the slots that changed between two generations, in either order. known is false if the log does not
// reach back to the earlier generation.
func (c *columns) between(a, b uint64) (changed []int32, known bool) {
	from, to := min(a, b), max(a, b)
	if from < c.begin {
		return nil, false
	}
	first := sort.Search(len(c.log), func(i int) bool { return c.log[i].generation > from })
	for _, change := range c.log[first:] {
		if change.generation > to {
			break
		}
		changed = append(changed, change.slot)
	}
	return changed, true
}

// since calls between with the lock held.
func (c *columns) since(a, b uint64) (changed []int32, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.between(a, b)
}

// resolve returns the value of a column for a snapshot. The update function computes it from the value for another
// snapshot and the slots that changed in between. If old is the zero value, update computes it from the snapshot alone.
func resolve[K comparable, V any](s *Snapshot, key K, update func(old V, changed []int32) V) V {
	var old V
	if s.columns == nil {
		return update(old, nil)
	}
	c := s.columns
	c.mu.Lock()
	found := c.entries[key]
	if found != nil && found.generation == s.generation {
		defer c.mu.Unlock()
		return found.value.(V)
	}
	var changed []int32
	if found != nil {
		var known bool
		if changed, known = c.between(found.generation, s.generation); known {
			old = found.value.(V)
		}
	}
	c.mu.Unlock()

	value := update(old, changed)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries == nil {
		c.entries = map[any]*entry{}
	}
	if latest := c.entries[key]; latest == nil || latest.generation < s.generation {
		c.entries[key] = &entry{s.generation, value}
	}
	return value
}
