package install

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/addon/v1alpha1"
)

var clusterNames = []string{"a", "b", "c", "d", "e", "f"}

func anyObserved(t *rapid.T) Observed {
	names := []string{"edge", "rest", "more"}
	var keys []string
	for _, name := range names {
		keys = append(keys, Key("fleet", name))
	}
	o := Observed{MaxRemoving: rapid.IntRange(0, 3).Draw(t, "max"),
		Deleting: rapid.IntRange(0, 4).Draw(t, "deleting") == 0}
	if rapid.IntRange(0, 5).Draw(t, "manual") > 0 {
		o.Strategy = strategy(rapid.SliceOfNDistinct(rapid.SampledFrom(names), 1, 3, rapid.ID).Draw(t, "strategy")...)
	}
	for _, name := range names {
		if rapid.IntRange(0, 4).Draw(t, "missing") == 0 {
			continue
		}
		p := Placement{Namespace: "fleet", Name: name,
			State: rapid.SampledFrom([]State{Decided, Decided, Decided, Undecided, Missing}).Draw(t, "state")}
		if p.State != Missing {
			for _, c := range rapid.SliceOfDistinct(rapid.SampledFrom(clusterNames), rapid.ID).Draw(t, "clusters") {
				refusal := rapid.SampledFrom([]string{"", "", "", "no"}).Draw(t, "refusal")
				p.Clusters = append(p.Clusters, Cluster{Name: c, Refusal: refusal})
			}
		}
		o.Placements = append(o.Placements, p)
	}
	for _, name := range clusterNames {
		if rapid.IntRange(0, 5).Draw(t, "a member") > 0 {
			leaving := rapid.IntRange(0, 5).Draw(t, "leaving") == 0
			o.Members = append(o.Members,
				Member{Name: name, Joined: rapid.IntRange(0, 4).Draw(t, "joined") > 0, Leaving: leaving,
					Reachable: rapid.Bool().Draw(t, "reachable")})
		}
		if rapid.Bool().Draw(t, "has it") {
			o.MemberAddons = append(o.MemberAddons, MemberAddon{
				Member: name, InstalledBy: rapid.SampledFrom(append(keys, "", "fleet/other")).Draw(t, "installed by"),
				GoesBy:   rapid.SampledFrom(append(keys, "")).Draw(t, "goes by"),
				Deleting: rapid.IntRange(0, 4).Draw(t, "is deleted") == 0,
			})
		}
	}
	return o
}

// execute returns the observed state after a plan was executed.
func execute(o Observed, plan Plan) Observed {
	o.MemberAddons = slices.Clone(o.MemberAddons)
	for _, d := range plan.Decisions {
		i := slices.IndexFunc(o.MemberAddons, func(a MemberAddon) bool { return a.Member == d.Member })
		switch {
		case d.Action == Create:
			o.MemberAddons = append(o.MemberAddons, MemberAddon{Member: d.Member, InstalledBy: d.Placement})
		case d.Action == Annotate:
			o.MemberAddons[i].InstalledBy = d.Placement
		case d.Action == Delete:
			o.MemberAddons[i].Deleting = true
		case d.Reason == ByHand:
			o.MemberAddons[i].GoesBy = d.Placement
		}
	}
	return o
}

func (o *Observed) state(key string) State {
	for _, p := range o.Placements {
		if Key(p.Namespace, p.Name) == key {
			return p.State
		}
	}
	return Missing
}

func (o *Observed) certain() bool {
	return o.Strategy.Type != v1alpha1.InstallPlacements ||
		!slices.ContainsFunc(o.Strategy.Placements, func(p v1alpha1.PlacementInstall) bool {
			return o.state(Key(p.Namespace, p.Name)) != Decided
		})
}

func TestDecide_KeepsMemberAddons(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := anyObserved(t)
		for _, d := range Decide(o).Decisions {
			i := slices.IndexFunc(o.MemberAddons, func(a MemberAddon) bool { return a.Member == d.Member })
			if o.Deleting || d.Action == Keep || d.Action == Skip {
				continue
			}
			if i >= 0 && o.MemberAddons[i].InstalledBy == "" {
				t.Fatalf("%v: want the MemberAddon of a user to be kept", d)
			}
			if d.Action == Delete && !o.certain() {
				t.Fatalf("%v: want the MemberAddon to be kept while a Placement is undecided", d)
			}
			if j := slices.IndexFunc(o.Members, func(m Member) bool { return m.Name == d.Member }); j >= 0 &&
				o.Members[j].Leaving {
				t.Fatalf("%v: want no change on a leaving member", d)
			}
		}
	})
}

// TestDecide_RequiresPermission checks that a MemberAddon is created or annotated only for a Placement that selects
// the member with permission, and that nothing is deleted on a member that a Placement selects without.
func TestDecide_RequiresPermission(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := anyObserved(t)
		for _, d := range Decide(o).Decisions {
			for _, p := range o.Placements {
				for _, c := range p.Clusters {
					if c.Name != d.Member || c.Refusal == "" {
						continue
					}
					listed := o.Strategy.Type == v1alpha1.InstallPlacements && slices.ContainsFunc(o.Strategy.Placements,
						func(s v1alpha1.PlacementInstall) bool { return s.Name == p.Name })
					if d.Action == Create && d.Placement == Key(p.Namespace, p.Name) {
						t.Fatalf("%v: Placement %s has no permission", d, d.Placement)
					}
					if d.Action == Delete && listed && !o.Deleting {
						t.Fatalf("%v: Placement %s/%s selects the member", d, p.Namespace, p.Name)
					}
				}
			}
		}
	})
}

// TestDecide_Converges checks that after a plan is executed, the next plan changes only members that waited, and
// finally none.
func TestDecide_Converges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := anyObserved(t)
		for round := 0; ; round++ {
			plan := Decide(o)
			o = execute(o, plan)
			again := Decide(o)
			waits := false
			for _, d := range again.Decisions {
				if d.Action == Create || d.Action == Annotate || d.Action == Delete {
					t.Fatalf("%v: the previous plan contained this action", d)
				}
				waits = waits || d.Reason == WaitsForTurn
			}
			if diff := cmp.Diff(plan.Shares, again.Shares); diff != "" &&
				!slices.ContainsFunc(plan.Decisions, func(d Decision) bool { return d.Action == Delete }) {
				t.Fatalf("shares: %s", diff)
			}
			if !waits {
				return
			}
			require.Less(t, round, len(clusterNames))
			o.MemberAddons = slices.DeleteFunc(o.MemberAddons, func(a MemberAddon) bool { return a.Deleting })
			// Deleted MemberAddons of selected members would be created again. Another test checks this.
			o.Placements, o.Strategy = nil, v1alpha1.InstallStrategy{}
		}
	})
}

// TestDecide_MissingPlacement checks that a placement which is deleted and created again unchanged does not change
// anything, including MemberAddons of users.
func TestDecide_MissingPlacement(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := anyObserved(t)
		o.Deleting, o.MaxRemoving = false, 100
		for i := range o.Placements {
			o.Placements[i].State = Decided
		}
		before := execute(o, Decide(o))
		// Deleted MemberAddons are gone.
		before.MemberAddons = slices.DeleteFunc(before.MemberAddons, func(a MemberAddon) bool { return a.Deleting })
		before = execute(before, Decide(before))
		decided := Decide(before)

		during := before
		during.Placements = nil
		for _, p := range before.Placements {
			switch rapid.IntRange(0, 2).Draw(t, "change of the Placement") {
			case 0:
				during.Placements = append(during.Placements, p)
			case 1:
				p.State = Undecided
				p.Clusters = slices.DeleteFunc(slices.Clone(p.Clusters),
					func(Cluster) bool { return rapid.Bool().Draw(t, "not observed") })
				during.Placements = append(during.Placements, p)
			}
		}
		plan := Decide(during)
		for i, d := range plan.Decisions {
			if d.Action == Create || d.Action == Annotate || d.Action == Delete {
				t.Fatalf("%v: want no change while a Placement is missing", d)
			}
			if has := slices.ContainsFunc(during.MemberAddons, func(a MemberAddon) bool { return a.Member == d.Member }); has {
				j := slices.IndexFunc(decided.Decisions, func(s Decision) bool { return s.Member == d.Member })
				if reason := decided.Decisions[j].Reason; reason == Uncertain || reason == NotAllowed {
					continue // another Placement was missing before, so its former members are kept
				}
				require.Equal(t, decided.Decisions[j].Placement, plan.Decisions[i].Placement, d.Member)
			}
		}
		after := during
		after.Placements = before.Placements
		require.Empty(t, cmp.Diff(decided, Decide(after)))
	})
}

func TestDecide_IndependentOfOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := anyObserved(t)
		given := fmt.Sprint(o)
		want := Decide(o)
		require.Equal(t, given, fmt.Sprint(o), "Decide changed its argument")
		o.Placements = rapid.Permutation(o.Placements).Draw(t, "placements")
		o.Members = rapid.Permutation(o.Members).Draw(t, "members")
		o.MemberAddons = rapid.Permutation(o.MemberAddons).Draw(t, "member add-ons")
		for i := range o.Placements {
			o.Placements[i].Clusters = rapid.Permutation(o.Placements[i].Clusters).Draw(t, "clusters")
		}
		require.Empty(t, cmp.Diff(want, Decide(o)))
	})
}

// TestDecide_ConsistentPlan checks that decisions and shares agree, and that the limit of removals is observed.
func TestDecide_ConsistentPlan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := anyObserved(t)
		plan := Decide(o)
		placementOf := map[string]string{}
		for _, share := range plan.Shares {
			require.Equal(t, o.state(share.Placement) == Decided, share.Decided)
			for _, c := range share.Clusters {
				require.Empty(t, placementOf[c.Name], "want each cluster in one share")
				placementOf[c.Name] = share.Placement
			}
			require.True(t,
				slices.IsSortedFunc(share.Clusters, func(a, b Cluster) int { return strings.Compare(a.Name, b.Name) }))
		}
		reachable := map[string]bool{}
		for _, m := range o.Members {
			reachable[m.Name] = m.Reachable
		}
		removing, deleted := 0, 0
		for _, a := range o.MemberAddons {
			if a.Deleting && reachable[a.Member] {
				removing++
			}
		}
		for _, d := range plan.Decisions {
			require.Equal(t, placementOf[d.Member], d.Placement)
			delete(placementOf, d.Member)
			if d.Action == Delete && reachable[d.Member] {
				deleted++
			}
		}
		require.Empty(t, placementOf)
		limit := o.MaxRemoving
		if limit == 0 {
			limit = DefaultMaxRemoving
		}
		require.LessOrEqual(t, deleted, max(0, limit-removing))
	})
}
