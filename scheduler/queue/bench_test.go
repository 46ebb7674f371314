package queue

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"k8s.io/utils/clock"
)

const many = 100_000

// step is a clock that a benchmark advances.
type step struct {
	clock.RealClock
	now time.Duration
}

func (s *step) Since(time.Time) time.Duration { return s.now }

// BenchmarkCycle measures Pop, Done and Add of one key, with 100,000 active keys. The floor is the minimum of any
// implementation: to delete the key from a map and to insert it. Both are measured in the same run, and the ratio is
// reported.
func BenchmarkCycle(b *testing.B) {
	var names []string
	for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(many) {
		names = append(names, fmt.Sprintf("namespace/placement-%06d", i))
	}
	seen := map[string]struct{}{}
	q := New(Options[string, change]{})
	for _, name := range names {
		seen[name] = struct{}{}
		q.Add(name, 0)
	}
	began := time.Now()
	for i := range b.N {
		delete(seen, names[i%many])
		seen[names[i%many]] = struct{}{}
	}
	floor := time.Since(began)

	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		item, err := q.Pop(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		q.Done(item.Key, Scheduled())
		q.Add(item.Key, int32(i%2))
	}
	b.StopTimer()
	b.ReportMetric(float64(floor.Nanoseconds())/float64(b.N), "floor-ns/op")
	b.ReportMetric(float64(b.Elapsed())/float64(floor), "x-floor")
	if stats := q.Stats(); stats != (Stats{Active: many}) {
		b.Fatalf("%+v", stats)
	}
}

// BenchmarkRetry measures Pop and Done of a key that fails and returns after its backoff, among 100,000 keys. The clock
// of the benchmark advances the time.
func BenchmarkRetry(b *testing.B) {
	c := &step{}
	q := New(Options[int, change]{Clock: c, InitialBackoff: time.Second, MaxBackoff: time.Second})
	for key := range many {
		q.Add(key, int32(key%4))
	}
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		item, err := q.Pop(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		q.Done(item.Key, Failed())
		c.now += 2 * time.Second / many // half of the keys wait at any time
	}
}

// BenchmarkHandOver measures Add, Pop and Done with many calls that wait in Pop.
func BenchmarkHandOver(b *testing.B) {
	q := New(Options[int, change]{})
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for {
				item, err := q.Pop(context.Background())
				if err != nil {
					return
				}
				q.Done(item.Key, Scheduled())
			}
		})
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		q.Add(i, 0)
	}
	for q.Stats() != (Stats{}) {
		runtime.Gosched()
	}
	b.StopTimer()
	q.ShutDown()
	wg.Wait()
}

// BenchmarkEvent measures one event with 100,000 unschedulable keys. The event does not matter to the plugin that
// rejected them, or helps none of them, or helps all. The floor is a function call for each key of a slice.
func BenchmarkEvent(b *testing.B) {
	for _, bench := range []struct {
		name string
		hint func(int) bool
	}{
		{"matters to none", nil},
		{"helps none", func(key int) bool { return key < 0 }},
		{"helps all", func(key int) bool { return key >= 0 }},
	} {
		b.Run(bench.name, func(b *testing.B) {
			c := &step{}
			q := New(Options[int, change]{
				Clock: c, MaxUnschedulable: never,
				Hint: func(string, change) func(int) bool { return bench.hint },
			})
			var keys []int
			for key := range many {
				keys = append(keys, key)
				q.Add(key, 0)
			}
			evaluate := bench.hint
			if evaluate == nil {
				evaluate = func(int) bool { return false }
			}
			var floor time.Duration
			yes := 0
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				b.StopTimer()
				for q.Stats().Active > 0 {
					item, err := q.Pop(b.Context())
					if err != nil {
						b.Fatal(err)
					}
					q.Done(item.Key, Unschedulable("A"))
				}
				c.now += time.Minute
				began := time.Now()
				for _, key := range keys {
					if evaluate(key) {
						yes++
					}
				}
				floor += time.Since(began)
				b.StartTimer()
				q.Event(change{})
			}
			b.StopTimer()
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/many, "ns/key")
			b.ReportMetric(float64(floor.Nanoseconds())/float64(b.N)/many, "floor-ns/key")
			if got := q.Stats().Active * b.N; got != yes {
				b.Fatalf("%d keys are active, want %d", got, yes)
			}
		})
	}
}

// BenchmarkMemory measures the memory of an unschedulable key, in addition to the memory that the key itself
// references.
func BenchmarkMemory(b *testing.B) {
	for range b.N {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		q := New(Options[int, change]{})
		for key := range many {
			q.Add(key, 0)
			item, err := q.Pop(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			q.Done(item.Key, Unschedulable("A", "B"))
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/many, "B/key")
		runtime.KeepAlive(q)
	}
}
