package agent

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/muster-sdk/muster/membership/heartbeat"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// agent carries out the decisions of package lifecycle. Its fields belong to the goroutine of Start.
type agent struct {
	Options

	identity string         // of this process in the heartbeat Lease
	random   func() float64 // in [0, 1)

	observer   *observer
	companions *companions
	state      persistedState
	requests   bootstrapClient
	connection *connection // nil: not needed yet
	hub        hubObservation
	renewal    renewalObservation
	cleanup    cleanup
	reports    reporter
}

// persistedState contains the record of the agent and values that are derived from it.
type persistedState struct {
	record record
	claim  *registration.ClaimKey
	loaded bool // record equals the content of the store
}

// hubObservation is the latest observation of the hub.
type hubObservation struct {
	follower   *follower // nil: no watch
	state      lifecycle.HubState
	since      time.Time            // since when without interruption
	failure    string               // the error of the last attempt to read the Membership
	membership *v1alpha1.Membership // as last observed; nil unless state is HubSeen
	replaced   *v1alpha1.Membership // that of a MemberCluster which was created again; nil unless state is HubReplaced
	contest    contest
	revision   string // the highest observed resource version of the hub, or that of the list after a restore
	rolledBack bool   // the hub was restored, and that is not recorded yet
	listedBack bool   // a list has shown that, while the agent was connected since before the restore
	address    addressObservation
}

// renewalObservation is the latest observation of the renewal of the credential.
type renewalObservation struct {
	refused  refusedRenewal
	observed time.Time // when the renewal was last observed without an answer
}

// cleanup is the result of the cleaners.
type cleanup struct {
	result lifecycle.MemberState
	at     time.Time
}

// reporter contains the receivers of the agent's reports, and the last reports.
type reporter struct {
	log     logr.Logger
	clock   clock.PassiveClock
	events  eventRecorder
	metrics *metrics
	onHub   func(lifecycle.HubStatus) // receives the state of the hub; nil: not needed
	shown   lifecycle.AgentStep
	waits   string // the last reported reason of a pending JoinRequest; empty: none

	publication publication

	heartbeatError string    // the error of the last heartbeat
	unservedSince  time.Time // since when the hub has accepted no heartbeat; zero: it accepts them
}

// publication publishes the state of the agent in the annotation of the Secret with its record.
type publication struct {
	publisher statePublisher // nil: the state is not published
	askedWith string         // fingerprint of the bootstrap credential; empty: no JoinRequest since the start
	after     time.Time      // until when the state is not published after a failure
}

// refusedRenewal is a renewal that the hub has refused.
type refusedRenewal struct {
	id, why string
	at      time.Time // when the agent first observed it
}

// newAgent returns an agent that stores its Secrets in the cluster of home. Log is the default logger.
func newAgent(home *rest.Config, log logr.Logger, o Options) (*agent, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	if !o.Log.IsZero() {
		log = o.Log
	}
	o, err := o.withSecrets(home, "")
	if err != nil {
		return nil, err
	}
	if o.Member == nil {
		o.Member = home
	}
	member, err := newMember(o.Member)
	if err != nil {
		return nil, err
	}
	metrics, err := newMetrics()
	if err != nil {
		return nil, err
	}
	o.Log = log
	a := &agent{
		Options: o, identity: heartbeat.NewIdentity(), random: rand.Float64, observer: newObserver(member, log, o),
		reports: reporter{log: log, clock: o.Clock, metrics: metrics},
	}
	a.companions = newCompanions(a)
	return a, nil
}

func (a *agent) beats() heartbeat.BeaterOptions {
	return heartbeat.BeaterOptions{Clock: a.Clock, Identity: a.identity}
}

// NeedLeaderElection returns true: two agents of one member would interfere with each other.
func (a *agent) NeedLeaderElection() bool { return true }

// Start runs the agent until the context ends or the member has left permanently. It returns when all goroutines of
// the agent have ended, but waits for companions only until their timeout.
func (a *agent) Start(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	a.companions.events = a.reports.events
	var observing sync.WaitGroup
	observing.Go(func() { a.observer.run(ctx) })
	defer func() {
		cancel()
		a.disconnect()
		observing.Wait()
		a.observer.member.close()
		a.reports.metrics.forget()
	}()

	retry := backoff{random: a.random}
	for ctx.Err() == nil {
		step, err := a.step(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			step.After = retry.next()
			a.Log.Error(err, "A step of the agent failed, trying again", "phase", step.Phase, "after", step.After)
			a.setFailure(step, err)
		case step.Done:
			a.show(step)
			return nil
		default:
			retry.reset()
		}
		a.reportHub()
		if step.After > 0 {
			a.publishState(ctx)
			a.wait(ctx, step)
		}
	}
	return nil
}

// step observes, decides and acts once.
func (a *agent) step(ctx context.Context) (lifecycle.AgentStep, error) {
	if err := a.load(ctx); err != nil {
		return a.reports.shown, err
	}
	a.takeObservation()
	err := a.settleEpoch(ctx)
	a.rereadRestored()
	if err != nil {
		return a.reports.shown, err
	}
	a.updateGuard()
	if a.hub.follower != nil {
		a.hub.follower.rereads.Store(a.state.record.requiredEpoch() > 0)
	}
	observed := a.observe()
	step := lifecycle.NextAgent(observed)
	if !step.Done {
		a.show(step)
	}
	beside := companionChangeFor(observed, step.Phase)
	if beside == endCompanions {
		a.stopCompanions() // before the cleaners run
	}
	a.observer.want(step.Phase == lifecycle.Joined || step.Phase == lifecycle.Joining)
	if a.cleanup.result == lifecycle.MemberClean {
		a.cleanup.result = lifecycle.MemberNotAsked // the result was for this step only
	}
	for _, action := range step.Actions {
		if err := a.act(ctx, action); err != nil {
			return step, fmt.Errorf("%s: %w", action, err)
		}
		if ctx.Err() != nil {
			return step, ctx.Err()
		}
	}
	if beside == runCompanions {
		if err := a.companions.run(ctx, a.connection, a.state.record.member()); err != nil {
			return step, err
		}
	}
	if step.Phase == lifecycle.Joined && a.hub.state == lifecycle.HubSeen &&
		!a.hub.contest.pauses(a.hub.membership.Status, a.Clock.Now()) { // otherwise the next heartbeat causes another step
		// The report about the member has the lowest priority.
		if err := a.write(ctx, a.report()); err != nil {
			return step, err
		}
	}
	if step.Phase == lifecycle.Joined && a.hub.state == lifecycle.HubSeen && !a.requests.removal.done {
		a.requests.removal.done = true
		a.removeBootstrap(ctx)
	}
	a.reports.metrics.set(a.hubServer(), step.Phase, a.state.record)
	return step, nil
}

// show reports a step that differs from the previous one, in logs, Events and OnPhase.
func (a *agent) show(step lifecycle.AgentStep) {
	if why := a.why(step); why != "" {
		step.Message += " (" + why + ")"
	}
	a.setState(step)
	before := a.reports.shown
	if a.reports.shown = step; step.Phase == before.Phase && step.Message == before.Message && step.Done == before.Done {
		return
	}
	a.Log.Info(step.Message, "phase", step.Phase, "before", before.Phase)
	if step.Phase != before.Phase {
		a.reports.events.phase(step)
	}
	waits := a.requests.reason
	if step.Phase != lifecycle.Registering {
		waits = ""
	}
	if waits != "" && waits != a.reports.waits {
		// +event:reason=the reason of the condition Issued of a JoinRequest, or of the agent
		// +event:type=Warning if the reason is not WaitingForAcceptance, else Normal
		// +event:message=why the agent waits
		a.reports.events.waits(waits, step.Message)
	}
	a.reports.waits = waits
	a.OnPhase(step)
}

// why returns the detail that is added to the step's message: the original error, or the message of the hub.
func (a *agent) why(step lifecycle.AgentStep) string {
	switch step.Phase {
	case lifecycle.Registering, lifecycle.Rejected:
		return a.requests.why
	case lifecycle.Joining, lifecycle.Joined:
		return strings.Join(slices.DeleteFunc([]string{a.hub.failure, a.hub.address.unused}, func(s string) bool {
			return s == ""
		}), "; ")
	default:
		return ""
	}
}

// longest is the maximum pause. It limits the delay if timers did not run while the machine was suspended. It costs no
// request.
const longest = 5 * time.Minute

// hubServer returns the address of the agent's hub, or of the hub that it registers with; empty: unknown.
func (a *agent) hubServer() string {
	switch {
	case a.state.record.Member != nil:
		return a.state.record.Member.Server
	case a.requests.bootstrap != nil:
		return a.requests.bootstrap.Server
	default:
		return ""
	}
}

// pause returns the time to wait after a step. If the next step sends a request to the hub, the pause is jittered, so
// that agents that wait for the same event do not send their requests together.
func (a *agent) pause(step lifecycle.AgentStep) time.Duration {
	if slices.Contains(step.Actions, lifecycle.CheckJoinRequest) || slices.Contains(step.Actions,
		lifecycle.ReadMembership) {
		return jittered(step.After, a.random)
	}
	return min(step.After, longest)
}

// wait waits until there is a new observation, or the step is due.
func (a *agent) wait(ctx context.Context, step lifecycle.AgentStep) {
	timer := a.Clock.NewTimer(a.pause(step))
	defer timer.Stop()
	var news, facts <-chan struct{}
	if a.hub.follower != nil {
		news = a.hub.follower.news
	}
	if step.Phase == lifecycle.Joined {
		facts = a.observer.news
	}
	for {
		select {
		case <-ctx.Done():
		case <-timer.C():
		case <-news:
		case <-facts:
		case status := <-a.outcomes():
			a.reports.heard(status)
			if status.Rewound {
				a.rewound()
				return
			}
			a.reportHub()
			if a.handleHeartbeat(ctx, status) {
				return
			}
			if !a.hub.contradicted(status.LastError) {
				continue
			}
			if a.hub.state != lifecycle.HubSeen {
				return // the next step reads it
			}
			if err := a.readMembership(ctx); err != nil && !errors.Is(err, context.Canceled) {
				a.Log.V(1).Info("The hub refused the heartbeat and the read of the Membership", "error", err.Error())
			}
		}
		return
	}
}

// outcomes returns the channel with the results of the heartbeat; nil while the heartbeat does not run.
func (a *agent) outcomes() <-chan heartbeat.Status {
	if a.connection == nil || !a.connection.beating() {
		return nil
	}
	return a.connection.beater.Outcomes()
}
