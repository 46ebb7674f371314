package agent

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/work/v1alpha1"
)

// TestRetry checks that a reconcile because of a change neither postpones the next retry nor counts as one.
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
	require.LessOrEqual(t, s.retry(now), lastRetry*5/4, "the backoff has a limit")
	require.GreaterOrEqual(t, s.retry(now), lastRetry)
	s.succeeded()
	require.LessOrEqual(t, s.retry(now), firstRetry*5/4)
}

func TestWaiting_Since(t *testing.T) {
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
		{"no status yet", &v1alpha1.WorkStatus{}, 1},
		{"time since the object was applied", status(2, time.Hour, time.Minute), time.Minute},
		{"time since this generation began", status(2, time.Minute, time.Hour), time.Minute},
		{"the generation is new", status(1, time.Hour, time.Hour), 1},
	} {
		require.Equal(t, test.want, waiting(named("db"), 2, test.status, noon), test.reason)
	}
}

func TestBreaker_OpensAfterTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tries, duration, fault := 0, 10*time.Second, errors.New("no answer")
		p := &breaker{next: trip(func(*http.Request) (*http.Response, error) {
			tries++
			<-time.After(duration)
			return nil, fault
		})}
		send := func() error {
			_, err := p.RoundTrip(&http.Request{}) //nolint:bodyclose // there is none
			return err
		}
		require.ErrorIs(t, send(), fault)
		for range 10 {
			require.ErrorIs(t, send(), errUnreachable, "other requests do not wait")
		}
		require.Equal(t, 1, tries)
		<-time.After(retryInterval)
		go func() { _ = send() }()
		synctest.Wait()
		require.ErrorIs(t, send(), errUnreachable, "other requests do not wait while one is sent")
		require.Equal(t, 2, tries)
		<-time.After(duration + retryInterval)
		synctest.Wait()
		duration, fault = 0, nil
		for range 10 {
			require.NoError(t, send(), "the API server responds again")
		}
		fault = errors.New("refused")
		for range 3 {
			require.ErrorIs(t, send(), fault, "immediate failures do not open the breaker")
		}
	})
}

type trip func(*http.Request) (*http.Response, error)

func (f trip) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
