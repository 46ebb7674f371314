package workset

import (
	"context"
	"maps"
	"slices"

	"github.com/muster-sdk/muster/internal/withdrawal"
)

// act assigns revisions to clusters and enqueues the deliveries. The assignments are kept in memory, because the watch
// reports them later.
func (l *reconciliation) act(ctx context.Context) {
	s := l.state
	orders := make(map[delivery]int)
	// the revision of each cluster to update
	update := make(map[string]string, len(l.rollout.Update)+len(l.rollout.Stable))
	for _, name := range l.rollout.Update {
		update[name] = l.rollout.Revision
	}
	for _, name := range l.rollout.Stable {
		update[name] = l.rollout.Status.StableRevision
	}
	for _, t := range l.clusters {
		revision, is := update[t.name]
		if !is {
			if t.reading != nil && t.writable() && !t.current && l.writesSucceeded(t) {
				orders[delivery{s.key, t.name}] = priorityRepair
			}
			continue
		}
		orders[delivery{s.key, t.name}] = priorityUpdate
		if t.assigned.revision == "" {
			orders[delivery{s.key, t.name}] = priorityNew
		}
		t.assigned = assignment{revision, stamp(l.now)}
		t.reading = s.revisions.readings[revision]
		s.clusters.assigned[t.name] = t.assigned
	}
	if len(update) > 0 {
		l.divide(ctx)
		l.enqueue(s.key)
	}
	wants := make(map[string]*want, len(l.clusters)+len(l.leaving))
	follows := make(map[string]bool, len(l.clusters)+len(l.leaving))
	for _, t := range l.clusters {
		follows[t.name] = true
		if t.reading != nil && t.writable() {
			wants[t.name] = l.want(t)
		}
	}
	leaves, err := l.deletable(ctx)
	if err != nil {
		l.log.Error(err, "Failed to confirm the deletion of Works, keeping the Works of clusters that are no longer "+
			"selected", "workset", s.key)
		l.requeueSoon()
	}
	for _, t := range l.leaving {
		follows[t.name] = true
		if !leaves(t) {
			continue
		}
		wants[t.name] = &want{namespace: t.namespace, assigned: t.assigned,
			deletePolicy: deletePolicyOf(l.set.Spec.Work.Delete), by: l.set.UID, until: l.Clock.Now().Add(confirmedFor)}
		if len(t.existing.live()) > 0 && l.writesSucceeded(t) {
			orders[delivery{s.key, t.name}] = priorityUpdate
		}
	}
	s.shared.mu.Lock()
	s.shared.wants, s.shared.follows = wants, follows
	maps.DeleteFunc(s.shared.writeErrors, func(name string, _ writeError) bool { return wants[name] == nil })
	s.shared.mu.Unlock()
	for d, priority := range orders {
		l.queues.deliveries.Add(d, priority, 0)
	}
}

// deletable returns a function that reports whether the Works of a cluster can be deleted. If the cluster is leaving
// the fleet, its leave deletes or keeps the Works. If the cluster is not in the fleet, its Works are kept, because a
// missing MemberCluster is not a request to delete. The Works of an earlier WorkSet are kept as well: after a restore,
// the Placement may not have selected their cluster yet.
func (l *reconciliation) deletable(ctx context.Context) (func(*target) bool, error) {
	none := func(*target) bool { return false }
	if !slices.ContainsFunc(l.leaving, func(t *target) bool { return t.writable() && len(t.existing.live()) > 0 }) {
		return (*target).writable, nil
	}
	confirmed, err := l.confirmLeaving(ctx)
	if err != nil {
		return none, err
	}
	return func(t *target) bool {
		return withdrawal.Unselected{
			Certain: true, // the list leaving contains only clusters of which this is certain
			InFleet: t.writable(), Claimed: ownerOf(l.set).claimsAny(t.existing), Confirmed: confirmed(t.name),
		}.Withdraws()
	}, nil
}

// writesSucceeded reports whether no write of the cluster's Works has failed. Failed writes are retried without another
// delivery.
func (l *reconciliation) writesSucceeded(t *target) bool {
	l.state.shared.mu.Lock()
	defer l.state.shared.mu.Unlock()
	return l.state.shared.writeErrors[t.name] == writeError{}
}

// prune deletes the revisions that are not kept any more.
func (l *reconciliation) prune(ctx context.Context) error {
	prunable := l.prunable()
	for _, r := range prunable {
		if err := l.store.Delete(ctx, l.set, r); err != nil {
			return err
		}
		l.state.revisions.remove(r.Name)
	}
	if len(prunable) > 0 {
		l.enqueue(l.state.key) // the status still contains them
	}
	return nil
}
