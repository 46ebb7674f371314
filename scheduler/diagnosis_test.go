package scheduler_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// byLabel returns a plugin that rejects the clusters with this label. The value of the label is the reason.
func byLabel(label string) *everything {
	return &everything{name: "Label" + label, filter: func(c *scheduler.Cluster) *scheduler.Status {
		if reason := c.Labels[label]; reason != "" {
			return scheduler.Reject(reason)
		}
		return nil
	}}
}

func TestDiagnosis_Message(t *testing.T) {
	var cache scheduler.Cache
	for i := range 40 {
		c := &scheduler.Cluster{Name: fmt.Sprintf("c%02d", i), Labels: map[string]string{}}
		switch {
		case i < 30:
			c.Labels["A"] = "does not match region in (eu)"
		case i < 38:
			c.Labels["B"] = "has taint maintenance"
		}
		cache.Update(c)
	}
	s := schedulerOf(t, byLabel("A"), byLabel("B"), scores("S", map[string]float64{"c39": 10}))
	for _, test := range []struct {
		reason  string
		request *scheduler.Request
		want    string
	}{
		{"all feasible clusters", pickAll(t),
			"2 of 40 clusters chosen; 30 do not match region in (eu), 8 have taint maintenance"},
		{"more desired than feasible clusters", pick(t, 3),
			"2 of 40 clusters chosen, but 3 are desired; 30 do not match region in (eu), 8 have taint maintenance"},
		{"fewer desired than feasible clusters", pick(t, 1),
			"1 of 40 clusters chosen; 1 more is feasible, 30 do not match region in (eu), 8 have taint maintenance"},
		{
			"named clusters",
			request(t, v1alpha1.PlacementPolicy{Type: v1alpha1.PickFixed, ClusterNames: []string{"c00", "c39", "gone"}}),
			"1 of 40 clusters chosen, but 3 are desired; 38 are not named by the policy, 1 does not match region in (eu), " +
				"1 is not in the fleet",
		},
	} {
		t.Run(test.reason, func(t *testing.T) {
			result, err := s.Schedule(t.Context(), cache.Snapshot(), test.request)
			require.NoError(t, err)
			diagnosis, err := result.Diagnose(t.Context())
			require.NoError(t, err)
			require.Equal(t, test.want, diagnosis.String())
		})
	}
}

// TestDiagnosis_Filtered checks that a diagnosis does not mention clusters that its snapshot does not contain.
func TestDiagnosis_Filtered(t *testing.T) {
	var cache scheduler.Cache
	for i := range 40 {
		cache.Update(&scheduler.Cluster{Name: fmt.Sprintf("c%02d", i),
			Labels: map[string]string{"A": []string{"", "is green"}[i%2]}})
	}
	snapshot := cache.Snapshot().Filter(func(c *scheduler.Cluster) bool { return c.Name < "c04" }, nil)
	result, err := schedulerOf(t, byLabel("A")).Schedule(t.Context(), snapshot, pickAll(t))
	require.NoError(t, err)
	diagnosis, err := result.Diagnose(t.Context())
	require.NoError(t, err)
	require.Equal(t, "2 of 4 clusters chosen; 2 are green", diagnosis.String())
	require.Len(t, diagnosis.Clusters, 4)
}

// TestDiagnosis checks that a diagnosis explains exactly the decision that was made.
func TestDiagnosis(t *testing.T) {
	group := &everything{name: "Group", selects: func(c *scheduler.Candidates) *scheduler.Status {
		for slot := range c.Left().Clone().All() {
			if c.Score(slot) == 30 {
				c.Drop(slot, func() string { return "is in a group that was not chosen" })
			}
		}
		return nil
	}}
	filter := &everything{name: "Filter", filter: func(c *scheduler.Cluster) *scheduler.Status {
		if c.Name == "d" {
			return scheduler.Reject("is too far away")
		}
		return nil
	}}
	s := schedulerOf(t, filter, scores("Near", map[string]float64{"a": 10, "b": 20, "c": 30}), group)
	result, err := s.Schedule(t.Context(), fleet("a", "b", "c", "d"), pick(t, 1))
	require.NoError(t, err)
	require.Equal(t, []string{"b"}, chosen(result))
	diagnosis, err := result.Diagnose(t.Context())
	require.NoError(t, err)

	zero := func(plugin string) scheduler.PluginScore { return scheduler.PluginScore{Plugin: plugin, Weight: 1} }
	near := func(score float64) []scheduler.PluginScore {
		return []scheduler.PluginScore{zero("Filter"), {Plugin: "Near", Score: score, Weight: 1}, zero("Group")}
	}
	require.Equal(t, []scheduler.ClusterDiagnosis{
		{Name: "b", Outcome: scheduler.Chosen, Score: 20, Scores: near(20)},
		{Name: "c", Outcome: scheduler.Feasible, Plugin: "Group", Reason: "is in a group that was not chosen", Score: 30,
			Scores: near(30)},
		{Name: "a", Outcome: scheduler.Feasible, Score: 10, Scores: near(10)},
		{Name: "d", Outcome: scheduler.Rejected, Plugin: "Filter", Reason: "is too far away"},
	}, diagnosis.Clusters)

	var out strings.Builder
	require.NoError(t, diagnosis.Table(&out))
	require.Equal(t, `CLUSTER   RESULT     SCORE   FILTER   NEAR   GROUP   WHY
b         Chosen     20      0        20     0
c         Feasible   30      0        30     0       Group: is in a group that was not chosen
a         Feasible   10      0        10     0
d         Rejected                                   Filter: is too far away
`, out.String())
}

func TestDiagnosis_RequestRejected(t *testing.T) {
	p := &everything{name: "Quota", preFilter: func(*scheduler.CycleState, *scheduler.Request) *scheduler.Status {
		return scheduler.Reject("is used up")
	}}
	result, err := schedulerOf(t, p).Schedule(t.Context(), fleet("a", "b"), pick(t, 1))
	require.NoError(t, err)
	diagnosis, err := result.Diagnose(t.Context())
	require.NoError(t, err)
	require.Equal(t, "0 of 2 clusters chosen, but 1 is desired; Quota is used up", diagnosis.String())

	_, err = new(scheduler.Result).Diagnose(t.Context())
	require.EqualError(t, err, "diagnose: the Result was not returned by Schedule")
}

// TestDiagnosis_DoesNotReserve checks that Diagnose does not call Reserve.
func TestDiagnosis_DoesNotReserve(t *testing.T) {
	reserved := 0
	p := &everything{name: "P", reserve: func(*scheduler.Cluster) *scheduler.Status { reserved++; return nil }}
	result, err := schedulerOf(t, p).Schedule(t.Context(), fleet("a", "b"), pickAll(t))
	require.NoError(t, err)
	_, err = result.Diagnose(t.Context())
	require.NoError(t, err)
	require.Equal(t, 2, reserved)
}

// green is a plugin that prefers clusters whose property reports renewable energy.
type green struct{}

func (green) Name() string { return "Green" }

func (green) Score(_ context.Context, _ *scheduler.CycleState, _ *scheduler.Request,
	c *scheduler.Cluster) (float64, *scheduler.Status) {
	if c.Properties["energy"] == "renewable" {
		return scheduler.MaxScore, nil
	}
	return 0, nil
}

func Example() {
	registry := scheduler.Registry{}
	_ = registry.Register("Green", func(scheduler.Args, scheduler.Handle) (scheduler.Plugin, error) {
		return green{}, nil
	})
	s, err := scheduler.New(scheduler.Options{
		Registry: registry,
		Profiles: []scheduler.Profile{{Plugins: []scheduler.PluginConfig{{Name: "Green", Weight: 5}}}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	var cache scheduler.Cache
	cache.Update(&scheduler.Cluster{Name: "east", Properties: map[string]string{"energy": "coal"}})
	cache.Update(&scheduler.Cluster{Name: "north", Properties: map[string]string{"energy": "renewable"}})

	policy, err := scheduler.NewPolicy(&v1alpha1.PlacementPolicy{Type: v1alpha1.PickN, NumberOfClusters: new(int32(1))})
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := s.Schedule(context.Background(), cache.Snapshot(), &scheduler.Request{Name: "shop", Policy: policy})
	if err != nil {
		fmt.Println(err)
		return
	}
	diagnosis, err := result.Diagnose(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(diagnosis)
	_ = diagnosis.Table(os.Stdout)
	// Output:
	// 1 of 2 clusters chosen; 1 more is feasible
	// CLUSTER   RESULT     SCORE   GREEN     WHY
	// north     Chosen     500     100 × 5
	// east      Feasible   0       0 × 5
}
