package hub_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/hub"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
)

// TestLease_CreatedByTheHub checks that a member has its Lease before an agent connects, and that the hub creates a
// Lease again that a user deleted while no agent runs. The member does not leave.
func TestLease_CreatedByTheHub(t *testing.T) { testkit.Virtual(t, testLeaseCreatedByTheHub) }

func testLeaseCreatedByTheHub(t *testing.T) {
	const name = "leased"
	h := startHub(t, newMemory(t), hub.Options{})
	h.Create(&v1alpha1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.MemberClusterSpec{Accepted: new(true), ClusterID: "id-" + name, HeartbeatPeriodSeconds: 1},
	})
	h.untilPhase(name, v1alpha1.PhaseAccepted)
	lease := &coordinationv1.Lease{}
	key := client.ObjectKey{Namespace: "member-" + name, Name: membership.LeaseName}
	h.Eventually("the hub creates the Lease", func() error { return h.Client.Get(t.Context(), key, lease) })
	require.Nil(t, lease.Spec.RenewTime, "a Lease that no agent has renewed is no heartbeat")

	a := h.newAgent(h.token(name, v1alpha1.JoinTokenSpec{}), agent.Options{Name: name}).start()
	h.untilCondition(name, v1alpha1.ConditionHealthy, metav1.ConditionTrue, v1alpha1.ReasonHeartbeating)
	a.stop()
	require.NoError(t, h.Client.Get(t.Context(), key, lease))
	require.NotNil(t, lease.Spec.RenewTime, "the agent renews the Lease of the hub")
	deleted := lease.UID
	require.NoError(t, h.Client.Delete(t.Context(), lease))
	h.Eventually("the hub creates the Lease again", func() error {
		if err := h.Client.Get(t.Context(), key, lease); err != nil {
			return err
		}
		return orError(lease.UID != deleted && lease.Spec.RenewTime == nil, "the Lease is %+v", lease)
	})
	require.Equal(t, v1alpha1.PhaseJoined, h.member(name).Status.Phase)

	h.stop()
	require.NoError(t, h.Client.Delete(t.Context(), lease))
	again := startHub(t, h.plane, hub.Options{})
	again.Eventually("a hub that starts creates the Lease again", func() error {
		return again.Client.Get(t.Context(), key, &coordinationv1.Lease{})
	})
	mustertest.Change(t, again.Client, again.member(name), func(cluster *v1alpha1.MemberCluster) {
		cluster.Spec.Leave.DeadlineSeconds = 1
	})
	again.remove(name)
}
