package queue_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/muster-sdk/muster/scheduler/queue"
)

// A worker pops placements and decides on them. A placement for which no cluster is feasible waits for an event that
// may help.
func Example() {
	zones := map[string]bool{"west": true} // the zones with clusters
	wanted := map[string]string{"shop": "east", "bank": "west"}

	type event struct{ newZone string }
	q := queue.New(queue.Options[string, event]{
		Hint: func(plugin string, e event) func(placement string) bool {
			if plugin != "zone" || e.newZone == "" {
				return nil // the event helps no key
			}
			return func(placement string) bool { return wanted[placement] == e.newZone }
		},
	})
	work := func() {
		for q.Stats().Active > 0 {
			item, err := q.Pop(context.Background())
			if err != nil {
				return
			}
			outcome := queue.Unschedulable("zone")
			if zones[wanted[item.Key]] {
				outcome = queue.Scheduled()
			}
			q.Done(item.Key, outcome)
			fmt.Println(item.Key, "fits:", zones[wanted[item.Key]])
		}
	}

	q.Add("shop", 0)
	q.Add("bank", 100)
	work()
	fmt.Printf("%+v\n", q.Stats())

	zones["north"] = true
	q.Event(event{newZone: "north"})
	fmt.Printf("%+v\n", q.Stats())

	zones["east"] = true
	q.Event(event{newZone: "east"}) // shop was rejected a moment ago, so it waits for its backoff
	fmt.Printf("%+v\n", q.Stats())

	// Output:
	// bank fits: true
	// shop fits: false
	// {Active:0 Backoff:0 Unschedulable:1 InFlight:0}
	// {Active:0 Backoff:0 Unschedulable:1 InFlight:0}
	// {Active:0 Backoff:1 Unschedulable:0 InFlight:0}
}

// Workers wait in Pop until a key is active, and end when the queue is shut down.
func ExampleQueue_Pop() {
	q := queue.New(queue.Options[string, struct{}]{})
	decided, ended := make(chan string), make(chan bool)
	for range 2 {
		go func() {
			for {
				item, err := q.Pop(context.Background())
				if err != nil {
					ended <- errors.Is(err, queue.ErrShutDown)
					return
				}
				decided <- item.Key
				q.Done(item.Key, queue.Scheduled())
			}
		}()
	}
	q.Add("shop", 0)
	fmt.Println(<-decided)
	q.ShutDown()
	fmt.Println(<-ended, <-ended)

	// Output:
	// shop
	// true true
}
