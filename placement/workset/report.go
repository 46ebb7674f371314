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
	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// statusPeriod is the least time between two writes of a status that tell nothing but how far things are: longer for one that is
// long, since etcd keeps all of it each time. What people wait for, or what a rollout remembers, is written at once.
func statusPeriod(clusters int) time.Duration {
	return max(time.Second, time.Duration(clusters)*2*time.Millisecond)
}

// report writes the status, if there is something new to say. Otherwise, or if it is too soon, it returns when to look again; zero: never.
func (l *look) report(ctx context.Context, status v1alpha1.WorkSetStatus) (again time.Duration, _ error) {
	if equality.Semantic.DeepEqual(status, l.set.Status) {
		return 0, nil
	}
	if wait := statusPeriod(len(status.Clusters)) - l.now.Sub(l.state.written); wait > 0 && equality.Semantic.DeepEqual(gist(&status), gist(&l.set.Status)) {
		return wait, nil
	}
	before := l.set
	next := before.DeepCopy()
	next.Status = status
	// The lock keeps what is said of this WorkSet off another one that has come under its name.
	err := l.client.Status().Patch(ctx, next, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("write the status of WorkSet %s: %w", l.state.key, err)
	}
	// What the API server has stored is what the next look compares with.
	l.set, l.state.latest, l.state.written = next, next, l.now
	l.announce(&before.Status, &next.Status)
	return 0, nil
}

// gist is what of a status must not wait.
func gist(s *v1alpha1.WorkSetStatus) *v1alpha1.WorkSetStatus {
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

// announce tells of what has turned.
func (l *look) announce(before, after *v1alpha1.WorkSetStatus) {
	if after.Rollout.Phase != "" && (before.Rollout.Phase != after.Rollout.Phase || before.Rollout.Revision != after.Rollout.Revision) {
		kind := normal
		switch after.Rollout.Phase {
		case v1alpha1.PhaseFailed, v1alpha1.PhaseRollingBack, v1alpha1.PhaseRolledBack:
			kind = warning
		}
		l.tell(l.set, kind, "Rollout"+string(after.Rollout.Phase), "Revision %s: %s", after.Rollout.Revision, after.Rollout.Message)
	}
	was, is := meta.FindStatusCondition(before.Conditions, v1alpha1.ConditionDegraded), meta.FindStatusCondition(after.Conditions, v1alpha1.ConditionDegraded)
	switch {
	case is == nil || was != nil && was.Status == is.Status && was.Reason == is.Reason:
	case is.Status == metav1.ConditionTrue:
		l.tell(l.set, warning, is.Reason, "%s", is.Message)
	case was != nil && was.Status == metav1.ConditionTrue:
		l.tell(l.set, normal, is.Reason, "%s", is.Message)
	}
}

const (
	normal  = corev1.EventTypeNormal
	warning = corev1.EventTypeWarning
)

// maxNote is how long the note of an Event may be, in bytes.
const maxNote = 1024

func (c *controller) tell(set *v1alpha1.WorkSet, kind, reason, format string, args ...any) {
	c.recorder.Eventf(set, nil, kind, reason, "Distribute", "%s", bounded.Text(fmt.Sprintf(format, args...), maxNote))
}
