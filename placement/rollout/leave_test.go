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

// evaluate evaluates one observation after the other, each with the status of the one before.
func evaluate(t *testing.T, status v1alpha1.RolloutStatus, observed ...Observed) Plan {
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

// TestNext_ClustersThatLeave checks that a failed cluster that leaves does not end the halt of a rollout.
func TestNext_ClustersThatLeave(t *testing.T) {
	rollBack := with(oneByOne, func(s *v1alpha1.RolloutStrategy) { s.OnFailure = v1alpha1.FailureRollBack })
	const prod = "prod r1 Succeeded 3h 1"
	first := v1alpha1.RolloutStatus{Revision: "r2", StartedAt: underWay.StartedAt}
	for _, test := range []struct {
		reason   string
		status   v1alpha1.RolloutStatus
		observed []Observed
		phase    v1alpha1.RolloutPhase
		update   string
		message  string
	}{
		{
			"a canary that fails and leaves halts the rollout", underWay,
			[]Observed{observe(mandatoryFirst, "canary r2 Failed 1m 0", prod), observe(mandatoryFirst, prod)},
			"Failed", "", "1 cluster of a mandatory group failed: canary (left). Clusters that have left count until the " +
				"revision changes or the rollout state is set to Stop.",
		},
		{
			"a mandatory group is not finished if its clusters leave during the update", underWay,
			[]Observed{observe(mandatoryFirst, "canary r2 Progressing 1m 0", prod), observe(mandatoryFirst, prod)},
			"Failed", "", "All clusters of mandatory group 0 left before the group was updated. The rollout continues when a " +
				"cluster of the group returns. To continue without the group, set the rollout state to Stop and back to Run.",
		},
		{
			"a canary that returns is updated", underWay,
			[]Observed{observe(mandatoryFirst, "canary r2 Progressing 1m 0", prod), observe(mandatoryFirst, prod),
				observe(mandatoryFirst, "canary - - - 0", prod)},
			"Progressing", "canary", "",
		},
		{
			"another healthy cluster finishes the mandatory group", underWay,
			[]Observed{observe(mandatoryFirst, "canary r2 Progressing 1m 0", prod),
				observe(mandatoryFirst, "other r2 Succeeded 1m 0", prod)},
			"Progressing", "prod", "",
		},
		{
			"state Stop, then Run: the rollout continues without the mandatory group", underWay,
			[]Observed{observe(mandatoryFirst, "canary r2 Progressing 1m 0", prod), observe(stopped(mandatoryFirst), prod),
				observe(mandatoryFirst, prod)},
			"Progressing", "prod", "",
		},
		{
			"state Stop, then Run: the rollout continues although the canary failed", underWay,
			[]Observed{observe(mandatoryFirst, "canary r2 Failed 1m 0", prod), observe(stopped(mandatoryFirst), prod),
				observe(mandatoryFirst, prod)},
			"Progressing", "prod", "",
		},
		{
			"a finished mandatory group may lose its clusters", underWay,
			[]Observed{observe(mandatoryFirst, "canary r2 Succeeded 1m 0", prod), observe(mandatoryFirst, prod)},
			"Progressing", "prod", "",
		},
		{
			"a mandatory group that never had a cluster is skipped", underWay,
			[]Observed{observe(mandatoryFirst, prod), observe(mandatoryFirst, prod)},
			"Progressing", "prod", "",
		},
		{
			"the group is no longer mandatory", underWay,
			[]Observed{observe(mandatoryFirst, "canary r2 Failed 1m 0", prod), observe(tolerating(perGroup, number(1)), prod)},
			"Progressing", "prod", "",
		},
		{
			"a failure is kept while all clusters are missing", underWay,
			[]Observed{observe(mandatoryFirst, "canary r2 Failed 1m 0", prod), observe(mandatoryFirst),
				observe(mandatoryFirst, prod)},
			"Failed", "", "",
		},
		{
			"a failed cluster that left is a failure without mandatory groups", underWay,
			[]Observed{observe(oneByOne, "a r2 Failed 1m", "b r1 Succeeded 3h"), observe(oneByOne, "b r1 Succeeded 3h")},
			"Failed", "", "1 cluster failed, and maxFailures allows 0: a (left). Clusters that have left count until the " +
				"revision changes or the rollout state is set to Stop.",
		},
		{
			"failures of existing clusters and of clusters that left are added", underWay,
			[]Observed{observe(tolerating(oneByOne, number(1)), "a r2 Failed 1m", "b r1 Succeeded 3h"),
				observe(tolerating(oneByOne, number(1)), "b r2 Failed 1s", "c r1 Succeeded 3h")},
			"Failed", "", "2 clusters failed, and maxFailures allows 1: b, a (left). Clusters that have left count until the " +
				"revision changes or the rollout state is set to Stop.",
		},
		{
			"the failure of a cluster that left is tolerated", underWay,
			[]Observed{observe(oneByOne, "a r2 Failed 1m", "b r1 Succeeded 3h"),
				observe(tolerating(oneByOne, number(1)), "b r1 Succeeded 3h")},
			"Progressing", "b", "",
		},
		{
			"another revision clears the failures of clusters that left", underWay,
			[]Observed{observe(oneByOne, "a r2 Failed 1m", "b r1 Succeeded 3h"),
				{Strategy: oneByOne, Revision: "r3", Targets: []Target{target("b r1 Succeeded 3h")}}},
			"Progressing", "b", "",
		},
		{
			"a failed cluster that returns without a revision is still a failure", underWay,
			[]Observed{observe(oneByOne, "a r2 Failed 1m", "b r1 Succeeded 3h"), observe(oneByOne, "b r1 Succeeded 3h"),
				observe(oneByOne, "a", "b r1 Succeeded 3h")},
			"Failed", "", "",
		},
		{
			"a failed cluster that returns with the stable revision is still a failure", underWay,
			[]Observed{observe(oneByOne, "a r2 Failed 1m", "b r1 Succeeded 3h"),
				observe(oneByOne, "a r1 Succeeded 1s", "b r1 Succeeded 3h")},
			"Failed", "", "",
		},
		{
			"a failed cluster that returns healthy at the revision is no failure", underWay,
			[]Observed{observe(oneByOne, "a r2 Failed 1m", "b r1 Succeeded 3h"), observe(oneByOne, "b r1 Succeeded 3h"),
				observe(oneByOne, "a r2 Succeeded 1s", "b r1 Succeeded 3h")},
			"Progressing", "b", "",
		},
		{
			"an unreachable cluster that leaves is a failure", underWay,
			[]Observed{observe(oneByOne, "a r2 Unknown 1m", "b r1 Succeeded 3h"), observe(oneByOne, "b r1 Succeeded 3h")},
			"Failed", "", "",
		},
		{
			"a cluster that was reachable again before it left is no failure", underWay,
			[]Observed{observe(oneByOne, "a r2 Unknown 1m", "b r1 Succeeded 3h"),
				observe(oneByOne, "a r2 Progressing 1m", "b r1 Succeeded 3h"), observe(oneByOne, "b r1 Succeeded 3h")},
			"Progressing", "b", "",
		},
		{
			"without a stable revision, an unreachable cluster that left is no failure", first,
			[]Observed{observe(oneByOne, "a r2 Unknown 1m", "b"), observe(oneByOne, "b")},
			"Progressing", "b", "",
		},
		{
			"the failure of a cluster that left starts a rollback", underWay,
			[]Observed{observe(rollBack, "a r2 Unknown 1m", "b r2 Succeeded 10m", "c r1 Succeeded 3h"),
				observe(rollBack, "b r2 Succeeded 10m", "c r1 Succeeded 3h")},
			"RollingBack", "b", "Rolled back: 1 of 2 clusters at r1. 1 cluster failed, and maxFailures allows 0: a (left).",
		},
	} {
		plan := evaluate(t, test.status, test.observed...)
		if got := strings.Join(plan.Update, " "); plan.Status.Phase != test.phase || got != test.update {
			t.Errorf("%s: want %s and %q to update, got %s and %q: %s", test.reason, test.phase, test.update, plan.Status.Phase,
				got, plan.Status.Message)
		}
		if test.message != "" && plan.Status.Message != test.message {
			t.Errorf("%s: want %q, got %q", test.reason, test.message, plan.Status.Message)
		}
	}
}

// TestNext_UnwellIsBounded checks that the number of stored clusters is limited, and that no target is updated when the
// limit is reached.
func TestNext_UnwellIsBounded(t *testing.T) {
	many := observe(tolerating(oneByOne, number(1000)))
	for i := range 50 {
		many.Targets = append(many.Targets, target(fmt.Sprintf("c%02d r2 Failed 1m", i)))
	}
	rest := observe(many.Strategy, "prod r1 Succeeded 3h")
	many.Targets = append(many.Targets, rest.Targets...)
	if plan := evaluate(t, underWay, many); len(plan.Status.Unwell) != maxUnwell || len(plan.Update) != 1 {
		t.Errorf("want %d stored clusters and one to update, got %d and %v", maxUnwell, len(plan.Status.Unwell), plan.Update)
	}
	if plan := evaluate(t, underWay, many, rest, rest); len(plan.Status.Unwell) != maxUnwell || len(plan.Update) > 0 {
		t.Errorf("want %d stored clusters and none to update, got %d and %v", maxUnwell, len(plan.Status.Unwell), plan.Update)
	}
	recovered := observe(many.Strategy, "prod r2 Succeeded 1m")
	if plan := evaluate(t, underWay, observe(many.Strategy, "a r2 Failed 1m", "prod r2 Succeeded 1m"),
		recovered); plan.Status.Phase != v1alpha1.PhaseSucceeded || plan.Status.Unwell != nil {
		t.Errorf("a finished rollout still stores %v", plan.Status.Unwell)
	}
}

// TestNext_ClustersWithoutRevision checks that a cluster without a revision gets the stable revision without waiting
// for the new one.
func TestNext_ClustersWithoutRevision(t *testing.T) {
	paused := with(oneByOne, func(s *v1alpha1.RolloutStrategy) { s.State = v1alpha1.RolloutPause })
	approving := with(staged, func(s *v1alpha1.RolloutStrategy) { s.Stages[0].After.Approval = true })
	rollingBack := statusWith(func(s *v1alpha1.RolloutStatus) {
		s.Rollback = &v1alpha1.RollbackStatus{StartedAt: *ago(0)}
	})
	done := statusWith(func(s *v1alpha1.RolloutStatus) {
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
		{"the rollout is stopped", underWay, observe(stopped(oneByOne), "new", old), "", "new"},
		{"the rollout is halted", underWay, observe(oneByOne, "bad r2 Failed 1m", "new", old), "", "new"},
		{"the rollout waits for an approval",
			underWay, observe(approving, "canary r2 Succeeded 5m 0", "new - - - 1", old), "", "new"},
		{"another group is being updated", underWay, observe(perGroup, "canary r2 Progressing 1m 0", "new - - - 1", old), "",
			"new"},
		{"a mandatory group has lost its clusters", unfinished("0"), observe(mandatoryFirst, "new - - - 1", old), "", "new"},
		{"all slots are occupied: the stable revision needs none", underWay,
			observe(oneByOne, "a r2 Progressing 1m", "new", "newer", old), "", "new newer"},
		{"a slot is free", underWay, observe(oneByOne, "new", old), "new", ""},
		{"the rollout is rolled back", rollingBack, observe(oneByOne, "bad r2 Failed 1m", "new", old), "bad", ""},
		{"the rollback is paused", rollingBack, observe(paused, "bad r2 Failed 1m", "new", old), "", "new"},
		{"the rollout finished before the pause", done, observe(paused, "new", "b r2 Succeeded 3h"), "", "new"},
		{"the rollout finished: new clusters are updated within the slots", done,
			observe(oneByOne, "new", "newer", "b r2 Succeeded 3h"), "new", ""},
		{
			"the revision that is rolled out is the stable one", statusWith(func(s *v1alpha1.RolloutStatus) {
				s.StableRevision = "r2"
			}),
			observe(approving, "canary r2 Progressing 1s 0", "new - - - 1"), "", "",
		},
		{"no stable revision", v1alpha1.RolloutStatus{}, observe(paused, "new"), "", ""},
	} {
		plan := evaluate(t, test.status, test.o)
		got := [2]string{strings.Join(plan.Update, " "), strings.Join(plan.Stable, " ")}
		if diff := cmp.Diff([2]string{test.update, test.stable}, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s%s", test.reason, diff, plan.Status.Message)
		}
	}
}

func unfinished(stage string) v1alpha1.RolloutStatus { return finished(stage, nil) }

// TestNext_UndeclaredMandatoryGroup checks that a mandatory group with a wrong name is not skipped.
func TestNext_UndeclaredMandatoryGroup(t *testing.T) {
	declared := []Group{{Name: "canary"}, {Index: 1}}
	for _, test := range []struct {
		reason  string
		group   v1alpha1.DecisionGroupReference
		groups  []Group
		status  v1alpha1.RolloutStatus
		problem string
	}{
		{"an undeclared name",
			v1alpha1.DecisionGroupReference{Name: "canry"}, declared, underWay, "mandatoryGroups[0]: no Placement " +
				"has a decision group canry: correct the name, or declare it in spec.decisionGroups of a Placement"},
		{"an undeclared index", v1alpha1.DecisionGroupReference{Index: new(int32(2))}, declared, underWay,
			"mandatoryGroups[0]: no decision group has the index 2: the Placements have 2 groups, counted from 0"},
		{"a declared group without clusters", v1alpha1.DecisionGroupReference{Name: "canary"}, declared, underWay, ""},
		{"declared groups are unknown", v1alpha1.DecisionGroupReference{Name: "canry"}, nil, underWay, ""},
		{"the rollout is finished", v1alpha1.DecisionGroupReference{Name: "canry"}, declared,
			statusWith(func(s *v1alpha1.RolloutStatus) {
				s.FinishedAt = ago(0)
			}), ""},
	} {
		strategy := with(perGroup, func(s *v1alpha1.RolloutStrategy) {
			s.MandatoryGroups = []v1alpha1.DecisionGroupReference{test.group}
		})
		o := observe(strategy, "a r1 Succeeded 3h 1", "new - - - 1")
		o.Groups = test.groups
		plan := evaluate(t, test.status, o)
		if plan.Problem != test.problem || (test.problem == "") != (len(plan.Update) > 0) {
			t.Errorf("%s: want the problem %q, got %q, and %v to update", test.reason, test.problem, plan.Problem, plan.Update)
		}
		if test.problem == "" {
			continue
		}
		if want := "The rollout strategy is invalid: " + test.problem + "."; plan.Status.Phase != v1alpha1.PhaseFailed ||
			plan.Status.Message != want || len(plan.Hold) != 2 || len(plan.Stable) != 1 {
			t.Errorf("%s: want all clusters on hold and the problem in the message, got %s %q, %v on hold", test.reason,
				plan.Status.Phase, plan.Status.Message, plan.Hold)
		}
	}
}
