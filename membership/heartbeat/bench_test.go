package heartbeat

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"
)

const fleet = 100_000

// fleetNames returns names, and equal names at other addresses in an order that causes cache misses.
func fleetNames() (names, shuffled []string) {
	for i := range fleet {
		names = append(names, fmt.Sprintf("member-cluster-%06d", i))
	}
	for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(fleet) {
		shuffled = append(shuffled, strings.Clone(names[i]))
	}
	return names, shuffled
}

func fleetOf(names []string) *Monitor {
	m := NewMonitor(Policy{})
	for _, name := range names {
		m.Track(name, time.Minute, epoch)
		m.Observe(name, epoch, epoch)
	}
	return m
}

// BenchmarkHeartbeat measures one heartbeat of 100,000 members that send one a minute, including its share of the
// deadlines that expire meanwhile. Its floor is the minimum work of any solution: to store the time of the last
// heartbeat of each member in a map. Both run in the same benchmark, which reports the ratio.
func BenchmarkHeartbeat(b *testing.B) {
	names, shuffled := fleetNames()
	seen := map[string]time.Time{}
	for _, name := range names {
		seen[name] = epoch
	}
	m := fleetOf(names)

	now := epoch
	began := time.Now()
	for i := range b.N {
		now = now.Add(time.Minute / fleet)
		seen[shuffled[i%fleet]] = now
	}
	floor := time.Since(began)

	b.ReportAllocs()
	b.ResetTimer()
	now = epoch
	for i := range b.N {
		now = now.Add(time.Minute / fleet)
		m.Observe(shuffled[i%fleet], now, now)
		if next, _ := m.Next(); !next.After(now) {
			m.Expire(now)
		}
	}
	b.StopTimer()
	b.ReportMetric(float64(floor.Nanoseconds())/float64(b.N), "floor-ns/op")
	b.ReportMetric(float64(b.Elapsed())/float64(floor), "x-floor")
	if stats := m.Stats(); stats.Lost > 0 {
		b.Fatalf("%+v", stats)
	}
}

// BenchmarkMemory measures the memory of a member, without its name, which the caller stores anyway. Its floor is the
// same map.
func BenchmarkMemory(b *testing.B) {
	names, _ := fleetNames()
	for range b.N {
		floor, seen := allocated(func() any {
			seen := map[string]time.Time{}
			for _, name := range names {
				seen[name] = epoch
			}
			return seen
		})
		took, m := allocated(func() any { return fleetOf(names) })
		b.ReportMetric(float64(took)/fleet, "B/member")
		b.ReportMetric(float64(floor)/fleet, "floor-B/member")
		runtime.KeepAlive(seen)
		runtime.KeepAlive(m)
	}
}

func allocated(build func() any) (bytes uint64, built any) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	built = build()
	runtime.GC()
	runtime.ReadMemStats(&after)
	return after.HeapAlloc - before.HeapAlloc, built
}

// BenchmarkOutage measures the worst case: all 100,000 members are late, and then lost, at the same time. Its floor is
// a scan of the same map for the overdue members.
func BenchmarkOutage(b *testing.B) {
	names, _ := fleetNames()
	seen := map[string]time.Time{}
	for _, name := range names {
		seen[name] = epoch
	}
	overdue := epoch.Add(grace)
	var floor time.Duration
	for range b.N {
		b.StopTimer()
		m := fleetOf(names)
		began := time.Now()
		lost := 0
		for _, at := range seen {
			if overdue.Sub(at) >= grace {
				lost++
			}
		}
		floor += time.Since(began)
		b.StartTimer()
		if got := len(m.Expire(overdue)); got != lost {
			b.Fatalf("%d are lost, want %d", got, lost)
		}
	}
	b.ReportMetric(float64(floor.Nanoseconds())/float64(b.N), "floor-ns/op")
	b.ReportMetric(float64(b.Elapsed())/float64(floor), "x-floor")
}
