package workset

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/internal/withdrawal"
	"github.com/muster-sdk/muster/placement/bundle"
	"github.com/muster-sdk/muster/placement/internal/revision"
	"github.com/muster-sdk/muster/placement/rollout"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

func TestBaseName(t *testing.T) {
	seen := map[string]types.NamespacedName{}
	label := rapid.StringMatching(`[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?`)
	rapid.Check(t, func(t *rapid.T) {
		set := types.NamespacedName{Namespace: label.Draw(t, "namespace")}
		parts := rapid.SliceOfN(label, 1, 4).Draw(t, "name")
		set.Name = strings.Join(parts, ".")
		set.Name = strings.Trim(set.Name[:min(len(set.Name), 253)], "-.")
		name := baseName(set) + "-12345"
		require.Empty(t, validation.IsDNS1123Subdomain(name), name)
		if other, known := seen[name]; known {
			require.Equal(t, other, set, "two WorkSets with the same name for their Works")
		}
		seen[name] = set
	})
	long := strings.Repeat("a", 200) + "." + strings.Repeat("b", 52)
	require.NotEqual(t, baseName(types.NamespacedName{Namespace: "shop", Name: long}),
		baseName(types.NamespacedName{Namespace: "shop", Name: long[:252] + "c"}))
}

func TestSince_HealthTimestamp(t *testing.T) {
	at := func(second int64) time.Time { return time.Unix(second, 0) }
	current := assignment{"web-1", at(10)}
	now := func(health rollout.Health) healthSince { return healthSince{"web-1", health, at(100)} }
	for _, test := range []struct {
		reason   string
		before   healthSince
		observed healthSince
		changed  time.Time
		want     time.Time
	}{
		{"an unchanged health keeps the timestamp", healthSince{"web-1", rollout.Succeeded, at(20)}, now(rollout.Succeeded),
			at(90), at(20)},
		{"a changed health gets the current time", healthSince{"web-1", rollout.Progressing, at(20)}, now(rollout.Succeeded),
			at(90), at(100)},
		{"an unknown health keeps the timestamp", healthSince{"web-1", rollout.Progressing, at(20)}, now(rollout.Unknown),
			at(90), at(20)},
		{"the health of another revision is ignored", healthSince{"web-0", rollout.Succeeded, at(20)},
			now(rollout.Succeeded), at(90), at(100)},
		{"after a restart the transition time of the member is used", healthSince{}, now(rollout.Succeeded), at(90), at(90)},
		{"a transition time in the future is limited to the current time", healthSince{}, now(rollout.Succeeded), at(110),
			at(100)},
		{"a transition time before the assignment is limited to the assignment", healthSince{}, now(rollout.Succeeded),
			at(5), at(10)},
		{"without a transition time the current time is used", healthSince{}, now(rollout.Progressing), time.Time{}, at(100)},
	} {
		require.Equal(t, test.want, since(test.before, test.observed, test.changed, current).since, test.reason)
	}
}

func TestAssignmentOf(t *testing.T) {
	s := newState(web)
	require.Equal(t, assignment{}, s.assignmentOf("a", assignment{}), "neither a record nor Works")
	require.Equal(t, one, s.assignmentOf("a", one), "the annotations of the Works, as after a restart")
	require.Equal(t, one, s.assignmentOf("a", two), "the annotations were edited")
	require.Equal(t, one, s.assignmentOf("a", assignment{}), "the Works were deleted")
	s.clusters.assigned["a"] = two
	require.Equal(t, two, s.assignmentOf("a", one), "the new assignment is not written yet")
	s.clusters.drop(func(string) bool { return false })
	require.Equal(t, assignment{}, s.assignmentOf("a", assignment{}), "the cluster was dropped")
}

func TestStamp_KeptByFormatting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := stamp(time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, "seconds"), rapid.Int64Range(0, 999999999).Draw(t,
			"nanoseconds")))
		read, err := time.Parse(time.RFC3339Nano, now.Format(time.RFC3339Nano))
		require.NoError(t, err)
		require.Equal(t, now, stamp(read), "a formatted timestamp is read without a change")
	})
}

func TestUrgentParts(t *testing.T) {
	full := func() *v1alpha1.WorkSetStatus {
		return &v1alpha1.WorkSetStatus{
			ObservedGeneration: 1, Message: "m", Revision: "r", Revisions: []v1alpha1.RevisionSummary{{Name: "r", Clusters: 1}},
			Objects: 1,
			Counts:  v1alpha1.ClusterCounts{Total: 1}, Clusters: []v1alpha1.ClusterSummary{{Name: "a"}}, OmittedClusters: 1,
			Rollout: v1alpha1.RolloutStatus{Phase: v1alpha1.PhaseProgressing, Message: "m",
				Stages: []v1alpha1.RolloutStageStatus{{Name: "s"}}},
			Feedback:   []v1alpha1.FeedbackSummary{{Value: "v"}},
			Conditions: []metav1.Condition{{Type: "Applied", Status: metav1.ConditionFalse, Message: "m"}},
		}
	}
	for _, test := range []struct {
		reason string
		change func(*v1alpha1.WorkSetStatus)
		equal  bool
	}{
		{"counts of clusters", func(s *v1alpha1.WorkSetStatus) { s.Counts.Available++; s.Revisions[0].Clusters++ }, true},
		{"listed clusters", func(s *v1alpha1.WorkSetStatus) { s.Clusters, s.OmittedClusters = nil, 3 }, true},
		{"feedback", func(s *v1alpha1.WorkSetStatus) { s.Feedback = nil }, true},
		{"messages", func(s *v1alpha1.WorkSetStatus) {
			s.Message, s.Rollout.Message, s.Conditions[0].Message = "n", "n", "n"
		}, true},
		{"counts of stages", func(s *v1alpha1.WorkSetStatus) { s.Rollout.Succeeded++; s.Rollout.Stages[0].Succeeded++ },
			true},
		{"status of a condition", func(s *v1alpha1.WorkSetStatus) { s.Conditions[0].Status = metav1.ConditionTrue }, false},
		{"observed generation", func(s *v1alpha1.WorkSetStatus) { s.ObservedGeneration++ }, false},
		{"phase of the rollout", func(s *v1alpha1.WorkSetStatus) { s.Rollout.Phase = v1alpha1.PhaseFailed }, false},
		{"time at which a stage was reached", func(s *v1alpha1.WorkSetStatus) {
			s.Rollout.Stages[0].ReachedAt = &metav1.Time{Time: time.Unix(1, 0)}
		}, false},
		{"revision", func(s *v1alpha1.WorkSetStatus) { s.Revision = "q" }, false},
	} {
		changed := full()
		test.change(changed)
		require.Equal(t, test.equal, cmp.Equal(urgentParts(full()), urgentParts(changed)), test.reason)
	}
}

func TestWithdrawalComplete(t *testing.T) {
	p := &v1alpha1.Placement{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
	p.Status = v1alpha1.PlacementStatus{ObservedGeneration: 2, DecidedGeneration: 2, SelectedClusters: 3}
	for _, test := range []struct {
		reason string
		change func(*v1alpha1.Placement)
		known  int
		want   bool
	}{
		{"all decisions are known", func(*v1alpha1.Placement) {}, 3, true},
		{"one decision is missing", func(*v1alpha1.Placement) {}, 2, false},
		{"one former decision still exists", func(*v1alpha1.Placement) {}, 4, false},
		{"the new spec is not decided", func(p *v1alpha1.Placement) { p.Generation = 3 }, 3, false},
		{"the Placement is being deleted", func(p *v1alpha1.Placement) { p.DeletionTimestamp = &metav1.Time{} }, 3, false},
		{"the decision failed", func(p *v1alpha1.Placement) { p.Status.DecidedGeneration = 1 }, 3, false},
		{"the first decision of a Placement that was created again failed", func(p *v1alpha1.Placement) {
			p.Status = v1alpha1.PlacementStatus{ObservedGeneration: 2}
		}, 0, false},
		{"the Placement has selected no clusters", func(p *v1alpha1.Placement) { p.Status.SelectedClusters = 0 }, 0, true},
	} {
		changed := p.DeepCopy()
		test.change(changed)
		require.Equal(t, test.want, withdrawal.Complete(changed, test.known), test.reason)
	}
}

func TestChangeOf(t *testing.T) {
	c := &controller{}
	existing := &record{ObjectMeta: metav1.ObjectMeta{Name: "shop.web-0", ResourceVersion: "7"}}
	for _, act := range []bundle.Act{bundle.Update, bundle.Note} {
		step := &step{bundle.Step{Act: act, First: true}, existing}
		work := c.object(delivery{web, "a"}, types.NamespacedName{Namespace: east, Name: "shop.web-0"},
			&want{reading: &reading{content: &revision.Content{}}}, &wanted{assigned: two}, step)
		change := changeOf(work, step)
		require.Equal(t, &existing.ObjectMeta, change.Known)
		require.Equal(t, act == bundle.Update, change.Spec != nil, "a note changes no spec")
		require.Equal(t, work.Labels, change.Labels)
		require.Equal(t, two.revision, change.Annotations[v1alpha1.RevisionAnnotation])
		require.Equal(t, "WorkSet shop/web", change.Annotations[workv1alpha1.GeneratedByAnnotation])
	}
}

func TestDeletePolicyOf(t *testing.T) {
	for _, test := range []struct {
		reason string
		policy workv1alpha1.DeletePolicy
		want   deletePolicy
	}{
		{"empty fields get the defaults of the API server", workv1alpha1.DeletePolicy{},
			deletePolicy{workv1alpha1.DeleteObject, metav1.DeletePropagationForeground}},
		{"fields with the values of the defaults", workv1alpha1.DeletePolicy{Action: workv1alpha1.DeleteObject,
			Propagation: metav1.DeletePropagationForeground}, deletePolicy{workv1alpha1.DeleteObject,
			metav1.DeletePropagationForeground}},
		{"fields with other values than the defaults", workv1alpha1.DeletePolicy{Action: workv1alpha1.OrphanObject,
			Propagation: metav1.DeletePropagationBackground}, deletePolicy{workv1alpha1.OrphanObject,
			metav1.DeletePropagationBackground}},
		{"values of a later release are kept", workv1alpha1.DeletePolicy{Action: "Hide", Propagation: "Later"},
			deletePolicy{"Hide", "Later"}},
	} {
		require.Equal(t, test.want, deletePolicyOf(test.policy), test.reason)
	}
}
