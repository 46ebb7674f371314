package placement

import (
	"slices"
	"sync"

	"github.com/muster-sdk/muster/scheduler"
)

// countedFleet is the fleet with the number of placements on each cluster. A changed count is not an event: existing
// decisions do not move when placements are added or removed. A changed count costs one entry in the next snapshot.
type countedFleet struct {
	fleet scheduler.Cache
	off   bool // the source counts placements

	mu       sync.Mutex
	clusters map[string]*scheduler.Cluster // with counts, as in the fleet
	counts   map[string]int                // also of clusters that do not exist
	on       map[key][]string              // sorted
}

func newCountedFleet(source ClusterSource) *countedFleet {
	counting, is := source.(CountingSource)
	return &countedFleet{
		off: is && counting.CountsPlacements(), clusters: map[string]*scheduler.Cluster{}, counts: map[string]int{},
		on: map[key][]string{},
	}
}

// set adds or updates a cluster.
func (c *countedFleet) set(cluster *scheduler.Cluster) scheduler.Event {
	if c.off {
		return c.fleet.Update(cluster)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.update(cluster)
}

// update stores a copy of a cluster with its count in the fleet. It does not modify its argument.
func (c *countedFleet) update(cluster *scheduler.Cluster) scheduler.Event {
	counted := *cluster
	counted.Placements = c.counts[cluster.Name]
	c.clusters[cluster.Name] = &counted
	return c.fleet.Update(&counted)
}

// remove removes a cluster.
func (c *countedFleet) remove(name string) scheduler.Event {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.clusters, name)
	return c.fleet.Remove(name)
}

// place records the clusters of a placement. Empty: the placement does not exist any more.
func (c *countedFleet) place(k key, clusters []string) { c.claim(k, clusters, nil) }

// claim records the clusters of a placement that was decided on a snapshot, and returns true. If the count of a newly
// selected cluster has changed since the snapshot, claim records nothing and returns false. If decided is nil, claim
// does not compare the counts.
func (c *countedFleet) claim(k key, clusters []string, decided *scheduler.Snapshot) bool {
	if c.off {
		return true
	}
	clusters = slices.Sorted(slices.Values(clusters))
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.on[k]
	came, left := difference(clusters, before), difference(before, clusters)
	if decided != nil {
		for _, name := range came {
			if slot, there := decided.Slot(name); there && decided.Cluster(slot).Placements != c.counts[name] {
				return false
			}
		}
	}
	for _, name := range came {
		c.count(name, 1)
	}
	for _, name := range left {
		c.count(name, -1)
	}
	if c.on[k] = clusters; len(clusters) == 0 {
		delete(c.on, k)
	}
	return true
}

func (c *countedFleet) count(name string, by int) {
	if c.counts[name] += by; c.counts[name] == 0 {
		delete(c.counts, name)
	}
	if cluster := c.clusters[name]; cluster != nil {
		c.update(cluster)
	}
}

// difference returns the names of one sorted list that are not in another.
func difference(names, others []string) []string {
	var more []string
	for _, name := range names {
		for len(others) > 0 && others[0] < name {
			others = others[1:]
		}
		if len(others) == 0 || others[0] != name {
			more = append(more, name)
		}
	}
	return more
}
