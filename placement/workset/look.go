package workset

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/muster-sdk/muster/placement/bundle"
	"github.com/muster-sdk/muster/placement/internal/progress"
	"github.com/muster-sdk/muster/placement/rollout"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// look is one look at a WorkSet.
type look struct {
	*controller

	set   *v1alpha1.WorkSet
	state *state
	now   time.Time

	problems []progress.Problem
	valid    bool            // the spec is
	revision string          // that all clusters are to have; empty: none yet
	groups   []rollout.Group // that the placements declare
	certain  bool            // the decisions of all placements are known, and by that the groups
	clusters []*target
	leaving  []*target
	rollout  rollout.Plan
	after    time.Duration // when to look again at the latest; zero: never
}

// target is a cluster that has something of the WorkSet, or is to have it.
type target struct {
	name      string
	group     rollout.Group
	grouped   bool // the group is known
	namespace string
	cluster   *scheduler.Cluster // nil: it is not in the fleet
	held      held
	told      told
	reading   *reading // of what it was told; nil: nothing, or it cannot be read any more
	divided   *divided // nil: it gets what the objects say
	hold      rollout.HoldReason
	health    rollout.Health // at what it was told
	verdict
}

// divided is what a cluster gets where replicas are divided.
type divided struct {
	objects  []bundle.Object
	replicas int32
}

// outgoing reports whether the cluster is on its way out of the fleet. What becomes of its Works is then for its leave to say, which may
// have all objects stay where they are.
func (t *target) outgoing() bool { return t.cluster != nil && t.cluster.Leaving }

func (l *look) problem(reason, format string, args ...any) {
	l.problems = append(l.problems, progress.Problem{Reason: reason, Message: fmt.Sprintf(format, args...)})
}

// patience is the interval for checking a state whose change triggers no event.
const patience = 15 * time.Second

// lookAgain has the WorkSet reconciled again after a while.
func (l *look) lookAgain() { l.after = earlier(l.after, patience) }

// gather finds the clusters that the placements have chosen, and those that have something and are to have nothing any more.
func (l *look) gather(ctx context.Context) error {
	chosen, certain, err := l.chosen(ctx)
	if err != nil {
		return err
	}
	l.certain = certain
	has := l.works.of(l.state.key)
	named, located := make(map[string]*target, len(chosen)), true
	for _, c := range chosen {
		t := &target{name: c.name, group: c.group, grouped: true, namespace: l.Namespace(c.name), cluster: l.fleet.member(c.name).lasting}
		t.held = has[t.namespace]
		delete(has, t.namespace)
		named[c.name], located = t, located && t.namespace != ""
		if t.namespace == "" && t.cluster != nil && l.untold {
			l.lookAgain()
		}
		l.fleet.locate(c.name, t.namespace)
		l.state.groups[c.name] = c.group
		l.clusters = append(l.clusters, t)
	}
	for namespace, h := range has {
		name, known := l.fleet.in(namespace)
		switch of := named[name]; {
		case of == nil:
		case of.namespace == "": // it is not known now, and was this one
			of.held = h
			continue
		default:
			name = namespace // where the cluster was before
		}
		t := &target{name: name, namespace: namespace, cluster: l.fleet.member(name).lasting, held: h}
		// Nothing is taken away on a guess: it may be what a cluster has whose namespace is not known now.
		if certain && (known || located) {
			switch {
			case t.cluster == nil:
				t.waits = "The cluster is not in the fleet. Its Works are kept until it is there again, or leaves."
			case !ownerOf(l.set).claimsAny(h):
				t.waits = "The cluster is not chosen. Its Works are those of an earlier WorkSet with this name, and are kept. " +
					"To delete one with its objects, set its annotation " + workv1alpha1.DeletionRequestedByAnnotation + " before you delete it."
			}
			l.leaving = append(l.leaving, t)
			continue
		}
		t.group, t.grouped = l.state.groups[name]
		l.clusters = append(l.clusters, t)
	}
	for _, targets := range [][]*target{l.clusters, l.leaving} {
		slices.SortFunc(targets, func(a, b *target) int { return cmp.Compare(a.name, b.name) })
	}
	return nil
}

// inspect finds out what each cluster was told, and whether its Works say so.
func (l *look) inspect(ctx context.Context) error {
	named := make(map[string]bool, len(l.clusters))
	for _, t := range l.clusters {
		named[t.name] = true
		t.told = l.state.tell(t.name, t.held.told())
		var err error
		if t.reading, err = l.reading(ctx, t.told.revision); err != nil {
			return err
		}
	}
	l.state.forget(func(cluster string) bool { return named[cluster] })
	l.divide(ctx)
	for _, t := range l.clusters {
		l.judge(t)
		t.health = t.seen().Health()
	}
	return nil
}

// tell returns what a cluster was told last, given what its Works say. What is known already counts for more: the Works may not say it yet, be
// deleted, or have been edited.
func (s *state) tell(cluster string, noted told) told {
	if known, is := s.told[cluster]; is {
		return known
	}
	if noted.revision != "" {
		s.told[cluster] = noted
	}
	return noted
}

// judge says whether a cluster's Works are as they are to be.
func (l *look) judge(t *target) {
	s := l.state
	now := looked{by: l.set.UID, told: t.told, reading: t.reading, cluster: t.cluster, namespace: t.namespace, version: t.held.version}
	if t.divided != nil {
		now.objects = hashOf(t.divided.objects)
	}
	before, known := s.looks[t.name]
	if !known || !before.sameAs(now) || t.reading == nil {
		now.verdict = l.arranged(t)
		s.looks[t.name] = now
		before = now
	}
	t.verdict = before.verdict
	if t.current || t.problem.message != "" {
		return
	}
	s.mu.Lock()
	trouble := s.troubles[t.name]
	s.mu.Unlock()
	if trouble.lasts {
		t.problem = problem{v1alpha1.ReasonWriteFailed, trouble.why}
	} else {
		t.waits = cmp.Or(trouble.why, t.waits)
	}
}

func (l *look) arranged(t *target) verdict {
	switch {
	case t.cluster == nil:
		return verdict{waits: "It is not in the fleet."}
	case t.outgoing():
		return verdict{waits: "It leaves the fleet."}
	case t.namespace == "":
		return verdict{waits: "It has no namespace on the hub yet."}
	case t.told.revision == "":
		return verdict{}
	case t.reading == nil && len(t.held.live()) > 0:
		return verdict{current: true} // the desired content is not known: it stays as it is until its turn comes
	case t.reading == nil:
		return verdict{problem: problem{
			v1alpha1.ReasonRevisionNotFound, fmt.Sprintf("It has lost its Works, and revision %s cannot be used, for %s.", t.told.revision, l.state.unreadable[t.told.revision]),
		}}
	}
	wanted, err := l.want(t).render()
	if err != nil {
		return verdict{problem: problem{v1alpha1.ReasonOverrideFailed, err.Error()}}
	}
	steps, err := arrange(baseName(l.state.key), t.held.records, wanted)
	if err != nil {
		return verdict{problem: problem{v1alpha1.ReasonOverrideFailed, err.Error()}}
	}
	return verdict{current: len(steps) == 0, waits: bundle.Waiting(steps)}
}

// tellable reports whether Works of a cluster can be written.
func (t *target) tellable() bool { return t.cluster != nil && !t.outgoing() && t.namespace != "" }

// want is what a cluster is to have by what it was told.
func (l *look) want(t *target) *want {
	w := &want{namespace: t.namespace, cluster: t.cluster, reading: t.reading, told: t.told, parting: partingOf(t.reading.content.Work.Delete), by: l.set.UID, created: l.set.CreationTimestamp}
	if t.divided != nil {
		w.objects, w.divided = t.divided.objects, true
	}
	return w
}
