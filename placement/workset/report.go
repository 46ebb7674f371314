package workset

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/bounded"
	"github.com/muster-sdk/muster/placement/internal/scope"
	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// statusPeriod is the minimum time between two writes of a status that differ only in progress. It is longer for a long
// status, because etcd stores all of it each time. Other changes are written immediately.
func statusPeriod(clusters int) time.Duration {
	return max(time.Second, time.Duration(clusters)*2*time.Millisecond)
}

// report writes the status if it changed. If an unwritten change can wait, report returns the time until the next
// reconcile, which writes it. Zero means that no reconcile is necessary.
func (l *reconciliation) report(ctx context.Context, status v1alpha1.WorkSetStatus) (again time.Duration, _ error) {
	if equality.Semantic.DeepEqual(status, l.set.Status) {
		return 0, nil
	}
	if wait := statusPeriod(len(status.Clusters)) - l.now.Sub(l.state.written); wait > 0 &&
		equality.Semantic.DeepEqual(urgentParts(&status), urgentParts(&l.set.Status)) {
		return wait, nil
	}
	before := l.set
	next := before.DeepCopy()
	next.Status = status
	// The optimistic lock prevents a write to a later WorkSet with this name.
	err := l.api.client.Status().Patch(ctx, scope.WorkSetObject(next),
		client.MergeFromWithOptions(scope.WorkSetObject(before), client.MergeFromWithOptimisticLock{}))
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("write the status of WorkSet %s: %w", l.state.key, err)
	}
	// The next reconcile compares with the stored status.
	l.set, l.state.latest, l.state.written = next, next, l.now
	l.announce(&before.Status, &next.Status)
	return 0, nil
}

// urgentParts returns the parts of a status whose changes are written immediately.
func urgentParts(s *v1alpha1.WorkSetStatus) *v1alpha1.WorkSetStatus {
	g := s.DeepCopy()
	g.Message, g.Counts, g.Clusters, g.OmittedClusters, g.Feedback = "", v1alpha1.ClusterCounts{}, nil, 0, nil
	g.Rollout.Message, g.Rollout.RolloutCounts = "", v1alpha1.RolloutCounts{}
	for i := range g.Rollout.Stages {
		g.Rollout.Stages[i].RolloutCounts = v1alpha1.RolloutCounts{}
	}
	for i := range g.Revisions {
		g.Revisions[i].Clusters = 0
	}
	for i := range g.Conditions {
		g.Conditions[i].Message = ""
	}
	return g
}

// announce records Events for transitions.
func (l *reconciliation) announce(before, after *v1alpha1.WorkSetStatus) {
	if after.Rollout.Phase != "" && (before.Rollout.Phase != after.Rollout.Phase ||
		before.Rollout.Revision != after.Rollout.Revision) {
		kind := normal
		switch after.Rollout.Phase {
		case v1alpha1.PhaseFailed, v1alpha1.PhaseRollingBack, v1alpha1.PhaseRolledBack:
			kind = warning
		}
		// +event:reason=Rollout, followed by the phase of the rollout, such as Paused or Failed
		// +event:type=Warning if the phase is Failed, RollingBack or RolledBack, else Normal
		// +event:message=the revision and the message of the rollout
		l.event(l.set, kind, "Rollout"+string(after.Rollout.Phase), "Revision %s: %s", after.Rollout.Revision,
			after.Rollout.Message)
	}
	was, is := meta.FindStatusCondition(before.Conditions, v1alpha1.ConditionDegraded),
		meta.FindStatusCondition(after.Conditions, v1alpha1.ConditionDegraded)
	switch {
	case is == nil || was != nil && was.Status == is.Status && was.Reason == is.Reason:
	case is.Status == metav1.ConditionTrue:
		// +event:reason=the reason of the condition Degraded, when it becomes True
		// +event:message=the message of the condition
		l.event(l.set, warning, is.Reason, "%s", is.Message)
	case was != nil && was.Status == metav1.ConditionTrue:
		// +event:reason=the reason of the condition Degraded, when it becomes False
		// +event:message=the message of the condition
		l.event(l.set, normal, is.Reason, "%s", is.Message)
	}
}

const (
	normal  = corev1.EventTypeNormal
	warning = corev1.EventTypeWarning
)

// maxNote is the maximum length in bytes of the note of an Event.
const maxNote = 1024

func (c *controller) event(set *v1alpha1.WorkSet, kind, reason, format string, args ...any) {
	c.recorder.Eventf(scope.WorkSetObject(set), nil, kind, reason, "Distribute", "%s",
		bounded.Text(fmt.Sprintf(format, args...), maxNote))
}
