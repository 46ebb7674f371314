package placement

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-sdk/muster/placement/internal/decision"
	"github.com/muster-sdk/muster/placement/internal/failover"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// bound returns the clusters that the next decision prefers, which are the current ones. If the failover policy returns
// to recovered clusters, a recovered cluster takes the place of the cluster that replaces it, unless it is evicted.
func (p *placementState) bound(placement *v1alpha1.Placement, snapshot *scheduler.Snapshot,
	excluded map[string]bool) []string {
	recovery := v1alpha1.Stay
	if f := placement.Spec.Failover; f != nil {
		recovery = f.Recovery
	}
	return failover.Bound(publishedOf(p.last.slices), recovery, func(name string) bool {
		slot, there := snapshot.Slot(name)
		return there && !excluded[name] && recovered(snapshot.Cluster(slot))
	})
}

// follows returns the clusters whose changes enqueue a placement: the current clusters, and those to which it would
// return.
func follows(placement *v1alpha1.Placement, all []published) []string {
	clusters := make([]string, 0, len(all))
	for _, p := range all {
		clusters = append(clusters, p.cluster.Name)
		if f := placement.Spec.Failover; f != nil && f.Recovery == v1alpha1.Return && p.replaces != "" {
			clusters = append(clusters, p.replaces)
		}
	}
	return clusters
}

// recovered reports whether a placement can return to a cluster.
func recovered(c *scheduler.Cluster) bool {
	return c.Joined && !c.Leaving && c.Healthy &&
		!slices.ContainsFunc(c.Taints, func(t corev1.Taint) bool { return t.Effect != corev1.TaintEffectPreferNoSchedule })
}

// publish returns the clusters of the placement after a decision, and when to decide again. With a failover policy,
// clusters that wait to be left are among them. Changes that a user requested take effect immediately.
func (d *decisionController) publish(a *attempt, result scheduler.Result) step {
	s := step{result: result, all: asChosen(result.Chosen)}
	policy := a.placement.Spec.Failover
	if policy != nil {
		s.recent = a.placement.Status.RecentEvictions
	}
	if !a.fails {
		return s
	}
	clusters := map[string]*scheduler.Cluster{}
	o := failover.Observed{Wanted: result.Wanted, Gone: map[string]bool{}, Evictions: s.recent, Policy: *policy,
		Now: a.request.Now}
	for _, choice := range result.Chosen {
		clusters[choice.Cluster.Name] = choice.Cluster
		o.Chosen = append(o.Chosen, choice.Cluster.Name)
	}
	for _, c := range publishedOf(a.p.last.slices) {
		if cluster := a.inFleet(c.Name); cluster != nil {
			clusters[c.Name] = cluster
			c.Healthy = cluster.Healthy
			c.Leaves = cluster.Leaving
			c.Evicted = slices.ContainsFunc(a.evictions, func(e *v1alpha1.PlacementEviction) bool {
				return e.Spec.Cluster == c.Name
			})
			c.Ready = c.Healthy && d.available(a, c.Name)
		} else {
			o.Gone[c.Name] = true
		}
		o.Published = append(o.Published, c)
	}
	planned := failover.Plan(o)
	if s.all, s.left = nil, planned.Evict; len(s.left) > 0 {
		s.recent = failover.Remember(s.recent, planned.Counted, *policy, o.Now)
		s.counts = planned.Counted > 0
	}
	waits := false
	for _, decided := range planned.Publish {
		s.all = append(s.all, published{clusters[decided.Cluster], decided.Reason, decided.Replaces})
		waits = waits || decided.Reason == failover.WaitsForReplacement
	}
	if s.again = planned.Again; waits {
		d.await(a, &s)
	}
	return s
}

// publishedOf returns the clusters of slices.
func publishedOf(laid []decision.Slice) []failover.Cluster {
	var clusters []failover.Cluster
	for _, slice := range laid {
		for _, d := range slice.Decisions {
			clusters = append(clusters, failover.Cluster{Name: d.ClusterName, Replaces: d.Replaces})
		}
	}
	return clusters
}

// namesOf returns the names of the clusters of slices.
func namesOf(laid []decision.Slice) map[string]bool {
	names := map[string]bool{}
	for _, slice := range laid {
		for _, d := range slice.Decisions {
			names[d.ClusterName] = true
		}
	}
	return names
}

func setOf(names []string) map[string]bool {
	in := make(map[string]bool, len(names))
	for _, name := range names {
		in[name] = true
	}
	return in
}
