package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/muster-sdk/muster/internal/requeue"
	"github.com/muster-sdk/muster/work/apply"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// An object is orphaned if no Work contains it any more although no user requested its deletion. The functions in
// this file that have no context are pure.

// orphan marks the entries of an inventory as orphaned, except those for which stays returns true. It returns the
// number of entries that it marked.
func orphan(applied *v1alpha1.AppliedWork, stays func(v1alpha1.AppliedResource) bool, reason string,
	now time.Time) int {
	consumeRelease(applied) // the annotation applies to objects that were orphaned before
	marked := 0
	for i := range applied.Status.Resources {
		if r := &applied.Status.Resources[i]; r.OrphanedTime == nil && !stays(*r) {
			r.OrphanedTime = &metav1.Time{Time: now}
			marked++
		}
	}
	if marked > 0 {
		updateOrphanedCondition(applied, reason, now)
	}
	return marked
}

// adopt transfers an inventory to the Work that the desired AppliedWork names. Objects that this Work does not
// contain are orphaned in three cases: the Work replaces another Work whose deletion was not requested, it is an
// earlier generation, or it is the first one after the hub was restored. adopt returns the reason, or an empty string
// if no object is orphaned.
func adopt(next, desired *v1alpha1.AppliedWork, objects []apply.Object, now time.Time) (reason string) {
	have, want := next.Spec.Work, desired.Spec.Work
	next.Spec = desired.Spec
	switch request := next.Status.DeletionRequest; {
	case !adopts(have, want):
		return ""
	case have.UID == want.UID:
		reason = v1alpha1.ReasonHubRestored
	case request != nil && request.WorkUID == have.UID:
		next.Status.DeletionRequest = nil // the deletion of objects that the new Work does not contain was requested
		return ""
	default:
		reason = v1alpha1.ReasonWorkReplaced
	}
	stale := map[objectKey]bool{}
	for _, r := range apply.Stale(next.Status.Resources, objects) {
		stale[keyOf(r.ResourceIdentifier)] = true
	}
	if orphan(next, func(r v1alpha1.AppliedResource) bool { return !stale[keyOf(r.ResourceIdentifier)] }, reason,
		now) == 0 {
		return ""
	}
	return reason
}

// adopts reports whether the desired Work is anything but a later generation of the Work in the inventory.
func adopts(have, want v1alpha1.WorkReference) bool {
	return have.UID != want.UID || want.Generation < have.Generation || want.HubRestored > have.HubRestored
}

// rebuilt returns the inventory of a Work whose inventory was lost: the objects of the Work, and the objects that
// were found with its mark. Found objects that the Work does not contain are orphaned.
func rebuilt(objects []apply.Object, found []v1alpha1.AppliedResource, now time.Time) []v1alpha1.AppliedResource {
	stale := map[objectKey]bool{}
	for _, r := range apply.Stale(found, objects) {
		stale[keyOf(r.ResourceIdentifier)] = true
	}
	found = slices.Clone(found)
	for i := range found {
		if stale[keyOf(found[i].ResourceIdentifier)] {
			found[i].OrphanedTime = &metav1.Time{Time: now}
		}
		found[i].Wave = apply.Wave(found[i].GroupVersionKind().GroupKind())
	}
	return apply.Ahead(found, objects)
}

// consumeRelease marks the orphaned entries of an inventory as released if a user requested their deletion by the
// annotation. It then removes the annotation, which does not apply to objects that are orphaned later. It reports
// whether it changed anything.
func consumeRelease(applied *v1alpha1.AppliedWork) bool {
	if applied.UID == "" || applied.Annotations[v1alpha1.ReleaseAnnotation] != string(applied.UID) {
		return false
	}
	for i := range applied.Status.Resources {
		r := &applied.Status.Resources[i]
		r.Released = r.Released || r.OrphanedTime != nil
	}
	delete(applied.Annotations, v1alpha1.ReleaseAnnotation)
	return true
}

// updateOrphanedCondition updates the condition Orphaned. Without a reason, it keeps the present one.
func updateOrphanedCondition(applied *v1alpha1.AppliedWork, reason string, now time.Time) {
	n := orphansOf(applied)
	if n == 0 {
		meta.RemoveStatusCondition(&applied.Status.Conditions, v1alpha1.ConditionOrphaned)
		return
	}
	if was := findCondition(applied.Status.Conditions, v1alpha1.ConditionOrphaned); reason == "" {
		if reason = v1alpha1.ReasonWorkNotFound; was != nil {
			reason = was.Reason
		}
	}
	set(&applied.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionOrphaned, Status: metav1.ConditionTrue, Reason: reason,
		Message: bounded(orphanMessage(applied.Spec.Work, reason, n)),
	}, now)
}

func orphanMessage(work v1alpha1.WorkReference, reason string, n int) string {
	why := "does not exist on the hub, and no request to delete it was observed"
	switch reason {
	case v1alpha1.ReasonWorkReplaced:
		why = "was recreated without the objects, and no request to delete the former Work was observed"
	case v1alpha1.ReasonNamespaceTerminating:
		why = "was deleted with its namespace"
	case v1alpha1.ReasonDefinitionRemoved:
		why = "was deleted with the definition of Works"
	case v1alpha1.ReasonNotRequestedByGenerator:
		why = "was deleted, but not by the controller that generates it"
	case v1alpha1.ReasonHubRestored:
		why = "does not contain the objects since the hub was restored to an earlier state"
	case v1alpha1.ReasonInventoryRebuilt:
		why = "does not contain the objects, and its AppliedWork was lost"
	}
	return fmt.Sprintf("%s orphaned: Work %s/%s of hub %s %s. Create the Work with these objects to adopt them, or set "+
		"annotation %s to the UID of this AppliedWork to delete them.", objects(n), work.Namespace, work.Name, work.Hub, why,
		v1alpha1.ReleaseAnnotation)
}

func orphansOf(applied *v1alpha1.AppliedWork) (n int) {
	for i := range applied.Status.Resources {
		if applied.Status.Resources[i].OrphanedTime != nil {
			n++
		}
	}
	return n
}

// due splits an inventory into objects that may be deleted and objects that are kept. It returns when the next
// orphaned object is due; 0: none will be. An object that is not orphaned is due if the deletion of the Work was
// requested (ended).
func due(applied *v1alpha1.AppliedWork, ended bool, grace time.Duration,
	now time.Time) (gone, kept []v1alpha1.AppliedResource, after time.Duration) {
	for _, r := range applied.Status.Resources {
		is := ended
		if r.OrphanedTime != nil {
			is = r.Released
			if wait := r.OrphanedTime.Add(grace).Sub(now); grace > 0 && !is {
				if is = wait <= 0; !is {
					after = requeue.Sooner(after, wait)
				}
			}
		}
		if is {
			gone = append(gone, r)
		} else {
			kept = append(kept, r)
		}
	}
	return gone, kept, after
}

// keepOrphans marks the objects of a Work that ended without a request as orphaned, and deletes those that were
// released since. It returns when to reconcile again.
func (a *Agent) keepOrphans(ctx context.Context, work types.NamespacedName, st *state,
	reason string) (time.Duration, error) {
	if err := st.applied.recordRelease(ctx); err != nil {
		return 0, err
	}
	next := st.applied.latest.DeepCopy()
	marked := orphan(next, func(v1alpha1.AppliedResource) bool { return false }, reason, time.Now())
	if marked > 0 {
		st.detached = "" // objects that could not be applied may still have their owner reference
		if err := st.applied.update(ctx, next); err != nil {
			return 0, err
		}
		applied := st.applied.latest
		note := findCondition(applied.Status.Conditions, v1alpha1.ConditionOrphaned).Message
		// +event:message=the message of the condition Orphaned of the AppliedWork
		a.events.emit(&v1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: work.Namespace, Name: work.Name,
			UID: applied.Spec.Work.UID}},
			corev1.EventTypeWarning, "Orphaned", note)
		log.FromContext(ctx).Info("Objects of a Work are orphaned and kept", "work", work.Name, "objects", marked, "reason",
			reason, "appliedWork", applied.Name)
	}
	a.recordOrphans(work.Name, st.applied.latest)
	if err := a.detach(ctx, st, st.applied.latest.Status.Resources); err != nil {
		return 0, err
	}
	return a.pruneDue(ctx, work.Name, st, false)
}

// detach removes the owner references that earlier releases set from the objects of an inventory, once for each run
// of the agent. Applying an object removes them as well.
func (a *Agent) detach(ctx context.Context, st *state, resources []v1alpha1.AppliedResource) error {
	applied := st.applied.latest
	if st.detached == applied.UID {
		return nil
	}
	engine, err := a.engines.get(applied.Spec.Executor)
	if err != nil {
		return err
	}
	if err := engine.Detach(ctx, st.applied.owner(), resources); err != nil {
		return fmt.Errorf("remove owner references to AppliedWork %s: %w", applied.Name, err)
	}
	st.detached = applied.UID
	return nil
}

// pruneDue deletes the orphaned objects that are due, and the AppliedWork if the inventory is then empty.
func (a *Agent) pruneDue(ctx context.Context, work string, st *state, ended bool) (time.Duration, error) {
	gone, _, after := due(st.applied.latest, ended, a.options.OrphanGracePeriod, time.Now())
	if len(gone) == 0 && len(st.applied.latest.Status.Resources) > 0 {
		a.watches.setObjects(work, nil)
		return after, nil
	}
	if withheld := a.options.PruneGate(ctx); withheld != "" {
		return jittered(gateInterval), nil
	}
	if err := a.refresh(ctx, st); err != nil {
		return 0, err
	}
	left, err := a.deleteDue(ctx, work, st, ended, st.applied.latest.Spec.Delete)
	if err != nil {
		return 0, err
	}
	a.recordOrphans(work, st.applied.latest)
	if len(left) > 0 {
		return st.retry(time.Now()), nil
	}
	return after, nil
}

// refresh reads the AppliedWork from the API server, because a release must not be read from a cache.
func (a *Agent) refresh(ctx context.Context, st *state) error {
	live := &v1alpha1.AppliedWork{}
	if err := a.member.Get(ctx, client.ObjectKeyFromObject(st.applied.latest), live); err != nil {
		return fmt.Errorf("read AppliedWork %s: %w", st.applied.latest.Name, err)
	}
	if live.UID != st.applied.latest.UID {
		return errChangedConcurrently
	}
	st.applied.latest = live
	return nil
}

// OrphanSummary counts the orphaned objects of a member: objects that no Work contains any more although no user
// requested their deletion.
type OrphanSummary struct {
	// Works is the number of Works with orphaned objects, whether or not the Work exists.
	Works int
	// Objects is the number of orphaned objects.
	Objects int
	// First are the names of the first Works, in alphabetical order; at most ten.
	First []string
}

// orphanCounts are the orphaned objects that the agent has observed.
type orphanCounts struct {
	reporting          sync.Mutex      // serializes reports
	works              map[string]int  // objects by the name of the Work
	counted            bool            // those that existed before the start are in works
	recordedSinceStart map[string]bool // the Works that were recorded before that
}

// maxOrphanNames is the maximum length of [OrphanSummary.First].
const maxOrphanNames = 10

// Orphans returns the orphaned objects that the agent has observed. It may be called concurrently.
func (a *Agent) Orphans() OrphanSummary {
	a.mu.Lock()
	defer a.mu.Unlock()
	return summaryOf(a.orphans.works)
}

func summaryOf(orphans map[string]int) OrphanSummary {
	s := OrphanSummary{Works: len(orphans)}
	for work, n := range orphans {
		s.Objects += n
		s.First = append(s.First, work)
	}
	slices.SortFunc(s.First, strings.Compare)
	s.First = s.First[:min(len(s.First), maxOrphanNames)]
	return s
}

// recordOrphans records the number of orphaned objects in the inventory of a Work; nil: there is no inventory.
func (a *Agent) recordOrphans(work string, applied *v1alpha1.AppliedWork) {
	n := 0
	if applied != nil {
		n = orphansOf(applied)
	}
	a.orphans.reporting.Lock() // so that the last call reports the last state
	defer a.orphans.reporting.Unlock()
	a.mu.Lock()
	if !a.orphans.counted {
		if a.orphans.recordedSinceStart == nil {
			a.orphans.recordedSinceStart = map[string]bool{}
		}
		a.orphans.recordedSinceStart[work] = true
	}
	if a.orphans.works[work] == n {
		a.mu.Unlock()
		return
	}
	if a.orphans.works[work] = n; n == 0 {
		delete(a.orphans.works, work)
	}
	summary := summaryOf(a.orphans.works)
	a.mu.Unlock()
	a.reportOrphans(summary)
}

func (a *Agent) reportOrphans(summary OrphanSummary) {
	a.metrics.orphaned(a.options.HubName, summary.Objects)
	a.options.OnOrphans(summary)
}

// countInterval is the time between two attempts to count the orphaned objects when the agent starts.
const countInterval = 10 * time.Second

// countOrphans reports the orphaned objects on the member once after the start, even if there are none, because the
// last report before the start may be outdated. It returns when it has reported, or when the context ends.
func (a *Agent) countOrphans(ctx context.Context) {
	for {
		var list v1alpha1.AppliedWorkList
		err := a.member.cache.List(ctx, &list)
		if err == nil {
			a.recordCountedOrphans(list.Items)
			return
		}
		if ctx.Err() == nil {
			a.options.Log.V(1).Info("Failed to count orphaned objects; retrying", "error", err.Error(), "after",
				countInterval)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(countInterval):
		}
	}
}

// recordCountedOrphans records the orphaned objects of all existing AppliedWorks. It skips a Work that recordOrphans
// recorded since the start, because that number is more recent.
func (a *Agent) recordCountedOrphans(all []v1alpha1.AppliedWork) {
	a.orphans.reporting.Lock()
	defer a.orphans.reporting.Unlock()
	a.mu.Lock()
	for i := range all {
		work := all[i].Spec.Work
		if n := orphansOf(&all[i]); n > 0 && work.Namespace == a.options.Namespace &&
			!a.orphans.recordedSinceStart[work.Name] {
			a.orphans.works[work.Name] = n
		}
	}
	a.orphans.counted, a.orphans.recordedSinceStart = true, nil
	summary := summaryOf(a.orphans.works)
	a.mu.Unlock()
	a.reportOrphans(summary)
}
