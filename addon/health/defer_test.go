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
	unreported, reported := health.Work{Generation: 2, Observed: 1}, health.Work{Generation: 2, Observed: 2}
	assigned := func(works ...health.Work) health.Observed {
		return health.Observed{Now: now, Reachable: true, Desired: "2", Revision: "2", Since: ago(500 * time.Millisecond),
			Current: true, Works: works}
	}
	with := func(o health.Observed, change func(*health.Observed)) health.Observed {
		change(&o)
		return o
	}
	waiting := health.Observed{Now: now, Reachable: true, Desired: "2", Revision: "1", Since: ago(time.Hour),
		Current: true, Works: []health.Work{reported}}
	for _, test := range []struct {
		reason string
		o      health.Observed
		open   time.Time
		want   time.Duration
	}{
		{"a permit has just been requested", waiting, ago(200 * time.Millisecond), 800 * time.Millisecond},
		{"a permit was requested a second ago", waiting, ago(time.Second), 0},
		{"the rollout has reported a hold reason", with(waiting, func(o *health.Observed) { o.Hold = "held" }), ago(0), 0},
		{"no permit is requested", waiting, time.Time{}, 0},
		{"the revision was assigned just now", assigned(unreported), ago(time.Hour), 1500 * time.Millisecond},
		{"one of two Works has no current status", assigned(reported, unreported), time.Time{}, 1500 * time.Millisecond},
		{"all Works have a current status", assigned(reported, reported), ago(0), 0},
		{"the Works do not exist yet", assigned(), time.Time{}, 1500 * time.Millisecond},
		{"the Works are not up to date",
			with(assigned(reported), func(o *health.Observed) { o.Current = false }), time.Time{},
			1500 * time.Millisecond},
		{"a Work has no current status for two seconds",
			with(assigned(unreported), func(o *health.Observed) { o.Since = ago(2 * time.Second) }),
			time.Time{}, 0},
		{"the member cannot be reached",
			with(assigned(unreported), func(o *health.Observed) { o.Reachable = false }), time.Time{}, 0},
		{"the time of the assignment is in the future",
			with(assigned(unreported), func(o *health.Observed) { o.Since = now.Add(time.Minute) }), time.Time{}, 0},
		{"a problem exists",
			with(assigned(unreported), func(o *health.Observed) { o.Problems = []health.Problem{{Reason: "NoAgent"}} }), ago(0),
			0},
		{"the add-on is being removed",
			with(assigned(unreported), func(o *health.Observed) { o.Removal = &health.Removal{} }), ago(0), 0},
	} {
		require.Equal(t, test.want, health.Defer(test.o, test.open), test.reason)
	}
}
