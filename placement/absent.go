package placement

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/internal/bounded"
	"github.com/muster-sdk/muster/placement/internal/decision"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// absent returns a cluster without an object on the hub. Placements on the cluster keep it; other placements cannot
// choose it.
func absent(name string) *scheduler.Cluster {
	return &scheduler.Cluster{Name: name, Absent: true, Unreported: true}
}

// removalLookup identifies a lookup of the last removal of a cluster on behalf of a placement.
type removalLookup struct {
	placement key
	cluster   string
}

// presence distinguishes clusters whose removal the source reported from clusters that are missing without such a
// report. mu makes each change of the fleet atomic.
type presence struct {
	mu      sync.Mutex
	present map[string]bool        // set by the source
	removed map[string]bool        // removed by the source, and not set again
	missing map[string]bool        // absent clusters that the fleet contains for the placements on them
	kept    map[removalLookup]bool // lookups that found no removal since the placement chose the cluster
}

func newPresence() presence {
	return presence{present: map[string]bool{}, removed: map[string]bool{}, missing: map[string]bool{},
		kept: map[removalLookup]bool{}}
}

// unexplained returns the clusters of a decision that the source has neither set nor removed, and for which the
// placement has no recorded lookup.
func (p *presence) unexplained(k key, decided map[string]bool) (names []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name := range decided {
		if !p.present[name] && !p.removed[name] && !p.kept[removalLookup{k, name}] {
			names = append(names, name)
		}
	}
	return names
}

func (p *presence) explained(k key, name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.present[name] {
		p.kept[removalLookup{k, name}] = true
	}
}

// dropAnswers removes the recorded lookups that are obsolete: those about a cluster that exists, or of a placement that
// does not exist. The caller holds the lock.
func (p *presence) dropAnswers(obsolete func(removalLookup) bool) {
	maps.DeleteFunc(p.kept, func(question removalLookup, _ bool) bool { return obsolete(question) })
}

// keepAbsent adds to the fleet the clusters of a decision that the source has neither set nor removed. A missing
// cluster is not a request to leave it.
func (d *decisionController) keepAbsent(decided map[string]bool) {
	p := &d.presence
	p.mu.Lock()
	defer p.mu.Unlock()
	for name := range decided {
		if p.present[name] || p.removed[name] || p.missing[name] {
			continue
		}
		p.missing[name] = true
		d.fleet.counted.set(absent(name))
	}
}

// dropAbsent removes those absent clusters from the fleet that no placement is on any more.
func (d *decisionController) dropAbsent(names []string) {
	p := &d.presence
	for _, name := range names {
		p.mu.Lock()
		if p.missing[name] && len(d.placementsOn(name)) == 0 {
			delete(p.missing, name)
			d.fleet.counted.remove(name)
		}
		p.mu.Unlock()
	}
}

// removedClusters returns the clusters of a decision that are not in the next one.
func removedClusters(before, after []decision.Slice) (names []string) {
	stay := namesOf(after)
	for name := range namesOf(before) {
		if !stay[name] {
			names = append(names, name)
		}
	}
	return names
}

// observed contains the chosen clusters of a placement that have no object on the hub.
type observed struct{ absent []string }

func observedOf(all []published) (o observed) {
	for _, p := range all {
		if p.cluster.Absent {
			o.absent = append(o.absent, p.cluster.Name)
		}
	}
	slices.Sort(o.absent)
	return o
}

// maxAbsentNames is the maximum number of clusters that a message names.
const maxAbsentNames = 10

// set sets the condition ClustersObserved in a status. It does not add the condition to a placement whose clusters
// always had an object.
func (o observed) set(status *v1alpha1.PlacementStatus, generation int64, now metav1.Time) {
	condition := metav1.Condition{
		Type: v1alpha1.ConditionClustersObserved, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonClustersObserved,
		Message: "Every chosen cluster exists on the hub.", ObservedGeneration: generation, LastTransitionTime: now,
	}
	if len(o.absent) == 0 && meta.FindStatusCondition(status.Conditions, condition.Type) == nil {
		return
	}
	if n := len(o.absent); n > 0 {
		names := strings.Join(o.absent[:min(n, maxAbsentNames)], ", ")
		if more := n - maxAbsentNames; more > 0 {
			names += fmt.Sprintf(" and %d more", more)
		}
		condition.Status, condition.Reason = metav1.ConditionFalse, v1alpha1.ReasonClusterMissing
		condition.Message = bounded.Text(fmt.Sprintf("Chosen clusters stay although they do not exist on the hub, since no "+
			"request to remove them was observed: %s. Restore the clusters, or remove them from the placement with a "+
			"PlacementEviction.", names), maxMessage)
	}
	meta.SetStatusCondition(&status.Conditions, condition)
}

// newlyFalse returns the conditions that have become False and need the attention of a user.
func newlyFalse(before, after *v1alpha1.PlacementStatus) []metav1.Condition {
	var alarms []metav1.Condition
	for _, kind := range []string{
		v1alpha1.ConditionPropertiesKnown, v1alpha1.ConditionClustersObserved, v1alpha1.ConditionClustersAllowed,
	} {
		if meta.IsStatusConditionFalse(after.Conditions, kind) && !meta.IsStatusConditionFalse(before.Conditions, kind) {
			alarms = append(alarms, *meta.FindStatusCondition(after.Conditions, kind))
		}
	}
	return alarms
}

// withAbsent adds to a fleet the clusters of a decision that are missing in its snapshot, and reports whether it added
// any.
func withAbsent(fleet *scheduler.Cache, whole *scheduler.Snapshot, decided map[string]bool) (added bool) {
	for name := range decided {
		if _, there := whole.Slot(name); !there {
			fleet.Update(absent(name))
			added = true
		}
	}
	return added
}
