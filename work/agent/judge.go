package agent

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/work/apply"
	"github.com/muster-sdk/muster/work/feedback"
	"github.com/muster-sdk/muster/work/readiness"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// judgement is what an object itself says: whether it is ready, and the values that the hub asked for.
type judgement struct {
	version string // of the object
	asked   string // as in the plan
	ready   readiness.Result
	values  []v1alpha1.FeedbackValue
	problem string // with a value
}

// judge judges the objects of a Work, each version once.
type judge struct {
	agent  *Agent
	engine *engine
	plan   *plan

	mu      sync.Mutex
	before  *v1alpha1.WorkStatus // as reported last
	judged  map[objectKey]judgement
	blocked *v1alpha1.ResourceIdentifier // the object that holds back a wave
}

// all judges all objects that are there, by their index.
func (j *judge) all(ctx context.Context, changes []apply.Change) map[int]judgement {
	judgments := make(map[int]judgement, len(changes))
	var group errgroup.Group
	group.SetLimit(apply.DefaultConcurrency)
	for i, m := range j.plan.manifests {
		if m.object < 0 || changes[m.object].UID == "" && changes[m.object].Reason != v1alpha1.ReasonCompleted {
			continue
		}
		group.Go(func() error {
			judgement := j.one(ctx, &j.plan.manifests[i], &changes[m.object])
			j.mu.Lock()
			defer j.mu.Unlock()
			judgments[i] = judgement
			return nil
		})
	}
	_ = group.Wait()
	return judgments
}

func (j *judge) one(ctx context.Context, m *planned, change *apply.Change) judgement {
	if change.Reason == v1alpha1.ReasonCompleted && change.UID == "" {
		return j.finished(m.id)
	}
	key := keyOf(m.id)
	j.mu.Lock()
	known, ok := j.judged[key]
	j.mu.Unlock()
	if ok && known.version == change.ResourceVersion && known.version != "" {
		return known
	}
	live := change.Live
	if m.rule == nil && len(m.feedback) == 0 && !m.wellKnown && j.agent.options.Readiness.ByPresence(m.id.GroupVersionKind().GroupKind()) {
		return judgement{version: change.ResourceVersion, ready: readiness.Result{Status: readiness.Ready}}
	}
	if live == nil {
		var err error
		if live, err = j.read(ctx, m.id); err != nil {
			return judgement{ready: readiness.Result{Status: readiness.Unknown, Message: fmt.Sprintf("it could not be read: %v", err)}}
		}
		change.ResourceVersion = live.GetResourceVersion()
	}
	made := m.judge(live, j.agent.options.Readiness)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.judged[key] = made
	return made
}

// finished is the judgment of a Job that has run and was removed by its TTL: that it failed is remembered by the
// status.
func (j *judge) finished(id v1alpha1.ResourceIdentifier) judgement {
	result := readiness.Result{Status: readiness.Ready, Ends: true, Complete: true, Message: "the Job has run"}
	for _, manifest := range j.before.Manifests {
		available := findCondition(manifest.Conditions, v1alpha1.ConditionAvailable)
		if keyOf(manifest.ResourceIdentifier) == keyOf(id) && available != nil && available.Reason == v1alpha1.ReasonNotReady {
			result = readiness.Result{Status: readiness.Failed, Ends: true, Message: available.Message}
		}
	}
	return judgement{ready: result}
}

func (j *judge) read(ctx context.Context, id v1alpha1.ResourceIdentifier) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, apply.DefaultTimeout)
	defer cancel()
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(id.GroupVersionKind())
	return live, j.engine.client.Get(ctx, client.ObjectKey{Namespace: id.Namespace, Name: id.Name}, live)
}

// judge is pure.
func (m *planned) judge(live *unstructured.Unstructured, registry readiness.Registry) judgement {
	made := judgement{version: live.GetResourceVersion(), asked: m.asks}
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

// gate holds back a wave until all objects of the one before are applied and ready. Nil: waves do not wait. They have waited when all
// of this generation has been applied; what comes later, such as a node that fails, must not keep others from being healed.
func (j *judge) gate(policy v1alpha1.WavePolicy, status *v1alpha1.WorkStatus) apply.Gate {
	applied := findCondition(status.Conditions, v1alpha1.ConditionApplied)
	through := applied != nil && applied.Status == metav1.ConditionTrue && applied.ObservedGeneration == j.plan.generation
	if !policy.WaitForReadiness || through {
		return nil
	}
	manifests := map[objectKey]*planned{}
	for i := range j.plan.manifests {
		manifests[keyOf(j.plan.manifests[i].id)] = &j.plan.manifests[i]
	}
	return func(ctx context.Context, wave []apply.Change) string {
		for i := range wave {
			change := &wave[i]
			if manifests[keyOf(change.Object)].yields || change.Reason == v1alpha1.ReasonDisabled {
				continue
			}
			reason := "which is not applied."
			if change.Done() {
				ready := j.one(ctx, manifests[keyOf(change.Object)], change).ready
				if ready.Status == readiness.Ready {
					continue
				}
				reason = "which is not ready: " + ready.Message
			}
			j.blocked = &change.Object
			return fmt.Sprintf("Waits for %s, %s", change.Object, reason)
		}
		return ""
	}
}
