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

func shown(r Result) string {
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
		want         string // and what is unplaced
	}{
		{
			name: "duplicated", reason: "each has the whole workload, whatever its weight",
			r: Request{Strategy: Duplicated, Replicas: 3}, clusters: "a 0/0/*, b 5/9/*", want: "a 3, b 3 + 0",
		},
		{
			name:   "duplicated, too large",
			reason: "a capacity holds for every strategy, and what is missing is told over all clusters",
			r:      Request{Strategy: Duplicated, Replicas: 3}, clusters: "a 0/0/2, b 0/0/*, c 0/0/0", want: "a 2, b 3, c 0 + 4",
		},
		{
			name: "static, exact", reason: "where the weights divide the replicas there is nothing to round",
			r: Request{Strategy: StaticWeight, Replicas: 9}, clusters: "a 1/0/*, b 2/0/*", want: "a 3, b 6 + 0",
		},
		{
			name: "static, rounded", reason: "2.5, 1.6 and 0.9: Webster rounds to the nearest",
			r: Request{Strategy: StaticWeight, Replicas: 5}, clusters: "a 170/0/*, b 110/0/*, c 60/0/*",
			want: "a 2, b 2, c 1 + 0",
		},
		{
			name: "static, one more", reason: "nobody loses one: the largest remainder, which others use, would take one from c",
			r: Request{Strategy: StaticWeight, Replicas: 6}, clusters: "a 170/0/*, b 110/0/*, c 60/0/*",
			want: "a 3, b 2, c 1 + 0",
		},
		{
			name: "static, tie", reason: "the first by name, for want of anything better",
			r: Request{Strategy: StaticWeight, Replicas: 1}, clusters: "b 1/0/*, a 1/0/*", want: "a 1, b 0 + 0",
		},
		{
			name: "static, equal averages", reason: "the second replica is due to both, and goes to the cluster that has none",
			r: Request{Strategy: StaticWeight, Replicas: 2}, clusters: "a 3/0/*, b 1/0/*", want: "a 1, b 1 + 0",
		},
		{
			name: "static, tie with one that holds it", reason: "a replica does not move for nothing",
			r: Request{Strategy: StaticWeight, Replicas: 1}, clusters: "a 1/0/*, b 1/1/*", want: "a 0, b 1 + 0",
		},
		{
			name:   "static, tie between one that holds its first and one that holds its second",
			reason: "who holds the very replica that is in question, not who holds any",
			r:      Request{Strategy: StaticWeight, Replicas: 3}, clusters: "a 1/1/*, b 1/2/*", want: "a 1, b 2 + 0",
		},
		{
			name: "static, moved", reason: "the weights are what was asked for, also when replicas have to move",
			r: Request{Strategy: StaticWeight, Replicas: 4}, clusters: "a 1/4/*, b 1/0/*", want: "a 2, b 2 + 0",
		},
		{
			name: "static, full", reason: "who is full drops out, and the others share the rest by their weights",
			r: Request{Strategy: StaticWeight, Replicas: 10}, clusters: "a 8/0/1, b 2/0/*, c 1/0/*", want: "a 1, b 6, c 3 + 0",
		},
		{
			name: "static, all full", reason: "what does not fit is told, not lost",
			r: Request{Strategy: StaticWeight, Replicas: 10}, clusters: "a 8/0/1, b 2/0/3", want: "a 1, b 3 + 6",
		},
		{
			name: "static, weight 0", reason: "it gets nothing, even if the others are full and it has some now",
			r: Request{Strategy: StaticWeight, Replicas: 5}, clusters: "a 0/2/*, b 1/2/3", want: "a 0, b 3 + 2",
		},
		{
			name: "static, all weights 0 and nothing to place", reason: "a workload can be switched off whatever its weights",
			r: Request{Strategy: StaticWeight}, clusters: "a 0/2/*, b 0/2/3", want: "a 0, b 0 + 0",
		},
		{
			name: "static, large weights", reason: "no product overflows",
			r:        Request{Strategy: StaticWeight, Replicas: math.MaxInt32},
			clusters: fmt.Sprintf("a %d/0/*, b %d/0/*", math.MaxInt64, math.MaxInt64),
			want:     "a 1073741824, b 1073741823 + 0",
		},
		{
			name: "dynamic", reason: "in proportion to the capacities; weights are for StaticWeight",
			r: Request{Strategy: DynamicWeight, Replicas: 9}, clusters: "a 7/0/20, b 0/0/10", want: "a 6, b 3 + 0",
		},
		{
			name: "dynamic, steady", reason: "what is there stays, however uneven",
			r: Request{Strategy: DynamicWeight, Replicas: 9}, clusters: "a 0/0/20, b 0/9/10", want: "a 0, b 9 + 0",
		},
		{
			name: "dynamic, fresh", reason: "the division as it would be if nothing were there",
			r: Request{Strategy: DynamicWeight, Replicas: 9, Fresh: true}, clusters: "a 0/0/20, b 0/9/10", want: "a 6, b 3 + 0",
		},
		{
			name: "dynamic, grows", reason: "the new ones go to where the division is farthest behind the capacities",
			r: Request{Strategy: DynamicWeight, Replicas: 12}, clusters: "a 0/0/20, b 0/9/10", want: "a 3, b 9 + 0",
		},
		{
			name: "dynamic, shrinks", reason: "in proportion to what is there, for which no capacity need be known",
			r: Request{Strategy: DynamicWeight, Replicas: 5}, clusters: "a 0/8/9, b 0/2/100", want: "a 4, b 1 + 0",
		},
		{
			name: "dynamic, a cluster is gone", reason: "what c had, 3 of 12, is placed anew, and the others keep theirs",
			r: Request{Strategy: DynamicWeight, Replicas: 12}, clusters: "a 0/5/10, b 0/4/10", want: "a 6, b 6 + 0",
		},
		{
			name:   "dynamic, gone and shrunk at once",
			reason: "those that are gone do not count when it is found out whether it shrinks",
			r:      Request{Strategy: DynamicWeight, Replicas: 8}, clusters: "a 0/3/*, b 0/2/*", want: "a 4, b 4 + 0",
		},
		{
			name: "dynamic, less capacity", reason: "what is beyond the capacity moves, and nothing else",
			r: Request{Strategy: DynamicWeight, Replicas: 9}, clusters: "a 0/6/4, b 0/3/10", want: "a 4, b 5 + 0",
		},
		{
			name: "dynamic, unbounded", reason: "a cluster without a known capacity counts as the roomiest",
			r: Request{Strategy: DynamicWeight, Replicas: 50}, clusters: "a 0/0/20, b 0/0/10, c 0/0/*",
			want: "a 20, b 10, c 20 + 0",
		},
		{
			name: "dynamic, nothing known", reason: "even shares, rather than none",
			r: Request{Strategy: DynamicWeight, Replicas: 5}, clusters: "a 0/0/*, b 0/0/*", want: "a 3, b 2 + 0",
		},
		{
			name: "dynamic, nothing fits but without a bound", reason: "an unbounded cluster weighs something among full ones",
			r: Request{Strategy: DynamicWeight, Replicas: 5}, clusters: "a 0/0/0, b 0/0/*", want: "a 0, b 5 + 0",
		},
		{
			name: "aggregated", reason: "one cluster is enough, and the roomiest is the one that keeps being so",
			r: Request{Strategy: Aggregated, Replicas: 9}, clusters: "a 0/0/9, b 0/0/20, c 0/0/10", want: "a 0, b 9, c 0 + 0",
		},
		{
			name: "aggregated, more than one", reason: "the roomiest is filled before the next is used",
			r: Request{Strategy: Aggregated, Replicas: 25}, clusters: "a 0/0/9, b 0/0/20, c 0/0/10", want: "a 0, b 20, c 5 + 0",
		},
		{
			name: "aggregated, grows", reason: "where it is used already, before a roomier one is taken into use",
			r: Request{Strategy: Aggregated, Replicas: 12}, clusters: "a 0/1/9, b 0/0/20, c 0/2/10", want: "a 2, b 0, c 10 + 0",
		},
		{
			name: "aggregated, shrinks", reason: "the clusters with least are emptied first",
			r: Request{Strategy: Aggregated, Replicas: 7}, clusters: "a 0/2/9, b 0/5/5, c 0/3/10", want: "a 0, b 5, c 2 + 0",
		},
		{
			name: "aggregated, fresh", reason: "scattered replicas are gathered when asked to",
			r: Request{Strategy: Aggregated, Replicas: 10, Fresh: true}, clusters: "a 0/2/9, b 0/5/5, c 0/3/10",
			want: "a 0, b 0, c 10 + 0",
		},
		{
			name: "aggregated, fresh, tie", reason: "of two that would do, the one that has more",
			r: Request{Strategy: Aggregated, Replicas: 5, Fresh: true}, clusters: "a 0/2/5, b 0/3/5", want: "a 0, b 5 + 0",
		},
		{
			name: "no clusters", reason: "nowhere to go is an answer, not a mistake",
			r: Request{Strategy: Aggregated, Replicas: 5}, want: " + 5",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.clusters != "" {
				test.r.Clusters = clusters(t, test.clusters)
			}
			result, err := Divide(test.r)
			require.NoError(t, err)
			if diff := cmp.Diff(test.want, shown(result)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.reason, diff)
			}
		})
	}
}

func TestDivideRefuses(t *testing.T) {
	for _, test := range []struct {
		name, reason string
		r            Request
		want         string
	}{
		{
			name: "no strategy", reason: "none is harmless enough to be the default",
			r: Request{Replicas: 1},
			want: `strategy: Unsupported value: "": supported values: "Duplicated", "StaticWeight", "DynamicWeight", ` +
				`"Aggregated"`,
		},
		{
			name: "negative replicas", reason: "there are none to take back",
			r:    Request{Strategy: Duplicated, Replicas: -1},
			want: "replicas: Invalid value: -1: must not be negative",
		},
		{
			name: "nameless", reason: "its share could not be told from another's",
			r:    Request{Strategy: Duplicated, Clusters: []Target{{Name: "a"}, {}}},
			want: "clusters[1].name: Required value: must not be empty",
		},
		{
			name: "negative weight", reason: "also where weights do not matter: it is a mistake of whoever made it",
			r:    Request{Strategy: Aggregated, Clusters: []Target{{Name: "a"}, {Name: "b"}, {Name: "c", Weight: -1}}},
			want: "clusters[2].weight: Invalid value: -1: must not be negative",
		},
		{
			name: "negative capacity", reason: "-1 is how others say Unbounded",
			r:    Request{Strategy: DynamicWeight, Clusters: []Target{{Name: "a", Capacity: -1}}},
			want: "clusters[0].capacity: Invalid value: -1: must not be negative; use Unbounded for no limit",
		},
		{
			name: "negative current", reason: "the sum of what is there would be wrong",
			r:    Request{Strategy: DynamicWeight, Clusters: []Target{{Name: "a", Current: -3}}},
			want: "clusters[0].current: Invalid value: -3: must not be negative",
		},
		{
			name: "twice the same", reason: "the later one is to blame, in whatever order the names are",
			r:    Request{Strategy: Duplicated, Clusters: []Target{{Name: "b"}, {Name: "a"}, {Name: "b"}}},
			want: `clusters[2].name: Duplicate value: "b"`,
		},
		{
			name: "twice the same, next to each other", reason: "names that are in order are not looked at twice",
			r:    Request{Strategy: Duplicated, Clusters: []Target{{Name: "a"}, {Name: "a"}, {Name: "b"}}},
			want: `clusters[1].name: Duplicate value: "a"`,
		},
		{
			name:   "no weight",
			reason: "a Result would switch the workload off, and equal shares would go to clusters that were to get nothing",
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
			require.True(t, ok, "the field can be looked up: %T", err)
		})
	}
}

func TestCapacityOf(t *testing.T) {
	for _, test := range []struct {
		reason              string
		current, more, want int32
	}{
		{"what is there counts", 3, 4, 7},
		{"no limit stays none", 3, Unbounded, Unbounded},
		{"nothing overflows", math.MaxInt32, math.MaxInt32, Unbounded},
		{"a full cluster keeps what it has", 3, 0, 3},
	} {
		if got := CapacityOf(test.current, test.more); got != test.want {
			t.Errorf("%s: CapacityOf(%d, %d) = %d, want %d", test.reason, test.current, test.more, got, test.want)
		}
	}
}

// TestDivideLeavesTheRequestAlone checks that Divide does not change the request, so that goroutines may share
// clusters.
func TestDivideLeavesTheRequestAlone(t *testing.T) {
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
