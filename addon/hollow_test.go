package addon_test

import (
	"context"
	"slices"
	"sync"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/testkit"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// hollow simulates the agents of all members, without clusters: each reports on its Works.
type simulatedAgents struct {
	h *hub

	mu      sync.Mutex
	dead    []string                                   // namespaces of members whose agents are stopped
	stopped bool                                       // no member responds
	isReady func(work *workv1alpha1.Work) (ready bool) // nil: all Works become ready
	ignored func(work *workv1alpha1.Work) bool         // Works without a report; nil: none
}

// obey simulates the agents of all members until the test ends.
func (h *hub) runAgents() *simulatedAgents {
	members := &simulatedAgents{h: h}
	testkit.FollowWorks(h.T, h.Client, func(ctx context.Context, work *workv1alpha1.Work) {
		_ = members.report(ctx, work) // the watch delivers newer versions
	}, client.HasLabels{v1alpha1.AddonLabel})
	return members
}

// die stops the agent of a member.
func (m *simulatedAgents) stopAgent(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dead = append(m.dead, m.h.namespaceOf(name))
}

// stopAll stops all agents until the next setReadiness.
func (m *simulatedAgents) stopAll() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stopped = true
}

// setReadiness sets which Works become ready from now on.
func (m *simulatedAgents) setReadiness(ready func(*workv1alpha1.Work) bool) {
	m.mu.Lock()
	m.isReady, m.stopped = ready, false
	m.mu.Unlock()
	var works workv1alpha1.WorkList
	require.NoError(m.h.T, m.h.Client.List(m.h.T.Context(), &works, client.HasLabels{v1alpha1.AddonLabel}))
	for i := range works.Items {
		work := &works.Items[i]
		require.NoError(m.h.T, retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			if err := m.h.Client.Get(m.h.T.Context(), client.ObjectKeyFromObject(work), work); err != nil {
				return client.IgnoreNotFound(err)
			}
			work.Status.ObservedGeneration = 0
			return m.report(m.h.T.Context(), work)
		}))
	}
}

// ignoreWorks sets Works on which agents report nothing from now on. Agents still delete their objects.
func (m *simulatedAgents) ignoreWorks(ignored func(*workv1alpha1.Work) bool) {
	m.mu.Lock()
	m.ignored = ignored
	isReady := m.isReady
	m.mu.Unlock()
	m.setReadiness(isReady)
}

// answer handles a Work and writes its status. It fails with a conflict if the Work has changed.
func (m *simulatedAgents) report(ctx context.Context, work *workv1alpha1.Work) error {
	m.mu.Lock()
	dead, isReady, ignored := m.stopped || slices.Contains(m.dead, work.Namespace), m.isReady, m.ignored
	m.mu.Unlock()
	before := work.DeepCopy()
	switch {
	case dead:
	case work.DeletionTimestamp != nil:
		work.Finalizers = nil
		return client.IgnoreNotFound(m.h.Client.Patch(ctx, work, client.MergeFrom(before)))
	case ignored != nil && ignored(work):
	case work.Status.ObservedGeneration != work.Generation:
		ready := isReady == nil || isReady(work)
		work.Status.ObservedGeneration = work.Generation
		degraded := map[bool]metav1.ConditionStatus{true: metav1.ConditionFalse, false: metav1.ConditionTrue}[ready]
		work.Status.Message = map[bool]string{true: "all is well", false: "the Deployment is refused"}[ready]
		for kind, status := range map[string]metav1.ConditionStatus{
			workv1alpha1.ConditionApplied: not(degraded), workv1alpha1.ConditionAvailable: not(degraded),
			workv1alpha1.ConditionProgressing: metav1.ConditionFalse, workv1alpha1.ConditionDegraded: degraded,
		} {
			meta.SetStatusCondition(&work.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: "Test",
				ObservedGeneration: work.Generation})
		}
		err := m.h.Client.Status().Patch(ctx, work, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		return client.IgnoreNotFound(err)
	}
	return nil
}

func not(s metav1.ConditionStatus) metav1.ConditionStatus {
	if s == metav1.ConditionTrue {
		return metav1.ConditionFalse
	}
	return metav1.ConditionTrue
}
