package placement

import (
	"slices"
	"sync"

	"github.com/muster-sdk/muster/scheduler"
)

// census counts the placements on each cluster, and keeps the counts in the fleet that is decided on. A change of a count is no event: what
// is decided stays where it is when others come and go. It costs no more than an entry in what the next snapshot has to take in.
type countedFleet struct {
	fleet scheduler.Cache
	off   bool // the clusters have counts of their own

	mu       sync.Mutex
	clusters map[string]*scheduler.Cluster // as they are in the fleet
	counts   map[string]int                // also of clusters that are not there, yet or any more
	on       map[key][]string              // sorted
}

func newCountedFleet(source ClusterSource) *countedFleet {
	counting, is := source.(CountingSource)
	return &countedFleet{
		off: is && counting.CountsPlacements(), clusters: map[string]*scheduler.Cluster{}, counts: map[string]int{}, on: map[key][]string{},
	}
}

// set takes in a cluster.
func (c *countedFleet) set(cluster *scheduler.Cluster) scheduler.Event {
	if c.off {
		return c.fleet.Update(cluster)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.update(cluster)
}

// update puts a cluster into the fleet with its count. The cluster itself may be in the hands of others.
func (c *countedFleet) update(cluster *scheduler.Cluster) scheduler.Event {
	counted := *cluster
	counted.Placements = c.counts[cluster.Name]
	c.clusters[cluster.Name] = &counted
	return c.fleet.Update(&counted)
}

// remove takes out a cluster.
func (c *countedFleet) remove(name string) scheduler.Event {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.clusters, name)
	return c.fleet.Remove(name)
}

// place notes which clusters a placement is on from now on; none: it is gone.
func (c *countedFleet) place(k key, clusters []string) { c.claim(k, clusters, nil) }

// claim notes which clusters a placement is on from now on, as it was decided on a snapshot, and reports true; unless others have come to or
// left one meanwhile that the placement comes to: then it notes nothing, for the decision was made on wrong counts. Without a snapshot it
// does not look.
func (c *countedFleet) claim(k key, clusters []string, decided *scheduler.Snapshot) bool {
	if c.off {
		return true
	}
	clusters = slices.Sorted(slices.Values(clusters))
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.on[k]
	came, left := beyond(clusters, before), beyond(before, clusters)
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

// beyond are the names of one sorted list that are not in another.
func beyond(names, others []string) []string {
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
