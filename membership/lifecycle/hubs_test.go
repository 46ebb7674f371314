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
	const lostReason = "hub a has accepted no heartbeat since 2026-11-21T11:55:00Z"
	for _, tc := range []struct {
		reason string
		since  time.Time
		hubs   []HubStatus
		want   HubsStep
	}{
		{"the current hub accepts heartbeats", long, []HubStatus{{}, {}}, HubsStep{}},
		{"a hub without heartbeats for less than the timeout is kept",
			long, []HubStatus{{Unserved: ago(time.Minute)}, {}}, HubsStep{After: 4 * time.Minute}},
		{"the agent probes another hub before it switches", long, []HubStatus{lost, {}},
			HubsStep{Hub: 1, Ask: true}},
		{"the other hub responds", long, []HubStatus{lost, {Answer: HubAnswers}},
			HubsStep{Hub: 1, Message: "Switching to hub b: " + lostReason + "."}},
		{"no hub responds", long, []HubStatus{lost, {Answer: HubSilent}},
			HubsStep{After: RetryPoll, Message: "Hub a has accepted no heartbeat since 2026-11-21T11:55:00Z, and no other hub " +
				"responds."}},
		{"no hub responds for an hour: probes are less frequent", long, []HubStatus{{Unserved: long}, {Answer: HubSilent}},
			HubsStep{After: BlockedPoll,
				Message: "Hub a has accepted no heartbeat since 2026-11-21T11:00:00Z, and no other hub responds."}},
		{"an agent that has just switched waits for the timeout", ago(time.Minute), []HubStatus{{Unserved: long}, {}},
			HubsStep{After: 4 * time.Minute}},
		{"the first hub in the list that the agent has not left is probed", long, []HubStatus{lost, {Left: long}, {}, {}},
			HubsStep{Hub: 2, Ask: true}},
		{"the next hub is selected if the first candidate does not respond",
			long, []HubStatus{lost, {Left: long}, {Answer: HubSilent}, {Answer: HubAnswers}},
			HubsStep{Hub: 3, Message: "Switching to hub d: " + lostReason + "."}},
		{"all hubs were left: the hub that was left first is probed", long,
			[]HubStatus{lost, {Left: ago(time.Minute)}, {Left: long}}, HubsStep{Hub: 2, Ask: true}},
		{"a single hub is kept", long, []HubStatus{lost}, HubsStep{}},
		{"a hub that refuses the agent is left without the timeout",
			time.Time{}, []HubStatus{{Unserved: now, Refused: true}, {}},
			HubsStep{Hub: 1, Ask: true}},
		{"two hubs that refuse the agent: it waits between two switches", ago(time.Minute),
			[]HubStatus{{Unserved: ago(time.Minute), Refused: true}, {}},
			HubsStep{After: 4 * time.Minute}},
		{"a hub that released the member is left immediately", ago(time.Minute),
			[]HubStatus{{Unserved: now, Out: true}, {Answer: HubAnswers}},
			HubsStep{Hub: 1, Stay: true, Message: "Switching to hub b: hub a has released this member."}},
		{"the hub released the member and no other hub responds",
			long, []HubStatus{{Unserved: now, Out: true}, {Answer: HubSilent}},
			HubsStep{After: RetryPoll, Message: "Hub a has released this member, and no other hub responds."}},
		{"all hubs released the member", long, []HubStatus{{Unserved: now, Out: true}, {Out: true}}, HubsStep{Done: true}},
		{"a hub that released the member is not selected", long, []HubStatus{lost, {Out: true, Answer: HubAnswers}},
			HubsStep{}},
		{"the agent waits until the objects of the hub are cleaned up", long,
			[]HubStatus{{Unserved: ago(10 * time.Minute), Cleaning: 15 * time.Minute}, {}},
			HubsStep{After: 5 * time.Minute}},
		{"the wait for the clean-up is limited",
			long, []HubStatus{{Unserved: ago(15 * time.Minute), Cleaning: 15 * time.Minute}, {}},
			HubsStep{Hub: 1, Ask: true}},
		{"a short clean-up does not shorten the timeout", long,
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

// TestSelectHub_Return checks the return to the first hub after half an hour, for an agent that is at the second of
// two hubs or leaves the first.
func TestSelectHub_Return(t *testing.T) {
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
	const returning = "Returning to hub a, which has responded since 2026-11-21T11:30:00Z."
	lost := HubStatus{Unserved: ago(timeout)}
	const switching = "Switching to hub b: hub a has accepted no heartbeat since 2026-11-21T11:55:00Z."
	for _, tc := range []struct {
		reason string
		o      HubsObserved
		want   HubsStep
	}{
		{"the first hub has responded for 30 minutes", HubsObserved{Current: 1, Since: long, Hubs: []HubStatus{back, {}}},
			HubsStep{Message: returning}},
		{"failback is disabled", HubsObserved{Current: 1, Since: long, Return: -1, Hubs: []HubStatus{back, {}}},
			HubsStep{Hub: 1}},
		{"the agent is at the first hub", HubsObserved{Since: long, Hubs: []HubStatus{{}, back}}, HubsStep{}},
		{"the agent left for a reason that probes do not detect",
			HubsObserved{Current: 1, Since: long, Stay: true, Hubs: []HubStatus{back, {}}}, HubsStep{Hub: 1}},
		{"the first hub has released the member",
			HubsObserved{Current: 1, Since: long, Hubs: []HubStatus{with(func(h *HubStatus) { h.Out = true }), {}}},
			HubsStep{Hub: 1}},
		{"the objects of another hub are cleaned up first",
			HubsObserved{Current: 1, Since: long, Hubs: []HubStatus{back, {Cleaning: time.Minute}}}, HubsStep{Hub: 1}},
		{"the agent waits between two switches",
			HubsObserved{Current: 1, Since: ago(time.Minute), Hubs: []HubStatus{back, {}}},
			HubsStep{Hub: 1, After: 50 * time.Second}},
		{"the first hub has responded for less than 30 minutes",
			HubsObserved{Current: 1, Since: long,
				Hubs: []HubStatus{with(func(h *HubStatus) { h.Answering = ago(20 * time.Minute) }), {}}},
			HubsStep{Hub: 1, After: 50 * time.Second}},
		{"responses before the agent left the first hub do not apply",
			HubsObserved{Current: 1, Since: ago(20 * time.Minute),
				Hubs: []HubStatus{with(func(h *HubStatus) { h.Left = ago(20 * time.Minute) }), {}}},
			HubsStep{Hub: 1, After: 50 * time.Second}},
		{"the last probe is when the return is due",
			HubsObserved{Current: 1, Since: long,
				Hubs: []HubStatus{with(func(h *HubStatus) { h.Answering = ago(returns - time.Second) }), {}}},
			HubsStep{Hub: 1, After: time.Second}},
		{"the first hub is probed again before the return",
			HubsObserved{Current: 1, Since: long,
				Hubs: []HubStatus{with(func(h *HubStatus) { h.Answer = HubAnswerUnknown }), {}}},
			HubsStep{Ask: true}},
		{"the first hub was never probed",
			HubsObserved{Current: 1, Since: long, Hubs: []HubStatus{{}, {}}}, HubsStep{Ask: true}},
		{"the first hub is probed once a minute",
			HubsObserved{Current: 1, Since: long, Hubs: []HubStatus{{Asked: recently}, {}}},
			HubsStep{Hub: 1, After: 50 * time.Second}},
		{"the first hub does not respond to the last probe",
			HubsObserved{Current: 1, Since: long, Hubs: []HubStatus{with(func(h *HubStatus) { h.Answer = HubSilent }), {}}},
			HubsStep{Hub: 1, After: time.Minute}},
		{"a lost second hub is left for the first hub, also with Stay",
			HubsObserved{Current: 1, Since: long, Stay: true, Hubs: []HubStatus{{Answer: HubAnswers}, lost}},
			HubsStep{Message: "Switching to hub a: hub b has accepted no heartbeat since 2026-11-21T11:55:00Z."}},

		{"the first hub is probed before it is left",
			HubsObserved{Since: long, Hubs: []HubStatus{lost, {Answer: HubAnswers}}}, HubsStep{Ask: true}},
		{"the first hub does not respond", HubsObserved{Since: long,
			Hubs: []HubStatus{{Unserved: ago(timeout), Answer: HubSilent}, {Answer: HubAnswers}}},
			HubsStep{Hub: 1, Message: switching}},
		{"the first hub responds and accepts no heartbeat",
			HubsObserved{Since: long, Hubs: []HubStatus{{Unserved: ago(timeout), Answer: HubAnswers}, {Answer: HubAnswers}}},
			HubsStep{Hub: 1, Stay: true, Message: switching}},
		{"the first hub has refused the agent",
			HubsObserved{Since: long, Hubs: []HubStatus{{Unserved: long, Refused: true}, {Answer: HubAnswers}}},
			HubsStep{Hub: 1, Stay: true, Message: "Switching to hub b: hub a refuses the agent."}},
		{"without failback, the first hub is not probed before it is left",
			HubsObserved{Since: long, Return: -1, Hubs: []HubStatus{lost, {Answer: HubAnswers}}},
			HubsStep{Hub: 1, Message: switching}},
		{"a switch to a third hub keeps Stay",
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

func TestHubStatus_Heard(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	for _, tc := range []struct {
		reason string
		before HubStatus
		answer HubAnswer
		want   time.Time
	}{
		{"the first response", HubStatus{}, HubAnswers, now},
		{"another response", HubStatus{Asked: ago(time.Minute), Answering: ago(time.Hour)}, HubAnswers, ago(time.Hour)},
		{"no response", HubStatus{Asked: ago(time.Minute), Answering: ago(time.Hour)}, HubSilent, time.Time{}},
		{"a response after an hour without probes",
			HubStatus{Asked: ago(time.Hour), Answering: ago(2 * time.Hour)}, HubAnswers, now},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			require.Equal(t, HubStatus{Asked: now, Answering: tc.want, Answer: tc.answer}, tc.before.Heard(tc.answer, now))
		})
	}
}

// TestSelectHub_Simulation checks the decisions of an agent whose hubs fail and respond again at random.
func TestSelectHub_Simulation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const timeout = 5 * time.Minute
		now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
		hubs := make([]HubStatus, rapid.IntRange(1, 4).Draw(t, "hubs"))
		up := make([]bool, len(hubs))
		returns := time.Duration(rapid.IntRange(0, 2).Draw(t, "returns")) * 2 * timeout
		o := HubsObserved{Hubs: hubs, Timeout: timeout, Return: returns}
		hubs[0].Unserved = now
		var arrived, left, silent time.Time // at the current hub; from the first hub; last failed probe of the first hub
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			now = now.Add(time.Duration(rapid.IntRange(0, int(2*timeout)).Draw(t, "passes")))
			changed := rapid.IntRange(0, len(hubs)-1).Draw(t, "changed")
			up[changed] = !up[changed]
			current := &hubs[o.Current]
			switch {
			case current.Out:
			case up[o.Current]:
				current.Unserved, current.Out = time.Time{}, rapid.IntRange(0, 20).Draw(t, "out") == 0
				if current.Out {
					current.Unserved = now
				}
			case current.Unserved.IsZero():
				current.Unserved = now
			}
			for i := range hubs {
				hubs[i].Answer = HubAnswerUnknown
			}
			o.Now = now
			step := SelectHub(o)
			for probes := 0; step.Ask; probes++ {
				require.Less(t, probes, len(hubs), "a decision needs at most one probe per hub")
				require.True(t, o.Current != step.Hub || returns > 0 && step.Hub == 0,
					"the agent probes its current hub without a reason")
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
				if !current.Out && current.Unserved.IsZero() {
					require.True(t, returns > 0 && step.Hub == 0 && !o.Stay, "the agent leaves a hub that accepts it")
					require.GreaterOrEqual(t, now.Sub(left), returns, "the agent returns too early")
					require.True(t, silent.IsZero() || now.Sub(silent) >= returns, "the agent returns to an unsteady hub")
				}
				require.True(t, up[step.Hub] && !hubs[step.Hub].Out, "the agent switches to a hub that does not respond")
				require.True(t, current.Out || arrived.IsZero() || now.Sub(arrived) >= timeout,
					"the agent leaves a hub before the timeout")
				if o.Current == 0 {
					require.Equal(t, current.Out || returns > 0 && up[0], step.Stay,
						"Stay is wrong when the agent leaves the first hub")
					left = now
				}
				current.Left, arrived, o.Since, o.Current, o.Stay = now, now, now, step.Hub, step.Stay
				hubs[step.Hub].Unserved = now
				continue
			}
			waits := current.Out || !current.Unserved.IsZero()
			others := false
			for i, hub := range hubs {
				others = others || i != o.Current && !hub.Out
			}
			mayReturn := !waits && returns > 0 && o.Current != 0 && !o.Stay && !hubs[0].Out
			require.Equal(t, waits && others || mayReturn, step.After > 0,
				"want a requeue if and only if the agent may have to switch")
		}
	})
}
