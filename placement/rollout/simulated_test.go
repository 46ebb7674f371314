package rollout

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

var epoch = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// simulatedRollout simulates clusters that react at random to the revisions that are assigned to them. It records the
// effects of the rollout on each cluster, and checks every plan against them.
type simulatedRollout struct {
	now       time.Time
	strategy  v1alpha1.RolloutStrategy
	revision  string
	clusters  []*cluster
	groups    []Group // declared groups; nil: unknown
	approvals []v1alpha1.RolloutApproval
	status    v1alpha1.RolloutStatus
	unwell    map[string]*cluster // as the status was stored last
	gone      []*cluster
	names     int
	revisions int
}

type cluster struct {
	Target
	assigned bool // by a rollout, and not healthy since
	moved    bool // by a rollout that has not finished since
	due      time.Time
	next     Health // at due
}

func (w *simulatedRollout) observed() Observed {
	o := Observed{Now: w.now, Strategy: w.strategy, Revision: w.revision, Groups: w.groups, Approvals: w.approvals,
		Status: w.status}
	for _, c := range w.clusters {
		o.Targets = append(o.Targets, c.Target)
	}
	return o
}

// underWay, soaks and isFailure compute the states of the package documentation from the data of the rollout.
func (w *simulatedRollout) underWay(c *cluster) bool {
	return c.assigned && !w.released(c) && c.Health != Succeeded && c.Health != Failed &&
		w.now.Before(c.since().Add(deadlineOf(w.strategy)))
}

func (w *simulatedRollout) soaks(c *cluster) bool {
	return c.moved && !w.released(c) && c.Health == Succeeded &&
		w.now.Before(c.since().Add(seconds(w.strategy.MinSuccessSeconds)))
}

// released reports whether the stage of a cluster that is at the revision was done after the revision was assigned.
func (w *simulatedRollout) released(c *cluster) bool {
	row := w.row(c)
	return c.Revision == w.revision && w.status.Revision == w.revision && row != nil && row.FinishedAt != nil &&
		c.Since.Before(row.FinishedAt.Time) && !c.HealthSince.Before(row.FinishedAt.Time)
}

func (w *simulatedRollout) row(c *cluster) *v1alpha1.RolloutStageStatus {
	name := "All"
	switch w.strategy.Type {
	case v1alpha1.RolloutProgressivePerGroup:
		name = c.Group.String()
	case v1alpha1.RolloutStages:
		name = "Remaining"
		if i := w.stageOf(c); i < len(w.strategy.Stages) {
			name = w.strategy.Stages[i].Name
		}
	}
	for i := range w.status.Stages {
		if w.status.Stages[i].Name == name {
			return &w.status.Stages[i]
		}
	}
	return nil
}

func (w *simulatedRollout) isFailure(c *cluster) bool {
	unwell := c.Health != Succeeded && !w.now.Before(c.since().Add(deadlineOf(w.strategy)))
	return c.moved && c.Revision == w.revision && (c.Health == Failed || unwell)
}

func (c *cluster) since() time.Time {
	if c.HealthSince.After(c.Since) {
		return c.HealthSince
	}
	return c.Since
}

func deadlineOf(s v1alpha1.RolloutStrategy) time.Duration {
	if s.ProgressDeadlineSeconds == 0 {
		return 10 * time.Minute
	}
	return time.Duration(s.ProgressDeadlineSeconds) * time.Second
}

// stageOf returns the rank of the stage of a cluster, lower first.
func (w *simulatedRollout) stageOf(c *cluster) int {
	switch w.strategy.Type {
	case v1alpha1.RolloutProgressivePerGroup:
		for i, ref := range w.strategy.MandatoryGroups {
			if ref.Index != nil && *ref.Index == c.Group.Index || ref.Index == nil && ref.Name == c.Group.Name {
				return i*100 + int(c.Group.Index)
			}
		}
		return 10000 + int(c.Group.Index)
	case v1alpha1.RolloutStages:
		for i, s := range w.strategy.Stages {
			if s.Selector == nil || labels.SelectorFromSet(s.Selector.MatchLabels).Matches(labels.Set(c.Labels)) {
				return i
			}
		}
		return 100
	}
	return 0
}

func (w *simulatedRollout) mandatory(c *cluster) bool {
	return w.strategy.Type == v1alpha1.RolloutProgressivePerGroup && w.stageOf(c) < 10000
}

func portion(of *intstr.IntOrString, total, fallback int) int {
	if of == nil {
		return fallback
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(of, total, false)
	if err != nil {
		panic(err)
	}
	return n
}

// limits returns the maximum number of clusters that may be updated at a time, in all and in the stage.
func (w *simulatedRollout) limits(stage int) (all, in int) {
	n := len(w.clusters)
	all, in = n, n
	if w.strategy.Type == v1alpha1.RolloutProgressive {
		all = n / 4
	}
	all = max(1, portion(w.strategy.MaxConcurrency, n, all))
	if w.strategy.Type == v1alpha1.RolloutStages {
		in = 1
		if stage < len(w.strategy.Stages) {
			in = max(1, portion(w.strategy.Stages[stage].MaxConcurrency,
				w.countIn(stage, func(*cluster) bool { return true }), 1))
		}
	}
	return all, in
}

func (w *simulatedRollout) countIn(stage int, matches func(*cluster) bool) (n int) {
	for _, c := range w.clusters {
		if (stage < 0 || w.stageOf(c) == stage) && matches(c) {
			n++
		}
	}
	return n
}

func (w *simulatedRollout) cluster(name string) *cluster {
	i := slices.IndexFunc(w.clusters, func(c *cluster) bool { return c.Name == name })
	if i < 0 {
		return nil
	}
	return w.clusters[i]
}

var same = cmp.Options{cmpopts.EquateEmpty()}

func mustNext(t *rapid.T, o Observed) Plan {
	plan, err := Next(o)
	if err != nil {
		t.Fatalf("next: %v", err)
	}
	return plan
}

// nextPlan computes a plan, and checks it.
func (w *simulatedRollout) nextPlan(t *rapid.T) Plan {
	o := w.observed()
	before := mustJSON(o)
	plan := mustNext(t, o)
	if mustJSON(o) != before {
		t.Fatalf("Next changes its argument")
	}

	// The result must be equal for another order of the input, after the status was stored by the API, and with the new
	// status.
	again := o
	again.Targets = rapid.Permutation(o.Targets).Draw(t, "targets")
	again.Status = throughAPI(t, again.Status)
	if diff := cmp.Diff(plan, mustNext(t, again), same); diff != "" {
		t.Fatalf("the plan depends on the order of the targets, or on precision that the API loses:\n%s", diff)
	}
	again.Status = throughAPI(t, plan.Status)
	if diff := cmp.Diff(plan, mustNext(t, again), same); diff != "" {
		t.Fatalf("Next is not idempotent:\n%s", diff)
	}
	// Time alone must change the plan only when the plan states it, and must not revert a former result.
	idle := again
	idle.Now = w.now.Add(max(plan.After-1, 0))
	if plan.After == 0 {
		idle.Now = w.now.Add(1000 * time.Hour)
	}
	late := mustNext(t, idle)
	late.After = plan.After
	if diff := cmp.Diff(plan, late, same); diff != "" {
		t.Fatalf("the plan changes before %s have passed:\n%s", plan.After, diff)
	}
	if plan.After != 0 {
		idle.Now = w.now.Add(plan.After)
		w.checkMonotone(t, plan, mustNext(t, idle))
	}
	w.checkComplete(t, plan)
	w.checkMarks(t, plan)
	w.checkUpdates(t, plan)
	w.checkNewcomers(t, plan)
	return plan
}

func (w *simulatedRollout) checkMonotone(t *rapid.T, early, late Plan) {
	a, b := early.Status, late.Status
	if a.Phase == v1alpha1.PhaseSucceeded && b.Phase != a.Phase || a.Phase == v1alpha1.PhaseRolledBack &&
		b.Phase != a.Phase {
		t.Fatalf("time changes the phase from %s to %s", a.Phase, b.Phase)
	}
	if b.Rollback == nil && (b.Succeeded < a.Succeeded || b.TimedOut < a.TimedOut || b.Failed != a.Failed) {
		t.Fatalf("time changes the counts from %+v to %+v", a.RolloutCounts, b.RolloutCounts)
	}
	for i := range a.Stages {
		if a.Stages[i].ReachedAt != nil && !cmp.Equal(a.Stages[i].ReachedAt, b.Stages[i].ReachedAt) ||
			a.Stages[i].FinishedAt != nil && !cmp.Equal(a.Stages[i].FinishedAt, b.Stages[i].FinishedAt) {
			t.Fatalf("time changes ReachedAt or FinishedAt of a stage")
		}
	}
}

// checkComplete checks that each cluster is at the revision, or updated, or on hold.
func (w *simulatedRollout) checkComplete(t *rapid.T, plan Plan) {
	seen := map[string]bool{}
	for _, name := range plan.Update {
		seen[name] = true
	}
	for _, hold := range plan.Hold {
		if hold.Reason == "" || seen[hold.Target] {
			t.Fatalf("%s is on hold for %q", hold.Target, hold.Reason)
		}
		seen[hold.Target] = true
	}
	if len(seen) != len(plan.Update)+len(plan.Hold) {
		t.Fatalf("the plan contains a cluster twice")
	}
	for _, c := range w.clusters {
		if seen[c.Name] != (c.Revision != plan.Revision) {
			t.Fatalf("%s is at %q, and in the plan: %v", c.Name, c.Revision, seen[c.Name])
		}
	}
	var sum [7]int32
	for _, row := range plan.Status.Stages {
		for i, n := range []int32{row.Total, row.Pending, row.Progressing, row.Soaking, row.Succeeded, row.Failed,
			row.TimedOut} {
			sum[i] += n
		}
	}
	all := plan.Status.RolloutCounts
	if len(w.clusters) > 0 && sum != [7]int32{all.Total, all.Pending, all.Progressing, all.Soaking, all.Succeeded,
		all.Failed, all.TimedOut} || int(all.Total) != len(w.clusters) {
		t.Fatalf("the rows add up to %v, want %+v", sum, all)
	}
	if plan.Status.Message == "" || plan.Status.Phase == "" {
		t.Fatalf("the status has no message or no phase")
	}
}

// checkMarks checks that no unfinished stage is marked as finished.
func (w *simulatedRollout) checkMarks(t *rapid.T, plan Plan) {
	done := func(c *cluster) bool { return c.Revision == plan.Revision && !w.underWay(c) && !w.soaks(c) }
	for _, c := range w.clusters {
		former := w.row(c)
		status := w.status
		w.status = plan.Status
		is := w.row(c)
		w.status = status
		marked := is != nil && is.FinishedAt != nil && (former == nil || former.FinishedAt == nil ||
			status.Revision != plan.Status.Revision)
		if marked && plan.Status.Rollback == nil && !done(c) {
			t.Fatalf("stage %s is marked as finished, but %s is not done", is.Name, c.Name)
		}
		if plan.Status.FinishedAt != nil && (status.Revision != w.revision || status.FinishedAt == nil) && !done(c) {
			t.Fatalf("the rollout is marked as finished, but %s is not done", c.Name)
		}
		ended := plan.Status.Rollback != nil && plan.Status.Rollback.FinishedAt != nil &&
			(status.Rollback == nil || status.Rollback.FinishedAt == nil)
		if ended && (c.Revision != plan.Revision || w.underWay(c)) {
			t.Fatalf("the rollback is marked as finished, but %s is not done", c.Name)
		}
	}
}

// checkUpdates checks that each cluster that is updated may be updated.
func (w *simulatedRollout) checkUpdates(t *rapid.T, plan Plan) {
	if len(plan.Update) == 0 {
		return
	}
	if w.strategy.State == v1alpha1.RolloutPause || w.strategy.State == v1alpha1.RolloutStop {
		t.Fatalf("clusters are updated in state %s", w.strategy.State)
	}
	updated := func(c *cluster) bool { return slices.Contains(plan.Update, c.Name) }
	stillProgressing := func(c *cluster) bool {
		return c.moved && c.Health != Succeeded && c.Health != Failed && w.now.Before(c.since().Add(deadlineOf(w.strategy)))
	}
	newlyUpdated := func(c *cluster) bool { return updated(c) && !stillProgressing(c) }
	occupiedAtRevision := func(c *cluster) bool { return updated(c) || c.Revision == plan.Revision && w.underWay(c) }
	occupied := func(c *cluster) bool { return updated(c) || w.underWay(c) }
	stages := map[int]bool{}
	for _, name := range plan.Update {
		stages[w.stageOf(w.cluster(name))] = true
	}
	for stage := range stages {
		all, in := w.limits(stage)
		if w.countIn(stage, newlyUpdated) > 0 && (w.countIn(-1, occupied) > all || w.countIn(stage, occupied) > in) {
			t.Fatalf("%d clusters occupy slots, %d of them in stage %d, want at most %d and %d: %v\n%s%s",
				w.countIn(-1, occupied), w.countIn(stage, occupied), stage, all, in, plan.Update, w, mustJSON(w.status))
		}
		if w.countIn(-1, occupiedAtRevision) > all || w.countIn(stage, occupiedAtRevision) > in {
			t.Fatalf("%d clusters progress to the revision, %d of them in stage %d, want at most %d and %d:\n%s",
				w.countIn(-1, occupiedAtRevision), w.countIn(stage, occupiedAtRevision), stage, all, in, w)
		}
	}
	if plan.Revision != w.revision {
		if w.strategy.OnFailure != v1alpha1.FailureRollBack && w.status.Rollback == nil {
			t.Fatalf("the rollout is rolled back without onFailure RollBack")
		}
		return // a rollback has no order
	}
	if len(stages) > 1 {
		t.Fatalf("clusters of several stages are updated")
	}
	first := w.cluster(plan.Update[0])
	for _, c := range w.clusters {
		if w.stageOf(c) < w.stageOf(first) && (c.Revision != w.revision || w.underWay(c) || w.soaks(c)) {
			t.Fatalf("%s is updated before %s is done", first.Name, c.Name)
		}
	}
	if plan.Status.FinishedAt != nil {
		return
	}
	if w.lost(w.stageOf(first)) || w.undeclared() {
		t.Fatalf("%s is updated, but a mandatory group has lost its clusters or is not declared:\n%s",
			first.Name, w)
	}
	must, may := w.failures()
	if tolerated := portion(w.strategy.MaxFailures, len(w.clusters), 0); must > 0 || may > tolerated &&
		!w.mandatory(first) {
		t.Fatalf("%s is updated although %d mandatory and %d other clusters failed, and %d may fail:\n%s",
			first.Name, must, may, tolerated, w)
	}
	if w.strategy.Type == v1alpha1.RolloutStages {
		w.checkGates(t, plan, w.stageOf(first))
	}
}

// failures returns the number of failures in mandatory groups and in the others, of existing clusters and of those that
// were unhealthy when they left.
func (w *simulatedRollout) failures() (must, may int) {
	count := func(c *cluster) {
		if w.mandatory(c) {
			must++
		} else {
			may++
		}
	}
	for _, c := range w.clusters {
		if w.isFailure(c) {
			count(c)
		}
	}
	for _, c := range w.leftUnwell() {
		count(c)
	}
	return must, may
}

// leftUnwell returns the clusters that were unhealthy at the revision when they left.
func (w *simulatedRollout) leftUnwell() (left []*cluster) {
	if w.status.Revision != w.revision || w.strategy.State == v1alpha1.RolloutStop || isFinished(w.status) {
		return nil
	}
	for name, c := range w.unwell {
		if now := w.cluster(name); now == nil || now.Revision != w.revision {
			left = append(left, c)
		}
	}
	return left
}

func isFinished(s v1alpha1.RolloutStatus) bool { return s.FinishedAt != nil || s.Rollback != nil }

// recordUnwell records the unhealthy clusters, as a status stores them.
func (w *simulatedRollout) recordUnwell(plan Plan) {
	unwell := map[string]*cluster{}
	for _, c := range w.leftUnwell() {
		unwell[c.Name] = c
	}
	stable := plan.Status.StableRevision
	for _, c := range w.clusters {
		unreachable := c.moved && c.Revision == w.revision && !w.released(c) && c.Health == Unknown && stable != "" &&
			stable != w.revision
		if w.isFailure(c) || unreachable {
			unwell[c.Name] = c
		}
	}
	if isFinished(plan.Status) {
		unwell = nil
	}
	w.unwell = unwell
}

// lost reports whether a mandatory group before a stage has lost all its clusters after it became the current one.
func (w *simulatedRollout) lost(before int) bool {
	return w.status.Revision == w.revision && w.strategy.State != v1alpha1.RolloutStop &&
		slices.ContainsFunc(w.status.Stages, func(s v1alpha1.RolloutStageStatus) bool {
			group, is := map[string]Group{"0": {}, "g1/1": {Name: "g1", Index: 1}, "2": {Index: 2}, "3": {Index: 3}}[s.Name]
			one := &cluster{Target: Target{Group: group}}
			return is && w.mandatory(one) && w.stageOf(one) < before && s.ReachedAt != nil && s.FinishedAt == nil &&
				!slices.ContainsFunc(w.clusters, func(c *cluster) bool { return c.Group == group })
		})
}

// undeclared reports whether a mandatory group is not declared.
func (w *simulatedRollout) undeclared() bool {
	return w.groups != nil &&
		slices.ContainsFunc(w.strategy.MandatoryGroups, func(ref v1alpha1.DecisionGroupReference) bool {
			return ref.Name != "" && !slices.Contains(w.groups, Group{Name: "g1", Index: 1}) ||
				ref.Index != nil && !slices.Contains(w.groups, Group{Index: 2})
		})
}

// checkNewcomers checks that no target stays without a revision if there is a stable one for it.
func (w *simulatedRollout) checkNewcomers(t *rapid.T, plan Plan) {
	blocked := w.strategy.State == v1alpha1.RolloutPause || w.strategy.State == v1alpha1.RolloutStop
	stable := plan.Status.StableRevision
	for _, c := range w.clusters {
		want := c.Revision == "" && !slices.Contains(plan.Update, c.Name) && stable != "" &&
			(stable != plan.Revision || blocked && isFinished(plan.Status))
		if slices.Contains(plan.Stable, c.Name) != want {
			t.Fatalf("%s should get the stable revision %s: want %v\n%s", c.Name, stable, want, w)
		}
	}
}

func (w *simulatedRollout) checkGates(t *rapid.T, plan Plan, stage int) {
	for i, s := range w.strategy.Stages {
		row := plan.Status.Stages[i]
		for _, gate := range []struct {
			v1alpha1.RolloutGate
			position v1alpha1.GatePosition
			applies  bool
		}{{s.Before, v1alpha1.GateBefore, i <= stage}, {s.After, v1alpha1.GateAfter, i < stage}} {
			if !gate.applies {
				continue
			}
			if gate.Approval &&
				!slices.Contains(w.approvals, v1alpha1.RolloutApproval{Revision: w.revision, Stage: s.Name, Gate: gate.position}) {
				t.Fatalf("no approval %s stage %s", gate.position, s.Name)
			}
			at := row.ReachedAt
			if gate.position == v1alpha1.GateAfter {
				at = row.FinishedAt
			}
			if at == nil || w.now.Before(at.Add(seconds(gate.WaitSeconds))) {
				t.Fatalf("the wait time %s stage %s has not passed", gate.position, s.Name)
			}
		}
	}
}

// carryOut stores the status and updates some or all of the clusters: a controller may crash in between.
func (w *simulatedRollout) carryOut(t *rapid.T, plan Plan, n int) {
	w.recordUnwell(plan)
	w.status = throughAPI(t, plan.Status)
	if mark := plan.Status.StableSince; mark != nil {
		for _, c := range w.clusters {
			c.moved = c.moved && !c.Since.Before(mark.Time)
			c.assigned = c.assigned && c.moved
		}
	}
	for _, name := range plan.Update[:n] {
		w.assign(t, w.cluster(name), plan.Revision)
	}
	if n < len(plan.Update) {
		return
	}
	for _, name := range plan.Stable {
		w.assign(t, w.cluster(name), plan.Status.StableRevision)
	}
}

func (w *simulatedRollout) assign(t *rapid.T, c *cluster, revision string) {
	c.Revision, c.Since, c.assigned, c.moved = revision, w.now, true, true
	c.Health, c.HealthSince = Progressing, w.now
	w.chooseOutcome(t, c)
}

// chooseOutcome chooses how a cluster reacts to its assigned revision.
func (w *simulatedRollout) chooseOutcome(t *rapid.T, c *cluster) {
	c.next = rapid.SampledFrom([]Health{Succeeded, Succeeded, Succeeded, Succeeded, Failed, Progressing, Unknown}).Draw(t,
		"outcome of "+c.Name)
	c.due = w.now.Add(time.Duration(rapid.IntRange(1, 90).Draw(t, "after")) * time.Second)
}

// advance advances the time, and updates the clusters whose next event is due.
func (w *simulatedRollout) advance(d time.Duration) {
	w.now = w.now.Add(d)
	for _, c := range w.clusters {
		if c.due.IsZero() || w.now.Before(c.due) {
			continue
		}
		if c.Health != c.next {
			c.Health, c.HealthSince = c.next, c.due
		}
		c.due = time.Time{}
		if c.Health == Succeeded {
			c.assigned = false
		}
	}
}

// untilChange returns the time until the plan alone causes a change. Zero: never.
func (w *simulatedRollout) untilChange(plan Plan) time.Duration {
	rest := plan.After
	for _, c := range w.clusters {
		if !c.due.IsZero() && (rest == 0 || c.due.Sub(w.now) < rest) {
			rest = c.due.Sub(w.now)
		}
	}
	return rest
}

func throughAPI(t *rapid.T, status v1alpha1.RolloutStatus) (read v1alpha1.RolloutStatus) {
	if err := json.Unmarshal([]byte(mustJSON(status)), &read); err != nil {
		t.Fatal(err)
	}
	return read
}

func mustJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func (w *simulatedRollout) String() string {
	text := fmt.Sprintf("%s at %s: %s %s\n", w.revision, w.now.Format(time.TimeOnly), w.status.Phase, w.status.Message)
	for _, c := range w.clusters {
		text += fmt.Sprintf("  %-4s stage %-5d %-3s since %s %-11s since %s\n", c.Name, w.stageOf(c), c.Revision,
			c.Since.Format(time.TimeOnly), c.Health, c.HealthSince.Format(time.TimeOnly))
	}
	return text
}
