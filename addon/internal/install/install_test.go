package install

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/placement/rollout"
)

// by returns a strategy with these placements, in the namespace fleet.
func by(names ...string) v1alpha1.InstallStrategy {
	s := v1alpha1.InstallStrategy{Type: v1alpha1.InstallPlacements}
	for _, name := range names {
		s.Placements = append(s.Placements, v1alpha1.PlacementInstall{Namespace: "fleet", Name: name})
	}
	return s
}

var manual = v1alpha1.InstallStrategy{Type: v1alpha1.InstallManual}

// placed parses placements with selected clusters, "decided edge: a b".
func placed(texts ...string) (all []Placement) {
	for _, text := range texts {
		head, clusters, _ := strings.Cut(text, ":")
		state, name, _ := strings.Cut(head, " ")
		p := Placement{Namespace: "fleet", Name: name,
			State: map[string]State{"decided": Decided, "undecided": Undecided, "missing": Missing}[state]}
		for cluster := range strings.FieldsSeq(clusters) {
			p.Clusters = append(p.Clusters, Cluster{Name: cluster, Group: rollout.Group{Name: "of-" + name, Index: 1}})
		}
		all = append(all, p)
	}
	return all
}

// refused is like placed, for a namespace without permission.
func refused(texts ...string) []Placement {
	all := placed(texts...)
	for i := range all {
		for j := range all[i].Clusters {
			all[i].Clusters[j].Refusal = "no"
		}
	}
	return all
}

// fleet parses members, "a b-leaving c-away d-outside".
func fleet(text string) (all []Member) {
	for one := range strings.FieldsSeq(text) {
		name, state, _ := strings.Cut(one, "-")
		all = append(all,
			Member{Name: name, Joined: state != "outside", Leaving: state == "leaving", Reachable: state != "away"})
	}
	return all
}

// there parses MemberAddons, "a=fleet/edge b c~fleet/edge d-deleting": installed by a Placement, by a user, by a user
// in the share of a Placement, being deleted.
func there(text string) (all []MemberAddon) {
	for one := range strings.FieldsSeq(text) {
		one, deleting := strings.CutSuffix(one, "-deleting")
		name, installed, _ := strings.Cut(one, "=")
		name, goes, _ := strings.Cut(name, "~")
		all = append(all, MemberAddon{Member: name, InstalledBy: installed, GoesBy: goes, Deleting: deleting})
	}
	return all
}

func (p Plan) text() string {
	var lines []string
	for _, d := range p.Decisions {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", d.Member, d.Action, d.Reason, d.Placement)))
	}
	return strings.Join(lines, "\n")
}

func TestDecide(t *testing.T) {
	for _, test := range []struct {
		reason   string
		observed Observed
		want     string
	}{
		{
			"no Placement is listed, and MemberAddons of a user stay",
			Observed{Strategy: manual, Members: fleet("a b"), MemberAddons: there("a")},
			"a Keep ByHand",
		},
		{
			"a strategy of no type is Manual, and what placements know does not matter",
			Observed{Strategy: v1alpha1.InstallStrategy{}, Members: fleet("a"), Placements: placed("decided edge: a")},
			"",
		},
		{
			"with Manual there is no placement to go by: what was there for one goes",
			Observed{Strategy: manual, Members: fleet("a b"), MemberAddons: there("a=fleet/edge b")},
			"a Delete NotChosen\nb Keep ByHand",
		},
		{
			"a selected member gets it, and an existing one is kept",
			Observed{Strategy: by("edge"), Members: fleet("a b"), Placements: placed("decided edge: b a"),
				MemberAddons: there("a=fleet/edge")},
			"a Keep Chosen fleet/edge\nb Create Chosen fleet/edge",
		},
		{
			"a member that is no longer selected loses it",
			Observed{Strategy: by("edge"), Members: fleet("a b"), Placements: placed("decided edge: b"),
				MemberAddons: there("a=fleet/edge b=fleet/edge")},
			"a Delete NotChosen\nb Keep Chosen fleet/edge",
		},
		{
			"a Placement without permission gets no new member, and keeps what it has installed",
			Observed{Strategy: by("edge"), Members: fleet("a b c"), Placements: refused("decided edge: a b c"),
				MemberAddons: there("b=fleet/edge c")},
			"a Skip NotAllowed\nb Keep Chosen fleet/edge\nc Keep ByHand",
		},
		{
			"the next Placement with permission applies",
			Observed{Strategy: by("edge", "rest"), Members: fleet("a b"),
				Placements:   append(refused("decided edge: a b"), placed("decided rest: a b")...),
				MemberAddons: there("b=fleet/rest")},
			"a Create Chosen fleet/rest\nb Keep Chosen fleet/rest",
		},
		{
			"what another Placement has installed is not removed while one without permission selects the member",
			Observed{Strategy: by("edge", "rest"), Members: fleet("a"),
				Placements:   append(placed("decided edge:"), refused("decided rest: a")...),
				MemberAddons: there("a=fleet/edge")},
			"a Keep NotAllowed",
		},
		{
			"after a restore, the Placement has not chosen the member yet: what an earlier Addon installed is kept",
			Observed{Strategy: by("edge"), Members: fleet("a"), Placements: placed("decided edge:"), MemberAddons: []MemberAddon{
				{Member: "a", InstalledBy: "fleet/edge", Unclaimed: true, Earlier: true},
			}},
			"a Keep EarlierAddon",
		},
		{
			"once the Placement has chosen the member, the MemberAddon is this Addon's",
			Observed{Strategy: by("edge"), Members: fleet("a"), Placements: placed("decided edge: a"),
				MemberAddons: []MemberAddon{
					{Member: "a", InstalledBy: "fleet/edge", Unclaimed: true, Earlier: true},
				}},
			"a Annotate Chosen fleet/edge",
		},
		{
			"a member that has not joined is skipped, as is an unknown one",
			Observed{Strategy: by("edge"), Members: fleet("a-outside"), Placements: placed("decided edge: a b")},
			"a Skip NotJoined\nb Skip NotJoined",
		},
		{
			"a member that leaves gets nothing new, and keeps what it has until its leave takes it back",
			Observed{Strategy: by("edge"), Members: fleet("a-leaving b-leaving c-leaving d-leaving"),
				Placements: placed("decided edge: a b"), MemberAddons: there("b=fleet/edge c=fleet/edge d")},
			"a Skip Leaving\nb Keep Leaving\nc Keep Leaving\nd Keep Leaving",
		},
		{
			"a member that was joined and is denied keeps what it has for as long as it is chosen",
			Observed{Strategy: by("edge"), Members: fleet("a-outside b-outside"), Placements: placed("decided edge: a"),
				MemberAddons: there("a=fleet/edge b=fleet/edge")},
			"a Keep Chosen fleet/edge\nb Delete NotChosen",
		},
		{
			"a member that cannot be reached gets it on the hub: the rollout knows what to make of it",
			Observed{Strategy: by("edge"), Members: fleet("a-away"), Placements: placed("decided edge: a")},
			"a Create Chosen fleet/edge",
		},
		{
			"of two placements the first in the list counts, whatever order they come in",
			Observed{Strategy: by("edge", "rest"), Members: fleet("a b"),
				Placements: placed("decided rest: a b", "decided edge: b")},
			"a Create Chosen fleet/rest\nb Create Chosen fleet/edge",
		},
		{
			"what goes by another placement now says so",
			Observed{Strategy: by("edge", "rest"), Members: fleet("a"),
				Placements: placed("decided edge: a", "decided rest: a"), MemberAddons: there("a=fleet/rest")},
			"a Annotate ChosenByAnother fleet/edge",
		},
		{
			"also if the one before is not in the list any more",
			Observed{Strategy: by("rest"), Members: fleet("a b"), Placements: placed("decided edge: a b", "decided rest: a"),
				MemberAddons: there("a=fleet/edge b=fleet/edge")},
			"a Annotate ChosenByAnother fleet/rest\nb Delete NotChosen",
		},
		{
			"what a person has made is not taken over, and goes by the placement all the same",
			Observed{Strategy: by("edge"), Members: fleet("a b"), Placements: placed("decided edge: a"),
				MemberAddons: there("a b")},
			"a Keep ByHand fleet/edge\nb Keep ByHand",
		},
		{
			"a placement that is missing takes nothing away, and its clusters go on by it",
			Observed{Strategy: by("edge"), Members: fleet("a"), MemberAddons: there("a=fleet/edge")},
			"a Keep Chosen fleet/edge",
		},
		{
			"nor is anything handed to the next one for that long",
			Observed{Strategy: by("edge", "rest"), Members: fleet("a b"),
				Placements: placed("missing edge", "decided rest: a b"), MemberAddons: there("a=fleet/edge b~fleet/edge")},
			"a Keep Chosen fleet/edge\nb Keep ByHand fleet/edge",
		},
		{
			"but one before it takes its clusters, which does not depend on what is missing",
			Observed{Strategy: by("edge", "rest"), Members: fleet("a"), Placements: placed("decided edge: a", "missing rest"),
				MemberAddons: there("a=fleet/rest")},
			"a Annotate ChosenByAnother fleet/edge",
		},
		{
			"what would go is kept while any placement may have chosen it",
			Observed{Strategy: by("edge", "rest"), Members: fleet("a"),
				Placements: placed("decided edge:", "undecided rest: b"), MemberAddons: there("a=fleet/edge")},
			"a Keep Uncertain\nb Skip NotJoined",
		},
		{
			"a member that is known to be selected gets it, although other Placements are undecided",
			Observed{Strategy: by("edge", "rest"), Members: fleet("a b"),
				Placements: placed("undecided edge: a", "decided rest: a b")},
			"a Create Chosen fleet/edge\nb Create Chosen fleet/rest",
		},
		{
			"an unknown state counts as undecided",
			Observed{Strategy: by("edge"), Members: fleet("a"),
				Placements: []Placement{{Namespace: "fleet", Name: "edge", State: "?"}}, MemberAddons: there("a=fleet/edge")},
			"a Keep Chosen fleet/edge",
		},
		{
			"names are compared whole: a placement of another namespace is another one",
			Observed{Strategy: by("edge"), Members: fleet("a"), Placements: placed("decided edge:"),
				MemberAddons: there("a=fleet2/edge")},
			"a Delete NotChosen",
		},
		{
			"what is being deleted is left to that, also if it is still chosen, and is made anew afterwards",
			Observed{Strategy: by("edge"), Members: fleet("a b"), Placements: placed("decided edge: a"),
				MemberAddons: there("a=fleet/edge-deleting b-deleting")},
			"a Keep Removing\nb Keep Removing",
		},
		{
			"deleting the Addon deletes all MemberAddons, in every state",
			Observed{Deleting: true, Strategy: by("edge"), Members: fleet("a b-leaving c-away"),
				MemberAddons: there("a=fleet/edge b=fleet/edge c d e-deleting")},
			"a Delete AddonDeleted\nb Delete AddonDeleted\nc Delete AddonDeleted\nd Delete AddonDeleted\ne Keep Removing",
		},
		{
			"no more than may be are on their way out, in order",
			Observed{Deleting: true, MaxRemoving: 2, Members: fleet("a b c d"), MemberAddons: there("a b c d")},
			"a Delete AddonDeleted\nb Delete AddonDeleted\nc Keep WaitsForTurn\nd Keep WaitsForTurn",
		},
		{
			"those that are on their way already count",
			Observed{Strategy: manual, MaxRemoving: 2, Members: fleet("a b c"),
				MemberAddons: there("a=fleet/edge b=fleet/edge c-deleting")},
			"a Delete NotChosen\nb Keep WaitsForTurn\nc Keep Removing",
		},
		{
			"more than may be do not make room by being too many",
			Observed{Strategy: manual, MaxRemoving: 1, Members: fleet("a b c"),
				MemberAddons: there("a=fleet/edge b-deleting c-deleting")},
			"a Keep WaitsForTurn\nb Keep Removing\nc Keep Removing",
		},
		{
			"members that cannot be reached, or are gone, neither wait nor have others wait: only their deadline passes",
			Observed{Deleting: true, MaxRemoving: 1, Members: fleet("a-away b c c-away d-away"),
				MemberAddons: there("a b c d-deleting e")},
			"a Delete AddonDeleted\nb Delete AddonDeleted\nc Delete AddonDeleted\nd Keep Removing\ne Delete AddonDeleted",
		},
	} {
		t.Run(test.reason, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Decide(test.observed).text()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestShares(t *testing.T) {
	plan := Decide(Observed{
		Strategy: by("edge", "gone", "rest", "edge"), Members: fleet("a b c d-leaving e f-outside"),
		Placements:   placed("decided edge: c a d f", "undecided rest: a e"),
		MemberAddons: there("b=fleet/gone c d=fleet/edge"),
	})
	group := func(name string) rollout.Group { return rollout.Group{Name: name, Index: 1} }
	want := []Share{
		{"fleet/edge", true, []Cluster{{Name: "a", Group: group("of-edge")}, {Name: "c", Group: group("of-edge")}}, nil},
		{"fleet/gone", false, []Cluster{{Name: "b", Group: rollout.Group{Index: math.MaxInt32}}}, nil},
		{"fleet/rest", false, []Cluster{{Name: "e", Group: group("of-rest")}}, nil},
	}
	if diff := cmp.Diff(want, plan.Shares); diff != "" {
		t.Errorf("a rollout must not contain members that leave or have not joined: -want +got:\n%s", diff)
	}
	require.Equal(t, []string{
		"Placement fleet/gone does not exist: the add-on stays on its members until the Placement is created or " +
			"removed from spec.install.",
	}, plan.Problems, "one that is not decided yet is no problem")

	require.Empty(t,
		Decide(Observed{Deleting: true, Strategy: by("edge"), Placements: placed("decided edge: a"), Members: fleet("a")}))
	require.Empty(t, Decide(Observed{Strategy: manual, Placements: placed("missing edge")}))
}

func TestDefaultMaxRemoving(t *testing.T) {
	o := Observed{Deleting: true}
	for i := range 60 {
		name := fmt.Sprintf("m%02d", i)
		o.Members = append(o.Members, Member{Name: name, Reachable: true})
		o.MemberAddons = append(o.MemberAddons, MemberAddon{Member: name})
	}
	deleted := 0
	for _, d := range Decide(o).Decisions {
		if d.Action == Delete {
			deleted++
		}
	}
	require.Equal(t, DefaultMaxRemoving, deleted)
}
