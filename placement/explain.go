package placement

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/placement/internal/decision"
	"github.com/muster-sdk/muster/placement/internal/scope"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// Explain returns the decision and the reasons for a placement, and writes nothing. A placement that does not exist on
// the API server is a dry run. As in a decision, an existing placement keeps its clusters unless the policy requires
// others. A Placement without a namespace is a ClusterPlacement.
//
// Clusters come from o.Clusters, or from the MemberClusters that c reads. The Decider must be that of the controller
// for the same result. Placements are counted as they are on the API server, unless the source counts them. Executed
// evictions apply to a placement that exists; waiting ones do not. Without a client, o.Clusters is required, the
// placement does not exist, and placements are not counted.
//
// Explain needs the verb list on placementdecisions and placementevictions.placement.muster.dev, and on
// memberclusters.membership.muster.dev. It returns an error if the policy is invalid or the decision fails. For a
// custom Decider the diagnosis contains only the selected clusters.
func Explain(ctx context.Context, c client.Reader, o Options,
	placement *v1alpha1.Placement) (*scheduler.Diagnosis, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	policy, err := scheduler.NewPolicy(&placement.Spec.Policy)
	if err != nil {
		return nil, err
	}
	fleet, err := collect(ctx, c, o.Clusters)
	if err != nil {
		return nil, err
	}
	request := &scheduler.Request{
		Name: client.ObjectKeyFromObject(placement).String(), Policy: policy,
		Failover: placement.Spec.Failover != nil, Now: o.Clock.Now(),
	}
	if c != nil {
		if err := count(ctx, c, o.Clusters, fleet); err != nil {
			return nil, err
		}
	}
	whole, snapshot := fleet.Snapshot(), fleet.Snapshot()
	var excluded []string
	limits := access{}
	if o.Tenancy != nil && placement.UID == "" {
		limits = accessOf(rulesOf(o.Tenancy, placement.Namespace), placement.Namespace, nil, nil, whole)
		whole = (&filteredFleet{lacks: limits.excludes()}).of(whole)
		snapshot = whole
	}
	if placement.UID != "" {
		var list v1alpha1.PlacementDecisionList
		if err := c.List(ctx, &list, client.InNamespace(scope.ChildNamespace(placement.Namespace)),
			scope.DecisionLabels(client.ObjectKeyFromObject(placement))); err != nil {
			return nil, fmt.Errorf("list the PlacementDecisions of %s: %w", request.Name, err)
		}
		var before []*v1alpha1.PlacementDecision
		for i := range list.Items {
			if controller(&list.Items[i]) == placement.UID {
				before = append(before, &list.Items[i])
			}
		}
		p := &placementState{last: lastDecision{slices: slicesOf(client.ObjectKeyFromObject(placement), before)}}
		if excluded, err = evictedClusters(ctx, c, placement, policy, namesOf(p.last.slices)); err != nil {
			return nil, err
		}
		request.Placed = slices.Sorted(maps.Keys(namesOf(p.last.slices)))
		if withAbsent(fleet, whole, namesOf(p.last.slices)) {
			whole = fleet.Snapshot()
		}
		if o.Tenancy != nil {
			on := namesOf(p.last.slices)
			limits = accessOf(rulesOf(o.Tenancy, placement.Namespace), placement.Namespace, p.last.slices, on, whole)
			whole = (&filteredFleet{lacks: limits.excludes()}).of(whole)
			request.Placed = slices.DeleteFunc(request.Placed, limits.denies)
		}
		snapshot = (&filteredFleet{lacks: named(excluded)}).of(whole)
		if !reschedule(placement) {
			request.Bound = p.bound(placement, whole, setOf(excluded))
		}
	}
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	result, err := o.Decider.Schedule(ctx, snapshot, request)
	if err != nil {
		return nil, err
	}
	diagnosis, err := result.Diagnose(ctx)
	if err == nil {
		evicted(diagnosis, whole, excluded)
	}
	if err == nil || ctx.Err() != nil {
		return diagnosis, err
	}
	diagnosis = chosenOnly(&result)
	diagnosis.Request = request.Name
	return diagnosis, nil
}

// count sets the number of placements on each cluster of a fleet, unless the source sets it.
func count(ctx context.Context, c client.Reader, source ClusterSource, fleet *scheduler.Cache) error {
	placementCounts := newCountedFleet(source)
	if placementCounts.off {
		return nil
	}
	var list v1alpha1.PlacementDecisionList
	if err := c.List(ctx, &list); err != nil {
		return fmt.Errorf("list PlacementDecisions: %w", err)
	}
	on := map[key][]decision.Slice{}
	for i := range list.Items {
		if k := ownerOf(&list.Items[i]); k != "" {
			on[k] = append(on[k], decision.Slice{Decisions: list.Items[i].Decisions})
		}
	}
	for k, laid := range on {
		placementCounts.place(k, slices.Collect(maps.Keys(namesOf(laid))))
	}
	snapshot := fleet.Snapshot()
	for slot := range snapshot.All().All() {
		counted := *snapshot.Cluster(slot)
		counted.Placements = placementCounts.counts[counted.Name]
		fleet.Update(&counted)
	}
	return nil
}

// evictedClusters returns the clusters that evictions exclude for a placement. Clusters that the placement is on are
// not excluded.
func evictedClusters(ctx context.Context, c client.Reader, placement *v1alpha1.Placement, policy *scheduler.Policy,
	on map[string]bool) ([]string, error) {
	if policy.Spec().Type == v1alpha1.PickFixed {
		return nil, nil
	}
	var list v1alpha1.PlacementEvictionList
	namespace, k := scope.ChildNamespace(placement.Namespace), client.ObjectKeyFromObject(placement).String()
	if err := c.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list the PlacementEvictions in %s: %w", namespace, err)
	}
	var excluded []string
	for i := range list.Items {
		e := &list.Items[i]
		if placementOf(e) == k && e.DeletionTimestamp == nil && !on[e.Spec.Cluster] {
			excluded = append(excluded, e.Spec.Cluster)
		}
	}
	return excluded, nil
}

// collect returns all clusters that exist now.
func collect(ctx context.Context, c client.Reader, source ClusterSource) (*scheduler.Cache, error) {
	fleet := &collection{complete: make(chan struct{}, 1)}
	if source == nil {
		var list membershipv1alpha1.MemberClusterList
		if err := c.List(ctx, &list); err != nil {
			return nil, fmt.Errorf("list MemberClusters: %w", err)
		}
		for i := range list.Items {
			fleet.Set(ClusterOf(&list.Items[i]))
		}
		return &fleet.Cache, nil
	}
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- source.Run(running, fleet) }()
	select {
	case <-fleet.complete:
		cancel()
		return &fleet.Cache, <-ended
	case err := <-ended:
		if err == nil {
			err = errors.Join(ctx.Err(), errors.New("the source of clusters ended"))
		}
		return nil, err
	}
}

// collection is a [Fleet] for one snapshot.
type collection struct {
	scheduler.Cache
	complete chan struct{}
}

func (c *collection) Set(cluster *scheduler.Cluster) { c.Update(cluster) }
func (c *collection) Remove(name string)             { c.Cache.Remove(name) }
func (c *collection) Synced() {
	select {
	case c.complete <- struct{}{}:
	default:
	}
}
