package propertysorter_test

import (
	"context"
	"fmt"
	"math"
	"math/big"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
	"github.com/muster-sdk/muster/scheduler/plugins/propertysorter"
)

func newScheduler(tb testing.TB) *scheduler.Scheduler {
	s, err := scheduler.New(scheduler.Options{
		Registry: scheduler.Registry{propertysorter.Name: propertysorter.New, "Only": newOnly},
		Profiles: []scheduler.Profile{{Plugins: []scheduler.PluginConfig{{Name: "Only"}, {Name: propertysorter.Name}}}},
	})
	require.NoError(tb, err)
	return s
}

// only is a filter by a label, so that some clusters are not feasible.
type only struct{}

func newOnly(scheduler.Args, scheduler.Handle) (scheduler.Plugin, error) { return only{}, nil }

func (only) Name() string { return "Only" }

func (only) Filter(_ context.Context, _ *scheduler.CycleState, _ *scheduler.Request,
	c *scheduler.Cluster) *scheduler.Status {
	if c.Labels["out"] != "" {
		return scheduler.Reject("is out")
	}
	return nil
}

func snapshotOf(clusters ...*scheduler.Cluster) *scheduler.Snapshot {
	cache := &scheduler.Cache{}
	for _, c := range clusters {
		cache.Update(c)
	}
	return cache.Snapshot()
}

func policy(tb require.TestingT, sorters ...v1alpha1.PropertySorter) *scheduler.Policy {
	p, err := scheduler.NewPolicy(&v1alpha1.PlacementPolicy{Type: v1alpha1.PickN, NumberOfClusters: new(int32(10000)),
		Sorters: sorters})
	require.NoError(tb, err)
	return p
}

func cost(name, value string) *scheduler.Cluster {
	return &scheduler.Cluster{Name: name, Properties: map[string]string{"cost": value}}
}

func out(c *scheduler.Cluster) *scheduler.Cluster {
	c.Labels = map[string]string{"out": "yes"}
	return c
}

func TestScores(t *testing.T) {
	byCost := v1alpha1.PropertySorter{Name: "cost"}
	cheapest := v1alpha1.PropertySorter{Name: "cost", Order: v1alpha1.Ascending}
	cpu := func(name, capacity, allocatable, available string) *scheduler.Cluster {
		list := func(text string) corev1.ResourceList {
			return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(text)}
		}
		return &scheduler.Cluster{Name: name, Capacity: list(capacity), Allocatable: list(allocatable),
			Available: list(available)}
	}
	tests := []struct {
		reason   string
		sorters  []v1alpha1.PropertySorter
		clusters []*scheduler.Cluster
		want     []string // names and scores in the order of the choice
	}{
		{"descending: scores in proportion to the values", []v1alpha1.PropertySorter{byCost},
			[]*scheduler.Cluster{cost("a", "10"), cost("b", "20"), cost("c", "17500m")}, []string{"b 100", "c 75", "a 0"}},
		{"ascending: scores in proportion to the values", []v1alpha1.PropertySorter{cheapest},
			[]*scheduler.Cluster{cost("a", "10"), cost("b", "20"), cost("c", "17500m")}, []string{"a 100", "c 25", "b 0"}},
		{"infeasible clusters do not affect the scores", []v1alpha1.PropertySorter{byCost},
			[]*scheduler.Cluster{cost("a", "10"), cost("b", "20"), cost("c", "15"), out(cost("d", "1000")),
				out(cost("e", "-1000"))}, []string{"b 100", "c 50", "a 0"}},
		{"equal values", []v1alpha1.PropertySorter{byCost},
			[]*scheduler.Cluster{cost("a", "0.3"), cost("b", "300m")}, []string{"a 100", "b 100"}},
		{"single cluster", []v1alpha1.PropertySorter{cheapest}, []*scheduler.Cluster{cost("a", "10")},
			[]string{"a 100"}},
		{"missing and invalid values have score 0", []v1alpha1.PropertySorter{cheapest},
			[]*scheduler.Cluster{{Name: "a"}, cost("b", "many"), cost("c", "7"), cost("d", "8")},
			[]string{"c 100", "a 0", "b 0", "d 0"}},
		{"no cluster has a value", []v1alpha1.PropertySorter{byCost}, []*scheduler.Cluster{{Name: "a"}, cost("b", "many")},
			[]string{"a 0", "b 0"}},
		{"values beyond the bounds", []v1alpha1.PropertySorter{byCost},
			[]*scheduler.Cluster{cost("a", "-9e99"), cost("b", "0"), cost("c", "9e99")}, []string{"c 100", "b 50", "a 0"}},
		{"negative values", []v1alpha1.PropertySorter{byCost}, []*scheduler.Cluster{cost("a", "-1"), cost("b", "-3"),
			cost("c", "-2")}, []string{"a 100", "c 50", "b 0"}},
		{"two sorters with weights", []v1alpha1.PropertySorter{{Name: "cost", Weight: 3, Order: v1alpha1.Ascending},
			{Name: "available/cpu"}},
			[]*scheduler.Cluster{
				{Name: "a", Properties: map[string]string{"cost": "1"},
					Available: corev1.ResourceList{"cpu": resource.MustParse("1")}},
				{Name: "b", Properties: map[string]string{"cost": "2"},
					Available: corev1.ResourceList{"cpu": resource.MustParse("2")}},
				{Name: "c", Available: corev1.ResourceList{"cpu": resource.MustParse("2")}},
			}, []string{"a 75", "b 25", "c 25"}},
		{"capacity", []v1alpha1.PropertySorter{{Name: "capacity/cpu"}},
			[]*scheduler.Cluster{cpu("a", "4", "2", "0"), cpu("b", "8", "1", "0")}, []string{"b 100", "a 0"}},
		{"allocatable", []v1alpha1.PropertySorter{{Name: "allocatable/cpu"}},
			[]*scheduler.Cluster{cpu("a", "4", "2", "0"), cpu("b", "8", "1", "0")}, []string{"a 100", "b 0"}},
		{"available", []v1alpha1.PropertySorter{{Name: "available/cpu"}},
			[]*scheduler.Cluster{cpu("a", "4", "2", "100m"), cpu("b", "8", "1", "0.2")}, []string{"b 100", "a 0"}},
		{"property name with a slash", []v1alpha1.PropertySorter{{Name: "example.com/cost"}},
			[]*scheduler.Cluster{{Name: "a"}, {Name: "b", Properties: map[string]string{"example.com/cost": "1"}}},
			[]string{"b 100", "a 0"}},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			result, err := newScheduler(t).Schedule(context.Background(), snapshotOf(test.clusters...),
				&scheduler.Request{Policy: policy(t, test.sorters...)})
			require.NoError(t, err)
			var got []string
			for _, choice := range result.Chosen {
				got = append(got, fmt.Sprint(choice.Cluster.Name, " ", choice.Score))
			}
			require.Empty(t, cmp.Diff(test.want, got))
		})
	}
}

func TestPreScore_SkipsWithoutSorters(t *testing.T) {
	plugin, err := propertysorter.New(nil, scheduler.Handle{})
	require.NoError(t, err)
	status := plugin.(scheduler.PreScorePlugin).PreScore(context.Background(), nil, &scheduler.Request{Policy: policy(t)},
		scheduler.Set{})
	require.Equal(t, scheduler.Skip, status.Code())

	_, err = propertysorter.New(scheduler.Args(`{"order": "Ascending"}`), scheduler.Handle{})
	require.ErrorContains(t, err, "order", "arguments are rejected")
}

// numbers generates quantities, including some that are impossible in a policy or a property.
func numbers() *rapid.Generator[resource.Quantity] {
	return rapid.Custom(func(t *rapid.T) resource.Quantity {
		number := rapid.SampledFrom([]string{"0", "1", "3", "-1", "0.1", "0.3", "9007199254740993", "9007199254740992",
			"9223372036854775807", "123456789012345678901234567890"}).Draw(t, "number")
		suffix := rapid.SampledFrom([]string{"", "m", "n", "k", "Ki", "e2", "e99", "e400", "E"}).Draw(t, "suffix")
		return resource.MustParse(number + suffix)
	})
}

func drawCluster(t *rapid.T, name string) *scheduler.Cluster {
	c := &scheduler.Cluster{Name: name, Properties: map[string]string{}, Available: corev1.ResourceList{}}
	if rapid.Bool().Draw(t, "available") {
		c.Available[corev1.ResourceCPU] = numbers().Draw(t, "cpu")
	}
	if rapid.Bool().Draw(t, "property") {
		c.Properties["cost"] = rapid.SampledFrom([]string{"", "many", "NaN", "inf", "1", "2.5", "1e99", "1e2000000000"}).Draw(
			t, "cost")
	}
	if rapid.IntRange(0, 3).Draw(t, "out") == 0 {
		return out(c)
	}
	return c
}

// TestScoreAgreesWithScoreAll checks that Score and ScoreAll agree, and that scores have the order of the exact
// quantities, while clusters change.
func TestScoreAgreesWithScoreAll(t *testing.T) {
	made, err := propertysorter.New(nil, scheduler.Handle{})
	require.NoError(t, err)
	plugin := made.(interface {
		scheduler.PreScorePlugin
		scheduler.BatchScorePlugin
	})
	s, ctx := newScheduler(t), context.Background()
	rapid.Check(t, func(t *rapid.T) {
		cache := &scheduler.Cache{}
		p := policy(t, rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) v1alpha1.PropertySorter {
			return v1alpha1.PropertySorter{
				Name:   rapid.SampledFrom([]string{"available/cpu", "cost", "capacity/cpu"}).Draw(t, "name"),
				Order:  rapid.SampledFrom([]v1alpha1.SortOrder{"", v1alpha1.Ascending, v1alpha1.Descending}).Draw(t, "order"),
				Weight: rapid.Int32Range(0, 100).Draw(t, "weight"),
			}
		}), 1, 3, func(s v1alpha1.PropertySorter) string { return s.Name }).Draw(t, "sorters")...)
		request := &scheduler.Request{Policy: p}
		for range rapid.IntRange(1, 4).Draw(t, "steps") {
			for range rapid.IntRange(1, 5).Draw(t, "changes") {
				name := fmt.Sprint("c", rapid.IntRange(0, 70).Draw(t, "cluster"))
				if rapid.IntRange(0, 4).Draw(t, "goes") == 0 {
					cache.Remove(name)
				} else {
					cache.Update(drawCluster(t, name))
				}
			}
			snapshot := cache.Snapshot()
			result, err := s.Schedule(ctx, snapshot, request)
			require.NoError(t, err)

			feasible := scheduler.NewSet(snapshot.Slots())
			for _, choice := range result.Chosen {
				slot, _ := snapshot.Slot(choice.Cluster.Name)
				feasible.Add(slot)
			}
			state := scheduler.NewCycleState(snapshot, request)
			require.Nil(t, plugin.PreScore(ctx, state, request, feasible))
			for _, a := range result.Chosen {
				score, status := plugin.Score(ctx, state, request, a.Cluster)
				require.Nil(t, status)
				require.InDelta(t, a.Score, score, 1e-9, "%s", a.Cluster.Name)
				if len(p.Spec().Sorters) > 1 || p.Spec().Sorters[0].Name != "available/cpu" {
					continue
				}
				for _, b := range result.Chosen {
					x, y := a.Cluster.Available.Cpu(), b.Cluster.Available.Cpu()
					_, hasX := a.Cluster.Available["cpu"]
					_, hasY := b.Cluster.Available["cpu"]
					switch order := exact(*x).Cmp(exact(*y)); {
					case !hasX:
						require.Zero(t, a.Score)
					case !hasY:
					case order == 0:
						require.InDelta(t, a.Score, b.Score, 0, "%v and %v", x, y)
					case (order > 0) == (p.Spec().Sorters[0].Order != v1alpha1.Ascending):
						require.GreaterOrEqual(t, a.Score, b.Score, "%v and %v", x, y)
					}
				}
			}
		}
	})
}

func exact(q resource.Quantity) *big.Rat {
	dec := q.AsDec()
	r := new(big.Rat).SetInt(dec.UnscaledBig())
	power := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(math.Abs(float64(dec.Scale())))), nil))
	if dec.Scale() > 0 {
		power.Inv(power)
	}
	return r.Mul(r, power)
}
