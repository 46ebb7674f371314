package hub_test

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/crds"
	"github.com/muster-sdk/muster/membership/hub"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/registration/csr"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/localplane"
)

// blockingGate is a gate whose objects in a member's namespace have a finalizer, like Works have that of their agent.
type blockingGate struct {
	client   client.Client
	released atomic.Int32
}

const blockedName, blockedFinalizer = "held", "example.com/agent"

func (*blockingGate) Name() string { return "holder" }

func (g *blockingGate) Remaining(ctx context.Context, member membership.Member) ([]string, error) {
	return nil, g.removeFinalizers(ctx, member)
}

// Release removes the finalizers of objects that are being deleted.
func (g *blockingGate) Release(ctx context.Context, member membership.Member) error {
	g.released.Add(1)
	return g.removeFinalizers(ctx, member)
}

func (g *blockingGate) removeFinalizers(ctx context.Context, member membership.Member) error {
	blocked := &corev1.ConfigMap{}
	err := g.client.Get(ctx, client.ObjectKey{Namespace: member.Namespace, Name: blockedName}, blocked)
	if err != nil || blocked.DeletionTimestamp == nil {
		return client.IgnoreNotFound(err)
	}
	blocked.Finalizers = nil
	return client.IgnoreNotFound(g.client.Update(ctx, blocked))
}

// TestNamespace_DeletedByUserIsRestored checks that a member's namespace that a user deleted is restored with all
// objects of the hub. Finalizers do not block the deletion, the agent deletes nothing meanwhile, and it joins again.
func TestNamespace_DeletedByUserIsRestored(t *testing.T) {
	t.Parallel()
	for name, method := range map[string]registration.Method{"wiped-token": nil, "wiped-csr": csr.Method{}} {
		t.Run(name, func(t *testing.T) {
			p := plane.ForTest(t)
			gate := &blockingGate{client: mustertest.Client(t, p.Config(), newScheme(), crds.Install)}
			h := startHub(t, p, hub.Options{Gates: []membership.LeaveGate{gate}})
			bootstrap := h.token(name, v1alpha1.JoinTokenSpec{})
			var cleaned cleaner
			var companionHub atomic.Pointer[agent.Hub]
			a := h.joined(bootstrap, agent.Options{
				Name: name, Method: method, Cleaners: []membership.LeaveGate{cleaned.gate()},
				Companions: []agent.Companion{agent.CompanionFunc("asks", func(ctx context.Context, hub agent.Hub) error {
					companionHub.Store(&hub)
					<-ctx.Done()
					return nil
				})},
			})
			before, uid := &corev1.Namespace{}, h.member(name).UID
			key := client.ObjectKey{Name: "member-" + name}
			require.NoError(t, h.Client.Get(t.Context(), key, before))
			h.Eventually("the agent may prune", func() error {
				if hub := companionHub.Load(); hub != nil {
					return hub.MayPrune(t.Context())
				}
				return errors.New("the companion does not run")
			})
			h.Create(&corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: key.Name, Name: blockedName, Finalizers: []string{blockedFinalizer}},
			})
			h.untilDelivered("id-" + name)

			mustertest.Change(t, h.Client, before, func(namespace *corev1.Namespace) {
				metav1.SetMetaDataAnnotation(&namespace.ObjectMeta, localplane.NamespaceDelayAnnotation, "5s") // As in any cluster.
			})
			require.NoError(t, h.Client.Delete(t.Context(), before))
			// An earlier result is used for two seconds. The contents of the namespace are deleted after five.
			h.Eventually("the agent must not prune while the namespace is terminating", func() error {
				return orError(companionHub.Load().MayPrune(t.Context()) != nil, "MayPrune returns no error")
			})
			object := &corev1.ConfigMap{}
			require.NoError(t, h.Client.Get(t.Context(), client.ObjectKey{Namespace: key.Name, Name: blockedName}, object))
			require.Nil(t, object.DeletionTimestamp, "the agent detects the deletion before the contents are deleted")
			h.Eventually("the namespace is restored", func() error {
				after := &corev1.Namespace{}
				if err := h.Client.Get(t.Context(), key, after); err != nil {
					return err
				}
				return orError(after.UID != before.UID && after.DeletionTimestamp == nil,
					"the namespace is the former one or is terminating")
			})
			require.NotZero(t, gate.released.Load())
			h.untilPhase(name, v1alpha1.PhaseJoined)
			h.untilCondition(name, v1alpha1.ConditionHealthy, metav1.ConditionTrue, v1alpha1.ReasonHeartbeating)
			h.Eventually("the agent may prune again",
				func() error { return companionHub.Load().MayPrune(t.Context()) })
			require.Equal(t, uid, h.member(name).UID)
			require.Zero(t, cleaned.calls.Load(), "the agent cleaned up without a request")
			h.remove(name)
			a.stop()
		})
	}
}

// TestClonedCluster_IsReported checks that a cluster that was cloned with its ID is reported in the conditions of the
// MemberCluster.
func TestClonedCluster_IsReported(t *testing.T) { testkit.Virtual(t, testClonedClusterIsReported) }

func testClonedClusterIsReported(t *testing.T) {
	const name = "cloned"
	h := startHub(t, newMemory(t), hub.Options{})
	bootstrap := h.token(name, v1alpha1.JoinTokenSpec{})
	a := h.joined(bootstrap, agent.Options{Name: name})
	require.Nil(t, meta.FindStatusCondition(h.member(name).Status.Conditions, v1alpha1.ConditionClusterIDUnique))
	clone := newRequestSender(t, name, csr.Method{}, bootstrap)
	createRequest(t, h.requester(bootstrap), clone)
	cluster := h.untilCondition(name, v1alpha1.ConditionClusterIDUnique, metav1.ConditionFalse,
		v1alpha1.ReasonClusterIDTaken)
	require.Contains(t, messages(cluster.Status.Conditions), "JoinRequest "+clone.request.Name)
	require.NoError(t, h.Client.Delete(t.Context(), clone.request))
	h.Eventually("the clone is not reported any more", func() error {
		c := meta.FindStatusCondition(h.member(name).Status.Conditions, v1alpha1.ConditionClusterIDUnique)
		return orError(c == nil, "%+v", c)
	})
	h.remove(name)
	a.stop()
}

// TestHubEpoch_IsConfirmed checks that a hub whose agent observed a restore increases its epoch, and confirms that it
// is consistent.
func TestHubEpoch_IsConfirmed(t *testing.T) { testkit.Virtual(t, testHubEpochIsConfirmed) }

func testHubEpochIsConfirmed(t *testing.T) {
	const name = "epoch"
	h := startHub(t, newMemory(t), hub.Options{})
	h.Create(&v1alpha1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.MemberClusterSpec{Accepted: new(true), ClusterID: "id-" + name},
	})
	h.untilPhase(name, v1alpha1.PhaseAccepted)
	read := func() *v1alpha1.Membership {
		self := &v1alpha1.Membership{}
		h.Eventually("the Membership exists", func() error {
			return h.Client.Get(t.Context(), client.ObjectKey{Namespace: "member-" + name, Name: membership.MembershipName},
				self)
		})
		return self
	}
	stored := func() int64 {
		object := &corev1.ConfigMap{}
		require.NoError(t, h.Client.Get(t.Context(),
			client.ObjectKey{Namespace: membership.RegistrationNamespace, Name: membership.HubConfigMap}, object))
		epoch, err := strconv.ParseInt(object.Data["epoch"], 10, 64)
		require.NoError(t, err)
		return epoch
	}
	require.Zero(t, read().Spec.Hub.Epoch, "no epoch is confirmed without a request")
	required := stored() + 5
	h.Eventually("the agent reports that the hub was restored", func() error {
		self := read()
		self.Status.RequiredHubEpoch = required
		return h.Client.Status().Update(t.Context(), self)
	})
	h.Eventually("the hub increases its epoch",
		func() error { return orError(stored() >= required, "the epoch is %d", stored()) })
	h.Eventually("the hub confirms the epoch", func() error {
		return orError(read().Spec.Hub.Epoch >= required, "the confirmed epoch is %d", read().Spec.Hub.Epoch)
	})
	h.remove(name)
}
