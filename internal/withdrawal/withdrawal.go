// Package withdrawal decides when Placements and WorkSets are removed from clusters. It contains pure functions: the
// controllers of both kinds pass the observed state. Package deletion decides whether the deletion of an object was
// requested.
package withdrawal

import (
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// Undocumented reports whether a Placement may have selected clusters although it has no PlacementDecisions. This is
// the case unless its status states that it selected no cluster.
func Undocumented(status *v1alpha1.PlacementStatus, decisions int) bool {
	return decisions == 0 && (status.DecidedGeneration == 0 || status.SelectedClusters > 0)
}

// Complete reports whether a Placement has a decision for its current spec, and the number of clusters in its
// PlacementDecisions is the number that it selected. Only then is a cluster without a decision known to be not
// selected. After a failed decision, the status has only the observedGeneration: a Placement that was created again has
// selected no cluster yet.
func Complete(placement *v1alpha1.Placement, clusters int) bool {
	status := &placement.Status
	return placement.DeletionTimestamp == nil && status.ObservedGeneration == placement.Generation &&
		status.DecidedGeneration == placement.Generation && status.SelectedClusters == int32(clusters)
}

// RemovedAfter reports whether the removal of a cluster was recorded after a PlacementDecision was written. A decision
// that was written later may be about another cluster with this name. The resourceVersions determine the order unless
// the store was restored from single objects; in that case the times do. A decision whose write time is unknown is not
// older.
func RemovedAfter(removed time.Time, resourceVersion string, decision *v1alpha1.PlacementDecision) bool {
	var written time.Time
	for _, entry := range decision.ManagedFields {
		if entry.Time != nil && written.Before(entry.Time.Time) {
			written = entry.Time.Time
		}
	}
	order, err := resourceversion.CompareResourceVersion(decision.ResourceVersion, resourceVersion)
	return !written.IsZero() && written.Before(removed) && err == nil && order < 0
}

// Unselected is the observed state of a cluster that has Works of a WorkSet although no Placement of the WorkSet
// selects it.
type Unselected struct {
	// Certain is true if the decisions of all Placements are complete, and the Works are known not to be those of a
	// selected cluster whose namespace is unknown.
	Certain bool
	// InFleet is true if the cluster exists and is not leaving. The leave decides about the Works of a leaving cluster. A
	// missing cluster is not a request.
	InFleet bool
	// Claimed is true if the Works were written for this WorkSet, and not for an earlier one with its name: after a
	// restore, the Placement may not have selected their cluster yet.
	Claimed bool
	// Confirmed is true if the API server confirmed a moment ago, without a cache, that no Placement selects the
	// cluster.
	Confirmed bool
}

// Withdraws reports whether the WorkSet deletes the Works.
func (u Unselected) Withdraws() bool { return u.Certain && u.InFleet && u.Claimed && u.Confirmed }
