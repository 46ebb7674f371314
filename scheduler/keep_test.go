package scheduler_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
	"github.com/muster-sdk/muster/scheduler/plugins"
	"github.com/muster-sdk/muster/scheduler/schedulertest"
)

// TestUnreported_BoundClusterStays checks that a cluster that was chosen before stays while its agent has not reported,
// even if a filter rejects it. It is removed when it leaves, when a user taints it, or after its agent has reported.
func TestUnreported_BoundClusterStays(t *testing.T) {
	s, err := scheduler.New(scheduler.Options{Registry: plugins.Registry(),
		Profiles: []scheduler.Profile{plugins.DefaultProfile()}})
	require.NoError(t, err)
	policy, err := scheduler.NewPolicy(&v1alpha1.PlacementPolicy{Affinity: &v1alpha1.ClusterAffinity{
		Required: []v1alpha1.ClusterSelectorTerm{
			{Properties: []v1alpha1.PropertyRequirement{{Name: "tier", Operator: v1alpha1.PropertyEq,
				Values: []string{"gold"}}}},
		},
	}})
	require.NoError(t, err)
	for _, test := range []struct {
		reason string
		change func(*scheduler.Cluster)
		bound  bool
		stays  bool
	}{
		{"not joined, without the property", func(c *scheduler.Cluster) {
			c.Joined, c.Healthy = false, false
		}, true, true},
		{"without a MemberCluster", func(c *scheduler.Cluster) {
			*c = scheduler.Cluster{Name: c.Name, Unreported: true, Absent: true}
		}, true, true},
		{"not bound", func(*scheduler.Cluster) {}, false, false},
		{"leaving", func(c *scheduler.Cluster) { c.Leaving = true }, true, false},
		{"tainted by a user", func(c *scheduler.Cluster) {
			c.Taints = []corev1.Taint{{Key: "repair", Effect: corev1.TaintEffectNoExecute}}
		}, true, false},
		{"reported, without the property", func(c *scheduler.Cluster) { c.Unreported = false }, true, false},
		{"reported, with the property", func(c *scheduler.Cluster) {
			c.Unreported, c.Properties = false, map[string]string{"tier": "gold"}
		}, false, true},
	} {
		cluster := schedulertest.Cluster("a")
		cluster.Unreported = true
		test.change(cluster)
		var cache scheduler.Cache
		cache.Update(cluster)
		request := &scheduler.Request{Policy: policy, Now: schedulertest.Now}
		if test.bound {
			request.Bound = []string{"a"}
		}
		result, err := s.Schedule(t.Context(), cache.Snapshot(), request)
		require.NoError(t, err, test.reason)
		require.Equal(t, test.stays, len(result.Chosen) == 1, test.reason)
	}
}
