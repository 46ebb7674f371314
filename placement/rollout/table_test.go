package rollout

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// TestNext_StageTable checks the table of stages, with the phase and the counts of each stage.
func TestNext_StageTable(t *testing.T) {
	gates := with(staged, func(s *v1alpha1.RolloutStrategy) {
		s.Stages[0].After.Approval = true
		s.MinSuccessSeconds = 60
		s.MaxFailures = number(1)
	})
	for _, test := range []struct {
		reason   string
		strategy v1alpha1.RolloutStrategy
		status   v1alpha1.RolloutStatus
		targets  []string
		want     string
	}{
		{
			"a rollout without stages has one row", oneByOne, underWay,
			[]string{"a r2 Progressing 1s", "b r2 Succeeded 1m", "c"},
			"All Progressing 1 pending, 1 progressing, 1 succeeded",
		},
		{
			"rows of groups have the index of the group", perGroup, underWay,
			[]string{"a r2 Succeeded 1m 7", "b r1 Succeeded 3h 8"},
			"7 Succeeded 1 succeeded; 8 Progressing 1 pending",
		},
		{
			"a soaking stage, a pending stage, and clusters in no stage", gates, underWay,
			[]string{"a r2 Succeeded 1s 0", "b r1 Succeeded 3h 1", "c"},
			"canary Soaking 1 soaking; prod Pending 1 pending; Remaining Pending 1 pending",
		},
		{
			"a stage that waits for an approval", gates, underWay,
			[]string{"a r2 Unknown 1h 0", "b r1 Succeeded 3h 1"},
			"canary WaitingForApproval 1 timed out; prod Pending 1 pending",
		},
		{
			"a failed stage", staged, underWay,
			[]string{"a r2 Failed 1s 0", "b r2 Progressing 1s 0", "c r1 Succeeded 3h 1"},
			"canary Failed 1 progressing, 1 failed; prod Pending 1 pending",
		},
		{
			"a rollback", with(staged, func(s *v1alpha1.RolloutStrategy) {
				s.OnFailure = v1alpha1.FailureRollBack
			}), underWay,
			[]string{"a r2 Failed 1s 0", "b r2 Progressing 1s 0", "c r1 Succeeded 3h 1"},
			"canary RollingBack 2 pending; prod RolledBack 1 succeeded",
		},
		{
			"a mandatory group that has lost its clusters", mandatoryFirst, unfinished("0"),
			[]string{"c r1 Succeeded 3h 1"},
			"0 Failed ; 1 Pending 1 pending",
		},
	} {
		o := Observed{Now: epoch, Strategy: test.strategy, Revision: "r2", Status: test.status}
		for _, text := range test.targets {
			o.Targets = append(o.Targets, target(text))
		}
		plan, err := Next(o)
		if err != nil {
			t.Errorf("%s: %v", test.reason, err)
		}
		var rows []string
		for _, row := range plan.Status.Stages {
			var counts []string
			for i, n := range []int32{row.Pending, row.Progressing, row.Soaking, row.Succeeded, row.Failed, row.TimedOut} {
				if n > 0 {
					counts = append(counts,
						fmt.Sprintf("%d %s", n, []string{"pending", "progressing", "soaking", "succeeded", "failed", "timed out"}[i]))
				}
			}
			rows = append(rows, fmt.Sprintf("%s %s %s", row.Name, row.Phase, strings.Join(counts, ", ")))
		}
		if diff := cmp.Diff(test.want, strings.Join(rows, "; ")); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", test.reason, diff)
		}
	}
}

// TestNext_StageTableIsBounded checks that groups are rolled out even if there are more than the table can list.
func TestNext_StageTableIsBounded(t *testing.T) {
	o := Observed{Now: epoch, Strategy: perGroup, Revision: "r2", Status: underWay}
	for i := range 300 {
		o.Targets = append(o.Targets, Target{
			Name: fmt.Sprint(i), Group: Group{Name: "g", Index: int32(i)}, Revision: "r2",
			Since: epoch, Health: Succeeded, HealthSince: epoch,
		})
	}
	o.Targets[280].Revision = "r1"
	plan, err := Next(o)
	if err != nil || len(plan.Update) != 1 || len(plan.Status.Stages) != maxRows || plan.Status.Stages[7].Name != "g/7" {
		t.Errorf("want one cluster to update and %d rows, got %v, %d and %v", maxRows, plan.Update, len(plan.Status.Stages),
			err)
	}
}
