package groupspread_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
	"github.com/muster-sdk/muster/scheduler/plugins/eligibility"
	"github.com/muster-sdk/muster/scheduler/plugins/groupspread"
	"github.com/muster-sdk/muster/scheduler/plugins/topologyspread"
)

// given is a plugin that scores each cluster by a value of the cluster.
type given struct{}

func (given) Name() string { return "Given" }

func (given) Score(_ context.Context, _ *scheduler.CycleState, _ *scheduler.Request,
	c *scheduler.Cluster) (float64, *scheduler.Status) {
	return c.Scores["given"], nil
}

func newScheduler(t require.TestingT) *scheduler.Scheduler {
	registry := scheduler.Registry{
		eligibility.Name: eligibility.New, groupspread.Name: groupspread.New, topologyspread.Name: topologyspread.New,
		"Given": func(scheduler.Args, scheduler.Handle) (scheduler.Plugin, error) { return given{}, nil },
	}
	s, err := scheduler.New(
		scheduler.Options{Registry: registry, Profiles: []scheduler.Profile{{Plugins: []scheduler.PluginConfig{
			{Name: eligibility.Name}, {Name: "Given"}, {Name: groupspread.Name}, {Name: topologyspread.Name},
		}}}})
	require.NoError(t, err)
	return s
}

func cluster(name string, score float64, labels ...string) *scheduler.Cluster {
	c := &scheduler.Cluster{Name: name, Joined: true, Healthy: true, Labels: map[string]string{},
		Scores: map[string]float64{"given": score}}
	for _, label := range labels {
		key, value, _ := strings.Cut(label, "=")
		c.Labels[key] = value
	}
	return c
}

// fleet parses clusters from lines with a name, a score and labels. A cluster that is "down" is not healthy.
func fleet(t *testing.T, lines string) []*scheduler.Cluster {
	var out []*scheduler.Cluster
	for line := range strings.Lines(lines) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		var score float64
		_, err := fmt.Sscan(words[1], &score)
		require.NoError(t, err)
		c := cluster(words[0], score, words[2:]...)
		if _, down := c.Labels["down"]; down {
			c.Healthy = false
		}
		out = append(out, c)
	}
	return out
}

func snapshot(clusters []*scheduler.Cluster) *scheduler.Snapshot {
	cache := &scheduler.Cache{}
	for _, c := range clusters {
		cache.Update(c)
	}
	return cache.Snapshot()
}

func groups(label string, least, most int32) v1alpha1.GroupSpreadConstraint {
	return v1alpha1.GroupSpreadConstraint{Label: label, MinGroups: least, MaxGroups: most}
}

func pick(n int32, constraints ...v1alpha1.GroupSpreadConstraint) v1alpha1.PlacementPolicy {
	return v1alpha1.PlacementPolicy{Type: v1alpha1.PickN, NumberOfClusters: &n, GroupSpread: constraints}
}

func all(constraints ...v1alpha1.GroupSpreadConstraint) v1alpha1.PlacementPolicy {
	return v1alpha1.PlacementPolicy{Type: v1alpha1.PickAll, GroupSpread: constraints}
}

func names(result scheduler.Result) []string {
	var out []string
	for _, choice := range result.Chosen {
		out = append(out, choice.Cluster.Name)
	}
	slices.Sort(out)
	return out
}

const providers = `
	a1 9 provider=aws zone=1
	a2 8 provider=aws zone=1
	a3 7 provider=aws zone=2
	g1 6 provider=gcp zone=3
	g2 5 provider=gcp zone=3
	z1 4 provider=azure zone=4
	x1 99
`

func TestSelect(t *testing.T) {
	withSpread := pick(2, groups("provider", 1, 2))
	withSpread.TopologySpread = []v1alpha1.TopologySpreadConstraint{{TopologyKey: "zone", MaxSkew: 1}}
	roomy := pick(3, groups("provider", 2, 2))
	roomy.TopologySpread = withSpread.TopologySpread
	allWithSpread := all(groups("provider", 0, 1))
	allWithSpread.TopologySpread = []v1alpha1.TopologySpreadConstraint{{
		TopologyKey: "zone", MaxSkew: 1, WhenUnsatisfiable: v1alpha1.ScheduleAnyway,
	}}
	for _, test := range []struct {
		name, reason string
		policy       v1alpha1.PlacementPolicy
		fleet        string
		bound        []string
		want         string
		refused      string
		reasons      map[string]string // the reasons of clusters that were not chosen
	}{
		{
			name: "provider is lost", reason: "the clusters of the other provider stay, although two groups are required",
			policy: pick(4, groups("provider", 2, 0)), fleet: "g1 5 provider=gcp\ng2 5 provider=gcp\ng3 5 provider=gcp",
			bound: []string{"a1", "a2", "g1", "g2"}, want: "g1 g2",
			refused: "finds only 1 of the 2 required groups of label provider",
		},
		{
			name: "provider is lost with PickAll", reason: "the clusters of the other provider stay",
			policy: all(groups("provider", 2, 0)), fleet: "g1 5 provider=gcp\ng2 5 provider=gcp\ng3 5 provider=gcp",
			bound: []string{"a1", "g1", "g2"}, want: "g1 g2",
			refused: "finds only 1 of the 2 required groups of label provider",
		},
		{
			name: "better provider joins", reason: "new clusters belong to the chosen group because of the maximum",
			policy: pick(3, groups("provider", 0, 1)), fleet: providers, bound: []string{"g1"}, want: "g1 g2",
			reasons: map[string]string{"a1": "GroupSpread: is in provider aws, which was not chosen"},
		},
		{
			name: "more bound groups than the maximum", reason: "the clusters of all bound groups stay",
			policy: pick(4, groups("provider", 0, 1)), fleet: providers, bound: []string{"a1", "g1", "z1"}, want: "a1 a2 g1 z1",
		},
		{
			name: "second group is missing", reason: "the new cluster is of another group, although a2 is better",
			policy: pick(2, groups("provider", 2, 0)), fleet: providers, bound: []string{"a1"}, want: "a1 g1",
		},
		{
			name: "too few clusters for the missing groups", reason: "no cluster is added or removed",
			policy: pick(3, groups("provider", 3, 0)), fleet: providers, bound: []string{"a1", "a2"}, want: "a1 a2",
			refused: "requires clusters of 2 more groups of label provider, and the policy limits the " +
				"additional clusters to 1",
		},
		{
			name: "no bounds", reason: "only the label is required",
			policy: pick(3, groups("provider", 0, 0)), fleet: providers, want: "a1 a2 a3",
			reasons: map[string]string{"x1": "GroupSpread: has no label provider", "g1": ": "},
		},
		{
			name: "two groups", reason: "the best cluster of the second group replaces the worst one",
			policy: pick(3, groups("provider", 2, 0)), fleet: providers, want: "a1 a2 g1",
			reasons: map[string]string{"a3": "GroupSpread: is in provider aws, which has its share"},
		},
		{
			name: "best clusters satisfy the minimum", reason: "a choice with enough groups is not changed",
			policy: pick(4, groups("provider", 2, 0)), fleet: providers, want: "a1 a2 a3 g1",
			reasons: map[string]string{"g2": ": "},
		},
		{
			name: "at most one group", reason: "the best cluster of another group is not chosen",
			policy: pick(2, groups("provider", 0, 1)), fleet: providers, want: "a1 a2",
			reasons: map[string]string{"g1": "GroupSpread: is in provider gcp, which was not chosen"},
		},
		{
			name: "number of clusters before scores", reason: "gcp has higher scores, and only aws has three clusters",
			policy: pick(3, groups("provider", 0, 1)), want: "a1 a2 a3",
			fleet: "a1 1 provider=aws\na2 1 provider=aws\na3 1 provider=aws\ng1 9 provider=gcp\ng2 9 provider=gcp",
		},
		{
			name: "fewer clusters than desired", reason: "the only permitted group has three clusters",
			policy: pick(5, groups("provider", 0, 1)), fleet: providers, want: "a1 a2 a3",
		},
		{
			name: "greatest total", reason: "azure ranks last with one cluster, and has the greatest total with aws",
			policy: pick(3, groups("provider", 0, 2)), want: "a1 a2 z1",
			fleet: `
				a1 10 provider=aws
				a2 10 provider=aws
				a3 10 provider=aws
				g1 9 provider=gcp
				g2 9 provider=gcp
				g3 9 provider=gcp
				z1 20 provider=azure`,
		},
		{
			name:   "greatest total of three groups",
			reason: "three groups are required, and azure is the best third group",
			policy: pick(4, groups("provider", 3, 3)), want: "a1 a2 g1 z1",
			fleet: `
				a1 10 provider=aws
				a2 10 provider=aws
				g1 10 provider=gcp
				g2 10 provider=gcp
				z1 4 provider=azure
				d1 3 provider=do
				d2 3 provider=do`,
		},
		{
			name: "bound group stays", reason: "gcp ranks higher, and has the same total as azure",
			policy: pick(3, groups("provider", 0, 2)), bound: []string{"z1"}, want: "a1 a2 z1",
			fleet: "a1 10 provider=aws\na2 10 provider=aws\ng1 10 provider=gcp\ng2 5 provider=gcp\nz1 10 provider=azure",
		},
		{
			name: "exactly two groups", reason: "the second group has only its best cluster",
			policy: pick(3, groups("provider", 2, 2)), fleet: providers, want: "a1 a2 g1",
			reasons: map[string]string{"z1": "GroupSpread: is in provider azure, which was not chosen"},
		},
		{
			name: "too few groups", reason: "a group without healthy clusters does not count",
			refused: "finds only 2 of the 3 required groups of label provider",
			policy:  pick(3, groups("provider", 3, 0)), fleet: strings.Replace(providers, "zone=4", "down", 1), want: "",
		},
		{
			name: "fewer clusters than groups", reason: "each group needs a cluster",
			refused: "requires clusters of 3 groups of label provider, but the policy selects only 2 clusters",
			policy:  pick(2, groups("provider", 3, 0)), fleet: providers, want: "",
		},
		{
			name: "PickAll of two groups", reason: "all clusters of the groups with the greatest sums",
			policy: all(groups("provider", 0, 2)), fleet: providers, want: "a1 a2 a3 g1 g2",
			reasons: map[string]string{"z1": "GroupSpread: is in provider azure, which was not chosen"},
		},
		{
			name: "PickAll with too few groups", reason: "the minimum applies to PickAll",
			refused: "finds only 3 of the 4 required groups of label provider",
			policy:  all(groups("provider", 4, 0)), fleet: providers, want: "",
		},
		{
			name: "PickAll of equal groups", reason: "the bound group stays if the sums are equal",
			policy: all(groups("provider", 0, 1)), fleet: "a1 5 provider=aws\ng1 5 provider=gcp", bound: []string{"g1"},
			want: "g1",
		},
		{
			name: "PickAll with more bound clusters", reason: "the sums are equal, although aws has the best cluster",
			policy: all(groups("provider", 0, 1)), bound: []string{"g1", "g2"}, want: "g1 g2",
			fleet: "a1 10 provider=aws\na2 0 provider=aws\ng1 5 provider=gcp\ng2 5 provider=gcp",
		},
		{
			name: "PickAll with more clusters", reason: "of equal groups, the one with more clusters is chosen",
			policy: all(groups("provider", 0, 1)), fleet: "a1 0 provider=aws\ng1 0 provider=gcp\ng2 0 provider=gcp",
			want: "g1 g2",
		},
		{
			name: "bound cluster stays", reason: "although aws is first by name",
			policy: pick(1, groups("provider", 0, 1)), fleet: "a1 5 provider=aws\ng1 5 provider=gcp", bound: []string{"g1"},
			want: "g1",
		},
		{
			name:   "two constraints",
			reason: "a cluster that satisfies both minima takes precedence over better clusters",
			policy: pick(2, groups("provider", 2, 0), groups("region", 2, 0)), want: "a1 g2",
			fleet: "g2 1 provider=gcp region=us\na1 9 provider=aws region=eu\ng1 8 provider=gcp region=eu\n" +
				"a2 7 provider=aws region=us",
		},
		{
			name: "second constraint after the first", reason: "the second constraint chooses among clusters of aws",
			policy: pick(2, groups("provider", 0, 1), groups("region", 0, 1)), want: "a1 a2",
			fleet: "a1 5 provider=aws region=eu\na2 4 provider=aws region=eu\na3 3 provider=aws region=us\n" +
				"g1 4 provider=gcp region=us\ng2 4 provider=gcp region=us",
			reasons: map[string]string{
				"g1": "GroupSpread: is in provider gcp, which was not chosen",
				"a3": "GroupSpread: is in region us, which was not chosen",
			},
		},
		{
			name: "conflicting constraints", reason: "each region has one provider",
			refused: "finds only 1 of the 2 required groups of label provider, given the other constraints",
			policy:  all(groups("provider", 2, 0), groups("region", 0, 1)),
			fleet:   "a1 5 provider=aws region=eu\ng1 4 provider=gcp region=us", want: "",
		},
		{
			name: "conflicting constraints with PickN", reason: "each region has one provider",
			refused: "finds only 1 of the 2 required groups of label provider, given the other constraints",
			policy:  pick(2, groups("provider", 2, 0), groups("region", 0, 1)),
			fleet:   "a1 5 provider=aws region=eu\ng1 4 provider=gcp region=us", want: "",
		},
		{
			name:   "topology spread within the groups",
			reason: "GroupSpread chooses the groups, TopologySpread their clusters in two zones",
			policy: withSpread, fleet: providers, want: "a1 a3",
			reasons: map[string]string{
				"z1": "GroupSpread: is in provider azure, which was not chosen",
				"g1": "TopologySpread: is in zone 3, which has its share",
				"a2": "TopologySpread: is in zone 1, which has its share",
			},
		},
		{
			name: "topology spread has all clusters of the groups", reason: "the best clusters alone are in one zone",
			policy: roomy, want: "a1 a2 g2",
			fleet: `
				a1 9 provider=aws zone=1
				a2 8 provider=aws zone=1
				a3 7 provider=aws zone=1
				g1 1 provider=gcp zone=1
				g2 0 provider=gcp zone=2`,
		},
		{
			name: "PickAll with a topology spread", reason: "the topology spread removes no cluster, so the groups decide",
			policy: allWithSpread, fleet: providers, want: "a1 a2 a3",
		},
		{
			name: "reason without the prefix of the label", reason: "the reason names the group without the prefix",
			policy: pick(1, groups("example.com/provider", 0, 1)),
			fleet:  "a1 5 example.com/provider=aws\ng1 4 example.com/provider=gcp\nx1 5", want: "a1",
			reasons: map[string]string{
				"g1": "GroupSpread: is in provider gcp, which was not chosen",
				"x1": "GroupSpread: has no label example.com/provider",
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			policy, err := scheduler.NewPolicy(&test.policy)
			require.NoError(t, err)
			request := &scheduler.Request{Name: test.name, Policy: policy, Bound: test.bound}
			result, err := newScheduler(t).Schedule(t.Context(), snapshot(fleet(t, test.fleet)), request)
			require.NoError(t, err)
			if diff := cmp.Diff(test.want, strings.Join(names(result), " ")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.reason, diff)
			}
			diagnosis, err := result.Diagnose(t.Context())
			require.NoError(t, err)
			var refused string
			for _, r := range diagnosis.Refused {
				refused += r.Reason
			}
			require.Equal(t, test.refused, refused, test.reason)
			if refused != "" {
				require.Equal(t, []string{groupspread.Name}, slices.DeleteFunc(result.RejectedBy, func(by string) bool {
					return by == eligibility.Name
				}))
			}
			for _, c := range diagnosis.Clusters {
				if want, found := test.reasons[c.Name]; found {
					require.Equal(t, want, c.Plugin+": "+c.Reason, c.Name)
				}
			}
		})
	}
}

func TestHint(t *testing.T) {
	made, err := groupspread.New(nil, scheduler.Handle{})
	require.NoError(t, err)
	in := func(labels ...string) *scheduler.Cluster { return cluster("east", 0, labels...) }
	one := []v1alpha1.GroupSpreadConstraint{groups("provider", 2, 2)}
	two := append(one, groups("region", 0, 1))
	for _, test := range []struct {
		reason      string
		constraints []v1alpha1.GroupSpreadConstraint
		event       scheduler.Event
		want        bool
	}{
		{"new cluster of a group", one, scheduler.Event{New: in("provider=aws")}, true},
		{"cluster changes its group", one, scheduler.Event{Old: in("provider=gcp"), New: in("provider=aws")}, true},
		{"cluster gets a group", one, scheduler.Event{Old: in(), New: in("provider=aws")}, true},
		{"new cluster without a group", one, scheduler.Event{New: in("region=eu")}, false},
		{"change of another label", one, scheduler.Event{Old: in("provider=aws"), New: in("provider=aws", "x=y")},
			false},
		{"cluster is removed", one, scheduler.Event{Old: in("provider=aws")}, false},
		{"removed cluster with two constraints", two,
			scheduler.Event{Old: in("provider=aws")}, true},
	} {
		spec := pick(3, test.constraints...)
		policy, err := scheduler.NewPolicy(&spec)
		require.NoError(t, err)
		require.Equal(t, test.want, made.(scheduler.HintPlugin).Hint(&scheduler.Request{Policy: policy}, test.event),
			test.reason)
	}
}

func TestNew_UnknownArgument(t *testing.T) {
	_, err := groupspread.New([]byte(`{"groups": 1}`), scheduler.Handle{})
	require.ErrorContains(t, err, "groups", "the error names the unknown argument")
}
