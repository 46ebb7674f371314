package agent

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
)

// observer observes the member in separate goroutines, so that a member that does not respond delays neither the
// heartbeat nor a leave.
type observer struct {
	member     *member
	collection *collection
	clock      clock.Clock
	resources  time.Duration
	probes     time.Duration

	// wanted is false while no report is needed. The member is not observed then.
	wanted atomic.Bool
	wakes  [2]chan struct{} // of the two loops, notified when wanted changes; each of capacity 1
	news   chan struct{}    // of capacity 1
	first  chan struct{}    // closed after the first observation

	mu     sync.Mutex
	health health
}

func newObserver(member *member, log logr.Logger, o Options) *observer {
	news := make(chan struct{}, 1)
	return &observer{
		member:     member,
		collection: &collection{log: log, sources: member.sources(o), news: func() { wake(news) }},
		clock:      o.Clock, resources: o.ResourceInterval, probes: o.ProbeInterval,
		news: news, first: make(chan struct{}), wakes: [2]chan struct{}{make(chan struct{}, 1), make(chan struct{}, 1)},
	}
}

// run observes until the context ends, and returns when all goroutines have ended.
func (o *observer) run(ctx context.Context) {
	var both, firsts sync.WaitGroup
	firsts.Add(2)
	both.Go(func() {
		o.every(ctx, loop{o.probes, o.wakes[0], firsts.Done, o.probe})
	})
	both.Go(func() {
		o.every(ctx, loop{o.resources, o.wakes[1], firsts.Done, o.collection.round})
		o.collection.wait()
	})
	both.Go(func() {
		firsts.Wait()
		close(o.first)
	})
	both.Wait()
}

// want sets whether reports are needed.
func (o *observer) want(wanted bool) {
	if o.wanted.Swap(wanted) != wanted {
		for _, c := range o.wakes {
			wake(c)
		}
	}
}

type loop struct {
	interval time.Duration
	wake     <-chan struct{}
	first    func() // called after the first observation
	look     func(context.Context)
}

// every calls look immediately, and then once per interval while wanted is true. If wanted becomes true again after
// more than an interval, it calls look immediately.
func (o *observer) every(ctx context.Context, l loop) {
	l.look(ctx)
	last := o.clock.Now()
	l.first()
	wake(o.news)
	for {
		due := longest
		if o.wanted.Load() {
			due = max(0, last.Add(l.interval).Sub(o.clock.Now()))
		}
		timer := o.clock.NewTimer(due)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-l.wake:
			timer.Stop()
		case <-timer.C():
			if o.wanted.Load() {
				l.look(ctx)
				last = o.clock.Now()
				wake(o.news)
			}
		}
	}
}

func (o *observer) probe(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	err := o.member.ready(limited)
	if ctx.Err() != nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.health = o.health.probed(err)
}

func (o *observer) healthy() health {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.health
}

// wait waits for the first observation, at most for timeLimit.
func (o *observer) wait(ctx context.Context, timeLimit time.Duration) {
	select {
	case <-o.first:
	case <-ctx.Done():
	case <-o.clock.After(timeLimit):
	}
}
