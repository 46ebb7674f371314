package placement

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
	"github.com/muster-sdk/muster/scheduler/plugins"
	"github.com/muster-sdk/muster/tenancy"
)

// fixedRules contains constant rules of namespaces, by name.
type fixedRules map[string]*tenancy.Rules

func (fixedRules) Watch(context.Context, func(string)) (func(), error) { return func() {}, nil }
func (f fixedRules) Rules(namespace string) *tenancy.Rules             { return f[namespace] }

// tenantPolicies returns the workloads W1 to W4 of package scheduler.
func tenantPolicies() []v1alpha1.PlacementPolicy {
	term := func(key, value string) v1alpha1.ClusterSelectorTerm {
		return v1alpha1.ClusterSelectorTerm{LabelSelector: metav1.SetAsLabelSelector(labels.Set{key: value})}
	}
	prod := func() *v1alpha1.ClusterAffinity {
		return &v1alpha1.ClusterAffinity{Required: []v1alpha1.ClusterSelectorTerm{term("env", "prod")}}
	}
	best := prod()
	best.Preferred = []v1alpha1.PreferredTerm{{Weight: 10, Term: term("region", "eu")}}
	return []v1alpha1.PlacementPolicy{
		{Type: v1alpha1.PickN, NumberOfClusters: new(int32(10)), Affinity: best},
		{Type: v1alpha1.PickN, NumberOfClusters: new(int32(10)), Affinity: prod(),
			Sorters: []v1alpha1.PropertySorter{{Name: "available/cpu"}}},
		{Type: v1alpha1.PickN, NumberOfClusters: new(int32(30)), Affinity: prod(),
			TopologySpread: []v1alpha1.TopologySpreadConstraint{{TopologyKey: "zone", MaxSkew: 1}}},
		{Affinity: prod()},
	}
}

// tenantCluster returns one cluster of a fleet: half of the fleet is in production, a fifth in Europe, in thirty zones,
// and each tenth in one of ten shares.
func tenantCluster(i int) *scheduler.Cluster {
	h := uint32(i) * 2654435761
	return &scheduler.Cluster{
		Name: fmt.Sprintf("cluster-%05d", i), Joined: true, Healthy: true,
		Labels: map[string]string{
			"env": []string{"prod", "dev"}[h>>8&1], "region": []string{"eu", "us", "ap", "sa", "af"}[h>>10%5],
			"zone": fmt.Sprintf("zone-%02d", h>>16%30), "share": fmt.Sprint(h >> 20 % 10),
		},
		Available: corev1.ResourceList{
			corev1.ResourceCPU: *resource.NewMilliQuantity(int64(h>>7%640000), resource.DecimalSI),
		},
	}
}

// BenchmarkTenants decides W1 to W4 for 10,000 clusters in turn without tenancy and for one of 1,000 namespaces, each
// of which is bound to its own set, in one run. × is the duration of a decision with tenancy relative to one without.
// The sets select all clusters, so that both decisions have the same candidates, or a tenth of them. The fleet does not
// change, or one cluster changes before each round, in which all namespaces decide.
//
//	go test -run '^$' -bench Tenants -benchtime 2000x ./placement
func BenchmarkTenants(b *testing.B) {
	const namespaces, clusters = 1000, 10000
	registry := plugins.Registry()
	decider, err := scheduler.New(scheduler.Options{Registry: registry,
		Profiles: []scheduler.Profile{plugins.DefaultProfile()}})
	require.NoError(b, err)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for _, of := range []string{"tenth", "all"} {
		rules := fixedRules{}
		for i := range namespaces {
			name := fmt.Sprintf("tenant-%d", i)
			requirement, err := labels.NewRequirement("tenant", selection.NotEquals, []string{name})
			if of == "tenth" {
				requirement, err = labels.NewRequirement("share", selection.Equals, []string{fmt.Sprint(i % 10)})
			}
			require.NoError(b, err)
			rules[name] = tenancy.NewRules(name,
				[]tenancy.Set{{Name: name, Selector: labels.NewSelector().Add(*requirement)}},
				[]tenancy.Binding{{Namespace: name, Name: name, Set: name}})
		}
		cache := &scheduler.Cache{}
		for i := range clusters {
			cache.Update(tenantCluster(i))
		}
		d := &decisionController{Options: Options{Tenancy: rules}}
		narrow := func(i int, snapshot *scheduler.Snapshot) *scheduler.Snapshot {
			name := fmt.Sprintf("tenant-%d", i%namespaces)
			a := &attempt{k: name + "/web", placement: &v1alpha1.Placement{}, p: &placementState{}, snapshot: snapshot}
			a.placement.Namespace = name
			d.restrict(a, map[string]bool{})
			return a.snapshot
		}
		for i := range namespaces { // The first decision of a namespace reads the labels of all clusters.
			narrow(i, cache.Snapshot())
		}
		for w, spec := range tenantPolicies() {
			for _, changes := range []bool{false, true} {
				name := fmt.Sprintf("%s/W%d/unchanged", of, w+1)
				if changes {
					name = fmt.Sprintf("%s/W%d/changed", of, w+1)
				}
				b.Run(name, func(b *testing.B) {
					policy, err := scheduler.NewPolicy(&spec)
					require.NoError(b, err)
					decide := func(snapshot *scheduler.Snapshot) {
						result, err := decider.Schedule(b.Context(), snapshot, &scheduler.Request{Policy: policy})
						if err != nil || len(result.Chosen) == 0 {
							b.Fatal(err, len(result.Chosen))
						}
					}
					var without, with time.Duration
					i := 0
					runtime.GC() // collect the garbage of the preparation
					for b.Loop() {
						if changes && i%namespaces == 0 {
							changed := tenantCluster(i % clusters)
							changed.Labels["tier"] = fmt.Sprint(i)
							cache.Update(changed)
						}
						snapshot := cache.Snapshot()
						start := time.Now()
						decide(snapshot)
						decided := time.Now()
						decide(narrow(i, snapshot))
						without, with = without+decided.Sub(start), with+time.Since(decided)
						i++
					}
					b.ReportMetric(float64(with)/float64(without), "×")
					b.ReportMetric(float64(without)/float64(b.N), "ns/without")
					b.ReportMetric(float64(with)/float64(b.N), "ns/with")
					b.ReportMetric(0, "ns/op")
				})
			}
		}
	}
}
