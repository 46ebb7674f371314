package topologyspread_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
	"github.com/muster-sdk/muster/scheduler/plugins/eligibility"
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
		eligibility.Name: eligibility.New, topologyspread.Name: topologyspread.New,
		"Given": func(scheduler.Args, scheduler.Handle) (scheduler.Plugin, error) { return given{}, nil },
	}
	s, err := scheduler.New(
		scheduler.Options{Registry: registry, Profiles: []scheduler.Profile{{Plugins: []scheduler.PluginConfig{
			{Name: eligibility.Name}, {Name: "Given"}, {Name: topologyspread.Name},
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

func spread(key string, skew int32) v1alpha1.TopologySpreadConstraint {
	return v1alpha1.TopologySpreadConstraint{TopologyKey: key, MaxSkew: skew, WhenUnsatisfiable: v1alpha1.DoNotSchedule}
}

func anyway(key string, skew int32) v1alpha1.TopologySpreadConstraint {
	return v1alpha1.TopologySpreadConstraint{TopologyKey: key, MaxSkew: skew, WhenUnsatisfiable: v1alpha1.ScheduleAnyway}
}

func pick(n int32, constraints ...v1alpha1.TopologySpreadConstraint) v1alpha1.PlacementPolicy {
	return v1alpha1.PlacementPolicy{Type: v1alpha1.PickN, NumberOfClusters: &n, TopologySpread: constraints}
}

func rebalanced(policy v1alpha1.PlacementPolicy) v1alpha1.PlacementPolicy {
	policy.Rebalance = v1alpha1.RebalanceAlways
	return policy
}

func names(result scheduler.Result) []string {
	var out []string
	for _, choice := range result.Chosen {
		out = append(out, choice.Cluster.Name)
	}
	slices.Sort(out)
	return out
}

const threeZones = `
	a1 9 zone=a
	a2 8 zone=a
	a3 7 zone=a
	b1 3 zone=b
	b2 2 zone=b
	c1 1 zone=c
`

func TestSelect(t *testing.T) {
	minDomains := spread("zone", 1)
	minDomains.MinDomains = new(int32(4))
	tooFew := spread("region", 2)
	tooFew.MinDomains = new(int32(2))
	for _, test := range []struct {
		name, reason string
		policy       v1alpha1.PlacementPolicy
		fleet        string
		bound        []string
		want         string
		reasons      map[string]string // the reasons of clusters that were not chosen
	}{
		{
			name: "one cluster of each zone", reason: "the best cluster of each zone, although others have higher scores",
			policy: pick(3, spread("zone", 1)), fleet: threeZones, want: "a1 b1 c1",
			reasons: map[string]string{"a2": "is in zone a, which has its share", "b2": "is in zone b, which has its share"},
		},
		{
			name: "remaining clusters by score", reason: "within maxSkew the best clusters are chosen",
			policy: pick(4, spread("zone", 2)), fleet: threeZones, want: "a1 a2 b1 b2",
		},
		{
			name: "level 1 before level 0", reason: "without a cluster of zone c, zones a and b may have only one",
			policy: pick(5, spread("zone", 1)), fleet: threeZones, want: "a1 a2 b1 b2 c1",
		},
		{
			name: "fewer clusters than desired", reason: "a sixth cluster violates the skew",
			policy: pick(6, spread("zone", 1)), fleet: threeZones, want: "a1 a2 b1 b2 c1",
			reasons: map[string]string{"a3": "is in zone a, which has its share"},
		},
		{
			name: "larger skew", reason: "a third cluster of zone a is two ahead of zone c",
			policy: pick(6, spread("zone", 2)), fleet: threeZones, want: "a1 a2 a3 b1 b2 c1",
		},
		{
			name:   "domains are counted among candidates only",
			reason: "a zone without healthy clusters must not block the others",
			policy: pick(4, spread("zone", 1)), fleet: threeZones + "d1 9 zone=d down", want: "a1 a2 b1 c1",
		},
		{
			name: "no label", reason: "a cluster without a domain is not chosen regardless of its score",
			policy: pick(6, spread("zone", 1)), fleet: threeZones + "x1 99 other=x", want: "a1 a2 b1 b2 c1",
			reasons: map[string]string{"x1": "has no label zone"},
		},
		{
			name: "no label at all", reason: "there is no domain to choose from",
			policy: pick(1, spread("zone", 1)), fleet: "x1 9", want: "",
			reasons: map[string]string{"x1": "has no label zone"},
		},
		{
			name: "too few domains", reason: "below minDomains the minimum is 0, so no zone may have two",
			policy: pick(5, minDomains), fleet: threeZones, want: "a1 b1 c1",
		},
		{
			name: "ScheduleAnyway chooses the desired number", reason: "the skew is exceeded as little as possible",
			policy: pick(6, anyway("zone", 1)), fleet: threeZones + "a4 9 zone=a", want: "a1 a2 a4 b1 b2 c1",
			reasons: map[string]string{"a3": "is in zone a, which has its share"},
		},
		{
			name: "ScheduleAnyway with a possible skew", reason: "the skew is satisfied",
			policy: pick(3, anyway("zone", 1)), fleet: threeZones, want: "a1 b1 c1",
		},
		{
			name: "ScheduleAnyway without a label", reason: "clusters without a domain rank last",
			policy: pick(6, anyway("zone", 1)), fleet: threeZones + "x1 99\nx2 98", want: "a1 a2 a3 b1 b2 c1",
			reasons: map[string]string{"x1": "has no label zone"},
		},
		{
			name: "ScheduleAnyway with too few labeled clusters", reason: "a cluster without a domain is chosen last",
			policy: pick(7, anyway("zone", 1)), fleet: threeZones + "x1 99\nx2 98", want: "a1 a2 a3 b1 b2 c1 x1",
			reasons: map[string]string{"x2": "has no label zone"},
		},
		{
			name: "ScheduleAnyway with too few clusters", reason: "all clusters are chosen",
			policy: pick(9, anyway("zone", 1)), fleet: threeZones + "x1 99", want: "a1 a2 a3 b1 b2 c1 x1",
		},
		{
			name: "bound clusters stay", reason: "of equal clusters the bound ones are chosen",
			policy: pick(2, spread("zone", 1)), fleet: "a1 5 zone=a\na2 5 zone=a\nb1 5 zone=b\nb2 5 zone=b",
			bound: []string{"a2", "b2"}, want: "a2 b2",
		},
		{
			name: "bound clusters stay with an uneven spread", reason: "an even spread has no higher value and moves a cluster",
			policy: pick(4, spread("zone", 2)), fleet: "a1 5 zone=a\na2 5 zone=a\na3 5 zone=a\nb1 5 zone=b\nb2 5 zone=b",
			bound: []string{"a1", "a2", "a3", "b2"}, want: "a1 a2 a3 b2",
		},
		{
			name:   "maximum number of bound clusters stays",
			reason: "a choice with a3 and d1 has the same total, and b2 and c2 are bound",
			policy: pick(6, spread("zone", 2)), bound: []string{"b2", "c2"}, want: "a1 a2 b1 b2 c1 c2",
			fleet: `
				a1 50 zone=a
				a2 50 zone=a
				a3 20 zone=a
				b1 50 zone=b
				b2 10 zone=b
				c1 50 zone=c
				c2 10 zone=c
				d1 0 zone=d`,
		},
		{
			name: "better cluster with rebalancing", reason: "the score takes precedence over the bound cluster",
			policy: rebalanced(pick(1, spread("zone", 1))), fleet: "a1 5 zone=a\na2 6 zone=a", bound: []string{"a1"}, want: "a2",
		},
		{
			name: "better cluster without rebalancing", reason: "the bound cluster stays",
			policy: pick(1, spread("zone", 1)), fleet: "a1 5 zone=a\na2 6 zone=a", bound: []string{"a1"}, want: "a1",
		},
		{
			name: "two clusters of a zone are lost", reason: "a constraint is no reason to drop a healthy cluster",
			policy: pick(6, spread("zone", 1)), fleet: "a1 5 zone=a\na2 5 zone=a\na3 5 zone=a\nb1 5 zone=b",
			bound: []string{"a1", "a2", "a3", "b1", "b2", "b3"}, want: "a1 a2 a3 b1",
		},
		{
			name: "zone is lost except for one bound cluster", reason: "no cluster is added to the zone that is ahead",
			policy: pick(6, spread("zone", 1)), fleet: "a1 5 zone=a\na2 5 zone=a\na3 5 zone=a\na4 9 zone=a\nb1 5 zone=b",
			bound: []string{"a1", "a2", "a3", "b1", "b2", "b3"}, want: "a1 a2 a3 b1",
			reasons: map[string]string{"a4": "is in zone a, which has its share"},
		},
		{
			name: "missing clusters are added to the zone that is behind", reason: "clusters are added until the spread is even",
			policy: pick(6, spread("zone", 1)),
			fleet:  "a1 5 zone=a\na2 5 zone=a\na3 5 zone=a\na4 9 zone=a\nb1 5 zone=b\nb2 5 zone=b\nb3 5 zone=b",
			bound:  []string{"a1", "a2", "a3"}, want: "a1 a2 a3 b1 b2 b3",
		},
		{
			name: "zone joins", reason: "no cluster moves, although the skew is exceeded",
			policy: pick(4, spread("zone", 1)), fleet: "a1 5 zone=a\na2 5 zone=a\na3 5 zone=a\na4 5 zone=a\nb1 9 zone=b",
			bound: []string{"a1", "a2", "a3", "a4"}, want: "a1 a2 a3 a4",
		},
		{
			name: "zone joins with rebalancing", reason: "the constraint takes precedence over bound clusters",
			policy: rebalanced(pick(4, spread("zone", 1))),
			fleet:  "a1 5 zone=a\na2 5 zone=a\na3 5 zone=a\na4 5 zone=a\nb1 9 zone=b",
			bound:  []string{"a1", "a2", "a3", "a4"}, want: "a1 a2 b1",
		},
		{
			name: "fewer domains than minDomains", reason: "no cluster is added or removed",
			policy: pick(3, minDomains), fleet: "a1 5 zone=a\na2 5 zone=a\na3 5 zone=a", bound: []string{"a1", "a2"},
			want: "a1 a2",
		},
		{
			name: "bound cluster without a label", reason: "the cluster stays and has no zone",
			policy: pick(2, spread("zone", 1)), fleet: "a1 5\na2 5 zone=a\na3 5 zone=a", bound: []string{"a1"}, want: "a1 a2",
		},
		{
			name: "uneven spread with ScheduleAnyway", reason: "no cluster moves, and the new one is in the zone that is behind",
			policy: pick(4, anyway("zone", 1)),
			fleet:  "a1 5 zone=a\na2 5 zone=a\na3 5 zone=a\na4 9 zone=a\nb1 1 zone=b\nb2 1 zone=b",
			bound:  []string{"a1", "a2", "a3"}, want: "a1 a2 a3 b1",
		},
		{
			name: "fewer desired clusters", reason: "the bound clusters with the best spread stay",
			policy: pick(2, spread("zone", 1)), fleet: "a1 9 zone=a\na2 9 zone=a\nb1 5 zone=b\nb2 9 zone=b",
			bound: []string{"a1", "a2", "b1"}, want: "a1 b1",
		},
		{
			name: "fewer desired clusters with an unhealthy one", reason: "the unhealthy cluster is removed first",
			policy: pick(2, spread("zone", 1)), fleet: "a1 9 zone=a\na2 9 zone=a\nb1 5 zone=b down=yes",
			bound: []string{"a1", "a2", "b1"}, want: "a1 a2",
		},
		{
			name: "scores are compared to the millionth", reason: "smaller differences are rounding errors and move no cluster",
			policy: pick(2, spread("zone", 1), spread("tier", 1)), bound: []string{"a2", "b2"}, want: "a2 b2",
			fleet: `
				a1 5.00000000001 zone=a tier=1
				a2 5 zone=a tier=1
				b1 5.00000000001 zone=b tier=2
				b2 5 zone=b tier=2`,
		},
		{
			name: "reason without the prefix of the label", reason: "the reason names the domain without the prefix",
			policy: pick(1, spread("topology.kubernetes.io/zone", 1)), want: "a1",
			fleet: "a1 5 topology.kubernetes.io/zone=a\na2 4 topology.kubernetes.io/zone=a\nx1 5",
			reasons: map[string]string{"a2": "is in zone a, which has its share",
				"x1": "has no label topology.kubernetes.io/zone"},
		},
		{
			name: "region and zone", reason: "the zones of eu have higher scores, and its share is two",
			policy: pick(4, spread("region", 1), spread("zone", 1)), want: "e1 e3 u1 u2",
			fleet: `
				e1 9 region=eu zone=e-a
				e2 8 region=eu zone=e-a
				e3 7 region=eu zone=e-b
				e4 6 region=eu zone=e-c
				u1 2 region=us zone=u-a
				u2 1 region=us zone=u-b`,
			reasons: map[string]string{"e2": "is in zone e-a, which has its share",
				"e4": "is in region eu, which has its share"},
		},
		{
			name: "region and zone, with reasons", reason: "the reason names the first of two violated constraints",
			policy: pick(3, spread("region", 1), spread("zone", 1)), want: "e1 e3 u1",
			fleet: `
				e1 9 region=eu zone=e-a
				e2 8 region=eu zone=e-a
				e3 7 region=eu zone=e-b
				u1 2 region=us zone=u-a
				u2 1 region=us zone=u-b`,
			reasons: map[string]string{"e2": "is in region eu, which has its share"},
		},
		{
			name: "region, and rack with ScheduleAnyway", reason: "missing regions permit only two clusters, in two racks",
			policy: pick(4, tooFew, anyway("rack", 1)), want: "c1 c5",
			fleet: `
				c1 5 region=eu rack=1
				c2 5 region=eu rack=1
				c3 5 region=eu rack=1
				c4 5 region=eu rack=1
				c5 5 region=eu rack=2`,
		},
		{
			name: "region, and zone with ScheduleAnyway", reason: "us has one zone, so that the zones cannot be even",
			policy: pick(4, spread("region", 1), anyway("zone", 1)), want: "e1 e3 u1 u2",
			fleet: `
				e1 9 region=eu zone=e-a
				e2 8 region=eu zone=e-a
				e3 7 region=eu zone=e-b
				u1 2 region=us zone=u-a
				u2 1 region=us zone=u-a`,
		},
		{
			name: "region and provider", reason: "two of each domain, although the best clusters are of one region",
			policy: pick(4, spread("region", 1), spread("provider", 1)), want: "e1 e3 u2 u3",
			fleet: `
				e1 9 region=eu provider=aws
				e2 8 region=eu provider=aws
				e3 7 region=eu provider=gcp
				u1 1 region=us provider=aws
				u2 2 region=us provider=aws
				u3 3 region=us provider=gcp`,
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
			for _, c := range diagnosis.Clusters {
				if want, found := test.reasons[c.Name]; found {
					require.Equal(t, scheduler.Feasible, c.Outcome, c.Name)
					require.Equal(t, topologyspread.Name+": "+want, c.Plugin+": "+c.Reason, c.Name)
				}
			}
		})
	}
}

func TestSelect_PickAll(t *testing.T) {
	policy, err := scheduler.NewPolicy(&v1alpha1.PlacementPolicy{
		Type: v1alpha1.PickAll, TopologySpread: []v1alpha1.TopologySpreadConstraint{anyway("zone", 1)},
	})
	require.NoError(t, err)
	result, err := newScheduler(t).Schedule(t.Context(), snapshot(fleet(t, threeZones+"x1 0")),
		&scheduler.Request{Policy: policy})
	require.NoError(t, err)
	require.Len(t, result.Chosen, 7, "PickAll chooses all clusters")
}

func TestSelect_ZeroClusters(t *testing.T) {
	spec := pick(0, spread("zone", 1))
	policy, err := scheduler.NewPolicy(&spec)
	require.NoError(t, err)
	result, err := newScheduler(t).Schedule(t.Context(), snapshot(fleet(t, threeZones)),
		&scheduler.Request{Policy: policy})
	require.NoError(t, err)
	require.Empty(t, result.Chosen)
	_, err = result.Diagnose(t.Context())
	require.NoError(t, err, "Diagnose calls the plugin nevertheless")
}

func TestHint(t *testing.T) {
	made, err := topologyspread.New(nil, scheduler.Handle{})
	require.NoError(t, err)
	spec := pick(3, spread("zone", 1), spread("region", 1))
	policy, err := scheduler.NewPolicy(&spec)
	require.NoError(t, err)
	in := func(change func(*scheduler.Cluster), labels ...string) *scheduler.Cluster {
		c := cluster("east", 0, labels...)
		if change != nil {
			change(c)
		}
		return c
	}
	for _, test := range []struct {
		reason string
		event  scheduler.Event
		want   bool
	}{
		{"new cluster of a zone", scheduler.Event{New: in(nil, "zone=a")}, true},
		{"cluster of a zone is removed", scheduler.Event{Old: in(nil, "zone=a")}, true},
		{"cluster changes its zone", scheduler.Event{Old: in(nil, "zone=a"), New: in(nil, "zone=b")}, true},
		{"cluster gets a region", scheduler.Event{Old: in(nil, "zone=a"), New: in(nil, "zone=a", "region=eu")}, true},
		{"new cluster without a domain", scheduler.Event{New: in(nil, "other=a")}, false},
		{"available resources change",
			scheduler.Event{Old: in(nil, "zone=a"), New: in(func(c *scheduler.Cluster) {
				c.Available = corev1.ResourceList{}
			}, "zone=a")}, false},
		{"cluster becomes unhealthy", scheduler.Event{Old: in(nil, "zone=a"), New: in(func(c *scheduler.Cluster) {
			c.Healthy = false
		}, "zone=a")}, true},
		{"cluster gets a taint", scheduler.Event{Old: in(nil, "zone=a"), New: in(func(c *scheduler.Cluster) {
			c.Taints = []corev1.Taint{{Key: "down"}}
		}, "zone=a")}, true},
		{"cluster loses another label", scheduler.Event{Old: in(nil, "zone=a", "env=prod"), New: in(nil, "zone=a")},
			true},
	} {
		require.Equal(t, test.want, made.(scheduler.HintPlugin).Hint(&scheduler.Request{Policy: policy}, test.event),
			test.reason)
	}
}

func TestInvalidArgumentsAndPolicy(t *testing.T) {
	_, err := topologyspread.New([]byte(`{"skew": 1}`), scheduler.Handle{})
	require.ErrorContains(t, err, "skew", "the error names the unknown argument")

	spec := pick(1, spread("a", 1), spread("b", 1), spread("c", 1), spread("d", 1), spread("e", 1))
	_, err = scheduler.NewPolicy(&spec)
	require.ErrorContains(t, err, "policy.topologySpread: Too many: 5")
}
