package agent

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/lifecycle"
)

// HubOptions are those of one of several hubs.
type HubOptions struct {
	// Name tells the hub from the others, a DNS label. Companions get it, to tell apart what they hold of each hub on the member.
	Name string
	// Bootstrap has what the agent needs to ask this hub. Default: the Secret [DefaultBootstrapSecret]-Name in the agent's namespace.
	Bootstrap BootstrapSource
	// Store keeps what the agent must remember of this hub. Default: the Secret [DefaultStoreSecret]-Name in the agent's namespace.
	Store Store
	// Cleaners take back what is of this hub and of no other, before those of Options. What finds it by the name of the hub, as that of package
	// work/agent does, belongs here.
	Cleaners []membership.LeaveGate
}

// hubs is an agent of several hubs: an agent of one of them at a time. Its fields belong to the goroutine of Start.
type hubs struct {
	Options

	home   *rest.Config
	log    logr.Logger
	events story
	random func() float64 // in [0, 1)

	beside   []*companion // of all agents: one that does not return keeps the next from being called
	standing []lifecycle.HubStanding
	current  int
	since    time.Time // when it came there from another; zero: it was there from the start
	patience time.Duration
	returns  time.Duration // ReturnToFirst, for this stay
	stays    bool          // it does not go back to the first by itself
	turn     int           // the last that was written down
	stuck    string        // why the agent cannot go though it would; as told

	showing sync.Mutex          // its agent shows steps as well
	shown   lifecycle.AgentStep // by the agent; under showing

	news lastStanding
}

// newHubs returns an agent of several hubs, of the cluster that home leads to.
func newHubs(home *rest.Config, log logr.Logger, o Options) (*hubs, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	h := &hubs{Options: o.withDefaults(), home: home, log: log, random: rand.Float64, beside: besides(o.Companions), news: lastStanding{wake: make(chan struct{}, 1)}}
	h.Hubs = slices.Clone(h.Hubs) // the user's is not ours to change
	for i := range h.Hubs {
		if err := h.fill(i); err != nil {
			return nil, err
		}
		if _, err := h.agent(i); err != nil {
			return nil, err
		}
		h.standing = append(h.standing, lifecycle.HubStanding{Name: h.Hubs[i].Name})
	}
	return h, nil
}

// fill puts the defaults of a hub in, and one Store and one source for all of its agents.
func (h *hubs) fill(i int) error {
	hub := &h.Hubs[i]
	filled, err := Options{Namespace: h.Namespace, Bootstrap: hub.Bootstrap, Store: hub.Store}.withSecrets(h.home, "-"+hub.Name)
	hub.Bootstrap, hub.Store = filled.Bootstrap, filled.Store
	return err
}

// agent returns an agent of one hub that does nothing yet.
func (h *hubs) agent(i int) (*agent, error) {
	hub, o := h.Hubs[i], h.Options
	o.Hubs, o.HubPatience, o.ReturnToFirst = nil, 0, 0
	o.Bootstrap, o.Store, o.Cleaners = hub.Bootstrap, hub.Store, append(slices.Clone(hub.Cleaners), o.Cleaners...)
	o.OnPhase = func(step lifecycle.AgentStep) {
		step.Message = "Hub " + hub.Name + ": " + step.Message
		h.showing.Lock()
		defer h.showing.Unlock()
		h.shown = step
		h.OnPhase(step)
	}
	a, err := newAgent(h.home, h.log.WithValues("hub", hub.Name), o)
	if err != nil {
		return nil, fmt.Errorf("prepare for hub %s: %w", hub.Name, err)
	}
	if h.events.recorder != nil {
		a.fare, _ = hub.Store.(fareKeeper)
	}
	a.name, a.events, a.stands, a.beside, a.metrics.place = hub.Name, h.events, h.news.put, h.beside, new(i)
	return a, nil
}

// NeedLeaderElection is true: two agents of one member would disturb each other.
func (h *hubs) NeedLeaderElection() bool { return true }

// Start is at one hub after the other until the context ends, or the member is out of all of them for good. It waits for all that it started.
func (h *hubs) Start(ctx context.Context) error {
	retry := backoff{random: h.random}
	for {
		err := h.begin(ctx)
		if err == nil {
			break
		}
		pause := retry.next()
		if ctx.Err() == nil {
			h.log.Error(err, "The hubs' records could not be read; trying again.", "after", pause)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-h.Clock.After(pause):
		}
	}
	for ctx.Err() == nil {
		step, err := h.stay(ctx)
		if err != nil {
			return err
		}
		if step.Hub == h.current {
			return nil // it was told to end, or there is nothing more to do
		}
		h.tellGoing(step.Message)
		h.tellAway(ctx, step.Message)
		now := h.Clock.Now()
		h.standing[h.current].Left = now
		h.current, h.since, h.stays = step.Hub, now, step.Stay
	}
	return nil
}

// stay has an agent at the current hub until it is time to go to another, which is that of the step, or to end.
func (h *hubs) stay(ctx context.Context) (step lifecycle.HubsStep, err error) {
	a, err := h.agent(h.current)
	if err != nil {
		return step, err
	}
	// Or all members of a hub that is lost would go at once, and come back at once.
	h.patience, h.returns = h.upToHalfAgain(h.HubPatience), h.upToHalfAgain(h.ReturnToFirst)
	h.news.take()
	here := &h.standing[h.current]
	here.Unserved, here.Refused, here.Cleaning = h.Clock.Now(), false, 0

	staying, leave := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- a.Start(staying) }()
	running := true
	defer func() {
		leave()
		if running {
			err = <-ended
		}
	}()
	for {
		step = h.choose(ctx)
		if ctx.Err() != nil {
			return lifecycle.HubsStep{Hub: h.current}, nil
		}
		if step.Done || step.Hub != h.current {
			return step, nil
		}
		h.tellStuck(step.Message)
		pause := longest
		if step.After > 0 {
			pause = min(pause, step.After)
		}
		timer := h.Clock.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-timer.C():
		case <-h.news.wake:
			if s := h.news.take(); s != nil {
				here.Unserved, here.Refused, here.Cleaning = s.Unserved, s.Refused, s.Cleaning
			}
		case err := <-ended:
			if running = false; err != nil {
				return step, err
			}
			here.Out, here.Unserved = ctx.Err() == nil, h.Clock.Now()
		}
		timer.Stop()
	}
}

// upToHalfAgain is a time, or up to half as long again, by chance.
func (h *hubs) upToHalfAgain(t time.Duration) time.Duration {
	return t + time.Duration(h.random()*float64(t)/2)
}

// lastStanding is the last that the agent said of how its hub stands with it.
type lastStanding struct {
	mu       sync.Mutex
	standing *lifecycle.HubStanding
	wake     chan struct{} // has room for one
}

func (l *lastStanding) put(s lifecycle.HubStanding) {
	l.mu.Lock()
	same := l.standing != nil && *l.standing == s
	l.standing = &s
	l.mu.Unlock()
	if !same {
		wake(l.wake)
	}
}

// take returns what was put last since it was last taken, or nil.
func (l *lastStanding) take() *lifecycle.HubStanding {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := l.standing
	l.standing = nil
	return last
}
