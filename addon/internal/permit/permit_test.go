package permit_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/addon/internal/install"
	"github.com/muster-sdk/muster/addon/internal/permit"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/placement/rollout"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const slots rollout.HoldReason = "waits for a slot"

func statusOf(desired, reason string) *v1alpha1.MemberAddonStatus {
	return &v1alpha1.MemberAddonStatus{DesiredRevision: desired, Conditions: []metav1.Condition{
		{Type: v1alpha1.ConditionManifestsApplied, Status: metav1.ConditionFalse, Reason: reason},
	}}
}

func TestNext(t *testing.T) {
	free := permit.Permit{}
	its := permit.Permit{Placement: "p", Revision: "2"}
	earlier := permit.Permit{Placement: "p", Revision: "1"}
	blocked := permit.Permit{Placement: "p", Revision: "2", Hold: slots}
	first := permit.Permit{Placement: "p"}
	lost := permit.Permit{Placement: "p", Revision: "2", BlockedBy: permit.Uncertain}
	none := &v1alpha1.MemberAddonStatus{}
	for _, test := range []struct {
		reason string
		o      permit.Observed
		want   permit.Decision
	}{
		{"a member without a Placement needs no permit", permit.Observed{Permit: free, Desired: "2", Of: "2", Joined: true},
			permit.Decision{Update: true}},
		{"it has a permit", permit.Observed{Permit: its, Desired: "2", Of: "2", Assigned: "1", Joined: true},
			permit.Decision{Update: true}},
		{"it has a permit for the revision of the rollout, which is another revision with its overrides",
			permit.Observed{Permit: its, Desired: "2x", Of: "2", Assigned: "1x", Joined: true}, permit.Decision{Update: true}},
		{"the permit was for another revision",
			permit.Observed{Permit: earlier, Desired: "2", Of: "2", Assigned: "1", Joined: true}, permit.Decision{}},
		{"the rollout blocks it", permit.Observed{Permit: blocked, Desired: "2", Of: "2", Assigned: "1", Joined: true},
			permit.Decision{Hold: slots}},
		{"it has the revision, and is blocked for the next one",
			permit.Observed{Permit: blocked, Desired: "1", Of: "2", Assigned: "1", Joined: true}, permit.Decision{Update: true}},
		{"it has the revision, and its selection is uncertain: it is repaired",
			permit.Observed{Permit: lost, Desired: "2", Of: "2", Assigned: "2", Joined: true}, permit.Decision{Update: true}},
		{"the rollout has not decided yet", permit.Observed{Permit: first, Desired: "2", Of: "2", Joined: true},
			permit.Decision{}},
		{"its selection is uncertain", permit.Observed{Permit: lost, Desired: "2", Of: "2", Assigned: "1", Joined: true},
			permit.Decision{Keep: true}},
		{"its selection is uncertain, and it has no revision",
			permit.Observed{Permit: lost, Desired: "2", Of: "2", Joined: true}, permit.Decision{Hold: permit.Uncertain}},
		{"it joins", permit.Observed{Permit: its, Desired: "2", Of: "2"}, permit.Decision{Hold: permit.NotJoined}},
		{"it had a revision before it was rejected", permit.Observed{Permit: its, Desired: "2", Of: "2", Assigned: "1"},
			permit.Decision{Update: true}},
		{"it leaves, and has nothing", permit.Observed{Permit: its, Desired: "2", Of: "2", Joined: true, Leaving: true},
			permit.Decision{Hold: permit.Leaving}},
		{"it leaves with its revision, which the leave removes",
			permit.Observed{Permit: its, Desired: "1", Of: "1", Assigned: "1", Joined: true, Leaving: true},
			permit.Decision{Keep: true}},
		{
			"it had a permit, the manifests failed, and the controllers restarted",
			permit.Observed{Permit: first, Desired: "2", Of: "2", Assigned: "1", Joined: true,
				Before: statusOf("2", v1alpha1.ReasonManifestsFailed)}, permit.Decision{Update: true},
		},
		{
			"there was no agent for it",
			permit.Observed{Permit: first, Desired: "2", Of: "2", Joined: true, Before: statusOf("2", v1alpha1.ReasonNoAgent)},
			permit.Decision{Update: true},
		},
		{
			"what failed was another revision",
			permit.Observed{Permit: first, Desired: "3", Of: "3", Assigned: "1", Joined: true,
				Before: statusOf("2", v1alpha1.ReasonManifestsFailed)}, permit.Decision{},
		},
		{
			"it failed, and the rollout has come to another since",
			permit.Observed{Permit: earlier, Desired: "2", Of: "2", Assigned: "1", Joined: true,
				Before: statusOf("2", v1alpha1.ReasonManifestsFailed)}, permit.Decision{},
		},
		{
			"it only waited",
			permit.Observed{Permit: first, Desired: "2", Of: "2", Assigned: "1", Joined: true,
				Before: statusOf("2", v1alpha1.ReasonWaitingForTurn)}, permit.Decision{},
		},
	} {
		if test.o.Before == nil {
			test.o.Before = none
		}
		require.Equal(t, test.want, permit.Next(test.o), test.reason)
	}
}

func TestTurn_EmptyRevisionIsNeverPermitted(t *testing.T) {
	require.False(t, permit.Permit{Placement: "p"}.Allows(""), "a rollout that has not begun, of an unknown revision")
}

func TestKeepsBy(t *testing.T) {
	for _, test := range []struct {
		d    install.Decision
		want rollout.HoldReason
	}{
		{install.Decision{Action: install.Create}, ""},
		{install.Decision{Action: install.Keep}, ""},
		{install.Decision{Action: install.Keep, Reason: install.Leaving}, permit.Leaving},
		{install.Decision{Action: install.Keep, Reason: install.Uncertain}, permit.Uncertain},
		{install.Decision{Action: install.Keep, Reason: install.NotAllowed}, permit.NotAllowed},
		{install.Decision{Action: install.Delete, Reason: install.NotChosen}, permit.Removed},
		{install.Decision{Action: install.Keep, Reason: install.WaitsForTurn}, permit.Removed},
		{install.Decision{Action: install.Keep, Reason: install.Removing}, permit.Removed},
	} {
		require.Equal(t, test.want, permit.BlockedBy(test.d), "%+v", test.d)
	}
}

func TestTarget(t *testing.T) {
	its := permit.Permit{Placement: "p", Revision: "2", Since: start.Add(time.Minute)}
	blocked := permit.Permit{Placement: "p", Revision: "2", Hold: slots}
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	for _, test := range []struct {
		reason string
		s      permit.MemberState
		t      permit.Permit
		want   rollout.Target
	}{
		{"it has nothing, and waits", permit.MemberState{Desired: "2", Of: "2"}, blocked, rollout.Target{}},
		{
			"it has a permit: it occupies a slot", permit.MemberState{Desired: "2", Of: "2"}, its,
			rollout.Target{Revision: "2", Since: its.Since, Health: rollout.Progressing, HealthSince: its.Since},
		},
		{
			"it has the revision",
			permit.MemberState{Desired: "2", Of: "2", Assigned: "2", Since: at(1), Health: rollout.Succeeded,
				HealthSince: at(2)}, its,
			rollout.Target{Revision: "2", Since: at(1), Health: rollout.Succeeded, HealthSince: at(2)},
		},
		{
			"it has the revision with its overrides",
			permit.MemberState{Desired: "2x", Of: "2", Assigned: "2x", Since: at(1), Health: rollout.Failed,
				HealthSince: at(2)}, blocked,
			rollout.Target{Revision: "2", Since: at(1), Health: rollout.Failed, HealthSince: at(2)},
		},
		{
			"it has an earlier one",
			permit.MemberState{Desired: "2", Of: "2", Assigned: "1", Since: at(1), Health: rollout.Succeeded,
				HealthSince: at(2)}, blocked,
			rollout.Target{Revision: "~1", Since: at(1), Health: rollout.Succeeded, HealthSince: at(2)},
		},
		{
			"it has the name of this one, of before the rollout",
			permit.MemberState{Desired: "2", Of: "3", Assigned: "2", Since: at(1), Health: rollout.Succeeded,
				HealthSince: at(2)}, blocked,
			rollout.Target{Revision: "~2", Since: at(1), Health: rollout.Succeeded, HealthSince: at(2)},
		},
		{
			"it cannot have it: it has failed, assigned or not",
			permit.MemberState{Desired: "2", Of: "2", Assigned: "1", Failed: true, Health: rollout.Failed,
				HealthSince: at(3)}, its,
			rollout.Target{Revision: "2", Since: at(3), Health: rollout.Failed, HealthSince: at(3)},
		},
		{
			"the failed revision is unknown", permit.MemberState{Failed: true, Health: rollout.Failed, HealthSince: at(3)}, its,
			rollout.Target{Revision: "2", Since: at(3), Health: rollout.Failed, HealthSince: at(3)},
		},
		{
			"what failed was another one",
			permit.MemberState{Desired: "1", Of: "1", Assigned: "0", Since: at(1), Failed: true, Health: rollout.Failed,
				HealthSince: at(3)}, blocked,
			rollout.Target{Revision: "~0", Since: at(1), Health: rollout.Failed, HealthSince: at(3)},
		},
	} {
		require.Equal(t, test.want, test.s.Target("2", test.t), test.reason)
	}
}

func TestParticipates(t *testing.T) {
	for _, test := range []struct {
		reason string
		s      permit.MemberState
		joined bool
		want   bool
	}{
		{"it has joined", permit.MemberState{}, true, true},
		{"it joins", permit.MemberState{}, false, false},
		{"it has a revision, and is not joined", permit.MemberState{Assigned: "1"}, false, true},
		{"what is wrong is its own", permit.MemberState{Assigned: "1", Aside: true}, true, false},
	} {
		require.Equal(t, test.want, test.s.Participates(test.joined), test.reason)
	}
}

// TestTurn_PermitIsGivenOnce checks that a permit is given once: the member counts as being updated until it has the
// revision or the rollout has another one.
func TestTurn_PermitIsGivenOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now, given := start, map[string]time.Time{}
		its := permit.Permit{Placement: "p"}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			now = now.Add(time.Second)
			revision := rapid.SampledFrom([]string{"1", "2"}).Draw(t, "revision")
			hold := rapid.SampledFrom([]rollout.HoldReason{"", "", slots}).Draw(t, "hold")
			before := its
			if rapid.Bool().Draw(t, "decided anew") {
				its = permit.Permit{Placement: "p",
					BlockedBy: rapid.SampledFrom([]rollout.HoldReason{"", permit.Uncertain}).Draw(t, "keeps")}.After(its)
				require.Equal(t, []any{before.Revision, before.Since, before.Hold}, []any{its.Revision, its.Since, its.Hold})
			}
			mayBefore := its.Allows(revision)
			its = its.Rolled(revision, hold, now)
			if hold != "" {
				require.False(t, its.Allows(revision), "a blocked member gets no permit")
				continue
			}
			if its.BlockedBy == "" {
				require.True(t, its.Allows(revision))
			}
			if !mayBefore {
				given[revision] = its.Since
			}
			require.Equal(t, given[revision], its.Since, "it is as old as when it was given")
			target := permit.MemberState{Desired: revision, Of: revision}.Target(revision, its)
			require.Equal(t, its.Allows(revision), target.Health == rollout.Progressing, "it occupies a slot if and only if "+
				"it has a permit")
		}
		require.Equal(t, permit.Permit{Placement: "q"}, permit.Permit{Placement: "q"}.After(its),
			"by another placement it begins anew")
	})
}
