package rollout_test

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/muster-sdk/muster/placement/rollout"
	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// ExampleNext updates a canary, waits for an approval, and then updates the other clusters two at a time. The second
// of them fails, and all clusters are rolled back.
func ExampleNext() {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	observed := rollout.Observed{
		Strategy: v1alpha1.RolloutStrategy{
			Type: v1alpha1.RolloutStages,
			Stages: []v1alpha1.RolloutStage{
				{
					Name:     "canary",
					Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "canary"}},
					After:    v1alpha1.RolloutGate{Approval: true},
				},
				{Name: "prod", MaxConcurrency: new(intstr.FromInt32(2))},
			},
			OnFailure: v1alpha1.FailureRollBack,
		},
		Revision: "v2",
		Status: v1alpha1.RolloutStatus{Revision: "v1", StableRevision: "v1",
			StableSince: new(metav1.NewTime(now.Add(-time.Hour)))},
	}
	for _, name := range []string{"east", "north", "south", "west"} {
		observed.Targets = append(observed.Targets, rollout.Target{Name: name, Revision: "v1", Since: now.Add(-2 * time.Hour),
			Health: rollout.Succeeded})
	}
	observed.Targets[3].Labels = map[string]string{"env": "canary"}

	// A controller stores the status, assigns the revision to the clusters, and records the time.
	step := func() {
		now = now.Add(time.Minute)
		observed.Now = now
		plan, err := rollout.Next(observed)
		if err != nil {
			panic(err)
		}
		observed.Status = plan.Status
		for _, name := range plan.Update {
			for i := range observed.Targets {
				if t := &observed.Targets[i]; t.Name == name {
					t.Revision, t.Since, t.Health, t.HealthSince = plan.Revision, now, rollout.Progressing, now
				}
			}
		}
		fmt.Println(plan.Status.Phase, plan.Update, plan.Status.Message)
	}
	report := func(health rollout.Health, names ...int) {
		for _, i := range names {
			observed.Targets[i].Health, observed.Targets[i].HealthSince = health, now
		}
	}

	step()
	report(rollout.Succeeded, 3)
	step()
	observed.Approvals = []v1alpha1.RolloutApproval{{Revision: "v2", Stage: "canary", Gate: v1alpha1.GateAfter}}
	step()
	report(rollout.Succeeded, 0)
	report(rollout.Failed, 1)
	step()
	report(rollout.Succeeded, 0, 1, 3)
	step()
	// Output:
	// Progressing [west] Updating in stage canary: 0 of 4 clusters at v2, 1 progressing.
	// WaitingForApproval [] Waiting for the approval after stage canary.
	// Progressing [east north] Updating in stage prod: 1 of 4 clusters at v2, 2 progressing.
	// RollingBack [north west east] Rolled back: 1 of 4 clusters at v1. 1 cluster failed, and maxFailures allows 0: north.
	// RolledBack [] Rolled back: 4 of 4 clusters at v1. 1 cluster failed, and maxFailures allows 0: north.
}
