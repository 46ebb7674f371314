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
	// companionPatience is how long companions have to return, all of them together.
	companionPatience = 10 * time.Second
	// companionSettled is how long a companion has to run for its next failure to count as the first.
	companionSettled = time.Minute
)

// accompaniment is what becomes of the companions in a step.
type accompaniment int

const (
	endCompanions  accompaniment = iota // before its actions
	keepCompanions                      // as they are
	runCompanions                       // after its actions
)

// accompanied decides about the companions. They begin when the agent sees that the hub has the member in, which goes for a
// leave whose gates wait for them as well. What it cannot see neither begins nor ends them: one that began then could
// put back what the cleaners have taken.
func accompanied(o lifecycle.AgentObserved, phase lifecycle.AgentPhase) accompaniment {
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

// dismiss ends the companions and takes back what they were lent.
func (a *agent) dismiss() {
	a.companions.end()
	if a.connection != nil {
		a.connection.takeBack()
	}
}

// companions runs those of one agent, each in a goroutine of its own.
type companions struct {
	log    logr.Logger
	events story
	clock  clock.Clock
	random func() float64
	hub    string // its name
	guard  *pruneGuard

	orphans *orphanReport
	all     []*companion
	cancel  context.CancelFunc // nil: they are not to run
}

type companion struct {
	Companion
	returned chan struct{} // closed when it has returned; nil: it was never called
}

func newCompanions(a *agent) *companions {
	all := a.beside
	if all == nil {
		all = besides(a.Companions)
	}
	return &companions{log: a.log, events: a.events, clock: a.Clock, random: a.random, hub: a.name, guard: a.guard, orphans: a.orphans, all: all}
}

// besides are companions that were never called.
func besides(all []Companion) []*companion {
	var out []*companion
	for _, each := range all {
		out = append(out, &companion{Companion: each})
	}
	return out
}

// run has all of them run that do not yet.
func (c *companions) run(ctx context.Context, with *connection, member membership.Member) error {
	if c.cancel != nil {
		return nil
	}
	configs := make([]*rest.Config, len(c.all))
	for i := range configs {
		var err error
		if configs[i], err = with.lend(); err != nil {
			with.takeBack()
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
				<-before // it must not run beside itself
			}
			c.runOne(ctx, each, Hub{
				Name: c.hub, Config: configs[i], MayPrune: c.guard.MayPrune, ReportOrphans: c.orphans.put, Member: member,
			})
		}()
	}
	return nil
}

// runOne calls a companion until it has nothing more to do, or the context ends.
func (c *companions) runOne(ctx context.Context, one *companion, hub Hub) {
	log, retry := c.log.WithValues("companion", one.Name()), backoff{random: c.random}
	for ctx.Err() == nil {
		log.Info("A companion begins.")
		began := c.clock.Now()
		err := panics.Recovered(func() error {
			hub := hub
			hub.Config = rest.CopyConfig(hub.Config)
			return one.Run(ctx, hub)
		})
		switch {
		case ctx.Err() != nil:
			if err != nil && !errors.Is(err, context.Canceled) {
				log.Info("A companion ended with an error when it was to end.", "error", err.Error())
			}
			return
		case err == nil:
			log.Info("A companion has ended by itself; it is called again when the agent joins anew.")
			return
		case c.clock.Now().Sub(began) > companionSettled:
			retry.reset()
		}
		pause := retry.next()
		details := []any{"after", pause}
		if panicked, ok := errors.AsType[*panics.Error](err); ok {
			details = append(details, "stack", string(panicked.Stack))
		}
		log.Error(err, "A companion failed; calling it again.", details...)
		c.events.warn("CompanionFailed", one.Name()+": "+err.Error())
		select {
		case <-ctx.Done():
		case <-c.clock.After(pause):
		}
	}
}

// end ends all of them. Those that do not return in time are left behind, and tell of themselves.
func (c *companions) end() {
	if c.cancel == nil {
		return
	}
	c.cancel()
	c.cancel = nil
	limited, cancel := context.WithTimeout(context.Background(), companionPatience)
	defer cancel()
	for _, one := range c.all {
		select {
		case <-one.returned:
			continue
		case <-limited.Done():
		}
		select {
		case <-one.returned: // while another was waited for
		default:
			c.log.Info("A companion did not return in time; going on without it.", "companion", one.Name(), "patience", companionPatience)
			c.events.warn("CompanionStuck", one.Name()+" has not returned "+companionPatience.String()+" after it was to end; the agent goes on without it.")
		}
	}
}
