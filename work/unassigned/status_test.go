package unassigned

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/work/v1alpha1"
)

func TestStatusOf(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	work := &v1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Generation: 2}}
	first, news := statusOf(work, now)
	require.True(t, news)
	work.Status = first
	again, _ := statusOf(work, now.Add(time.Hour))
	require.Equal(t, first, again, "the same state has the same status, or it would be written again and again")

	work.Status.ObservedGeneration = 1
	_, news = statusOf(work, now)
	require.False(t, news, "the status belongs to the agent that has observed the Work")
	work.DeletionTimestamp, work.Finalizers = &metav1.Time{Time: now}, []string{v1alpha1.Finalizer}
	status, news := statusOf(work, now)
	require.True(t, news)
	require.Contains(t, status.Message, "remove the finalizer")
}

func TestStatusWhenAssigned(t *testing.T) {
	now := time.Now()
	work := &v1alpha1.Work{}
	_, news := statusWhenAssigned(work, "east", now)
	require.False(t, news, "nothing was reported")
	work.Status, _ = statusOf(work, now)
	status, news := statusWhenAssigned(work, "east", now)
	require.True(t, news)
	work.Status = status
	_, news = statusWhenAssigned(work, "east", now)
	require.False(t, news, "it is written once")
}
