package tainttoleration_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
	"github.com/muster-sdk/muster/scheduler/plugins/tainttoleration"
	"github.com/muster-sdk/muster/scheduler/schedulertest"
)

const (
	noSchedule = corev1.TaintEffectNoSchedule
	noExecute  = corev1.TaintEffectNoExecute
	prefer     = corev1.TaintEffectPreferNoSchedule
)

func cluster(name string, taints ...schedulertest.Option) *scheduler.Cluster {
	return schedulertest.Cluster(name, taints...)
}

func taint(key, value string, effect corev1.TaintEffect) schedulertest.Option {
	return schedulertest.Taint(key, value, effect, time.Minute)
}

func undated(c *scheduler.Cluster) { c.Taints[len(c.Taints)-1].TimeAdded = nil }

func clusters() []*scheduler.Cluster {
	return []*scheduler.Cluster{
		cluster("clean"),
		cluster("down", taint("unreachable", "", noExecute)),
		cluster("down-and-full", taint("unreachable", "", noExecute), taint("full", "", noSchedule)),
		cluster("down-undated", taint("unreachable", "", noExecute), undated),
		cluster("full", taint("full", "yes", noSchedule)),
		cluster("slow", taint("slow", "", prefer)),
		cluster("slow-twice", taint("slow", "", prefer), taint("far", "", prefer)),
	}
}

func tolerating(tolerations ...v1alpha1.Toleration) v1alpha1.PlacementPolicy {
	return v1alpha1.PlacementPolicy{Tolerations: tolerations}
}

func TestConformance(t *testing.T) {
	schedulertest.Conformance(t, schedulertest.Plugin{
		Name: tainttoleration.Name, Factory: tainttoleration.New, Clusters: clusters(),
		Policies: []v1alpha1.PlacementPolicy{
			tolerating(v1alpha1.Toleration{Operator: corev1.TolerationOpExists}),
			tolerating(v1alpha1.Toleration{Key: "full", Value: "yes"}),
			tolerating(v1alpha1.Toleration{Key: "unreachable", Operator: corev1.TolerationOpExists, Effect: noExecute,
				TolerationSeconds: new(int64(300))}),
			{Type: v1alpha1.PickFixed, ClusterNames: []string{"down"}},
		},
	})
}

func TestTaintToleration(t *testing.T) {
	exists := func(key string, effect corev1.TaintEffect, seconds *int64) v1alpha1.Toleration {
		return v1alpha1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: effect, TolerationSeconds: seconds}
	}
	allNames := []string{"clean", "down", "down-and-full", "down-undated", "full", "slow", "slow-twice"}
	for _, test := range []struct {
		reason string
		spec   v1alpha1.PlacementPolicy
		bound  []string
		want   []string
		until  time.Time
	}{
		{reason: "no toleration", want: []string{"clean", "slow", "slow-twice"}},
		{
			reason: "bound clusters stay with NoSchedule and are removed with NoExecute",
			bound:  allNames, want: []string{"clean", "full", "slow", "slow-twice"},
		},
		{
			reason: "toleration of all taints", spec: tolerating(v1alpha1.Toleration{Operator: corev1.TolerationOpExists}),
			want: allNames,
		},
		{
			reason: "toleration with another value", spec: tolerating(v1alpha1.Toleration{Key: "full", Value: "no"}),
			want: []string{"clean", "slow", "slow-twice"},
		},
		{
			reason: "toleration with equal key and value",
			spec:   tolerating(v1alpha1.Toleration{Key: "full", Operator: corev1.TolerationOpEqual, Value: "yes"}),
			want:   []string{"clean", "full", "slow", "slow-twice"},
		},
		{
			reason: "toleration with another effect", spec: tolerating(exists("unreachable", noSchedule, nil)),
			want: []string{"clean", "slow", "slow-twice"},
		},
		{
			reason: "one of two taints is tolerated", spec: tolerating(exists("unreachable", noExecute, nil)),
			want: []string{"clean", "down", "down-undated", "slow", "slow-twice"},
		},
		{
			reason: "tolerationSeconds add no cluster", spec: tolerating(exists("unreachable", noExecute, new(int64(300)))),
			want: []string{"clean", "slow", "slow-twice"},
		},
		{
			reason: "tolerationSeconds begin when the taint was added",
			spec:   tolerating(exists("unreachable", noExecute, new(int64(300)))),
			bound:  allNames, want: allNames, until: schedulertest.Now.Add(4 * time.Minute),
		},
		{
			reason: "tolerationSeconds have elapsed", spec: tolerating(exists("unreachable", noExecute, new(int64(60)))),
			bound: allNames, want: []string{"clean", "down-undated", "full", "slow", "slow-twice"},
		},
		{
			reason: "longest of several tolerations applies",
			spec: tolerating(exists("unreachable", "", new(int64(60))), exists("unreachable", noExecute, new(int64(120))),
				exists("", noExecute, new(int64(90)))),
			bound: allNames, want: allNames, until: schedulertest.Now.Add(time.Minute),
		},
		{
			reason: "toleration without seconds is the longest", spec: tolerating(exists("unreachable", noExecute,
				new(int64(120))),
				exists("", noExecute, nil)),
			bound: allNames, want: allNames,
		},
		{
			reason: "PickFixed ignores taints", spec: v1alpha1.PlacementPolicy{Type: v1alpha1.PickFixed,
				ClusterNames: []string{"down", "full"}},
			want: []string{"down", "full"},
		},
	} {
		t.Run(test.reason, func(t *testing.T) {
			s := schedulertest.Scheduler(t, tainttoleration.Name, tainttoleration.New, "")
			result, err := s.Schedule(t.Context(), schedulertest.Snapshot(clusters()...),
				schedulertest.Request(t, test.spec, test.bound...))
			require.NoError(t, err)
			require.Equal(t, test.want, schedulertest.Chosen(result))
			require.Equal(t, test.until, result.Until)
		})
	}
}

// TestHealthTaints checks that the hub's health taints reject new placements, but remove no bound cluster without a
// failover.
func TestHealthTaints(t *testing.T) {
	fleet := []*scheduler.Cluster{
		cluster("clean"), cluster("drained", taint("maintenance", "", noExecute)),
		cluster("not-ready", taint(membership.TaintNotReady, "", noExecute)),
		cluster("unreachable", taint(membership.TaintUnreachable, "", noExecute)),
		cluster("unreachable-and-drained", taint(membership.TaintUnreachable, "", noExecute),
			taint("maintenance", "", noExecute)),
	}
	everything := []string{"clean", "drained", "not-ready", "unreachable", "unreachable-and-drained"}
	minute := tolerating(v1alpha1.Toleration{
		Key: membership.TaintUnreachable, Operator: corev1.TolerationOpExists, Effect: noExecute,
		TolerationSeconds: new(int64(120)),
	})
	for _, test := range []struct {
		reason   string
		spec     v1alpha1.PlacementPolicy
		bound    []string
		failover bool
		want     []string
		until    time.Time
	}{
		{reason: "no new cluster with a health taint", want: []string{"clean"}},
		{reason: "bound clusters stay unless a user has added a taint", bound: everything,
			want: []string{"clean", "not-ready", "unreachable"}},
		{reason: "toleration with seconds without failover", spec: minute, bound: everything,
			want: []string{"clean", "not-ready", "unreachable"}},
		{reason: "failover removes the clusters", bound: everything, failover: true, want: []string{"clean"}},
		{
			reason: "failover after the seconds of the toleration", spec: minute, bound: everything, failover: true,
			want: []string{"clean", "unreachable"}, until: schedulertest.Now.Add(time.Minute),
		},
	} {
		t.Run(test.reason, func(t *testing.T) {
			s := schedulertest.Scheduler(t, tainttoleration.Name, tainttoleration.New, "")
			request := schedulertest.Request(t, test.spec, test.bound...)
			request.Failover = test.failover
			result, err := s.Schedule(t.Context(), schedulertest.Snapshot(fleet...), request)
			require.NoError(t, err)
			require.Equal(t, test.want, schedulertest.Chosen(result))
			require.Equal(t, test.until, result.Until)
		})
	}
}

func TestScores(t *testing.T) {
	s := schedulertest.Scheduler(t, tainttoleration.Name, tainttoleration.New, "")
	spec := v1alpha1.PlacementPolicy{Type: v1alpha1.PickN, NumberOfClusters: new(int32(9))}
	result, err := s.Schedule(t.Context(), schedulertest.Snapshot(clusters()...), schedulertest.Request(t, spec))
	require.NoError(t, err)
	got := map[string]float64{}
	for _, choice := range result.Chosen {
		got[choice.Cluster.Name] = choice.Score
	}
	require.Equal(t, map[string]float64{"clean": 100, "slow": 50, "slow-twice": 100.0 / 3}, got)
	diagnosis, err := result.Diagnose(t.Context())
	require.NoError(t, err)
	require.Equal(t, "3 of 7 clusters chosen, but 9 are desired; 3 have taint unreachable, 1 has taint full=yes",
		diagnosis.String())
}
