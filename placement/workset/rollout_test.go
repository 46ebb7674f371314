package workset_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/placement/workset"
)

// group creates a Placement of some members, or of all, with a decision group that contains one member.
func (h *hub) group(placement, group, member string, members ...string) {
	h.T.Helper()
	h.place(placement, members...)
	h.regroup(placement, v1alpha1.DecisionGroup{Name: group,
		Selector: metav1.LabelSelector{MatchLabels: map[string]string{"name": member}}})
}

func (h *hub) regroup(placement string, groups ...v1alpha1.DecisionGroup) {
	h.T.Helper()
	p := &v1alpha1.Placement{}
	require.NoError(h.T, h.Client.Get(h.T.Context(), client.ObjectKey{Namespace: h.Namespace, Name: placement}, p))
	before := p.DeepCopy()
	p.Spec.DecisionGroups = groups
	require.NoError(h.T, h.Client.Patch(h.T.Context(), p, client.MergeFrom(before)))
}

// evict adds a taint to a member that evicts it from all Placements.
func (h *hub) evict(member string) {
	h.T.Helper()
	m := &membershipv1alpha1.MemberCluster{}
	require.NoError(h.T, h.Client.Get(h.T.Context(), client.ObjectKey{Name: h.member(member)}, m))
	before := m.DeepCopy()
	m.Spec.Taints = append(m.Spec.Taints, membershipv1alpha1.Taint{Key: "test.muster.dev/lost",
		Effect: corev1.TaintEffectNoExecute})
	require.NoError(h.T, h.Client.Patch(h.T.Context(), m, client.MergeFrom(before)))
}

// setColor changes the content of a WorkSet.
func (h *hub) setColor(name, color string, change func(*v1alpha1.WorkSetSpec)) {
	h.T.Helper()
	h.change(name, func(s *v1alpha1.WorkSet) {
		s.Spec.Manifests[0] = configMap(name, map[string]string{"color": color})
		if change != nil {
			change(&s.Spec)
		}
	})
}

// colors returns the desired colors of the members according to their Works, as a=blue b=green.
func (h *hub) colors(name string) string {
	h.T.Helper()
	var all []string
	for work, w := range h.works(name) {
		if _, color, ok := strings.Cut(string(w.Spec.Manifests[0].Raw), `"color":"`); ok && w.DeletionTimestamp == nil {
			all = append(all, fmt.Sprint(work[:strings.Index(work, "/")], "=", color[:strings.Index(color, `"`)]))
		}
	}
	return strings.Join(sorted(all), " ")
}

func canaryFirst(s *v1alpha1.WorkSetSpec) {
	s.Rollout = v1alpha1.RolloutStrategy{
		Type: v1alpha1.RolloutProgressivePerGroup, MandatoryGroups: []v1alpha1.DecisionGroupReference{{Name: "canary"}},
	}
}

// TestRollout_CanaryIsLost checks that a revision after which the canary was lost, so that it is not chosen any more,
// is delivered to no other cluster, unless a user requests it.
func TestRollout_CanaryIsLost(t *testing.T) { testkit.Virtual(t, testRolloutCanaryIsLost) }

func testRolloutCanaryIsLost(t *testing.T) {
	h := newHub(t)
	h.members("a", "b", "c")
	h.group("all", "canary", "a")
	stop := h.simulateAgents()
	h.start(workset.Options{})
	h.distribute("web", "all", canaryFirst, configMap("web", map[string]string{"color": "blue"}))
	h.succeeded("web", 3)
	stop()
	h.setColor("web", "bad", nil)
	h.Holds("the canary has the new revision", func() bool { return h.colors("web") == "a=bad b=blue c=blue" })
	h.reportStatus(t.Context(), h.works("web")["a/web-0"], metav1.ConditionFalse)
	h.Holds("the rollout is halted", func() bool { return h.get("web").Status.Rollout.Phase == v1alpha1.PhaseFailed })

	h.evict("a")
	h.Holds("the rollout is halted without the canary", func() bool {
		s := h.get("web").Status
		return s.Counts.Total == 2 && s.Rollout.Phase == v1alpha1.PhaseFailed && strings.Contains(s.Message, "a (left)")
	})
	h.Holds("the other clusters keep the former revision", func() bool { return h.colors("web") == "b=blue c=blue" })

	h.change("web", func(s *v1alpha1.WorkSet) { s.Spec.Rollout.State = v1alpha1.RolloutStop })
	h.Holds("the rollout is stopped", func() bool {
		return h.get("web").Status.Rollout.Phase == v1alpha1.PhaseStopped
	})
	h.change("web", func(s *v1alpha1.WorkSet) { s.Spec.Rollout.State = v1alpha1.RolloutRun })
	h.Holds("the rollout continues without the canary", func() bool { return h.colors("web") == "b=bad c=bad" })
}

func TestRollout_PartsOfAGroup(t *testing.T) { testkit.Virtual(t, testRolloutPartsOfAGroup) }

// testRolloutPartsOfAGroup checks that the parts of a decision group are updated one after the other.
func testRolloutPartsOfAGroup(t *testing.T) {
	h := newHub(t)
	h.members("a", "b", "c")
	h.place("all")
	p := &v1alpha1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: "all"}}
	mustertest.Change(t, h.Client, p, func(p *v1alpha1.Placement) {
		p.Spec.ClustersPerDecisionGroup = new(intstr.FromInt32(2))
	})
	stop := h.simulateAgents()
	h.start(workset.Options{})
	perGroup := func(s *v1alpha1.WorkSetSpec) { s.Rollout.Type = v1alpha1.RolloutProgressivePerGroup }
	h.distribute("web", "all", perGroup, configMap("web", map[string]string{"color": "blue"}))
	h.succeeded("web", 3)
	stop()
	h.setColor("web", "green", nil)
	h.Holds("the first part has the new revision", func() bool { return h.colors("web") == "a=green b=green c=blue" })
	stages := func() (names []string) {
		for _, stage := range h.get("web").Status.Rollout.Stages {
			names = append(names, stage.Name)
		}
		return names
	}
	h.Holds("the parts are stages", func() bool { return slices.Equal(stages(), []string{"0", "0.1"}) })
	stop = h.simulateAgents()
	defer stop()
	h.succeeded("web", 3)
	require.Equal(t, "a=green b=green c=green", h.colors("web"))
}

// TestFailover_DuringBlockedRollout checks that a cluster that replaces another one gets the revision of that cluster,
// however long a new revision waits.
func TestFailover_DuringBlockedRollout(t *testing.T) {
	testkit.Virtual(t, testFailoverDuringBlockedRollout)
}

func testFailoverDuringBlockedRollout(t *testing.T) {
	h := newHub(t)
	h.members("a", "b", "c")
	h.place("one", "a")
	h.simulateAgents()
	r := h.start(workset.Options{})
	h.distribute("web", "one", nil, configMap("web", map[string]string{"color": "blue"}))
	h.succeeded("web", 1)
	stable := h.get("web").Status.Revision
	h.setColor("web", "green", func(s *v1alpha1.WorkSetSpec) { s.Rollout.State = v1alpha1.RolloutPause })
	h.Holds("the rollout is paused", func() bool { return h.get("web").Status.Rollout.Phase == v1alpha1.PhasePaused })

	h.evict("a")
	h.choose("one", "b")
	h.Holds("the replacement has the revision of the evicted cluster", func() bool {
		return h.colors("web") == "b=blue" && h.get("web").Status.Counts.Available == 1
	})
	require.Equal(t, stable, h.works("web")["b/web-0"].Annotations[v1alpha1.RevisionAnnotation])
	r.quiet(t)
	n := fmt.Sprint(r.wire.Writes())
	r.quiet(t)
	require.Equal(t, n, fmt.Sprint(r.wire.Writes()))

	h.change("web", func(s *v1alpha1.WorkSet) { s.Spec.Rollout.State = v1alpha1.RolloutRun })
	h.succeeded("web", 1)
	require.Equal(t, "b=green", h.colors("web"))

	h.change("web", func(s *v1alpha1.WorkSet) { s.Spec.Rollout.State = v1alpha1.RolloutPause })
	h.choose("one", "c")
	h.Holds("a pause after the rollout does not block a new cluster", func() bool {
		return h.colors("web") == "c=green"
	})
}

// TestRollout_MandatoryGroupIsMissing checks that a rollout does not guess the mandatory group, neither for a wrong
// name nor while a Placement is missing that determines the indexes of the other groups.
func TestRollout_MandatoryGroupIsMissing(t *testing.T) {
	testkit.Virtual(t, testRolloutMandatoryGroupIsMissing)
}

func testRolloutMandatoryGroupIsMissing(t *testing.T) {
	h := newHub(t)
	h.members("a", "b", "c")
	h.group("canaries", "canry", "a", "a")
	h.place("prod", "b", "c")
	h.simulateAgents()
	r := h.start(workset.Options{})
	h.distribute("web", "canaries", func(s *v1alpha1.WorkSetSpec) {
		canaryFirst(s)
		s.Placements = append(s.Placements, v1alpha1.PlacementReference{Name: "prod"})
	}, configMap("web", map[string]string{"color": "blue"}))
	h.Holds("the WorkSet reports the unknown group", func() bool {
		c := h.condition("web", v1alpha1.ConditionDegraded)
		return c.Reason == v1alpha1.ReasonInvalid && strings.HasPrefix(c.Message,
			"spec.rollout.mandatoryGroups[0]: no Placement has a decision group canary:")
	})
	require.Empty(t, h.colors("web"))
	h.regroup("canaries", v1alpha1.DecisionGroup{Name: "canary"})
	h.succeeded("web", 3)

	h.change("web", func(s *v1alpha1.WorkSet) {
		s.Spec.Rollout.MandatoryGroups = []v1alpha1.DecisionGroupReference{{Index: new(int32(0))}}
	})
	h.deletePlacement("canaries")
	h.Holds("the WorkSet reports the missing Placement", func() bool {
		return h.condition("web", v1alpha1.ConditionDegraded).Reason == v1alpha1.ReasonPlacementNotFound
	})
	h.setColor("web", "green", nil)
	h.Holds("the new revision exists", func() bool { return len(h.get("web").Status.Revisions) == 2 })
	r.quiet(t)
	require.Equal(t, "a=blue b=blue c=blue", h.colors("web"), "the remaining Placement is not the mandatory group")
	h.change("web", func(s *v1alpha1.WorkSet) { s.Spec.Placements = s.Spec.Placements[1:] })
	h.Holds("the WorkSet refers to the remaining Placement only", func() bool {
		return h.colors("web") == "b=green c=green"
	})
}
