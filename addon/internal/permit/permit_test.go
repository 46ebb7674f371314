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
	withoutPlacement := permit.Permit{}
	permitted := permit.Permit{Placement: "p", Revision: "2"}
	earlier := permit.Permit{Placement: "p", Revision: "1"}
	blocked := permit.Permit{Placement: "p", Revision: "2", Hold: slots}
	undecided := permit.Permit{Placement: "p"}
	uncertain := permit.Permit{Placement: "p", Revision: "2", BlockedBy: permit.Uncertain}
	none := &v1alpha1.MemberAddonStatus{}
	for _, test := range []struct {
		reason string
		o      permit.Observed
		want   permit.Decision
	}{
		{"a member without a Placement needs no permit",
			permit.Observed{Permit: withoutPlacement, Desired: "2", Of: "2", Joined: true},
			permit.Decision{Update: true}},
		{"the member has a permit", permit.Observed{Permit: permitted, Desired: "2", Of: "2", Assigned: "1", Joined: true},
			permit.Decision{Update: true}},
		{"the member has a permit for the revision of the rollout, without its overrides",
			permit.Observed{Permit: permitted, Desired: "2x", Of: "2", Assigned: "1x", Joined: true},
			permit.Decision{Update: true}},
		{"the permit is for another revision",
			permit.Observed{Permit: earlier, Desired: "2", Of: "2", Assigned: "1", Joined: true}, permit.Decision{}},
		{"the rollout blocks the member",
			permit.Observed{Permit: blocked, Desired: "2", Of: "2", Assigned: "1", Joined: true},
			permit.Decision{Hold: slots}},
		{"the member has the desired revision and is blocked for the next one",
			permit.Observed{Permit: blocked, Desired: "1", Of: "2", Assigned: "1", Joined: true}, permit.Decision{Update: true}},
		{"the selection is uncertain, and the member has the desired revision",
			permit.Observed{Permit: uncertain, Desired: "2", Of: "2", Assigned: "2", Joined: true},
			permit.Decision{Update: true}},
		{"the rollout has not decided yet", permit.Observed{Permit: undecided, Desired: "2", Of: "2", Joined: true},
			permit.Decision{}},
		{"the selection is uncertain, and the member has another revision",
			permit.Observed{Permit: uncertain, Desired: "2", Of: "2", Assigned: "1", Joined: true},
			permit.Decision{Keep: true}},
		{"the selection is uncertain, and the member has no revision",
			permit.Observed{Permit: uncertain, Desired: "2", Of: "2", Joined: true}, permit.Decision{Hold: permit.Uncertain}},
		{"the member has not joined and has no revision",
			permit.Observed{Permit: permitted, Desired: "2", Of: "2"}, permit.Decision{Hold: permit.NotJoined}},
		{"the member is no longer joined and has a revision",
			permit.Observed{Permit: permitted, Desired: "2", Of: "2", Assigned: "1"},
			permit.Decision{Update: true}},
		{"the member leaves and has no revision",
			permit.Observed{Permit: permitted, Desired: "2", Of: "2", Joined: true, Leaving: true},
			permit.Decision{Hold: permit.Leaving}},
		{"the member leaves and has a revision",
			permit.Observed{Permit: permitted, Desired: "1", Of: "1", Assigned: "1", Joined: true, Leaving: true},
			permit.Decision{Keep: true}},
		{
			"the manifests of the desired revision failed before a restart",
			permit.Observed{Permit: undecided, Desired: "2", Of: "2", Assigned: "1", Joined: true,
				Before: statusOf("2", v1alpha1.ReasonManifestsFailed)}, permit.Decision{Update: true},
		},
		{
			"the desired revision had no agent before a restart",
			permit.Observed{Permit: undecided, Desired: "2", Of: "2", Joined: true,
				Before: statusOf("2", v1alpha1.ReasonNoAgent)},
			permit.Decision{Update: true},
		},
		{
			"the manifests of another revision failed before a restart",
			permit.Observed{Permit: undecided, Desired: "3", Of: "3", Assigned: "1", Joined: true,
				Before: statusOf("2", v1alpha1.ReasonManifestsFailed)}, permit.Decision{},
		},
		{
			"the manifests failed, and the permit is for another revision",
			permit.Observed{Permit: earlier, Desired: "2", Of: "2", Assigned: "1", Joined: true,
				Before: statusOf("2", v1alpha1.ReasonManifestsFailed)}, permit.Decision{},
		},
		{
			"the member waited for a permit before a restart",
			permit.Observed{Permit: undecided, Desired: "2", Of: "2", Assigned: "1", Joined: true,
				Before: statusOf("2", v1alpha1.ReasonWaitingForTurn)}, permit.Decision{},
		},
	} {
		if test.o.Before == nil {
			test.o.Before = none
		}
		require.Equal(t, test.want, permit.Next(test.o), test.reason)
	}
}

func TestPermit_EmptyRevisionIsNeverPermitted(t *testing.T) {
	require.False(t, permit.Permit{Placement: "p"}.Allows(""),
		"want no permit for an unknown revision before the rollout has started")
}

func TestBlockedBy(t *testing.T) {
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
	permitted := permit.Permit{Placement: "p", Revision: "2", Since: start.Add(time.Minute)}
	blocked := permit.Permit{Placement: "p", Revision: "2", Hold: slots}
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	for _, test := range []struct {
		reason string
		s      permit.MemberState
		t      permit.Permit
		want   rollout.Target
	}{
		{"no revision and no permit", permit.MemberState{Desired: "2", Of: "2"}, blocked, rollout.Target{}},
		{
			"no revision and a permit: the member occupies a slot", permit.MemberState{Desired: "2", Of: "2"}, permitted,
			rollout.Target{Revision: "2", Since: permitted.Since, Health: rollout.Progressing, HealthSince: permitted.Since},
		},
		{
			"the revision of the rollout",
			permit.MemberState{Desired: "2", Of: "2", Assigned: "2", Since: at(1), Health: rollout.Succeeded,
				HealthSince: at(2)}, permitted,
			rollout.Target{Revision: "2", Since: at(1), Health: rollout.Succeeded, HealthSince: at(2)},
		},
		{
			"the revision of the rollout with overrides",
			permit.MemberState{Desired: "2x", Of: "2", Assigned: "2x", Since: at(1), Health: rollout.Failed,
				HealthSince: at(2)}, blocked,
			rollout.Target{Revision: "2", Since: at(1), Health: rollout.Failed, HealthSince: at(2)},
		},
		{
			"an earlier revision",
			permit.MemberState{Desired: "2", Of: "2", Assigned: "1", Since: at(1), Health: rollout.Succeeded,
				HealthSince: at(2)}, blocked,
			rollout.Target{Revision: "~1", Since: at(1), Health: rollout.Succeeded, HealthSince: at(2)},
		},
		{
			"an earlier revision with an equal name",
			permit.MemberState{Desired: "2", Of: "3", Assigned: "2", Since: at(1), Health: rollout.Succeeded,
				HealthSince: at(2)}, blocked,
			rollout.Target{Revision: "~2", Since: at(1), Health: rollout.Succeeded, HealthSince: at(2)},
		},
		{
			"the revision of the rollout failed before its assignment",
			permit.MemberState{Desired: "2", Of: "2", Assigned: "1", Failed: true, Health: rollout.Failed,
				HealthSince: at(3)}, permitted,
			rollout.Target{Revision: "2", Since: at(3), Health: rollout.Failed, HealthSince: at(3)},
		},
		{
			"the failed revision is unknown", permit.MemberState{Failed: true, Health: rollout.Failed, HealthSince: at(3)},
			permitted,
			rollout.Target{Revision: "2", Since: at(3), Health: rollout.Failed, HealthSince: at(3)},
		},
		{
			"another revision failed before its assignment",
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
		{"a joined member", permit.MemberState{}, true, true},
		{"a member that has not joined and has no revision", permit.MemberState{}, false, false},
		{"a member with a revision that is not joined", permit.MemberState{Assigned: "1"}, false, true},
		{"a member with a problem that is not caused by the rollout",
			permit.MemberState{Assigned: "1", Aside: true}, true, false},
	} {
		require.Equal(t, test.want, test.s.Participates(test.joined), test.reason)
	}
}

// TestPermit_GivenOnce checks that a permit is given once: the member counts as being updated until it has the
// revision or the rollout has another one.
func TestPermit_GivenOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now, given := start, map[string]time.Time{}
		permitted := permit.Permit{Placement: "p"}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			now = now.Add(time.Second)
			revision := rapid.SampledFrom([]string{"1", "2"}).Draw(t, "revision")
			hold := rapid.SampledFrom([]rollout.HoldReason{"", "", slots}).Draw(t, "hold")
			before := permitted
			if rapid.Bool().Draw(t, "new decision") {
				permitted = permit.Permit{Placement: "p",
					BlockedBy: rapid.SampledFrom([]rollout.HoldReason{"", permit.Uncertain}).Draw(t, "keeps")}.After(permitted)
				require.Equal(t, []any{before.Revision, before.Since, before.Hold},
					[]any{permitted.Revision, permitted.Since, permitted.Hold})
			}
			allowedBefore := permitted.Allows(revision)
			permitted = permitted.Rolled(revision, hold, now)
			if hold != "" {
				require.False(t, permitted.Allows(revision), "want no permit for a blocked member")
				continue
			}
			if permitted.BlockedBy == "" {
				require.True(t, permitted.Allows(revision))
			}
			if !allowedBefore {
				given[revision] = permitted.Since
			}
			require.Equal(t, given[revision], permitted.Since, "want the time when the permit was given")
			target := permit.MemberState{Desired: revision, Of: revision}.Target(revision, permitted)
			require.Equal(t, permitted.Allows(revision), target.Health == rollout.Progressing, "want a slot if and only if the "+
				"member has a permit")
		}
		require.Equal(t, permit.Permit{Placement: "q"}, permit.Permit{Placement: "q"}.After(permitted),
			"want a new permit for another Placement")
	})
}
