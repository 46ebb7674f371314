package addon_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/intstr"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/addon"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/testkit"
	placementv1alpha1 "github.com/muster-sdk/muster/placement/v1alpha1"
)

// group puts the first members into a group that is updated first.
func (f *fleet) group(canaries int) {
	p := &placementv1alpha1.Placement{}
	require.NoError(f.T, f.Client.Get(f.T.Context(), client.ObjectKey{Namespace: f.Namespace, Name: "all"}, p))
	p.Spec.DecisionGroups = []placementv1alpha1.DecisionGroup{{Name: "rest"}, {Name: "canary"}}
	require.NoError(f.T, f.Client.Update(f.T.Context(), p))
	d := &placementv1alpha1.PlacementDecision{}
	require.NoError(f.T, f.Client.Get(f.T.Context(), client.ObjectKey{Namespace: f.Namespace, Name: "all-0"}, d))
	for i := range d.Decisions {
		if d.Decisions[i].Group = "rest"; i < canaries {
			d.Decisions[i].Group = "canary"
		}
	}
	require.NoError(f.T, f.Client.Update(f.T.Context(), d))
	before := p.DeepCopy()
	p.Status.ObservedGeneration, p.Status.DecidedGeneration = p.Generation, p.Generation
	require.NoError(f.T, f.Client.Status().Patch(f.T.Context(), p, client.MergeFrom(before)))
}

// TestRollout_PartsOfAGroup checks that members of the second part of a mandatory group are not updated while a
// member of the first part fails.
func TestRollout_PartsOfAGroup(t *testing.T) { testkit.Virtual(t, testRolloutPartsOfAGroup) }

func testRolloutPartsOfAGroup(t *testing.T) {
	f := newFleet(t, 20, placementv1alpha1.RolloutStrategy{
		Type:            placementv1alpha1.RolloutProgressivePerGroup,
		MandatoryGroups: []placementv1alpha1.DecisionGroupReference{{Index: new(int32(0))}},
	})
	d := &placementv1alpha1.PlacementDecision{}
	require.NoError(t, f.Client.Get(t.Context(), client.ObjectKey{Namespace: f.Namespace, Name: "all-0"}, d))
	for i := range d.Decisions[6:] {
		d.Decisions[6+i].GroupPart = 1
	}
	require.NoError(t, f.Client.Update(t.Context(), d))
	f.all("blue")
	f.waitUntilQuiet()
	f.failSome("red")
	f.color("colors", "red")
	f.eventuallySlow("the rollout halts", func() bool {
		return f.get("fleet").Status.Placements[0].Rollout.Phase == placementv1alpha1.PhaseFailed
	})
	f.waitUntilQuiet()
	var stages []string
	for _, stage := range f.get("fleet").Status.Placements[0].Rollout.Stages {
		stages = append(stages, stage.Name)
	}
	require.Equal(t, []string{"all/0", "all/0.1"}, stages)
	assigned := f.namespacesWith("red")
	require.Contains(t, assigned, f.namespaceOf(f.names[3]))
	for _, name := range f.names[6:] {
		require.NotContains(t, assigned, f.namespaceOf(name))
	}
}

// TestRollout_MandatoryGroupBlocksOthers checks that no other member is updated to a revision with which a member of a
// mandatory group has failed, regardless of the number of permitted failures.
func TestRollout_MandatoryGroupBlocksOthers(t *testing.T) {
	testkit.Virtual(t, testRolloutMandatoryGroupBlocksOthers)
}

func testRolloutMandatoryGroupBlocksOthers(t *testing.T) {
	f := newFleet(t, 20, placementv1alpha1.RolloutStrategy{
		Type: placementv1alpha1.RolloutProgressivePerGroup, MandatoryGroups: []placementv1alpha1.DecisionGroupReference{
			{Name: "canary"}},
	})
	f.group(6)
	f.all("blue")
	f.waitUntilQuiet()
	f.failSome("red") // the member 3, of the canaries, and some of the others
	f.color("colors", "red")
	f.eventuallySlow("the rollout halts", func() bool {
		return f.get("fleet").Status.Placements[0].Rollout.Phase == placementv1alpha1.PhaseFailed
	})
	f.waitUntilQuiet()
	updated := f.namespacesWith("red")
	require.Contains(t, updated, f.namespaceOf(f.names[3]))
	for _, name := range f.names[6:] {
		require.NotContains(t, updated, f.namespaceOf(name), "want other groups to wait")
	}
	f.restart()
	f.waitUntilQuiet()
	require.ElementsMatch(t, updated, f.namespacesWith("red"))
	require.Empty(t, f.wire.Writes())
	f.members.setReadiness(nil)
	f.all("red")
	f.check(t)
}

// TestRollout_SoakTimeHoldsSlot checks that a slot is free when its member has been healthy for the soak time, and not
// earlier.
func TestRollout_SoakTimeHoldsSlot(t *testing.T) { testkit.Virtual(t, testRolloutSoakTimeHoldsSlot) }

func testRolloutSoakTimeHoldsSlot(t *testing.T) {
	h := newHub(t)
	names := []string{"m0", "m1", "m2", "m3", "m4", "m5"}
	h.members(names...)
	h.choose("all", names...)
	h.runAgents()
	clock := clocktesting.NewFakeClock(time.Now())
	r := h.start(addon.Options{Agents: []addon.Agent{echo{h.name("echo")}}, Clock: clock})
	h.addon("echo", func(s *v1alpha1.AddonSpec) {
		h.byPlacement("all")(s)
		s.Install.Placements[0].Rollout = placementv1alpha1.RolloutStrategy{
			Type: placementv1alpha1.RolloutProgressive, MaxConcurrency: new(intstr.FromInt32(2)), MinSuccessSeconds: 600,
		}
	})
	// A step of this clock causes no event on the hub, so pass changes the Addon.
	pass := func(seconds int) {
		clock.Step(time.Duration(seconds) * time.Second)
		a := h.get("echo")
		before := a.DeepCopy()
		a.Annotations = map[string]string{"example.com/touched": strconv.FormatInt(clock.Now().Unix(), 10)}
		require.NoError(t, h.Client.Patch(t.Context(), a, client.MergeFrom(before)))
	}
	for updated := 2; updated <= len(names); updated += 2 {
		h.Holds("the next members are updated", func() bool {
			return count(names, func(name string) bool {
				return isTrue(h.memberAddon("echo", name), v1alpha1.ConditionAvailable)
			}) == updated
		})
		r.quiet(t)
		pass(590)
		r.quiet(t)
		require.Equal(t, updated, count(names, func(name string) bool { return len(h.works("echo", name)) > 0 }),
			"want no other update during the soak time")
		pass(20)
	}
	h.Holds("the rollout succeeds", func() bool {
		pass(1)
		return h.get("echo").Status.Placements[0].Rollout.Phase == placementv1alpha1.PhaseSucceeded
	})
}
