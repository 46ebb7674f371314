package health_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/addon/health"
)

func TestDefer(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	silent, spoke := health.Work{Generation: 2, Observed: 1}, health.Work{Generation: 2, Observed: 2}
	assigned := func(works ...health.Work) health.Observed {
		return health.Observed{Now: now, Reachable: true, Desired: "2", Revision: "2", Since: ago(500 * time.Millisecond),
			Current: true, Works: works}
	}
	with := func(o health.Observed, change func(*health.Observed)) health.Observed {
		change(&o)
		return o
	}
	waits := health.Observed{Now: now, Reachable: true, Desired: "2", Revision: "1", Since: ago(time.Hour),
		Current: true, Works: []health.Work{spoke}}
	for _, test := range []struct {
		reason string
		o      health.Observed
		open   time.Time
		want   time.Duration
	}{
		{"the rollout has just been asked for a permit", waits, ago(200 * time.Millisecond), 800 * time.Millisecond},
		{"that takes too long", waits, ago(time.Second), 0},
		{"the rollout has said why not", with(waits, func(o *health.Observed) { o.Hold = "held" }), ago(0), 0},
		{"it needs no permit", waits, time.Time{}, 0},
		{"it was assigned just now", assigned(silent), ago(time.Hour), 1500 * time.Millisecond},
		{"one of two has not answered", assigned(spoke, silent), time.Time{}, 1500 * time.Millisecond},
		{"all have answered", assigned(spoke, spoke), ago(0), 0},
		{"its Works are still to be written", assigned(), time.Time{}, 1500 * time.Millisecond},
		{"they are not up to date", with(assigned(spoke), func(o *health.Observed) { o.Current = false }), time.Time{},
			1500 * time.Millisecond},
		{"it takes too long to answer", with(assigned(silent), func(o *health.Observed) { o.Since = ago(2 * time.Second) }),
			time.Time{}, 0},
		{"it cannot answer", with(assigned(silent), func(o *health.Observed) { o.Reachable = false }), time.Time{}, 0},
		{"the clock of the assignment is ahead",
			with(assigned(silent), func(o *health.Observed) { o.Since = now.Add(time.Minute) }), time.Time{}, 0},
		{"something is wrong",
			with(assigned(silent), func(o *health.Observed) { o.Problems = []health.Problem{{Reason: "NoAgent"}} }), ago(0), 0},
		{"it is removed", with(assigned(silent), func(o *health.Observed) { o.Removal = &health.Removal{} }), ago(0), 0},
	} {
		require.Equal(t, test.want, health.Defer(test.o, test.open), test.reason)
	}
}
