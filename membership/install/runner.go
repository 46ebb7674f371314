package install

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/fleet"
	"github.com/muster-sdk/muster/membership/internal/clusterid"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/registration/jointoken"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// Name of the [Runner], as a fleet's runner and as a gate.
const Name = "install"

// Defaults of [Options].
const (
	// DefaultTimeout is the default timeout of one installation.
	DefaultTimeout = 5 * time.Minute
	// DefaultTokenTTL is the default time that an installed agent has to join.
	DefaultTokenTTL = time.Hour
	// DefaultConcurrent is how many agents are installed again concurrently by default.
	DefaultConcurrent = 5
	// DefaultHealthyWithin is the default time in which an agent must become healthy after it was installed again.
	DefaultHealthyWithin = 10 * time.Minute
)

const (
	// uninstallTimeout is how long a leave waits for the removal of the installed objects. The agent has reached the hub
	// a moment ago, so a hub that cannot reach the member within this time probably has no access any more.
	uninstallTimeout = time.Minute
	// conflictPause is how long to wait for the cache to show the write of another client.
	conflictPause = time.Second
	// requestTimeout is the timeout of requests to the hub.
	requestTimeout = 30 * time.Second
)

// Options of a [Runner].
type Options struct {
	// Installer installs the agent on a member. Required.
	Installer Installer

	// Server and CA are the address at which agents reach this hub, and its certificate authority, as in the Options of
	// package hub. Empty: those of the manager's config.
	Server string
	CA     []byte
	// RegistrationNamespace is the namespace of JoinTokens. Empty: membership.RegistrationNamespace.
	RegistrationNamespace string

	// Timeout limits one installation, and one removal. Zero: [DefaultTimeout].
	Timeout time.Duration
	// TokenTTL is the lifetime of the bootstrap credential of an installed agent, in whole seconds. If the agent has not
	// joined by then, it is installed again with another credential. Zero: [DefaultTokenTTL].
	TokenTTL time.Duration
	// Concurrent is how many agents may be in progress after a change of the revision: from the installation of an agent
	// until it is healthy, or has failed. The first agent is installed alone, and none is installed while one has failed.
	// First installations and requested ones are not limited. Zero: [DefaultConcurrent].
	Concurrent int
	// HealthyWithin is the time in which an agent must become healthy after it was installed again, at least four of its
	// heartbeat periods. Zero: [DefaultHealthyWithin].
	HealthyWithin time.Duration
	// Clock is the source of time. Nil: the system clock.
	Clock clock.Clock
}

// A Runner installs the agents of members whose joinMode is Install. Add it to the Runners of a fleet, and as the last
// of the Gates of the hub, so that a leave waits until the installed objects are removed.
type Runner struct {
	Options

	hub      registration.Bootstrap // the common part of all bootstraps
	hash     string
	cached   client.Reader
	live     client.Reader
	client   client.Client
	ids      *clusterid.Reserver
	recorder events.EventRecorder
	rollout  rollout
	synced   toolscache.InformerSynced // nil: the rollout contains all members

	mu      sync.Mutex
	members map[types.UID]*member
}

var (
	_ fleet.Runner         = &Runner{}
	_ membership.LeaveGate = &Runner{}
)

// member is the state of a member in a Runner. All of it can be rebuilt.
type member struct {
	// wake receives a value when the member must be observed.
	wake chan struct{}
	// noToken: the member has no JoinToken.
	noToken bool
	// since is the time at which its leave began to wait for the removal; zero: it does not wait. Guarded by the Runner's
	// mu.
	since time.Time
	// gaveUp: the installed objects stay. Guarded by the Runner's mu.
	gaveUp bool
}

// New returns a Runner for a manager of the hub. It reads MemberClusters from the manager's cache, which must contain
// all of them, and the manager's scheme must contain membership/v1alpha1. The permissions that it needs on the hub are
// in the folder rbac. The error names the invalid option.
func New(mgr manager.Manager, o Options) (*Runner, error) {
	if o.Installer == nil {
		return nil, &membership.InvalidError{Field: "Installer", Problem: "must be set"}
	}
	if o.TokenTTL < 0 || o.TokenTTL%time.Second != 0 {
		return nil, &membership.InvalidError{Field: "TokenTTL", Problem: "must be in whole seconds"}
	}
	if o.Concurrent < 0 {
		return nil, &membership.InvalidError{Field: "Concurrent", Problem: "must not be negative"}
	}
	if o.Concurrent == 0 {
		o.Concurrent = DefaultConcurrent
	}
	if o.HealthyWithin <= 0 {
		o.HealthyWithin = DefaultHealthyWithin
	}
	if o.RegistrationNamespace == "" {
		o.RegistrationNamespace = membership.RegistrationNamespace
	}
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.TokenTTL == 0 {
		o.TokenTTL = DefaultTokenTTL
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	hub, err := jointoken.HubFor(mgr.GetConfig(),
		jointoken.Options{Server: o.Server, CA: o.CA, Namespace: o.RegistrationNamespace})
	if err != nil {
		return nil, fmt.Errorf("set up the installation of agents: %w", err)
	}
	r := &Runner{
		Options: o, hub: hub, hash: hashOf(hub, o.Installer),
		cached: mgr.GetCache(), live: mgr.GetAPIReader(), client: mgr.GetClient(),
		ids:      clusterid.NewReserver(mgr.GetAPIReader(), mgr.GetClient()),
		recorder: mgr.GetEventRecorder("muster-install"), members: map[types.UID]*member{},
	}
	informer, err := mgr.GetCache().GetInformer(context.Background(), &v1alpha1.MemberCluster{},
		cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("set up the installation of agents: watch MemberClusters: %w", err)
	}
	r.rollout.hash, r.rollout.concurrent, r.rollout.call = r.hash, o.Concurrent, r.wake
	registered, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    r.changed,
		UpdateFunc: func(_, object any) { r.changed(object) },
		DeleteFunc: r.deleted,
	})
	if err != nil {
		return nil, fmt.Errorf("set up the installation of agents: watch MemberClusters: %w", err)
	}
	r.synced = registered.HasSynced
	return r, nil
}

// Name returns [Name].
func (r *Runner) Name() string { return Name }

// Run installs the agent of a member whenever required, until its context ends. It reports a failure in the condition
// Installed, and returns it.
func (r *Runner) Run(ctx context.Context, connected fleet.Connected) error {
	if connected.Cluster.Spec.JoinMode != v1alpha1.JoinInstall {
		return r.retire(ctx, connected.Cluster)
	}
	m := r.memberState(connected.Cluster.UID)
	m.noToken = false // another replica may have created one
	if r.synced != nil && !toolscache.WaitForCacheSync(ctx.Done(), r.synced) {
		return nil
	}
	r.rollout.run(connected.Cluster, true)
	defer r.rollout.run(connected.Cluster, false)
	for {
		after, err := r.step(ctx, m, connected)
		if apierrors.IsConflict(err) {
			after, err = conflictPause, nil
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
		if !r.wait(ctx, m, after) {
			return nil
		}
	}
}

// wait waits for a change of a member, and returns false if the context has ended.
func (r *Runner) wait(ctx context.Context, m *member, after time.Duration) bool {
	var due <-chan time.Time
	if after > 0 {
		timer := r.Clock.NewTimer(after)
		defer timer.Stop()
		due = timer.C()
	}
	select {
	case <-ctx.Done():
		return false
	case <-m.wake:
	case <-due:
	}
	return true
}

// step observes, decides, acts and reports once. It uses the caches first, which is sufficient if there is no action.
func (r *Runner) step(ctx context.Context, m *member, connected fleet.Connected) (time.Duration, error) {
	var s step
	var seen observed
	var cluster *v1alpha1.MemberCluster
	for _, from := range []client.Reader{r.cached, r.live} {
		var err error
		if seen, cluster, err = r.observe(ctx, from, m, connected.Cluster); err != nil || cluster == nil {
			return 0, err
		}
		s = next(seen)
		if s.Action == idle && hasCondition(cluster, s.Condition) {
			return s.After, nil
		}
	}
	target := Target{Cluster: cluster, Config: connected.Config}
	if s.Action == check {
		seen.Install.Runs = r.check(ctx, target)
		s = next(seen)
	}
	if s.Condition != nil {
		if err := r.report(ctx, cluster, s.Condition, cluster.Status.Install); err != nil {
			return 0, err
		}
	}
	switch s.Action {
	case install:
		return 0, r.install(ctx, m, target, s)
	case uninstall:
		return 0, r.uninstall(ctx, m, target)
	case discard:
		return 0, r.discard(ctx, m, cluster)
	default:
		return s.After, nil
	}
}

func (r *Runner) memberState(uid types.UID) *member {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.members[uid]
	if m == nil {
		m = &member{wake: make(chan struct{}, 1)}
		r.members[uid] = m
	}
	return m
}

func (m *member) notify() {
	select {
	case m.wake <- struct{}{}:
	default: // a signal is pending
	}
}

// changed wakes the goroutine of a member, if it exists.
func (r *Runner) changed(object any) {
	if cluster, ok := object.(*v1alpha1.MemberCluster); ok {
		r.rollout.observe(cluster)
		r.wake(cluster.UID)
	}
}

func (r *Runner) wake(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m := r.members[uid]; m != nil {
		m.notify()
	}
}

// deleted removes the state of a deleted member.
func (r *Runner) deleted(object any) {
	if unknown, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	if cluster, ok := object.(*v1alpha1.MemberCluster); ok {
		r.rollout.forget(cluster.UID)
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.members, cluster.UID)
	}
}
