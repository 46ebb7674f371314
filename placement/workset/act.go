package workset

import (
	"context"
	"maps"
	"slices"

	"github.com/muster-sdk/muster/placement/internal/revision"
)

// act has Works written. What was told is remembered, since the watch shows it only later.
func (l *look) act(ctx context.Context) {
	s := l.state
	orders := make(map[delivery]int)
	update := make(map[string]string, len(l.rollout.Update)+len(l.rollout.Stable)) // to which revision
	for _, name := range l.rollout.Update {
		update[name] = l.rollout.Revision
	}
	for _, name := range l.rollout.Stable {
		update[name] = l.rollout.Status.StableRevision
	}
	for _, t := range l.clusters {
		revision, is := update[t.name]
		if !is {
			if t.reading != nil && t.tellable() && !t.current && l.idle(t) {
				orders[delivery{s.key, t.name}] = priorityRepair
			}
			continue
		}
		orders[delivery{s.key, t.name}] = priorityUpdate
		if t.told.revision == "" {
			orders[delivery{s.key, t.name}] = priorityNew
		}
		t.told = told{revision, stamp(l.now)}
		t.reading = s.readings[revision]
		s.told[t.name] = t.told
	}
	if len(update) > 0 {
		l.divide(ctx)
		l.lookAt(s.key)
	}
	wants := make(map[string]*want, len(l.clusters)+len(l.leaving))
	follows := make(map[string]bool, len(l.clusters)+len(l.leaving))
	for _, t := range l.clusters {
		follows[t.name] = true
		if t.reading != nil && t.tellable() {
			wants[t.name] = l.want(t)
		}
	}
	leaves, err := l.leavers(ctx)
	if err != nil {
		l.log.Error(err, "The Works of clusters that are not chosen any more are kept", "workset", s.key)
		l.lookAgain()
	}
	for _, t := range l.leaving {
		follows[t.name] = true
		if !leaves(t) {
			continue
		}
		wants[t.name] = &want{namespace: t.namespace, told: t.told, parting: partingOf(l.set.Spec.Work.Delete), by: l.set.UID, until: l.Clock.Now().Add(confirmedFor)}
		if len(t.held.live()) > 0 && l.idle(t) {
			orders[delivery{s.key, t.name}] = priorityUpdate
		}
	}
	s.mu.Lock()
	s.wants, s.follows = wants, follows
	maps.DeleteFunc(s.troubles, func(name string, _ trouble) bool { return wants[name] == nil })
	s.mu.Unlock()
	for d, priority := range orders {
		l.orders.Add(d, priority, 0)
	}
}

// leavers tells the clusters whose Works may be deleted. The Works of a cluster that leaves the fleet are for its leave, and those of one
// that is not in the fleet are kept: that its MemberCluster is missing is no request. So are the Works of an earlier WorkSet: after a
// restore, the Placement may not have chosen their cluster yet.
func (l *look) leavers(ctx context.Context) (func(*target) bool, error) {
	none := func(*target) bool { return false }
	if !slices.ContainsFunc(l.leaving, func(t *target) bool { return t.tellable() && len(t.held.live()) > 0 }) {
		return (*target).tellable, nil
	}
	confirmed, err := l.confirmLeaving(ctx)
	if err != nil {
		return none, err
	}
	return func(t *target) bool { return t.tellable() && confirmed(t.name) && ownerOf(l.set).claimsAny(t.held) }, nil
}

// idle reports whether no failed write of a cluster's Works is on record: that is retried by itself.
func (l *look) idle(t *target) bool {
	l.state.mu.Lock()
	defer l.state.mu.Unlock()
	return l.state.troubles[t.name] == trouble{}
}

// prune deletes the revisions that are no longer kept.
func (l *look) prune(ctx context.Context) error {
	prunable := l.prunable()
	for _, r := range prunable {
		if err := l.store.Delete(ctx, l.set, r); err != nil {
			return err
		}
		l.state.history = slices.DeleteFunc(l.state.history, func(o revision.Info) bool { return o.Name == r.Name })
	}
	if len(prunable) > 0 {
		l.lookAt(l.state.key) // the status has them still
	}
	return nil
}
