package rollout

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

func anyShare(t *rapid.T, least int, name string) *intstr.IntOrString {
	switch rapid.IntRange(0, 2).Draw(t, name) {
	case 0:
		return nil
	case 1:
		return new(intstr.FromInt32(int32(rapid.IntRange(least, 20).Draw(t, name+" number"))))
	}
	return new(intstr.FromString(fmt.Sprintf("%d%%", rapid.IntRange(least, 100).Draw(t, name+" percent"))))
}

func anyGate(t *rapid.T, name string) v1alpha1.RolloutGate {
	return v1alpha1.RolloutGate{
		Approval:    rapid.IntRange(0, 3).Draw(t, name+" approval") == 0,
		WaitSeconds: int32(rapid.SampledFrom([]int{0, 0, 0, 20, 300}).Draw(t, name+" wait")),
	}
}

func anyStrategy(t *rapid.T) v1alpha1.RolloutStrategy {
	s := v1alpha1.RolloutStrategy{
		Type: rapid.SampledFrom([]v1alpha1.RolloutType{
			v1alpha1.RolloutAll, v1alpha1.RolloutProgressive, v1alpha1.RolloutProgressivePerGroup, v1alpha1.RolloutStages,
		}).Draw(t, "type"),
		MinSuccessSeconds:       int32(rapid.SampledFrom([]int{0, 0, 10, 60}).Draw(t, "soak")),
		ProgressDeadlineSeconds: int32(rapid.SampledFrom([]int{0, 30, 120}).Draw(t, "deadline")),
		MaxFailures:             anyShare(t, 0, "maxFailures"),
		OnFailure: rapid.SampledFrom([]v1alpha1.FailureAction{v1alpha1.FailureHalt, v1alpha1.FailureRollBack}).
			Draw(t, "onFailure"),
	}
	if s.Type != v1alpha1.RolloutAll {
		s.MaxConcurrency = anyShare(t, 1, "maxConcurrency")
	}
	switch s.Type {
	case v1alpha1.RolloutProgressivePerGroup:
		if rapid.Bool().Draw(t, "by name") {
			s.MandatoryGroups = append(s.MandatoryGroups, v1alpha1.DecisionGroupReference{Name: "g1"})
		}
		if rapid.Bool().Draw(t, "by index") {
			s.MandatoryGroups = append(s.MandatoryGroups, v1alpha1.DecisionGroupReference{Index: new(int32(2))})
		}
	case v1alpha1.RolloutStages:
		for i := range rapid.IntRange(1, 3).Draw(t, "stages") {
			name := fmt.Sprintf("s%d", i)
			stage := v1alpha1.RolloutStage{
				Name: name, MaxConcurrency: anyShare(t, 1, name+" maxConcurrency"),
				OrderBy: rapid.SampledFrom([]string{"", "order"}).Draw(t, "orderBy"),
				Before:  anyGate(t, name+" before"), After: anyGate(t, name+" after"),
			}
			if rapid.IntRange(0, 3).Draw(t, name+" selects") > 0 {
				stage.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"env": name}}
			}
			s.Stages = append(s.Stages, stage)
		}
	}
	return s
}

// anyGroups returns the groups of the rollout or, rarely, all but one.
func anyGroups(t *rapid.T) []Group {
	all := []Group{{}, {Name: "g1", Index: 1}, {Index: 2}, {Index: 3}}
	switch rapid.IntRange(0, 5).Draw(t, "declared") {
	case 0:
		return all[:2]
	case 1:
		return all[2:]
	case 2:
		return nil
	}
	return all
}

// join adds a cluster without a revision, or with one from before the rollout.
func (w *simulatedRollout) join(t *rapid.T) {
	w.names++
	c := &cluster{Target: Target{
		Name:   fmt.Sprintf("c%d", w.names),
		Health: rapid.SampledFrom([]Health{Succeeded, Succeeded, Unknown, Failed, Progressing}).Draw(t, "health"),
		Since:  epoch.Add(-time.Hour), HealthSince: epoch.Add(-time.Hour),
		Labels: map[string]string{"env": rapid.SampledFrom([]string{"s0", "s1", "s2", "s3"}).Draw(t, "env")},
		Group:  Group{Index: int32(rapid.IntRange(0, 3).Draw(t, "group"))},
	}}
	if c.Group.Index == 1 {
		c.Group.Name = "g1"
	}
	if rapid.Bool().Draw(t, "has order") {
		c.Labels["order"] = rapid.SampledFrom([]string{"2", "10", "a", "b"}).Draw(t, "order")
	}
	w.clusters = append(w.clusters, c)
}

func (w *simulatedRollout) newRevision(t *rapid.T) {
	w.revisions++
	w.revision = fmt.Sprintf("r%d", w.revisions)
	if w.revisions > 2 && rapid.IntRange(0, 2).Draw(t, "old revision") == 0 {
		w.revision = fmt.Sprintf("r%d", rapid.IntRange(1, w.revisions-1).Draw(t, "which"))
	}
}

func (w *simulatedRollout) approve(stage string) {
	for _, gate := range []v1alpha1.GatePosition{v1alpha1.GateBefore, v1alpha1.GateAfter} {
		w.approvals = append(w.approvals, v1alpha1.RolloutApproval{Revision: w.revision, Stage: stage, Gate: gate})
	}
}

// event makes a random change outside of the rollout.
func (w *simulatedRollout) event(t *rapid.T) {
	some := func() *cluster { return rapid.SampledFrom(w.clusters).Draw(t, "cluster") }
	switch event := rapid.IntRange(0, 16).Draw(t, "event"); {
	case event == 0:
		w.join(t)
	case event == 1 && len(w.clusters) > 0:
		gone := some()
		if failed := slices.IndexFunc(w.clusters, w.isFailure); failed >= 0 && rapid.Bool().Draw(t, "failed cluster") {
			gone = w.clusters[failed]
		}
		w.clusters = slices.DeleteFunc(w.clusters, func(c *cluster) bool { return c == gone })
		w.gone = append(w.gone, gone)
	case event == 10 && len(w.gone) > 0: // a cluster returns without a revision
		back := *w.gone[0]
		w.gone = w.gone[1:]
		back.Revision, back.assigned, back.moved, back.due = "", false, false, time.Time{}
		w.clusters = append(w.clusters, &back)
	case event == 2 && len(w.clusters) > 0: // the health changes without an update
		c := some()
		c.assigned = false
		c.Health, c.HealthSince, c.due = rapid.SampledFrom([]Health{Progressing, Unknown, Failed, Succeeded}).Draw(t,
			"new health"), w.now, time.Time{}
	case event == 3 && len(w.strategy.Stages) > 0:
		w.approve(rapid.SampledFrom(w.strategy.Stages).Draw(t, "stage").Name)
	case event == 4:
		w.newRevision(t)
	case event == 5:
		w.strategy.State = rapid.SampledFrom([]v1alpha1.RolloutState{v1alpha1.RolloutRun, v1alpha1.RolloutPause,
			v1alpha1.RolloutStop}).Draw(t, "state")
	case event == 6 && len(w.approvals) > 0:
		w.approvals = w.approvals[1:]
	case event == 7 && rapid.Bool().Draw(t, "reset"): // clusters with a revision may now move to it
		w.status, w.unwell = v1alpha1.RolloutStatus{}, nil
		for _, c := range w.clusters {
			c.moved = c.Revision != ""
		}
	case event == 8:
		w.strategy, w.groups = anyStrategy(t), anyGroups(t)
	case event == 9 && len(w.clusters) > 0:
		some().Labels = map[string]string{"env": "s0"}
	default:
		w.advance(time.Duration(rapid.SampledFrom([]int{1, 5, 10, 30, 100}).Draw(t, "seconds")) * time.Second)
	}
}

// runToEnd executes all events that the rollout waits for, until nothing changes any more.
func (w *simulatedRollout) runToEnd(t *rapid.T) Plan {
	w.strategy.State = v1alpha1.RolloutRun
	for range 100 + 30*len(w.clusters) {
		plan := w.nextPlan(t)
		w.carryOut(t, plan, len(plan.Update))
		if len(plan.Update) > 0 {
			continue
		}
		if plan.Status.Phase == v1alpha1.PhaseWaitingForApproval {
			i := slices.IndexFunc(plan.Status.Stages, func(s v1alpha1.RolloutStageStatus) bool {
				return s.Phase == plan.Status.Phase
			})
			w.approve(plan.Status.Stages[i].Name)
			continue
		}
		rest := w.untilChange(plan)
		if rest == 0 {
			return plan
		}
		w.advance(rest)
	}
	t.Fatalf("the rollout does not end:\n%s", w)
	return Plan{}
}

func (w *simulatedRollout) checkEnd(t *rapid.T, plan Plan) {
	switch phase := plan.Status.Phase; phase {
	case v1alpha1.PhaseFailed:
		must, may := w.failures()
		if must == 0 && may <= portion(w.strategy.MaxFailures, len(w.clusters), 0) {
			if !w.lost(10000) && !w.undeclared() {
				t.Fatalf("the rollout failed, but only %d clusters failed:\n%s", may, w)
			}
			return
		}
		if (plan.Problem != "") != w.undeclared() {
			t.Fatalf("undeclared group: %v, but the problem is %q", w.undeclared(), plan.Problem)
		}
		if w.undeclared() {
			return
		}
		if stable := w.status.StableRevision; w.strategy.OnFailure == v1alpha1.FailureRollBack && stable != "" &&
			stable != w.revision {
			t.Fatalf("the rollout was not rolled back to %s", stable)
		}
	case v1alpha1.PhaseSucceeded, v1alpha1.PhaseRolledBack:
		ended := plan.Status.FinishedAt
		if plan.Status.Rollback != nil {
			ended = plan.Status.Rollback.FinishedAt
		}
		if len(w.clusters) > 0 && (ended == nil || !ended.Equal(plan.Status.StableSince) ||
			plan.Status.StableRevision != plan.Revision) {
			t.Fatalf("%s at %v, and stable since %v at %q", phase, ended, plan.Status.StableSince, plan.Status.StableRevision)
		}
		if len(plan.Hold) > 0 {
			t.Fatalf("%s, but %v are on hold", phase, plan.Hold)
		}
		if want := w.revision; phase == v1alpha1.PhaseSucceeded && plan.Revision != want {
			t.Fatalf("%s at revision %s", phase, plan.Revision)
		}
	default:
		t.Fatalf("the rollout ended in phase %s:\n%s", phase, w)
	}
}

// TestNext_RandomEvents checks for random events that no plan is wrong, and that the rollout ends when there are no
// more events.
func TestNext_RandomEvents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &simulatedRollout{now: epoch.Add(700 * time.Millisecond), strategy: anyStrategy(t), groups: anyGroups(t)}
		for range rapid.IntRange(0, 12).Draw(t, "clusters") {
			w.join(t)
		}
		w.newRevision(t)
		if rapid.Bool().Draw(t, "a first rollout") {
			w.strategy.MaxFailures = new(intstr.FromString("100%"))
			w.runToEnd(t)
			w.newRevision(t)
			w.strategy = anyStrategy(t)
		}
		for range rapid.IntRange(0, 40).Draw(t, "events") {
			w.event(t)
			if rapid.Bool().Draw(t, "reconcile") {
				plan := w.nextPlan(t)
				w.carryOut(t, plan, rapid.IntRange(0, len(plan.Update)).Draw(t, "updates before a crash"))
			}
		}
		w.checkEnd(t, w.runToEnd(t))
	})
}
