package heartbeat

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/mustertest/localplane"
)

var (
	_ manager.Runnable               = &Watcher{}
	_ manager.LeaderElectionRunnable = &Watcher{}
	_ manager.RunnableFunc           = (&Beater{}).Run
)

var hub = localplane.Shared{Options: localplane.Options{Name: "heartbeat"}}

func TestMain(m *testing.M) {
	// The second handler of errors limits their rate by the real time, at which it started. In a bubble, where
	// time begins in the year 2000, it would wait until the real time.
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1] //nolint:reassign // It has no setter.

	code := localplane.Run(m, &hub)
	if err := goleak.Find(); err != nil && code == 0 {
		println(err.Error())
		code = 1
	}
	os.Exit(code)
}

// leaseHub is a fake hub whose Leases and watch the test controls, for tests of the times at which a Watcher reports
// changes.
type leaseHub struct {
	mu        sync.Mutex
	down      bool
	leases    map[string]coordinationv1.Lease // by namespace
	watches   []*watch.RaceFreeFakeWatcher
	selectors []string
}

func (s *leaseHub) IsWatchListSemanticsUnSupported() bool { return true }

func (s *leaseHub) List(_ context.Context, opts metav1.ListOptions) (*coordinationv1.LeaseList, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return nil, errors.New("down")
	}
	s.selectors = append(s.selectors, opts.FieldSelector)
	list := &coordinationv1.LeaseList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
	for _, l := range s.leases {
		list.Items = append(list.Items, l)
	}
	return list, nil
}

func (s *leaseHub) Watch(_ context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return nil, errors.New("down")
	}
	s.selectors = append(s.selectors, opts.FieldSelector)
	w := watch.NewRaceFreeFake()
	s.watches = append(s.watches, w)
	return w, nil
}

// beat renews the Leases of members, and sends watch events if there is a watch.
func (s *leaseHub) beat(members ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range members {
		namespace := "member-" + name
		lease := coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: membership.LeaseName, Namespace: namespace, ResourceVersion: "2"},
			Spec:       coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: time.Now()}},
		}
		_, exists := s.leases[namespace]
		s.leases[namespace] = lease
		if last := len(s.watches) - 1; last >= 0 && !s.down {
			if exists {
				s.watches[last].Modify(&lease)
			} else {
				s.watches[last].Add(&lease)
			}
		}
	}
}

func (s *leaseHub) beats(d time.Duration, members ...string) {
	for ; d > 0; d -= 20 * time.Second {
		s.beat(members...)
		pass(20 * time.Second)
	}
}

func (s *leaseHub) stopServing() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = true
	for _, w := range s.watches {
		w.Stop()
	}
}

func (s *leaseHub) startServing() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = false
}

// reported collects the arguments of OnChange.
type reported struct {
	mu    sync.Mutex
	calls [][]string
}

func (o *reported) record(names []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.calls = append(o.calls, names)
}

func (o *reported) take() [][]string {
	o.mu.Lock()
	defer o.mu.Unlock()
	calls := o.calls
	o.calls = nil
	return calls
}

func memberOf(namespace string) (string, bool) { return strings.CutPrefix(namespace, "member-") }

// startWatcher runs a Watcher of members until the test in the synctest bubble ends.
func startWatcher(t *testing.T, s *leaseHub, opts WatcherOptions, members ...string) *Watcher {
	s.leases = map[string]coordinationv1.Lease{}
	w := NewWatcher(s, memberOf, opts)
	for _, name := range members {
		w.Track(name, time.Minute)
	}
	run(t, w)
	synctest.Wait()
	return w
}

func run(t *testing.T, w *Watcher) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- w.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
}

func stateOf(t *testing.T, w *Watcher, member string) State {
	t.Helper()
	v, ok := w.Health(member)
	require.True(t, ok, "%s is not tracked", member)
	return v.State
}

func TestWatcher_ReportsChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, o := &leaseHub{}, &reported{}
		w := startWatcher(t, s, WatcherOptions{OnChange: o.record}, "a", "b")
		s.beat("a", "b", "untracked")
		synctest.Wait()
		require.Equal(t, []string{"a", "b"}, slices.Compact(slices.Sorted(slices.Values(slices.Concat(o.take()...)))))
		require.Equal(t, Healthy, stateOf(t, w, "a"))

		pass(grace - time.Millisecond)
		require.Empty(t, o.take(), "nothing has changed")
		pass(51 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, [][]string{{"a", "b"}}, o.take())
		require.Equal(t, Lost, stateOf(t, w, "a"))

		w.Untrack("a")
		w.Track("untracked", 10*time.Minute)
		require.Equal(t, Healthy, stateOf(t, w, "untracked"), "the heartbeat before Track applies")
		require.Equal(t, []string{"metadata.name=heartbeat", "metadata.name=heartbeat"}, s.selectors)
	})
}

func TestWatcher_DeletedLeaseUsesNoMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &leaseHub{}
		w := startWatcher(t, s, WatcherOptions{})
		s.beat("a")
		synctest.Wait()
		require.Len(t, w.monitor.members, 1)
		s.watches[0].Delete(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: membership.LeaseName,
			Namespace: "member-a"}})
		synctest.Wait()
		require.Empty(t, w.monitor.members)
	})
}

// TestWatcher_NoLossWhileAPIServerIsDown checks that no member is lost while the hub's API server is unavailable,
// because no heartbeat can be observed.
func TestWatcher_NoLossWhileAPIServerIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, o := &leaseHub{}, &reported{}
		w := startWatcher(t, s, WatcherOptions{OnChange: o.record}, "a", "b")
		s.beat("a", "b")
		pass(grace - time.Second)
		o.take()

		s.stopServing()
		pass(time.Hour)
		require.Empty(t, o.take())
		require.Equal(t, Healthy, stateOf(t, w, "a"))

		s.beat("b") // observed by the next list
		s.startServing()
		pass(5 * time.Second) // the longest backoff of the reflector
		up := time.Now()
		synctest.Wait()
		require.Empty(t, o.take())
		v, _ := w.Health("b")
		require.WithinRange(t, v.LastHeard, up.Add(-5*time.Second), up)

		pass(grace - 6*time.Second)
		require.Equal(t, Healthy, stateOf(t, w, "a"))
		pass(10 * time.Second)
		synctest.Wait()
		require.Equal(t, [][]string{{"a", "b"}}, o.take(), "neither member has sent a heartbeat since")
	})
}

// TestWatcher_LossDespiteEndingWatches checks that members without heartbeats are lost although an API server ends
// every watch after some minutes.
func TestWatcher_LossDespiteEndingWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &leaseHub{}
		w := startWatcher(t, s, WatcherOptions{}, "a")
		s.beat("a")
		for range 19 {
			pass(10 * time.Second)
			require.Equal(t, Healthy, stateOf(t, w, "a"))
			s.stopServing()
			s.startServing()
		}
		pass(10 * time.Second)
		synctest.Wait()
		require.Equal(t, Lost, stateOf(t, w, "a"))
		require.Greater(t, len(s.watches), 15)
	})
}

// TestWatcher_StreamedInitialState checks that a watch that begins with a stream of the initial state is not
// established before the stream has ended.
func TestWatcher_StreamedInitialState(t *testing.T) {
	w := NewWatcher(&leaseHub{}, memberOf, WatcherOptions{})
	up := func() bool { return !w.monitor.paused }
	require.NoError(t, (*sink)(w).Replace(nil, "1"))
	require.False(t, up(), "the list is complete, but there is no watch yet")
	w.opened(watch.NewEmptyWatch(), metav1.ListOptions{}).Stop()

	streamed := w.opened(watch.NewEmptyWatch(), metav1.ListOptions{SendInitialEvents: new(true)})
	require.False(t, up(), "the stream of the initial state has not ended")
	require.NoError(t, (*sink)(w).Replace(nil, "2"))
	require.True(t, up())
	streamed.Stop()
	require.False(t, up())

	again := w.opened(watch.NewEmptyWatch(), metav1.ListOptions{})
	require.True(t, up(), "the watch resumes at the end of the previous one")
	again.Stop()
}

// TestWatcher_TrackWhileIdle checks that a member that is tracked while no other member is due is evaluated in time.
func TestWatcher_TrackWhileIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &leaseHub{down: true}
		w := startWatcher(t, s, WatcherOptions{})
		w.Track("a", time.Minute)
		pass(time.Hour)
		require.Equal(t, Awaited, stateOf(t, w, "a"), "the watch was never established")
		s.startServing()
		pass(time.Hour)
		require.Equal(t, Lost, stateOf(t, w, "a"))

		w.Track("b", time.Second)
		pass(DefaultGrace(time.Second))
		synctest.Wait()
		require.Equal(t, Lost, stateOf(t, w, "b"))
	})
}

func TestWatcher_SlowOnChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, o := &leaseHub{}, &reported{}
		var w *Watcher
		slow := func(names []string) {
			o.record(names)
			for _, name := range names { // OnChange may use the Watcher
				w.Health(name)
				w.Track(name, time.Minute)
			}
			pass(time.Hour)
		}
		w = startWatcher(t, s, WatcherOptions{OnChange: slow}, "a", "b", "c")
		s.beats(100*time.Second, "a", "b", "c")
		o.take()
		s.beats(30*time.Minute, "b", "c")
		require.Empty(t, o.take(), "the first call has not returned")
		v, _ := w.Health("b")
		require.LessOrEqual(t, time.Since(v.LastHeard), 20*time.Second, "heartbeats are observed during the call")
		s.beats(2*time.Hour, "b", "c")
		var names []string
		for _, call := range o.take() {
			names = append(names, call...)
		}
		require.Contains(t, names, "a", "a change during a call is reported after it")
	})
}

// TestWatcher_UnreportedChangesAreBounded checks that the list of unreported changes is bounded.
func TestWatcher_UnreportedChangesAreBounded(t *testing.T) {
	w := NewWatcher(&leaseHub{}, memberOf, WatcherOptions{})
	w.Track("a", time.Minute)
	for range 1000 {
		w.with(func(*Monitor, time.Time) []string { return []string{"a"} })
	}
	require.LessOrEqual(t, len(w.changed), 3)
	names, outage := w.expire()
	require.Equal(t, []string{"a"}, names)
	require.Nil(t, outage)
}

func TestWatcher_StartTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := startWatcher(t, &leaseHub{}, WatcherOptions{})
		require.Error(t, w.Start(t.Context()))
		require.True(t, w.NeedLeaderElection())
	})
}

// TestWatcher_StopsWhileAPIServerIsDown checks that a Watcher can stop while the API server is unavailable.
func TestWatcher_StopsWhileAPIServerIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := NewWatcher(&leaseHub{down: true}, memberOf, WatcherOptions{})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		require.NoError(t, w.Start(ctx))
		require.Less(t, time.Since(start), 10*time.Minute+6*time.Second)
	})
}

// TestWatcher_InjectedClock checks that the time without heartbeats is measured by the clock of the options.
func TestWatcher_InjectedClock(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	s, o := &leaseHub{leases: map[string]coordinationv1.Lease{}}, &reported{}
	w := NewWatcher(s, memberOf, WatcherOptions{Clock: clock, OnChange: o.record})
	w.Track("a", time.Minute)
	run(t, w)
	up := func() bool { w.mu.Lock(); defer w.mu.Unlock(); return !w.monitor.paused }
	require.Eventually(t, up, time.Minute, time.Millisecond)
	for range 4 {
		clock.Step(grace / 3)
	}
	require.Eventually(t, func() bool {
		clock.Step(time.Second)
		return stateOf(t, w, "a") == Lost && len(o.take()) > 0
	}, 10*time.Second, time.Millisecond)
}

func TestWatcher_Metrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &leaseHub{}
		w := startWatcher(t, s, WatcherOptions{}, "a", "b", "c", "d", "e")
		s.beat("e")
		pass(grace)
		s.beats(20*time.Second, "d", "e")
		w.Track("f", time.Minute)

		const want = `
			# HELP muster_heartbeat_late_members Tracked members that have missed a heartbeat.
			# TYPE muster_heartbeat_late_members gauge
			muster_heartbeat_late_members 3
			# HELP muster_heartbeat_members Tracked members by state.
			# TYPE muster_heartbeat_members gauge
			muster_heartbeat_members{state="Awaited"} 1
			muster_heartbeat_members{state="Healthy"} 2
			muster_heartbeat_members{state="Lost"} 3
			muster_heartbeat_members{state="Unsteady"} 0
			# HELP muster_heartbeat_outage Whether there is an outage, during which taints and failover are withheld.
			# TYPE muster_heartbeat_outage gauge
			muster_heartbeat_outage 1
			# HELP muster_heartbeat_watch_up Whether the watch of the heartbeats is established.
			# TYPE muster_heartbeat_watch_up gauge
			muster_heartbeat_watch_up 1
			# HELP muster_heartbeat_withheld_members Tracked members whose taints and failover are withheld.
			# TYPE muster_heartbeat_withheld_members gauge
			muster_heartbeat_withheld_members 3
			# HELP muster_heartbeats_total Heartbeats of tracked members that were observed.
			# TYPE muster_heartbeats_total counter
			muster_heartbeats_total 3
		`
		require.NoError(t, testutil.CollectAndCompare(w, strings.NewReader(want)))
		problems, err := testutil.CollectAndLint(w)
		require.NoError(t, err)
		require.Empty(t, problems)

		s.stopServing()
		synctest.Wait()
		require.NoError(t, testutil.CollectAndCompare(w, strings.NewReader(`
			# HELP muster_heartbeat_watch_up Whether the watch of the heartbeats is established.
			# TYPE muster_heartbeat_watch_up gauge
			muster_heartbeat_watch_up 0
		`), "muster_heartbeat_watch_up"))
		outage, ok := w.Outage()
		require.True(t, ok)
		require.Equal(t, 3, outage.Late)
		require.Equal(t, 3, w.Stats().Lost)
	})
}
