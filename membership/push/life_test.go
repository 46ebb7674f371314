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
	w := newWorldInMemory(t)
	const name = "east"
	ctx := t.Context()

	// No administrator has decided, and the hub's policy keeps the member pending: the runner creates no objects.
	sent := w.wire.log()
	cluster := w.newMember(name, nil)
	f := w.run(cluster)
	require.Contains(t, messages(w.waitForPhase(name, v1alpha1.PhasePending).Status.Conditions),
		"set spec.accepted to true to accept the cluster, or to false to deny it. "+
			"The hub's policy says: The label site is not set.")
	requests := w.waitUntilIdle(sent)
	w.setSite(name, "theirs")
	require.Contains(t, messages(w.waitForPhase(name, v1alpha1.PhaseDenied).Status.Conditions), "The site is denied.")
	requests = append(requests, w.waitUntilIdle(sent)...)
	for _, request := range requests {
		require.NotRegexp(t, "^(POST|PUT|PATCH)", request)
	}
	require.Empty(t, w.remaining())
	requireNoNewObjects := w.sweep()

	// The policy accepts the member.
	w.setSite(name, "ours")
	cluster = w.waitForPhase(name, v1alpha1.PhaseJoined)
	require.True(t, *cluster.Spec.Accepted)
	require.Equal(t, w.eastID(), cluster.Spec.ClusterID)
	w.waitForHealthy(name, metav1.ConditionTrue)
	mustertest.Eventually(t, timeout, "no objects of the join remain", func() error {
		for _, object := range w.remaining() {
			if strings.Contains(object, membership.RegistrationNamespace) {
				return errors.New(object)
			}
		}
		return nil
	})
	store := &corev1.Secret{}
	require.NoError(t,
		w.hub.Get(ctx, client.ObjectKey{Namespace: membership.ConnectionNamespace, Name: "agent-" + string(cluster.UID)},
			store))
	require.Equal(t, cluster.UID, store.OwnerReferences[0].UID)
	require.Equal(t, name, store.Labels[membership.MemberLabel])

	// The companion applies the Works of the hub.
	w.send(name, "greeting")
	w.waitUntilApplied("greeting")

	// The companion accesses the hub as the member.
	c, err := client.New(w.hubConfig.Load(), client.Options{})
	require.NoError(t, err)
	review := &authenticationv1.SelfSubjectReview{}
	require.NoError(t, c.Create(ctx, review))
	require.Equal(t, "system:serviceaccount:member-east:"+membership.AgentName, review.Status.UserInfo.Username)

	// In steady state, the runner sends only heartbeats.
	before := w.beats(name)
	mustertest.Eventually(t, timeout, "three heartbeats without other requests", func() error {
		if requests := sent(); slices.ContainsFunc(requests,
			func(r string) bool { return !strings.HasSuffix(r, "/leases/"+membership.LeaseName) }) {
			before = w.beats(name)
			return fmt.Errorf("requests: %v", requests)
		}
		return orError(w.beats(name) >= before+3, "%d heartbeats", w.beats(name)-before)
	})

	// The member does not respond, and the hub is restarted.
	w.proxy.Stall()
	f.stop()
	f = w.run(cluster)
	require.Contains(t, w.waitForHealthy(name, metav1.ConditionFalse).Message, "does not respond")
	before = w.beats(name)
	mustertest.Eventually(t, timeout, "heartbeats continue",
		func() error { return orError(w.beats(name) >= before+2, "no heartbeats") })
	w.proxy.Heal()
	w.waitForHealthy(name, metav1.ConditionTrue)
	claim := cluster.Spec.Claim

	// The acceptance is withdrawn and given again: the agent is the same.
	sent()
	w.change(name, func(s *v1alpha1.MemberClusterSpec) { s.Accepted = new(false) })
	w.waitForPhase(name, v1alpha1.PhaseDenied)
	w.waitUntilIdle(sent)
	before = w.beats(name)
	w.change(name, func(s *v1alpha1.MemberClusterSpec) { s.Accepted = new(true) })
	cluster = w.waitForPhase(name, v1alpha1.PhaseJoined)
	require.Equal(t, claim, cluster.Spec.Claim)
	mustertest.Eventually(t, timeout, "heartbeats start again",
		func() error { return orError(w.beats(name) > before, "no heartbeats") })

	// The member leaves, and its MemberCluster stays: no objects remain on both sides, and the agent has not sent a
	// JoinRequest.
	sent()
	w.change(name, func(s *v1alpha1.MemberClusterSpec) { s.State = v1alpha1.StateLeave })
	w.waitForPhase(name, v1alpha1.PhaseLeft)
	w.waitUntilClean()
	w.requireCleanMember()
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
	w.change(name, func(s *v1alpha1.MemberClusterSpec) { s.State = v1alpha1.StateJoin })
	cluster = w.waitForPhase(name, v1alpha1.PhaseJoined)
	require.NotEqual(t, claim, cluster.Spec.Claim)
	w.send(name, "greeting-again")
	w.waitUntilApplied("greeting-again")
	w.remove(name)
	<-f.ended // without stop
	w.waitUntilClean()
	w.requireCleanMember()
	requireNoNewObjects()
	require.NoError(t, f.err())
}

// TestRunner_UnreachableMemberLeaves checks that a member that does not respond leaves at its deadline, and that the
// runner's objects are deleted.
func TestRunner_UnreachableMemberLeaves(t *testing.T) {
	testkit.Virtual(t, testRunnerUnreachableMemberLeaves)
}

func testRunnerUnreachableMemberLeaves(t *testing.T) {
	w := newWorldInMemory(t)
	const name = "dead"
	cluster := w.newMember(name, func(s *v1alpha1.MemberClusterSpec) {
		s.Accepted, s.Leave.DeadlineSeconds = new(true), 2
	})
	f := w.run(cluster)
	w.waitForPhase(name, v1alpha1.PhaseJoined)
	w.send(name, "abandoned")
	w.waitUntilApplied("abandoned")
	w.proxy.Cut()
	w.remove(name)
	<-f.ended
	w.waitUntilClean()

	w.proxy.Heal()
	w.clearMember("abandoned")
}

// TestRunner_KilledAfterEachRequest kills the hub after each of its requests, and checks that the next hub continues:
// the member joins and leaves with one claim and one request.
func TestRunner_KilledAfterEachRequest(t *testing.T) {
	testkit.Virtual(t, testRunnerKilledAfterEachRequest)
}

func testRunnerKilledAfterEachRequest(t *testing.T) {
	w := newWorldInMemory(t)
	const name = "killed"
	cluster := w.newMember(name, func(s *v1alpha1.MemberClusterSpec) { s.Accepted = new(true) })

	requests := map[string]bool{}
	kills := w.killAfterEach(cluster, func() bool {
		var list v1alpha1.JoinRequestList
		require.NoError(t, w.hub.List(t.Context(), &list))
		for i := range list.Items {
			requests[list.Items[i].Name] = true
		}
		return w.phase(name) == v1alpha1.PhaseJoined
	})
	require.Greater(t, kills, 5)
	require.Len(t, requests, 1)
	require.Equal(t, cluster.UID, w.waitForPhase(name, v1alpha1.PhaseJoined).UID)

	w.send(name, "survivor")
	f := w.run(cluster)
	w.waitUntilApplied("survivor")
	f.stop()
	require.NoError(t, w.hub.Delete(t.Context(), cluster.DeepCopy()))
	require.Positive(t, w.killAfterEach(cluster, func() bool { return w.phase(name) == "" }))
	w.run(cluster).stop()
	w.waitUntilClean()
	w.requireCleanMember()
	var clusters v1alpha1.MemberClusterList
	require.NoError(t, w.hub.List(t.Context(), &clusters))
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
func (w *world) waitUntilIdle(sent func() []string) (all []string) {
	w.t.Helper()
	mustertest.Eventually(w.t, timeout, "the runner is idle", func() error {
		all = append(all, sent()...)
		return orError(len(all) > 0 && strings.HasPrefix(all[len(all)-1], "DELETE"), "requests: %v", all)
	})
	return all
}

func (w *world) eastID() string {
	w.t.Helper()
	namespace := &corev1.Namespace{}
	require.NoError(w.t, w.east.Get(w.t.Context(), client.ObjectKey{Name: metav1.NamespaceSystem}, namespace))
	return string(namespace.UID)
}

func (w *world) phase(name string) v1alpha1.Phase {
	cluster := &v1alpha1.MemberCluster{}
	require.NoError(w.t, client.IgnoreNotFound(w.hub.Get(w.t.Context(), client.ObjectKey{Name: name}, cluster)))
	return cluster.Status.Phase
}

// beats returns how often the member's Lease has been renewed.
func (w *world) beats(name string) int64 {
	w.t.Helper()
	lease := &coordinationv1.Lease{}
	require.NoError(w.t,
		w.hub.Get(w.t.Context(), client.ObjectKey{Namespace: "member-" + name, Name: membership.LeaseName}, lease))
	if seen := w.lease.Swap(new(lease.ResourceVersion)); seen == nil || *seen != lease.ResourceVersion {
		w.renewals.Add(1)
	}
	return w.renewals.Load()
}

// send creates a Work with one ConfigMap for the member.
func (w *world) send(member, name string) {
	w.t.Helper()
	manifest := runtime.RawExtension{
		Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"` + name + `"}}`)}
	require.NoError(w.t, w.hub.Create(w.t.Context(), &workv1alpha1.Work{
		ObjectMeta: metav1.ObjectMeta{Namespace: "member-" + member, Name: name},
		Spec:       workv1alpha1.WorkSpec{Manifests: []workv1alpha1.Manifest{{RawExtension: manifest}}},
	}))
}

func (w *world) waitUntilApplied(name string) {
	w.t.Helper()
	mustertest.Eventually(w.t, timeout, name+" is on the member", func() error {
		return w.east.Get(w.t.Context(), client.ObjectKey{Namespace: "default", Name: name}, &corev1.ConfigMap{})
	})
}

// requireCleanMember checks that no objects of Works and agents are left on the member.
func (w *world) requireCleanMember() {
	w.t.Helper()
	var maps corev1.ConfigMapList
	require.NoError(w.t, w.east.List(w.t.Context(), &maps, client.InNamespace("default")))
	for _, each := range maps.Items {
		require.Equal(w.t, "kube-root-ca.crt", each.Name)
	}
	var applied workv1alpha1.AppliedWorkList
	require.NoError(w.t, w.east.List(w.t.Context(), &applied))
	require.Empty(w.t, applied.Items)
	err := w.east.Get(w.t.Context(), client.ObjectKey{Name: "muster-system"}, &corev1.Namespace{})
	require.True(w.t, apierrors.IsNotFound(err), "want no namespace muster-system, got %v", err)
}

// sweep lists all objects on both sides, and returns a function that waits until no others exist.
func (w *world) sweep() (requireNoNewObjects func()) {
	w.t.Helper()
	before := map[string]sets.Set[string]{}
	for name, config := range w.admins {
		var err error
		before[name], err = localplane.Sweep(w.t.Context(), config)
		require.NoError(w.t, err)
	}
	return func() {
		w.t.Helper()
		for name, config := range w.admins {
			mustertest.Eventually(w.t, timeout, "no new objects on the "+name, func() error {
				after, err := localplane.Sweep(w.t.Context(), config)
				added := after.Difference(before[name])
				return errors.Join(err, orError(added.Len() == 0, "new objects: %q", sets.List(added)))
			})
		}
	}
}

// clearMember removes the objects that are left on a member that did not respond during its leave.
func (w *world) clearMember(name string) {
	w.t.Helper()
	require.NoError(w.t,
		w.east.Delete(context.Background(),
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}))
	require.NoError(w.t, w.east.DeleteAllOf(context.Background(), &workv1alpha1.AppliedWork{}))
}
