package placement_test

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/placement"
	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// restricted is the configuration of a user who may do what is in the folder rbac, and nothing else.
func (h *hub) restricted() *rest.Config {
	h.t.Helper()
	file, err := os.ReadFile("rbac/role.yaml")
	require.NoError(h.t, err)
	role := &rbacv1.ClusterRole{}
	require.NoError(h.t, yaml.UnmarshalStrict(file, role))
	role.Name = h.namespace
	require.NoError(h.t, h.client.Create(h.t.Context(), role))
	require.NoError(h.t, h.client.Create(h.t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: h.namespace}},
	}))
	return plane.ForTest(h.t).User(h.namespace)
}

// The role in the folder rbac is enough for all that the controller does, and for nothing else.
func TestPermissions(t *testing.T) {
	h, s := newHub(t), newSource(many(101, "eu")...)
	config := h.restricted()
	old := h.create("web", v1alpha1.PlacementPolicy{})
	restricted := func(s *setup) {
		s.config.TLSClientConfig, s.config.BearerToken = config.TLSClientConfig, config.BearerToken
	}
	first := h.start(placement.Options{Clusters: s}, restricted)
	h.scheduled(v1alpha1.ReasonScheduled, "web")
	h.eventually("it creates events", func() bool {
		var list eventsv1.EventList
		require.NoError(t, h.client.List(t.Context(), &list, client.InNamespace(h.namespace)))
		return slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool {
			return e.Regarding.Name == "web" && e.Reason == v1alpha1.ReasonScheduled && e.Note == "101 of 101 clusters chosen"
		})
	})
	s.remove("eu-000")
	h.eventually("it updates", func() bool { return !slices.Contains(h.chosen("web"), "eu-000") })
	s.remove("eu-100")
	h.eventually("it deletes", func() bool { return len(h.slices()) == 1 })
	first.stop()
	require.NoError(t, h.client.Delete(t.Context(), old))
	h.create("web", pick(1))
	h.start(placement.Options{}, restricted) // which watches MemberClusters, too
	h.scheduled(v1alpha1.ReasonUnschedulable, "web")

	c, err := client.New(config, client.Options{Scheme: scheme(t)})
	require.NoError(t, err)
	in := metav1.ObjectMeta{Namespace: h.namespace, Name: "web"}
	for what, err := range map[string]error{
		"create placements":         c.Create(t.Context(), &v1alpha1.Placement{ObjectMeta: in}),
		"change placements":         c.Patch(t.Context(), &v1alpha1.Placement{ObjectMeta: in}, client.RawPatch("application/merge-patch+json", []byte("{}"))),
		"delete placements":         c.Delete(t.Context(), &v1alpha1.Placement{ObjectMeta: in}),
		"delete all decisions":      c.DeleteAllOf(t.Context(), &v1alpha1.PlacementDecision{}, client.InNamespace(h.namespace)),
		"create members":            c.Create(t.Context(), &membershipv1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}),
		"write the status of those": c.Status().Patch(t.Context(), &membershipv1alpha1.MemberCluster{ObjectMeta: in}, client.RawPatch("application/merge-patch+json", []byte("{}"))),
		"read roles":                c.List(t.Context(), &rbacv1.ClusterRoleList{}),
	} {
		require.True(t, apierrors.IsForbidden(err), "%s: %v", what, err)
	}
}

// Of two managers one decides, and when it ends the other goes on where it was.
func TestTwoManagers(t *testing.T) {
	h, s := newHub(t), newSource(many(3, "eu")...)
	elected := func(s *setup) {
		o := s.options
		o.LeaderElection, o.LeaderElectionID, o.LeaderElectionNamespace, o.LeaderElectionReleaseOnCancel = true, "placement", h.namespace, true
		o.LeaseDuration, o.RenewDeadline, o.RetryPeriod = new(4*time.Second), new(3*time.Second), new(200*time.Millisecond)
	}
	deciders, managers := []*counting{newCounting(t), newCounting(t)}, []*running(nil)
	for _, decider := range deciders {
		managers = append(managers, h.start(placement.Options{Clusters: s, Decider: decider}, elected))
	}
	h.create("web", pick(2))
	h.scheduled(v1alpha1.ReasonScheduled, "web")
	leader := slices.IndexFunc(deciders, func(d *counting) bool { return d.total() > 0 })
	require.GreaterOrEqual(t, leader, 0)
	other := 1 - leader
	require.Zero(t, deciders[other].total())
	before := versions(h.slices())
	managers[leader].stop()
	h.eventually("the other goes on", func() bool { return deciders[other].total() > 0 })
	quiet(t, func() int64 { return int64(deciders[other].total()) })
	require.Equal(t, before, versions(h.slices()))
	require.Zero(t, managers[other].wire.writes.Load())
	s.remove(h.chosen("web")[0])
	h.eventually("it follows", func() bool { return slices.Equal(sorted(h.chosen("web")), []string{"eu-001", "eu-002"}) })
}
