package agent

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/muster-sdk/muster/work/v1alpha1"
)

// A reconcile because of a change neither postpones the next try nor counts as one.
func TestRetry(t *testing.T) {
	t.Parallel()
	var s state
	first := s.retry(noon)
	require.GreaterOrEqual(t, first, firstRetry)
	require.LessOrEqual(t, first, firstRetry*5/4)
	for range 20 {
		require.Equal(t, first-100*time.Millisecond, s.retry(noon.Add(100*time.Millisecond)))
	}
	now := noon
	for range 30 {
		now = now.Add(s.retry(now))
	}
	require.LessOrEqual(t, s.retry(now), lastRetry*5/4, "it has a limit")
	require.GreaterOrEqual(t, s.retry(now), lastRetry)
	s.succeeded()
	require.LessOrEqual(t, s.retry(now), firstRetry*5/4)
}

func TestWaiting(t *testing.T) {
	t.Parallel()
	ago := func(d time.Duration) metav1.Time { return metav1.NewTime(noon.Add(-d)) }
	status := func(generation int64, progressing, applied time.Duration) *v1alpha1.WorkStatus {
		return &v1alpha1.WorkStatus{
			Conditions: []metav1.Condition{{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionTrue,
				ObservedGeneration: generation, LastTransitionTime: ago(progressing)}},
			Manifests: []v1alpha1.ManifestStatus{{ResourceIdentifier: named("db"), Conditions: []metav1.Condition{
				{Type: v1alpha1.ConditionApplied, Status: metav1.ConditionTrue, LastTransitionTime: ago(applied)},
			}}},
		}
	}
	for _, test := range []struct {
		reason string
		status *v1alpha1.WorkStatus
		want   time.Duration
	}{
		{"it begins now", &v1alpha1.WorkStatus{}, 1},
		{"since the object that is waited for was applied", status(2, time.Hour, time.Minute), time.Minute},
		{"but only in this generation", status(2, time.Minute, time.Hour), time.Minute},
		{"which is new", status(1, time.Hour, time.Hour), 1},
	} {
		require.Equal(t, test.want, waiting(named("db"), 2, test.status, noon), test.reason)
	}
}

func TestPatience(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tries, takes, fault := 0, 10*time.Second, errors.New("no answer")
		p := &breaker{next: trip(func(*http.Request) (*http.Response, error) {
			tries++
			<-time.After(takes)
			return nil, fault
		})}
		ask := func() error {
			_, err := p.RoundTrip(&http.Request{}) //nolint:bodyclose // there is none
			return err
		}
		require.ErrorIs(t, ask(), fault)
		for range 10 {
			require.ErrorIs(t, ask(), errOutOfReach, "the others do not wait")
		}
		require.Equal(t, 1, tries)
		<-time.After(outOfReach)
		go func() { _ = ask() }()
		synctest.Wait()
		require.ErrorIs(t, ask(), errOutOfReach, "while one tries")
		require.Equal(t, 2, tries)
		<-time.After(takes + outOfReach)
		synctest.Wait()
		takes, fault = 0, nil
		for range 10 {
			require.NoError(t, ask(), "it answers again")
		}
		fault = errors.New("refused")
		for range 3 {
			require.ErrorIs(t, ask(), fault, "what fails at once keeps nobody waiting")
		}
	})
}

type trip func(*http.Request) (*http.Response, error)

func (f trip) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// UIDs are recorded once no Work waits, and in a flood of Works after some seconds at the latest.
func TestRecordWhenIdle(t *testing.T) {
	t.Parallel()
	busy, idle := func() bool { return true }, func() bool { return false }
	id := func(name string) v1alpha1.ResourceIdentifier {
		return v1alpha1.ResourceIdentifier{Version: "v1", Kind: "ConfigMap", Name: name}
	}
	inventory := func(entries ...v1alpha1.AppliedResource) []v1alpha1.AppliedResource { return entries }
	ahead := v1alpha1.AppliedResource{ResourceIdentifier: id("a")}
	created := v1alpha1.AppliedResource{ResourceIdentifier: id("a"), UID: "1"}
	created.Resource = "configmaps"
	ran, again := created, created
	ran.RanHash, again.UID = "x", "2"
	other := v1alpha1.AppliedResource{ResourceIdentifier: id("b"), UID: "3"}
	unknown := v1alpha1.AppliedResource{ResourceIdentifier: id("b")}

	require.True(t, addsOnlyUIDs(inventory(ahead), inventory(created)))
	for reason, tc := range map[string]struct{ before, after []v1alpha1.AppliedResource }{
		"nothing has changed":             {inventory(created), inventory(created)},
		"the object was created again":    {inventory(created), inventory(again)},
		"a Job has run":                   {inventory(ahead), inventory(ran)},
		"an object is not there any more": {inventory(ahead, other), inventory(created)},
		"an object is another one":        {inventory(ahead), inventory(other)},
		"a UID is not known any more":     {inventory(ahead, other), inventory(created, unknown)},
	} {
		require.False(t, addsOnlyUIDs(tc.before, tc.after), reason)
	}

	scheme, err := newScheme()
	require.NoError(t, err)
	applied := &v1alpha1.AppliedWork{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	applied.Status.Resources = inventory(ahead)
	member := fake.NewClientBuilder().WithScheme(scheme).WithObjects(applied).Build()
	r := appliedWork{member: member}
	require.NoError(t, r.read(t.Context(), member, "shop"))
	record := func(now []v1alpha1.AppliedResource, busy func() bool, at time.Time) (time.Duration, string) {
		t.Helper()
		wait, err := r.recordWhenIdle(t.Context(), now, busy, at)
		require.NoError(t, err)
		stored := &v1alpha1.AppliedWork{}
		require.NoError(t, member.Get(t.Context(), client.ObjectKey{Name: "shop"}, stored))
		return wait, string(stored.Status.Resources[0].UID)
	}
	for _, step := range []struct {
		reason string
		now    v1alpha1.AppliedResource
		busy   func() bool
		after  time.Duration
		wait   time.Duration
		stored string
	}{
		{"others wait", created, busy, 0, recordBusy, ""},
		{"others still wait", created, busy, recordDelay - time.Millisecond, recordBusy, ""},
		{"it has waited long enough", created, busy, recordDelay, 0, "1"},
		{"a UID that changes is recorded immediately", again, busy, recordDelay, 0, "2"},
		{"the object is not known any more", ahead, busy, recordDelay, 0, ""},
		{"the time begins anew", created, busy, recordDelay, recordBusy, ""},
		{"no Work waits", created, idle, recordDelay, 0, "1"},
	} {
		wait, stored := record(inventory(step.now), step.busy, noon.Add(step.after))
		require.Equal(t, step.wait, wait, step.reason)
		require.Equal(t, step.stored, stored, step.reason)
	}
}

// While Works wait, Events are sent at a lower rate, and afterwards those that have waited are not held up by it.
func TestEventLimiter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const events, busyFor = 100, 10 * time.Second
		start := time.Now()
		limiter := eventLimiter{
			RateLimiter: flowcontrol.NewTokenBucketRateLimiter(eventsPerSecond, eventBurst),
			whileBusy:   flowcontrol.NewTokenBucketRateLimiter(busyEventsPerSecond, 1),
			busy:        func() bool { return time.Since(start) < busyFor },
		}
		sent := make(chan time.Duration, events)
		for range events {
			go func() {
				if limiter.Wait(t.Context()) == nil {
					sent <- time.Since(start)
				}
			}()
		}
		during, last := 0, time.Duration(0)
		for range events {
			at := <-sent
			if at < busyFor {
				during++
			}
			last = max(last, at)
		}
		require.InDelta(t, busyFor.Seconds()*busyEventsPerSecond, during, 1)
		require.InDelta(t, (busyFor + (events-eventBurst-10)*time.Second/eventsPerSecond).Seconds(), last.Seconds(), 1)

		start = time.Now()
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		require.Error(t, errors.Join(limiter.Wait(canceled), limiter.Wait(canceled)), "the agent ends")
	})
}
