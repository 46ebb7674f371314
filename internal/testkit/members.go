package testkit

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// Member creates a MemberCluster with the status of a healthy member, and its namespace member-<name>. It needs neither
// a hub nor an agent.
func Member(t testing.TB, c client.Client, name string, labels map[string]string) *membershipv1alpha1.MemberCluster {
	t.Helper()
	require.NoError(t, c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "member-" + name}}))
	member := &membershipv1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	require.NoError(t, c.Create(t.Context(), member))
	Health(t, c, name, metav1.ConditionTrue)
	return member
}

// Health sets the condition Healthy of a MemberCluster that Member has created.
func Health(t testing.TB, c client.Client, member string, healthy metav1.ConditionStatus) {
	t.Helper()
	m := &membershipv1alpha1.MemberCluster{}
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Name: member}, m))
	before := m.DeepCopy()
	m.Status.Namespace = "member-" + member
	for kind, status := range map[string]metav1.ConditionStatus{membershipv1alpha1.ConditionJoined: metav1.ConditionTrue,
		membershipv1alpha1.ConditionHealthy: healthy} {
		meta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: "Test"})
	}
	require.NoError(t, c.Status().Patch(t.Context(), m, client.MergeFrom(before)))
}

// FollowWorks acts in place of agents: it calls answer with each existing Work and with each changed Work, until the
// returned function is called or the test ends. Calls are concurrent and in no order. An answer that fails is repeated
// at the next event.
func FollowWorks(t testing.TB, c client.WithWatch, answer func(context.Context, *workv1alpha1.Work),
	which ...client.ListOption) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			events, err := c.Watch(ctx, &workv1alpha1.WorkList{}, which...)
			if err != nil {
				continue
			}
			var answers errgroup.Group
			answers.SetLimit(Together)
			for event := range events.ResultChan() {
				if work, ok := event.Object.(*workv1alpha1.Work); ok {
					answers.Go(func() error { answer(ctx, work); return nil })
				}
			}
			_ = answers.Wait()
		}
	}()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(stop)
	return stop
}
