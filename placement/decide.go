package placement

import (
	"context"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/placement/internal/eviction"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// attempt is the input of one decision.
type attempt struct {
	k         key
	placement *v1alpha1.Placement
	p         *placementState
	snapshot  *scheduler.Snapshot
	request   *scheduler.Request
	before    []*v1alpha1.PlacementDecision
	evictions []*v1alpha1.PlacementEviction
	fails     bool            // the failover policy applies
	ready     map[string]bool // the results of available
	access    access
}

// step is the result of one decision, after failover and evictions.
type step struct {
	result   scheduler.Result
	all      []published
	left     []string                 // the clusters that the failover evicts
	recent   []v1alpha1.EvictionCount // the evictions of failover
	counts   bool                     // this step adds to recent
	awaits   bool                     // the placement waits for clusters to become ready
	soon     bool                     // decide again immediately
	again    time.Time
	excluded []string // the clusters that were excluded
	// waiting contains, by cluster, the messages of the evictions that the disruption budget does not allow.
	waiting map[string]string
}

func (s *step) names() []string {
	names := make([]string, len(s.all))
	for i, p := range s.all {
		names[i] = p.cluster.Name
	}
	return names
}

func (s *step) has(cluster string) bool {
	return slices.ContainsFunc(s.all, func(p published) bool { return p.cluster.Name == cluster })
}

// attempt reads the input of a decision.
func (d *decisionController) attempt(ctx context.Context, k key, placement *v1alpha1.Placement,
	p *placementState) (*attempt, error) {
	evictions, err := d.current(ctx, k)
	if err != nil {
		return nil, err
	}
	a := &attempt{
		k: k, placement: placement, p: p, before: d.decisions.slices(k, placement.UID), evictions: evictions,
		ready: map[string]bool{},
	}
	if p.last.generation == 0 { // later p.slices is authoritative, whatever other clients write
		p.last.slices = p.initialSlices(client.ObjectKeyFromObject(placement), a.before)
	}
	on := namesOf(p.last.slices)
	removed := setOf(d.removedMeanwhile(ctx, a))
	maps.DeleteFunc(on, func(name string, _ bool) bool { return removed[name] })
	d.keepAbsent(on)
	a.snapshot = d.fleet.counted.fleet.Snapshot()
	d.restrict(a, on)
	var excluded []string
	for _, object := range evictions {
		excluded = append(excluded, object.Spec.Cluster)
	}
	a.request = &scheduler.Request{
		Name: k, Policy: p.spec.policy, Bound: p.bound(placement, a.snapshot, setOf(excluded)),
		Placed:   slices.Sorted(maps.Keys(on)),
		Failover: placement.Spec.Failover != nil, Previous: p.last.result, Now: d.Clock.Now(),
	}
	a.request.Bound = slices.DeleteFunc(a.request.Bound, func(name string) bool { return removed[name] })
	if reschedule(placement) {
		a.request.Bound, a.request.Previous = nil, nil
	}
	decided := p.last.generation
	if decided == 0 {
		decided = placement.Status.DecidedGeneration
	}
	a.fails = placement.Spec.Failover != nil && len(p.last.slices) > 0 && decided == placement.Generation &&
		!reschedule(placement)
	return a, nil
}

// inFleet returns a cluster of the fleet. Nil: the cluster is not in the fleet, or has left. A cluster that has to join
// again, such as after a restore of the hub, is in the fleet.
func (a *attempt) inFleet(name string) *scheduler.Cluster {
	slot, there := a.snapshot.Slot(name)
	if !there {
		return nil
	}
	if cluster := a.snapshot.Cluster(slot); cluster.Joined || !cluster.Leaving {
		return cluster
	}
	return nil
}

// choose calls the Decider with all clusters that are not excluded, and applies the failover policy to the result.
func (d *decisionController) choose(ctx context.Context, a *attempt, excluded []string) (step, error) {
	snapshot := d.fleet.withoutEvicted.use(a.k, a.candidatesKey(excluded), named(excluded)).of(a.snapshot)
	result, err := d.callDecider(ctx, a.p, snapshot, a.request)
	if err != nil {
		return step{}, err
	}
	s := d.publish(a, result)
	s.excluded = excluded
	return s, nil
}

// candidatesKey returns an identifier of the candidates without the excluded clusters. Empty: all candidates.
func (a *attempt) candidatesKey(excluded []string) string {
	id, _ := identify(excluded)
	if id != "" && a.access.restricted {
		id = a.access.view() + id
	}
	return id
}

// next returns the next step of a placement. It executes as many evictions as the disruption budget allows.
func (d *decisionController) next(ctx context.Context, a *attempt) (step, error) {
	if len(a.evictions) == 0 {
		s, err := d.choose(ctx, a, nil)
		d.fleet.withoutEvicted.keep(a.k, "")
		return s, err
	}
	on := namesOf(a.p.last.slices)
	var away, pending []string
	blocked := false
	for _, object := range a.evictions {
		switch cluster := object.Spec.Cluster; {
		case a.p.spec.policy.Spec().Type == v1alpha1.PickFixed: // the policy names the clusters
		case !on[cluster]:
			away = append(away, cluster)
		case a.atOnce(): // the changed policy takes effect first
			blocked = true
		case !slices.Contains(pending, cluster):
			pending = append(pending, cluster)
		}
	}
	var s step
	var err error
	if len(pending) == 0 || a.placement.Spec.DisruptionBudget == nil {
		s, err = d.choose(ctx, a, slices.Concat(away, pending))
	} else {
		s, err = d.chooseWithinBudget(ctx, a, away, pending)
	}
	d.fleet.withoutEvicted.keep(a.k, a.candidatesKey(s.excluded))
	s.soon = s.soon || blocked
	return s, err
}

// atOnce reports whether this decision takes effect immediately although the placement has a failover policy: a user
// changed the placement.
func (a *attempt) atOnce() bool { return a.placement.Spec.Failover != nil && !a.fails }

// chooseWithinBudget returns the next step of a placement with a disruption budget. The number of clusters that an
// eviction costs is known only after the decision, because the policy can give up more than the evicted cluster, such
// as all clusters if too few groups remain. So each result is compared with the budget.
func (d *decisionController) chooseWithinBudget(ctx context.Context, a *attempt, away, pending []string) (step, error) {
	before, err := d.choose(ctx, a, away)
	if err != nil {
		return step{}, err
	}
	expected := before.result.Wanted
	if expected < 0 {
		whole, err := d.choose(ctx, a, nil)
		if err != nil {
			return step{}, err
		}
		whole.result.Unreserve(ctx)
		expected = len(whole.result.Chosen)
	}
	budget := a.placement.Spec.DisruptionBudget
	o := eviction.Observed{Expected: expected, Evictions: pending, Budget: budget, ReplacesFirst: a.fails &&
		before.result.Wanted >= 0 && replacesFirst(a.placement)}
	staying := d.staying(a, &before)
	for _, c := range publishedOf(a.p.last.slices) {
		o.Published = append(o.Published, eviction.Cluster{Name: c.Name, Available: slices.Contains(staying, c.Name)})
	}
	floor := min(eviction.Floor(budget, expected), len(staying))
	chosen := before
	results, err := eviction.Fit(o, func(leaving []string) (bool, error) {
		after, err := d.choose(ctx, a, slices.Concat(away, leaving))
		if err != nil {
			return false, err
		}
		if len(d.staying(a, &after)) < floor {
			after.result.Unreserve(ctx)
			return false, nil
		}
		chosen.result.Unreserve(ctx)
		chosen = after
		return true, nil
	})
	if err != nil {
		chosen.result.Unreserve(ctx)
		return step{}, err
	}
	chosen.waiting = map[string]string{}
	for _, v := range results {
		if v.Waits() {
			chosen.waiting[v.Cluster] = v.Message
		}
	}
	if len(chosen.waiting) > 0 {
		d.await(a, &chosen)
	}
	return chosen, nil
}

func replacesFirst(placement *v1alpha1.Placement) bool {
	return placement.Spec.Failover.Replace != v1alpha1.EvictFirst
}

// staying returns the available clusters of a placement that a step keeps.
func (d *decisionController) staying(a *attempt, s *step) []string {
	var staying []string
	for _, c := range publishedOf(a.p.last.slices) {
		if s.has(c.Name) && d.available(a, c.Name) {
			staying = append(staying, c.Name)
		}
	}
	return staying
}

// reportEvictions writes the results of a step into the evictions of a placement, after the PlacementDecisions are
// written.
func (d *decisionController) reportEvictions(ctx context.Context, a *attempt, s *step) error {
	for _, object := range a.evictions {
		reason, message := a.outcome(object, s)
		if reason == "" {
			continue
		}
		if err := d.writeExecuted(ctx, object, reason, message); err != nil {
			return err
		}
	}
	return nil
}

// outcome returns the reason and message for an eviction after a step. An empty reason means that the step did not
// decide about the eviction.
func (a *attempt) outcome(object *v1alpha1.PlacementEviction, s *step) (reason, message string) {
	cluster, before := object.Spec.Cluster, executed(object)
	spec := a.p.spec.policy.Spec()
	if spec.Type == v1alpha1.PickFixed && slices.Contains(spec.ClusterNames, cluster) {
		return v1alpha1.ReasonPickFixed, "The placement selects its clusters by name. Remove the cluster from " +
			"spec.policy.clusterNames."
	}
	at := slices.IndexFunc(s.all, func(p published) bool { return p.cluster.Name == cluster })
	if at < 0 {
		waited := before.Reason != "" && before.Reason != v1alpha1.ReasonPlacementNotFound &&
			before.Reason != v1alpha1.ReasonNotDecided
		_, there := a.snapshot.Slot(cluster)
		switch {
		case before.Status == metav1.ConditionTrue:
			return before.Reason, before.Message
		case a.p.unreported[cluster] || waited:
			return v1alpha1.ReasonEvicted,
				"The cluster was removed from the placement, which does not select it again while this PlacementEviction exists."
		case !there:
			return v1alpha1.ReasonNotPlaced, "The cluster is not in the fleet."
		default:
			return v1alpha1.ReasonNotPlaced,
				"The placement does not select the cluster, and will not select it while this PlacementEviction exists."
		}
	}
	if message, waits := s.waiting[cluster]; waits {
		return v1alpha1.ReasonBudgetExhausted, message
	}
	switch s.all[at].reason {
	case v1alpha1.ReasonWaitsForReplacement:
		if missing := s.result.Missing(); missing > 0 {
			return v1alpha1.ReasonWaitsForReplacement,
				"No replacement for the cluster is available. See the condition Scheduled of the placement."
		}
		return v1alpha1.ReasonWaitsForReplacement, "The replacement for the cluster is not ready yet."
	case v1alpha1.ReasonWaitsForTurn:
		return v1alpha1.ReasonWaitsForTurn,
			"The placement has reached the limit of evictions that spec.failover allows in this period."
	}
	return "", ""
}
