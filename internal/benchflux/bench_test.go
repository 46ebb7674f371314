package benchflux_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	// count is how many ConfigMaps are applied.
	count = 1000
	// drifted is how many of them are edited.
	drifted = count / 100
	// fewest is the least number of rounds that a median says something of.
	fewest = 5
)

func BenchmarkApply(b *testing.B) {
	s := newStage(b)
	all := []string{"floor", "watched", "cold", "flux"}

	b.Run("fresh", func(b *testing.B) {
		names := append(slices.Clone(all), "marked")
		s.compare(b, names, func(_ int, name string) *turn { return s.enter(b, name) })
	})

	b.Run("unchanged", func(b *testing.B) {
		observed := s.settle(b, all)
		s.compare(b, all, func(_ int, name string) *turn { return observed[name] })
	})

	b.Run("drift", func(b *testing.B) {
		names := append(slices.Clone(all), "exact")
		observed := s.settle(b, names)
		s.compare(b, names, func(round int, name string) *turn {
			s.edit(b, observed[name], round)
			return observed[name]
		})
	})
}

// A way brings the ConfigMaps of one namespace to what is wanted of them.
type way interface {
	// apply does so. Edited are the indexes of those that are known to differ, which only the way that is told may use.
	apply(ctx context.Context, edited []int) error
}

// turn is a way in its namespace.
type turn struct {
	way       way
	namespace string
	requests  *requests
	edited    []int
}

// cost of one turn.
type cost struct{ milliseconds, requests float64 } // for each object

// compare has ways take turns and reports what they cost. Next gets a turn ready.
func (s *stage) compare(b *testing.B, names []string, next func(round int, name string) *turn) {
	costs := map[string][]cost{}
	for round := range max(b.N, fewest) {
		// What one leaves the control plane to do is not to be always on the time of the same other.
		order := rand.New(rand.NewPCG(uint64(round), 0)).Perm(len(names))
		for _, i := range order {
			costs[names[i]] = append(costs[names[i]], s.take(b, next(round, names[i])))
		}
	}
	b.ReportMetric(0, "ns/op") // of all ways together, which says nothing
	for _, name := range names {
		b.ReportMetric(median(costs[name], func(i int) float64 { return costs[name][i].milliseconds }), name+"-ms/object")
		b.ReportMetric(median(costs[name], func(i int) float64 { return costs[name][i].requests }), name+"-requests/object")
	}
	for _, ratio := range [][2]string{
		{"watched", "floor"}, {"cold", "floor"}, {"flux", "watched"}, {"flux", "cold"}, // the aims
		{"marked", "floor"}, {"watched", "marked"}, {"cold", "marked"}, {"watched", "exact"}, // what they are made of
	} {
		over, under := costs[ratio[0]], costs[ratio[1]]
		if len(over) > 0 && len(under) > 0 {
			b.ReportMetric(median(over, func(i int) float64 { return over[i].milliseconds / under[i].milliseconds }),
				ratio[0]+"/"+ratio[1])
		}
	}
}

// take measures one turn, and checks what came of it.
func (s *stage) take(b *testing.B, t *turn) cost {
	b.Helper()
	runtime.GC() // what one way leaves behind is not to be cleared away on the time of the next
	t.requests.take()
	start := time.Now()
	err := t.way.apply(b.Context(), t.edited)
	took, requests := time.Since(start), t.requests.take()
	require.NoError(b, err)
	s.check(b, t.namespace)
	return cost{milliseconds: float64(took.Microseconds()) / 1000 / count, requests: float64(requests) / count}
}

// median of a figure of each round.
func median(rounds []cost, figure func(round int) float64) float64 {
	figures := make([]float64, len(rounds))
	for i := range rounds {
		figures[i] = figure(i)
	}
	slices.Sort(figures)
	middle := len(figures) / 2
	if len(figures)%2 == 1 {
		return figures[middle]
	}
	return (figures[middle-1] + figures[middle]) / 2
}

// name and value of the ConfigMaps.
func nameOf(i int) string  { return fmt.Sprintf("config-%04d", i) }
func valueOf(i int) string { return fmt.Sprintf("https://shop-%04d.example.com/", i) }
