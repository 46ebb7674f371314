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
	// has is a cluster that was told the revision, and has a Work with so many replicas.
	has := func(name string, n int32, change ...func(*target)) *target {
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
	none := func(t *target) { t.existing, t.assigned, t.reading = existing{}, assignment{}, nil }
	leaves := func(t *target) { t.cluster = &scheduler.Cluster{Name: t.name, Leaving: true} }
	away := func(t *target) { t.cluster = nil }
	unlocated := func(t *target) { t.namespace = "" }
	going := func(t *target) { t.existing.records[0].DeletionTimestamp = &metav1.Time{} }
	for _, test := range []struct {
		reason, stable string
		clusters       []*target
		want           map[string]int32
	}{
		{"all that were told", "", []*target{has("a", 12), has("b", 0)}, map[string]int32{"a": 6, "b": 6}},
		{"the first of a new WorkSet leaves their parts to those after it", "", []*target{has("a", 0), has("b", 0, none),
			has("c", 0, none)}, map[string]int32{"a": 4}},
		{"what runs is not given up for them", "", []*target{has("a", 6), has("b", 6), has("c", 0, none)},
			map[string]int32{"a": 6, "b": 6}},
		{"once a revision was everywhere all is to run, whoever comes", "web-1", []*target{has("a", 4), has("b", 0, none),
			has("c", 0, none)}, map[string]int32{"a": 12}},
		{"one that leaves the fleet counts with what it has", "web-1", []*target{has("a", 6), has("b", 6, leaves)},
			map[string]int32{"a": 6}},
		{"until its leave takes that back", "web-1", []*target{has("a", 6), has("b", 6, leaves, going)},
			map[string]int32{"a": 12}},
		{"one whose namespace is not known for a while does as well", "web-1", []*target{has("a", 6), has("b", 6, unlocated)},
			map[string]int32{"a": 6}},
		{"one that has no namespace yet has nothing", "web-1", []*target{has("a", 12), has("b", 0, none, unlocated)},
			map[string]int32{"a": 12}},
		{"not even a place, before a revision was everywhere: nobody knows when it comes", "",
			[]*target{has("a", 0), has("b", 0, none, unlocated)}, map[string]int32{"a": 12}},
		{"one that is not in the fleet counts with what it has", "web-1", []*target{has("a", 6), has("b", 6, away)},
			map[string]int32{"a": 6}},
		{"one that an override fails for keeps what it has, which is not given twice", "web-1",
			[]*target{has("a", 4), has("b", 4), has("wrong", 4)}, map[string]int32{"a": 4, "b": 4}},
		{"if it has anything", "web-1", []*target{has("a", 4), has("b", 4), has("wrong", 0)},
			map[string]int32{"a": 6, "b": 6}},
		{"a third one was chosen, and leaves its part to who can take it", "web-1", []*target{has("a", 4), has("wrong", 4)},
			map[string]int32{"a": 8}},
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
			for range 2 { // and again by what was given
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
