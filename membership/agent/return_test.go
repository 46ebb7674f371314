package agent

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// requireHubIndex waits until the metrics contain one hub of the agent, at this index of the list.
func (s *multiHubAgent) requireHubIndex(name string, index float64) {
	s.t.Helper()
	servers := map[string]bool{}
	for _, h := range s.hubs {
		servers[h.bootstrap.Server] = true
	}
	eventually(s.t, "the metric does not show hub "+name, func() bool {
		families, err := ctrlmetrics.Registry.Gather()
		require.NoError(s.t, err)
		indexes := map[string]float64{}
		for _, family := range families {
			if family.GetName() != "muster_agent_hub_index" {
				continue
			}
			for _, m := range family.GetMetric() {
				if server := m.GetLabel()[0].GetValue(); servers[server] { // tests run in parallel
					indexes[server] = m.GetGauge().GetValue()
				}
			}
		}
		return maps.Equal(map[string]float64{s.hubs[name].bootstrap.Server: index}, indexes)
	})
}

// TestReturnToFirst checks that an agent returns to its first hub after an outage of this hub, and does not return
// after this hub has refused it.
func TestReturnToFirst(t *testing.T) { testkit.Virtual(t, testReturnToFirst) }

func testReturnToFirst(t *testing.T) {
	server := newMemory(t)
	a, b := newFakeHub(t, server, "return-a").serve(), newFakeHub(t, server, "return-b").serve()
	s := newMultiHubAgent(t, a, b)
	s.o.ReturnToFirst = lifecycle.ReturnPoll
	s.start()
	s.requireJoined("return-a")
	s.requireHubIndex("return-a", 0)
	first := s.stores["return-a"].parsed(t)

	s.lose(a.network.Cut)
	s.clock.shift(hubTimeout)
	s.requireJoined("return-b")
	s.requireHubIndex("return-b", 1)
	second := s.stores["return-b"].parsed(t)
	require.False(t, second.Stay)
	nextProbe := func() { // after another minute
		t.Helper()
		s.wires["return-a"].take()
		s.clock.shift(lifecycle.ReturnPoll)
		eventually(t, "the agent does not probe the first hub",
			func() bool { return s.wires["return-a"].has("GET readyz") })
	}
	s.clock.shift(hubTimeout) // since the switch
	nextProbe()               // without a response
	a.network.Heal()
	nextProbe()
	b.requireHeartbeats()
	require.False(t, s.reported("Returning"), "the agent returns after the first response")
	s.wires["return-a"].take()
	s.clock.shift(lifecycle.ReturnPoll)
	s.requireJoined("return-a")
	s.requireHubIndex("return-a", 0)
	require.True(t, s.reported("Returning to hub return-a, which has responded since "), "the reason is not reported")
	require.Zero(t, s.wires["return-a"].take()["POST joinrequests"], "the agent sent another JoinRequest")
	require.Equal(t, first.Member.UID, s.stores["return-a"].parsed(t).Member.UID)
	require.Equal(t, first.ClaimKey, s.stores["return-a"].parsed(t).ClaimKey)
	require.Equal(t, second.ClaimKey, s.stores["return-b"].parsed(t).ClaimKey, "the claim key of the second hub is lost")

	// The first hub responds and has denied the member. Only an administrator can change that.
	s.clock.shift(hubTimeout)
	s.lose(func() {
		a.revokeAccess(func(request *v1alpha1.JoinRequest) { a.writeAnswer(request, v1alpha1.AnswerDenied, nil) })
	})
	eventually(t, "the agent does not observe the refusal", func() bool {
		return s.reported("The hub refuses the agent's credential. The agent retries")
	})
	s.clock.shift(lifecycle.ShutOutTimeout)
	s.requireJoined("return-b")
	require.True(t, s.stores["return-b"].parsed(t).Stay)
	s.stop()
	s.wires["return-a"].take()
	s.start()
	s.requireJoined("return-b")
	s.clock.shift(hubTimeout)
	b.requireHeartbeats()
	b.requireHeartbeats()
	require.Empty(t, s.wires["return-a"].take(), "a restarted agent probes the first hub")
}
