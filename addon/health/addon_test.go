package health

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/addon/v1alpha1"
	placementv1alpha1 "github.com/muster-sdk/muster/placement/v1alpha1"
)

// fleet returns members, each as "name updated available degraded removing"; all but the name are optional.
func fleet(texts ...string) (all []Member) {
	for _, text := range texts {
		name, rest, _ := strings.Cut(text, " ")
		m := Member{Name: name, Available: metav1.ConditionFalse, Degraded: metav1.ConditionFalse, Message: "It is so"}
		for part := range strings.FieldsSeq(rest) {
			switch part {
			case "updated":
				m.Updated = true
			case "available":
				m.Available = metav1.ConditionTrue
			case "unknown":
				m.Available, m.Degraded = metav1.ConditionUnknown, metav1.ConditionUnknown
			case "degraded":
				m.Degraded = metav1.ConditionTrue
			case "removing":
				m.Removing = true
			}
		}
		all = append(all, m)
	}
	return all
}

func placements(phase placementv1alpha1.RolloutPhase) []v1alpha1.PlacementStatus {
	return []v1alpha1.PlacementStatus{{Namespace: "fleet", Name: "edge",
		Rollout: placementv1alpha1.RolloutStatus{Phase: phase, Message: "1 cluster failed, and maxFailures allows 0: b."}}}
}

func TestStatus(t *testing.T) {
	const healthyMember = "updated available"
	for _, test := range []struct {
		reason   string
		observed AddonObserved
		counts   v1alpha1.AddonCounts
		want     string // Installed and Degraded
		message  string
	}{
		{"all members are available", AddonObserved{Members: fleet("a "+healthyMember, "b "+healthyMember)},
			v1alpha1.AddonCounts{Total: 2, Updated: 2, Available: 2}, "True/Updated False/AsDesired",
			"Add-on is up to date and available on all 2 members."},
		{"one member", AddonObserved{Members: fleet("a " + healthyMember)},
			v1alpha1.AddonCounts{Total: 1, Updated: 1, Available: 1}, "True/Updated False/AsDesired",
			"Add-on is up to date and available on 1 member."},
		{"no member is selected", AddonObserved{}, v1alpha1.AddonCounts{},
			"True/Updated False/AsDesired", "No member is selected."},
		{"some members are not updated", AddonObserved{Members: fleet("a "+healthyMember, "b available", "c")},
			v1alpha1.AddonCounts{Total: 3, Updated: 1, Available: 2}, "False/Updating False/AsDesired",
			"Add-on is up to date on 1 of 3 members: 2 available."},
		{"MemberAddons that do not exist yet are pending", AddonObserved{Members: fleet("a " + healthyMember), Awaited: 2},
			v1alpha1.AddonCounts{Total: 1, Updated: 1, Available: 1}, "False/Updating False/AsDesired",
			"Add-on is up to date on 1 of 3 members: 1 available, 2 pending."},
		{"updated members that are unavailable or unknown",
			AddonObserved{Members: fleet("a updated unknown", "b updated")},
			v1alpha1.AddonCounts{Total: 2, Updated: 2, Unknown: 1}, "True/Updated False/AsDesired",
			"Add-on is up to date on 2 of 2 members: 0 available, 1 unknown."},
		{"the message names the first degraded member in name order",
			AddonObserved{Members: fleet("c degraded", "b updated degraded", "a "+healthyMember)},
			v1alpha1.AddonCounts{Total: 3, Updated: 2, Available: 1, Degraded: 2}, "False/Updating True/ClustersFailed",
			"Add-on is degraded on 2 of 3 members. b: It is so. Add-on is up to date on 2 of 3 members: 1 available."},
		{"a rollout is halted",
			AddonObserved{Members: fleet("a "+healthyMember, "b degraded"),
				Placements: placements(placementv1alpha1.PhaseFailed)},
			v1alpha1.AddonCounts{Total: 2, Updated: 1, Available: 1, Degraded: 1}, "False/Updating True/RolloutHalted",
			"The rollout for Placement fleet/edge is halted. 1 cluster failed, and maxFailures allows 0: b. b: It is so. " +
				"Add-on is up to date on 1 of 2 members: 1 available."},
		{"a rollout waits for an approval",
			AddonObserved{Members: fleet("a available"), Placements: placements(placementv1alpha1.PhaseWaitingForApproval)},
			v1alpha1.AddonCounts{Total: 1, Available: 1}, "False/Updating False/AsDesired",
			"Add-on is up to date on 0 of 1 member: 1 available. Placement fleet/edge: 1 cluster failed, and maxFailures " +
				"allows 0: b."},
		{"a problem that is not retried precedes a retried problem and degraded members",
			AddonObserved{Members: fleet("a degraded"),
				Problems: []Problem{{"PlacementNotFound", "There is no Placement", true},
					{"NoAgent", "There is no agent", false}}}, v1alpha1.AddonCounts{Total: 1, Degraded: 1},
			"False/NoAgent True/NoAgent",
			"There is no agent. There is 1 more problem. Add-on is up to date on 0 of 1 member: 0 available."},
		{"a retried problem is reported, and is not a degradation",
			AddonObserved{Members: fleet("a " + healthyMember),
				Problems: []Problem{{"PlacementNotFound", "There is no Placement", true}}},
			v1alpha1.AddonCounts{Total: 1, Updated: 1, Available: 1}, "False/PlacementNotFound False/AsDesired",
			"There is no Placement. Add-on is up to date and available on 1 member."},
		{"a member that is being removed is not selected",
			AddonObserved{Members: fleet("a "+healthyMember, "b updated available removing")},
			v1alpha1.AddonCounts{Total: 2, Updated: 1, Available: 1, Removing: 1}, "True/Updated False/AsDesired",
			"Add-on is up to date and available on 1 member. Add-on is being removed from 1 member. b: It is so."},
		{"the Addon is being deleted",
			AddonObserved{Deleting: true, Members: fleet("a removing degraded", "b "+healthyMember),
				Placements: placements(placementv1alpha1.PhaseFailed)},
			v1alpha1.AddonCounts{Total: 2, Updated: 1, Available: 1, Degraded: 1, Removing: 1},
			"False/Removing True/ClustersFailed",
			"Add-on is degraded on 1 of 2 members. a: It is so. Add-on is being deleted: 2 members remaining, 1 " +
				"being removed."},
		{"the Addon is being deleted and has no members",
			AddonObserved{Deleting: true}, v1alpha1.AddonCounts{}, "False/Removing False/AsDesired",
			"Add-on is being deleted."},
	} {
		t.Run(test.reason, func(t *testing.T) {
			test.observed.Generation, test.observed.Now = 7, noon
			got := Status(test.observed)
			require.Equal(t, test.counts, got.Counts)
			require.Equal(t, test.message, got.Message)
			require.Equal(t, test.want,
				fmt.Sprintf("%s/%s %s/%s", got.Conditions[0].Status, got.Conditions[0].Reason, got.Conditions[1].Status,
					got.Conditions[1].Reason))
			require.Equal(t, []string{v1alpha1.ConditionInstalled, v1alpha1.ConditionDegraded},
				[]string{got.Conditions[0].Type, got.Conditions[1].Type})
			require.Equal(t, int64(7), got.ObservedGeneration)
		})
	}
}

func TestMemberOf(t *testing.T) {
	memberAddon := func(changes ...func(*v1alpha1.MemberAddon)) *v1alpha1.MemberAddon {
		a := &v1alpha1.MemberAddon{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Status: v1alpha1.MemberAddonStatus{
			ObservedGeneration: 2, DesiredRevision: "r2", AppliedRevision: "r2", Message: strings.Repeat("m", 1000),
			Conditions: []metav1.Condition{
				{Type: "ManifestsApplied", Status: metav1.ConditionTrue}, {Type: "Available", Status: metav1.ConditionTrue},
				{Type: "Degraded", Status: metav1.ConditionFalse},
			},
		}}
		for _, change := range changes {
			change(a)
		}
		return a
	}
	for _, test := range []struct {
		reason string
		addon  *v1alpha1.MemberAddon
		want   Member
	}{
		{"the desired revision is applied", memberAddon(), Member{Updated: true, Available: "True", Degraded: "False"}},
		{"the desired revision is assigned, and its manifests are not applied",
			memberAddon(func(a *v1alpha1.MemberAddon) { a.Status.Conditions[0].Status = "False" }),
			Member{Available: "True", Degraded: "False"}},
		{"the previous revision is applied", memberAddon(func(a *v1alpha1.MemberAddon) { a.Status.AppliedRevision = "r1" }),
			Member{Available: "True", Degraded: "False"}},
		{"the desired revision is unknown",
			memberAddon(func(a *v1alpha1.MemberAddon) { a.Status.AppliedRevision, a.Status.DesiredRevision = "", "" }),
			Member{Available: "True", Degraded: "False"}},
		{"the status describes an earlier generation", memberAddon(func(a *v1alpha1.MemberAddon) { a.Generation = 3 }),
			Member{Available: "Unknown", Degraded: "Unknown"}},
		{"the status has no conditions", memberAddon(func(a *v1alpha1.MemberAddon) { a.Status.Conditions = nil }),
			Member{Available: "Unknown", Degraded: "Unknown"}},
		{"an invalid condition status is unknown",
			memberAddon(func(a *v1alpha1.MemberAddon) { a.Status.Conditions[1].Status = "Odd" }),
			Member{Updated: true, Available: "Unknown", Degraded: "False"}},
		{"the MemberAddon is being deleted",
			memberAddon(func(a *v1alpha1.MemberAddon) { a.DeletionTimestamp = new(metav1.NewTime(noon)) }),
			Member{Available: "True", Degraded: "False", Removing: true}},
	} {
		got := MemberOf("east", test.addon)
		require.LessOrEqual(t, len(got.Message), 512)
		test.want.Name, got.Message = "east", ""
		require.Empty(t, cmp.Diff(test.want, got), test.reason)
	}
}

func TestStatus_MessagesAreBounded(t *testing.T) {
	long := strings.Repeat("é", 2000)
	o := AddonObserved{Now: noon, Problems: []Problem{{Message: long}, {Reason: "b"}, {Reason: "c"}}}
	for i := range 5000 {
		o.Members = append(o.Members,
			Member{Name: fmt.Sprint(i), Degraded: metav1.ConditionTrue, Removing: i%2 == 0, Message: long[:512]})
	}
	for range 20 {
		o.Placements = append(o.Placements, placements(placementv1alpha1.PhaseFailed)...)
	}
	got := Status(o)
	require.LessOrEqual(t, len(got.Message), 1024)
	require.Contains(t, got.Message, "2 more problems")
	require.Len(t, got.Placements, 16)
	for _, c := range got.Conditions {
		require.LessOrEqual(t, len(c.Message), 1024)
	}
}
