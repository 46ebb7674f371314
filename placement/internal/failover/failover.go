package failover

import (
	"cmp"
	"slices"
	"time"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// Cluster is one that a placement is on, or should be on.
type Cluster struct {
	Name string
	// Healthy is true while it is known to be well.
	Healthy bool
	// Ready is true once the placed workloads are known to be available. It is evaluated for published clusters only.
	Ready bool
	// Replaces is the cluster whose place it has taken; empty: none.
	Replaces string
	// Leaves is true for a cluster that was asked to leave the fleet. It waits for a replacement only if one was
	// chosen for every place, and neither waits for its turn nor counts for the rate.
	Leaves bool
	// Evicted is true for a cluster that an eviction by hand names: it waits for a replacement only while it is
	// healthy.
	Evicted bool
}

// Observed is what a plan is made of.
type Observed struct {
	// Published are the clusters that the placement is on, in any order.
	Published []Cluster
	// Chosen are the clusters that it should be on, the best first.
	Chosen []string
	// Wanted is how many it wants; negative: all that can be.
	Wanted int
	// Gone tells the published clusters that are not in the fleet any more. Nil: none.
	Gone map[string]bool
	// Evictions are when clusters were evicted, in any order, as [Remember] has them; those before the period do not
	// matter.
	Evictions []v1alpha1.EvictionCount
	// Policy is valid.
	Policy v1alpha1.FailoverPolicy
	Now    time.Time
}

// Reasons why a cluster is published that is not chosen.
const (
	WaitsForReplacement = "WaitsForReplacement" // nothing is ready in its place
	WaitsForTurn        = "WaitsForTurn"        // enough were evicted in this period
)

// A Step is where a placement is to be now.
type Step struct {
	// Publish are the clusters: the chosen ones in their order, then those that wait to be evicted.
	Publish []Decision
	// Evict are those that go now.
	Evict []string
	// Counted is how many of them count for the rate. Call [Remember] with it before they go.
	Counted int
	// Again is when to plan anew though nothing has changed; zero: never.
	Again time.Time
}

// Decision is a cluster to be on, and why.
type Decision struct {
	Cluster string
	// Reason is v1alpha1.ReasonScheduled, or what the cluster waits for.
	Reason string
	// Replaces is the cluster whose place it takes; empty: none.
	Replaces string
}

// The defaults of a FailoverPolicy.
const (
	defaultPeriod       = time.Minute
	defaultMaxEvictions = 1
)

// Plan returns the next step from where a placement is to where it should be.
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
	// Who is not healthy goes first: that helps most, and costs least.
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
	turns, next := o.turns()
	protect := o.protected(ready)
	var waiting []Decision
	for i, c := range leaving {
		healthyLeft := len(leaving) - i // if c is healthy: so are all after it
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
	step.Publish = append(o.come(published, len(waiting), replaced(o, leaving)), waiting...)
	return step
}

// replaces reports whether a chosen cluster is ready in the place of one that leaves.
func (o *Observed) replaces(c Cluster) bool {
	place := cmp.Or(c.Replaces, c.Name)
	return slices.ContainsFunc(o.Published, func(other Cluster) bool {
		return other.Healthy && other.Ready && slices.Contains(o.Chosen, other.Name) &&
			(other.Name == place || other.Replaces == place)
	})
}

// protected is how many healthy clusters must stay although they should go.
func (o *Observed) protected(ready int) int {
	if o.Wanted < 0 || o.Policy.Replace == v1alpha1.EvictFirst {
		return 0
	}
	return max(0, o.Wanted-ready)
}

// come are the chosen clusters that are published already, and those that come now.
func (o *Observed) come(published map[string]Cluster, waiting int, places []string) []Decision {
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
		if d.Replaces == name { // it is back where it came from
			d.Replaces = ""
		}
		decisions = append(decisions, d)
	}
	return decisions
}

// replaced are the places that those leave which go, for those who come: the places that they had taken themselves,
// or their own; but no place that another cluster has.
func replaced(o Observed, leaving []Cluster) []string {
	if o.Wanted < 0 { // who wants all has no places
		return nil
	}
	taken := set(o.Chosen)
	for _, c := range o.Published {
		if taken[c.Name] {
			taken[c.Replaces] = true
		}
	}
	var places []string
	for _, c := range slices.Concat(leaving, gone(o)) {
		if place := cmp.Or(c.Replaces, c.Name); !taken[place] {
			taken[place] = true
			places = append(places, place)
		}
	}
	slices.Sort(places)
	return places
}

func gone(o Observed) []Cluster {
	var left []Cluster
	for _, c := range o.Published {
		if o.Gone[c.Name] {
			left = append(left, c)
		}
	}
	return left
}

// turns are how many may be evicted now. If none, the next may be at the time.
func (o *Observed) turns() (turns int, next time.Time) {
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

// Bound are the clusters that a decision is to hold on to, given those that are published: these themselves, or, to
// return, the clusters that they have replaced and that are able to have it back.
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
