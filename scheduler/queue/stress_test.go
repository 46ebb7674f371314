package queue

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestEvent_NoneIsLost makes each key schedulable by exactly one event. Many events occur concurrently while workers
// decide on snapshots that may be too old for them. If an event were lost, its key would never be scheduled.
func TestEvent_NoneIsLost(t *testing.T) {
	const keys, writers, workers = 400, 4, 4
	q := New(Options[int, int64]{
		Hint: func(plugin string, version int64) func(int) bool {
			if plugin != "version" {
				return nil
			}
			return func(key int) bool { return needs(key, keys) == version }
		},
		InitialBackoff: time.Millisecond, MaxBackoff: time.Millisecond, MaxUnschedulable: time.Hour,
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	var fleetVersion, left atomic.Int64
	left.Store(keys)
	var busy [keys]atomic.Int32
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for {
				item, err := q.Pop(ctx)
				if err != nil {
					if !errors.Is(err, ErrShutDown) {
						t.Errorf("Pop: %v, with %+v", err, q.Stats())
					}
					return
				}
				if busy[item.Key].Add(1) != 1 {
					t.Errorf("two workers have key %d", item.Key)
				}
				version := fleetVersion.Load()
				outcome := Unschedulable("other", "version")
				switch {
				case version >= needs(item.Key, keys):
					outcome = Scheduled()
				case rand.IntN(8) == 0:
					outcome = Failed()
				case rand.IntN(8) == 0:
					q.Add(item.Key, rand.Int32N(3))
				}
				busy[item.Key].Add(-1)
				q.Done(item.Key, outcome)
				if outcome.resultKind == scheduled && left.Add(-1) == 0 {
					q.ShutDown()
				}
			}
		})
	}
	for writer := range writers {
		wg.Go(func() {
			for key := writer; key < keys; key += writers {
				q.Add(key, 0)
			}
			for range keys / writers {
				q.Event(fleetVersion.Add(1))
				q.Stats()
			}
		})
	}
	wg.Wait()
}

// needs returns the version from which a key is schedulable. The versions are unique and unordered.
func needs(key, keys int) int64 { return int64(key*7%keys) + 1 }

// TestQueue_EveryWaiterIsServed checks under concurrency that no call waits in Pop while a key is active, and that the
// timer is set.
func TestQueue_EveryWaiterIsServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Options[int, change]{})
		var wg sync.WaitGroup
		for worker := range 8 {
			wg.Go(func() {
				random := rand.New(rand.NewPCG(1, uint64(worker)))
				for {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(int(3*time.Second))))
					item, err := q.Pop(ctx)
					cancel()
					switch {
					case errors.Is(err, ErrShutDown):
						return
					case err == nil:
						q.Done(item.Key, []Outcome{Scheduled(), Failed(), Unschedulable("A")}[random.IntN(3)])
					}
				}
			})
		}
		random := rand.New(rand.NewPCG(2, 2))
		for range 3000 {
			for range random.IntN(3) {
				switch key := random.IntN(20); random.IntN(4) {
				case 0:
					q.Event(change{})
				case 1:
					q.Remove(key)
				default:
					q.Add(key, int32(random.IntN(3)))
				}
			}
			pass(time.Duration(random.IntN(int(time.Second))))
			q.mu.Lock()
			if len(q.waiters) > 0 {
				require.Empty(t, q.active)
				if len(q.waiting) > 0 {
					require.Equal(t, time.Duration(q.waiting[0].major), q.timing.alarm)
				}
			}
			q.mu.Unlock()
		}
		q.ShutDown()
		wg.Wait()
		require.Zero(t, q.Stats().InFlight)
	})
}
