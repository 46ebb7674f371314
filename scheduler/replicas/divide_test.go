package replicas

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// clusters parses "east weight/current/capacity". The capacity * is Unbounded.
func clusters(t *testing.T, all string) []Target {
	t.Helper()
	var targets []Target
	for one := range strings.SplitSeq(all, ", ") {
		var c Target
		var capacity string
		_, err := fmt.Sscanf(strings.ReplaceAll(one, "/", " "), "%s %d %d %s", &c.Name, &c.Weight, &c.Current, &capacity)
		require.NoError(t, err, one)
		c.Capacity = Unbounded
		if capacity != "*" {
			_, err = fmt.Sscan(capacity, &c.Capacity)
			require.NoError(t, err, one)
		}
		targets = append(targets, c)
	}
	return targets
}

func format(r Result) string {
	var all []string
	for _, s := range r.Shares {
		all = append(all, fmt.Sprint(s.Name, " ", s.Replicas))
	}
	return strings.Join(all, ", ") + fmt.Sprint(" + ", r.Unplaced)
}

func TestDivide(t *testing.T) {
	for _, test := range []struct {
		name, reason string
		r            Request
		clusters     string // name weight/current/capacity
		want         string // the shares, and the unplaced replicas
	}{
		{
			name: "duplicated", reason: "each cluster has the whole workload regardless of its weight",
			r: Request{Strategy: Duplicated, Replicas: 3}, clusters: "a 0/0/*, b 5/9/*", want: "a 3, b 3 + 0",
		},
		{
			name:   "duplicated, too large",
			reason: "capacities apply to every strategy, and unplaced replicas are summed over all clusters",
			r:      Request{Strategy: Duplicated, Replicas: 3}, clusters: "a 0/0/2, b 0/0/*, c 0/0/0", want: "a 2, b 3, c 0 + 4",
		},
		{
			name: "static, exact", reason: "the weights divide the replicas without a remainder",
			r: Request{Strategy: StaticWeight, Replicas: 9}, clusters: "a 1/0/*, b 2/0/*", want: "a 3, b 6 + 0",
		},
		{
			name: "static, rounded", reason: "2.5, 1.6 and 0.9: Webster rounds to the nearest",
			r: Request{Strategy: StaticWeight, Replicas: 5}, clusters: "a 170/0/*, b 110/0/*, c 60/0/*",
			want: "a 2, b 2, c 1 + 0",
		},
		{
			name: "static, one more", reason: "no cluster loses a replica; the largest remainder method would remove one from c",
			r: Request{Strategy: StaticWeight, Replicas: 6}, clusters: "a 170/0/*, b 110/0/*, c 60/0/*",
			want: "a 3, b 2, c 1 + 0",
		},
		{
			name: "static, tie", reason: "the first cluster by name",
			r: Request{Strategy: StaticWeight, Replicas: 1}, clusters: "b 1/0/*, a 1/0/*", want: "a 1, b 0 + 0",
		},
		{
			name: "static, equal averages", reason: "of equal averages, the cluster with fewer replicas gets the second one",
			r: Request{Strategy: StaticWeight, Replicas: 2}, clusters: "a 3/0/*, b 1/0/*", want: "a 1, b 1 + 0",
		},
		{
			name: "static, tie with a current replica", reason: "a replica does not move without need",
			r: Request{Strategy: StaticWeight, Replicas: 1}, clusters: "a 1/0/*, b 1/1/*", want: "a 0, b 1 + 0",
		},
		{
			name:   "static, tie between current replicas",
			reason: "the cluster that has the second replica keeps it",
			r:      Request{Strategy: StaticWeight, Replicas: 3}, clusters: "a 1/1/*, b 1/2/*", want: "a 1, b 2 + 0",
		},
		{
			name: "static, moved", reason: "the weights apply, also if replicas move",
			r: Request{Strategy: StaticWeight, Replicas: 4}, clusters: "a 1/4/*, b 1/0/*", want: "a 2, b 2 + 0",
		},
		{
			name: "static, full", reason: "the other clusters share the rest by their weights",
			r: Request{Strategy: StaticWeight, Replicas: 10}, clusters: "a 8/0/1, b 2/0/*, c 1/0/*", want: "a 1, b 6, c 3 + 0",
		},
		{
			name: "static, all full", reason: "replicas beyond all capacities are unplaced",
			r: Request{Strategy: StaticWeight, Replicas: 10}, clusters: "a 8/0/1, b 2/0/3", want: "a 1, b 3 + 6",
		},
		{
			name: "static, weight 0", reason: "a cluster of weight 0 gets no replica, even if the others are full",
			r: Request{Strategy: StaticWeight, Replicas: 5}, clusters: "a 0/2/*, b 1/2/3", want: "a 0, b 3 + 2",
		},
		{
			name: "static, all weights 0 and nothing to place", reason: "zero replicas are valid regardless of the weights",
			r: Request{Strategy: StaticWeight}, clusters: "a 0/2/*, b 0/2/3", want: "a 0, b 0 + 0",
		},
		{
			name: "static, large weights", reason: "no product overflows",
			r:        Request{Strategy: StaticWeight, Replicas: math.MaxInt32},
			clusters: fmt.Sprintf("a %d/0/*, b %d/0/*", math.MaxInt64, math.MaxInt64),
			want:     "a 1073741824, b 1073741823 + 0",
		},
		{
			name: "dynamic", reason: "in proportion to the capacities; weights are ignored",
			r: Request{Strategy: DynamicWeight, Replicas: 9}, clusters: "a 7/0/20, b 0/0/10", want: "a 6, b 3 + 0",
		},
		{
			name: "dynamic, steady", reason: "current replicas stay, also if the division is uneven",
			r: Request{Strategy: DynamicWeight, Replicas: 9}, clusters: "a 0/0/20, b 0/9/10", want: "a 0, b 9 + 0",
		},
		{
			name: "dynamic, fresh", reason: "current replicas are ignored",
			r: Request{Strategy: DynamicWeight, Replicas: 9, Fresh: true}, clusters: "a 0/0/20, b 0/9/10", want: "a 6, b 3 + 0",
		},
		{
			name: "dynamic, grows", reason: "new replicas are placed where the division is farthest behind the capacities",
			r: Request{Strategy: DynamicWeight, Replicas: 12}, clusters: "a 0/0/20, b 0/9/10", want: "a 3, b 9 + 0",
		},
		{
			name: "dynamic, shrinks", reason: "in proportion to the current replicas, regardless of the capacities",
			r: Request{Strategy: DynamicWeight, Replicas: 5}, clusters: "a 0/8/9, b 0/2/100", want: "a 4, b 1 + 0",
		},
		{
			name: "dynamic, cluster removed", reason: "the 3 replicas of the removed cluster are placed, and the others stay",
			r: Request{Strategy: DynamicWeight, Replicas: 12}, clusters: "a 0/5/10, b 0/4/10", want: "a 6, b 6 + 0",
		},
		{
			name:   "dynamic, cluster removed and workload shrunk",
			reason: "replicas of the removed cluster do not count as current replicas",
			r:      Request{Strategy: DynamicWeight, Replicas: 8}, clusters: "a 0/3/*, b 0/2/*", want: "a 4, b 4 + 0",
		},
		{
			name: "dynamic, less capacity", reason: "only replicas beyond the capacity move",
			r: Request{Strategy: DynamicWeight, Replicas: 9}, clusters: "a 0/6/4, b 0/3/10", want: "a 4, b 5 + 0",
		},
		{
			name: "dynamic, unbounded", reason: "an unbounded cluster has the weight of the largest capacity",
			r: Request{Strategy: DynamicWeight, Replicas: 50}, clusters: "a 0/0/20, b 0/0/10, c 0/0/*",
			want: "a 20, b 10, c 20 + 0",
		},
		{
			name: "dynamic, all unbounded", reason: "equal shares",
			r: Request{Strategy: DynamicWeight, Replicas: 5}, clusters: "a 0/0/*, b 0/0/*", want: "a 3, b 2 + 0",
		},
		{
			name: "dynamic, full and unbounded", reason: "an unbounded cluster next to full clusters has a positive weight",
			r: Request{Strategy: DynamicWeight, Replicas: 5}, clusters: "a 0/0/0, b 0/0/*", want: "a 0, b 5 + 0",
		},
		{
			name: "aggregated", reason: "one cluster is enough: the one with the largest capacity",
			r: Request{Strategy: Aggregated, Replicas: 9}, clusters: "a 0/0/9, b 0/0/20, c 0/0/10", want: "a 0, b 9, c 0 + 0",
		},
		{
			name: "aggregated, two clusters", reason: "the cluster with the largest capacity is filled first",
			r: Request{Strategy: Aggregated, Replicas: 25}, clusters: "a 0/0/9, b 0/0/20, c 0/0/10", want: "a 0, b 20, c 5 + 0",
		},
		{
			name: "aggregated, grows", reason: "clusters with current replicas are filled before an unused larger one",
			r: Request{Strategy: Aggregated, Replicas: 12}, clusters: "a 0/1/9, b 0/0/20, c 0/2/10", want: "a 2, b 0, c 10 + 0",
		},
		{
			name: "aggregated, shrinks", reason: "the clusters with the fewest replicas are emptied first",
			r: Request{Strategy: Aggregated, Replicas: 7}, clusters: "a 0/2/9, b 0/5/5, c 0/3/10", want: "a 0, b 5, c 2 + 0",
		},
		{
			name: "aggregated, fresh", reason: "replicas of several clusters are moved to one",
			r: Request{Strategy: Aggregated, Replicas: 10, Fresh: true}, clusters: "a 0/2/9, b 0/5/5, c 0/3/10",
			want: "a 0, b 0, c 10 + 0",
		},
		{
			name: "aggregated, fresh, tie", reason: "of two sufficient clusters, the one with more current replicas",
			r: Request{Strategy: Aggregated, Replicas: 5, Fresh: true}, clusters: "a 0/2/5, b 0/3/5", want: "a 0, b 5 + 0",
		},
		{
			name: "no clusters", reason: "all replicas are unplaced, without an error",
			r: Request{Strategy: Aggregated, Replicas: 5}, want: " + 5",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.clusters != "" {
				test.r.Clusters = clusters(t, test.clusters)
			}
			result, err := Divide(test.r)
			require.NoError(t, err)
			if diff := cmp.Diff(test.want, format(result)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.reason, diff)
			}
		})
	}
}

func TestDivide_InvalidRequests(t *testing.T) {
	for _, test := range []struct {
		name, reason string
		r            Request
		want         string
	}{
		{
			name: "no strategy", reason: "the strategy has no default",
			r: Request{Replicas: 1},
			want: `strategy: Unsupported value: "": supported values: "Duplicated", "StaticWeight", "DynamicWeight", ` +
				`"Aggregated"`,
		},
		{
			name: "negative replicas", reason: "the number of replicas is invalid",
			r:    Request{Strategy: Duplicated, Replicas: -1},
			want: "replicas: Invalid value: -1: must not be negative",
		},
		{
			name: "empty name", reason: "the share needs a name",
			r:    Request{Strategy: Duplicated, Clusters: []Target{{Name: "a"}, {}}},
			want: "clusters[1].name: Required value: must not be empty",
		},
		{
			name: "negative weight", reason: "the weight is invalid for every strategy",
			r:    Request{Strategy: Aggregated, Clusters: []Target{{Name: "a"}, {Name: "b"}, {Name: "c", Weight: -1}}},
			want: "clusters[2].weight: Invalid value: -1: must not be negative",
		},
		{
			name: "negative capacity", reason: "-1 does not mean Unbounded",
			r:    Request{Strategy: DynamicWeight, Clusters: []Target{{Name: "a", Capacity: -1}}},
			want: "clusters[0].capacity: Invalid value: -1: must not be negative; use Unbounded for no limit",
		},
		{
			name: "negative current", reason: "the sum of current replicas would be wrong",
			r:    Request{Strategy: DynamicWeight, Clusters: []Target{{Name: "a", Current: -3}}},
			want: "clusters[0].current: Invalid value: -3: must not be negative",
		},
		{
			name: "duplicate names", reason: "the error is about the later cluster, regardless of the order of names",
			r:    Request{Strategy: Duplicated, Clusters: []Target{{Name: "b"}, {Name: "a"}, {Name: "b"}}},
			want: `clusters[2].name: Duplicate value: "b"`,
		},
		{
			name: "duplicate adjacent names", reason: "duplicates are found among sorted names",
			r:    Request{Strategy: Duplicated, Clusters: []Target{{Name: "a"}, {Name: "a"}, {Name: "b"}}},
			want: `clusters[1].name: Duplicate value: "a"`,
		},
		{
			name:   "no weight",
			reason: "neither zero replicas nor equal shares are correct",
			r:      Request{Strategy: StaticWeight, Replicas: 1, Clusters: []Target{{Name: "a", Capacity: 5}}},
			want: `clusters: Invalid value: "every weight is 0": no replica can be placed: give at least one cluster a ` +
				`weight, or every cluster the weight 1 for equal shares`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			result, err := Divide(test.r)
			require.EqualError(t, err, test.want, test.reason)
			require.Zero(t, result)
			_, ok := errors.AsType[*field.Error](err)
			require.True(t, ok, "want a *field.Error, got %T", err)
		})
	}
}

func TestCapacityOf(t *testing.T) {
	for _, test := range []struct {
		reason              string
		current, more, want int32
	}{
		{"current replicas are added", 3, 4, 7},
		{"Unbounded stays Unbounded", 3, Unbounded, Unbounded},
		{"sum does not overflow", math.MaxInt32, math.MaxInt32, Unbounded},
		{"full cluster has its current replicas", 3, 0, 3},
	} {
		if got := CapacityOf(test.current, test.more); got != test.want {
			t.Errorf("%s: CapacityOf(%d, %d) = %d, want %d", test.reason, test.current, test.more, got, test.want)
		}
	}
}

// TestDivide_DoesNotModifyTheRequest checks that Divide does not change the request, so that goroutines may share
// clusters.
func TestDivide_DoesNotModifyTheRequest(t *testing.T) {
	for _, strategy := range strategies {
		r := Request{Strategy: strategy, Replicas: 7, Key: "k", Clusters: clusters(t, "c 1/2/5, a 2/0/*, b 3/9/4")}
		before := clusters(t, "c 1/2/5, a 2/0/*, b 3/9/4")
		_, err := Divide(r)
		require.NoError(t, err)
		if diff := cmp.Diff(before, r.Clusters); diff != "" {
			t.Errorf("%s (-before +after):\n%s", strategy, diff)
		}
	}
}
