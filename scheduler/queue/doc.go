// Package queue contains the keys that wait for a decision of the scheduler. It orders the keys by priority, delays
// keys after failures, and retries a rejected key after an event that may change the result.
//
// A [Queue] has three parts, after the scheduling queue of kube-scheduler. A key is in at most one of them:
//
//   - Active: ready for a decision. [Queue.Pop] returns the key with the highest priority. Among keys of the same
//     priority, it returns the key that was added, or returned by Done, first; if the times are equal, the smaller key.
//   - Backoff: not ready yet, because an attempt failed. The key becomes active after its backoff.
//   - Unschedulable: no cluster is feasible. An event ([Queue.Event]) moves the key to Active or Backoff if a hint
//     reports that the event may help. After [Options.MaxUnschedulable] the key becomes active without an event.
//
// A key that was popped is in flight until [Queue.Done] is called for it. Pop does not return it again meanwhile:
//
//	for {
//		item, err := q.Pop(ctx)
//		if err != nil {
//			return err // shut down, or ctx is done
//		}
//		q.Done(item.Key, decide(cache.Snapshot(), item.Key))
//	}
//
// # Rules for callers
//
//   - Call Done exactly once for each key that Pop returned, even after an error.
//   - Take the snapshot for a decision after Pop has returned, and call Event after the new snapshots contain the
//     event. Then no event is lost: if the snapshot of a key in flight was older than an event that may help, Done
//     retries the key.
//   - Add means that the key is new or has changed: the key becomes active immediately, and its failures are reset. If
//     a controller called Add for its own writes, its keys would never back off. It should compare generations first.
//
// # Add and Remove in flight
//
// If Add or Remove is called for a key in flight, the call takes effect after Done, independently of the outcome. An
// added key then becomes active with the new priority. A removed key is deleted then, and counts as in flight until
// then. If it is added again before Done, it still waits for Done, so that two workers never process the same key.
//
// # Hints
//
// [Options.Hint] has two steps. It is called once per event and plugin, to decide whether the event matters to the
// plugin. Its result is then called once per key that the plugin rejected. An event that matters to no plugin therefore
// has the same cost with 0 or 100,000 keys, and facts about the event are computed only once. Unschedulable keys are
// indexed by the plugins that rejected them. A key is moved as soon as the hint of one of its plugins returns true.
//
// Hints run in the goroutine that calls Event or Done, without a lock. They may be slow, and may call the Queue. A
// panic of a hint counts as true. Events that occur while keys are in flight are stored once for all of these keys, at
// most 1024 of them. If more events occurred during the flight of a rejected key, the key is retried without calling
// hints.
//
// # Costs
//
// A Queue has no goroutine. It has one timer, which runs only while a caller waits in Pop and a key waits for its time.
// Everything else happens in the calls. A Queue does not need to be stopped: an unused Queue is garbage collected. Add,
// Pop and Done take O(log n), about a microsecond, and one allocation per key. To measure:
//
//	go test -run '^$' -bench . ./scheduler/queue
package queue
