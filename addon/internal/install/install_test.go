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

// strategy returns a strategy with these placements, in the namespace fleet.
func strategy(names ...string) v1alpha1.InstallStrategy {
	s := v1alpha1.InstallStrategy{Type: v1alpha1.InstallPlacements}
	for _, name := range names {
		s.Placements = append(s.Placements, v1alpha1.PlacementInstall{Namespace: "fleet", Name: name})
	}
	return s
}

var manual = v1alpha1.InstallStrategy{Type: v1alpha1.InstallManual}

// placements parses placements with selected clusters, "decided edge: a b".
func placements(texts ...string) (all []Placement) {
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

// withoutPermission is like placements, for a namespace without permission.
func withoutPermission(texts ...string) []Placement {
	all := placements(texts...)
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

// memberAddons parses MemberAddons, "a=fleet/edge b c~fleet/edge d-deleting": installed by a Placement, by a user, by a
// user in the share of a Placement, being deleted.
func memberAddons(text string) (all []MemberAddon) {
	for one := range strings.FieldsSeq(text) {
		one, deleting := strings.CutSuffix(one, "-deleting")
		name, installed, _ := strings.Cut(one, "=")
		name, placement, _ := strings.Cut(name, "~")
		all = append(all, MemberAddon{Member: name, InstalledBy: installed, GoesBy: placement, Deleting: deleting})
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
			"type Manual keeps MemberAddons of users",
			Observed{Strategy: manual, Members: fleet("a b"), MemberAddons: memberAddons("a")},
			"a Keep ByHand",
		},
		{
			"the default type is Manual, and decisions of Placements are ignored",
			Observed{Strategy: v1alpha1.InstallStrategy{}, Members: fleet("a"), Placements: placements("decided edge: a")},
			"",
		},
		{
			"type Manual deletes MemberAddons that a Placement has installed",
			Observed{Strategy: manual, Members: fleet("a b"), MemberAddons: memberAddons("a=fleet/edge b")},
			"a Delete NotChosen\nb Keep ByHand",
		},
		{
			"a selected member gets a MemberAddon, and an existing MemberAddon is kept",
			Observed{Strategy: strategy("edge"), Members: fleet("a b"), Placements: placements("decided edge: b a"),
				MemberAddons: memberAddons("a=fleet/edge")},
			"a Keep Chosen fleet/edge\nb Create Chosen fleet/edge",
		},
		{
			"the MemberAddon of a member that is no longer selected is deleted",
			Observed{Strategy: strategy("edge"), Members: fleet("a b"), Placements: placements("decided edge: b"),
				MemberAddons: memberAddons("a=fleet/edge b=fleet/edge")},
			"a Delete NotChosen\nb Keep Chosen fleet/edge",
		},
		{
			"a Placement without permission installs on no new member and keeps existing MemberAddons",
			Observed{Strategy: strategy("edge"), Members: fleet("a b c"), Placements: withoutPermission("decided edge: a b c"),
				MemberAddons: memberAddons("b=fleet/edge c")},
			"a Skip NotAllowed\nb Keep Chosen fleet/edge\nc Keep ByHand",
		},
		{
			"the next Placement with permission applies",
			Observed{Strategy: strategy("edge", "rest"), Members: fleet("a b"),
				Placements:   append(withoutPermission("decided edge: a b"), placements("decided rest: a b")...),
				MemberAddons: memberAddons("b=fleet/rest")},
			"a Create Chosen fleet/rest\nb Keep Chosen fleet/rest",
		},
		{
			"a MemberAddon is kept while a Placement without permission selects the member",
			Observed{Strategy: strategy("edge", "rest"), Members: fleet("a"),
				Placements:   append(placements("decided edge:"), withoutPermission("decided rest: a")...),
				MemberAddons: memberAddons("a=fleet/edge")},
			"a Keep NotAllowed",
		},
		{
			"a MemberAddon of an earlier Addon is kept until the Placement selects the member",
			Observed{Strategy: strategy("edge"), Members: fleet("a"), Placements: placements("decided edge:"),
				MemberAddons: []MemberAddon{
					{Member: "a", InstalledBy: "fleet/edge", Unclaimed: true, Earlier: true},
				}},
			"a Keep EarlierAddon",
		},
		{
			"a MemberAddon of an earlier Addon is annotated when the Placement selects the member",
			Observed{Strategy: strategy("edge"), Members: fleet("a"), Placements: placements("decided edge: a"),
				MemberAddons: []MemberAddon{
					{Member: "a", InstalledBy: "fleet/edge", Unclaimed: true, Earlier: true},
				}},
			"a Annotate Chosen fleet/edge",
		},
		{
			"a member that has not joined and an unknown member are skipped",
			Observed{Strategy: strategy("edge"), Members: fleet("a-outside"), Placements: placements("decided edge: a b")},
			"a Skip NotJoined\nb Skip NotJoined",
		},
		{
			"a leaving member gets no MemberAddon and keeps an existing one",
			Observed{Strategy: strategy("edge"), Members: fleet("a-leaving b-leaving c-leaving d-leaving"),
				Placements: placements("decided edge: a b"), MemberAddons: memberAddons("b=fleet/edge c=fleet/edge d")},
			"a Skip Leaving\nb Keep Leaving\nc Keep Leaving\nd Keep Leaving",
		},
		{
			"a member that is no longer joined keeps its MemberAddon while it is selected",
			Observed{Strategy: strategy("edge"), Members: fleet("a-outside b-outside"),
				Placements:   placements("decided edge: a"),
				MemberAddons: memberAddons("a=fleet/edge b=fleet/edge")},
			"a Keep Chosen fleet/edge\nb Delete NotChosen",
		},
		{
			"an unreachable member gets a MemberAddon",
			Observed{Strategy: strategy("edge"), Members: fleet("a-away"), Placements: placements("decided edge: a")},
			"a Create Chosen fleet/edge",
		},
		{
			"the first Placement in the order of the strategy applies",
			Observed{Strategy: strategy("edge", "rest"), Members: fleet("a b"),
				Placements: placements("decided rest: a b", "decided edge: b")},
			"a Create Chosen fleet/rest\nb Create Chosen fleet/edge",
		},
		{
			"the MemberAddon is annotated if another Placement applies",
			Observed{Strategy: strategy("edge", "rest"), Members: fleet("a"),
				Placements: placements("decided edge: a", "decided rest: a"), MemberAddons: memberAddons("a=fleet/rest")},
			"a Annotate ChosenByAnother fleet/edge",
		},
		{
			"the MemberAddon is annotated if the previous Placement is no longer listed",
			Observed{Strategy: strategy("rest"), Members: fleet("a b"),
				Placements:   placements("decided edge: a b", "decided rest: a"),
				MemberAddons: memberAddons("a=fleet/edge b=fleet/edge")},
			"a Annotate ChosenByAnother fleet/rest\nb Delete NotChosen",
		},
		{
			"a MemberAddon of a user is not annotated, and the Placement applies",
			Observed{Strategy: strategy("edge"), Members: fleet("a b"), Placements: placements("decided edge: a"),
				MemberAddons: memberAddons("a b")},
			"a Keep ByHand fleet/edge\nb Keep ByHand",
		},
		{
			"MemberAddons of a missing Placement are kept, and the Placement applies",
			Observed{Strategy: strategy("edge"), Members: fleet("a"), MemberAddons: memberAddons("a=fleet/edge")},
			"a Keep Chosen fleet/edge",
		},
		{
			"the next Placement does not apply to MemberAddons of a missing Placement",
			Observed{Strategy: strategy("edge", "rest"), Members: fleet("a b"),
				Placements:   placements("missing edge", "decided rest: a b"),
				MemberAddons: memberAddons("a=fleet/edge b~fleet/edge")},
			"a Keep Chosen fleet/edge\nb Keep ByHand fleet/edge",
		},
		{
			"an earlier Placement applies to MemberAddons of a missing Placement",
			Observed{Strategy: strategy("edge", "rest"), Members: fleet("a"),
				Placements:   placements("decided edge: a", "missing rest"),
				MemberAddons: memberAddons("a=fleet/rest")},
			"a Annotate ChosenByAnother fleet/edge",
		},
		{
			"a MemberAddon is kept while a Placement is undecided",
			Observed{Strategy: strategy("edge", "rest"), Members: fleet("a"),
				Placements: placements("decided edge:", "undecided rest: b"), MemberAddons: memberAddons("a=fleet/edge")},
			"a Keep Uncertain\nb Skip NotJoined",
		},
		{
			"a selected member gets a MemberAddon while another Placement is undecided",
			Observed{Strategy: strategy("edge", "rest"), Members: fleet("a b"),
				Placements: placements("undecided edge: a", "decided rest: a b")},
			"a Create Chosen fleet/edge\nb Create Chosen fleet/rest",
		},
		{
			"an unknown state of a Placement is undecided",
			Observed{Strategy: strategy("edge"), Members: fleet("a"),
				Placements:   []Placement{{Namespace: "fleet", Name: "edge", State: "?"}},
				MemberAddons: memberAddons("a=fleet/edge")},
			"a Keep Chosen fleet/edge",
		},
		{
			"Placements in different namespaces are different",
			Observed{Strategy: strategy("edge"), Members: fleet("a"), Placements: placements("decided edge:"),
				MemberAddons: memberAddons("a=fleet2/edge")},
			"a Delete NotChosen",
		},
		{
			"a MemberAddon that is being deleted is kept, also if its member is selected",
			Observed{Strategy: strategy("edge"), Members: fleet("a b"), Placements: placements("decided edge: a"),
				MemberAddons: memberAddons("a=fleet/edge-deleting b-deleting")},
			"a Keep Removing\nb Keep Removing",
		},
		{
			"deleting the Addon deletes all MemberAddons, in every state",
			Observed{Deleting: true, Strategy: strategy("edge"), Members: fleet("a b-leaving c-away"),
				MemberAddons: memberAddons("a=fleet/edge b=fleet/edge c d e-deleting")},
			"a Delete AddonDeleted\nb Delete AddonDeleted\nc Delete AddonDeleted\nd Delete AddonDeleted\ne Keep Removing",
		},
		{
			"the limit of concurrent removals applies in the order of the member names",
			Observed{Deleting: true, MaxRemoving: 2, Members: fleet("a b c d"), MemberAddons: memberAddons("a b c d")},
			"a Delete AddonDeleted\nb Delete AddonDeleted\nc Keep WaitsForTurn\nd Keep WaitsForTurn",
		},
		{
			"MemberAddons that are being deleted use the limit of concurrent removals",
			Observed{Strategy: manual, MaxRemoving: 2, Members: fleet("a b c"),
				MemberAddons: memberAddons("a=fleet/edge b=fleet/edge c-deleting")},
			"a Delete NotChosen\nb Keep WaitsForTurn\nc Keep Removing",
		},
		{
			"no removal starts while more removals than the limit are running",
			Observed{Strategy: manual, MaxRemoving: 1, Members: fleet("a b c"),
				MemberAddons: memberAddons("a=fleet/edge b-deleting c-deleting")},
			"a Keep WaitsForTurn\nb Keep Removing\nc Keep Removing",
		},
		{
			"unreachable and unknown members are not limited and do not use the limit",
			Observed{Deleting: true, MaxRemoving: 1, Members: fleet("a-away b c c-away d-away"),
				MemberAddons: memberAddons("a b c d-deleting e")},
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

func TestDecide_Shares(t *testing.T) {
	plan := Decide(Observed{
		Strategy: strategy("edge", "gone", "rest", "edge"), Members: fleet("a b c d-leaving e f-outside"),
		Placements:   placements("decided edge: c a d f", "undecided rest: a e"),
		MemberAddons: memberAddons("b=fleet/gone c d=fleet/edge"),
	})
	group := func(name string) rollout.Group { return rollout.Group{Name: name, Index: 1} }
	want := []Share{
		{"fleet/edge", true, []Cluster{{Name: "a", Group: group("of-edge")}, {Name: "c", Group: group("of-edge")}}, nil},
		{"fleet/gone", false, []Cluster{{Name: "b", Group: rollout.Group{Index: math.MaxInt32}}}, nil},
		{"fleet/rest", false, []Cluster{{Name: "e", Group: group("of-rest")}}, nil},
	}
	if diff := cmp.Diff(want, plan.Shares); diff != "" {
		t.Errorf("want no members that leave or have not joined (-want +got):\n%s", diff)
	}
	require.Equal(t, []string{
		"Placement fleet/gone does not exist: the add-on stays on its members until the Placement is created or " +
			"removed from spec.install.",
	}, plan.Problems, "want no problem for an undecided Placement")

	require.Empty(t,
		Decide(Observed{Deleting: true, Strategy: strategy("edge"), Placements: placements("decided edge: a"),
			Members: fleet("a")}))
	require.Empty(t, Decide(Observed{Strategy: manual, Placements: placements("missing edge")}))
}

func TestDecide_DefaultMaxRemoving(t *testing.T) {
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

func TestDescribe(t *testing.T) {
	require.Equal(t, "Placement fleet/edge", Describe("fleet", "edge"))
	require.Equal(t, "ClusterPlacement edge", Describe("", "edge"))
}
