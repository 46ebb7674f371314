package placement

import (
	"slices"
	"strings"
	"sync"

	"github.com/muster-sdk/muster/scheduler"
)

// filteredFleets are fleets without some clusters, such as evicted ones. Placements that exclude the same clusters
// share one fleet. A Decider cannot choose a cluster that is not in its snapshot.
type filteredFleets struct {
	mu     sync.Mutex
	fleets map[string]*filteredFleet
}

// filteredFleet follows another fleet without some of its clusters.
type filteredFleet struct {
	lacks func(*scheduler.Cluster) bool
	users map[key]bool

	mu     sync.Mutex
	cache  scheduler.Cache
	latest *scheduler.Snapshot // of the other fleet, at the last call
}

// use returns the fleet without the clusters that lacks reports; id identifies the function. The empty id returns nil,
// which excludes none. Each use is followed by [filteredFleets.keep].
func (w *filteredFleets) use(k key, id string, lacks func(*scheduler.Cluster) bool) *filteredFleet {
	if id == "" {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	fleet := w.fleets[id]
	if fleet == nil {
		if w.fleets == nil {
			w.fleets = map[string]*filteredFleet{}
		}
		fleet = &filteredFleet{lacks: lacks, users: map[key]bool{}}
		w.fleets[id] = fleet
	}
	fleet.users[k] = true
	return fleet
}

// keep ends the use of all fleets by a placement except for the one with this id. Unused fleets are removed.
func (w *filteredFleets) keep(k key, id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for other, fleet := range w.fleets {
		if other == id {
			continue
		}
		if delete(fleet.users, k); len(fleet.users) == 0 {
			delete(w.fleets, other)
		}
	}
}

// named returns a function that reports whether the name of a cluster is in a list.
func named(names []string) func(*scheduler.Cluster) bool {
	in := setOf(names)
	return func(cluster *scheduler.Cluster) bool { return in[cluster.Name] }
}

func identify(clusters []string) (string, []string) {
	clusters = slices.Compact(slices.Sorted(slices.Values(clusters)))
	return strings.Join(clusters, ","), clusters
}

// of returns a snapshot without the excluded clusters. Clusters that did not change since the last snapshot are
// compared by their address only.
func (l *filteredFleet) of(whole *scheduler.Snapshot) *scheduler.Snapshot {
	if l == nil {
		return whole
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.latest
	if before == whole {
		return l.cache.Snapshot()
	}
	at := func(s *scheduler.Snapshot, slot int) *scheduler.Cluster {
		if s == nil || slot >= s.Slots() {
			return nil
		}
		return s.Cluster(slot)
	}
	slots := whole.Slots()
	if before != nil {
		slots = max(slots, before.Slots())
	}
	var came []*scheduler.Cluster
	for slot := range slots {
		was, is := at(before, slot), at(whole, slot)
		if was == is {
			continue
		}
		lacking := is == nil || l.lacks(is)
		if was != nil && (lacking || is.Name != was.Name) {
			l.cache.Remove(was.Name) // it can be in another slot now
		}
		if !lacking {
			came = append(came, is)
		}
	}
	for _, cluster := range came {
		l.cache.Update(cluster)
	}
	l.latest = whole
	return l.cache.Snapshot()
}
