package lifecycle

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestSelectHub(t *testing.T) {
	const timeout = 5 * time.Minute
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	long := ago(time.Hour)
	lost := HubStatus{Unserved: ago(timeout)}
	const lostWhy = "hub a has accepted no heartbeat since 2026-11-21T11:55:00Z"
	for _, tc := range []struct {
		reason string
		since  time.Time
		hubs   []HubStatus
		want   HubsStep
	}{
		{"all is well", long, []HubStatus{{}, {}}, HubsStep{}},
		{"a hub may be restarted", long, []HubStatus{{Unserved: ago(time.Minute)}, {}}, HubsStep{After: 4 * time.Minute}},
		{"the agent does not leave for a hub that may be no better", long, []HubStatus{lost, {}},
			HubsStep{Hub: 1, Ask: true}},
		{"it is better there", long, []HubStatus{lost, {Answer: HubAnswers}},
			HubsStep{Hub: 1, Message: "Switching to hub b: " + lostWhy + "."}},
		{"the agent itself is cut off", long, []HubStatus{lost, {Answer: HubSilent}},
			HubsStep{After: RetryPoll, Message: "Hub a has accepted no heartbeat since 2026-11-21T11:55:00Z, and no other hub " +
				"responds."}},
		{"cut off for long, it asks less often", long, []HubStatus{{Unserved: long}, {Answer: HubSilent}},
			HubsStep{After: BlockedPoll,
				Message: "Hub a has accepted no heartbeat since 2026-11-21T11:00:00Z, and no other hub responds."}},
		{"an agent that just came had no time to join", ago(time.Minute), []HubStatus{{Unserved: long}, {}},
			HubsStep{After: 4 * time.Minute}},
		{"the first in the list of those that it never was at", long, []HubStatus{lost, {Left: long}, {}, {}},
			HubsStep{Hub: 2, Ask: true}},
		{"the next one if that is silent", long, []HubStatus{lost, {Left: long}, {Answer: HubSilent}, {Answer: HubAnswers}},
			HubsStep{Hub: 3, Message: "Switching to hub d: " + lostWhy + "."}},
		{"all were left: the one that had the most time to recover", long,
			[]HubStatus{lost, {Left: ago(time.Minute)}, {Left: long}}, HubsStep{Hub: 2, Ask: true}},
		{"there is no other", long, []HubStatus{lost}, HubsStep{}},
		{"a denial stands until a person takes it back", time.Time{}, []HubStatus{{Unserved: now, Refused: true}, {}},
			HubsStep{Hub: 1, Ask: true}},
		{"two hubs that both deny do not throw the agent to and fro", ago(time.Minute),
			[]HubStatus{{Unserved: ago(time.Minute), Refused: true}, {}},
			HubsStep{After: 4 * time.Minute}},
		{"out: there is nothing to wait for", ago(time.Minute),
			[]HubStatus{{Unserved: now, Out: true}, {Answer: HubAnswers}},
			HubsStep{Hub: 1, Stay: true, Message: "Switching to hub b: hub a has released this member."}},
		{"out, and nowhere to go for now", long, []HubStatus{{Unserved: now, Out: true}, {Answer: HubSilent}},
			HubsStep{After: RetryPoll, Message: "Hub a has released this member, and no other hub responds."}},
		{"out of all of them", long, []HubStatus{{Unserved: now, Out: true}, {Out: true}}, HubsStep{Done: true}},
		{"the agent does not go back to a hub that released it", long, []HubStatus{lost, {Out: true, Answer: HubAnswers}},
			HubsStep{}},
		{"what a hub has left on the member goes first", long,
			[]HubStatus{{Unserved: ago(10 * time.Minute), Cleaning: 15 * time.Minute}, {}},
			HubsStep{After: 5 * time.Minute}},
		{"unless it never goes", long, []HubStatus{{Unserved: ago(15 * time.Minute), Cleaning: 15 * time.Minute}, {}},
			HubsStep{Hub: 1, Ask: true}},
		{"a short deadline of a leave is not a short time to wait", long,
			[]HubStatus{{Unserved: ago(time.Minute), Cleaning: time.Second}, {}},
			HubsStep{After: 4 * time.Minute}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			for i := range tc.hubs {
				tc.hubs[i].Name = string(rune('a' + i))
			}
			require.Equal(t, tc.want, SelectHub(HubsObserved{Now: now, Hubs: tc.hubs, Since: tc.since, Timeout: timeout}))
		})
	}
}

// TestReturn checks the return to the first hub after half an hour, for an agent that is at the second of two hubs or
// leaves the first.
func TestReturn(t *testing.T) {
	const timeout, returns = 5 * time.Minute, 30 * time.Minute
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	long, recently := ago(time.Hour), ago(10*time.Second)
	back := HubStatus{Left: long, Asked: recently, Answering: ago(returns), Answer: HubAnswers}
	with := func(change func(*HubStatus)) HubStatus {
		hub := back
		change(&hub)
		return hub
	}
	const going = "Returning to hub a, which has responded since 2026-11-21T11:30:00Z."
	lost := HubStatus{Unserved: ago(timeout)}
	const lostWhy = "Switching to hub b: hub a has accepted no heartbeat since 2026-11-21T11:55:00Z."
	for _, tc := range []struct {
		reason string
		o      HubsObserved
		want   HubsStep
	}{
		{"it has answered for long enough", HubsObserved{Current: 1, Since: long, Hubs: []HubStatus{back, {}}},
			HubsStep{Message: going}},
		{"return is not requested", HubsObserved{Current: 1, Since: long, Return: -1, Hubs: []HubStatus{back, {}}},
			HubsStep{Hub: 1}},
		{"it is there", HubsObserved{Since: long, Hubs: []HubStatus{{}, back}}, HubsStep{}},
		{"an agent that left for a reason that probes do not show would leave again",
			HubsObserved{Current: 1, Since: long, Stay: true, Hubs: []HubStatus{back, {}}}, HubsStep{Hub: 1}},
		{"it is done with the member",
			HubsObserved{Current: 1, Since: long, Hubs: []HubStatus{with(func(h *HubStatus) { h.Out = true }), {}}},
			HubsStep{Hub: 1}},
		{"what another hub has left on the member goes first",
			HubsObserved{Current: 1, Since: long, Hubs: []HubStatus{back, {Cleaning: time.Minute}}}, HubsStep{Hub: 1}},
		{"between two changes the agent waits",
			HubsObserved{Current: 1, Since: ago(time.Minute), Hubs: []HubStatus{back, {}}},
			HubsStep{Hub: 1, After: 50 * time.Second}},
		{"it answers, and not for long",
			HubsObserved{Current: 1, Since: long,
				Hubs: []HubStatus{with(func(h *HubStatus) { h.Answering = ago(20 * time.Minute) }), {}}},
			HubsStep{Hub: 1, After: 50 * time.Second}},
		{"what it answered before it was lost does not count",
			HubsObserved{Current: 1, Since: ago(20 * time.Minute),
				Hubs: []HubStatus{with(func(h *HubStatus) { h.Left = ago(20 * time.Minute) }), {}}},
			HubsStep{Hub: 1, After: 50 * time.Second}},
		{"the last look is when it is due",
			HubsObserved{Current: 1, Since: long,
				Hubs: []HubStatus{with(func(h *HubStatus) { h.Answering = ago(returns - time.Second) }), {}}},
			HubsStep{Hub: 1, After: time.Second}},
		{"one that answered is asked before it is gone to",
			HubsObserved{Current: 1, Since: long,
				Hubs: []HubStatus{with(func(h *HubStatus) { h.Answer = HubAnswerUnknown }), {}}},
			HubsStep{Ask: true}},
		{"nothing is known of it", HubsObserved{Current: 1, Since: long, Hubs: []HubStatus{{}, {}}}, HubsStep{Ask: true}},
		{"it is asked once a minute", HubsObserved{Current: 1, Since: long, Hubs: []HubStatus{{Asked: recently}, {}}},
			HubsStep{Hub: 1, After: 50 * time.Second}},
		{"it was gone to, and that could not be written down",
			HubsObserved{Current: 1, Since: long, Hubs: []HubStatus{with(func(h *HubStatus) { h.Answer = HubSilent }), {}}},
			HubsStep{Hub: 1, After: time.Minute}},
		{"a hub that is lost is left for whichever answers",
			HubsObserved{Current: 1, Since: long, Stay: true, Hubs: []HubStatus{{Answer: HubAnswers}, lost}},
			HubsStep{Message: "Switching to hub a: hub b has accepted no heartbeat since 2026-11-21T11:55:00Z."}},

		{"who leaves the first asks whether its answers are worth anything",
			HubsObserved{Since: long, Hubs: []HubStatus{lost, {Answer: HubAnswers}}}, HubsStep{Ask: true}},
		{"it is down", HubsObserved{Since: long,
			Hubs: []HubStatus{{Unserved: ago(timeout), Answer: HubSilent}, {Answer: HubAnswers}}},
			HubsStep{Hub: 1, Message: lostWhy}},
		{"it responds and accepts no agent",
			HubsObserved{Since: long, Hubs: []HubStatus{{Unserved: ago(timeout), Answer: HubAnswers}, {Answer: HubAnswers}}},
			HubsStep{Hub: 1, Stay: true, Message: lostWhy}},
		{"it has refused the member",
			HubsObserved{Since: long, Hubs: []HubStatus{{Unserved: long, Refused: true}, {Answer: HubAnswers}}},
			HubsStep{Hub: 1, Stay: true, Message: "Switching to hub b: hub a refuses the agent."}},
		{"who does not go back need not ask",
			HubsObserved{Since: long, Return: -1, Hubs: []HubStatus{lost, {Answer: HubAnswers}}},
			HubsStep{Hub: 1, Message: lostWhy}},
		{"a third hub changes nothing about the first",
			HubsObserved{Current: 1, Since: long, Stay: true, Hubs: []HubStatus{{Left: long}, lost, {Answer: HubAnswers}}},
			HubsStep{Hub: 2, Stay: true,
				Message: "Switching to hub c: hub b has accepted no heartbeat since 2026-11-21T11:55:00Z."}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			for i := range tc.o.Hubs {
				tc.o.Hubs[i].Name = string(rune('a' + i))
			}
			if tc.o.Return == 0 {
				tc.o.Return = returns
			}
			tc.o.Now, tc.o.Timeout = now, timeout
			require.Equal(t, tc.want, SelectHub(tc.o))
		})
	}
}

func TestHeard(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	for _, tc := range []struct {
		reason string
		before HubStatus
		answer HubAnswer
		want   time.Time
	}{
		{"it answers", HubStatus{}, HubAnswers, now},
		{"it still does", HubStatus{Asked: ago(time.Minute), Answering: ago(time.Hour)}, HubAnswers, ago(time.Hour)},
		{"it does not", HubStatus{Asked: ago(time.Minute), Answering: ago(time.Hour)}, HubSilent, time.Time{}},
		{"its state during hours without probes is unknown",
			HubStatus{Asked: ago(time.Hour), Answering: ago(2 * time.Hour)}, HubAnswers, now},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			require.Equal(t, HubStatus{Asked: now, Answering: tc.want, Answer: tc.answer}, tc.before.Heard(tc.answer, now))
		})
	}
}

// TestSelectHubOverTime checks the decisions of an agent whose hubs fail and respond again at random.
func TestSelectHubOverTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const timeout = 5 * time.Minute
		now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
		hubs := make([]HubStatus, rapid.IntRange(1, 4).Draw(t, "hubs"))
		up := make([]bool, len(hubs))
		returns := time.Duration(rapid.IntRange(0, 2).Draw(t, "returns")) * 2 * timeout
		o := HubsObserved{Hubs: hubs, Timeout: timeout, Return: returns}
		hubs[0].Unserved = now
		var came, left, silent time.Time // when it came where it is, left the first hub, and had no answer of that
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			now = now.Add(time.Duration(rapid.IntRange(0, int(2*timeout)).Draw(t, "passes")))
			changed := rapid.IntRange(0, len(hubs)-1).Draw(t, "changed")
			up[changed] = !up[changed]
			here := &hubs[o.Current]
			switch {
			case here.Out:
			case up[o.Current]:
				here.Unserved, here.Out = time.Time{}, rapid.IntRange(0, 20).Draw(t, "out") == 0
				if here.Out {
					here.Unserved = now
				}
			case here.Unserved.IsZero():
				here.Unserved = now
			}
			for i := range hubs {
				hubs[i].Answer = HubAnswerUnknown
			}
			o.Now = now
			step := SelectHub(o)
			for asked := 0; step.Ask; asked++ {
				require.Less(t, asked, len(hubs), "a round ends")
				require.True(t, o.Current != step.Hub || returns > 0 && step.Hub == 0, "the agent probes its current hub")
				answer := HubSilent
				if up[step.Hub] {
					answer = HubAnswers
				} else if step.Hub == 0 {
					silent = now
				}
				hubs[step.Hub] = hubs[step.Hub].Heard(answer, now)
				step = SelectHub(o)
			}
			require.GreaterOrEqual(t, step.After, time.Duration(0))
			if step.Done {
				for _, hub := range hubs {
					require.True(t, hub.Out)
				}
				return
			}
			if step.Hub != o.Current {
				if !here.Out && here.Unserved.IsZero() {
					require.True(t, returns > 0 && step.Hub == 0 && !o.Stay, "it leaves a hub that takes it")
					require.GreaterOrEqual(t, now.Sub(left), returns, "it goes back and forth")
					require.True(t, silent.IsZero() || now.Sub(silent) >= returns, "it goes back to a hub that comes and goes")
				}
				require.True(t, up[step.Hub] && !hubs[step.Hub].Out, "it goes to a hub that does not respond")
				require.True(t, here.Out || came.IsZero() || now.Sub(came) >= timeout, "it has hardly arrived")
				if o.Current == 0 {
					require.Equal(t, here.Out || returns > 0 && up[0], step.Stay, "it would be sent away again")
					left = now
				}
				here.Left, came, o.Since, o.Current, o.Stay = now, now, now, step.Hub, step.Stay
				hubs[step.Hub].Unserved = now
				continue
			}
			waits := here.Out || !here.Unserved.IsZero()
			others := false
			for i, hub := range hubs {
				others = others || i != o.Current && !hub.Out
			}
			goesBack := !waits && returns > 0 && o.Current != 0 && !o.Stay && !hubs[0].Out
			require.Equal(t, waits && others || goesBack, step.After > 0, "it looks again if and only if it may have to go")
		}
	})
}
