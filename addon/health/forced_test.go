package health

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/addon/v1alpha1"
)

func record(member string, minute int, message string) v1alpha1.ForcedRemoval {
	return v1alpha1.ForcedRemoval{Member: member, Time: metav1.NewTime(noon.Add(time.Duration(minute) * time.Minute)),
		Message: message}
}

func TestForcedOf(t *testing.T) {
	memberAddon := func(changes ...func(*v1alpha1.MemberAddon)) *v1alpha1.MemberAddon {
		a := &v1alpha1.MemberAddon{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: new(metav1.NewTime(noon))}}
		a.Status.Conditions = []metav1.Condition{{
			Type: "Degraded", Status: metav1.ConditionTrue, Reason: "DeadlineExceeded",
			LastTransitionTime: metav1.NewTime(noon.Add(10*time.Minute + time.Millisecond)), Message: "It is late.",
		}}
		for _, change := range changes {
			change(a)
		}
		return a
	}
	for _, test := range []struct {
		reason string
		addon  *v1alpha1.MemberAddon
		want   *v1alpha1.ForcedRemoval
	}{
		{"a forced removal, with a time in seconds", memberAddon(), new(record("east", 10, "It is late."))},
		{"a MemberAddon that was degraded before its deletion, and forced at once",
			memberAddon(func(a *v1alpha1.MemberAddon) {
				a.Status.Conditions[0].LastTransitionTime = metav1.NewTime(noon.Add(-time.Hour))
			}), new(record("east", 0, "It is late."))},
		{"a removal within its deadline",
			memberAddon(func(a *v1alpha1.MemberAddon) { a.Status.Conditions[0].Status = metav1.ConditionFalse }), nil},
		{"a failed hook is not a forced removal",
			memberAddon(func(a *v1alpha1.MemberAddon) { a.Status.Conditions[0].Reason = "HookFailed" }), nil},
		{"a MemberAddon that is not being deleted",
			memberAddon(func(a *v1alpha1.MemberAddon) { a.DeletionTimestamp = nil }), nil},
		{"a status without conditions", memberAddon(func(a *v1alpha1.MemberAddon) { a.Status.Conditions = nil }),
			nil},
		{"a message is bounded",
			memberAddon(func(a *v1alpha1.MemberAddon) { a.Status.Conditions[0].Message = strings.Repeat("m", 600) }),
			new(record("east", 10, strings.Repeat("m", 509)+"…"))},
	} {
		require.Empty(t, cmp.Diff(test.want, MemberOf("east", test.addon).Forced), test.reason)
	}
}

func TestForced(t *testing.T) {
	type records = []v1alpha1.ForcedRemoval
	membersOf := func(records ...v1alpha1.ForcedRemoval) (members []Member) {
		for i := range records {
			members = append(members, Member{Name: records[i].Member, Removing: true, Forced: &records[i]})
		}
		return members
	}
	for _, test := range []struct {
		reason                string
		before, forced, other records // in the last status, of deleted MemberAddons, of existing MemberAddons
		want                  records
	}{
		{"no forced removals", nil, nil, nil, nil},
		{"recorded removals are kept", records{record("a", 1, "x")}, nil, nil, records{record("a", 1, "x")}},
		{"the newest is first", records{record("a", 1, "x")}, records{record("b", 3, "x")}, records{record("c", 2, "x")},
			records{record("b", 3, "x"), record("c", 2, "x"), record("a", 1, "x")}},
		{"a removal is recorded once, with its current message", records{record("a", 1, "before")},
			records{record("a", 1, "now")}, records{record("a", 1, "now")}, records{record("a", 1, "now")}},
		{"two removals from one member", records{record("a", 1, "x")}, records{record("a", 2, "x")}, nil,
			records{record("a", 2, "x"), record("a", 1, "x")}},
		{"removals at one time are in the order of the member names", nil,
			records{record("b", 1, "x"), record("a", 1, "x"), record("a-b", 1, "x")}, nil,
			records{record("a", 1, "x"), record("a-b", 1, "x"), record("b", 1, "x")}},
	} {
		got := Status(AddonObserved{Now: noon, Before: v1alpha1.AddonStatus{ForcedRemovals: test.before},
			Forced: test.forced, Members: membersOf(test.other...)})
		require.Empty(t, cmp.Diff(test.want, got.ForcedRemovals), test.reason)
	}
}

// TestForcedIsBounded checks that the newest forced removals are recorded once each, regardless of the number of
// reports, before and after a restart.
func TestForcedIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var before v1alpha1.AddonStatus
		all := map[string]v1alpha1.ForcedRemoval{}
		for range rapid.IntRange(1, 4).Draw(t, "restarts") {
			o := AddonObserved{Now: noon}
			for range rapid.IntRange(0, 40).Draw(t, "forced") {
				r := record(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "member"), rapid.IntRange(0, 60).Draw(t, "minute"),
					"x")
				all[fmt.Sprint(r.Member, r.Time.Unix())] = r
				o.Forced = append(o.Forced, r)
			}
			o.Before = before
			given := fmt.Sprint(o)
			got := Status(o)
			require.Equal(t, given, fmt.Sprint(o), "Status changed its argument")
			o.Before = stored(t, got)
			require.Empty(t, cmp.Diff(o.Before, Status(o)), "want an unchanged status for a repeated report")
			before = o.Before
		}
		require.Len(t, before.ForcedRemovals, min(len(all), v1alpha1.MaxForcedRemovals))
		for i, r := range before.ForcedRemovals {
			require.Contains(t, all, fmt.Sprint(r.Member, r.Time.Unix()))
			delete(all, fmt.Sprint(r.Member, r.Time.Unix()))
			require.False(t, i > 0 && r.Time.After(before.ForcedRemovals[i-1].Time.Time))
		}
		for _, omitted := range all {
			require.False(t, omitted.Time.After(before.ForcedRemovals[len(before.ForcedRemovals)-1].Time.Time),
				"want the newest removals to be recorded")
		}
	})
}
