package placement_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/placement"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// restricted returns the configuration of a user with exactly the permissions in the folder rbac.
func (h *hub) restricted() *rest.Config {
	h.T.Helper()
	role := mustertest.ClusterRole(h.T, "rbac/role.yaml")
	role.Name = h.Namespace
	require.NoError(h.T, mustertest.Grant(h.T.Context(), h.Client, h.Namespace, role))
	return plane.ForTest(h.T).User(h.Namespace)
}

// TestPermissions checks that the role in the folder rbac allows all requests of the controller, and no others.
func TestPermissions(t *testing.T) {
	h, s := newHubOnPlane(t), newSource(many(101, "eu")...)
	config := h.restricted()
	old := h.create("web", v1alpha1.PlacementPolicy{})
	restricted := func(s *setup) {
		s.config.TLSClientConfig, s.config.BearerToken = config.TLSClientConfig, config.BearerToken
	}
	first := h.start(placement.Options{Clusters: s}, restricted)
	h.scheduled(v1alpha1.ReasonScheduled, "web")
	h.Holds("the controller creates Events", func() bool {
		var list eventsv1.EventList
		require.NoError(t, h.Client.List(t.Context(), &list, client.InNamespace(h.Namespace)))
		return slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool {
			return e.Regarding.Name == "web" && e.Reason == v1alpha1.ReasonScheduled && e.Note == "101 of 101 clusters chosen"
		})
	})
	h.evict("gone-soon", "web", "nowhere", func(e *v1alpha1.PlacementEviction) {
		e.Spec.TTLSecondsAfterExecution = new(int32(0))
	})
	h.Holds("the controller executes and deletes evictions", func() bool { return !h.evictionExists("gone-soon") })
	s.remove("eu-000")
	h.Holds("the controller updates decisions", func() bool { return !slices.Contains(h.chosen("web"), "eu-000") })
	s.remove("eu-100")
	h.Holds("the controller deletes decisions", func() bool { return len(h.slices()) == 1 })
	first.stop()
	require.NoError(t, h.Client.Delete(t.Context(), old))
	h.create("web", pick(1))
	h.start(placement.Options{}, restricted) // this manager also watches MemberClusters
	h.scheduled(v1alpha1.ReasonUnschedulable, "web")

	c := mustertest.Client(t, config, scheme)
	in := metav1.ObjectMeta{Namespace: h.Namespace, Name: "web"}
	for request, err := range map[string]error{
		"create placements": c.Create(t.Context(), &v1alpha1.Placement{ObjectMeta: in}),
		"change placements": c.Patch(t.Context(), &v1alpha1.Placement{ObjectMeta: in},
			client.RawPatch("application/merge-patch+json", []byte("{}"))),
		"delete placements": c.Delete(t.Context(), &v1alpha1.Placement{ObjectMeta: in}),
		"delete all decisions": c.DeleteAllOf(t.Context(), &v1alpha1.PlacementDecision{},
			client.InNamespace(h.Namespace)),
		"create evictions": c.Create(t.Context(), &v1alpha1.PlacementEviction{ObjectMeta: in,
			Spec: v1alpha1.PlacementEvictionSpec{Placement: "web", Cluster: "a"}}),
		"change evictions": c.Patch(t.Context(), &v1alpha1.PlacementEviction{ObjectMeta: in},
			client.RawPatch("application/merge-patch+json", []byte("{}"))),
		"create members": c.Create(t.Context(),
			&membershipv1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}),
		"write the status of members": c.Status().Patch(t.Context(), &membershipv1alpha1.MemberCluster{ObjectMeta: in},
			client.RawPatch("application/merge-patch+json", []byte("{}"))),
		"read roles": c.List(t.Context(), &rbacv1.ClusterRoleList{}),
	} {
		require.True(t, apierrors.IsForbidden(err), "%s: %v", request, err)
	}
}

// TestTwoManagers checks that one of two managers decides, and that the other continues from the existing decisions
// when the first one ends.
func TestTwoManagers(t *testing.T) { testkit.Virtual(t, testTwoManagers) }

func testTwoManagers(t *testing.T) {
	h, s := newHub(t), newSource(many(3, "eu")...)
	elected := func(s *setup) {
		o := s.options
		o.LeaderElection, o.LeaderElectionID, o.LeaderElectionNamespace, o.LeaderElectionReleaseOnCancel = true, "placement",
			h.Namespace, true
		o.LeaseDuration, o.RenewDeadline, o.RetryPeriod = new(4*time.Second), new(3*time.Second), new(200*time.Millisecond)
	}
	deciders, managers := []*countingDecider{newCounting(t), newCounting(t)}, []*running(nil)
	for _, decider := range deciders {
		managers = append(managers, h.start(placement.Options{Clusters: s, Decider: decider}, elected))
	}
	h.create("web", pick(2))
	h.scheduled(v1alpha1.ReasonScheduled, "web")
	leader := slices.IndexFunc(deciders, func(d *countingDecider) bool { return d.total() > 0 })
	require.GreaterOrEqual(t, leader, 0)
	other := 1 - leader
	require.Zero(t, deciders[other].total())
	before := versions(h.slices())
	managers[leader].stop()
	h.Holds("the other manager decides", func() bool { return deciders[other].total() > 0 })
	quiet(t, func() int64 { return int64(deciders[other].total()) })
	require.Equal(t, before, versions(h.slices()))
	require.Zero(t, managers[other].transport.writes.Load())
	s.remove(h.chosen("web")[0])
	h.Holds("the placement leaves the removed cluster", func() bool {
		return slices.Equal(sorted(h.chosen("web")), []string{"eu-001", "eu-002"})
	})
}

// TestEvictionRateSurvivesRestarts stops the controller after each write, and checks that the next process evicts no
// more than the rate allows in the period.
func TestEvictionRateSurvivesRestarts(t *testing.T) {
	for _, executed := range []bool{false, true} {
		for k := range int64(3) {
			t.Run(fmt.Sprintf("write %d, executed: %v", k, executed), func(t *testing.T) {
				testkit.Virtual(t, func(t *testing.T) {
					h, s, clock := newHub(t), newSource(many(6, "eu")...), clocktesting.NewFakeClock(time.Now())
					first := h.start(placement.Options{Clusters: s, Clock: clock})
					h.evictable("web", v1alpha1.PlacementSpec{Policy: pick(3),
						Failover: &v1alpha1.FailoverPolicy{MaxEvictions: new(int32(1)), PeriodSeconds: new(int32(3600))}})
					first.stop()
					lost := h.chosen("web")[:2]
					for _, name := range lost {
						s.set(cluster(name, "eu", func(c *scheduler.Cluster) {
							c.Healthy, c.Taints = false, []corev1.Taint{{Key: "lost", Effect: corev1.TaintEffectNoExecute}}
						}))
					}
					left := func() int {
						return 2 - len(slices.DeleteFunc(h.chosen("web"), func(name string) bool { return !slices.Contains(lost, name) }))
					}
					second := h.start(placement.Options{Clusters: s, Clock: clock}, crashAfter(k, executed))
					h.Holds("the process crashes", func() bool { return second.transport.writes.Load() > k || left() == 1 })
					second.stop()
					decider := newCounting(t)
					h.start(placement.Options{Clusters: s, Clock: clock, Decider: decider})
					h.Holds("the placement is decided again", func() bool { return decider.total() > 0 })
					h.Holds("the eviction is recorded", func() bool { return len(h.get("web").Status.RecentEvictions) == 1 })
					quiet(t, func() int64 { return int64(decider.total()) })
					require.LessOrEqual(t, left(), 1)
					require.EqualValues(t, 1, h.get("web").Status.RecentEvictions[0].Count)
					clock.Step(3602 * time.Second)
					h.Holds("one cluster is left", func() bool { return left() >= 1 })
					clock.Step(3602 * time.Second)
					h.Holds("the other cluster is left", func() bool { return left() == 2 })
				})
			})
		}
	}
}
