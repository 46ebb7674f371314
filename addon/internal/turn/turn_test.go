package turn_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/addon/internal/install"
	"github.com/muster-sdk/muster/addon/internal/turn"
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
	free := turn.Turn{}
	its := turn.Turn{Placement: "p", Revision: "2"}
	earlier := turn.Turn{Placement: "p", Revision: "1"}
	held := turn.Turn{Placement: "p", Revision: "2", Hold: slots}
	first := turn.Turn{Placement: "p"}
	lost := turn.Turn{Placement: "p", Revision: "2", Keeps: turn.Uncertain}
	none := &v1alpha1.MemberAddonStatus{}
	for _, test := range []struct {
		reason string
		o      turn.Observed
		want   turn.Verdict
	}{
		{"a member without a Placement needs no permit", turn.Observed{Turn: free, Desired: "2", Of: "2", Joined: true},
			turn.Verdict{Tell: true}},
		{"it has a permit", turn.Observed{Turn: its, Desired: "2", Of: "2", Told: "1", Joined: true},
			turn.Verdict{Tell: true}},
		{"it has a permit for the revision of the rollout, which is another revision with its overrides",
			turn.Observed{Turn: its, Desired: "2x", Of: "2", Told: "1x", Joined: true}, turn.Verdict{Tell: true}},
		{"the permit was for another revision",
			turn.Observed{Turn: earlier, Desired: "2", Of: "2", Told: "1", Joined: true}, turn.Verdict{}},
		{"the rollout blocks it", turn.Observed{Turn: held, Desired: "2", Of: "2", Told: "1", Joined: true},
			turn.Verdict{Hold: slots}},
		{"it has the revision, and is blocked for the next one",
			turn.Observed{Turn: held, Desired: "1", Of: "2", Told: "1", Joined: true}, turn.Verdict{Tell: true}},
		{"it has the revision, and its selection is uncertain: it is repaired",
			turn.Observed{Turn: lost, Desired: "2", Of: "2", Told: "2", Joined: true}, turn.Verdict{Tell: true}},
		{"the rollout has not decided yet", turn.Observed{Turn: first, Desired: "2", Of: "2", Joined: true}, turn.Verdict{}},
		{"its selection is uncertain", turn.Observed{Turn: lost, Desired: "2", Of: "2", Told: "1", Joined: true},
			turn.Verdict{Stays: true}},
		{"its selection is uncertain, and it has no revision",
			turn.Observed{Turn: lost, Desired: "2", Of: "2", Joined: true}, turn.Verdict{Hold: turn.Uncertain}},
		{"it joins", turn.Observed{Turn: its, Desired: "2", Of: "2"}, turn.Verdict{Hold: turn.NotJoined}},
		{"it had a revision before it was rejected", turn.Observed{Turn: its, Desired: "2", Of: "2", Told: "1"},
			turn.Verdict{Tell: true}},
		{"it leaves, and has nothing", turn.Observed{Turn: its, Desired: "2", Of: "2", Joined: true, Leaving: true},
			turn.Verdict{Hold: turn.Leaving}},
		{"it leaves with its revision, which the leave removes",
			turn.Observed{Turn: its, Desired: "1", Of: "1", Told: "1", Joined: true, Leaving: true}, turn.Verdict{Stays: true}},
		{
			"it had a permit, the manifests failed, and the controllers restarted",
			turn.Observed{Turn: first, Desired: "2", Of: "2", Told: "1", Joined: true,
				Before: statusOf("2", v1alpha1.ReasonManifestsFailed)}, turn.Verdict{Tell: true},
		},
		{
			"there was no agent for it",
			turn.Observed{Turn: first, Desired: "2", Of: "2", Joined: true, Before: statusOf("2", v1alpha1.ReasonNoAgent)},
			turn.Verdict{Tell: true},
		},
		{
			"what failed was another revision",
			turn.Observed{Turn: first, Desired: "3", Of: "3", Told: "1", Joined: true,
				Before: statusOf("2", v1alpha1.ReasonManifestsFailed)}, turn.Verdict{},
		},
		{
			"it failed, and the rollout has come to another since",
			turn.Observed{Turn: earlier, Desired: "2", Of: "2", Told: "1", Joined: true,
				Before: statusOf("2", v1alpha1.ReasonManifestsFailed)}, turn.Verdict{},
		},
		{
			"it only waited",
			turn.Observed{Turn: first, Desired: "2", Of: "2", Told: "1", Joined: true,
				Before: statusOf("2", v1alpha1.ReasonWaitingForTurn)}, turn.Verdict{},
		},
	} {
		if test.o.Before == nil {
			test.o.Before = none
		}
		require.Equal(t, test.want, turn.Next(test.o), test.reason)
	}
}

func TestTurn_EmptyRevisionIsNeverPermitted(t *testing.T) {
	require.False(t, turn.Turn{Placement: "p"}.May(""), "a rollout that has not begun, of an unknown revision")
}

func TestKeepsBy(t *testing.T) {
	for _, test := range []struct {
		d    install.Decision
		want rollout.HoldReason
	}{
		{install.Decision{Action: install.Create}, ""},
		{install.Decision{Action: install.Keep}, ""},
		{install.Decision{Action: install.Keep, Reason: install.Leaving}, turn.Leaving},
		{install.Decision{Action: install.Keep, Reason: install.Uncertain}, turn.Uncertain},
		{install.Decision{Action: install.Delete, Reason: install.NotChosen}, turn.Removed},
		{install.Decision{Action: install.Keep, Reason: install.WaitsForTurn}, turn.Removed},
		{install.Decision{Action: install.Keep, Reason: install.Removing}, turn.Removed},
	} {
		require.Equal(t, test.want, turn.KeepsBy(test.d), "%+v", test.d)
	}
}

func TestTarget(t *testing.T) {
	its := turn.Turn{Placement: "p", Revision: "2", Since: start.Add(time.Minute)}
	held := turn.Turn{Placement: "p", Revision: "2", Hold: slots}
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	for _, test := range []struct {
		reason string
		s      turn.Standing
		t      turn.Turn
		want   rollout.Target
	}{
		{"it has nothing, and waits", turn.Standing{Desired: "2", Of: "2"}, held, rollout.Target{}},
		{
			"it has a permit: it occupies a slot", turn.Standing{Desired: "2", Of: "2"}, its,
			rollout.Target{Revision: "2", Since: its.Since, Health: rollout.Progressing, HealthSince: its.Since},
		},
		{
			"it has the revision",
			turn.Standing{Desired: "2", Of: "2", Told: "2", Since: at(1), Health: rollout.Succeeded, HealthSince: at(2)}, its,
			rollout.Target{Revision: "2", Since: at(1), Health: rollout.Succeeded, HealthSince: at(2)},
		},
		{
			"it has the revision with its overrides",
			turn.Standing{Desired: "2x", Of: "2", Told: "2x", Since: at(1), Health: rollout.Failed, HealthSince: at(2)}, held,
			rollout.Target{Revision: "2", Since: at(1), Health: rollout.Failed, HealthSince: at(2)},
		},
		{
			"it has an earlier one",
			turn.Standing{Desired: "2", Of: "2", Told: "1", Since: at(1), Health: rollout.Succeeded, HealthSince: at(2)}, held,
			rollout.Target{Revision: "~1", Since: at(1), Health: rollout.Succeeded, HealthSince: at(2)},
		},
		{
			"it has the name of this one, of before the rollout",
			turn.Standing{Desired: "2", Of: "3", Told: "2", Since: at(1), Health: rollout.Succeeded, HealthSince: at(2)}, held,
			rollout.Target{Revision: "~2", Since: at(1), Health: rollout.Succeeded, HealthSince: at(2)},
		},
		{
			"it cannot have it: it has failed, assigned or not",
			turn.Standing{Desired: "2", Of: "2", Told: "1", Failed: true, Health: rollout.Failed, HealthSince: at(3)}, its,
			rollout.Target{Revision: "2", Since: at(3), Health: rollout.Failed, HealthSince: at(3)},
		},
		{
			"the failed revision is unknown", turn.Standing{Failed: true, Health: rollout.Failed, HealthSince: at(3)}, its,
			rollout.Target{Revision: "2", Since: at(3), Health: rollout.Failed, HealthSince: at(3)},
		},
		{
			"what failed was another one",
			turn.Standing{Desired: "1", Of: "1", Told: "0", Since: at(1), Failed: true, Health: rollout.Failed,
				HealthSince: at(3)}, held,
			rollout.Target{Revision: "~0", Since: at(1), Health: rollout.Failed, HealthSince: at(3)},
		},
	} {
		require.Equal(t, test.want, test.s.Target("2", test.t), test.reason)
	}
}

func TestTakesPart(t *testing.T) {
	for _, test := range []struct {
		reason string
		s      turn.Standing
		joined bool
		want   bool
	}{
		{"it has joined", turn.Standing{}, true, true},
		{"it joins", turn.Standing{}, false, false},
		{"it has a revision, and is not joined", turn.Standing{Told: "1"}, false, true},
		{"what is wrong is its own", turn.Standing{Told: "1", Aside: true}, true, false},
	} {
		require.Equal(t, test.want, test.s.TakesPart(test.joined), test.reason)
	}
}

// A permit is given once: the member counts as being updated until it has the revision or the rollout has another one.
func TestTurn_PermitIsGivenOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now, given := start, map[string]time.Time{}
		its := turn.Turn{Placement: "p"}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			now = now.Add(time.Second)
			revision := rapid.SampledFrom([]string{"1", "2"}).Draw(t, "revision")
			hold := rapid.SampledFrom([]rollout.HoldReason{"", "", slots}).Draw(t, "hold")
			before := its
			if rapid.Bool().Draw(t, "decided anew") {
				its = turn.Turn{Placement: "p",
					Keeps: rapid.SampledFrom([]rollout.HoldReason{"", turn.Uncertain}).Draw(t, "keeps")}.After(its)
				require.Equal(t, []any{before.Revision, before.Since, before.Hold}, []any{its.Revision, its.Since, its.Hold})
			}
			mayBefore := its.May(revision)
			its = its.Rolled(revision, hold, now)
			if hold != "" {
				require.False(t, its.May(revision), "a blocked member gets no permit")
				continue
			}
			if its.Keeps == "" {
				require.True(t, its.May(revision))
			}
			if !mayBefore {
				given[revision] = its.Since
			}
			require.Equal(t, given[revision], its.Since, "it is as old as when it was given")
			target := turn.Standing{Desired: revision, Of: revision}.Target(revision, its)
			require.Equal(t, its.May(revision), target.Health == rollout.Progressing, "it occupies a slot if and only if "+
				"it has a permit")
		}
		require.Equal(t, turn.Turn{Placement: "q"}, turn.Turn{Placement: "q"}.After(its),
			"by another placement it begins anew")
	})
}
