package apply

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var replicas = []FieldConflict{{Field: ".spec.replicas", Manager: "hpa"}}

// fight simulates an opponent that reverts each heal after a period, and counts the heals until the end.
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
		{"immediate opponent: a dozen writes in an hour", 50 * time.Millisecond, time.Hour,
			10, 25},
		{"autoscaler that writes every 15 seconds is slowed down", 15 * time.Second, time.Hour, 10, 30},
		{"edits every 5 minutes are corrected every time", 5*time.Minute + time.Second, time.Hour, 12, 12},
	} {
		heals, _ := fight(nil, replicas, tc.period, tc.until)
		require.GreaterOrEqual(t, heals, tc.least, tc.reason)
		require.LessOrEqual(t, heals, tc.most, tc.reason)
	}
}

// TestContest_PauseDoubles checks each pause with a permanent opponent.
func TestContest_PauseDoubles(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var c contest
	for _, want := range []time.Duration{
		0, 0, 0, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 32 * time.Second, 64 * time.Second,
		128 * time.Second, 256 * time.Second, 5 * time.Minute, 5 * time.Minute, 5 * time.Minute,
	} {
		require.Equal(t, want, c.wait(replicas, now))
		now = now.Add(want)
		require.Zero(t, c.wait(replicas, now))
		c = c.healed(replicas, now)
	}
	for range 100 { // the shift of the pause must not overflow
		now = now.Add(lastPause)
		c = c.healed(replicas, now)
		require.Equal(t, lastPause, c.wait(replicas, now))
	}
	now = now.Add(historyRetention + lastPause + time.Second)
	require.Equal(t, healHistory{count: 1, last: now}, c.healed(replicas, now)[replicas[0]], "an old contest is deleted")
}

// TestContest_AnotherManager checks that an edit of a contested field by another manager, such as a person, is healed
// immediately, and that managers whose names change are slowed down nevertheless.
func TestContest_AnotherManager(t *testing.T) {
	_, c := fight(nil, replicas, time.Millisecond, time.Minute)
	end := time.Date(2026, 1, 1, 0, 1, 0, 0, time.UTC)
	edit := []FieldConflict{{Field: ".spec.replicas", Manager: "kubectl-edit"}}
	require.Positive(t, c.wait(replicas, end))
	require.Zero(t, c.wait(edit, end))
	c = c.healed(edit, end)
	require.Positive(t, c.wait(replicas, end), "the contest continues")
	require.Zero(t, c.wait(edit, end), "a second edit is healed at once")
	fields, pause, _ := c.reported(end)
	require.Equal(t, replicas, fields, "a single edit is not reported as a contest")

	both := []FieldConflict{replicas[0], {Field: ".spec.replicas", Manager: "keda"}}
	require.Contains(t, contestedMessage(both, pause), `.spec.replicas by "hpa", .spec.replicas by "keda"`)
	require.Contains(t, contestedMessage(both, pause), "Add .spec.replicas to ignoredFields", "each field is named once")
}

func TestContest_SingleEditIsHealedAtOnce(t *testing.T) {
	_, c := fight(nil, replicas, time.Millisecond, time.Minute)
	end := time.Date(2026, 1, 1, 0, 1, 0, 0, time.UTC)
	require.Positive(t, c.wait(replicas, end))
	require.Zero(t, c.wait([]FieldConflict{{Field: ".spec.paused", Manager: "kubectl"}}, end),
		"another field does not belong to the contest")
	both := []FieldConflict{replicas[0], {Field: ".spec.paused", Manager: "kubectl"}}
	require.Zero(t, c.wait(both, end), "an edit of another field is healed during the contest")
	require.Zero(t, c.wait(nil, end), "the lost fields are unknown after a restart: heal")
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
	require.Empty(t, fields, "a field that keeps the applied value is no longer contested")
	message := contestedMessage(replicas, pause)
	for _, part := range []string{".spec.replicas", `"hpa"`, "ignoredFields", "2s"} {
		require.Contains(t, message, part)
	}
	require.NotContains(t, contestedMessage([]FieldConflict{{}}, pause), "ignoredFields",
		"ignoredFields does not prevent a deletion")
}

// TestContest_Bounded checks an opponent that changes other fields, under other names, each time. Neither the memory
// nor the number of heals grows.
func TestContest_Bounded(t *testing.T) {
	const entries = (maxContested + 1) * (maxOpponents + 1)
	const perEntry = freeHeals + 8 + int(historyRetention/lastPause) + 1 // eight pauses are shorter than the last one
	rapid.Check(t, func(t *rapid.T) {
		fields, managers := rapid.IntRange(1, 40).Draw(t, "fields"), rapid.IntRange(1, 40).Draw(t, "managers")
		fieldsAtOnce := rapid.IntRange(1, 5).Draw(t, "fields at once")
		period := time.Duration(rapid.IntRange(1, 1000).Draw(t, "milliseconds")) * time.Millisecond
		start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		now, count := start, 0
		var c contest
		for ; now.Before(start.Add(historyRetention)); count++ {
			if count > entries*perEntry {
				t.Fatalf("%d heals in %s", count, now.Sub(start))
			}
			var lost []FieldConflict
			for i := range fieldsAtOnce {
				lost = append(lost, FieldConflict{fmt.Sprint(".f", (count+i)%fields), fmt.Sprint("m", count/3%managers)})
			}
			before := maps.Clone(c)
			wait := c.wait(lost, now)
			if wait > lastPause {
				t.Fatalf("a heal waits %s", wait)
			}
			now = now.Add(wait)
			next := c.healed(lost, now)
			if !maps.Equal(c, before) {
				t.Fatal("a history must not be changed in place")
			}
			if c = next; len(c) > entries {
				t.Fatalf("%d histories are stored", len(c))
			}
			now = now.Add(period)
		}
	})
}
