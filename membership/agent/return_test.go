package agent

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// place waits until the metrics contain one hub, at this index of the list.
func (s *several) place(name string, index float64) {
	s.t.Helper()
	eventually(s.t, "the metrics show that it is somewhere else than in hub "+name, func() bool {
		families, err := ctrlmetrics.Registry.Gather()
		require.NoError(s.t, err)
		shown := map[string]float64{}
		for _, family := range families {
			if family.GetName() != "muster_agent_hub_index" {
				continue
			}
			for _, m := range family.GetMetric() {
				shown[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
			}
		}
		return maps.Equal(map[string]float64{s.hubs[name].bootstrap.Server: index}, shown)
	})
}

// TestReturnToFirst checks that an agent returns to its first hub if that was down, and does not return if that has
// refused it.
func TestReturnToFirst(t *testing.T) {
	a, b := newByHand(t, "return-a").attend(), newByHand(t, "return-b").attend()
	network := a.proxied()
	a.bootstrap.Server = network.Config(a.config).Host
	s := newSeveral(t, a, b)
	s.o.ReturnToFirst = lifecycle.ReturnPoll
	s.start()
	s.in("return-a")
	s.place("return-a", 0)
	first := s.stores["return-a"].parsed(t)

	s.loses(network.Cut)
	s.clock.shift(hubTimeout)
	s.in("return-b")
	s.place("return-b", 1)
	second := s.stores["return-b"].parsed(t)
	require.False(t, second.Stay)
	looked := func() { // another minute is over
		t.Helper()
		s.wires["return-a"].take()
		s.clock.shift(lifecycle.ReturnPoll)
		eventually(t, "it does not look whether the first hub is back",
			func() bool { return s.wires["return-a"].has("GET readyz") })
	}
	s.clock.shift(hubTimeout) // since it came
	looked()                  // in vain
	network.Heal()
	looked()
	b.beats()
	require.False(t, s.reported("Returning"), "it goes back as soon as there is an answer")
	s.wires["return-a"].take()
	s.clock.shift(lifecycle.ReturnPoll)
	s.in("return-a")
	s.place("return-a", 0)
	require.True(t, s.reported("Returning to hub return-a, which has responded since "), "the reason is not reported")
	require.Zero(t, s.wires["return-a"].take()["POST joinrequests"], "it has asked to join again")
	require.Equal(t, first.Member.UID, s.stores["return-a"].parsed(t).Member.UID)
	require.Equal(t, first.ClaimKey, s.stores["return-a"].parsed(t).ClaimKey)
	require.Equal(t, second.ClaimKey, s.stores["return-b"].parsed(t).ClaimKey, "it could not come back to the other")

	// The first answers, and has denied the member: that is for people to take back.
	s.clock.shift(hubTimeout)
	s.loses(func() { a.shutOut(func(request *v1alpha1.JoinRequest) { a.emit(request, v1alpha1.AnswerDenied, nil) }) })
	eventually(t, "it does not look again", func() bool {
		return s.reported("The hub refuses the agent's credential. The agent retries")
	})
	s.clock.shift(lifecycle.ShutOutTimeout)
	s.in("return-b")
	require.True(t, s.stores["return-b"].parsed(t).Stay)
	s.stop()
	s.wires["return-a"].take()
	s.start()
	s.in("return-b")
	s.clock.shift(hubTimeout)
	b.beats()
	b.beats()
	require.Empty(t, s.wires["return-a"].take(), "a restart has it forget why it went")
}
