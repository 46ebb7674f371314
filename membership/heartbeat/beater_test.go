package heartbeat

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/muster-sdk/muster/membership"
)

// script is a fake hub with scripted responses, for tests of the times at which a Beater sends requests. The tests in
// plane_test.go use the responses of a real API server.
type script struct {
	mu    sync.Mutex
	err   error         // of every request
	delay time.Duration // of every response, unless the context ends before
	sent  []request     // in order
	lease *coordinationv1.Lease
}

type request struct {
	Verb string
	At   time.Duration // since the test began
}

var start = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // the time at which every synctest bubble begins

func (s *script) request(ctx context.Context, verb string) error {
	s.mu.Lock()
	s.sent = append(s.sent, request{verb, time.Since(start)})
	delay, err := s.delay, s.err
	s.mu.Unlock()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(delay):
		return err
	}
}

func (s *script) Get(ctx context.Context, name string, _ metav1.GetOptions) (*coordinationv1.Lease, error) {
	if err := s.request(ctx, "get"); err != nil {
		return nil, err
	}
	if s.lease == nil {
		return nil, apierrors.NewNotFound(leasesResource, name)
	}
	return s.lease.DeepCopy(), nil
}

func (s *script) Create(ctx context.Context, l *coordinationv1.Lease, _ metav1.CreateOptions) (*coordinationv1.Lease,
	error) {
	return s.write(ctx, "create", l)
}

func (s *script) Update(ctx context.Context, l *coordinationv1.Lease, _ metav1.UpdateOptions) (*coordinationv1.Lease,
	error) {
	return s.write(ctx, "update", l)
}

func (s *script) write(ctx context.Context, verb string, l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	if err := s.request(ctx, verb); err != nil {
		return nil, err
	}
	s.set(func() { s.lease = l })
	return l.DeepCopy(), nil
}

func (s *script) written() *coordinationv1.Lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lease
}

func (s *script) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// take returns the requests since its last call.
func (s *script) take() []request {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	sent := s.sent
	s.sent = nil
	return sent
}

var leasesResource = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

// startBeater runs a Beater until the test in the synctest bubble ends.
func startBeater(t *testing.T, s *script, opts BeaterOptions) *Beater {
	if opts.Random == nil {
		opts.Random = func() float64 { return 0.75 } // a phase of a quarter of the period
	}
	b := NewBeater(s, opts)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- b.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	return b
}

func TestBeater_SteadyState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{delay: 3 * time.Second}
		b := startBeater(t, s, BeaterOptions{})
		pass(time.Hour)

		got := s.take()
		// The first heartbeat finds no Lease. It ends at 6 s, so that the grid, whose phase is 15 s, begins at 21 s.
		want := []request{{"get", 0}, {"create", 3 * time.Second}}
		for at := 21 * time.Second; at <= time.Hour; at += time.Minute {
			want = append(want, request{"update", at})
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
		require.Nil(t, s.written().Spec.LeaseTransitions, "the Lease had no holder")
		require.Equal(t, Status{LastSuccess: start.Add(59*time.Minute + 24*time.Second).Local()}, b.Status())
	})
}

// TestBeater_PeriodSetBeforeRunIsNoChange checks that a period that was set before Run is not handled as a change of
// the period, which would delay the retry of a failed first heartbeat.
func TestBeater_PeriodSetBeforeRunIsNoChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{err: errors.New("down")}
		b := NewBeater(s, BeaterOptions{Random: func() float64 { return 0 }})
		b.SetPeriod(MaxPeriod)
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		require.NoError(t, b.Run(ctx))
		want := []request{{"get", 0}, {"get", 500 * time.Millisecond}, {"get", 1500 * time.Millisecond},
			{"get", 3500 * time.Millisecond}}
		if diff := cmp.Diff(want, s.take()); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
	})
}

func TestBeater_RenewalKeepsExistingFields(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{lease: &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{
				Name: membership.LeaseName, ResourceVersion: "7", Labels: map[string]string{"kept": "yes"},
				ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "someone"}},
			},
			Spec: coordinationv1.LeaseSpec{AcquireTime: &metav1.MicroTime{Time: start}},
		}}
		startBeater(t, s, BeaterOptions{Identity: "pod-1", Period: 90 * time.Second})
		synctest.Wait()
		lease := s.written()
		require.Equal(t, "7", lease.ResourceVersion, "an update must not overwrite a newer version")
		require.Equal(t, map[string]string{"kept": "yes"}, lease.Labels)
		require.Empty(t, lease.ManagedFields, "managedFields are most of the request, and the API server keeps them")
		require.Equal(t, "pod-1", *lease.Spec.HolderIdentity)
		require.EqualValues(t, 293, *lease.Spec.LeaseDurationSeconds, "3.25 × 90 s, rounded up")
		require.EqualValues(t, 1, *lease.Spec.LeaseTransitions)
		require.Equal(t, start, lease.Spec.RenewTime.UTC())

		pass(10 * time.Minute)
		synctest.Wait()
		lease = s.written()
		require.EqualValues(t, 1, *lease.Spec.LeaseTransitions, "the holder has not changed again")
		require.Equal(t, start, lease.Spec.AcquireTime.UTC())
	})
}

func TestBeater_Retries(t *testing.T) {
	refused := errors.New("connection refused")
	tests := []struct {
		name   string
		reason string
		period time.Duration
		want   []time.Duration // of attempts that fail
	}{
		{
			name: "a minute", reason: "the backoff begins short and never exceeds the period",
			period: time.Minute,
			want:   seconds(0, .875, 2.625, 6.125, 13.125, 27.125, 55.125, 107.625, 160.125, 212.625),
		},
		{
			name: "a second", reason: "the first retry is within the period",
			period: time.Second,
			want:   seconds(0, .109375, .328125, .765625, 1.640625, 2.515625),
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Log(tt.reason)
			synctest.Test(t, func(t *testing.T) {
				s := &script{err: refused}
				b := startBeater(t, s, BeaterOptions{Period: tt.period})
				pass(tt.want[len(tt.want)-1] + time.Millisecond)
				var got []time.Duration
				for _, a := range s.take() {
					got = append(got, a.At)
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("attempts (-want +got):\n%s", diff)
				}
				status := b.Status()
				require.ErrorIs(t, status.LastError, refused)
				require.Equal(t, len(tt.want), status.Failures)
				require.Zero(t, status.LastSuccess)

				s.set(func() { s.err = nil })
				pass(2 * tt.period)
				require.NoError(t, b.Status().LastError)
				require.Zero(t, b.Status().Failures)
			})
		})
	}
}

func TestBeater_HangingRequests(t *testing.T) {
	tests := []struct{ period, timeout time.Duration }{
		{time.Second, time.Second}, {10 * time.Second, 5 * time.Second}, {time.Minute, 15 * time.Second},
		{10 * time.Minute, 15 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.period.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{}
				startBeater(t, s, BeaterOptions{Period: tt.period})
				pass(2 * tt.period)
				grid := s.take()[3].At

				s.set(func() { s.delay = time.Hour })
				pass(20 * tt.period)
				for i, a := range s.take() {
					if i == 0 {
						require.Equal(t, grid+tt.period, a.At)
					}
				}
				s.set(func() { s.delay = 0 })
				pass(2*tt.period + tt.timeout) // the last hanging request ends, and others follow
				require.LessOrEqual(t, len(s.take()), 4, "missed heartbeats must not be sent later")

				pass(10 * tt.period)
				got := s.take()
				require.InDelta(t, 10, len(got), 1, "the period is the same as before")
				for _, a := range got {
					require.Equal(t, "update", a.Verb)
					require.Zero(t, (a.At-grid)%tt.period, "the phase of the agent is the same as before")
				}
			})
		})
	}
}

func TestBeater_RequestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{delay: time.Hour}
		b := startBeater(t, s, BeaterOptions{})
		pass(15*time.Second - 1)
		synctest.Wait()
		require.Zero(t, b.Status().Failures)
		pass(1)
		synctest.Wait()
		require.ErrorIs(t, b.Status().LastError, context.DeadlineExceeded)
	})
}

func TestBeater_SetPeriod(t *testing.T) {
	tests := []struct {
		name     string
		reason   string
		from, to time.Duration
		after    time.Duration // since the last heartbeat
		want     time.Duration // the next, since the change
	}{
		{"shorter", "the next heartbeat is already overdue: it is sent at a random time in the new period", 10 * time.Minute,
			20 * time.Second, 5 * time.Minute, 5 * time.Second},
		{"shorter, next heartbeat not overdue", "the new period begins at the last heartbeat", 10 * time.Minute, time.Minute,
			50 * time.Second, 10 * time.Second},
		{"longer", "agents whose period is changed together are spread over the new period", time.Minute, 4 * time.Minute,
			30 * time.Second, time.Minute},
		{"unchanged", "the schedule is the same", time.Minute, time.Minute, 20 * time.Second, 40 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Log(tt.reason)
			synctest.Test(t, func(t *testing.T) {
				s := &script{}
				b := startBeater(t, s, BeaterOptions{Period: tt.from})
				pass(tt.from/4 + 3*tt.from) // on the grid
				s.take()
				pass(tt.after)
				changed := time.Since(start)
				b.SetPeriod(tt.to)
				pass(tt.want + 3*tt.to + tt.to/2)
				var got []time.Duration
				for _, a := range s.take() {
					got = append(got, a.At-changed)
				}
				want := []time.Duration{tt.want, tt.want + tt.to, tt.want + 2*tt.to, tt.want + 3*tt.to}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("heartbeats after the change (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestBeater_SetPeriodBeforeRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{}
		b := NewBeater(s, BeaterOptions{})
		b.SetPeriod(5 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.NoError(t, b.Run(ctx))
		require.Equal(t, request{"get", 0}, s.take()[0], "the first heartbeat is sent immediately")
	})
}

func TestBeater_RunAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{}
		b := NewBeater(s, BeaterOptions{})
		for range 2 {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			go func() {
				pass(time.Minute)
				if err := b.Run(ctx); err == nil {
					t.Error("Run during another Run: want an error")
				}
			}()
			require.NoError(t, b.Run(ctx))
			cancel()
			s.take()
			pass(time.Hour)
			require.Empty(t, s.take(), "no requests after Run has returned")
		}
		ctx, cancel := context.WithTimeout(t.Context(), 0)
		defer cancel()
		require.NoError(t, b.Run(ctx))
	})
}

func TestBeater_CancelDuringRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{delay: time.Hour}
		b := NewBeater(s, BeaterOptions{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.NoError(t, b.Run(ctx))
		require.Equal(t, time.Second, time.Since(start), "Run must not wait for the request")
		require.Zero(t, b.Status(), "a canceled request is not a failure")
	})
}

func TestBeater_OutcomesReturnsLatest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{}
		b := startBeater(t, s, BeaterOptions{})
		pass(time.Hour) // no receiver
		require.Len(t, s.take(), 62)
		s.set(func() { s.err = apierrors.NewForbidden(leasesResource, membership.LeaseName, errors.New("no")) })
		pass(time.Minute)
		got := <-b.Outcomes()
		require.True(t, apierrors.IsForbidden(got.LastError), "want the latest status, got %v", got.LastError)
		require.Positive(t, got.Failures)
	})
}

// TestBeater_RenewTimeAlwaysChanges checks that each heartbeat changes the renewTime, even if the clock does not
// advance.
func TestBeater_RenewTimeAlwaysChanges(t *testing.T) {
	s := &script{}
	clock := clocktesting.NewFakeClock(start)
	b := NewBeater(s, BeaterOptions{Clock: clock})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- b.Run(ctx) }()
	first := <-b.Outcomes()
	require.NoError(t, first.LastError)
	require.Eventually(t, clock.HasWaiters, time.Second, time.Millisecond)
	clock.Step(time.Minute)
	require.NoError(t, (<-b.Outcomes()).LastError)
	cancel()
	require.NoError(t, <-done)
	clock.SetTime(start.Add(time.Minute))
	require.NoError(t, b.renew(t.Context(), time.Minute))
	require.Equal(t, start.Add(time.Minute+time.Microsecond), s.lease.Spec.RenewTime.UTC())
}

// TestBeater_PhasesAreSpread checks that agents that start together are evenly spread from their second heartbeat on.
func TestBeater_PhasesAreSpread(t *testing.T) {
	const agents, tenths = 10_000, 10
	b := NewBeater(nil, BeaterOptions{})
	var count [tenths]int
	for range agents {
		s := schedule{period: time.Minute, random: b.random}
		at := s.succeeded(start).Sub(start)
		require.True(t, at > 0 && at <= time.Minute, "phase %s", at)
		count[(at-1)*tenths/time.Minute]++
	}
	for i, n := range count {
		require.InDelta(t, agents/tenths, n, 150, "heartbeats in tenth %d of the period", i)
	}
}

// pass lets time pass in a synctest bubble, whose clock advances to the next timer when every goroutine is blocked.
func pass(d time.Duration) {
	<-time.After(d)
}

func seconds(s ...float64) (d []time.Duration) {
	for _, s := range s {
		d = append(d, time.Duration(s*float64(time.Second)))
	}
	return d
}
