package agent

import (
	"context"
	"errors"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/internal/panics"
	"github.com/muster-sdk/muster/membership/lifecycle"
)

const (
	// companionTimeout is how long all companions together may take to return.
	companionTimeout = 10 * time.Second
	// companionStable is how long a companion must run before its backoff is reset.
	companionStable = time.Minute
)

// companionChange is the change of the companions in a step.
type companionChange int

const (
	endCompanions  companionChange = iota // end them before the actions
	keepCompanions                        // change nothing
	runCompanions                         // start them after the actions
)

// companionChangeFor returns the change of the companions. They start when the agent observes that the cluster is a
// member, also during a leave, because its gates may wait for them. While the agent cannot observe the hub, companions
// are neither started nor ended: a companion that started then could restore objects that the cleaners have removed.
func companionChangeFor(o lifecycle.AgentObserved, phase lifecycle.AgentPhase) companionChange {
	seen := o.Hub == lifecycle.HubSeen
	switch {
	case phase == lifecycle.Joined && seen:
		return runCompanions
	case phase == lifecycle.Leaving && seen && !o.Membership.Clean && !o.Record.Deregistered:
		return runCompanions
	case phase == lifecycle.Joined, phase == lifecycle.Joining:
		return keepCompanions
	default:
		return endCompanions
	}
}

// stopCompanions ends the companions and closes their connections.
func (a *agent) stopCompanions() {
	a.companions.end()
	if a.connection != nil {
		a.connection.closeLent()
	}
}

// companions runs the companions of one agent, each in its own goroutine.
type companions struct {
	log    logr.Logger
	events eventRecorder
	clock  clock.Clock
	random func() float64
	hub    string // name of the hub
	guard  *pruneGuard

	orphans *orphanReport
	policy  *policyReport
	health  *companionHealth
	all     []*companion
	cancel  context.CancelFunc // nil: they must not run
}

type companion struct {
	Companion
	returned chan struct{} // closed when it has returned; nil: never called
}

func newCompanions(a *agent) *companions {
	news := func() { wake(a.observer.news) }
	return &companions{log: a.Log, events: a.reports.events, clock: a.Clock, random: a.random,
		all:   newCompanionList(a.Companions),
		guard: &pruneGuard{clock: a.Clock}, orphans: &orphanReport{news: news}, policy: &policyReport{news: news},
		health: &companionHealth{news: news}}
}

// newCompanionList returns companions that have not run yet.
func newCompanionList(all []Companion) []*companion {
	var out []*companion
	for _, each := range all {
		out = append(out, &companion{Companion: each})
	}
	return out
}

// run starts all companions that are not running.
func (c *companions) run(ctx context.Context, with *connection, member membership.Member) error {
	if c.cancel != nil {
		return nil
	}
	configs := make([]*rest.Config, len(c.all))
	for i := range configs {
		var err error
		if configs[i], err = with.companionConfig(); err != nil {
			with.closeLent()
			return err
		}
	}
	ctx, c.cancel = context.WithCancel(ctx)
	for i, each := range c.all {
		before, returned := each.returned, make(chan struct{})
		each.returned = returned
		go func() {
			defer close(returned)
			if before != nil {
				<-before // the previous call must return first
			}
			c.runOne(ctx, each, Hub{
				Name: c.hub, Config: configs[i], MayPrune: c.guard.MayPrune, Restored: c.guard.Restored,
				ReportOrphans: c.orphans.put, ReportPolicy: c.policy.put, Member: member,
			})
		}()
	}
	return nil
}

// runOne calls a companion until it returns nil, or the context ends.
func (c *companions) runOne(ctx context.Context, one *companion, hub Hub) {
	log, retry := c.log.WithValues("companion", one.Name()), backoff{random: c.random}
	for ctx.Err() == nil {
		log.Info("A companion starts")
		began := c.clock.Now()
		ended := c.recovers(ctx, one.Name())
		err := panics.Recovered(func() error {
			hub := hub
			hub.Config = rest.CopyConfig(hub.Config)
			return one.Run(ctx, hub)
		})
		ended()
		switch {
		case ctx.Err() != nil:
			if err != nil && !errors.Is(err, context.Canceled) {
				log.Info("A companion returned an error after its context ended", "error", err.Error())
			}
			return
		case err == nil:
			log.Info("A companion has returned and is called again when the agent joins again")
			c.health.recovered(one.Name())
			return
		case c.clock.Now().Sub(began) > companionStable:
			retry.reset()
		}
		pause := retry.next()
		details := []any{"after", pause}
		if panicked, ok := errors.AsType[*panics.Error](err); ok {
			details = append(details, "stack", string(panicked.Stack))
		}
		log.Error(err, "A companion failed and is called again", details...)
		c.health.failed(one.Name(), err)
		// +event:message=the name of the companion and its error
		c.events.warn("CompanionFailed", one.Name()+": "+err.Error())
		select {
		case <-ctx.Done():
		case <-c.clock.After(pause):
		}
	}
}

// recovers reports that a companion that failed before has recovered, when it has run for companionStable. The
// returned function ends this wait.
func (c *companions) recovers(ctx context.Context, name string) func() {
	if !c.health.failing(name) {
		return func() {}
	}
	waiting, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-waiting.Done():
		case <-c.clock.After(companionStable):
			c.health.recovered(name)
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// end ends all companions and waits until they return, at most companionTimeout. It reports companions that have not
// returned.
func (c *companions) end() {
	if c.cancel == nil {
		return
	}
	c.cancel()
	c.cancel = nil
	limited, cancel := context.WithTimeout(context.Background(), companionTimeout)
	defer cancel()
	for _, one := range c.all {
		select {
		case <-one.returned:
			continue
		case <-limited.Done():
		}
		select {
		case <-one.returned: // it returned while waiting for another one
		default:
			c.log.Info("A companion did not return in time, the agent continues without it", "companion", one.Name(), "timeout",
				companionTimeout)
			// +event:message=… has not returned … after its context ended; the agent continues without it.
			c.events.warn("CompanionStuck",
				one.Name()+" has not returned "+companionTimeout.String()+" after its context ended; the agent continues "+
					"without it.")
		}
	}
}
