package addon_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/muster-sdk/muster/addon"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/testkit"
	placementv1alpha1 "github.com/muster-sdk/muster/placement/v1alpha1"
)

// TestHosting_Move checks that an agent which moves to another member stays in its place until it runs there, also if
// the controllers restart meanwhile.
func TestHosting_Move(t *testing.T) { testkit.Virtual(t, testHostingMove) }

func testHostingMove(t *testing.T) {
	h := newHostingHub(t)
	members := h.runAgents()
	options := addon.Options{Agents: []addon.Agent{hostedAgent{name: h.name("x")}}}
	r := h.start(options)
	h.addon("x", h.hosted(""))
	from := ""
	for _, to := range []string{"h", "i", "", "i"} {
		h.Holds("the add-on runs", func() bool { return h.runs("x", "a", from) && h.runs("x", "b", from) })
		slow := to
		if to == "" {
			slow = "a"
		}
		members.stopAgent(slow)
		h.move("x", to)
		h.Holds("the new location is assigned", func() bool {
			if to == "" {
				return names(h.worksOn("x", "a")) == "agent rules"
			}
			return names(h.worksFor("x", "a", to)) == "agent"
		})
		r.quiet(t)
		if from == "" {
			require.Equal(t, "agent rules", names(h.worksOn("x", "a")),
				"want the agent to stay until it runs on the other member")
			require.Nil(t, h.memberAddon("x", "a").Status.Hosting)
		} else {
			require.Equal(t, "agent", names(h.worksFor("x", "a", from)),
				"want the agent to stay until it runs on the other member")
			require.Equal(t, h.name(from), h.memberAddon("x", "a").Status.Hosting.Member)
		}
		h.Holds("ManifestsApplied is not True", func() bool {
			return !isTrue(h.memberAddon("x", "a"), v1alpha1.ConditionManifestsApplied)
		})
		r.stop()
		r = h.start(options)
		members.startAgent(slow)
		h.Holds("the agent has moved to "+to, func() bool { return h.runs("x", "a", to) && h.runs("x", "b", to) })
		from = to
	}
	r.quiet(t)
}

// TestHosting_RevertMove checks that a user can revert a move, and that nothing remains on the member where the agent
// never ran, even if that member does not respond.
func TestHosting_RevertMove(t *testing.T) { testkit.Virtual(t, testHostingRevertMove) }

func testHostingRevertMove(t *testing.T) {
	h := newHostingHub(t)
	members := h.runAgents()
	r := h.start(addon.Options{Agents: []addon.Agent{hostedAgent{name: h.name("x")}}})
	h.addon("x", h.hosted("h"))
	h.Holds("the add-on runs", func() bool { return h.runs("x", "a", "h") && h.runs("x", "b", "h") })
	members.stopAgent("i")
	h.move("x", "i")
	h.Holds("the new location is assigned", func() bool { return len(h.worksFor("x", "a", "i")) == 1 })
	h.move("x", "h")
	h.Holds("the add-on is available, and the Work on the other member is being deleted", func() bool {
		works := h.worksFor("x", "a", "i")
		return len(works) == 1 && works[0].DeletionTimestamp != nil && isTrue(h.memberAddon("x", "a"),
			v1alpha1.ConditionAvailable) && !isTrue(h.memberAddon("x", "a"), v1alpha1.ConditionProgressing)
	})
	members.startAgent("i")
	h.Holds("no Work remains on the other member", func() bool { return h.runs("x", "a", "h") })
	r.quiet(t)
}

// TestHosting_MoveFollowsRollout checks that agents move at the rate of the rollout.
func TestHosting_MoveFollowsRollout(t *testing.T) { testkit.Virtual(t, testHostingMoveFollowsRollout) }

func testHostingMoveFollowsRollout(t *testing.T) {
	h := newHostingHub(t)
	members := h.runAgents()
	r := h.start(addon.Options{Agents: []addon.Agent{hostedAgent{h.name("x"), false}}})
	h.addon("x", func(s *v1alpha1.AddonSpec) {
		h.hosted("h")(s)
		s.Install.Placements[0].Rollout = placementv1alpha1.RolloutStrategy{
			Type: placementv1alpha1.RolloutProgressive, MaxConcurrency: new(intstr.FromInt32(1)),
		}
	})
	h.Holds("the add-on runs", func() bool { return h.runs("x", "a", "h") && h.runs("x", "b", "h") })
	r.quiet(t)
	members.stopAgent("i")
	h.move("x", "i")
	h.Holds("the new location of the first agent is assigned",
		func() bool { return len(h.worksFor("x", "a", "i")) == 1 })
	r.quiet(t)
	require.Empty(t, h.worksFor("x", "b", "i"), "want one move at a time")
	require.Equal(t, h.name("h"), h.memberAddon("x", "b").Status.Hosting.Member)
	members.startAgent("i")
	h.Holds("both have moved", func() bool { return h.runs("x", "a", "i") && h.runs("x", "b", "i") })
}
