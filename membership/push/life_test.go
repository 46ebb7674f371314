package push_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/fleet"
	"github.com/muster-sdk/muster/membership/push"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/localplane"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

var _ fleet.Runner = (*push.Runner)(nil)

// TestRunner_Lifecycle runs one member from the MemberCluster to the join, through all changes of its state, to the
// leave, twice.
func TestRunner_Lifecycle(t *testing.T) {
	testkit.Virtual(t, testRunnerLifecycle)
}

func testRunnerLifecycle(t *testing.T) {
	h := newMemoryHub(t)
	const name = "east"
	ctx := t.Context()

	// No administrator has decided, and the hub's policy keeps the member pending: the runner creates no objects.
	sent := h.wire.log()
	cluster := h.newMember(name, nil)
	f := h.run(cluster)
	require.Contains(t, messages(h.waitForPhase(name, v1alpha1.PhasePending).Status.Conditions),
		"set spec.accepted to true to accept the cluster, or to false to deny it. "+
			"The hub's policy says: The label site is not set.")
	requests := h.waitUntilIdle(sent)
	h.setSite(name, "theirs")
	require.Contains(t, messages(h.waitForPhase(name, v1alpha1.PhaseDenied).Status.Conditions), "The site is denied.")
	requests = append(requests, h.waitUntilIdle(sent)...)
	for _, request := range requests {
		require.NotRegexp(t, "^(POST|PUT|PATCH)", request)
	}
	require.Empty(t, h.remaining())
	requireNoNewObjects := h.sweep()

	// The policy accepts the member.
	h.setSite(name, "ours")
	cluster = h.waitForPhase(name, v1alpha1.PhaseJoined)
	require.True(t, *cluster.Spec.Accepted)
	require.Equal(t, h.eastID(), cluster.Spec.ClusterID)
	h.waitForHealthy(name, metav1.ConditionTrue)
	mustertest.Eventually(t, timeout, "no objects of the join remain", func() error {
		for _, object := range h.remaining() {
			if strings.Contains(object, membership.RegistrationNamespace) {
				return errors.New(object)
			}
		}
		return nil
	})
	store := &corev1.Secret{}
	require.NoError(t,
		h.Client.Get(ctx, client.ObjectKey{Namespace: membership.ConnectionNamespace, Name: "agent-" + string(cluster.UID)},
			store))
	require.Equal(t, cluster.UID, store.OwnerReferences[0].UID)
	require.Equal(t, name, store.Labels[membership.MemberLabel])

	// The companion applies the Works of the hub.
	h.send(name, "greeting")
	h.waitUntilApplied("greeting")

	// The companion accesses the hub as the member.
	c, err := client.New(h.hubConfig.Load(), client.Options{})
	require.NoError(t, err)
	review := &authenticationv1.SelfSubjectReview{}
	require.NoError(t, c.Create(ctx, review))
	require.Equal(t, "system:serviceaccount:member-east:"+membership.AgentName, review.Status.UserInfo.Username)

	// In steady state, the runner sends only heartbeats.
	before := h.beats(name)
	mustertest.Eventually(t, timeout, "three heartbeats without other requests", func() error {
		if requests := sent(); slices.ContainsFunc(requests,
			func(r string) bool { return !strings.HasSuffix(r, "/leases/"+membership.LeaseName) }) {
			before = h.beats(name)
			return fmt.Errorf("requests: %v", requests)
		}
		return orError(h.beats(name) >= before+3, "%d heartbeats", h.beats(name)-before)
	})

	// The member does not respond, and the hub is restarted.
	h.proxy.Stall()
	f.stop()
	f = h.run(cluster)
	require.Contains(t, h.waitForHealthy(name, metav1.ConditionFalse).Message, "does not respond")
	before = h.beats(name)
	mustertest.Eventually(t, timeout, "heartbeats continue",
		func() error { return orError(h.beats(name) >= before+2, "no heartbeats") })
	h.proxy.Heal()
	h.waitForHealthy(name, metav1.ConditionTrue)
	claim := cluster.Spec.Claim

	// The acceptance is withdrawn and given again: the agent is the same.
	sent()
	h.change(name, func(s *v1alpha1.MemberClusterSpec) { s.Accepted = new(false) })
	h.waitForPhase(name, v1alpha1.PhaseDenied)
	h.waitUntilIdle(sent)
	before = h.beats(name)
	h.change(name, func(s *v1alpha1.MemberClusterSpec) { s.Accepted = new(true) })
	cluster = h.waitForPhase(name, v1alpha1.PhaseJoined)
	require.Equal(t, claim, cluster.Spec.Claim)
	mustertest.Eventually(t, timeout, "heartbeats start again",
		func() error { return orError(h.beats(name) > before, "no heartbeats") })

	// The member leaves, and its MemberCluster stays: no objects remain on both sides, and the agent has not sent a
	// JoinRequest.
	sent()
	h.change(name, func(s *v1alpha1.MemberClusterSpec) { s.State = v1alpha1.StateLeave })
	h.waitForPhase(name, v1alpha1.PhaseLeft)
	h.waitUntilClean()
	h.requireCleanMember()
	for _, request := range sent() {
		require.NotContains(t, request, "joinrequests")
		require.NotRegexp(t, "^POST .*jointokens", request)
	}
	select {
	case <-f.ended:
		t.Fatal("the runner has returned: the member cannot join again")
	default:
	}

	// The member joins again with another claim, and is deleted.
	h.change(name, func(s *v1alpha1.MemberClusterSpec) { s.State = v1alpha1.StateJoin })
	cluster = h.waitForPhase(name, v1alpha1.PhaseJoined)
	require.NotEqual(t, claim, cluster.Spec.Claim)
	h.send(name, "greeting-again")
	h.waitUntilApplied("greeting-again")
	h.remove(name)
	<-f.ended // without stop
	h.waitUntilClean()
	h.requireCleanMember()
	requireNoNewObjects()
	require.NoError(t, f.err())
}

// TestRunner_UnreachableMemberLeaves checks that a member that does not respond leaves at its deadline, and that the
// runner's objects are deleted.
func TestRunner_UnreachableMemberLeaves(t *testing.T) {
	testkit.Virtual(t, testRunnerUnreachableMemberLeaves)
}

func testRunnerUnreachableMemberLeaves(t *testing.T) {
	h := newMemoryHub(t)
	const name = "dead"
	cluster := h.newMember(name, func(s *v1alpha1.MemberClusterSpec) {
		s.Accepted, s.Leave.DeadlineSeconds = new(true), 2
	})
	f := h.run(cluster)
	h.waitForPhase(name, v1alpha1.PhaseJoined)
	h.send(name, "abandoned")
	h.waitUntilApplied("abandoned")
	h.proxy.Cut()
	h.remove(name)
	<-f.ended
	h.waitUntilClean()

	h.proxy.Heal()
	h.clearMember("abandoned")
}

// TestRunner_KilledAfterEachRequest kills the hub after each of its requests, and checks that the next hub continues:
// the member joins and leaves with one claim and one request.
func TestRunner_KilledAfterEachRequest(t *testing.T) {
	testkit.Virtual(t, testRunnerKilledAfterEachRequest)
}

func testRunnerKilledAfterEachRequest(t *testing.T) {
	h := newMemoryHub(t)
	const name = "killed"
	cluster := h.newMember(name, func(s *v1alpha1.MemberClusterSpec) { s.Accepted = new(true) })

	requests := map[string]bool{}
	kills := h.killAfterEach(cluster, func() bool {
		var list v1alpha1.JoinRequestList
		require.NoError(t, h.Client.List(t.Context(), &list))
		for i := range list.Items {
			requests[list.Items[i].Name] = true
		}
		return h.phase(name) == v1alpha1.PhaseJoined
	})
	require.Greater(t, kills, 5)
	require.Len(t, requests, 1)
	require.Equal(t, cluster.UID, h.waitForPhase(name, v1alpha1.PhaseJoined).UID)

	h.send(name, "survivor")
	f := h.run(cluster)
	h.waitUntilApplied("survivor")
	f.stop()
	require.NoError(t, h.Client.Delete(t.Context(), cluster.DeepCopy()))
	require.Positive(t, h.killAfterEach(cluster, func() bool { return h.phase(name) == "" }))
	h.run(cluster).stop()
	h.waitUntilClean()
	h.requireCleanMember()
	var clusters v1alpha1.MemberClusterList
	require.NoError(t, h.Client.List(t.Context(), &clusters))
	require.Empty(t, clusters.Items, "the join must not create another MemberCluster")
}

func orError(ok bool, format string, args ...any) error {
	if ok {
		return nil
	}
	return fmt.Errorf(format, args...)
}

// waitUntilIdle waits until the runner sends no more requests, of which the last deletes the JoinToken, and returns the
// requests.
func (h *testHub) waitUntilIdle(sent func() []string) (all []string) {
	h.T.Helper()
	mustertest.Eventually(h.T, timeout, "the runner is idle", func() error {
		all = append(all, sent()...)
		return orError(len(all) > 0 && strings.HasPrefix(all[len(all)-1], "DELETE"), "requests: %v", all)
	})
	return all
}

func (h *testHub) eastID() string {
	h.T.Helper()
	namespace := &corev1.Namespace{}
	require.NoError(h.T, h.east.Get(h.T.Context(), client.ObjectKey{Name: metav1.NamespaceSystem}, namespace))
	return string(namespace.UID)
}

func (h *testHub) phase(name string) v1alpha1.Phase {
	cluster := &v1alpha1.MemberCluster{}
	require.NoError(h.T, client.IgnoreNotFound(h.Client.Get(h.T.Context(), client.ObjectKey{Name: name}, cluster)))
	return cluster.Status.Phase
}

// beats returns how often the member's Lease has been renewed.
func (h *testHub) beats(name string) int64 {
	h.T.Helper()
	lease := &coordinationv1.Lease{}
	require.NoError(h.T,
		h.Client.Get(h.T.Context(), client.ObjectKey{Namespace: "member-" + name, Name: membership.LeaseName}, lease))
	if seen := h.lease.Swap(new(lease.ResourceVersion)); seen == nil || *seen != lease.ResourceVersion {
		h.renewals.Add(1)
	}
	return h.renewals.Load()
}

// send creates a Work with one ConfigMap for the member.
func (h *testHub) send(member, name string) {
	h.T.Helper()
	manifest := runtime.RawExtension{
		Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"` + name + `"}}`)}
	h.Create(&workv1alpha1.Work{
		ObjectMeta: metav1.ObjectMeta{Namespace: "member-" + member, Name: name},
		Spec:       workv1alpha1.WorkSpec{Manifests: []workv1alpha1.Manifest{{RawExtension: manifest}}},
	})
}

func (h *testHub) waitUntilApplied(name string) {
	h.T.Helper()
	mustertest.Eventually(h.T, timeout, name+" is on the member", func() error {
		return h.east.Get(h.T.Context(), client.ObjectKey{Namespace: "default", Name: name}, &corev1.ConfigMap{})
	})
}

// requireCleanMember checks that no objects of Works and agents are left on the member.
func (h *testHub) requireCleanMember() {
	h.T.Helper()
	var maps corev1.ConfigMapList
	require.NoError(h.T, h.east.List(h.T.Context(), &maps, client.InNamespace("default")))
	for _, each := range maps.Items {
		require.Equal(h.T, "kube-root-ca.crt", each.Name)
	}
	var applied workv1alpha1.AppliedWorkList
	require.NoError(h.T, h.east.List(h.T.Context(), &applied))
	require.Empty(h.T, applied.Items)
	err := h.east.Get(h.T.Context(), client.ObjectKey{Name: "muster-system"}, &corev1.Namespace{})
	require.True(h.T, apierrors.IsNotFound(err), "want no namespace muster-system, got %v", err)
}

// sweep lists all objects on both sides, and returns a function that waits until no others exist.
func (h *testHub) sweep() (requireNoNewObjects func()) {
	h.T.Helper()
	before := map[string]sets.Set[string]{}
	for name, config := range h.admins {
		var err error
		before[name], err = localplane.Sweep(h.T.Context(), config)
		require.NoError(h.T, err)
	}
	return func() {
		h.T.Helper()
		for name, config := range h.admins {
			mustertest.Eventually(h.T, timeout, "no new objects on the "+name, func() error {
				after, err := localplane.Sweep(h.T.Context(), config)
				added := after.Difference(before[name])
				return errors.Join(err, orError(added.Len() == 0, "new objects: %q", sets.List(added)))
			})
		}
	}
}

// clearMember removes the objects that are left on a member that did not respond during its leave.
func (h *testHub) clearMember(name string) {
	h.T.Helper()
	require.NoError(h.T,
		h.east.Delete(context.Background(),
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}))
	require.NoError(h.T, h.east.DeleteAllOf(context.Background(), &workv1alpha1.AppliedWork{}))
}
