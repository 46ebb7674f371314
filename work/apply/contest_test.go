package apply

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var replicas = []FieldConflict{{Field: ".spec.replicas", Manager: "hpa"}}

// fight lets an opponent undo each heal after a time of its own, and counts the heals until the end.
func fight(c contest, lost []FieldConflict, period, until time.Duration) (heals int, next contest) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for now := start; now.Before(start.Add(until)); {
		if wait := c.wait(lost, now); wait > 0 {
			now = now.Add(wait)
			continue
		}
		c = c.healed(lost, now)
		heals++
		now = now.Add(period)
	}
	return heals, c
}

func TestContest_Rate(t *testing.T) {
	for _, tc := range []struct {
		reason        string
		period, until time.Duration
		least, most   int
	}{
		{"an opponent that is always at once costs a dozen writes in an hour, not 100,000", 50 * time.Millisecond, time.Hour,
			10, 25},
		{"an autoscaler that writes every 15 seconds is slowed down as well", 15 * time.Second, time.Hour, 10, 30},
		{"a person who edits every 5 minutes is corrected every time", 5*time.Minute + time.Second, time.Hour, 12, 12},
	} {
		heals, _ := fight(nil, replicas, tc.period, tc.until)
		require.GreaterOrEqual(t, heals, tc.least, tc.reason)
		require.LessOrEqual(t, heals, tc.most, tc.reason)
	}
}

func TestContest_SingleEditIsHealedAtOnce(t *testing.T) {
	_, c := fight(nil, replicas, time.Millisecond, time.Minute)
	end := time.Date(2026, 1, 1, 0, 1, 0, 0, time.UTC)
	require.Positive(t, c.wait(replicas, end))
	require.Zero(t, c.wait([]FieldConflict{{Field: ".spec.paused", Manager: "kubectl"}}, end),
		"another field is no part of the contest")
	both := []FieldConflict{replicas[0], {Field: ".spec.paused", Manager: "kubectl"}}
	require.Zero(t, c.wait(both, end), "an edit of another field is healed though the contest goes on")
	require.Zero(t, c.wait(nil, end), "what is lost is unknown after a restart: heal")
}

func TestContest_Reported(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var c contest
	for i := range freeHeals {
		fields, _, _ := c.reported(start)
		require.Empty(t, fields, "after %d heals", i)
		c = c.healed(replicas, start)
	}
	fields, pause, until := c.reported(start)
	require.Equal(t, replicas, fields)
	require.Equal(t, firstPause, pause)
	fields, _, _ = c.reported(until)
	require.Empty(t, fields, "a field that stayed as it was applied is not contested any more")
	message := contested(replicas, pause)
	for _, part := range []string{".spec.replicas", `"hpa"`, "ignoredFields", "2s"} {
		require.Contains(t, message, part)
	}
	require.NotContains(t, contested([]FieldConflict{{}}, pause), "ignoredFields",
		"a deletion cannot be ignored by a field")
}

func TestContest_BoundedMemory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		var c contest
		for range rapid.IntRange(1, 100).Draw(t, "heals") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "pause")))
			lost := []FieldConflict{{Field: fmt.Sprintf(".f%d", rapid.IntRange(0, 40).Draw(t, "field"))}}
			before := fmt.Sprint(c)
			next := c.healed(lost, now)
			if fmt.Sprint(c) != before {
				t.Fatal("a history must not be changed in place")
			}
			if c = next; len(c) > maxContested {
				t.Fatalf("%d fields are remembered", len(c))
			}
			if wait := c.wait(lost, now); wait > lastPause {
				t.Fatalf("a heal waits %s", wait)
			}
		}
	})
}
