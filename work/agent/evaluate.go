package agent

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/requeue"
	"github.com/muster-sdk/muster/work/apply"
	"github.com/muster-sdk/muster/work/feedback"
	"github.com/muster-sdk/muster/work/readiness"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// evaluation is the result of evaluating an object: its readiness, and the feedback values that the Work requests.
type evaluation struct {
	version        string    // of the object
	key            string    // as in the plan
	uid            types.UID // of the object
	statusDeadline time.Time // until when the agent waits for the first status of the object; zero: it does not wait
	ready          readiness.Result
	values         []v1alpha1.FeedbackValue
	problem        string // with a value
}

// evaluator evaluates the objects of a Work, and each version of an object once.
type evaluator struct {
	agent  *Agent
	engine *engine
	plan   *plan

	mu        sync.Mutex
	before    *v1alpha1.WorkStatus // as reported last
	inventory []v1alpha1.AppliedResource
	evaluated map[objectKey]evaluation
	blocked   *v1alpha1.ResourceIdentifier // the object that blocks a wave
}

// all evaluates all objects that exist. The result is keyed by the index of the manifest.
func (e *evaluator) all(ctx context.Context, changes []apply.Change) map[int]evaluation {
	evaluations := make(map[int]evaluation, len(changes))
	var group errgroup.Group
	group.SetLimit(apply.DefaultConcurrency)
	for i, m := range e.plan.manifests {
		if m.object < 0 {
			continue
		}
		if changes[m.object].Live.UID == "" && changes[m.object].Reason != v1alpha1.ReasonCompleted {
			if kept, ok := e.keptResult(&e.plan.manifests[i]); ok {
				e.mu.Lock()
				evaluations[i] = evaluation{ready: kept}
				e.mu.Unlock()
			}
			continue
		}
		group.Go(func() error {
			evaluation := e.one(ctx, &e.plan.manifests[i], &changes[m.object])
			e.mu.Lock()
			defer e.mu.Unlock()
			evaluations[i] = evaluation
			return nil
		})
	}
	_ = group.Wait()
	return evaluations
}

func (e *evaluator) one(ctx context.Context, m *planned, change *apply.Change) evaluation {
	if change.Reason == v1alpha1.ReasonCompleted && change.Live.UID == "" {
		return e.finished(m)
	}
	key := keyOf(m.id)
	e.mu.Lock()
	known, ok := e.evaluated[key]
	e.mu.Unlock()
	if ok && known.version == change.Live.ResourceVersion && known.version != "" {
		return known.at(time.Now())
	}
	live := change.Live.Object
	if m.rule == nil && len(m.feedback) == 0 && !m.wellKnown &&
		e.agent.options.Readiness.ByPresence(m.id.GroupVersionKind().GroupKind()) {
		return evaluation{version: change.Live.ResourceVersion, ready: readiness.Result{Status: readiness.Ready}}
	}
	if live == nil {
		var err error
		if live, err = e.read(ctx, m.id); err != nil {
			// The watch may still have a Job that was deleted.
			if kept, ok := e.keptResult(m); ok {
				return evaluation{ready: kept}
			}
			return evaluation{ready: readiness.Result{
				Status: readiness.Unknown, Message: fmt.Sprintf("the object could not be read: %v", err),
			}}
		}
		change.Live.ResourceVersion = live.GetResourceVersion()
	}
	made := m.evaluate(live, e.agent.options.Readiness)
	if made.ready.Unreported {
		made.statusDeadline = e.statusDeadline(change.Object, live, known)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.evaluated[key] = made
	return made.at(time.Now())
}

// statusDeadline returns until when the agent waits for the first status of an object, given the last evaluation. Zero:
// it does not wait. The clock of the member may be ahead, so the time is computed once per object.
func (e *evaluator) statusDeadline(id v1alpha1.ResourceIdentifier, live *unstructured.Unstructured,
	last evaluation) time.Time {
	grace := e.agent.options.StatusGracePeriod
	if last.uid == live.GetUID() && !last.statusDeadline.IsZero() {
		return last.statusDeadline
	}
	now := time.Now()
	wait := min(live.GetCreationTimestamp().Add(grace).Sub(now), grace)
	if wait <= 0 || !e.agent.member.statuses.hasStatus(resourceOf(id)) {
		return time.Time{}
	}
	return now.Add(wait)
}

// at returns the evaluation at a time: an object whose first status is still awaited is not ready.
func (v evaluation) at(now time.Time) evaluation {
	if now.Before(v.statusDeadline) {
		v.ready = readiness.Result{Status: readiness.Progressing, Message: "no controller has reported a status yet"}
	}
	return v
}

// untilReported returns how long the agent waits until the first status of an object is overdue; 0: no status is
// awaited.
func untilReported(evaluations map[int]evaluation, now time.Time) (shortest time.Duration) {
	for _, evaluation := range evaluations {
		shortest = requeue.Sooner(shortest, max(evaluation.statusDeadline.Sub(now), 0))
	}
	return shortest
}

// finished evaluates a Job with ttlSecondsAfterFinished that does not exist any more.
func (e *evaluator) finished(m *planned) evaluation {
	last := e.agent.watches.lastState(keyOf(m.id))
	if last != nil && last.GetUID() != e.uid(m.id) {
		last = nil
	}
	return m.finished(last, e.before, e.agent.options.Readiness)
}

// uid returns the UID of an object in the inventory.
func (e *evaluator) uid(id v1alpha1.ResourceIdentifier) types.UID {
	for i := range e.inventory {
		if keyOf(e.inventory[i].ResourceIdentifier) == keyOf(id) {
			return e.inventory[i].UID
		}
	}
	return ""
}

// finished evaluates a Job that does not exist any more, by its last state (nil: unknown) and the status that was
// reported before. A Job whose result was not read is not reported as successful.
func (m *planned) finished(last *unstructured.Unstructured, before *v1alpha1.WorkStatus,
	registry readiness.Registry) evaluation {
	if last != nil {
		made := m.evaluate(last, registry)
		if made.ready.Status == readiness.Progressing {
			made.ready = readiness.Result{Status: readiness.Failed, Ends: true,
				Message: "The Job was deleted before it finished. Change the manifest to run the Job again."}
		}
		return made
	}
	if result, ok := m.reported(before); ok {
		return evaluation{ready: result}
	}
	return evaluation{ready: readiness.Result{Status: readiness.Unknown, Ends: true, Message: "The Job was deleted " +
		"before the agent read its result. Increase ttlSecondsAfterFinished, which also runs the Job again."}}
}

// keptResult returns the reported result of a Job with ttlSecondsAfterFinished whose manifest has run, for a reconcile
// that does not evaluate the Job, because the Work is suspended or the Job cannot be read. Only the status has the
// result after the Job was deleted.
func (e *evaluator) keptResult(m *planned) (readiness.Result, bool) {
	if !slices.ContainsFunc(e.inventory, e.plan.objects[m.object].Ran) {
		return readiness.Result{}, false
	}
	return m.reported(e.before)
}

// reported returns the result of a finished Job in a status.
func (m *planned) reported(status *v1alpha1.WorkStatus) (readiness.Result, bool) {
	for _, manifest := range status.Manifests {
		available := findCondition(manifest.Conditions, v1alpha1.ConditionAvailable)
		if keyOf(manifest.ResourceIdentifier) != keyOf(m.id) || available == nil {
			continue
		}
		switch available.Reason {
		case v1alpha1.ReasonReady:
			return readiness.Result{Status: readiness.Ready, Ends: true, Complete: true, Message: available.Message}, true
		case v1alpha1.ReasonNotReady:
			return readiness.Result{Status: readiness.Failed, Ends: true, Message: available.Message}, true
		}
	}
	return readiness.Result{}, false
}

func (e *evaluator) read(ctx context.Context, id v1alpha1.ResourceIdentifier) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, apply.DefaultTimeout)
	defer cancel()
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(id.GroupVersionKind())
	return live, e.engine.client.Get(ctx, client.ObjectKey{Namespace: id.Namespace, Name: id.Name}, live)
}

// evaluate evaluates an object. It is a pure function of the object.
func (m *planned) evaluate(live *unstructured.Unstructured, registry readiness.Registry) evaluation {
	made := evaluation{version: live.GetResourceVersion(), key: m.evaluationKey, uid: live.GetUID()}
	if removesItself(live) && live.GetDeletionTimestamp() != nil {
		live = live.DeepCopy() // The result of a Job does not change because the Job is deleted.
		live.SetDeletionTimestamp(nil)
	}
	if m.rule != nil {
		made.ready = m.rule.Assess(live)
	} else {
		made.ready = registry.Assess(live)
	}
	if m.wellKnown {
		made.values = slices.DeleteFunc(feedback.WellKnown(live), func(value v1alpha1.FeedbackValue) bool {
			return slices.ContainsFunc(m.feedback, func(wanted wantedValue) bool { return wanted.name == value.Name })
		})
	}
	for _, wanted := range m.feedback {
		value, found, err := wanted.path.Value(live)
		switch {
		case err != nil:
			made.problem = fmt.Sprintf("feedback %s: %v", wanted.name, err)
		case found:
			value.Name = wanted.name
			made.values = append(made.values, value)
		}
	}
	return made
}

// removesItself reports whether an object is a Job that Kubernetes deletes after it has finished.
func removesItself(live *unstructured.Unstructured) bool {
	_, found, _ := unstructured.NestedFieldNoCopy(live.Object, "spec", "ttlSecondsAfterFinished")
	return found && live.GroupVersionKind().GroupKind() == jobKind
}

// gate returns a gate that blocks a wave until all objects of the wave before are applied and ready. Nil: waves do
// not wait. The gate no longer applies after all objects of this generation have been applied: a later failure, such
// as that of a node, must not prevent the correction of other objects.
func (e *evaluator) gate(policy v1alpha1.WavePolicy, status *v1alpha1.WorkStatus) apply.Gate {
	applied := findCondition(status.Conditions, v1alpha1.ConditionApplied)
	through := applied != nil && applied.Status == metav1.ConditionTrue && applied.ObservedGeneration == e.plan.generation
	if !policy.WaitForReadiness || through {
		return nil
	}
	manifests := map[objectKey]*planned{}
	for i := range e.plan.manifests {
		manifests[keyOf(e.plan.manifests[i].id)] = &e.plan.manifests[i]
	}
	return func(ctx context.Context, wave []apply.Change) string {
		for i := range wave {
			change := &wave[i]
			if manifests[keyOf(change.Object)].doesNotBlockWaves || change.Reason == v1alpha1.ReasonDisabled {
				continue
			}
			reason := "which is not applied."
			if change.Done() {
				ready := e.one(ctx, manifests[keyOf(change.Object)], change).ready
				if ready.Status == readiness.Ready {
					continue
				}
				reason = "which is not ready: " + ready.Message
			}
			e.blocked = &change.Object
			return fmt.Sprintf("Waiting for %s, %s", change.Object, reason)
		}
		return ""
	}
}
