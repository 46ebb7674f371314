package queue

import (
	"cmp"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"
)

// TestQueueAgreesWithNaive runs the same operations on Queue and on naive, with many keys in flight at a time. After
// each step, every key must be in the same state, and the same key must be popped.
func TestQueueAgreesWithNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		clock := clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
		options := Options[string, change]{Hint: hint, Clock: clock}
		if rapid.Bool().Draw(t, "short maximum") {
			options.MaxUnschedulable = 3 * time.Second // less than the longest backoff
		}
		q := New(options)
		q.log.limit = rapid.IntRange(1, 6).Draw(t, "limit")
		n := newNaive(options, q.log.limit)

		keys := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f", "g", "h"})
		priorities := rapid.SampledFrom([]int32{-1, 0, 0, 0, 1})
		plugins := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"A", "B", "C"}), 0, 3, rapid.ID)
		events := rapid.Custom(func(t *rapid.T) change {
			return change{
				rapid.SampledFrom([]string{"", "A", "A", "B", "BC", "ABC", "!"}).Draw(t, "plugins"),
				rapid.SampledFrom([]string{"", "a", "ab", "cde", "fgh", "abcdefgh", "!"}).Draw(t, "keys"),
			}
		})
		steps := rapid.SampledFrom([]time.Duration{1, time.Second - 1, time.Second, 3 * time.Second, 10 * time.Second,
			5 * time.Minute})

		pop := func(t *rapid.T) bool {
			want, ok := n.pop()
			if !ok {
				return false
			}
			got, err := q.Pop(t.Context())
			if diff := gocmp.Diff(want, got); diff != "" || err != nil {
				t.Fatalf("Pop: %v (-want +got):\n%s", err, diff)
			}
			return true
		}
		done := func(t *rapid.T, key string) {
			resultKind := rapid.SampledFrom([]resultKind{scheduled, failed, rejected, rejected, rejected}).Draw(t, "kind")
			by := plugins.Draw(t, "plugins")
			n.done(key, resultKind, by)
			switch resultKind {
			case scheduled:
				q.Done(key, Scheduled())
			case failed:
				q.Done(key, Failed())
			case rejected:
				q.Done(key, Unschedulable(by...))
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				key, priority := keys.Draw(t, "key"), priorities.Draw(t, "priority")
				n.add(key, priority)
				q.Add(key, priority)
			},
			"remove": func(t *rapid.T) {
				key := keys.Draw(t, "key")
				n.remove(key)
				q.Remove(key)
			},
			"pop": func(t *rapid.T) { pop(t) },
			"pop all": func(t *rapid.T) {
				for pop(t) {
				}
			},
			"done": func(t *rapid.T) { done(t, keys.Draw(t, "key")) },
			"done all": func(t *rapid.T) {
				for _, key := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
					done(t, key)
				}
			},
			"event": func(t *rapid.T) {
				event := events.Draw(t, "event")
				n.event(event)
				q.Event(event)
			},
			"advance": func(t *rapid.T) {
				d := steps.Draw(t, "by")
				n.advance(d)
				clock.Step(d)
			},
			"": func(t *rapid.T) {
				if diff := gocmp.Diff(n.stats(), q.Stats()); diff != "" {
					t.Fatalf("stats (-want +got):\n%s", diff)
				}
				for key, k := range n.keys {
					if e := q.entries[key]; e.state != k.state || e.priority != k.priority || int(e.failures) != k.failures {
						t.Fatalf("%s: want %+v, got %+v", key, k, e)
					}
				}
				checkInside(t, q)
			},
		})
	})
}

// TestHeap_RemoveAnyPosition removes entries from any position of a heap that is deep enough for a moved entry to move
// up.
func TestHeap_RemoveAnyPosition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h heap[int]
		var entries []*entry[int]
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				for _, major := range rapid.SliceOfN(rapid.Int64Range(0, 50), 1, 30).Draw(t, "majors") {
					e := &entry[int]{key: len(entries)}
					h.push(e, major, rapid.Int64Range(0, 2).Draw(t, "minor"))
					entries = append(entries, e)
				}
			},
			"remove": func(t *rapid.T) {
				if len(entries) > 0 {
					i := rapid.IntRange(0, len(entries)-1).Draw(t, "which")
					h.remove(entries[i])
					entries = slices.Delete(entries, i, i+1)
				}
			},
			"": func(t *rapid.T) {
				if len(h) != len(entries) {
					t.Fatalf("got %d entries, want %d", len(h), len(entries))
				}
				checkHeap(t, h)
			},
		})
	})
}

func checkHeap[K cmp.Ordered](t *rapid.T, h heap[K]) {
	for i := range h {
		if int(h[i].index) != i || i > 0 && h[i].before(&h[(i-1)/children]) {
			t.Fatalf("heap: %v has the wrong position", h[i].key)
		}
	}
}

// checkInside checks the consistency of redundant state in a Queue.
func checkInside(t *rapid.T, q *Queue[string, change]) {
	checkHeap(t, q.active)
	checkHeap(t, q.waiting)
	places := 0
	for plugin, l := range q.parked.lists {
		if !slices.IsSortedFunc(l.places, func(a, b place[string]) int { return cmp.Compare(a.ticket, b.ticket) }) {
			t.Fatalf("plugin %s: the places are not in the order of their tickets", plugin)
		}
		full := 0
		for _, p := range l.places {
			if p.entry != nil && (p.entry.ticket != p.ticket || !slices.Contains(p.rejectedBy, plugin)) {
				t.Fatalf("plugin %s: unexpected key %s", plugin, p.key)
			}
			if p.entry != nil {
				full++
			}
		}
		if full == 0 || len(l.places)-full != l.empty {
			t.Fatalf("plugin %s: %d places, %d empty, %d full", plugin, len(l.places), l.empty, full)
		}
		places += full
	}
	waiting := 0 // the keys that wait for events
	for _, e := range q.entries {
		places -= len(e.rejectedBy)
		if e.state == inFlight && !e.pending.decided() {
			waiting++
		}
	}
	if places != 0 {
		t.Fatalf("%d places without an entry", places)
	}
	if len(q.log.events) > q.log.limit || len(q.log.events) > 0 && (waiting == 0 || q.log.events[0].flights == 0) {
		t.Fatalf("%d events are stored for %d keys", len(q.log.events), waiting)
	}
}
