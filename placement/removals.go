package placement

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/withdrawal"
	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// Removals reports clusters that were removed on request. The controller calls it for a chosen cluster that its
// [ClusterSource] has neither set nor removed, such as one that left while the controller did not run. Its methods may
// be called concurrently.
type Removals interface {
	// LastRemoval returns the record of the last removal of a cluster of this name on request. Nil: no record exists, or
	// the cluster exists. After an error the cluster stays chosen, and the next decision calls LastRemoval again.
	LastRemoval(ctx context.Context, cluster string) (*Removal, error)
}

// Removal is the record that a cluster was removed on request.
type Removal struct {
	// Time is when the removal was recorded.
	Time time.Time
	// ResourceVersion is the resourceVersion of the record. The record must be in the same store as the
	// PlacementDecisions.
	ResourceVersion string
}

// follows reports whether the removal was recorded after the PlacementDecision was written.
func (r *Removal) follows(decision *v1alpha1.PlacementDecision) bool {
	return withdrawal.RemovedAfter(r.Time, r.ResourceVersion, decision)
}

// removedMeanwhile returns the missing clusters of a decision that were removed on request while this controller did
// not observe it. If the removal cannot be determined, the cluster stays chosen.
func (d *decisionController) removedMeanwhile(ctx context.Context, a *attempt) (removed []string) {
	if d.Removals == nil {
		return nil
	}
	for _, name := range d.presence.unexplained(a.k, namesOf(a.p.last.slices)) {
		left, err := d.leftOnRequest(ctx, a, name)
		switch {
		case err != nil:
			d.log.Error(err, "Failed to determine whether a missing cluster was removed on request", "placement", a.k, "cluster",
				name)
		case left:
			removed = append(removed, name)
		default:
			d.presence.explained(a.k, name)
		}
	}
	return removed
}

// leftOnRequest reports whether a cluster was removed on request after a placement was last known to be on it. It reads
// from the API server: caches may strip the managed fields.
func (d *decisionController) leftOnRequest(ctx context.Context, a *attempt, name string) (bool, error) {
	removal, err := d.Removals.LastRemoval(ctx, name)
	if err != nil || removal == nil {
		return false, err
	}
	found := false
	for _, before := range a.before {
		latest := &v1alpha1.PlacementDecision{}
		if err := d.api.live.Get(ctx, client.ObjectKeyFromObject(before), latest); err != nil {
			return false, fmt.Errorf("read PlacementDecision %s/%s: %w", before.Namespace, before.Name, err)
		}
		for _, decided := range latest.Decisions {
			if decided.ClusterName != name {
				continue
			}
			if !removal.follows(latest) {
				return false, nil
			}
			found = true
		}
	}
	return found, nil
}
