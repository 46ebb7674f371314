package workset

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/muster-sdk/muster/internal/requeue"
	"github.com/muster-sdk/muster/placement/bundle"
	"github.com/muster-sdk/muster/placement/internal/progress"
	"github.com/muster-sdk/muster/placement/rollout"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// reconciliation is one reconcile of a WorkSet.
type reconciliation struct {
	*controller

	set   *v1alpha1.WorkSet
	state *state
	now   time.Time

	problems   []progress.Problem
	valid      bool   // the spec is valid
	revision   string // desired on all clusters; empty: no revision exists
	placements observedPlacements
	clusters   []*target
	leaving    []*target
	rollout    rollout.Plan
	after      time.Duration // the maximum time until the next reconcile; zero: none
}

// observedPlacements is the observed state of the Placements of a WorkSet.
type observedPlacements struct {
	groups  []rollout.Group
	certain bool // all decisions and groups are known
}

// target is a cluster that has Works of the WorkSet, or should have some.
type target struct {
	name      string
	selection targetSelection
	namespace string
	cluster   *scheduler.Cluster // nil: the cluster is not in the fleet
	existing  existing
	assigned  assignment
	reading   *reading // the assigned revision; nil: none is assigned, or the revision is unreadable
	divided   *divided // nil: the replicas are those of the objects
	limit     limit
	hold      rollout.HoldReason
	health    rollout.Health // of the assigned revision
	evaluation
}

// targetSelection records the Placements, the decision group and the binding that selected a cluster.
type targetSelection struct {
	group   rollout.Group
	grouped bool // the group is known
	// placements is the desired value of the annotation that names the Placements. If empty, the existing value stays.
	placements string
}

// divided are the objects of a cluster after the division of replicas.
type divided struct {
	objects  []bundle.Object
	replicas int32
}

// leaving reports whether the cluster is leaving the fleet. The leave decides what happens to its Works.
func (t *target) leaving() bool { return t.cluster != nil && t.cluster.Leaving }

func (l *reconciliation) problem(reason, format string, args ...any) {
	l.problems = append(l.problems, progress.Problem{Reason: reason, Message: fmt.Sprintf(format, args...)})
}

// pollInterval is the interval for checking a state whose change triggers no event.
const pollInterval = 15 * time.Second

// requeueSoon reconciles the WorkSet again after pollInterval.
func (l *reconciliation) requeueSoon() { l.after = requeue.Sooner(l.after, pollInterval) }

// observeClusters finds the clusters that the Placements selected, and those that have Works although they are not
// selected.
func (l *reconciliation) observeClusters(ctx context.Context) error {
	chosen, certain, err := l.selected(ctx)
	if err != nil {
		return err
	}
	l.placements.certain = certain
	has := l.works.of(l.state.key)
	named, located := make(map[string]*target, len(chosen)), true
	for _, c := range chosen {
		t := &target{name: c.name, selection: targetSelection{group: c.group, grouped: true}, namespace: l.Namespace(c.name),
			cluster: l.fleet.member(c.name).lasting}
		t.limit = l.limitOf(t.cluster, c.binding, true)
		l.state.clusters.bindings[c.name] = c.binding
		t.existing = has[t.namespace]
		t.selection.placements = l.placementsOf(c, certain)
		delete(has, t.namespace)
		named[c.name], located = t, located && t.namespace != ""
		if t.namespace == "" && t.cluster != nil && l.pollsNamespaces {
			l.requeueSoon()
		}
		l.fleet.locate(c.name, t.namespace)
		l.state.clusters.groups[c.name] = c.group
		l.clusters = append(l.clusters, t)
	}
	for namespace, h := range has {
		name, known := l.fleet.in(namespace)
		switch of := named[name]; {
		case of == nil:
		case of.namespace == "": // the unknown namespace of the cluster was this one
			of.existing = h
			continue
		default:
			name = namespace // a former namespace of the cluster
		}
		t := &target{name: name, namespace: namespace, cluster: l.fleet.member(name).lasting, existing: h}
		// While the decisions are uncertain, nothing is deleted: the Works can belong to a cluster whose namespace is
		// unknown.
		if certain && (known || located) {
			switch {
			case t.cluster == nil:
				t.waits = "The cluster is not in the fleet. Its Works are kept until the cluster returns, or leaves the fleet."
			case !ownerOf(l.set).claimsAny(h):
				t.waits = "The cluster is not selected. Its Works belong to an earlier WorkSet with this name, and are kept. To " +
					"delete a Work with its objects, set its annotation " + workv1alpha1.DeletionRequestedByAnnotation +
					" before you delete it."
			}
			l.leaving = append(l.leaving, t)
			continue
		}
		t.selection.group, t.selection.grouped = l.state.clusters.groups[name]
		t.limit = l.limitOf(t.cluster, l.state.clusters.bindings[name], false)
		l.clusters = append(l.clusters, t)
	}
	for _, targets := range [][]*target{l.clusters, l.leaving} {
		slices.SortFunc(targets, func(a, b *target) int { return cmp.Compare(a.name, b.name) })
	}
	return nil
}

// observeWorks finds the revision of each cluster, and compares its Works with it.
func (l *reconciliation) observeWorks(ctx context.Context) error {
	named := make(map[string]bool, len(l.clusters))
	for _, t := range l.clusters {
		named[t.name] = true
		t.assigned = l.state.assignmentOf(t.name, t.existing.assigned())
		var err error
		if t.reading, err = l.reading(ctx, t.assigned.revision); err != nil {
			return err
		}
	}
	l.state.clusters.drop(func(cluster string) bool { return named[cluster] })
	l.divide(ctx)
	for _, t := range l.clusters {
		l.evaluate(t)
		t.health = t.progress().Health()
	}
	l.reportRefused()
	return nil
}

// assignmentOf returns the last assignment of a cluster. The state in memory has precedence over the Works: they may
// not contain it yet, be deleted, or have been edited.
func (s *state) assignmentOf(cluster string, noted assignment) assignment {
	if known, is := s.clusters.assigned[cluster]; is {
		return known
	}
	if noted.revision != "" {
		s.clusters.assigned[cluster] = noted
	}
	return noted
}

// evaluate compares the Works of a cluster with the desired ones.
func (l *reconciliation) evaluate(t *target) {
	s := l.state
	now := cachedEvaluation{
		by: l.set.UID, assigned: t.assigned, placements: t.selection.placements, reading: t.reading, cluster: t.cluster,
		namespace: t.namespace, limit: t.limit, version: t.existing.version,
	}
	if t.divided != nil {
		now.objects = hashOf(t.divided.objects)
	}
	before, known := s.clusters.evaluations[t.name]
	if !known || !before.sameAs(now) || t.reading == nil {
		now.evaluation = l.plan(t)
		s.clusters.evaluations[t.name] = now
		before = now
	}
	t.evaluation = before.evaluation
	if t.current || t.problem.message != "" {
		return
	}
	s.shared.mu.Lock()
	failure := s.shared.writeErrors[t.name]
	s.shared.mu.Unlock()
	if failure.persistent {
		t.problem = problem{v1alpha1.ReasonWriteFailed, failure.message}
	} else {
		t.waits = cmp.Or(failure.message, t.waits)
	}
}

func (l *reconciliation) plan(t *target) evaluation {
	switch {
	case t.cluster == nil:
		return evaluation{waits: "The cluster is not in the fleet."}
	case t.leaving():
		return evaluation{waits: "The cluster is leaving the fleet."}
	case t.namespace == "":
		return evaluation{waits: "The cluster has no namespace on the hub yet."}
	case t.assigned.revision == "":
		return evaluation{}
	case t.reading == nil && len(t.existing.live()) > 0:
		return evaluation{current: true} // the desired content is unknown: the Works stay until the cluster is updated
	case t.reading == nil:
		return evaluation{problem: problem{
			v1alpha1.ReasonRevisionNotFound, fmt.Sprintf("The Works of the cluster are missing, and revision %s cannot be "+
				"used: %s.",
				t.assigned.revision, l.state.revisions.unreadable[t.assigned.revision]),
		}}
	}
	wanted, err := l.want(t).render()
	if refused := (notAllowedError)(""); errors.As(err, &refused) {
		// The cluster has not failed. Otherwise it would halt the rollout on other clusters, also after its Works were
		// deleted.
		return evaluation{waits: refused.Error(), refused: true}
	}
	if err != nil {
		return evaluation{problem: problem{v1alpha1.ReasonOverrideFailed, err.Error()}}
	}
	steps, err := arrange(baseName(l.state.key), t.existing.records, wanted)
	if err != nil {
		return evaluation{problem: problem{v1alpha1.ReasonOverrideFailed, err.Error()}}
	}
	return evaluation{current: len(steps) == 0, waits: bundle.Waiting(steps)}
}

// writable reports whether the Works of a cluster can be written.
func (t *target) writable() bool { return t.cluster != nil && !t.leaving() && t.namespace != "" }

// want returns the desired Works of a cluster for its assigned revision.
func (l *reconciliation) want(t *target) *want {
	w := &want{
		namespace: t.namespace, cluster: t.cluster, limit: t.limit, reading: t.reading, assigned: t.assigned,
		placements:   t.selection.placements,
		deletePolicy: deletePolicyOf(t.reading.content.Work.Delete), by: l.set.UID, created: l.set.CreationTimestamp,
	}
	if t.divided != nil {
		w.objects, w.divided = t.divided.objects, true
	}
	return w
}
