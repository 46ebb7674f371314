package placement_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/placement"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// TestDecisions_OnlyAffectedPlacements checks that a change of one cluster causes decisions of exactly those of 200
// placements over 100 clusters that are on it, or that it could help.
func TestDecisions_OnlyAffectedPlacements(t *testing.T) {
	testkit.Virtual(t, testDecisionsOnlyAffectedPlacements)
}

func testDecisionsOnlyAffectedPlacements(t *testing.T) {
	h, s := newHub(t), newSource()
	avoided := func(c *scheduler.Cluster) {
		c.Taints = []corev1.Taint{{Key: "old", Effect: corev1.TaintEffectPreferNoSchedule}}
	}
	for i := range 100 {
		s.set(cluster(fmt.Sprintf("c-%02d", i), fmt.Sprintf("r-%d", i%10)))
	}
	s.set(cluster("c-95", "r-5", avoided))
	var waiting, others []string
	for i := range 200 {
		name, policy := fmt.Sprintf("p-%03d", i), inRegion(pick(3), fmt.Sprintf("r-%d", i%10))
		if i < 20 { // these lack a cluster
			policy = inRegion(pick(1), fmt.Sprintf("new-%d", i%2))
			waiting = append(waiting, name)
		} else {
			others = append(others, name)
		}
		h.create(name, policy)
	}
	decider := newCounting(t)
	r := h.start(placement.Options{Clusters: s, Decider: decider})
	decisions := func() int64 { return int64(decider.total()) }
	h.Holds("all placements are decided", func() bool { return decisions() >= 200 })
	h.Holds("all placements have a status", func() bool {
		var list v1alpha1.PlacementList
		require.NoError(t, h.Client.List(t.Context(), &list, client.InNamespace(h.Namespace)))
		return !slices.ContainsFunc(list.Items, func(p v1alpha1.Placement) bool { return len(p.Status.Conditions) == 0 })
	})
	quiet(t, decisions)
	if diff := cmp.Diff(slices.Concat(waiting, others), slices.Sorted(maps.Keys(decider.takeCounts()))); diff != "" {
		t.Fatalf("decided at the start (-want +got):\n%s", diff)
	}
	on := func(cluster string) []string {
		var placements []string
		for _, slice := range h.slices() {
			if slices.ContainsFunc(slice.Decisions, func(d v1alpha1.ClusterDecision) bool { return d.ClusterName == cluster }) {
				placements = append(placements, metav1.GetControllerOf(&slice).Name)
			}
		}
		return sorted(placements)
	}
	writes := r.transport.writes.Load()
	requireDecided := func(reason string, want []string, change func()) {
		t.Helper()
		decider.takeCounts()
		change()
		h.Holds(reason, func() bool { return decider.total() >= len(want) })
		quiet(t, decisions)
		if diff := cmp.Diff(sorted(want), slices.Sorted(maps.Keys(decider.takeCounts())), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: decided again (-want +got):\n%s", reason, diff)
		}
	}
	require.Len(t, on("c-05"), 6,
		"18 placements of the region are on three each of its nine clusters without a taint")
	require.Empty(t, on("c-95"))
	requireDecided("a change of available resources", nil, func() {
		s.set(cluster("c-05", "r-5", func(c *scheduler.Cluster) {
			c.Available = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3")}
		}))
	})
	requireDecided("an equal amount in another notation", nil, func() {
		s.set(cluster("c-05", "r-5", func(c *scheduler.Cluster) {
			c.Available = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3000m")}
		}))
	})
	requireDecided("another label affects the placements on the cluster", on("c-05"), func() {
		s.set(cluster("c-05", "r-5", func(c *scheduler.Cluster) { c.Labels["tier"] = "gold" }))
	})
	require.Equal(t, writes, r.transport.writes.Load(), "no decision has changed so far")
	requireDecided("a cluster without placements affects no complete placement", nil, func() {
		s.set(cluster("c-95", "r-5", avoided, func(c *scheduler.Cluster) { c.Labels["tier"] = "gold" }))
	})
	requireDecided("a new cluster affects the placements that wait for its region",
		[]string{"p-001", "p-003", "p-005", "p-007", "p-009", "p-011", "p-013",
			"p-015", "p-017", "p-019"}, func() {
			s.set(cluster("c-new", "new-1"))
		})
	former := on("c-05")
	requireDecided("another region affects the placements on the cluster and those that wait for it",
		slices.Concat(former,
			[]string{"p-000", "p-002", "p-004", "p-006", "p-008", "p-010", "p-012", "p-014", "p-016", "p-018"}), func() {
			s.set(cluster("c-05", "new-0"))
		})
	require.Len(t, on("c-05"), 10)
}

// TestDecisions_ConcurrentClusterChange checks that a change of a cluster is not lost if it is observed while a
// placement is being decided with the former fleet, although the placement was not recorded on the cluster yet.
func TestDecisions_ConcurrentClusterChange(t *testing.T) {
	testkit.Virtual(t, testDecisionsConcurrentClusterChange)
}

func testDecisionsConcurrentClusterChange(t *testing.T) {
	h, s := newHub(t), newSource(cluster("a", "eu"), cluster("b", "eu"))
	decider := &pausedDecider{Decider: newCounting(t), in: make(chan string), out: make(chan struct{})}
	h.create("web", inRegion(pick(1), "eu"))
	h.start(placement.Options{Clusters: s, Decider: decider})
	decided := func() string {
		select {
		case name := <-decider.in:
			return name
		case <-time.After(30 * time.Second):
			return "nothing is decided"
		}
	}
	require.Equal(t, "a", decided())
	s.set(cluster("a", "us"))
	decider.out <- struct{}{}
	require.Equal(t, "b", decided())
	decider.out <- struct{}{}
	h.Holds("the placement is on b", func() bool { return slices.Equal(h.chosen("web"), []string{"b"}) })
}

// pausedDecider is a Decider that reports its decision and waits for a signal before it returns.
type pausedDecider struct {
	placement.Decider
	in  chan string
	out chan struct{}
}

func (p *pausedDecider) Schedule(ctx context.Context, snapshot *scheduler.Snapshot,
	request *scheduler.Request) (scheduler.Result, error) {
	result, err := p.Decider.Schedule(ctx, snapshot, request)
	select {
	case p.in <- result.Chosen[0].Cluster.Name:
		<-p.out
	case <-ctx.Done():
	}
	return result, err
}

// TestDecider_Failures checks that a placement whose decisions fail, by an error, a panic, a timeout or Goexit, does
// not stop the others, and keeps its clusters.
func TestDecider_Failures(t *testing.T) { testkit.Virtual(t, testDeciderFailures) }

func testDeciderFailures(t *testing.T) {
	h, s := newHub(t), newSource(many(3, "eu")...)
	decider := &failingDecider{Decider: newCounting(t), hung: make(chan struct{})}
	names := []string{"error", "panic", "hang", "goexit"}
	for _, name := range names {
		h.create(name, pick(1))
	}
	h.start(placement.Options{Clusters: s, Decider: decider, Workers: 1, Timeout: 300 * time.Millisecond})
	h.scheduled(v1alpha1.ReasonScheduled, names...)
	before := map[string][]string{}
	for _, name := range names {
		before[name] = h.chosen(name)
	}
	decider.set(true)
	for _, name := range names {
		h.change(name, func(p *v1alpha1.Placement) { p.Spec.Policy = pick(2) })
	}
	h.scheduled(v1alpha1.ReasonDecideFailed, names...)
	for _, name := range names {
		require.Equal(t, before[name], h.chosen(name))
		require.EqualValues(t, 1, h.get(name).Status.SelectedClusters)
	}
	require.Contains(t, h.condition("error").Message, "no idea")
	require.Contains(t, h.condition("panic").Message, "the Decider panicked: oh")
	require.Contains(t, h.condition("hang").Message, "the Decider did not return")
	h.create("well", pick(2))
	h.scheduled(v1alpha1.ReasonScheduled, "well")
	decider.set(false)
	close(decider.hung)
	h.scheduled(v1alpha1.ReasonScheduled, names...)
}

type failingDecider struct {
	placement.Decider
	mu   sync.Mutex
	bad  bool
	hung chan struct{}
}

func (f *failingDecider) set(bad bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.bad = bad
}

func (f *failingDecider) Schedule(ctx context.Context, snapshot *scheduler.Snapshot,
	request *scheduler.Request) (scheduler.Result, error) {
	f.mu.Lock()
	bad := f.bad
	f.mu.Unlock()
	if _, name, _ := strings.Cut(request.Name, "/"); bad {
		switch name {
		case "error":
			return scheduler.Result{}, errors.New("no idea")
		case "panic":
			panic("oh")
		case "hang":
			<-f.hung
		case "goexit":
			runtime.Goexit()
		}
	}
	return f.Decider.Schedule(ctx, snapshot, request)
}

// TestMemberClusters checks that the MemberClusters are the clusters by default, that their labels and taints move
// placements, and that heartbeats do not.
func TestMemberClusters(t *testing.T) { testkit.Virtual(t, testMemberClusters) }

func testMemberClusters(t *testing.T) {
	h := newHub(t)
	region := h.Namespace // MemberClusters are in no namespace
	member := func(name string) *membershipv1alpha1.MemberCluster {
		m := &membershipv1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: region + "-" + name,
			Labels: map[string]string{"region": region}}}
		h.Create(m)
		t.Cleanup(func() { require.NoError(t, h.Client.Delete(context.Background(), m)) })
		before := m.DeepCopy()
		for _, kind := range []string{membershipv1alpha1.ConditionJoined, membershipv1alpha1.ConditionHealthy} {
			m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{
				Type: kind, Status: metav1.ConditionTrue, Reason: "Test", LastTransitionTime: metav1.Now(),
			})
		}
		require.NoError(t, h.Client.Status().Patch(t.Context(), m, client.MergeFrom(before)))
		return m
	}
	a, b := member("a"), member("b")
	h.create("web", inRegion(pick(1), region))
	h.create("all", inRegion(v1alpha1.PlacementPolicy{}, region))
	decider := newCounting(t)
	h.start(placement.Options{Decider: decider})
	h.scheduled(v1alpha1.ReasonScheduled, "web", "all")
	require.Equal(t, []string{a.Name}, h.chosen("web"))
	quiet(t, func() int64 { return int64(decider.total()) })
	decider.takeCounts()

	before := a.DeepCopy()
	a.Status.Resources.Available = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("7")}
	require.NoError(t, h.Client.Status().Patch(t.Context(), a, client.MergeFrom(before)))
	quiet(t, func() int64 { return int64(decider.total()) })
	require.Empty(t, decider.takeCounts(), "a heartbeat must cause no decision")

	before = a.DeepCopy()
	now := metav1.Now()
	a.Spec.Taints = []membershipv1alpha1.Taint{{Key: "membership.muster.dev/unreachable",
		Effect: corev1.TaintEffectNoExecute, TimeAdded: &now}}
	require.NoError(t, h.Client.Patch(t.Context(), a, client.MergeFrom(before)))
	quiet(t, func() int64 { return int64(decider.total()) })
	require.Equal(t, map[string]int{"all": 1, "web": 1}, decider.takeCounts())
	require.Equal(t, []string{a.Name}, h.chosen("web"), "a lost member is not left")
	require.Len(t, h.chosen("all"), 2)

	before = a.DeepCopy()
	a.Spec.Taints = []membershipv1alpha1.Taint{{Key: "example.com/repair", Effect: corev1.TaintEffectNoExecute,
		TimeAdded: &now}}
	require.NoError(t, h.Client.Patch(t.Context(), a, client.MergeFrom(before)))
	h.Holds("a member with a user's taint is left", func() bool {
		return slices.Equal(h.chosen("web"), []string{b.Name}) && slices.Equal(h.chosen("all"), []string{b.Name})
	})
	diagnosis, err := placement.Explain(t.Context(), h.Client, placement.Options{}, h.get("web"))
	require.NoError(t, err)
	require.Contains(t, diagnosis.String(), "1 has taint example.com/repair")
	before = a.DeepCopy()
	a.Spec.Taints = nil
	require.NoError(t, h.Client.Patch(t.Context(), a, client.MergeFrom(before)))
	h.Holds("PickAll selects the member again", func() bool { return len(h.chosen("all")) == 2 })
	require.Equal(t, []string{b.Name}, h.chosen("web"), "PickN stays on the other member")

	// Required APIs are compared with the APIs that members report.
	widget := metav1.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	h.create("widgets", inRegion(v1alpha1.PlacementPolicy{RequiredAPIs: []metav1.GroupVersionKind{widget}}, region))
	h.scheduled(v1alpha1.ReasonScheduled, "widgets")
	requireMessage := func(suffix string) {
		t.Helper()
		h.Holds(suffix, func() bool {
			c := meta.FindStatusCondition(h.get("widgets").Status.Conditions, v1alpha1.ConditionScheduled)
			return c != nil && strings.HasSuffix(c.Message, suffix)
		})
	}
	requireMessage("; 2 of them do not report their APIs")
	serves := func(m *membershipv1alpha1.MemberCluster, kinds ...string) {
		before := m.DeepCopy()
		m.Status.APIs = []membershipv1alpha1.ServedAPIs{{GroupVersion: "example.com/v1", Kinds: kinds}}
		require.NoError(t, h.Client.Status().Patch(t.Context(), m, client.MergeFrom(before)))
	}
	serves(a, "Gadget")
	requireMessage("; 1 of them does not report its APIs")
	serves(b, "Gadget", "Widget")
	requireMessage("2 of 2 clusters chosen")
	require.Len(t, h.chosen("widgets"), 2, "a chosen cluster stays: it may serve the kind again soon")
	h.create("more-widgets", inRegion(v1alpha1.PlacementPolicy{RequiredAPIs: []metav1.GroupVersionKind{widget}}, region))
	h.scheduled(v1alpha1.ReasonScheduled, "more-widgets")
	require.Equal(t, []string{b.Name}, h.chosen("more-widgets"))
	require.Contains(t, h.condition("more-widgets").Message, "1 does not serve example.com/v1 Widget")
}
