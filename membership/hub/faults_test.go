package hub_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/hub"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/registration/csr"
	"github.com/muster-sdk/muster/membership/registration/token"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/localplane"
)

// cleaner is a gate of an agent that counts its calls.
type cleaner struct{ calls atomic.Int32 }

func (c *cleaner) gate() membership.LeaveGate {
	return membership.GateFunc("cleaner", func(context.Context, membership.Member) ([]string, error) {
		c.calls.Add(1)
		return nil, nil
	})
}

// TestForcedLeave checks that a failed agent does not block the leave of its member, and that it cleans up by its last
// known policy when it runs again.
func TestForcedLeave(t *testing.T) { testkit.Virtual(t, testForcedLeave) }

func testForcedLeave(t *testing.T) {
	h := startHub(t, newMemory(t), hub.Options{})
	bootstrap := h.token("forced", v1alpha1.JoinTokenSpec{})

	testkit.Step(t, "kept", func() {
		var left cleaner
		a := h.joined(bootstrap, agent.Options{Name: "forced-kept", Cleaners: []membership.LeaveGate{left.gate()}})
		a.stop()
		h.change("forced-kept", func(c *v1alpha1.MemberCluster) {
			c.Spec.State, c.Spec.Leave.DeadlineSeconds = v1alpha1.StateLeave, 3
		})
		cluster := h.untilPhase("forced-kept", v1alpha1.PhaseLeft)
		require.True(t, cluster.Status.Leave.Forced)
		require.Equal(t, "agent", cluster.Status.Leave.Waiting)
		joined := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionJoined)
		require.Equal(t, v1alpha1.ReasonLeaveForced, joined.Reason)
		require.Zero(t, left.calls.Load())

		a.start()
		h.Eventually("the agent cleans up",
			func() error { return orError(left.calls.Load() > 0, "the cleaner was not called") })
		h.request("id-forced-kept", v1alpha1.AnswerHeld, v1alpha1.ReasonStateLeave)
		h.remove("forced-kept")
		a.stop()
	})

	testkit.Step(t, "deleted", func() {
		var left cleaner
		var deregistered atomic.Bool
		options := agent.Options{Name: "forced-deleted", Cleaners: []membership.LeaveGate{left.gate()}}
		options.Bootstrap = deletableBootstrap{bootstrap, &deregistered}
		a := h.joined(nil, options)
		a.stop()
		h.change("forced-deleted", func(c *v1alpha1.MemberCluster) { c.Spec.Leave.DeadlineSeconds = 3 })
		h.remove("forced-deleted")

		a.start()
		h.Eventually("the agent cleans up and deletes its record", func() error {
			record, _ := a.store.Load(context.Background())
			return orError(left.calls.Load() > 0 && deregistered.Load() && record == nil, "called %d times, deregistered %v",
				left.calls.Load(), deregistered.Load())
		})
		a.stop()
		var clusters v1alpha1.MemberClusterList
		require.NoError(t, h.Client.List(t.Context(), &clusters))
		require.Empty(t, clusters.Items, "a deleted member must not join again by itself")
	})
}

type deletableBootstrap struct {
	bootstrap    *registration.Bootstrap
	deregistered *atomic.Bool
}

func (f deletableBootstrap) Load(context.Context) (*registration.Bootstrap, error) {
	if f.deregistered.Load() {
		return nil, nil
	}
	return f.bootstrap, nil
}

func (f deletableBootstrap) Forget(context.Context) error {
	f.deregistered.Store(true)
	return nil
}

func orError(ok bool, format string, args ...any) error {
	if ok {
		return nil
	}
	return fmt.Errorf(format, args...)
}

// TestPartition_TaintAfterGracePeriod checks that a member without heartbeats for longer than the grace period is
// tainted, and that the taint is removed after the next heartbeat.
func TestPartition_TaintAfterGracePeriod(t *testing.T) {
	testkit.Virtual(t, testPartitionTaintAfterGracePeriod)
}

func testPartitionTaintAfterGracePeriod(t *testing.T) {
	server := newMemory(t)
	h := startHub(t, server, hub.Options{})
	network := &testkit.Network{Dial: server.server.DialContext}
	a := h.joined(h.token("partition", v1alpha1.JoinTokenSpec{}), agent.Options{
		Name: "partition", HubConfig: func(config *rest.Config) { config.Dial = network.DialContext },
	})
	// otherwise the outage guard would withhold the taint
	witness := h.joined(h.token("witness", v1alpha1.JoinTokenSpec{}), agent.Options{Name: "witness"})
	userTaint := v1alpha1.Taint{Key: "example.com/mine", Effect: corev1.TaintEffectNoSchedule}
	h.change("partition", func(c *v1alpha1.MemberCluster) { c.Spec.Taints = []v1alpha1.Taint{userTaint} })
	for range 2 { // the second time the heartbeats are unsteady, and recovery takes longer
		network.Stall()
		h.untilCondition("partition", v1alpha1.ConditionHealthy, metav1.ConditionUnknown, v1alpha1.ReasonHeartbeatLost)
		h.Eventually("the member has the taint",
			func() error { return taints(h.member("partition"), userTaint.Key, membership.TaintUnreachable) })
		network.Heal()
		h.untilCondition("partition", v1alpha1.ConditionHealthy, metav1.ConditionTrue, v1alpha1.ReasonHeartbeating)
		h.Eventually("the taint is removed", func() error { return taints(h.member("partition"), userTaint.Key) })
	}
	h.remove("partition")
	a.stop()
	h.remove("witness")
	witness.stop()
}

func taints(cluster *v1alpha1.MemberCluster, want ...string) error {
	var got []string
	for _, taint := range cluster.Spec.Taints {
		got = append(got, taint.Key)
	}
	slices.Sort(got)
	slices.Sort(want)
	return orError(slices.Equal(got, want), "want taints %v, got %v", want, got)
}

// testAgentClockIsAnHourOff checks that nothing depends on the agent's clock.
func testAgentClockIsAnHourOff(t *testing.T, h *testHub) {
	bootstrap := h.token("clock", v1alpha1.JoinTokenSpec{})
	for _, off := range []time.Duration{time.Hour, -time.Hour} {
		clock := &mustertest.Clock{}
		clock.Move(off)
		a := h.joined(bootstrap, agent.Options{Name: "clock", Clock: clock})
		pause(7 * time.Second) // longer than the grace period
		h.untilCondition("clock", v1alpha1.ConditionHealthy, metav1.ConditionTrue, v1alpha1.ReasonHeartbeating)
		h.remove("clock")
		a.stop()
	}
}

// TestHubAPIServerKilled kills the API server of the hub while a member joins, another one is joined, and a third one
// leaves. After several lost connections in a minute, informers wait for up to a minute before they connect again. So
// the API server is killed once, and no other test uses the plane.
func TestHubAPIServerKilled(t *testing.T) {
	t.Parallel()
	p := localplane.ForTest(t, localplane.Options{Name: "mortal"})
	h := startHub(t, p, hub.Options{})
	newAgent := func(name string) *testAgent {
		return h.newAgent(h.token(name, v1alpha1.JoinTokenSpec{AutoAccept: true}), agent.Options{Name: name})
	}
	const joins, joined, leaves = "mortal-joins", "mortal-joined", "mortal-leaves"

	steady := newAgent(joined)
	steady.options.Member = newMemory(t).Config() // the API server of the member is not killed
	steady.start()
	leaving := newAgent(leaves)
	leaving.start()
	for _, name := range []string{joined, leaves} {
		h.untilCondition(name, v1alpha1.ConditionJoined, metav1.ConditionTrue, v1alpha1.ReasonAgentJoined)
	}
	h.change(joined, func(c *v1alpha1.MemberCluster) { c.Spec.HeartbeatPeriodSeconds = 1 })
	cluster := h.untilCondition(joined, v1alpha1.ConditionHealthy, metav1.ConditionTrue, v1alpha1.ReasonHeartbeating)
	since := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionHealthy).LastTransitionTime
	// The request of a removed member is answered with Deregistered, and kept until its agent has read the answer.
	h.Eventually("the request is deleted", func() error {
		var list v1alpha1.JoinRequestList
		return errors.Join(h.Client.List(t.Context(), &list), requireNone(&list, func(o client.Object) bool {
			return o.(*v1alpha1.JoinRequest).Spec.Name == leaves
		}))
	})

	// The agent that joins receives the response to its request after the API server was killed.
	joining := newAgent(joins)
	requested, killed := make(chan struct{}), make(chan struct{})
	release := sync.OnceFunc(func() { close(killed) })
	defer release() // also if the test fails before
	once := sync.OnceFunc(func() { close(requested); <-killed })
	joining.options.HubConfig = func(config *rest.Config) {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return mustertest.RoundTripper(func(request *http.Request) (*http.Response, error) {
				response, err := next.RoundTrip(request)
				if request.Method == http.MethodPost {
					once()
				}
				return response, err
			})
		})
	}
	joining.start()
	select {
	case <-requested:
	case <-time.After(timeLimit):
		t.Fatal("the agent that joins has sent no request")
	}
	require.NoError(t, h.Client.Delete(t.Context(), h.member(leaves)))
	require.NoError(t, p.KillAPIServer())
	release()
	pause(2 * time.Second)
	ctx, cancel := context.WithTimeout(t.Context(), timeLimit)
	defer cancel()
	require.NoError(t, p.StartAPIServer(ctx))
	gracePeriod := time.After(7 * time.Second) // rounded up

	h.untilCondition(joins, v1alpha1.ConditionJoined, metav1.ConditionTrue, v1alpha1.ReasonAgentJoined)
	h.untilGone(leaves)
	// If the agent observed the removal before the end of its leave, it has sent a JoinRequest. The answer is kept.
	h.untilEmpty(leaves)
	<-gracePeriod
	h.Eventually("heartbeats arrive again", func() error {
		var lease coordinationv1.Lease
		key := client.ObjectKey{Namespace: "member-" + joined, Name: membership.LeaseName}
		if err := h.Client.Get(t.Context(), key, &lease); err != nil {
			return err
		}
		ago := time.Since(lease.Spec.RenewTime.Time)
		return orError(ago < 3*time.Second, "the last heartbeat was %s ago", ago)
	})
	healthy := meta.FindStatusCondition(h.member(joined).Status.Conditions, v1alpha1.ConditionHealthy)
	require.Equal(t, metav1.ConditionTrue, healthy.Status)
	require.Equal(t, since, healthy.LastTransitionTime, "a hub without connection does not mark members as lost")
	for _, a := range []*testAgent{joining, leaving, steady} {
		a.stop()
	}
	h.stop()
}

// untilClean waits until no object of a member exists on the hub, including its request.
func (h *testHub) untilClean(prefix string) {
	h.T.Helper()
	h.untilEmpty(prefix)
	h.Eventually("no request of "+prefix+" is left", func() error {
		var list v1alpha1.JoinRequestList
		if err := h.Client.List(h.T.Context(), &list); err != nil {
			return err
		}
		return requireNone(&list,
			func(o client.Object) bool { return hasPrefix(o.(*v1alpha1.JoinRequest).Spec.Name, prefix) })
	})
}

// untilEmpty waits until no object exists that the hub created for a member.
func (h *testHub) untilEmpty(prefix string) {
	h.T.Helper()
	for _, list := range []client.ObjectList{
		&corev1.NamespaceList{}, &rbacv1.RoleBindingList{}, &corev1.ServiceAccountList{},
		&certificatesv1.CertificateSigningRequestList{}, &v1alpha1.MembershipList{},
	} {
		h.Eventually(fmt.Sprintf("no %T of %s is left", list, prefix), func() error {
			if err := h.Client.List(h.T.Context(), list, client.HasLabels{membership.MemberLabel}); err != nil {
				return err
			}
			return requireNone(list,
				func(o client.Object) bool { return hasPrefix(o.GetLabels()[membership.MemberLabel], prefix) })
		})
	}
	h.Eventually("no Lease of "+prefix+" is left", func() error {
		var list coordinationv1.LeaseList
		if err := h.Client.List(h.T.Context(), &list); err != nil {
			return err
		}
		return requireNone(&list, func(o client.Object) bool {
			return hasPrefix(o.GetNamespace(), membership.DefaultNamespacePrefix+prefix)
		})
	})
}

func hasPrefix(s, prefix string) bool { return len(s) >= len(prefix) && s[:len(prefix)] == prefix }

func requireNone(list client.ObjectList, matches func(client.Object) bool) error {
	items, err := meta.ExtractList(list)
	if err != nil {
		return err
	}
	for _, item := range items {
		if object, ok := item.(client.Object); ok && matches(object) {
			return fmt.Errorf("%s/%s exists", object.GetNamespace(), object.GetName())
		}
	}
	return nil
}

// TestAgentKilledAfterEachRequest kills an agent after each of its requests to the hub, from the join to the leave:
// the request was served, and the agent has not received the response. The next agent continues.
func TestAgentKilledAfterEachRequest(t *testing.T) {
	testkit.Virtual(t, testAgentKilledAfterEachRequest)
}

func testAgentKilledAfterEachRequest(t *testing.T) {
	h := startHub(t, newMemory(t), hub.Options{})
	bootstrap := h.token("killed", v1alpha1.JoinTokenSpec{AutoAccept: true})
	const kills = 12 // a membership has ten requests in addition to heartbeats
	for n := 1; n <= kills; n++ {
		testkit.Step(t, fmt.Sprint("after request ", n), func() { h.killedAfter(bootstrap, n) })
	}
	h.untilClean("killed-")
}

func (h *testHub) killedAfter(bootstrap *registration.Bootstrap, n int) {
	name := fmt.Sprintf("killed-%d", n)
	options := agent.Options{Name: name, Method: token.Method{}}
	if n%2 == 0 {
		options.Method = csr.Method{}
	}
	killed := errors.New("killed")
	var sent atomic.Int32
	dead := make(chan struct{})
	kill := sync.OnceFunc(func() { close(dead) })
	deadly := options
	deadly.HubConfig = func(config *rest.Config) {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return mustertest.RoundTripper(func(request *http.Request) (*http.Response, error) {
				select {
				case <-dead:
					return nil, killed
				default:
				}
				response, err := next.RoundTrip(request)
				if sent.Add(1) != int32(n) {
					return response, err
				}
				kill()
				if err == nil {
					err = response.Body.Close()
				}
				return nil, errors.Join(killed, err)
			})
		})
	}
	a, next := h.newAgent(bootstrap, deadly), h.newAgent(bootstrap, options)
	next.store, next.options.Store = a.store, a.store
	a.start()
	replaced := make(chan struct{})
	go func() {
		defer close(replaced)
		<-dead
		a.stop()
		// An agent that had left has no successor, because its bootstrap credential cannot be deleted.
		if record, err := a.store.Load(context.Background()); err != nil || record != nil {
			next.start()
		}
	}()
	h.untilPhase(name, v1alpha1.PhaseJoined)
	h.remove(name)
	kill() // if the agent sent fewer requests
	<-replaced
	h.Eventually("the agent of "+name+" has left", func() error {
		record, err := a.store.Load(context.Background())
		return orError(record == nil, "the agent has a record, %v", err)
	})
	next.stop()
}

// TestHub_RepeatedJoinsLeaveNoObjects checks that repeated joins and leaves leave no objects on the hub, and no
// goroutines.
func TestHub_RepeatedJoinsLeaveNoObjects(t *testing.T) {
	testkit.Virtual(t, testHubRepeatedJoinsLeaveNoObjects)
}

func testHubRepeatedJoinsLeaveNoObjects(t *testing.T) {
	const lanes, joins = 10, 5
	h := startHub(t, newMemory(t), hub.Options{})
	bootstrap := h.token("many", v1alpha1.JoinTokenSpec{AutoAccept: true})
	joinAndLeave := func(name string, method registration.Method) {
		a := h.newAgent(bootstrap, agent.Options{Name: name, Method: method}).start()
		h.untilPhase(name, v1alpha1.PhaseJoined)
		h.remove(name)
		a.stop()
	}
	joinAndLeave("many-warm", token.Method{})
	pause(time.Minute) // in case a goroutine ends later
	before := goroutines(t)
	var running sync.WaitGroup
	for lane := range lanes {
		running.Go(func() {
			for i := range joins {
				method := registration.Method(token.Method{})
				if i%2 == 1 {
					method = csr.Method{}
				}
				joinAndLeave(fmt.Sprintf("many-%d", lane), method)
			}
		})
	}
	running.Wait()
	h.untilClean("many-")
	var clusters v1alpha1.MemberClusterList
	require.NoError(t, h.Client.List(t.Context(), &clusters))
	require.Empty(t, clusters.Items)
	pause(time.Minute)
	require.LessOrEqual(t, goroutines(t), before, "goroutines are left")
}

// goroutines returns the number of goroutines in the bubble of the test.
func goroutines(t *testing.T) int {
	t.Helper()
	var stacks strings.Builder
	require.NoError(t, pprof.Lookup("goroutine").WriteTo(&stacks, 2))
	bubble := regexp.MustCompile(`synctest bubble \d+`).FindString(stacks.String()) // The caller is the first goroutine.
	require.NotEmpty(t, bubble)
	return strings.Count(stacks.String(), bubble+"]")
}
