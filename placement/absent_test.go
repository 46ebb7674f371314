package placement_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/placement"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// absences returns policies whose placements choose three clusters that have labels and properties.
func absences() map[string]v1alpha1.PlacementPolicy {
	return map[string]v1alpha1.PlacementPolicy{
		"all": {}, "fixed": {Type: v1alpha1.PickFixed, ClusterNames: []string{"eu-000", "eu-001", "eu-002"}},
		"some": inRegion(pick(3), "eu"),
	}
}

// untilMissing waits until a placement reports that it stays on this number of missing clusters. 0: all of its clusters
// exist.
func (h *hub) untilMissing(name string, n int) {
	h.T.Helper()
	h.Holds("missing clusters are reported", func() bool {
		c := meta.FindStatusCondition(h.get(name).Status.Conditions, v1alpha1.ConditionClustersObserved)
		if n == 0 {
			return c != nil && c.Status == metav1.ConditionTrue
		}
		return c != nil && c.Status == metav1.ConditionFalse && c.Reason == v1alpha1.ReasonClusterMissing &&
			strings.Count(c.Message, "eu-00") == n
	})
}

// TestAbsentClusters_AllMissing checks that placements stay on clusters that are missing without an observed request,
// while the controller runs and when it starts, and that the decisions are not written.
func TestAbsentClusters_AllMissing(t *testing.T) {
	h, s := newHub(t), newSource(many(3, "eu")...)
	first := h.start(placement.Options{Clusters: s})
	for name, policy := range absences() {
		h.create(name, policy)
		h.scheduled(v1alpha1.ReasonScheduled, name)
	}
	before := versions(h.slices())
	for _, c := range many(3, "eu") {
		s.set(&scheduler.Cluster{Name: c.Name, Absent: true})
	}
	for name := range absences() {
		h.untilMissing(name, 3)
	}
	require.Equal(t, before, versions(h.slices()), "no decision was written")
	for _, c := range many(3, "eu") { // a source may report more than once that a cluster is missing
		s.set(&scheduler.Cluster{Name: c.Name, Absent: true})
	}
	h.create("meanwhile", v1alpha1.PlacementPolicy{})
	h.scheduled(v1alpha1.ReasonUnschedulable, "meanwhile")
	mustertest.Quiet(t, time.Second, func() string { return fmt.Sprint(versions(h.slices())) })
	require.Equal(t, before, versions(h.slices()), "no decision was written")

	first.stop()
	h.start(placement.Options{Clusters: newSource()}) // an empty list
	h.create("late", v1alpha1.PlacementPolicy{})
	h.scheduled(v1alpha1.ReasonUnschedulable, "late")
	require.Empty(t, h.chosen("late"), "a missing cluster is not newly chosen")
	for name := range absences() {
		h.change(name, func(p *v1alpha1.Placement) {
			if name == "fixed" {
				p.Spec.Failover = &v1alpha1.FailoverPolicy{}
				return
			}
			p.Spec.Policy.Tolerations = []v1alpha1.Toleration{{Key: "decide-again", Operator: corev1.TolerationOpExists}}
		})
		h.Holds("the placement is decided again", func() bool {
			p := h.get(name)
			return p.Status.DecidedGeneration == p.Generation
		})
		h.untilMissing(name, 3)
		require.Len(t, h.chosen(name), 3)
	}
	require.Equal(t, before, versions(h.slices()), "no decision was written after a restart")
}

// TestAbsentClusters_LeftOnRequest checks that a placement leaves missing clusters after a removal on request, after an
// eviction and when numberOfClusters is reduced, and that it observes clusters that return.
func TestAbsentClusters_LeftOnRequest(t *testing.T) {
	h, s := newHub(t), newSource(many(3, "eu")...)
	h.start(placement.Options{Clusters: s})
	for name, policy := range absences() {
		h.create(name, policy)
		h.scheduled(v1alpha1.ReasonScheduled, name)
	}
	for _, c := range many(3, "eu") {
		s.set(&scheduler.Cluster{Name: c.Name, Absent: true})
	}
	for name := range absences() {
		h.untilMissing(name, 3)
	}
	s.set(many(1, "eu")...)
	for name := range absences() {
		h.untilMissing(name, 2)
	}
	s.remove("eu-001")
	h.Holds("a removal on request is carried out", func() bool {
		return !contains(h.chosen("all"), "eu-001") && !contains(h.chosen("fixed"), "eu-001")
	})
	h.evict("leave", "all", "eu-002")
	h.Holds("an eviction is carried out", func() bool { return !contains(h.chosen("all"), "eu-002") })
	h.untilMissing("all", 0)
	require.True(t, contains(h.chosen("some"), "eu-002"), "the eviction is of another placement")
	h.change("some", func(p *v1alpha1.Placement) { p.Spec.Policy = inRegion(pick(1), "eu") })
	h.Holds("fewer clusters are desired", func() bool { return len(h.chosen("some")) == 1 })
	require.Equal(t, []string{"eu-000"}, h.chosen("some"), "an existing cluster is preferred")
}

// recorded contains the recorded removals, by cluster. The controller reads them while it decides.
type recorded struct {
	requests chan struct{} // for the removal of eu-001
	removals map[string]*placement.Removal
}

func (r recorded) LastRemoval(_ context.Context, cluster string) (*placement.Removal, error) {
	switch cluster {
	case "eu-001":
		select {
		case r.requests <- struct{}{}:
		default:
		}
	case "eu-002":
		return nil, errors.New("the record cannot be read")
	}
	return r.removals[cluster], nil
}

// TestAbsentClusters_RemovedWhileStopped checks that a placement leaves a missing cluster whose removal was recorded
// after the placement chose it, and stays on clusters with an older record or with a record that cannot be read.
func TestAbsentClusters_RemovedWhileStopped(t *testing.T) {
	h, s := newHub(t), newSource(many(3, "eu")...)
	first := h.start(placement.Options{Clusters: s})
	for name, policy := range absences() {
		h.create(name, policy)
		h.scheduled(v1alpha1.ReasonScheduled, name)
	}
	first.stop()
	later := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: "left"}}
	h.Create(later)
	inTime, before := time.Now().Add(time.Hour), time.Now().Add(-time.Hour)
	for _, step := range []struct {
		removal placement.Removal
		chosen  []string
	}{
		{placement.Removal{Time: before, ResourceVersion: later.ResourceVersion}, []string{"eu-000", "eu-001", "eu-002"}},
		{placement.Removal{Time: inTime, ResourceVersion: "1"}, []string{"eu-000", "eu-001", "eu-002"}},
		{placement.Removal{Time: inTime, ResourceVersion: later.ResourceVersion}, []string{"eu-000", "eu-002"}},
	} {
		requests := make(chan struct{}, 100)
		removals := map[string]*placement.Removal{
			"eu-000": {Time: before, ResourceVersion: "1"}, "eu-001": &step.removal,
		}
		running := h.start(placement.Options{Clusters: newSource(), Removals: recorded{requests, removals}})
		for range absences() { // each placement requests the removal of eu-001
			select {
			case <-requests:
			case <-time.After(time.Minute):
				t.Fatal("no placement requests the removal of eu-001")
			}
		}
		for name := range absences() {
			h.untilMissing(name, len(step.chosen))
			h.Holds("the decision follows the records", func() bool {
				return slices.Equal(step.chosen, slices.Sorted(slices.Values(h.chosen(name))))
			})
		}
		running.stop()
	}
}

// joinedMember creates a MemberCluster that has joined and reported the property tier.
func (h *hub) joinedMember(name string) {
	h.T.Helper()
	h.restoredMember(name)
	member := &membershipv1alpha1.MemberCluster{}
	require.NoError(h.T, h.Client.Get(h.T.Context(), client.ObjectKey{Name: name}, member))
	for _, kind := range []string{membershipv1alpha1.ConditionJoined, membershipv1alpha1.ConditionHealthy} {
		meta.SetStatusCondition(&member.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue,
			Reason: "Test", Message: "Set by a test."})
	}
	member.Status.Properties = []membershipv1alpha1.Property{{Name: "tier", Value: h.Namespace}}
	require.NoError(h.T, h.Client.Status().Update(h.T.Context(), member))
}

// restoredMember creates a MemberCluster without a status, as a restore does.
func (h *hub) restoredMember(name string) {
	h.T.Helper()
	member := &membershipv1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	h.Create(member)
	h.T.Cleanup(func() { _ = h.Client.Delete(context.Background(), member) })
}

// TestAbsentClusters_MemberClusters checks which deletions of MemberClusters are requests: a placement leaves a
// MemberCluster that is deleted with its finalizer, and keeps one that vanishes.
func TestAbsentClusters_MemberClusters(t *testing.T) {
	h := newHub(t)
	h.start(placement.Options{})
	names := []string{h.Namespace + "-a", h.Namespace + "-b"}
	for _, name := range names {
		h.joinedMember(name)
	}
	h.create("web", v1alpha1.PlacementPolicy{Affinity: &v1alpha1.ClusterAffinity{
		Required: []v1alpha1.ClusterSelectorTerm{{Properties: []v1alpha1.PropertyRequirement{{Name: "tier",
			Operator: v1alpha1.PropertyEq, Values: []string{h.Namespace}}}}},
	}})
	h.scheduled(v1alpha1.ReasonScheduled, "web")

	vanished := &membershipv1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: names[0]}}
	require.NoError(t, h.Client.Delete(t.Context(), vanished))
	h.Holds("a missing cluster is reported", func() bool {
		c := meta.FindStatusCondition(h.get("web").Status.Conditions, v1alpha1.ConditionClustersObserved)
		return c != nil && c.Status == metav1.ConditionFalse && strings.Contains(c.Message, names[0])
	})
	require.Len(t, h.chosen("web"), 2)

	h.restoredMember(names[0]) // restored without its status: its agent has not reported
	h.untilMissing("web", 0)
	require.Len(t, h.chosen("web"), 2)

	reported := &membershipv1alpha1.MemberCluster{}
	require.NoError(t, h.Client.Get(t.Context(), client.ObjectKey{Name: names[0]}, reported))
	meta.SetStatusCondition(&reported.Status.Conditions, metav1.Condition{
		Type: membershipv1alpha1.ConditionJoined, Status: metav1.ConditionTrue, Reason: "Test", Message: "Set by a test.",
	})
	reported.Status.Properties = []membershipv1alpha1.Property{{Name: "tier", Value: "bronze"}}
	require.NoError(t, h.Client.Status().Update(t.Context(), reported))
	h.Holds("a cluster that has reported another value is left", func() bool { return len(h.chosen("web")) == 1 })

	deleted := &membershipv1alpha1.MemberCluster{}
	require.NoError(t, h.Client.Get(t.Context(), client.ObjectKey{Name: names[1]}, deleted))
	deleted.Finalizers = []string{"example.com/leave"}
	require.NoError(t, h.Client.Update(t.Context(), deleted))
	require.NoError(t, h.Client.Delete(t.Context(), deleted))
	require.NoError(t, h.Client.Get(t.Context(), client.ObjectKey{Name: names[1]}, deleted))
	deleted.Status.Phase = membershipv1alpha1.PhaseLeaving // as the hub records that the deletion was requested
	require.NoError(t, h.Client.Status().Update(t.Context(), deleted))
	h.Holds("a cluster that was deleted on request is left", func() bool { return len(h.chosen("web")) == 0 })
	require.NoError(t, h.Client.Get(t.Context(), client.ObjectKey{Name: names[1]}, deleted))
	deleted.Finalizers = nil
	require.NoError(t, h.Client.Update(t.Context(), deleted))
	h.Holds("the MemberCluster is deleted", func() bool {
		return h.Client.Get(t.Context(), client.ObjectKey{Name: names[1]}, deleted) != nil
	})
	require.Empty(t, h.chosen("web"))
}
