package placement

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/placement/decision"
	"github.com/muster-sdk/muster/placement/failover"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// bound are the clusters that the next decision is to hold on to.
func (p *placed) bound(placement *v1alpha1.Placement, snapshot *scheduler.Snapshot) []string {
	recovery := v1alpha1.Stay
	if f := placement.Spec.Failover; f != nil {
		recovery = f.Recovery
	}
	return failover.Bound(publishedOf(p.laid), recovery, func(name string) bool {
		slot, there := snapshot.Slot(name)
		return there && recovered(snapshot.Cluster(slot))
	})
}

// follows are the clusters whose changes have a placement decided anew: those that it is on, and those that it would return to.
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

// recovered reports whether nothing speaks against going back to a cluster.
func recovered(c *scheduler.Cluster) bool {
	return c.Joined && !c.Leaving && c.Healthy &&
		!slices.ContainsFunc(c.Taints, func(t corev1.Taint) bool { return t.Effect != corev1.TaintEffectPreferNoSchedule })
}

// lookAgainWhileWaiting is how often [Options.Ready] is asked of a replacement.
const lookAgainWhileWaiting = 2 * time.Second

// publish says which clusters the placement is to be on now, and when to look again because of that: what was chosen, and, if it has a
// policy of failover, those that have to wait until they are left. What a person has asked for takes effect at once.
func (d *deciding) publish(placement *v1alpha1.Placement, p *placed, snapshot *scheduler.Snapshot, result *scheduler.Result) (_ []published, again time.Time) {
	before := p.decided
	if before == 0 {
		before = placement.Status.ObservedGeneration
	}
	if placement.Spec.Failover == nil || len(p.laid) == 0 || before != placement.Generation || reschedule(placement) {
		p.evictions = nil
		return asChosen(result.Chosen), time.Time{}
	}
	clusters := map[string]*scheduler.Cluster{}
	o := failover.Observed{
		Wanted: result.Wanted, Gone: map[string]bool{}, Evictions: p.evictions, Policy: *placement.Spec.Failover, Now: d.Clock.Now(),
	}
	for _, choice := range result.Chosen {
		clusters[choice.Cluster.Name] = choice.Cluster
		o.Chosen = append(o.Chosen, choice.Cluster.Name)
	}
	for _, c := range publishedOf(p.laid) {
		if slot, there := snapshot.Slot(c.Name); there && snapshot.Cluster(slot).Joined {
			cluster := snapshot.Cluster(slot)
			clusters[c.Name] = cluster
			// Who leaves the fleet must not wait for a replacement that there is not.
			c.Healthy = cluster.Healthy && (!cluster.Leaving || result.Missing() == 0)
			c.Ready = c.Healthy && d.Ready(client.ObjectKeyFromObject(placement), c.Name)
		} else {
			o.Gone[c.Name] = true
		}
		o.Published = append(o.Published, c)
	}
	step := failover.Plan(o)
	p.evictions = slices.DeleteFunc(p.evictions, func(at time.Time) bool { return o.Now.Sub(at) > 24*time.Hour }) // the longest period
	for range step.Evict {
		p.evictions = append(p.evictions, o.Now)
	}
	var all []published
	for _, s := range step.Publish {
		all = append(all, published{clusters[s.Cluster], s.Reason, s.Replaces})
		if s.Reason == failover.WaitsForReplacement && result.Missing() == 0 {
			again = o.Now.Add(lookAgainWhileWaiting)
		}
	}
	return all, earliest(step.Again, again)
}

// publishedOf are the clusters of slices.
func publishedOf(laid []decision.Slice) []failover.Cluster {
	var clusters []failover.Cluster
	for _, slice := range laid {
		for _, d := range slice.Decisions {
			clusters = append(clusters, failover.Cluster{Name: d.ClusterName, Replaces: d.Replaces})
		}
	}
	return clusters
}

// earliest is the earlier of two times, of which zero is never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
