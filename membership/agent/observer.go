package agent

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
)

// observer looks at the member in goroutines of its own, so that a member which does not answer delays
// neither the heartbeat nor a leave.
type observer struct {
	member     *member
	collection *collection
	clock      clock.Clock
	resources  time.Duration
	probes     time.Duration

	// wanted is false while nobody would be told: then the member is left alone.
	wanted atomic.Bool
	news   chan struct{} // has room for one
	first  chan struct{} // closed after the first look of all

	mu     sync.Mutex
	health health
}

func newObserver(member *member, log logr.Logger, o Options) *observer {
	news := make(chan struct{}, 1)
	return &observer{
		member:     member,
		collection: &collection{log: log, sources: member.sources(o.Collectors), news: func() { wake(news) }},
		clock:      o.Clock, resources: o.ResourceInterval, probes: o.ProbeInterval,
		news: news, first: make(chan struct{}),
	}
}

// run looks until the context ends, and returns when all that it started has ended.
func (o *observer) run(ctx context.Context) {
	var both, firsts sync.WaitGroup
	firsts.Add(2)
	both.Go(func() {
		o.every(ctx, o.probes, firsts.Done, o.probe)
	})
	both.Go(func() {
		o.every(ctx, o.resources, firsts.Done, o.collection.round)
		o.collection.wait()
	})
	both.Go(func() {
		firsts.Wait()
		close(o.first)
	})
	both.Wait()
}

// every looks at once, and then each interval in which it is wanted.
func (o *observer) every(ctx context.Context, interval time.Duration, first func(), look func(context.Context)) {
	look(ctx)
	first()
	wake(o.news)
	for {
		timer := o.clock.NewTimer(interval)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C():
			if o.wanted.Load() {
				look(ctx)
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

// wait waits for the first look, but not for longer than patience.
func (o *observer) wait(ctx context.Context, patience time.Duration) {
	select {
	case <-o.first:
	case <-ctx.Done():
	case <-o.clock.After(patience):
	}
}
