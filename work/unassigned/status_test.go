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
	first, changed := statusOf(work, now)
	require.True(t, changed)
	work.Status = first
	again, _ := statusOf(work, now.Add(time.Hour))
	require.Equal(t, first, again, "the status of an unchanged Work is equal, so it is not written again")

	work.Status.ObservedGeneration = 1
	_, changed = statusOf(work, now)
	require.False(t, changed, "the status belongs to the agent that has observed the Work")
	work.DeletionTimestamp, work.Finalizers = &metav1.Time{Time: now}, []string{v1alpha1.Finalizer}
	status, changed := statusOf(work, now)
	require.True(t, changed)
	require.Contains(t, status.Message, "remove the finalizer")
}

func TestStatusWhenAssigned(t *testing.T) {
	now := time.Now()
	work := &v1alpha1.Work{}
	_, changed := statusWhenAssigned(work, "east", now)
	require.False(t, changed, "a Work without a status needs no change")
	work.Status, _ = statusOf(work, now)
	status, changed := statusWhenAssigned(work, "east", now)
	require.True(t, changed)
	work.Status = status
	_, changed = statusWhenAssigned(work, "east", now)
	require.False(t, changed, "the status is written once")
}
