package workset

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/placement/internal/progress"
	"github.com/muster-sdk/muster/placement/internal/revision"
	"github.com/muster-sdk/muster/placement/rollout"
	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// decide computes the rollout, that is, the clusters to update in this reconcile.
func (l *reconciliation) decide(ctx context.Context) error {
	l.rollout.Status = l.set.Status.Rollout
	if l.revision == "" || !l.valid || l.ungrouped() {
		return nil
	}
	var targets []rollout.Target
	for _, t := range l.clusters {
		if !t.writable() { // it participates in the rollout when its Works can be written
			continue
		}
		health := since(l.state.clusters.health[t.name], healthSince{t.assigned.revision, t.health, l.now},
			t.existing.changed(), t.assigned)
		l.state.clusters.health[t.name] = health
		targets = append(targets, rollout.Target{
			Name: t.name, Group: t.selection.group, Labels: t.cluster.Labels, Revision: t.assigned.revision,
			Since: t.assigned.since, Health: health.health, HealthSince: health.since,
		})
	}
	plan, err := rollout.Next(rollout.Observed{
		Now: l.now, Strategy: l.set.Spec.Rollout, Revision: l.revision, Targets: targets, Groups: l.placements.groups,
		Approvals: l.set.Spec.Approvals, Status: l.set.Status.Rollout,
	})
	if err != nil {
		return fmt.Errorf("plan the rollout: %w", err)
	}
	l.rollout = plan
	if plan.Problem != "" {
		l.problem(v1alpha1.ReasonInvalid, "spec.rollout.%s", plan.Problem)
	}
	holds := make(map[string]rollout.HoldReason, len(plan.Hold))
	for _, h := range plan.Hold {
		holds[h.Target] = h.Reason
	}
	for _, t := range l.clusters {
		t.hold = holds[t.name]
	}
	return l.check(ctx)
}

// ungrouped reports whether the rollout follows decision groups that are unknown. There are three reasons. A Placement
// is missing, so that the groups of the following Placements would have another index. A Placement has no decision for
// its current groups. A cluster has been kept without a decision since before a restart. A guess could skip a mandatory
// group.
func (l *reconciliation) ungrouped() bool {
	if l.set.Spec.Rollout.Type != v1alpha1.RolloutProgressivePerGroup {
		return false
	}
	unknown := func(t *target) bool { return t.writable() && !t.selection.grouped }
	return !l.placements.certain || slices.ContainsFunc(l.clusters, unknown)
}

// check removes clusters from the plan whose revision is unreadable, such as a stable revision that a user deleted.
func (l *reconciliation) check(ctx context.Context) error {
	for _, some := range []struct {
		clusters *[]string
		revision string
	}{{&l.rollout.Update, l.rollout.Revision}, {&l.rollout.Stable, l.rollout.Status.StableRevision}} {
		if len(*some.clusters) == 0 {
			continue
		}
		r, err := l.reading(ctx, some.revision)
		if err != nil {
			return err
		}
		if r == nil {
			l.problem(v1alpha1.ReasonRevisionNotFound, "revision %s, which is desired on some clusters, cannot be used, "+
				"because %s: select another revision with spec.revision, or change the content of the WorkSet",
				some.revision, l.state.revisions.unreadable[some.revision])
			*some.clusters = nil
		}
	}
	return nil
}

// progress returns the state of the cluster that package progress evaluates.
func (t *target) progress() *progress.Cluster {
	c := &progress.Cluster{
		Name: t.name, Chosen: true, Reachable: t.cluster != nil && t.cluster.Joined && t.cluster.Healthy,
		Revision: t.assigned.revision, Current: t.current, Hold: t.hold, Waits: t.waits, Problem: t.problem.message,
		Reason: t.problem.reason,
	}
	if t.divided != nil {
		c.Replicas = new(t.divided.replicas)
	}
	for _, r := range t.existing.records {
		c.Works = append(c.Works, r.status)
	}
	return c
}

// changed returns the time of the last change in the status of the Works, by the member's clock.
func (h existing) changed() time.Time {
	var last time.Time
	for _, r := range h.records {
		if r.status.Changed.After(last) {
			last = r.status.Changed
		}
	}
	return last
}

// status returns the status of the WorkSet.
func (l *reconciliation) status() v1alpha1.WorkSetStatus {
	o := progress.Observed{
		Generation: l.set.Generation, Revision: l.revision, Rollout: l.rollout.Status, Problems: l.problems,
		Deleting: l.set.DeletionTimestamp != nil, Before: l.set.Status, Now: l.now,
	}
	for _, r := range l.state.revisions.history {
		if r.Name == l.revision {
			o.Objects = r.Objects
		}
		o.Revisions = append(o.Revisions, v1alpha1.RevisionSummary{Name: r.Name, Number: r.Number,
			CreatedAt: metav1.NewTime(r.CreatedAt)})
	}
	for _, t := range l.clusters {
		o.Clusters = append(o.Clusters, *t.progress())
	}
	for _, t := range l.leaving {
		c := t.progress()
		c.Chosen = false
		o.Clusters = append(o.Clusters, *c)
	}
	status := progress.Status(o)
	status.Trim()
	return status
}

// prunable returns the revisions that no cluster and no rollout needs.
func (l *reconciliation) prunable() []revision.Info {
	used := map[string]bool{l.revision: true, l.set.Spec.Revision: true, l.rollout.Status.Revision: true,
		l.rollout.Status.StableRevision: true}
	for _, t := range l.clusters {
		used[t.assigned.revision] = true
	}
	limit := 10
	if asked := l.set.Spec.RevisionHistoryLimit; asked != nil {
		limit = int(*asked)
	}
	maps.DeleteFunc(l.state.revisions.readings, func(name string, _ *reading) bool { return !used[name] })
	maps.DeleteFunc(l.state.revisions.unreadable, func(name string, _ string) bool { return !used[name] })
	return revision.Prune(l.state.revisions.history, func(name string) bool { return used[name] }, limit)
}
