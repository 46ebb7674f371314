package placement_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/placement"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// TestBalance checks that placements spread evenly over clusters of equal score, also if many are decided concurrently
// and after a restart. No placement moves because others are created.
func TestBalance(t *testing.T) { testkit.Virtual(t, testBalance) }

func testBalance(t *testing.T) {
	h, s := newHub(t), newSource(many(10, "eu")...)
	create := func(batch string) {
		for i := range 100 {
			h.create(fmt.Sprintf("%s-%02d", batch, i), pick(1))
		}
	}
	on := func() map[string]int {
		counts := map[string]int{}
		for _, slice := range h.slices() {
			for _, d := range slice.Decisions {
				counts[d.ClusterName]++
			}
		}
		return counts
	}
	even := func(n int) map[string]int {
		counts := map[string]int{}
		for i := range 10 {
			counts[fmt.Sprintf("eu-%03d", i)] = n
		}
		return counts
	}
	create("first")
	first := h.start(placement.Options{Clusters: s, Decider: slowDecider{newCounting(t)}})
	h.Holds("all placements are decided", func() bool { return len(h.slices()) == 100 })
	if diff := cmp.Diff(even(10), on()); diff != "" {
		t.Fatalf("concurrent decisions (-want +got):\n%s", diff)
	}
	first.stop()
	before := versions(h.slices())
	create("second")
	decider := newCounting(t)
	h.start(placement.Options{Clusters: s, Decider: decider})
	h.Holds("all placements are decided", func() bool { return len(h.slices()) == 200 })
	if diff := cmp.Diff(even(20), on()); diff != "" {
		t.Fatalf("after a restart (-want +got):\n%s", diff)
	}
	quiet(t, func() int64 { return int64(decider.total()) })
	after := versions(h.slices())
	for name, version := range before {
		require.Equal(t, version, after[name], "an existing placement has moved")
	}
	for name, n := range decider.takeCounts() {
		if name < "second" {
			require.Equal(t, 1, n, "%s is decided once", name)
		}
	}

	diagnosis, err := placement.Explain(t.Context(), h.Client, placement.Options{Clusters: s},
		&v1alpha1.Placement{Spec: v1alpha1.PlacementSpec{Policy: pick(1)}})
	require.NoError(t, err)
	require.NotZero(t, diagnosis.Clusters[0].Score, "a dry run must use the counts")
}

// slowDecider delays each decision, so that concurrent decisions use the same counts.
type slowDecider struct{ placement.Decider }

func (s slowDecider) Schedule(ctx context.Context, snapshot *scheduler.Snapshot,
	request *scheduler.Request) (scheduler.Result, error) {
	result, err := s.Decider.Schedule(ctx, snapshot, request)
	<-time.After(5 * time.Millisecond)
	return result, err
}

// TestCountingSource checks that the counts of a CountingSource are used.
func TestCountingSource(t *testing.T) { testkit.Virtual(t, testCountingSource) }

func testCountingSource(t *testing.T) {
	h, s := newHub(t), newSource(cluster("a", "eu", func(c *scheduler.Cluster) { c.Placements = 50 }), cluster("b", "eu"))
	h.start(placement.Options{Clusters: countingSource{s}})
	for i := range 5 {
		h.create(fmt.Sprintf("p-%d", i), pick(1))
	}
	h.Holds("all placements are decided", func() bool { return len(h.slices()) == 5 })
	for _, slice := range h.slices() {
		require.Equal(t, "b", slice.Decisions[0].ClusterName)
	}
}

type countingSource struct{ *source }

func (countingSource) CountsPlacements() bool { return true }
