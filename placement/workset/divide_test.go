package workset

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/placement/bundle"
	"github.com/muster-sdk/muster/placement/internal/revision"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
	"github.com/muster-sdk/muster/scheduler/replicas"
)

// TestDivide_Clusters checks that each cluster with a revision gets its share, and that the existing and future
// replicas of other clusters are neither assigned twice nor removed.
func TestDivide_Clusters(t *testing.T) {
	web, err := bundle.Parse([]byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},` +
		`"spec":{"replicas":12}}`))
	require.NoError(t, err)
	r, err := read(&revision.Content{
		Objects: []bundle.Object{web}, Replicas: &v1alpha1.ReplicaDivision{Strategy: v1alpha1.DivisionStaticWeight},
		Overrides: &v1alpha1.Overrides{Rules: []v1alpha1.OverrideRule{{
			Clusters:  []v1alpha1.ClusterSelector{{Names: []string{"wrong"}}},
			JSONPatch: []v1alpha1.JSONPatchOperation{{Op: "remove", Path: "/spec/nothing"}},
		}}},
	})
	require.NoError(t, err)
	// withReplicas returns a cluster that is assigned the revision, and has a Work with n replicas.
	withReplicas := func(name string, n int32, change ...func(*target)) *target {
		t := &target{
			name: name, namespace: "member-" + name, cluster: &scheduler.Cluster{Name: name},
			assigned: assignment{revision: "web-1"}, reading: r,
			existing: existing{records: []*record{{replicas: map[bundle.Key]int32{web.Key(): n}}}},
		}
		for _, c := range change {
			c(t)
		}
		return t
	}
	unassigned := func(t *target) { t.existing, t.assigned, t.reading = existing{}, assignment{}, nil }
	leaving := func(t *target) { t.cluster = &scheduler.Cluster{Name: t.name, Leaving: true} }
	notInFleet := func(t *target) { t.cluster = nil }
	unlocated := func(t *target) { t.namespace = "" }
	deleting := func(t *target) { t.existing.records[0].DeletionTimestamp = &metav1.Time{} }
	for _, test := range []struct {
		reason, stable string
		clusters       []*target
		want           map[string]int32
	}{
		{"all clusters have the revision", "",
			[]*target{withReplicas("a", 12), withReplicas("b", 0)}, map[string]int32{"a": 6, "b": 6}},
		{"the first cluster of a new WorkSet gets only its share", "",
			[]*target{withReplicas("a", 0), withReplicas("b", 0, unassigned), withReplicas("c", 0, unassigned)},
			map[string]int32{"a": 4}},
		{"running replicas are not reduced for clusters without the revision", "",
			[]*target{withReplicas("a", 6), withReplicas("b", 6), withReplicas("c", 0, unassigned)},
			map[string]int32{"a": 6, "b": 6}},
		{"after a stable revision, clusters with the revision run all replicas", "web-1",
			[]*target{withReplicas("a", 4), withReplicas("b", 0, unassigned), withReplicas("c", 0, unassigned)},
			map[string]int32{"a": 12}},
		{"replicas of a leaving cluster are not assigned again", "web-1",
			[]*target{withReplicas("a", 6), withReplicas("b", 6, leaving)}, map[string]int32{"a": 6}},
		{"replicas of a leaving cluster are assigned again when its Work is being deleted", "web-1",
			[]*target{withReplicas("a", 6), withReplicas("b", 6, leaving, deleting)}, map[string]int32{"a": 12}},
		{"replicas of a cluster with an unknown namespace are not assigned again", "web-1",
			[]*target{withReplicas("a", 6), withReplicas("b", 6, unlocated)}, map[string]int32{"a": 6}},
		{"a new cluster without a namespace gets no replicas", "web-1",
			[]*target{withReplicas("a", 12), withReplicas("b", 0, unassigned, unlocated)}, map[string]int32{"a": 12}},
		{"a new cluster without a namespace has no share before a stable revision", "",
			[]*target{withReplicas("a", 0), withReplicas("b", 0, unassigned, unlocated)}, map[string]int32{"a": 12}},
		{"replicas of a cluster that is not in the fleet are not assigned again", "web-1",
			[]*target{withReplicas("a", 6), withReplicas("b", 6, notInFleet)}, map[string]int32{"a": 6}},
		{"replicas of a cluster with a failed override are not assigned again", "web-1",
			[]*target{withReplicas("a", 4), withReplicas("b", 4), withReplicas("wrong", 4)}, map[string]int32{"a": 4, "b": 4}},
		{"a cluster with a failed override and no replicas has no share", "web-1",
			[]*target{withReplicas("a", 4), withReplicas("b", 4), withReplicas("wrong", 0)}, map[string]int32{"a": 6, "b": 6}},
		{"replicas of a removed cluster go to the cluster without a failed override", "web-1",
			[]*target{withReplicas("a", 4), withReplicas("wrong", 4)}, map[string]int32{"a": 8}},
	} {
		t.Run(test.reason, func(t *testing.T) {
			estimator := replicas.EstimatorFunc(func(_ context.Context, _ replicas.Requirements,
				clusters []string) ([]int32, error) {
				room := make([]int32, len(clusters))
				for i := range room {
					room[i] = 100
				}
				return room, nil
			})
			l := &reconciliation{
				controller: &controller{Options: Options{Estimator: estimator}}, state: newState(name("web")),
				set: &v1alpha1.WorkSet{Status: v1alpha1.WorkSetStatus{Rollout: v1alpha1.RolloutStatus{
					StableRevision: test.stable}}}, clusters: test.clusters,
			}
			for range 2 { // the second division starts from the result of the first one
				l.divide(t.Context())
				got := map[string]int32{}
				for _, c := range l.clusters {
					if c.divided != nil {
						got[c.name] = c.divided.replicas
					}
				}
				require.Equal(t, test.want, got)
				require.Empty(t, l.problems)
			}
		})
	}
}
