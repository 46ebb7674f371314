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

// HubOptions are the options of one of several hubs.
type HubOptions struct {
	// Name identifies the hub, a DNS label. Companions receive it, to separate their objects on the member by hub.
	Name string
	// Bootstrap provides the bootstrap credential for this hub. Default: the Secret [DefaultBootstrapSecret]-Name in the
	// agent's namespace.
	Bootstrap BootstrapSource
	// Store stores the agent's record for this hub. Default: the Secret [DefaultStoreSecret]-Name in the agent's
	// namespace.
	Store Store
	// Cleaners remove the objects of this hub only, before those of Options. A cleaner that selects its objects by the
	// name of the hub, such as that of package work/agent, belongs here.
	Cleaners []membership.LeaveGate
}

// hubs is an agent with several hubs. It runs an agent of one hub at a time. Its fields belong to the goroutine of
// Start.
type hubs struct {
	Options

	home   *rest.Config
	log    logr.Logger
	events eventRecorder
	random func() float64 // in [0, 1)

	sharedCompanions []*companion // shared by all agents: a companion that has not returned is not called again
	statuses         []lifecycle.HubStatus
	at               hubStay
	stuck            string // the last reported reason why the agent cannot go to another hub

	showing sync.Mutex          // the agent of the hub reports steps as well
	shown   lifecycle.AgentStep // of that agent; under showing

	news lastStatus
}

// hubStay is the time of the agent at one of its hubs.
type hubStay struct {
	hub       int       // the index of the hub
	since     time.Time // when it came there from another hub; zero: it started there
	timeLimit time.Duration
	returns   time.Duration // ReturnToFirst, for this hub
	stays     bool          // it does not go back to the first hub by itself
	turn      int           // the last recorded turn
}

// newHubs returns an agent with several hubs that stores its Secrets in the cluster of home.
func newHubs(home *rest.Config, log logr.Logger, o Options) (*hubs, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	h := &hubs{Options: o.withDefaults(), home: home, log: log, random: rand.Float64,
		sharedCompanions: newCompanionList(o.Companions),
		news:             lastStatus{wake: make(chan struct{}, 1)}}
	h.Hubs = slices.Clone(h.Hubs) // do not change the user's slice
	for i := range h.Hubs {
		if err := h.fill(i); err != nil {
			return nil, err
		}
		if _, err := h.agent(i); err != nil {
			return nil, err
		}
		h.statuses = append(h.statuses, lifecycle.HubStatus{Name: h.Hubs[i].Name})
	}
	return h, nil
}

// fill sets the defaults of a hub, so that all agents of that hub share one Store and one BootstrapSource.
func (h *hubs) fill(i int) error {
	hub := &h.Hubs[i]
	filled, err := Options{Namespace: h.Namespace, Bootstrap: hub.Bootstrap, Store: hub.Store}.withSecrets(h.home,
		"-"+hub.Name)
	hub.Bootstrap, hub.Store = filled.Bootstrap, filled.Store
	return err
}

// agent returns an agent of one hub. It does not start it.
func (h *hubs) agent(i int) (*agent, error) {
	hub, o := h.Hubs[i], h.Options
	o.Hubs, o.HubTimeout, o.ReturnToFirst = nil, 0, 0
	o.KeepBootstrap = o.KeepBootstrap || len(h.Hubs) > 1
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
		a.reports.publication.publisher, _ = hub.Store.(statePublisher)
	}
	a.companions.hub, a.companions.all = hub.Name, h.sharedCompanions
	a.reports.events, a.reports.onHub, a.reports.metrics.place = h.events, h.news.put, new(i)
	return a, nil
}

// NeedLeaderElection returns true: two agents of one member would interfere with each other.
func (h *hubs) NeedLeaderElection() bool { return true }

// Start runs agents of one hub after the other until the context ends, or the member has left all of them permanently.
// It returns when all of its goroutines have ended.
func (h *hubs) Start(ctx context.Context) error {
	retry := backoff{random: h.random}
	for {
		err := h.begin(ctx)
		if err == nil {
			break
		}
		pause := retry.next()
		if ctx.Err() == nil {
			h.log.Error(err, "Cannot read the records of the hubs, trying again", "after", pause)
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
		if step.Hub == h.at.hub {
			return nil // the context has ended, or the member has left all hubs
		}
		h.reportGoing(step.Message)
		h.publishAway(ctx, step.Message)
		now := h.Clock.Now()
		h.statuses[h.at.hub].Left = now
		h.at.hub, h.at.since, h.at.stays = step.Hub, now, step.Stay
	}
	return nil
}

// stay runs an agent of the current hub until the agent switches to the hub of the returned step, or must end.
func (h *hubs) stay(ctx context.Context) (step lifecycle.HubsStep, err error) {
	a, err := h.agent(h.at.hub)
	if err != nil {
		return step, err
	}
	// With jitter, so that not all members of a lost hub switch, and return, together.
	h.at.timeLimit, h.at.returns = h.upToHalfAgain(h.HubTimeout), h.upToHalfAgain(h.ReturnToFirst)
	h.news.take()
	here := &h.statuses[h.at.hub]
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
			return lifecycle.HubsStep{Hub: h.at.hub}, nil
		}
		if step.Done || step.Hub != h.at.hub {
			return step, nil
		}
		h.reportStuck(step.Message)
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

// upToHalfAgain returns t plus a random time of up to half of t.
func (h *hubs) upToHalfAgain(t time.Duration) time.Duration {
	return t + time.Duration(h.random()*float64(t)/2)
}

// lastStatus stores the last state of the hub that its agent reported.
type lastStatus struct {
	mu       sync.Mutex
	statuses *lifecycle.HubStatus
	wake     chan struct{} // of capacity 1
}

func (l *lastStatus) put(s lifecycle.HubStatus) {
	l.mu.Lock()
	same := l.statuses != nil && *l.statuses == s
	l.statuses = &s
	l.mu.Unlock()
	if !same {
		wake(l.wake)
	}
}

// take returns the state that was stored since the last take; nil: none.
func (l *lastStatus) take() *lifecycle.HubStatus {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := l.statuses
	l.statuses = nil
	return last
}
