package scheduler_test

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
	"github.com/muster-sdk/muster/scheduler/plugins"
)

// benchFleet returns a fleet of n clusters: half of them in production, a fifth in Europe, over thirty zones.
func benchFleet(n int) []*scheduler.Cluster {
	regions := []string{"eu", "us", "ap", "sa", "af"}
	fleet := make([]*scheduler.Cluster, n)
	for i := range fleet {
		h := uint32(i) * 2654435761
		fleet[i] = &scheduler.Cluster{
			Name: fmt.Sprintf("cluster-%05d", i), Joined: true, Healthy: true,
			Labels: map[string]string{
				"env":    []string{"prod", "dev"}[h>>8&1],
				"region": regions[h>>10%5],
				"zone":   fmt.Sprintf("zone-%02d", h>>16%30),
				"tier":   fmt.Sprint(h >> 20 % 4),
			},
			Available: corev1.ResourceList{
				corev1.ResourceCPU:    *resource.NewMilliQuantity(int64(h>>7%640000), resource.DecimalSI),
				corev1.ResourceMemory: *resource.NewQuantity(int64(h>>3)<<8, resource.BinarySI),
			},
		}
	}
	return fleet
}

func matchLabels(key, value string) v1alpha1.ClusterSelectorTerm {
	return v1alpha1.ClusterSelectorTerm{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}}
}

func required(terms ...v1alpha1.ClusterSelectorTerm) *v1alpha1.ClusterAffinity {
	return &v1alpha1.ClusterAffinity{Required: terms}
}

// workloads are the policies of the benchmarks. The required label matches half of the clusters.
var workloads = map[string]v1alpha1.PlacementPolicy{
	// The best ten of those in production, those in Europe first.
	"W1": {Type: v1alpha1.PickN, NumberOfClusters: new(int32(10)), Affinity: &v1alpha1.ClusterAffinity{
		Required:  []v1alpha1.ClusterSelectorTerm{matchLabels("env", "prod")},
		Preferred: []v1alpha1.PreferredTerm{{Weight: 10, Term: matchLabels("region", "eu")}},
	}},
	// The ten with the most CPU available.
	"W2": {
		Type: v1alpha1.PickN, NumberOfClusters: new(int32(10)), Affinity: required(matchLabels("env", "prod")),
		Sorters: []v1alpha1.PropertySorter{{Name: "available/cpu"}},
	},
	// One in each of thirty zones.
	"W3": {
		Type: v1alpha1.PickN, NumberOfClusters: new(int32(30)), Affinity: required(matchLabels("env", "prod")),
		TopologySpread: []v1alpha1.TopologySpreadConstraint{{TopologyKey: "zone", MaxSkew: 1}},
	},
	// All of them.
	"W4": {Affinity: required(matchLabels("env", "prod"))},
}

func benchScheduler(tb testing.TB, extra ...scheduler.Plugin) *scheduler.Scheduler {
	registry, profile := plugins.Registry(), plugins.DefaultProfile()
	for _, plugin := range extra {
		require.NoError(tb,
			registry.Register(plugin.Name(), func(scheduler.Args, scheduler.Handle) (scheduler.Plugin, error) {
				return plugin, nil
			}))
		profile.Plugins = append(profile.Plugins, scheduler.PluginConfig{Name: plugin.Name()})
	}
	s, err := scheduler.New(scheduler.Options{Registry: registry, Profiles: []scheduler.Profile{profile}})
	require.NoError(tb, err)
	return s
}

func BenchmarkSchedule(b *testing.B) {
	s := benchScheduler(b)
	for _, n := range []int{100, 1000, 10000} {
		fleet := benchFleet(n)
		cache := &scheduler.Cache{}
		for _, c := range fleet {
			cache.Update(c)
		}
		snapshot := cache.Snapshot()
		for _, name := range slices.Sorted(maps.Keys(workloads)) {
			spec := workloads[name]
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				policy, err := scheduler.NewPolicy(&spec)
				require.NoError(b, err)
				request := &scheduler.Request{Name: name, Policy: policy}
				floor := plainLoop(b, fleet, &spec)
				b.ReportAllocs()
				for b.Loop() {
					result, err := s.Schedule(context.Background(), snapshot, request)
					if err != nil || len(result.Chosen) == 0 {
						b.Fatal(err, len(result.Chosen))
					}
				}
				b.ReportMetric(float64(b.Elapsed())/float64(b.N)/floor, "×floor")
			})
		}
	}
}

// BenchmarkChange measures the change of one cluster and the next decision.
func BenchmarkChange(b *testing.B) {
	s := benchScheduler(b)
	for _, n := range []int{100, 1000, 10000} {
		fleet := benchFleet(n)
		cache := &scheduler.Cache{}
		for _, c := range fleet {
			cache.Update(c)
		}
		spec := workloads["W1"]
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			policy, err := scheduler.NewPolicy(&spec)
			require.NoError(b, err)
			request := &scheduler.Request{Policy: policy}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				changed := *fleet[i%n]
				changed.Labels = map[string]string{"env": []string{"prod", "dev"}[i&1], "region": "eu", "zone": "zone-00",
					"tier": "1"}
				cache.Update(&changed)
				if _, err := s.Schedule(context.Background(), cache.Snapshot(), request); err != nil {
					b.Fatal(err)
				}
				i++
			}
		})
	}
}

// BenchmarkRedecide measures a thousand decisions with a previous result after the change of one cluster. In "others",
// the cluster was and is feasible, and no placement chose it. In "chosen", all placements chose it, and it stays
// feasible. In "lost", all placements chose it and lose it; after 20 losses, all lost clusters return. Each placement
// has its own policy.
func BenchmarkRedecide(b *testing.B) {
	const placements = 1000
	s := benchScheduler(b)
	for _, n := range []int{100, 1000, 10000} {
		for _, of := range []string{"others", "chosen", "lost"} {
			b.Run(fmt.Sprintf("%s/%d", of, n), func(b *testing.B) {
				fleet := benchFleet(n)
				cache := &scheduler.Cache{}
				for _, c := range fleet {
					cache.Update(c)
				}
				spec := workloads["W1"]
				requests := make([]*scheduler.Request, placements)
				for i := range requests {
					policy, err := scheduler.NewPolicy(&spec)
					require.NoError(b, err)
					requests[i] = &scheduler.Request{Policy: policy}
				}
				decide := func() (last scheduler.Result) {
					snapshot := cache.Snapshot()
					for _, request := range requests {
						result, err := s.Schedule(context.Background(), snapshot, request)
						if err != nil {
							b.Fatal(err)
						}
						request.Previous = &result
						last = result
					}
					return last
				}
				chosen := decide().Chosen
				changing := chosen[0].Cluster
				if of == "others" {
					for _, c := range fleet[n/2:] {
						if c.Labels["env"] == "prod" && c.Labels["region"] != "eu" {
							changing = c
							break
						}
					}
				}
				b.ReportAllocs()
				i := 0
				var lost []*scheduler.Cluster
				for b.Loop() {
					changed := *changing
					if of == "lost" {
						changed = *chosen[0].Cluster
						changed.Healthy = false
						if lost = append(lost, chosen[0].Cluster); len(lost) > 20 {
							for _, c := range lost {
								cache.Update(c)
							}
							lost = nil
						}
					}
					changed.Labels = maps.Clone(changed.Labels)
					changed.Labels["tier"] = fmt.Sprint(i)
					cache.Update(&changed)
					chosen = decide().Chosen
					i++
				}
				b.ReportMetric(float64(b.Elapsed())/float64(b.N)/placements, "ns/decision")
			})
		}
	}
}

// BenchmarkCustomFilter measures the cost of an additional plugin without a batch form. × calls is the additional
// duration of a decision, divided by the duration of a loop that only calls the plugin for the same clusters.
func BenchmarkCustomFilter(b *testing.B) {
	const n = 10000
	fleet := benchFleet(n)
	cache := &scheduler.Cache{}
	for _, c := range fleet {
		cache.Update(c)
	}
	snapshot, custom := cache.Snapshot(), &countingFilter{}
	spec := workloads["W1"]
	policy, err := scheduler.NewPolicy(&spec)
	require.NoError(b, err)
	request := &scheduler.Request{Policy: policy}
	without, with := benchScheduler(b), benchScheduler(b, custom)
	decide := func(s *scheduler.Scheduler) {
		if _, err := s.Schedule(context.Background(), snapshot, request); err != nil {
			b.Fatal(err)
		}
	}
	feasible := slices.DeleteFunc(slices.Clone(fleet), func(c *scheduler.Cluster) bool {
		return c.Labels["env"] != "prod"
	})
	// The three measurements alternate, so that other load on the machine affects all of them equally. A single processor
	// is used because waking another one is slower the longer it has been idle.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var base, calls, took time.Duration
	for b.Loop() {
		start := time.Now()
		decide(without)
		decided := time.Now()
		callAll(custom, request, feasible)
		called := time.Now()
		decide(with)
		base, calls, took = base+decided.Sub(start), calls+called.Sub(decided), took+time.Since(called)
	}
	b.ReportMetric(float64(took-base)/float64(calls), "×calls")
	b.ReportMetric(float64(took)/float64(b.N), "ns/decision")
}

// callAll must not be inlined, so that the compiler cannot devirtualize the calls of the plugin.
//
//go:noinline
func callAll(plugin scheduler.FilterPlugin, request *scheduler.Request, clusters []*scheduler.Cluster) {
	for _, c := range clusters {
		if plugin.Filter(context.Background(), nil, request, c) != nil {
			panic("the plugin rejects a feasible cluster")
		}
	}
}

// plainLoop returns the floor of the benchmarks: the ns per run of a loop over the clusters that evaluates the same
// conditions with precompiled selectors and stores the matching clusters with a score. It neither sorts nor spreads.
func plainLoop(b *testing.B, fleet []*scheduler.Cluster, spec *v1alpha1.PlacementPolicy) float64 {
	selector := func(term v1alpha1.ClusterSelectorTerm) labels.Selector {
		s, err := metav1.LabelSelectorAsSelector(term.LabelSelector)
		require.NoError(b, err)
		return s
	}
	required := selector(spec.Affinity.Required[0])
	var preferred []labels.Selector
	for _, p := range spec.Affinity.Preferred {
		preferred = append(preferred, selector(p.Term))
	}
	type candidate struct {
		cluster *scheduler.Cluster
		score   float64
		zone    string
	}
	rounds, found := 0, 0
	start := time.Now()
	for time.Since(start) < 100*time.Millisecond {
		var candidates []candidate
		for _, c := range fleet {
			if !c.Joined || c.Leaving || !c.Healthy || !required.Matches(labels.Set(c.Labels)) {
				continue
			}
			if slices.ContainsFunc(c.Taints, func(t corev1.Taint) bool {
				return t.Effect != corev1.TaintEffectPreferNoSchedule
			}) {
				continue
			}
			candidate := candidate{cluster: c}
			for _, p := range preferred {
				if p.Matches(labels.Set(c.Labels)) {
					candidate.score += 10
				}
			}
			for range spec.Sorters {
				cpu := c.Available[corev1.ResourceCPU]
				candidate.score = cpu.AsApproximateFloat64()
			}
			for _, t := range spec.TopologySpread {
				candidate.zone = c.Labels[t.TopologyKey]
			}
			candidates = append(candidates, candidate)
		}
		found += len(candidates)
		rounds++
	}
	require.NotZero(b, found)
	return float64(time.Since(start)) / float64(rounds)
}
