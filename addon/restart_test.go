package addon_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/addon"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/testkit"
	placementv1alpha1 "github.com/muster-sdk/muster/placement/v1alpha1"
)

// TestRollout_RenderFailuresCountAfterRestart checks that members for which the agent cannot render a new revision also
// count as failures after a restart of the controllers: no other member gets a permit instead.
func TestRollout_RenderFailuresCountAfterRestart(t *testing.T) {
	testkit.Virtual(t, testRolloutRenderFailuresCountAfterRestart)
}

func testRolloutRenderFailuresCountAfterRestart(t *testing.T) {
	h := newHub(t)
	names := []string{"m0", "m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8", "m9"}
	h.members(names...)
	h.choose("all", names...)
	h.runAgents()
	bad := map[string]bool{h.name("m1"): true, h.name("m2"): true}
	picky := failingAgent{h.name("picky"), func(ctx context.Context, in addon.Input) ([]client.Object, error) {
		if bad[in.Member.Name] && in.Settings.Variables["COLOR"] == "red" {
			return nil, fmt.Errorf("variable COLOR: must not be red")
		}
		return echo{h.name("picky")}.Manifests(ctx, in)
	}}
	o := addon.Options{Agents: []addon.Agent{picky}}
	r := h.start(o)
	h.color("colors", "blue")
	h.addon("picky", func(s *v1alpha1.AddonSpec) {
		h.byPlacement("all")(s)
		s.Configs = []v1alpha1.ConfigKind{addonConfigs}
		p := &s.Install.Placements[0]
		p.Configs = []v1alpha1.ConfigReference{h.reference("colors")}
		p.Rollout = placementv1alpha1.RolloutStrategy{
			Type: placementv1alpha1.RolloutProgressive, MaxConcurrency: new(intstr.FromInt32(2)),
			MaxFailures: new(intstr.FromInt32(1)),
		}
	})
	in := func(color string) int {
		return count(names, func(name string) bool {
			return h.colorOf("picky", name) == color && isTrue(h.memberAddon("picky", name), v1alpha1.ConditionAvailable)
		})
	}
	h.Holds("all are blue", func() bool { return in("blue") == len(names) })
	h.color("colors", "red")
	h.Holds("the rollout halts", func() bool {
		return h.get("picky").Status.Placements[0].Rollout.Phase == placementv1alpha1.PhaseFailed
	})
	r.quiet(t)
	updated := in("red")
	require.LessOrEqual(t, updated, 3)
	require.Equal(t, len(names), updated+in("blue"), "want all other members to keep their revision")
	for range 3 {
		r.stop()
		r = h.start(o)
		h.Holds("the controllers read Works", func() bool { return r.wire.Count("GET works") > 0 })
		r.quiet(t)
		require.Empty(t, r.wire.Writes())
		require.Equal(t, updated, in("red"))
	}
}
