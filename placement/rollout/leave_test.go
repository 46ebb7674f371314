package rollout

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

var mandatoryFirst = with(perGroup, func(s *v1alpha1.RolloutStrategy) {
	s.MandatoryGroups = []v1alpha1.DecisionGroupReference{{Index: new(int32(0))}}
})

// looks evaluates one observation after the other, each with the status of the one before.
func looks(t *testing.T, status v1alpha1.RolloutStatus, observed ...Observed) Plan {
	t.Helper()
	var plan Plan
	for _, o := range observed {
		if o.Now.IsZero() {
			o.Now = epoch
		}
		if o.Revision == "" {
			o.Revision = "r2"
		}
		o.Status = status
		var err error
		if plan, err = Next(o); err != nil {
			t.Fatal(err)
		}
		status = plan.Status
	}
	return plan
}

func observe(s v1alpha1.RolloutStrategy, texts ...string) Observed {
	o := Observed{Strategy: s}
	for _, text := range texts {
		o.Targets = append(o.Targets, target(text))
	}
	return o
}

func stopped(s v1alpha1.RolloutStrategy) v1alpha1.RolloutStrategy {
	return with(s, func(s *v1alpha1.RolloutStrategy) { s.State = v1alpha1.RolloutStop })
}

// TestClustersThatLeave checks that a failed cluster that leaves does not end the halt of a rollout.
func TestClustersThatLeave(t *testing.T) {
	rollBack := with(oneByOne, func(s *v1alpha1.RolloutStrategy) { s.OnFailure = v1alpha1.FailureRollBack })
	const prod = "prod r1 Succeeded 3h 1"
	first := v1alpha1.RolloutStatus{Revision: "r2", StartedAt: underWay.StartedAt}
	for _, test := range []struct {
		reason  string
		status  v1alpha1.RolloutStatus
		looks   []Observed
		phase   v1alpha1.RolloutPhase
		update  string
		message string
	}{
		{
			"the canary fails and leaves: nobody else gets what has killed it", underWay,
			[]Observed{observe(mandatoryFirst, "canary r2 Failed 1m 0", prod), observe(mandatoryFirst, prod)},
			"Failed", "", "1 cluster of a mandatory group failed: canary (left). Clusters that have left count until the " +
				"revision changes or the rollout state is set to Stop.",
		},
		{
			"it leaves before anybody knows: its group is not done", underWay,
			[]Observed{observe(mandatoryFirst, "canary r2 Progressing 1m 0", prod), observe(mandatoryFirst, prod)},
			"Failed", "", "All clusters of mandatory group 0 left before the group was updated. The rollout continues when a " +
				"cluster of the group returns. To continue without the group, set the rollout state to Stop and back to Run.",
		},
		{
			"it is back", underWay,
			[]Observed{observe(mandatoryFirst, "canary r2 Progressing 1m 0", prod), observe(mandatoryFirst, prod),
				observe(mandatoryFirst, "canary - - - 0", prod)},
			"Progressing", "canary", "",
		},
		{
			"another one is there, and well", underWay,
			[]Observed{observe(mandatoryFirst, "canary r2 Progressing 1m 0", prod),
				observe(mandatoryFirst, "other r2 Succeeded 1m 0", prod)},
			"Progressing", "prod", "",
		},
		{
			"a person says stop, and then lets it run without the group", underWay,
			[]Observed{observe(mandatoryFirst, "canary r2 Progressing 1m 0", prod), observe(stopped(mandatoryFirst), prod),
				observe(mandatoryFirst, prod)},
			"Progressing", "prod", "",
		},
		{
			"likewise where it failed", underWay,
			[]Observed{observe(mandatoryFirst, "canary r2 Failed 1m 0", prod), observe(stopped(mandatoryFirst), prod),
				observe(mandatoryFirst, prod)},
			"Progressing", "prod", "",
		},
		{
			"the group was done before it lost its cluster", underWay,
			[]Observed{observe(mandatoryFirst, "canary r2 Succeeded 1m 0", prod), observe(mandatoryFirst, prod)},
			"Progressing", "prod", "",
		},
		{
			"a mandatory group that never had a cluster is passed", underWay,
			[]Observed{observe(mandatoryFirst, prod), observe(mandatoryFirst, prod)},
			"Progressing", "prod", "",
		},
		{
			"the group is not mandatory any more", underWay,
			[]Observed{observe(mandatoryFirst, "canary r2 Failed 1m 0", prod), observe(tolerating(perGroup, number(1)), prod)},
			"Progressing", "prod", "",
		},
		{
			"all are away for a moment", underWay,
			[]Observed{observe(mandatoryFirst, "canary r2 Failed 1m 0", prod), observe(mandatoryFirst),
				observe(mandatoryFirst, prod)},
			"Failed", "", "",
		},
		{
			"where no group is mandatory it counts like another failure", underWay,
			[]Observed{observe(oneByOne, "a r2 Failed 1m", "b r1 Succeeded 3h"), observe(oneByOne, "b r1 Succeeded 3h")},
			"Failed", "", "1 cluster failed, and maxFailures allows 0: a (left). Clusters that have left count until the " +
				"revision changes or the rollout state is set to Stop.",
		},
		{
			"with those that are there", underWay,
			[]Observed{observe(tolerating(oneByOne, number(1)), "a r2 Failed 1m", "b r1 Succeeded 3h"),
				observe(tolerating(oneByOne, number(1)), "b r2 Failed 1s", "c r1 Succeeded 3h")},
			"Failed", "", "2 clusters failed, and maxFailures allows 1: b, a (left). Clusters that have left count until the " +
				"revision changes or the rollout state is set to Stop.",
		},
		{
			"that may be", underWay,
			[]Observed{observe(oneByOne, "a r2 Failed 1m", "b r1 Succeeded 3h"),
				observe(tolerating(oneByOne, number(1)), "b r1 Succeeded 3h")},
			"Progressing", "b", "",
		},
		{
			"and until there is another revision", underWay,
			[]Observed{observe(oneByOne, "a r2 Failed 1m", "b r1 Succeeded 3h"),
				{Strategy: oneByOne, Revision: "r3", Targets: []Target{target("b r1 Succeeded 3h")}}},
			"Progressing", "b", "",
		},
		{
			"who is back with nothing has not made up for it", underWay,
			[]Observed{observe(oneByOne, "a r2 Failed 1m", "b r1 Succeeded 3h"), observe(oneByOne, "b r1 Succeeded 3h"),
				observe(oneByOne, "a", "b r1 Succeeded 3h")},
			"Failed", "", "",
		},
		{
			"nor with the stable revision", underWay,
			[]Observed{observe(oneByOne, "a r2 Failed 1m", "b r1 Succeeded 3h"),
				observe(oneByOne, "a r1 Succeeded 1s", "b r1 Succeeded 3h")},
			"Failed", "", "",
		},
		{
			"who is back at the revision counts as it is", underWay,
			[]Observed{observe(oneByOne, "a r2 Failed 1m", "b r1 Succeeded 3h"), observe(oneByOne, "b r1 Succeeded 3h"),
				observe(oneByOne, "a r2 Succeeded 1s", "b r1 Succeeded 3h")},
			"Progressing", "b", "",
		},
		{
			"who cannot be reached will not get well by leaving", underWay,
			[]Observed{observe(oneByOne, "a r2 Unknown 1m", "b r1 Succeeded 3h"), observe(oneByOne, "b r1 Succeeded 3h")},
			"Failed", "", "",
		},
		{
			"who could be reached before it left counts no more: somebody has changed his mind", underWay,
			[]Observed{observe(oneByOne, "a r2 Unknown 1m", "b r1 Succeeded 3h"),
				observe(oneByOne, "a r2 Progressing 1m", "b r1 Succeeded 3h"), observe(oneByOne, "b r1 Succeeded 3h")},
			"Progressing", "b", "",
		},
		{
			"with nothing to fall back on, the clusters in place of one that is lost get the first revision", first,
			[]Observed{observe(oneByOne, "a r2 Unknown 1m", "b"), observe(oneByOne, "b")},
			"Progressing", "b", "",
		},
		{
			"a failure that has left leads back like another", underWay,
			[]Observed{observe(rollBack, "a r2 Unknown 1m", "b r2 Succeeded 10m", "c r1 Succeeded 3h"),
				observe(rollBack, "b r2 Succeeded 10m", "c r1 Succeeded 3h")},
			"RollingBack", "b", "Rolled back: 1 of 2 clusters at r1. 1 cluster failed, and maxFailures allows 0: a (left).",
		},
	} {
		plan := looks(t, test.status, test.looks...)
		if got := strings.Join(plan.Update, " "); plan.Status.Phase != test.phase || got != test.update {
			t.Errorf("%s: want %s and %q to update, got %s and %q: %s", test.reason, test.phase, test.update, plan.Status.Phase,
				got, plan.Status.Message)
		}
		if test.message != "" && plan.Status.Message != test.message {
			t.Errorf("%s: want %q, got %q", test.reason, test.message, plan.Status.Message)
		}
	}
}

// TestUnwellIsBounded checks that the number of stored clusters is limited, and that no target is updated when the
// limit is reached.
func TestUnwellIsBounded(t *testing.T) {
	many := observe(tolerating(oneByOne, number(1000)))
	for i := range 50 {
		many.Targets = append(many.Targets, target(fmt.Sprintf("c%02d r2 Failed 1m", i)))
	}
	rest := observe(many.Strategy, "prod r1 Succeeded 3h")
	many.Targets = append(many.Targets, rest.Targets...)
	if plan := looks(t, underWay, many); len(plan.Status.Unwell) != maxUnwell || len(plan.Update) != 1 {
		t.Errorf("want %d remembered and one to update, got %d and %v", maxUnwell, len(plan.Status.Unwell), plan.Update)
	}
	if plan := looks(t, underWay, many, rest, rest); len(plan.Status.Unwell) != maxUnwell || len(plan.Update) > 0 {
		t.Errorf("want %d remembered and none to update, got %d and %v", maxUnwell, len(plan.Status.Unwell), plan.Update)
	}
	well := observe(many.Strategy, "prod r2 Succeeded 1m")
	if plan := looks(t, underWay, observe(many.Strategy, "a r2 Failed 1m", "prod r2 Succeeded 1m"),
		well); plan.Status.Phase != v1alpha1.PhaseSucceeded || plan.Status.Unwell != nil {
		t.Errorf("a rollout that is over remembers %v", plan.Status.Unwell)
	}
}

// TestNewcomers checks that a cluster without a revision gets the stable revision without waiting for the new one.
func TestNewcomers(t *testing.T) {
	paused := with(oneByOne, func(s *v1alpha1.RolloutStrategy) { s.State = v1alpha1.RolloutPause })
	approving := with(staged, func(s *v1alpha1.RolloutStrategy) { s.Stages[0].After.Approval = true })
	rollingBack := remembering(func(s *v1alpha1.RolloutStatus) {
		s.Rollback = &v1alpha1.RollbackStatus{StartedAt: *ago(0)}
	})
	done := remembering(func(s *v1alpha1.RolloutStatus) {
		s.FinishedAt, s.StableSince, s.StableRevision = ago(0), ago(0), "r2"
	})
	const old = "old r1 Succeeded 3h 1"
	for _, test := range []struct {
		reason         string
		status         v1alpha1.RolloutStatus
		o              Observed
		update, stable string
	}{
		{"the rollout is paused", underWay, observe(paused, "new", old), "", "new"},
		{"it is stopped", underWay, observe(stopped(oneByOne), "new", old), "", "new"},
		{"it is halted", underWay, observe(oneByOne, "bad r2 Failed 1m", "new", old), "", "new"},
		{"it waits for somebody", underWay, observe(approving, "canary r2 Succeeded 5m 0", "new - - - 1", old), "", "new"},
		{"it is another group's turn", underWay, observe(perGroup, "canary r2 Progressing 1m 0", "new - - - 1", old), "",
			"new"},
		{"a mandatory group has left", finishedNot("0"), observe(mandatoryFirst, "new - - - 1", old), "", "new"},
		{"there is no slot for the new one: they need none for what is not new", underWay,
			observe(oneByOne, "a r2 Progressing 1m", "new", "newer", old), "", "new newer"},
		{"it is its turn", underWay, observe(oneByOne, "new", old), "new", ""},
		{"it is on the way back", rollingBack, observe(oneByOne, "bad r2 Failed 1m", "new", old), "bad", ""},
		{"and that is paused", rollingBack, observe(paused, "bad r2 Failed 1m", "new", old), "", "new"},
		{"it was done before it was paused", done, observe(paused, "new", "b r2 Succeeded 3h"), "", "new"},
		{"it was done, and runs: new ones have the pace that they always have", done,
			observe(oneByOne, "new", "newer", "b r2 Succeeded 3h"), "new", ""},
		{
			"what is to be the stable one again is on its way itself", remembering(func(s *v1alpha1.RolloutStatus) {
				s.StableRevision = "r2"
			}),
			observe(approving, "canary r2 Progressing 1s 0", "new - - - 1"), "", "",
		},
		{"there is none yet", v1alpha1.RolloutStatus{}, observe(paused, "new"), "", ""},
	} {
		plan := looks(t, test.status, test.o)
		got := [2]string{strings.Join(plan.Update, " "), strings.Join(plan.Stable, " ")}
		if diff := cmp.Diff([2]string{test.update, test.stable}, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s%s", test.reason, diff, plan.Status.Message)
		}
	}
}

func finishedNot(stage string) v1alpha1.RolloutStatus { return finished(stage, nil) }

// TestGroupsThatAreNone checks that a mandatory group with a wrong name is not skipped.
func TestGroupsThatAreNone(t *testing.T) {
	declared := []Group{{Name: "canary"}, {Index: 1}}
	for _, test := range []struct {
		reason  string
		group   v1alpha1.DecisionGroupReference
		groups  []Group
		status  v1alpha1.RolloutStatus
		problem string
	}{
		{"its name", v1alpha1.DecisionGroupReference{Name: "canry"}, declared, underWay, "mandatoryGroups[0]: no Placement " +
			"has a decision group canry: correct the name, or declare it in spec.decisionGroups of a Placement"},
		{"its index", v1alpha1.DecisionGroupReference{Index: new(int32(2))}, declared, underWay,
			"mandatoryGroups[0]: no decision group has the index 2: the Placements have 2 groups, counted from 0"},
		{"one without clusters is one", v1alpha1.DecisionGroupReference{Name: "canary"}, declared, underWay, ""},
		{"nobody knows", v1alpha1.DecisionGroupReference{Name: "canry"}, nil, underWay, ""},
		{"it does not matter any more", v1alpha1.DecisionGroupReference{Name: "canry"}, declared,
			remembering(func(s *v1alpha1.RolloutStatus) {
				s.FinishedAt = ago(0)
			}), ""},
	} {
		strategy := with(perGroup, func(s *v1alpha1.RolloutStrategy) {
			s.MandatoryGroups = []v1alpha1.DecisionGroupReference{test.group}
		})
		o := observe(strategy, "a r1 Succeeded 3h 1", "new - - - 1")
		o.Groups = test.groups
		plan := looks(t, test.status, o)
		if plan.Problem != test.problem || (test.problem == "") != (len(plan.Update) > 0) {
			t.Errorf("%s: want the problem %q, got %q, and %v to update", test.reason, test.problem, plan.Problem, plan.Update)
		}
		if test.problem == "" {
			continue
		}
		if want := "The rollout strategy is invalid: " + test.problem + "."; plan.Status.Phase != v1alpha1.PhaseFailed ||
			plan.Status.Message != want || len(plan.Hold) != 2 || len(plan.Stable) != 1 {
			t.Errorf("%s: want all held and to be told so, got %s %q, %v held", test.reason, plan.Status.Phase,
				plan.Status.Message, plan.Hold)
		}
	}
}
