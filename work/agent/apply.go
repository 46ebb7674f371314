package agent

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/muster-sdk/muster/work/apply"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// result is what one reconcile of a Work changed and observed on the member.
type result struct {
	plan        *plan
	changes     []apply.Change // one for each object of the plan
	evaluations map[int]evaluation
	pruning     pruning       // of the objects that the Work does not contain any more
	orphans     int           // the number of objects that are kept although the Work does not contain them
	forbidden   error         // the policy does not permit the Work
	waiting     time.Duration // how long a wave has been blocked; 0: none is
	deadline    time.Duration // until the timeout of the blocked wave; 0: none is blocked, or the timeout has passed
	err         error
}

// applyWork applies the Work and evaluates its objects.
func (a *Agent) applyWork(ctx context.Context, work *v1alpha1.Work, st *state) (r result) {
	r = result{plan: st.plan}
	if r.forbidden = a.options.Executor(ctx, work); r.forbidden != nil {
		return r
	}
	desired := a.desired(work)
	if r.err = st.applied.read(ctx, a.member.cache, desired.Name); r.err != nil {
		return r
	}
	if latest := st.applied.latest; latest != nil && latest.DeletionTimestamp != nil {
		r.err = fmt.Errorf("AppliedWork %s is being deleted on the member: waiting to recreate the AppliedWork", latest.Name)
		return r
	}
	if work.Spec.Suspend {
		if st.applied.latest != nil {
			r.err = a.applyObjects(ctx, work, st, &r)
		}
		return r
	}
	if r.err = a.addFinalizer(ctx, work); r.err != nil {
		return r
	}
	before := adoptable(st.applied.latest, work)
	if r.err = a.openInventory(ctx, desired, st, st.plan.objects, work.Status.ObservedGeneration > 0); r.err != nil {
		return r
	}
	if before > 0 {
		a.events.emit(work, corev1.EventTypeNormal, "Adopted", fmt.Sprintf(
			"The Work adopted %s of a former Work on the member.", objects(before)))
	}
	r.err = a.applyObjects(ctx, work, st, &r)
	return r
}

// adoptable returns the number of objects in the inventory of an earlier Work with the same name; 0: the inventory
// belongs to this Work.
func adoptable(latest *v1alpha1.AppliedWork, work *v1alpha1.Work) int {
	if latest == nil || latest.Spec.Work.UID == work.UID {
		return 0
	}
	return len(latest.Status.Resources)
}

// applyObjects applies the objects of the Work, prunes what the Work no longer contains, and evaluates the objects.
func (a *Agent) applyObjects(ctx context.Context, work *v1alpha1.Work, st *state, r *result) error {
	engine, err := a.engines.get(work.Spec.Executor)
	if err != nil {
		return err
	}
	a.watch(work.Name, st, st.plan.objects, st.changes)
	a.watches.synced(ctx, work.Name, syncTimeout)

	objects := st.plan.objects
	if work.Spec.Suspend {
		objects = st.plan.suspended()
	}
	evaluator := &evaluator{agent: a, engine: engine, plan: st.plan, before: st.status(work), evaluated: st.evaluated,
		inventory: st.applied.latest.Status.Resources}
	gate := evaluator.gate(work.Spec.Waves, st.status(work))
	if !work.Spec.Suspend {
		if err := st.applied.recordRelease(ctx); err != nil {
			return err
		}
	}
	set := apply.Set{Owner: st.applied.owner(), Objects: objects, Inventory: st.applied.latest.Status.Resources,
		Record: st.applied.record}
	applied, err := engine.Apply(ctx, set, gate)
	if err != nil {
		return err
	}
	r.changes, st.changes = applied.Changes, applied.Changes
	if !work.Spec.Suspend {
		inventory := applied.Inventory
		if applied.Done() && st.plan.isComplete() { // all desired objects are applied, so others may be pruned
			if r.pruning, err = a.prune(ctx, work, st, pruneInput{engine, set, inventory}); err != nil {
				return err
			}
			inventory = r.pruning.inventory
		}
		if err := st.applied.record(ctx, inventory); err != nil {
			return err
		}
		a.recordOrphans(work.Name, st.applied.latest)
	}
	r.orphans = orphansOf(st.applied.latest)
	if err := a.detach(ctx, st, apply.Stale(st.applied.latest.Status.Resources, st.plan.objects)); err != nil {
		log.FromContext(ctx).Error(err, "Failed to remove owner references of an earlier release", "work", work.Name)
	}
	a.watch(work.Name, st, st.plan.objects, r.changes)
	if err := a.confirmStatus(ctx, work, st, evaluator.inventory); err != nil {
		return err
	}
	evaluator.before = st.status(work)
	r.evaluations = evaluator.all(ctx, r.changes)
	if evaluator.blocked != nil {
		r.waiting = waiting(*evaluator.blocked, work.Generation, st.status(work), time.Now())
		r.deadline = max(work.Spec.Waves.Timeout()-r.waiting, 0)
	}
	return nil
}

// waiting returns how long an object has blocked a wave. The time begins when the object was applied, or when it was
// observed not to be applied, but not before the rollout of this generation began. Both times are in the status, so
// they survive a restart of the agent.
func waiting(blocked v1alpha1.ResourceIdentifier, generation int64, status *v1alpha1.WorkStatus,
	now time.Time) time.Duration {
	since := now
	if progressing := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionProgressing); progressing != nil &&
		progressing.Status == metav1.ConditionTrue && progressing.ObservedGeneration == generation {
		since = progressing.LastTransitionTime.Time
	}
	for _, manifest := range status.Manifests {
		applied := meta.FindStatusCondition(manifest.Conditions, v1alpha1.ConditionApplied)
		if applied != nil && keyOf(manifest.ResourceIdentifier) == keyOf(blocked) && applied.LastTransitionTime.After(since) {
			since = applied.LastTransitionTime.Time
		}
	}
	return max(now.Sub(since), 1)
}

func keyOf(id v1alpha1.ResourceIdentifier) objectKey {
	return objectKey{id.GroupVersionKind().GroupKind(), id.Namespace, id.Name}
}

// watch makes the agent watch the objects of the Work on the member, and those that conflict with them. The changes
// are those of the last reconcile, if there was one.
func (a *Agent) watch(work string, st *state, objects []apply.Object, changes []apply.Change) {
	var objectsToWatch []watched
	known := a.resources()
	wanted := map[objectKey]bool{}
	for i, object := range objects {
		id := identifierOf(object)
		w := watched{id: id, labeled: object.Mode != v1alpha1.Observe && object.Mode != v1alpha1.ReportDiff}
		if changes != nil {
			w.id.Resource = changes[i].Object.Resource
			w.labeled = w.labeled && !ownedByOthers(changes[i])
		} else {
			w.id.Resource = known(id)
		}
		wanted[keyOf(id)] = true
		if w.id.Resource != "" {
			objectsToWatch = append(objectsToWatch, w)
		}
	}
	if st.applied.latest != nil {
		for _, entry := range st.applied.latest.Status.Resources {
			if wanted[keyOf(entry.ResourceIdentifier)] {
				continue
			}
			if entry.Resource == "" {
				entry.Resource = known(entry.ResourceIdentifier)
			}
			if entry.Resource != "" {
				objectsToWatch = append(objectsToWatch, watched{id: entry.ResourceIdentifier, labeled: true})
			}
		}
	}
	a.watches.setObjects(work, objectsToWatch)
}

// ownedByOthers reports whether another owner has the object, so that it may lack the label.
func ownedByOthers(change apply.Change) bool {
	switch change.Reason {
	case v1alpha1.ReasonInTheWay, v1alpha1.ReasonExists, v1alpha1.ReasonConflict:
		return true
	default:
		return false
	}
}

// resources returns a function that finds the resource of a kind and caches the result. The function returns an empty
// string if it cannot find the resource.
func (a *Agent) resources() func(v1alpha1.ResourceIdentifier) string {
	names := map[schema.GroupVersionKind]string{}
	return func(id v1alpha1.ResourceIdentifier) string {
		kind := id.GroupVersionKind()
		name, asked := names[kind]
		if !asked {
			if mapping, err := a.member.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version); err == nil {
				name = mapping.Resource.Resource
			}
			names[kind] = name
		}
		return name
	}
}
