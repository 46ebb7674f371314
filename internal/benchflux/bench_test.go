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
	// count is the number of ConfigMaps that a run applies.
	count = 1000
	// drifted is the number of ConfigMaps that the case drift edits in each round.
	drifted = count / 100
	// minRounds is the smallest number of rounds with a meaningful median.
	minRounds = 5
)

func BenchmarkApply(b *testing.B) {
	s := newStage(b)
	all := []string{"floor", "watched", "cold", "flux"}

	b.Run("fresh", func(b *testing.B) {
		names := append(slices.Clone(all), "marked")
		s.compare(b, names, func(_ int, name string) *run { return s.newRun(b, name) })
	})

	b.Run("unchanged", func(b *testing.B) {
		observed := s.applyAll(b, all)
		s.compare(b, all, func(_ int, name string) *run { return observed[name] })
	})

	b.Run("drift", func(b *testing.B) {
		names := append(slices.Clone(all), "exact")
		observed := s.applyAll(b, names)
		s.compare(b, names, func(round int, name string) *run {
			s.edit(b, observed[name], round)
			return observed[name]
		})
	})
}

// candidate applies the desired ConfigMaps to one namespace.
type candidate interface {
	// apply applies the ConfigMaps. edited has the indexes of the ConfigMaps that differ; only exact uses the indexes.
	apply(ctx context.Context, edited []int) error
}

// run is a candidate and its namespace.
type run struct {
	candidate candidate
	namespace string
	requests  *requests
	edited    []int
}

// cost is the cost of one run, for each object.
type cost struct{ milliseconds, requests float64 }

// compare measures candidates in turn and reports their costs. next prepares a run.
func (s *stage) compare(b *testing.B, names []string, next func(round int, name string) *run) {
	costs := map[string][]cost{}
	for round := range max(b.N, minRounds) {
		// The work that one candidate leaves to the control plane must not always affect the same other candidate.
		order := rand.New(rand.NewPCG(uint64(round), 0)).Perm(len(names))
		for _, i := range order {
			costs[names[i]] = append(costs[names[i]], s.measure(b, next(round, names[i])))
		}
	}
	b.ReportMetric(0, "ns/op") // The time of all candidates together has no meaning.
	for _, name := range names {
		b.ReportMetric(median(costs[name], func(i int) float64 { return costs[name][i].milliseconds }), name+"-ms/object")
		b.ReportMetric(median(costs[name], func(i int) float64 { return costs[name][i].requests }), name+"-requests/object")
	}
	for _, ratio := range [][2]string{
		{"watched", "floor"}, {"cold", "floor"}, {"flux", "watched"}, {"flux", "cold"}, // the goals
		{"marked", "floor"}, {"watched", "marked"}, {"cold", "marked"}, {"watched", "exact"}, // the parts of the goals
	} {
		over, under := costs[ratio[0]], costs[ratio[1]]
		if len(over) > 0 && len(under) > 0 {
			b.ReportMetric(median(over, func(i int) float64 { return over[i].milliseconds / under[i].milliseconds }),
				ratio[0]+"/"+ratio[1])
		}
	}
}

// measure measures one run, and checks its result.
func (s *stage) measure(b *testing.B, t *run) cost {
	b.Helper()
	runtime.GC() // The garbage of one candidate must not be collected in the time of the next.
	t.requests.reset()
	start := time.Now()
	err := t.candidate.apply(b.Context(), t.edited)
	took, requests := time.Since(start), t.requests.reset()
	require.NoError(b, err)
	s.check(b, t.namespace)
	return cost{milliseconds: float64(took.Microseconds()) / 1000 / count, requests: float64(requests) / count}
}

// median returns the median of a figure of each round.
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

// nameOf and valueOf return the name and the value of a ConfigMap.
func nameOf(i int) string  { return fmt.Sprintf("config-%04d", i) }
func valueOf(i int) string { return fmt.Sprintf("https://shop-%04d.example.com/", i) }
