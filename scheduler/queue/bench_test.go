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

// step is a clock that a benchmark moves by hand.
type step struct {
	clock.RealClock
	now time.Duration
}

func (s *step) Since(time.Time) time.Duration { return s.now }

// BenchmarkCycle is Pop, Done and Add of one key, with 100,000 active. Its floor is what any solution has to do at
// least: to take the key out of a map, and to put it in. Both run in the same go, and the ratio is reported.
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

// BenchmarkRetry is Pop and Done of a key that fails, waits for its backoff and comes back, among 100,000. Its time is
// made to pass by the clock of the benchmark.
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

// BenchmarkHandOver is Add, Pop and Done with many who wait in Pop.
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

// BenchmarkEvent is one event over 100,000 unschedulable keys: one that does not matter to the plugin that rejected
// them, one that helps none of them, and one that helps all. Its floor is to ask about each key of a slice.
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
			asked := bench.hint
			if asked == nil {
				asked = func(int) bool { return false }
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
					if asked(key) {
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
				b.Fatalf("%d are active, want %d", got, yes)
			}
		})
	}
}

// BenchmarkMemory is what a key takes that waits as unschedulable, besides what it holds itself.
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
