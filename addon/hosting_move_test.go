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

// TestMove checks that an agent which moves to another member stays in its place until it runs there, also if the
// controllers restart meanwhile.
func TestMove(t *testing.T) { testkit.Virtual(t, testMove) }

func testMove(t *testing.T) {
	h := newHostingHub(t)
	members := h.obey()
	options := addon.Options{Agents: []addon.Agent{lodger{name: h.name("x")}}}
	r := h.start(options)
	h.addon("x", h.hosted(""))
	from := ""
	for _, to := range []string{"h", "i", "", "i"} {
		h.eventually("it runs", func() bool { return h.runs("x", "a", from) && h.runs("x", "b", from) })
		slow := to
		if to == "" {
			slow = "a"
		}
		members.die(slow)
		h.move("x", to)
		h.eventually("it is told", func() bool {
			if to == "" {
				return names(h.worksOn("x", "a")) == "agent rules"
			}
			return names(h.worksFor("x", "a", to)) == "agent"
		})
		r.quiet(t)
		if from == "" {
			require.Equal(t, "agent rules", names(h.worksOn("x", "a")), "it is still there")
			require.Nil(t, h.memberAddon("x", "a").Status.Hosting)
		} else {
			require.Equal(t, "agent", names(h.worksFor("x", "a", from)), "it is still there")
			require.Equal(t, h.name(from), h.memberAddon("x", "a").Status.Hosting.Member)
		}
		h.eventually("it says so", func() bool { return !is(h.memberAddon("x", "a"), v1alpha1.ConditionManifestsApplied) })
		r.stop()
		r = h.start(options)
		members.revive(slow)
		h.eventually("it has moved to "+to, func() bool { return h.runs("x", "a", to) && h.runs("x", "b", to) })
		from = to
	}
	r.quiet(t)
}

// TestMoveBack checks that a user can revert a move, and that nothing remains on the member where the agent never
// ran, even if that member does not respond.
func TestMoveBack(t *testing.T) { testkit.Virtual(t, testMoveBack) }

func testMoveBack(t *testing.T) {
	h := newHostingHub(t)
	members := h.obey()
	r := h.start(addon.Options{Agents: []addon.Agent{lodger{name: h.name("x")}}})
	h.addon("x", h.hosted("h"))
	h.eventually("it runs", func() bool { return h.runs("x", "a", "h") && h.runs("x", "b", "h") })
	members.die("i")
	h.move("x", "i")
	h.eventually("it is told", func() bool { return len(h.worksFor("x", "a", "i")) == 1 })
	h.move("x", "h")
	h.eventually("it is well, and what is on the other one is being taken back", func() bool {
		there := h.worksFor("x", "a", "i")
		return len(there) == 1 && there[0].DeletionTimestamp != nil && is(h.memberAddon("x", "a"),
			v1alpha1.ConditionAvailable) && !is(h.memberAddon("x", "a"), v1alpha1.ConditionProgressing)
	})
	members.revive("i")
	h.eventually("nothing is left", func() bool { return h.runs("x", "a", "h") })
	r.quiet(t)
}

// TestMoveRollsOut checks that agents move at the rate of the rollout.
func TestMoveRollsOut(t *testing.T) { testkit.Virtual(t, testMoveRollsOut) }

func testMoveRollsOut(t *testing.T) {
	h := newHostingHub(t)
	members := h.obey()
	r := h.start(addon.Options{Agents: []addon.Agent{lodger{h.name("x"), false}}})
	h.addon("x", func(s *v1alpha1.AddonSpec) {
		h.hosted("h")(s)
		s.Install.Placements[0].Rollout = placementv1alpha1.RolloutStrategy{
			Type: placementv1alpha1.RolloutProgressive, MaxConcurrency: new(intstr.FromInt32(1)),
		}
	})
	h.eventually("it runs", func() bool { return h.runs("x", "a", "h") && h.runs("x", "b", "h") })
	r.quiet(t)
	members.die("i")
	h.move("x", "i")
	h.eventually("the first is told", func() bool { return len(h.worksFor("x", "a", "i")) == 1 })
	r.quiet(t)
	require.Empty(t, h.worksFor("x", "b", "i"), "one at a time")
	require.Equal(t, h.name("h"), h.memberAddon("x", "b").Status.Hosting.Member)
	members.revive("i")
	h.eventually("both have moved", func() bool { return h.runs("x", "a", "i") && h.runs("x", "b", "i") })
}
