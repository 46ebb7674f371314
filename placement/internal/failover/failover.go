package failover

import (
	"cmp"
	"slices"
	"time"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// Cluster is a cluster that a placement is on, or should be on.
type Cluster struct {
	Name string
	// Healthy is true while the cluster is known to be healthy.
	Healthy bool
	// Ready is true if the placed workloads are known to be available. It is evaluated for published clusters only.
	Ready bool
	// Replaces is the cluster that this cluster has replaced. Empty: none.
	Replaces string
	// Leaves is true for a cluster that was asked to leave the fleet. It waits for a replacement only if a cluster was
	// chosen for every place. It is not subject to the rate, and does not count for it.
	Leaves bool
	// Evicted is true for a cluster that a PlacementEviction names. It waits for a replacement only while it is healthy.
	Evicted bool
}

// Observed is the input of [Plan].
type Observed struct {
	// Published are the clusters that the placement is on, in any order.
	Published []Cluster
	// Chosen are the clusters that the placement should be on, the best first.
	Chosen []string
	// Wanted is the desired number of clusters. Negative: all possible clusters.
	Wanted int
	// Gone contains the published clusters that are not in the fleet any more. Nil: none.
	Gone map[string]bool
	// Evictions are the times of earlier evictions, in any order, as returned by [Remember]. Evictions before the period
	// are ignored.
	Evictions []v1alpha1.EvictionCount
	// Policy must be valid.
	Policy v1alpha1.FailoverPolicy
	Now    time.Time
}

// The reasons to publish a cluster that is not chosen.
const (
	WaitsForReplacement = "WaitsForReplacement" // no replacement is ready
	WaitsForTurn        = "WaitsForTurn"        // the maximum number of clusters was evicted in this period
)

// Step is the result of [Plan].
type Step struct {
	// Publish are the clusters that the placement must be on now: the chosen ones in their order, then those that wait to
	// be evicted.
	Publish []Decision
	// Evict are the clusters to leave now.
	Evict []string
	// Counted is the number of them that count for the rate. Call [Remember] with it before they are left.
	Counted int
	// Again is the time to call Plan again even if nothing changes. Zero: never.
	Again time.Time
}

// Decision is a cluster that the placement must be on, and the reason.
type Decision struct {
	Cluster string
	// Reason is v1alpha1.ReasonScheduled, or the reason why the cluster waits to be left.
	Reason string
	// Replaces is the cluster that this cluster replaces. Empty: none.
	Replaces string
}

// The defaults of a FailoverPolicy.
const (
	defaultPeriod       = time.Minute
	defaultMaxEvictions = 1
)

// Plan returns the next step from the published clusters to the chosen ones.
func Plan(o Observed) Step {
	chosen, published := set(o.Chosen), map[string]Cluster{}
	var leaving []Cluster
	ready := 0
	for _, c := range o.Published {
		if o.Gone[c.Name] {
			continue
		}
		published[c.Name] = c
		switch {
		case !chosen[c.Name]:
			leaving = append(leaving, c)
		case c.Ready && c.Healthy:
			ready++
		}
	}
	// Unhealthy clusters are left first: this has the largest benefit and the least cost.
	slices.SortFunc(leaving, func(a, b Cluster) int {
		if a.Healthy != b.Healthy {
			if a.Healthy {
				return 1
			}
			return -1
		}
		return cmp.Compare(a.Name, b.Name)
	})
	step := Step{}
	turns, next := o.allowedEvictions()
	protect := o.protected(ready)
	var waiting []Decision
	for i, c := range leaving {
		healthyLeft := len(leaving) - i // if c is healthy, all clusters after it are
		departs := c.Leaves && len(o.Chosen) < o.Wanted
		switch {
		case !departs && c.Healthy && healthyLeft <= protect,
			!departs && !c.Healthy && protect > 0 && !c.Evicted && !o.replaces(c):
			waiting = append(waiting, Decision{c.Name, WaitsForReplacement, c.Replaces})
		case c.Leaves:
			step.Evict = append(step.Evict, c.Name)
		case turns == 0:
			waiting = append(waiting, Decision{c.Name, WaitsForTurn, c.Replaces})
			step.Again = next
		default:
			step.Evict = append(step.Evict, c.Name)
			step.Counted++
			if turns--; turns == 0 {
				next = o.Now.Add(period(o.Policy))
				if all := recent(o.Evictions, o.Policy, o.Now); len(all) > 0 {
					next = all[0].Time.Add(period(o.Policy))
				}
			}
		}
	}
	step.Publish = append(o.publishChosen(published, len(waiting), replaced(o, leaving)), waiting...)
	return step
}

// replaces reports whether the replacement of a cluster that is left is chosen and ready.
func (o *Observed) replaces(c Cluster) bool {
	place := cmp.Or(c.Replaces, c.Name)
	return slices.ContainsFunc(o.Published, func(other Cluster) bool {
		return other.Healthy && other.Ready && slices.Contains(o.Chosen, other.Name) &&
			(other.Name == place || other.Replaces == place)
	})
}

// protected returns the number of healthy clusters that must stay although they are not chosen.
func (o *Observed) protected(ready int) int {
	if o.Wanted < 0 || o.Policy.Replace == v1alpha1.EvictFirst {
		return 0
	}
	return max(0, o.Wanted-ready)
}

// publishChosen returns the chosen clusters that are published already, and those that are added now.
func (o *Observed) publishChosen(published map[string]Cluster, waiting int, places []string) []Decision {
	room := len(o.Chosen)
	if o.Policy.Replace == v1alpha1.EvictFirst && o.Wanted >= 0 {
		room = o.Wanted - waiting
		for _, name := range o.Chosen {
			if _, is := published[name]; is {
				room--
			}
		}
	}
	var decisions []Decision
	for _, name := range o.Chosen {
		c, is := published[name]
		d := Decision{name, v1alpha1.ReasonScheduled, c.Replaces}
		if !is {
			if room <= 0 {
				continue
			}
			room--
			if len(places) > 0 {
				d.Replaces, places = places[0], places[1:]
			}
		}
		if d.Replaces == name { // the placement has returned to the replaced cluster
			d.Replaces = ""
		}
		decisions = append(decisions, d)
	}
	return decisions
}

// replaced returns the clusters for which added clusters are replacements: the clusters that are left, or the clusters
// that these had replaced. A cluster that has a replacement already is not returned.
func replaced(o Observed, leaving []Cluster) []string {
	if o.Wanted < 0 { // a placement on all clusters replaces none
		return nil
	}
	taken := set(o.Chosen)
	for _, c := range o.Published {
		if taken[c.Name] {
			taken[c.Replaces] = true
		}
	}
	var places []string
	for _, c := range slices.Concat(leaving, goneClusters(o)) {
		if place := cmp.Or(c.Replaces, c.Name); !taken[place] {
			taken[place] = true
			places = append(places, place)
		}
	}
	slices.Sort(places)
	return places
}

func goneClusters(o Observed) []Cluster {
	var left []Cluster
	for _, c := range o.Published {
		if o.Gone[c.Name] {
			left = append(left, c)
		}
	}
	return left
}

// allowedEvictions returns the number of clusters that may be evicted now. If it is 0, next is the time of the next
// eviction.
func (o *Observed) allowedEvictions() (turns int, next time.Time) {
	all, total, limit := recent(o.Evictions, o.Policy, o.Now), 0, maxEvictions(o.Policy)
	for _, e := range all {
		total += int(e.Count)
	}
	for _, e := range all {
		if total < limit {
			break
		}
		total -= int(e.Count)
		next = e.Time.Add(period(o.Policy))
	}
	if !next.IsZero() {
		return 0, next
	}
	return limit - total, time.Time{}
}

// Bound returns the clusters that a decision must prefer, for the published ones: each of them, or, if recovery is
// Return, the cluster that it has replaced if able returns true for that cluster.
func Bound(published []Cluster, recovery v1alpha1.RecoveryPolicy, able func(cluster string) bool) []string {
	bound := make([]string, 0, len(published))
	for _, c := range published {
		if recovery == v1alpha1.Return && c.Replaces != "" && able(c.Replaces) {
			bound = append(bound, c.Replaces)
		} else {
			bound = append(bound, c.Name)
		}
	}
	slices.Sort(bound)
	return slices.Compact(bound)
}

func set(names []string) map[string]bool {
	in := make(map[string]bool, len(names))
	for _, name := range names {
		in[name] = true
	}
	return in
}
