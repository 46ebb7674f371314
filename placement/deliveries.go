package placement

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/withdrawal"
	"github.com/muster-sdk/muster/placement/internal/decision"
	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// Deliveries reports which clusters have objects of a Placement. The controller calls it before the first decision of a
// Placement, and treats these clusters as selected. So a Placement that is deleted and created again keeps its
// clusters: the deletion of its former PlacementDecisions is not a request to delete workloads. Its methods may be
// called concurrently.
type Deliveries interface {
	// ClustersOf returns the names of the clusters that have objects of a Placement, in any order, without clusters whose
	// objects are being deleted. After an error the controller does not decide the Placement, and tries again.
	ClustersOf(ctx context.Context, placement types.NamespacedName) ([]string, error)
}

// resume looks up the clusters that have objects of a Placement, before the first decision of a Placement without
// PlacementDecisions.
func (d *decisionController) resume(ctx context.Context, k key, placement *v1alpha1.Placement,
	p *placementState) error {
	p.delivered = nil
	if d.Deliveries == nil || p.last.generation != 0 ||
		!withdrawal.Undocumented(&placement.Status, len(d.decisions.slices(k, placement.UID))) {
		return nil
	}
	names, err := d.Deliveries.ClustersOf(ctx, client.ObjectKeyFromObject(placement))
	if err != nil {
		return fmt.Errorf("find the clusters that have objects of the placement: %w", err)
	}
	for _, name := range names {
		p.delivered = append(p.delivered, v1alpha1.ClusterDecision{ClusterName: name, Reason: v1alpha1.ReasonScheduled})
	}
	return nil
}

// initialSlices returns the clusters that a Placement has before its first decision by this process.
func (p *placementState) initialSlices(placement types.NamespacedName,
	before []*v1alpha1.PlacementDecision) []decision.Slice {
	laid := slicesOf(placement, before)
	if len(laid) == 0 && len(p.delivered) > 0 {
		laid = []decision.Slice{{Decisions: p.delivered}}
	}
	return laid
}
