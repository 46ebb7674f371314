package placement

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
	"github.com/muster-sdk/muster/scheduler/plugins"
)

// TestPlacementCounts checks that every cluster of the fleet has the number of placements on it, after any sequence of
// changes of clusters and placements.
func TestPlacementCounts(t *testing.T) {
	clusters, placements := []string{"a", "b", "c", "d"}, []string{"p", "q", "r"}
	rapid.Check(t, func(t *rapid.T) {
		c := newCountedFleet(nil)
		on := map[string][]string{}
		existing := map[string]bool{}
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			cluster, k := rapid.SampledFrom(clusters).Draw(t, "cluster"), rapid.SampledFrom(placements).Draw(t, "placement")
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				c.set(&scheduler.Cluster{Name: cluster, Placements: 77})
				existing[cluster] = true
			case 1:
				c.remove(cluster)
				delete(existing, cluster)
			case 2:
				c.place(k, nil)
				delete(on, k)
			default:
				to := rapid.SliceOfDistinct(rapid.SampledFrom(clusters), rapid.ID).Draw(t, "to")
				decided := c.fleet.Snapshot()
				c.claim(k, to, decided)
				on[k] = to
			}
			counts := map[string]int{}
			for _, names := range on {
				for _, name := range names {
					counts[name]++
				}
			}
			if !maps.Equal(counts, c.counts) {
				t.Fatalf("got %v, want %v", c.counts, counts)
			}
			snapshot := c.fleet.Snapshot()
			if snapshot.Len() != len(existing) {
				t.Fatalf("%d clusters in the fleet, want %d", snapshot.Len(), len(existing))
			}
			for slot := range snapshot.All().All() {
				if cluster := snapshot.Cluster(slot); cluster.Placements != counts[cluster.Name] {
					t.Fatalf("%s has %d, want %d", cluster.Name, cluster.Placements, counts[cluster.Name])
				}
			}
		}
	})
}

func TestClaim(t *testing.T) {
	c := newCountedFleet(nil)
	for _, name := range []string{"a", "b"} {
		c.set(&scheduler.Cluster{Name: name})
	}
	decided := c.fleet.Snapshot()
	require.True(t, c.claim("p", []string{"a"}, decided))
	require.False(t, c.claim("q", []string{"a"}, decided), "the count of a has changed since the decision")
	require.Equal(t, map[string]int{"a": 1}, c.counts, "a failed claim must not change the counts")
	require.True(t, c.claim("q", []string{"b"}, decided), "the count of b has not changed")
	require.True(t, c.claim("p", []string{"a"}, decided), "the placement is on a already")
	require.True(t, c.claim("r", []string{"b"}, nil), "a claim without a snapshot")
	require.Equal(t, map[string]int{"a": 1, "b": 2}, c.counts)

	input := &scheduler.Cluster{Name: "a", Placements: 7}
	event := c.set(input)
	require.Equal(t, 7, input.Placements, "set must not change its argument")
	require.Equal(t, event.Old.Placements, event.New.Placements)

	sourceFleet := newCountedFleet(sourceFunc(nil))
	sourceFleet.set(input)
	require.True(t, sourceFleet.claim("p", []string{"a"}, nil))
	require.Equal(t, 7, sourceFleet.fleet.Snapshot().Cluster(0).Placements, "the number of a CountingSource is kept")
}

// BenchmarkPlacementCounts measures the counting of 1,000 placements over 1,000 clusters. In each round a cluster
// changes and a placement on 10 clusters is decided; with moves it moves from one cluster to another. The floor is the
// same without counting, where a decision is updated from the previous one.
//
//	go test -run '^$' -bench PlacementCounts ./placement
func BenchmarkPlacementCounts(b *testing.B) {
	decider, err := scheduler.New(scheduler.Options{Registry: plugins.Registry(),
		Profiles: []scheduler.Profile{plugins.DefaultProfile()}})
	require.NoError(b, err)
	policy, err := scheduler.NewPolicy(&v1alpha1.PlacementPolicy{Type: v1alpha1.PickN, NumberOfClusters: new(int32(10))})
	require.NoError(b, err)
	for _, moves := range []int{0, 1} {
		for _, test := range []struct {
			name   string
			source ClusterSource
		}{{"floor", sourceFunc(nil)}, {"counting", nil}} {
			b.Run(fmt.Sprintf("moves=%d/%s", moves, test.name), func(b *testing.B) {
				c := newCountedFleet(test.source)
				var names []string
				for i := range 1000 {
					names = append(names, fmt.Sprintf("c-%04d", i))
					c.set(&scheduler.Cluster{Name: names[i], Joined: true, Healthy: true})
				}
				requests, previous := make([]scheduler.Request, 1000), make([]scheduler.Result, 1000)
				for i := range requests {
					requests[i] = scheduler.Request{Name: fmt.Sprintf("ns/p-%04d", i), Policy: policy, Bound: names[i%990 : i%990+10]}
					c.place(requests[i].Name, requests[i].Bound)
				}
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					n := i % 10 // few placements, so that a decision is not far behind
					c.set(&scheduler.Cluster{Name: names[500+i%10], Joined: true, Healthy: true})
					requests[n].Previous = &previous[n]
					if i < 10 {
						requests[n].Previous = nil
					}
					previous[n], err = decider.Schedule(b.Context(), c.fleet.Snapshot(), &requests[n])
					if err != nil {
						b.Fatal(err)
					}
					to := requests[n].Bound
					if moves > 0 {
						to = append(slices.Clone(to[1:]), names[600+i%100])
					}
					c.claim(requests[n].Name, to, nil)
				}
			})
		}
	}
}
