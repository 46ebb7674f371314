package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/muster-sdk/muster/membership/fleet"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest/localplane"
)

// TestRunner checks that a runner that fails or panics is called again, that one that returned nil is not, and that
// all contexts end with their members.
func TestRunner(t *testing.T) {
	var calls atomic.Int32
	failing, steady := newRecorder(), &named{newRecorder(), "steady"}
	failing.run = func(ctx context.Context, _ fleet.Connected) error {
		switch calls.Add(1) {
		case 1:
			return errors.New("first")
		case 2:
			panic("second")
		case 3:
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	}
	h := startHub(t, newMemory(t), fleet.Options{Runners: []fleet.Runner{failing, steady}})
	f := newFake(t, uidA)
	h.member("runner", f.data())
	first := failing.called(t)
	second := failing.called(t)
	require.NotSame(t, first.Config, second.Config)
	third := failing.called(t)
	third.wait(t)
	_, err := first.get("/x")
	require.Error(t, err, "the config of the first call is no longer usable")
	require.Contains(t, h.event("runner", "RunnerFailed"), "recorder: ")
	stays := steady.called(t)
	require.NoError(t, stays.ctx.Err(), "the other runner is not affected")

	// A change of the heartbeat period restarts no runner. A change of the join mode restarts all runners.
	h.change("runner", func(m *v1alpha1.MemberCluster) { m.Spec.HeartbeatPeriodSeconds = 30 })
	h.change("runner", func(m *v1alpha1.MemberCluster) { m.Spec.JoinMode = v1alpha1.JoinPush })
	stays.wait(t)
	failing.called(t) // also the runner that had returned nil
	stays = steady.called(t)
	require.Equal(t, v1alpha1.JoinPush, stays.Cluster.Spec.JoinMode)
	require.EqualValues(t, 30, stays.Cluster.Spec.HeartbeatPeriodSeconds,
		"the runner has the MemberCluster of the time of the call")

	// A member that is deleted and created again is another member.
	require.NoError(t, h.Client.Delete(t.Context(), h.get("runner")))
	stays.wait(t)
	h.member("runner", nil)
	again := steady.called(t)
	require.NotEqual(t, stays.Cluster.UID, again.Cluster.UID)

	h.stop()
	again.wait(t)
	steady.requireNotCalled(t)
}

type named struct {
	*recorder
	name string
}

func (n *named) Name() string { return n.name }

// TestRunner_NotReturning checks that the connections of a runner that does not return are closed, and that it is not
// called concurrently.
func TestRunner_NotReturning(t *testing.T) {
	release := make(chan struct{})
	runner := newRecorder()
	runner.run = func(context.Context, fleet.Connected) error { <-release; return nil }
	fake := &steppedClock{Clock: clock.RealClock{}, fake: clocktesting.NewFakeClock(clock.RealClock{}.Now())}
	h := startHub(t, newMemory(t), fleet.Options{Runners: []fleet.Runner{runner}, Clock: fake})
	f := newFake(t, uidA)
	h.member("stays", f.data())
	c := runner.called(t)
	h.Eventually("requests to the member succeed", func() error { _, err := c.get("/x"); return err })
	h.change("stays", func(m *v1alpha1.MemberCluster) { m.Spec.JoinMode = v1alpha1.JoinPush })
	<-c.ctx.Done()
	_, err := c.get("/x")
	require.NoError(t, err, "the runner has a grace period to return")
	h.Eventually("a caller waits for the grace period",
		func() error { return orError(fake.fake.HasWaiters(), "no caller waits") })
	fake.fake.Step(grace)
	h.Eventually("the connections of the runner are closed", func() error {
		_, err := c.get("/x")
		return orError(err != nil, "a request succeeds")
	})
	require.Equal(t, map[string]int{"recorder Running": 0, "recorder Failing": 0, "recorder Overdue": 1},
		runners(t, "recorder"))
	runner.requireNotCalled(t)
	close(release)
	c = runner.called(t)
	require.Equal(t, v1alpha1.JoinPush, c.Cluster.Spec.JoinMode)
	require.Zero(t, runners(t, "recorder")["recorder Overdue"])
}

const grace = 10 * time.Second // of the contract of Runner

// TestUnreachable checks that a member that does not respond is reported, and later reported as reachable, without a
// restart of its runners and without delays for other members.
func TestUnreachable(t *testing.T) {
	runner := newRecorder()
	h := startHub(t, newMemory(t), fleet.Options{Runners: []fleet.Runner{runner}, ProbeTimeout: 400 * time.Millisecond})
	f, steady := newFake(t, uidA), newFake(t, uidA)
	proxy, err := localplane.NewProxy(f.URL)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, proxy.Close()) })
	data := f.data()
	data["server"] = "https://" + proxy.Addr()

	// Runners run from the beginning, even if the member does not respond.
	proxy.Stall()
	h.member("unreachable", data)
	c := runner.called(t)
	h.reachable("unreachable", v1alpha1.ReasonUnreachable)
	_, err = c.get("/x")
	require.ErrorContains(t, err, "the identity of the member is not verified yet")

	// Another member joins and is probed as usual, until the first one has failed.
	h.member("unreachable-not", steady.data())
	require.Equal(t, "unreachable-not", runner.called(t).Cluster.Name)
	h.reachable("unreachable-not", v1alpha1.ReasonReachable)
	requests := 0
	h.Eventually("the other member is probed", func() error {
		requests += len(steady.requests.take())
		return orError(requests >= 10, "%d requests", requests)
	})
	proxy.Heal()
	h.reachable("unreachable", v1alpha1.ReasonReachable)
	_, err = c.get("/x")
	require.NoError(t, err)

	for _, fault := range []func(){proxy.Stall, proxy.Cut, func() { f.fails.Store(true) }} {
		fault()
		h.reachable("unreachable", v1alpha1.ReasonUnreachable)
		proxy.Heal()
		f.fails.Store(false)
		h.reachable("unreachable", v1alpha1.ReasonReachable)
	}
	h.Eventually("requests succeed again", func() error { _, err := c.get("/x"); return err })
	require.NoError(t, c.ctx.Err())
	runner.requireNotCalled(t)
	require.Equal(t, v1alpha1.ReasonReachable,
		meta.FindStatusCondition(h.get("unreachable-not").Status.Conditions, v1alpha1.ConditionReachable).Reason)
}

// TestSecret_CorrectedWhileProbing checks that a corrected Secret is probed immediately, while the probe of the
// previous one is still running.
func TestSecret_CorrectedWhileProbing(t *testing.T) {
	h := startHub(t, newMemory(t), fleet.Options{ProbeTimeout: maxFailures * 10})
	hole := blackHole(t)
	f := newFake(t, uidA)
	data := f.data()
	data["server"] = "https://" + hole.Addr().String()
	h.member("corrected", data)
	<-hole.accepted
	h.secret("corrected", f.data())
	h.reachable("corrected", v1alpha1.ReasonReachable)
}

// hole is an address that accepts connections and never responds.
type hole struct {
	net.Listener
	accepted chan struct{}
}

func blackHole(t testing.TB) *hole {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a test
	require.NoError(t, err)
	h := &hole{listener, make(chan struct{}, 1000)}
	var mu sync.Mutex
	var open []net.Conn
	t.Cleanup(func() {
		_ = listener.Close()
		mu.Lock()
		defer mu.Unlock()
		for _, connection := range open {
			_ = connection.Close()
		}
	})
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, connection)
			mu.Unlock()
			select {
			case h.accepted <- struct{}{}:
			default:
			}
		}
	}()
	return h
}

// TestFleet_SteadyState checks that a member in steady state costs only its probes, and no requests to the hub.
func TestFleet_SteadyState(t *testing.T) {
	h := startHub(t, plane.ForTest(t), fleet.Options{Runners: []fleet.Runner{newRecorder()}})
	f := newFake(t, uidA)
	h.member("rest", f.data())
	h.reachable("rest", v1alpha1.ReasonReachable)
	h.event("rest", v1alpha1.ReasonReachable)
	probed := func(n int) map[string]int {
		got := map[string]int{}
		h.Eventually(fmt.Sprintf("the member is probed %d times", n), func() error {
			for _, request := range f.requests.take() {
				got[request]++
			}
			return orError(got["GET /readyz"] >= n, "%v", got)
		})
		return got
	}
	require.Equal(t, 1, probed(1)["GET /api/v1/namespaces/kube-system"], "the identity of the member is read once")
	h.requests.take()
	before := h.get("rest").ResourceVersion
	got := probed(10)
	delete(got, "GET "+"/readyz")
	require.Empty(t, got)
	require.Empty(t, h.requests.take())
	require.Equal(t, before, h.get("rest").ResourceVersion)

	// A change that does not concern the Secret causes no other read of the Secret.
	h.change("rest", func(m *v1alpha1.MemberCluster) { m.Spec.HeartbeatPeriodSeconds = 30 })
	probed(3)
	require.Empty(t, h.requests.take())
	before = h.get("rest").ResourceVersion

	// A restarted hub does not repeat writes.
	h.stop()
	h = startHub(t, plane.ForTest(t), fleet.Options{})
	probed(5)
	require.Equal(t, before, h.get("rest").ResourceVersion)
	for _, request := range h.requests.take() {
		require.Contains(t, request, http.MethodGet)
	}
}

// steppedClock is a clock whose long timers fire when a test requests it.
type steppedClock struct {
	clock.Clock
	fake *clocktesting.FakeClock
}

func (c *steppedClock) After(d time.Duration) <-chan time.Time {
	if d >= grace {
		return c.fake.After(d)
	}
	return c.Clock.After(d)
}
