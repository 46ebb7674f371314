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
	used   map[key][]string // by user: the ids of its fleets
}

// filteredFleet is a view of another fleet that excludes some of its clusters.
type filteredFleet struct {
	lacks func(*scheduler.Cluster) bool
	users int

	mu     sync.Mutex
	whole  *scheduler.Snapshot // of the other fleet, at the last call
	latest *scheduler.Snapshot // the result of the last call
}

// use returns the view of the fleet without the clusters for which lacks returns true; id identifies the function. For
// the empty id it returns nil, which excludes no cluster. Each use is followed by [filteredFleets.keep].
func (w *filteredFleets) use(k key, id string, lacks func(*scheduler.Cluster) bool) *filteredFleet {
	if id == "" {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fleets == nil {
		w.fleets, w.used = map[string]*filteredFleet{}, map[key][]string{}
	}
	fleet := w.fleets[id]
	if fleet == nil {
		fleet = &filteredFleet{lacks: lacks}
		w.fleets[id] = fleet
	}
	if !slices.Contains(w.used[k], id) {
		w.used[k] = append(w.used[k], id)
		fleet.users++
	}
	return fleet
}

// keep ends the use of all fleets by a placement except for the one with this id. Unused fleets are removed.
func (w *filteredFleets) keep(k key, id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	used := slices.DeleteFunc(w.used[k], func(other string) bool {
		if other == id {
			return false
		}
		if fleet := w.fleets[other]; fleet.users == 1 {
			delete(w.fleets, other)
		} else {
			fleet.users--
		}
		return true
	})
	if len(used) > 0 {
		w.used[k] = used
	} else {
		delete(w.used, k)
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

// of returns a snapshot without the excluded clusters. It calls lacks only for the clusters that have changed since the
// last call.
func (l *filteredFleet) of(whole *scheduler.Snapshot) *scheduler.Snapshot {
	if l == nil {
		return whole
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.whole != whole {
		kept := func(cluster *scheduler.Cluster) bool { return !l.lacks(cluster) }
		l.whole, l.latest = whole, whole.Filter(kept, l.latest)
	}
	return l.latest
}
