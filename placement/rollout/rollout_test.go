package rollout

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// target parses "name revision health age group order", as in east r2 Progressing 30s 0. The age is that of both the
// revision and the health, or that of each: 3h/30s.
func target(text string) Target {
	f := append(strings.Fields(text), "", "", "", "", "")
	t := Target{Name: f[0], Revision: strings.TrimPrefix(f[1], "-"), Health: Health(f[2])}
	revisionAge, healthAge, both := strings.Cut(f[3], "/")
	if !both {
		healthAge = revisionAge
	}
	t.Since, t.HealthSince = earlier(revisionAge), earlier(healthAge)
	if f[4] != "" {
		var index int32
		_, _ = fmt.Sscan(f[4], &index)
		t.Group, t.Labels = Group{Index: index}, map[string]string{"stage": f[4], "order": f[5]}
	}
	return t
}

func earlier(age string) time.Time {
	d, _ := time.ParseDuration(age)
	return epoch.Add(-d)
}

func number(n int32) *intstr.IntOrString      { return new(intstr.FromInt32(n)) }
func percent(text string) *intstr.IntOrString { return new(intstr.FromString(text)) }
func ago(d time.Duration) *metav1.Time        { return stamp(epoch.Add(-d)) }

func stageSelector(value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"stage": value}}
}

var (
	oneByOne = v1alpha1.RolloutStrategy{Type: v1alpha1.RolloutProgressive, MaxConcurrency: number(1)}
	perGroup = v1alpha1.RolloutStrategy{Type: v1alpha1.RolloutProgressivePerGroup}
	staged   = v1alpha1.RolloutStrategy{Type: v1alpha1.RolloutStages, Stages: []v1alpha1.RolloutStage{
		{Name: "canary", Selector: stageSelector("0"), MaxConcurrency: number(5)},
		{Name: "prod", Selector: stageSelector("1"), MaxConcurrency: percent("50%"), OrderBy: "order"},
	}}
	// underWay is the status of a rollout of r2 that started an hour ago. The revision before was r1.
	underWay = v1alpha1.RolloutStatus{Revision: "r2", StableRevision: "r1", StableSince: ago(2 * time.Hour),
		StartedAt: ago(time.Hour)}
)

func with(s v1alpha1.RolloutStrategy, change func(*v1alpha1.RolloutStrategy)) v1alpha1.RolloutStrategy {
	s = *s.DeepCopy()
	change(&s)
	return s
}

func tolerating(s v1alpha1.RolloutStrategy, failures *intstr.IntOrString) v1alpha1.RolloutStrategy {
	return with(s, func(s *v1alpha1.RolloutStrategy) { s.MaxFailures = failures })
}

func soakingFor(s v1alpha1.RolloutStrategy, seconds int32) v1alpha1.RolloutStrategy {
	return with(s, func(s *v1alpha1.RolloutStrategy) { s.MinSuccessSeconds = seconds })
}

func statusWith(change func(*v1alpha1.RolloutStatus)) v1alpha1.RolloutStatus {
	s := *underWay.DeepCopy()
	change(&s)
	return s
}

func finished(stage string, at *metav1.Time) v1alpha1.RolloutStatus {
	return statusWith(func(s *v1alpha1.RolloutStatus) {
		s.Stages = []v1alpha1.RolloutStageStatus{{Name: stage, ReachedAt: s.StartedAt, FinishedAt: at}}
	})
}

func TestNext(t *testing.T) {
	mandatory := with(perGroup, func(s *v1alpha1.RolloutStrategy) {
		s.MandatoryGroups = []v1alpha1.DecisionGroupReference{{Index: new(int32(2))}, {Index: new(int32(1))}}
	})
	rollBack := func(s *v1alpha1.RolloutStrategy) { s.OnFailure = v1alpha1.FailureRollBack }
	approving := with(staged, func(s *v1alpha1.RolloutStrategy) { s.Stages[0].After.Approval = true })
	waiting := with(staged, func(s *v1alpha1.RolloutStrategy) { s.Stages[0].After.WaitSeconds = 3600 })
	for _, test := range []struct {
		reason   string
		strategy v1alpha1.RolloutStrategy
		status   v1alpha1.RolloutStatus
		targets  []string
		phase    v1alpha1.RolloutPhase
		update   string // names
		hold     string // names, each with its reason
		approved []v1alpha1.RolloutApproval
	}{
		// How many at a time.
		{
			reason: "all clusters are updated at once", status: underWay,
			targets: []string{"b r1 Succeeded 3h", "a", "c r1 Failed 3h"},
			phase:   "Progressing", update: "a b c",
		},
		{
			reason:   "a quarter of the clusters is the default concurrency",
			strategy: v1alpha1.RolloutStrategy{Type: v1alpha1.RolloutProgressive},
			targets:  []string{"a", "b", "c", "d", "e", "f", "g", "h"},
			phase:    "Progressing", update: "a b",
			hold: "c:MaxConcurrency d:MaxConcurrency e:MaxConcurrency f:MaxConcurrency g:MaxConcurrency h:MaxConcurrency",
		},
		{
			reason: "a percentage of concurrency is rounded down", strategy: with(oneByOne, func(s *v1alpha1.RolloutStrategy) {
				s.MaxConcurrency = percent("99%")
			}),
			targets: []string{"a", "b", "c"}, phase: "Progressing", update: "a b", hold: "c:MaxConcurrency",
		},
		{
			reason: "a percentage of less than one cluster is one cluster",
			strategy: with(oneByOne, func(s *v1alpha1.RolloutStrategy) {
				s.MaxConcurrency = percent("1%")
			}),
			targets: []string{"a", "b"}, phase: "Progressing", update: "a", hold: "b:MaxConcurrency",
		},
		{
			reason: "a progressing cluster occupies a slot", strategy: oneByOne, status: underWay,
			targets: []string{"a", "b r2 Progressing 1m"}, phase: "Progressing", hold: "a:MaxConcurrency",
		},
		{
			reason: "a soaking cluster occupies a slot", strategy: soakingFor(oneByOne, 120), status: underWay,
			targets: []string{"a", "b r2 Succeeded 1m"}, phase: "Soaking", hold: "a:MaxConcurrency",
		},
		{
			reason: "a cluster that has soaked frees its slot", strategy: soakingFor(oneByOne, 60), status: underWay,
			targets: []string{"a", "b r2 Succeeded 1m"}, phase: "Progressing", update: "a",
		},
		// What failure is.
		{
			reason: "a failed cluster halts the rollout before the deadline", strategy: oneByOne, status: underWay,
			targets: []string{"a", "b r2 Failed 1s"}, phase: "Failed", hold: "a:MaxFailures",
		},
		{
			reason: "a cluster that is progressing at the deadline halts the rollout", strategy: oneByOne, status: underWay,
			targets: []string{"a", "b r2 Progressing 10m"}, phase: "Failed", hold: "a:MaxFailures",
		},
		{
			reason: "a cluster that is unknown at the deadline halts the rollout", strategy: oneByOne, status: underWay,
			targets: []string{"a", "b r2 Unknown 10m"}, phase: "Failed", hold: "a:MaxFailures",
		},
		{
			reason: "a tolerated failure frees its slot", strategy: tolerating(oneByOne, number(1)), status: underWay,
			targets: []string{"a", "b r2 Failed 1s"}, phase: "Progressing", update: "a",
		},
		{
			reason: "maxFailures may exceed the number of clusters", strategy: tolerating(oneByOne, number(100)),
			status:  underWay,
			targets: []string{"a", "b r2 Failed 1s", "c r2 Failed 1s"}, phase: "Progressing", update: "a",
		},
		{
			reason:   "a percentage of maxFailures is rounded down",
			strategy: tolerating(oneByOne, percent("49%")), status: underWay,
			targets: []string{"a", "b r2 Failed 1s"}, phase: "Failed", hold: "a:MaxFailures",
		},
		{
			reason: "a cluster that was unhealthy before is updated and is no failure", strategy: oneByOne, status: underWay,
			targets: []string{"a r1 Failed 3h", "b r1 Unknown 3h", "c r1 Succeeded 3h"}, phase: "Progressing", update: "a",
			hold: "b:MaxConcurrency c:MaxConcurrency",
		},
		{
			reason:   "a cluster that was unhealthy at the stable revision is no failure",
			strategy: soakingFor(oneByOne, 60),
			status:   statusWith(func(s *v1alpha1.RolloutStatus) { s.StableRevision = "r2" }),
			targets:  []string{"a r2 Failed 3h", "b r2 Unknown 3h", "c r2 Progressing 3h", "d r2 Succeeded 3h"},
			phase:    "Succeeded",
		},
		{
			reason:   "a cluster that becomes unhealthy at the stable revision does not delay others",
			strategy: soakingFor(oneByOne, 60),
			status:   statusWith(func(s *v1alpha1.RolloutStatus) { s.StableRevision = "r2" }),
			targets:  []string{"a r2 Unknown 3h/1m", "b r2 Succeeded 3h/1s", "c"}, phase: "Progressing", update: "c",
		},
		{
			reason:   "the deadline starts when the health changes after the revision",
			strategy: soakingFor(oneByOne, 60), status: underWay,
			targets: []string{"a r2 Progressing 20m/1m", "b"}, phase: "Progressing", hold: "b:MaxConcurrency",
		},
		{
			reason:   "the soak starts when the revision changes after the health",
			strategy: soakingFor(oneByOne, 60), status: underWay,
			targets: []string{"a r2 Succeeded 1s/3h"}, phase: "Soaking",
		},
		{
			reason: "a rollout with tolerated failures succeeds", strategy: tolerating(oneByOne, number(1)),
			status:  underWay,
			targets: []string{"a r2 Succeeded 1m", "b r2 Failed 1s"}, phase: "Succeeded",
		},
		{
			reason: "a rollout with too many failures fails", strategy: oneByOne, status: underWay,
			targets: []string{"a r2 Succeeded 1m", "b r2 Failed 1s"}, phase: "Failed",
		},
		// Groups.
		{
			reason:   "groups are updated in the order of their indexes",
			strategy: perGroup, targets: []string{"a - - - 2", "b - - - 10", "c - - - 1"},
			phase: "Progressing", update: "c", hold: "a:Order b:Order",
		},
		{
			reason: "mandatory groups are updated first, in the listed order", strategy: mandatory,
			targets: []string{"a - - - 0", "b - - - 1", "c - - - 2"},
			phase:   "Progressing", update: "c", hold: "b:Order a:Order",
		},
		{
			reason: "the next group waits until all clusters have soaked", strategy: soakingFor(perGroup, 60), status: underWay,
			targets: []string{"a r2 Succeeded 1m 0", "b r2 Succeeded 59s 0", "c r1 Succeeded 3h 1"}, phase: "Soaking",
			hold: "c:Order",
		},
		{
			reason: "the next group starts when all clusters have soaked", strategy: soakingFor(perGroup, 60), status: underWay,
			targets: []string{"a r2 Succeeded 1m 0", "b r2 Succeeded 60s 0", "c r1 Succeeded 3h 1"}, phase: "Progressing",
			update: "c",
		},
		{
			reason:   "a tolerated timeout does not start the next group while a cluster progresses",
			strategy: tolerating(perGroup, number(5)), status: underWay,
			targets: []string{"a r2 Progressing 10m 0", "b r2 Progressing 1m 0", "c r1 Succeeded 3h 1"}, phase: "Progressing",
			hold: "c:Order",
		},
		{
			reason: "a tolerated timeout does not start the next group while a cluster is pending",
			strategy: with(tolerating(perGroup, number(5)), func(s *v1alpha1.RolloutStrategy) {
				s.MaxConcurrency = number(1)
			}), status: underWay,
			targets: []string{"a r2 Progressing 10m 0", "b r1 Succeeded 3h 0", "c r1 Succeeded 3h 1"}, phase: "Progressing",
			update: "b", hold: "c:Order",
		},
		{
			reason: "a timeout in another group does not halt a mandatory group", strategy: mandatory, status: underWay,
			targets: []string{"a r2 Progressing 20m 0", "b r1 Succeeded 3h 1", "c r1 Succeeded 3h 2"}, phase: "Progressing",
			update: "c", hold: "b:Order",
		},
		{
			reason: "a timeout in another group halts the groups that are not mandatory", strategy: mandatory, status: underWay,
			targets: []string{"a r2 Progressing 20m 0", "b r2 Succeeded 1h 1", "c r2 Succeeded 1h 2", "d r1 Succeeded 3h 0"},
			phase:   "Failed", hold: "d:MaxFailures",
		},
		{
			reason:   "maxFailures does not apply to a mandatory group",
			strategy: tolerating(mandatory, percent("100%")), status: underWay,
			targets: []string{"b r1 Succeeded 3h 1", "c r2 Failed 1s 2", "d r1 Succeeded 3h 2"}, phase: "Failed",
			hold: "d:MaxFailures b:MaxFailures",
		},
		{
			reason: "a cluster that joins a finished group is updated before the next group", strategy: perGroup,
			status:  finished("0", ago(time.Minute)),
			targets: []string{"a r2 Succeeded 5m 0", "b - - - 0", "c r1 Succeeded 3h 1"}, phase: "Progressing", update: "b",
			hold: "c:Order",
		},
		{
			reason:   "the next group waits for a cluster that joined a finished group",
			strategy: perGroup, status: finished("0", ago(time.Minute)),
			targets: []string{"a r2 Succeeded 5m 0", "b r2 Progressing 30s 0", "c r1 Succeeded 3h 1"}, phase: "Progressing",
			hold: "c:Order",
		},
		{
			reason: "the next group starts although a finished cluster became unhealthy", strategy: perGroup,
			status:  finished("0", ago(time.Minute)),
			targets: []string{"a r2 Unknown 5m/30s 0", "c r1 Succeeded 3h 1"}, phase: "Progressing", update: "c",
		},
		{
			reason: "the next group waits for a progressing cluster that moved to a finished group", strategy: perGroup,
			status:  finished("0", ago(time.Minute)),
			targets: []string{"a r2 Progressing 5m 0", "c r1 Succeeded 3h 1"}, phase: "Progressing", hold: "c:Order",
		},
		{
			reason:   "a cluster of a finished group does not soak again",
			strategy: soakingFor(perGroup, 60), status: finished("0", ago(time.Minute)),
			targets: []string{"a r2 Succeeded 5m/1s 0", "c r1 Succeeded 3h 1"}, phase: "Progressing", update: "c",
		},
		{
			reason: "a cluster of a finished group that is unhealthy at the deadline is a failure", strategy: perGroup,
			status:  finished("0", ago(time.Minute)),
			targets: []string{"a r2 Unknown 15m 0", "c r1 Succeeded 3h 1"}, phase: "Failed", hold: "c:MaxFailures",
		},
		// Stages.
		{
			reason: "a stage has its own order and concurrency", strategy: staged, status: underWay,
			targets: []string{"a - - - 1", "b - - - 1 x", "c - - - 1 10", "d - - - 1 9", "e r2 Succeeded 1m 0"},
			phase:   "Progressing", update: "d c", hold: "a:MaxConcurrency b:MaxConcurrency",
		},
		{
			reason: "clusters in no stage are updated last, one by one", strategy: staged, status: underWay,
			targets: []string{"a", "b", "c r2 Succeeded 1m 1"}, phase: "Progressing", update: "a", hold: "b:MaxConcurrency",
		},
		{
			reason: "a cluster that matches two stages belongs to the first", status: underWay,
			strategy: with(staged, func(s *v1alpha1.RolloutStrategy) { s.Stages[1].Selector = nil }),
			targets:  []string{"a - - - 0", "b - - - 1", "c"}, phase: "Progressing", update: "a", hold: "b:Order c:Order",
		},
		{
			reason: "the next stage waits for an approval", strategy: approving, status: underWay,
			targets: []string{"a r2 Succeeded 1m 0", "b r1 Succeeded 3h 1"}, phase: "WaitingForApproval", hold: "b:Order",
		},
		{
			reason: "an approval of another revision, stage or gate is ignored", strategy: approving, status: underWay,
			targets: []string{"a r2 Succeeded 1m 0", "b r1 Succeeded 3h 1"},
			approved: []v1alpha1.RolloutApproval{{Revision: "r1", Stage: "canary", Gate: "After"},
				{Revision: "r2", Stage: "prod", Gate: "After"}, {Revision: "r2", Stage: "canary", Gate: "Before"}},
			phase: "WaitingForApproval", hold: "b:Order",
		},
		{
			reason: "the next stage starts when it is approved", strategy: approving, status: underWay,
			targets:  []string{"a r2 Succeeded 1m 0", "b r1 Succeeded 3h 1"},
			approved: []v1alpha1.RolloutApproval{{Revision: "r2", Stage: "canary", Gate: "After"}},
			phase:    "Progressing", update: "b",
		},
		{
			reason: "an empty stage waits for its approval", strategy: approving, status: underWay,
			targets: []string{"b r1 Succeeded 3h 1"}, phase: "WaitingForApproval", hold: "b:Order",
		},
		{
			reason: "an empty stage without gates is skipped", strategy: staged, status: underWay,
			targets: []string{"b r1 Succeeded 3h 1"}, phase: "Progressing", update: "b",
		},
		{
			reason: "an approval before a stage holds its first cluster", status: underWay,
			strategy: with(staged, func(s *v1alpha1.RolloutStrategy) { s.Stages[0].Before.Approval = true }),
			targets:  []string{"a r1 Succeeded 3h 0", "b r1 Succeeded 3h 1"}, phase: "WaitingForApproval",
			hold: "a:Approval b:Order",
		},
		{
			reason: "the wait time starts when the stage is finished", strategy: waiting,
			status:  finished("canary", ago(59*time.Minute)),
			targets: []string{"a r2 Succeeded 1h 0", "b r1 Succeeded 3h 1"}, phase: "WaitingForTime", hold: "b:Order",
		},
		{
			reason:   "the next stage starts when the wait time has passed",
			strategy: waiting, status: finished("canary", ago(60*time.Minute)),
			targets: []string{"a r2 Succeeded 1h 0", "b r1 Succeeded 3h 1"}, phase: "Progressing", update: "b",
		},
		{
			reason: "a wait time before a stage holds its first cluster", status: underWay,
			strategy: with(staged, func(s *v1alpha1.RolloutStrategy) { s.Stages[0].Before.WaitSeconds = 60 }),
			targets:  []string{"a r1 Succeeded 3h 0"}, phase: "WaitingForTime", hold: "a:Time",
		},
		// A newer revision.
		{
			reason: "a cluster that progresses to a superseded revision is updated in its slot", strategy: oneByOne,
			status:  underWay,
			targets: []string{"a r1 Succeeded 3h", "b r1.5 Progressing 1m"}, phase: "Progressing", update: "b",
			hold: "a:MaxConcurrency",
		},
		{
			reason: "a cluster that progresses in a later stage occupies a slot", status: underWay,
			strategy: with(staged, func(s *v1alpha1.RolloutStrategy) { s.MaxConcurrency = number(1) }),
			targets:  []string{"a r1 Succeeded 3h 0", "b r1.5 Progressing 1m 1"}, phase: "Progressing",
			hold: "a:MaxConcurrency b:Order",
		},
		{
			reason: "a cluster that progresses in a later stage frees its slot at the deadline", status: underWay,
			strategy: with(staged, func(s *v1alpha1.RolloutStrategy) { s.MaxConcurrency = number(1) }),
			targets:  []string{"a r1 Succeeded 3h 0", "b r1.5 Progressing 10m 1"}, phase: "Progressing", update: "a",
			hold: "b:Order",
		},
		{
			reason: "failures of a superseded revision are no failures of the rollout", strategy: oneByOne,
			status:  underWay,
			targets: []string{"a r1.5 Failed 1m", "b r1.5 Failed 1m"}, phase: "Progressing", update: "a",
			hold: "b:MaxConcurrency",
		},
		{
			reason: "the status of another revision is ignored", strategy: approving,
			status:  statusWith(func(s *v1alpha1.RolloutStatus) { s.Revision, s.FinishedAt = "r1", s.StartedAt }),
			targets: []string{"a r1 Succeeded 3h 0", "b r1 Succeeded 3h 1"}, phase: "Progressing", update: "a", hold: "b:Order",
		},
		// Rollback.
		{
			reason: "failed clusters are rolled back first, within the slots", strategy: with(oneByOne, rollBack),
			status:  underWay,
			targets: []string{"a r2 Succeeded 20m", "b r2 Failed 1m", "c r1 Succeeded 3h"}, phase: "RollingBack", update: "b",
			hold: "a:MaxConcurrency",
		},
		{
			reason:   "a progressing cluster is rolled back first, in its slot",
			strategy: with(oneByOne, rollBack), status: underWay,
			targets: []string{"a r2 Failed 20m", "b r2 Progressing 1m", "c r2 Succeeded 3m"}, phase: "RollingBack", update: "b",
			hold: "a:MaxConcurrency c:MaxConcurrency",
		},
		{
			reason: "the concurrency of each stage applies to a rollback", strategy: with(staged, rollBack), status: underWay,
			targets: []string{"a r2 Succeeded 20m 0", "b r2 Failed 1m 1", "c r2 Succeeded 1m 1"}, phase: "RollingBack",
			update: "b a", hold: "c:MaxConcurrency",
		},
		{
			reason: "a failure without a stable revision is a halt", strategy: with(oneByOne, rollBack),
			targets: []string{"a", "b r2 Failed 1m"}, phase: "Failed", hold: "a:MaxFailures",
		},
		{
			reason: "a rollback is finished although clusters are unhealthy", strategy: with(oneByOne, rollBack),
			status: statusWith(func(s *v1alpha1.RolloutStatus) {
				s.Rollback = &v1alpha1.RollbackStatus{StartedAt: *ago(time.Minute)}
			}),
			targets: []string{"a r1 Succeeded 30s", "b r1 Failed 30s", "c r1 Unknown 3h"}, phase: "RolledBack",
		},
		{
			reason: "clusters do not soak after a rollback", strategy: soakingFor(with(oneByOne, rollBack), 60),
			status: statusWith(func(s *v1alpha1.RolloutStatus) {
				s.Rollback = &v1alpha1.RollbackStatus{StartedAt: *ago(time.Minute)}
			}),
			targets: []string{"a r1 Succeeded 1s"}, phase: "RolledBack",
		},
		{
			reason: "a rollback waits for progressing clusters", strategy: with(oneByOne, rollBack),
			status: statusWith(func(s *v1alpha1.RolloutStatus) {
				s.Rollback = &v1alpha1.RollbackStatus{StartedAt: *ago(time.Minute)}
			}),
			targets: []string{"a r1 Progressing 1s"}, phase: "RollingBack",
		},
		{
			reason: "a cluster that joins after a rollback gets the stable revision", strategy: with(oneByOne, rollBack),
			status: statusWith(func(s *v1alpha1.RolloutStatus) {
				s.Rollback = &v1alpha1.RollbackStatus{StartedAt: *ago(time.Minute), FinishedAt: ago(0)}
			}),
			targets: []string{"a r1 Succeeded 30s", "b"}, phase: "RolledBack", update: "b",
		},
		// The state that the user sets.
		{
			reason:   "state Pause",
			strategy: with(oneByOne, func(s *v1alpha1.RolloutStrategy) { s.State = "Pause" }), status: underWay,
			targets: []string{"a r1 Succeeded 3h"}, phase: "Paused", hold: "a:Paused",
		},
		{
			reason:   "state Stop",
			strategy: with(oneByOne, func(s *v1alpha1.RolloutStrategy) { s.State = "Stop" }), status: underWay,
			targets: []string{"a r1 Succeeded 3h"}, phase: "Stopped", hold: "a:Stopped",
		},
		{
			reason: "state Pause prevents a rollback", status: underWay,
			strategy: with(oneByOne, func(s *v1alpha1.RolloutStrategy) { s.State, s.OnFailure = "Pause", "RollBack" }),
			targets:  []string{"a r1 Succeeded 3h", "b r2 Failed 1m"}, phase: "Paused", hold: "a:Paused",
		},
		{
			reason:   "a complete rollout succeeds although it is paused",
			strategy: with(oneByOne, func(s *v1alpha1.RolloutStrategy) { s.State = "Pause" }), status: underWay,
			targets: []string{"a r2 Succeeded 3m"}, phase: "Succeeded",
		},
		// Success is final.
		{
			reason: "failures after the success do not fail the rollout", strategy: with(oneByOne, rollBack),
			status: statusWith(func(s *v1alpha1.RolloutStatus) {
				s.FinishedAt, s.StableSince, s.StableRevision = ago(0), ago(0), "r2"
			}),
			targets: []string{"a r2 Failed 1m", "b"}, phase: "Succeeded", update: "b",
		},
		{
			reason:   "failures of clusters that joined after the success do not fail the rollout",
			strategy: with(oneByOne, rollBack),
			status: statusWith(func(s *v1alpha1.RolloutStatus) {
				s.FinishedAt, s.StableSince, s.StableRevision = ago(time.Minute), ago(time.Minute), "r2"
			}),
			targets: []string{"a r2 Failed 5s", "b"}, phase: "Succeeded", update: "b",
		},
		{
			reason: "a cluster that joins after the success needs no approval", strategy: approving,
			status: statusWith(func(s *v1alpha1.RolloutStatus) {
				s.FinishedAt, s.StableSince, s.StableRevision = ago(0), ago(0), "r2"
			}),
			targets: []string{"a r2 Succeeded 1m 0", "b - - - 1"}, phase: "Succeeded", update: "b",
		},
		{reason: "no clusters", strategy: approving, status: underWay, phase: "Succeeded"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			o := Observed{Now: epoch, Strategy: test.strategy, Revision: "r2", Status: test.status, Approvals: test.approved}
			for _, text := range test.targets {
				o.Targets = append(o.Targets, target(text))
			}
			plan, err := Next(o)
			if err != nil {
				t.Fatal(err)
			}
			var hold []string
			for _, h := range plan.Hold {
				hold = append(hold, fmt.Sprintf("%s:%s", h.Target, h.Reason))
			}
			type outcome struct {
				Phase        v1alpha1.RolloutPhase
				Update, Hold string
			}
			want, got := outcome{test.phase, test.update, test.hold}, outcome{plan.Status.Phase, strings.Join(plan.Update, " "),
				strings.Join(hold, " ")}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got)\n%s%s", diff, plan.Status.Message)
			}
		})
	}
}

// TestNext_KeepsStateWithoutMembers checks that the state of a rollout is kept while all clusters are missing.
func TestNext_KeepsStateWithoutMembers(t *testing.T) {
	status := finished("canary", ago(time.Minute))
	plan, err := Next(Observed{Now: epoch, Strategy: staged, Revision: "r2", Status: status})
	if err != nil {
		t.Fatal(err)
	}
	if plan.Status.FinishedAt != nil || plan.Status.StableRevision != "r1" ||
		!cmp.Equal(plan.Status.Stages, status.Stages) {
		t.Errorf("the state was lost, or the rollout was marked as finished: %+v", plan.Status)
	}
	status.Rollback = &v1alpha1.RollbackStatus{}
	plan, err = Next(Observed{Now: epoch, Strategy: staged, Revision: "r2", Status: status})
	if err != nil || plan.Status.Phase != v1alpha1.PhaseRolledBack || plan.Revision != "r1" {
		t.Errorf("the rollback was lost: %v %+v", err, plan.Status)
	}
}

func TestNext_RefusesInvalidInput(t *testing.T) {
	for want, o := range map[string]Observed{
		"the revision must not be empty": {},
		"maxConcurrency must be": {Revision: "r1", Strategy: with(oneByOne, func(s *v1alpha1.RolloutStrategy) {
			s.MaxConcurrency = number(0)
		})},
		"stages is required with type": {Revision: "r1", Strategy: v1alpha1.RolloutStrategy{Type: v1alpha1.RolloutStages}},
	} {
		if _, err := Next(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
}

// TestNext_Messages checks the messages for users.
func TestNext_Messages(t *testing.T) {
	for _, test := range []struct {
		strategy v1alpha1.RolloutStrategy
		targets  []string
		want     string
	}{
		{staged, []string{"a r2 Succeeded 5m 0", "b - - - 1"},
			"Updating in stage prod: 1 of 2 clusters at r2, 1 progressing."},
		{perGroup, []string{"a r2 Progressing 5m 3", "b - - - 4"},
			"Updating in group 3: 0 of 2 clusters at r2, 1 progressing."},
		{soakingFor(oneByOne, 90), []string{"a r2 Succeeded 5s"},
			"Waiting for 1 cluster to stay healthy for 1m30s: 0 of 1 cluster at r2."},
		{oneByOne, []string{"a r2 Succeeded 5m"}, "Complete: 1 of 1 cluster at r2."},
		{tolerating(oneByOne, number(3)), []string{"a r2 Failed 1s", "b r2 Failed 1s", "c r2 Failed 1s", "d r2 Unknown 15m",
			"e"}, "4 clusters failed, and maxFailures allows 3: a, b, c and 1 more."},
		{with(staged, func(s *v1alpha1.RolloutStrategy) {
			s.Stages[0].Before.Approval = true
		}), []string{"a - - - 0"}, "Waiting for the approval before stage canary."},
		{with(staged, func(s *v1alpha1.RolloutStrategy) {
			s.Stages[0].After.WaitSeconds = 60
		}), []string{"a - - - 1"}, "Waiting until 2026-01-01T12:01:00Z after stage canary."},
		{with(oneByOne, func(s *v1alpha1.RolloutStrategy) {
			s.OnFailure = "RollBack"
		}), []string{"a r2 Failed 1s", "b r1 Succeeded 3h"},
			"Rolled back: 1 of 2 clusters at r1. 1 cluster failed, and maxFailures allows 0: a."},
		{with(oneByOne, func(s *v1alpha1.RolloutStrategy) { s.State = "Pause" }), []string{"a"},
			"Paused: 0 of 1 cluster at r2."},
	} {
		o := Observed{Now: epoch, Strategy: test.strategy, Revision: "r2", Status: underWay}
		for _, text := range test.targets {
			o.Targets = append(o.Targets, target(text))
		}
		plan, err := Next(o)
		if err != nil || plan.Status.Message != test.want {
			t.Errorf("want %q, got %q, %v", test.want, plan.Status.Message, err)
		}
	}
}
