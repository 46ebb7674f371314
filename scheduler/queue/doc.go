// Package queue holds what waits for a scheduler's decision: which key is next, which one has to wait because it failed
// a moment ago, and which one need not be tried again until something happens that may change the answer.
//
// A [Queue] has three parts, after the scheduling queue of kube-scheduler. A key is in one of them at most:
//
//   - Active: ready to be decided on. [Queue.Pop] takes the highest priority first; of the same priority the one that
//     has waited longest since it was added or given back; of the same time the smaller key.
//   - Backoff: not yet ready, because an attempt failed. It becomes active by itself.
//   - Unschedulable: no cluster would take it. An event ([Queue.Event]) moves it on if a hint says that it may help,
//     and at the latest it becomes active after [Options.MaxUnschedulable].
//
// A key that was popped is in flight until [Queue.Done] returns it. No other caller gets it meanwhile:
//
//	for {
//		item, err := q.Pop(ctx)
//		if err != nil {
//			return err // shut down, or ctx is done
//		}
//		q.Done(item.Key, decide(cache.Snapshot(), item.Key))
//	}
//
// # What callers owe
//
//   - Every Pop is followed by one Done of that key, whatever happened.
//   - The snapshot to decide on is taken after Pop has returned, and an event is told after the snapshots have it. Then
//     no event is lost: a key in flight whose snapshot was too old for it is moved on in Done.
//   - Add says that the key itself is new or has changed, so it is tried at once, and what failed before does not
//     count. A controller whose own writes come back to it as Add would never back off: compare generations first.
//
// # Add and Remove in flight
//
// They act as if they came right after Done, whatever its outcome. A key that was added is active again then, with the
// new priority. One that was removed is forgotten then, and until then counts as in flight; if it is added
// once more before, it has to wait for that Done, so that no two work on one key.
//
// # Hints
//
// [Options.Hint] is asked in two steps: once an event and plugin whether the event matters to it, and only then
// once a key that the plugin rejected. So an event that matters to no plugin costs the same with no key as with
// 100,000, and what is to be found out about an event alone is found out once. The keys are kept by the plugins that
// rejected them. A key is moved on as soon as one of its plugins says yes.
//
// Hints run in the goroutine that calls Event or Done, and without a lock, so they may be slow, and use the Queue. A
// hint that panics has said yes. Events that come while keys are in flight are remembered once for all of them, 1024 at
// most. A key that was in flight for more than that is moved on without asking.
//
// # What it costs
//
// A Queue has no goroutine. It has one timer, which runs only while a caller waits in Pop and a key waits for its
// time; everything else happens in the calls. A Queue needs no stop: an unused one is garbage. Add, Pop and Done take
// O(log n), about a microsecond, and one allocation a key. To measure:
//
//	go test -run '^$' -bench . ./scheduler/queue
package queue
