package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// SetupWithManager adds an agent to a manager, which it never starts. The agent runs while the manager leads. It
// reaches the cluster of the manager without its cache, and needs none of the manager's own scheme.
//
// When the member is out for good the agent ends, and the manager goes on without it. The error is a
// [*membership.InvalidError] for options that no hub would take.
//
// The permissions that it needs on the member are in the folder rbac.
func SetupWithManager(mgr manager.Manager, o Options) error {
	a, err := newAgent(mgr.GetConfig(), mgr.GetLogger().WithName("muster-agent"), o)
	if err != nil {
		return fmt.Errorf("set up the agent: %w", err)
	}
	a.events = newStory(mgr, a.Namespace)
	return mgr.Add(a)
}

// agent carries out what package lifecycle decides. All its fields belong to the goroutine of Start.
type agent struct {
	Options

	log     logr.Logger
	events  story
	metrics *metrics
	member  *member

	observer *observer
	record   record
	loaded   bool // the record is what the store has
	claim    *registration.ClaimKey
	door     door

	connection *connection // nil: none is needed yet
	follower   *follower   // nil: nothing is followed
	sight      lifecycle.HubSight
	membership *v1alpha1.Membership // as last seen; nil unless sight is HubSeen
	cleaned    lifecycle.MemberState
	refused    refusedRenewal
	asked      time.Time // when the renewal was last seen without an answer

	shown lifecycle.AgentStep

	// acted is called after each action, for tests.
	acted func(lifecycle.AgentAction)
}

// refusedRenewal is a renewal that the hub has refused.
type refusedRenewal struct {
	id, why string
	at      time.Time // when the agent first saw it
}

// newAgent returns an agent of the cluster that home leads to.
//
// +kubebuilder:rbac:groups="",namespace=muster-system,resources=secrets,verbs=create
// +kubebuilder:rbac:groups="",namespace=muster-system,resources=secrets,resourceNames=muster-agent,verbs=get;update;delete
// +kubebuilder:rbac:groups="",namespace=muster-system,resources=secrets,resourceNames=muster-bootstrap,verbs=get;delete
func newAgent(home *rest.Config, log logr.Logger, o Options) (*agent, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	if o.Bootstrap == nil || o.Store == nil {
		core, err := corev1client.NewForConfig(home)
		if err != nil {
			return nil, fmt.Errorf("prepare to speak to %s: %w", home.Host, err)
		}
		if o.Bootstrap == nil {
			o.Bootstrap = SecretBootstrap(core.Secrets(o.Namespace), DefaultBootstrapSecret)
		}
		if o.Store == nil {
			o.Store = SecretStore(core.Secrets(o.Namespace), DefaultStoreSecret)
		}
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
	return &agent{Options: o, log: log, member: member, metrics: metrics, acted: func(lifecycle.AgentAction) {}}, nil
}

// NeedLeaderElection is true: two agents of one member would disturb each other.
func (a *agent) NeedLeaderElection() bool { return true }

// Start runs the agent until the context ends, or the member is out for good. It waits for all that it started.
func (a *agent) Start(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	a.observer = &observer{
		member:     a.member,
		collection: &collection{log: a.log, sources: a.member.sources(a.Collectors)},
		clock:      a.Clock, resources: a.ResourceInterval, probes: a.ProbeInterval,
		news: make(chan struct{}, 1), first: make(chan struct{}),
	}
	var observing sync.WaitGroup
	observing.Go(func() { a.observer.run(ctx) })
	defer func() {
		cancel()
		a.disconnect()
		observing.Wait()
		a.member.close()
		a.metrics.forget()
	}()

	var retry backoff
	for ctx.Err() == nil {
		step, err := a.step(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			step.After = retry.next()
			a.log.Error(err, "A step of the agent failed; trying again.", "phase", step.Phase, "after", step.After)
		case step.Done:
			a.show(step)
			return nil
		default:
			retry.reset()
		}
		if step.After > 0 {
			a.wait(ctx, step)
		}
	}
	return nil
}

// step observes, decides and acts once.
func (a *agent) step(ctx context.Context) (lifecycle.AgentStep, error) {
	if err := a.load(ctx); err != nil {
		return a.shown, err
	}
	a.see()
	step := lifecycle.NextAgent(a.observe())
	if !step.Done {
		a.show(step)
	}
	a.observer.wanted.Store(step.Phase == lifecycle.Joined || step.Phase == lifecycle.Joining)
	if !slices.Contains(step.Actions, lifecycle.CleanMember) {
		defer func() { a.cleaned = lifecycle.MemberNotAsked }()
	}
	for _, action := range step.Actions {
		if err := a.act(ctx, action); err != nil {
			return step, fmt.Errorf("%s: %w", action, err)
		}
		a.acted(action)
		if ctx.Err() != nil {
			return step, ctx.Err()
		}
	}
	if step.Phase == lifecycle.Joined && a.sight == lifecycle.HubSeen {
		// What the member looks like is not a matter of life and death: it is told when all else is done.
		if err := a.write(ctx, a.report()); err != nil {
			return step, err
		}
	}
	a.metrics.set(step.Phase, a.record)
	return step, nil
}

// load reads the record when it is not known, or may not be what was saved.
func (a *agent) load(ctx context.Context) error {
	if a.loaded {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	data, err := a.Store.Load(ctx)
	if err != nil {
		return err
	}
	r, err := parseRecord(data)
	if err != nil {
		return err
	}
	if len(r.ClaimKey) > 0 {
		if a.claim, err = registration.ParseClaimKey(r.ClaimKey); err != nil {
			return fmt.Errorf("%w: %w", errRecord, err)
		}
	}
	// A clock that has been set back since must not make a credential look younger than it can be.
	if now := a.Clock.Now(); r.Member != nil && r.Member.Credential.Since.After(now) {
		m := *r.Member
		m.Credential.Since, r.Member = now, &m
	}
	a.record, a.loaded = r, true
	if a.connection != nil && r.Member != nil && !r.Member.Credential.same(a.connection.member.Credential.material()) {
		return a.connection.swap(r.Member.Credential, a.claim) // it was saved, and nobody told
	}
	return nil
}

// save writes down what change makes of the record. After an error nobody knows what was written, so the record
// is read again before anything else is done.
func (a *agent) save(ctx context.Context, change func(*record)) error {
	next := a.record
	change(&next)
	data, err := next.marshal()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	a.loaded = false
	if err := a.Store.Save(ctx, data); err != nil {
		return err
	}
	a.record, a.loaded = next, true
	return nil
}

// see takes in what was seen of the Membership meanwhile.
func (a *agent) see() {
	if a.follower == nil {
		return
	}
	if s := a.follower.take(); s != nil {
		a.saw(*s)
	}
}

// saw replaces what is known of the hub.
func (a *agent) saw(s sighting) {
	if s.sight == lifecycle.HubSeen && a.membership != nil && older(s.membership.ResourceVersion, a.membership.ResourceVersion) {
		return // a watch that lags behind the answer to a write
	}
	a.sight, a.membership = s.sight, s.membership
	if s.sight != lifecycle.HubSeen {
		a.unfollow()
		return
	}
	a.door.forget()
	a.connection.beater.SetPeriod(period(s.membership))
	if asked := a.record.Renewal; renewalState(asked, s.membership) == lifecycle.RenewalRefused {
		a.refuse(asked.ID, s.membership.Spec.Renewal.Refused)
	}
}

func older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

func period(m *v1alpha1.Membership) time.Duration {
	return time.Duration(m.Spec.HeartbeatPeriodSeconds) * time.Second
}

// observe puts together all that the decision depends on.
func (a *agent) observe() lifecycle.AgentObserved {
	o := lifecycle.AgentObserved{
		Now: a.Clock.Now(), Record: a.record.flags(), Door: a.door.sight,
		Hub: a.sight, Beating: a.connection != nil && a.connection.beating(), Member: a.cleaned,
	}
	if m := a.membership; m != nil {
		o.Membership = lifecycle.MembershipSeen{
			State: m.Spec.State, Rejoin: m.Spec.Rejoin, Clean: m.Spec.Clean, Report: reported(m.Status, a.claim.Fingerprint()),
		}
		o.PolicySaved = a.record.Leave != nil && *a.record.Leave == m.Spec.Leave
		o.Renewal = renewalState(a.record.Renewal, m)
	}
	if a.record.Member != nil {
		o.RenewAt = a.record.Member.Credential.renewAt(a.claim.Fingerprint())
		if a.refused.id != "" {
			o.RenewAt = askAgainAt(a.refused.at, a.record.Member.Credential.Lifetime)
		}
	}
	if o.Renewal == lifecycle.RenewalAsked {
		a.asked = o.Now
	}
	return o
}

// show tells everybody who is interested of a step that is not like the one before.
func (a *agent) show(step lifecycle.AgentStep) {
	switch {
	case a.door.why == "", a.door.sight == lifecycle.DoorUnreachable: // or the port of each try would be news
	case step.Phase == lifecycle.Registering, step.Phase == lifecycle.Rejected:
		step.Message += " (" + a.door.why + ")"
	}
	before := a.shown
	if a.shown = step; step.Phase == before.Phase && step.Message == before.Message && step.Done == before.Done {
		return
	}
	a.log.Info(step.Message, "phase", step.Phase, "before", before.Phase)
	if step.Phase != before.Phase {
		a.events.phase(step)
	}
	a.OnPhase(step)
}

// wait waits until there is something to look at.
func (a *agent) wait(ctx context.Context, step lifecycle.AgentStep) {
	timer := a.Clock.NewTimer(step.After)
	defer timer.Stop()
	var news, facts <-chan struct{}
	if a.follower != nil {
		news = a.follower.news
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
			a.metrics.beat(status)
			if err := status.LastError; err == nil || !refusal(err) && !notFound(err) {
				continue
			}
			// RBAC that is taken away ends no watch that is open: look again.
			if err := a.readMembership(ctx); err != nil && !errors.Is(err, context.Canceled) {
				a.log.V(1).Info("The heartbeat was refused, and so was a look at the Membership.", "error", err.Error())
			}
		}
		return
	}
}
