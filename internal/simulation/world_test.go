package simulation

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/muster-sdk/muster/assembly"
	"github.com/muster-sdk/muster/internal/storeversion"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/registration"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/apiserver"
	workcrds "github.com/muster-sdk/muster/work/crds"
)

func TestMain(m *testing.M) {
	flag.Parse()
	debug.SetGCPercent(300) // A simulation allocates much memory and keeps little.
	ctrl.SetLogger(logr.Discard())
	// The default handlers sleep until a time that is kept in a global variable, which belongs to an earlier bubble.
	utilruntime.ErrorHandlers = nil //nolint:reassign // The default handlers keep a time of an earlier bubble.
	os.Exit(m.Run())
}

const (
	hubUser   = "muster-hub"
	agentUser = "muster-agent"
	userSpace = "apps" // the namespace of the users' objects, on the hub and on members

	secondSpace = "more" // another namespace of users on the hub
)

// world is a hub, its members, and the state of the simulation.
type world struct {
	t        *testing.T
	ctx      context.Context
	seed     uint64
	random   *rand.Rand // of users and disasters
	h        *history
	net      *network
	scheme   *runtime.Scheme
	hub      *apiserver.Server
	admin    client.Client
	replicas []*process // of the hub
	members  []*member
	mutant   mutant
	intent   *intent
	backups  []snapshot
	tokens   int
	clock    *jumpingClock // of the hub

	calmSince time.Duration
	skew      time.Duration // how far clocks were ahead in this round

	replicated    bool       // the hub has two replicas
	clusterScope  bool       // the second space is that of ClusterPlacements and ClusterWorkSets
	killedAtStart []*process // processes that were killed before their caches were synced

	other         *apiserver.Server // another hub; nil: it does not exist yet
	otherProcess  *process
	otherJoinYAML []byte
}

// member is a cluster with an agent.
type member struct {
	name              string
	server            *apiserver.Server
	admin             client.Client
	process           *process
	backup            *snapshot
	otherHubInstalled bool // the member has the join.yaml of another hub
	rejoined          bool // the member has a join.yaml that was created after the last faults
	clock             *jumpingClock
}

func resourceOf(a mustertest.Attributes) schema.GroupResource {
	return schema.GroupResource{Group: a.Group, Resource: a.Resource}
}

func newScheme() *runtime.Scheme {
	return mustertest.Scheme(assembly.AddToScheme, apiextensionsv1.AddToScheme)
}

// newWorld starts a hub and its members. It must be called in a bubble, and the world closed in it.
func newWorld(t *testing.T, h *history, seed uint64, members int, planted mutant) *world {
	t.Helper()
	h.began = time.Now()
	w := &world{
		t: t, ctx: t.Context(), seed: seed, random: rand.New(rand.NewPCG(seed, 1)), h: h, net: newNetwork(seed, h),
		scheme: newScheme(), mutant: planted, clock: &jumpingClock{}, replicated: seed%3 == 0,
		clusterScope: seed%4 == 3,
	}
	w.intent = newIntent(w)
	w.hub, w.admin = w.newServer("hub", nil)
	w.prepareHub(w.admin)
	w.startHub()
	joinYAML := w.token(w.admin, "first")
	for i := range members {
		m := w.newMember(fmt.Sprint("m", i))
		w.members = append(w.members, m)
		w.install(m, joinYAML)
		w.startAgent(m)
	}
	return w
}

// prepareHub installs the definitions, namespaces and roles of a hub.
func (w *world) prepareHub(admin client.Client) {
	w.t.Helper()
	require.NoError(w.t, assembly.InstallHubDefinitions(w.ctx, admin))
	for _, name := range []string{membership.RegistrationNamespace, userSpace, secondSpace} {
		w.create(admin, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	for _, folder := range []string{"membership/hub", "placement", "placement/workset", "addon", "addon/leave",
		"work/leave"} {
		require.NoError(w.t, mustertest.GrantFiles(w.ctx, admin, hubUser, "../../"+folder+"/rbac/role.yaml"))
	}
	// For the leader election of the manager, which the product configures.
	require.NoError(w.t, mustertest.Grant(w.ctx, admin, hubUser, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "leader-election"},
		Rules: []rbacv1.PolicyRule{
			{
				APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"},
				Verbs: []string{"get", "create", "update"},
			},
			{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
		},
	}))
}

func (w *world) newServer(name string, observe func(apiserver.Change)) (*apiserver.Server, client.Client) {
	s, err := apiserver.New(apiserver.Options{Name: name, Seed: w.seed, Observe: observe})
	require.NoError(w.t, err)
	c, err := client.New(s.Admin(), client.Options{Scheme: w.scheme})
	require.NoError(w.t, err)
	return s, c
}

func (w *world) create(c client.Client, o client.Object) {
	w.t.Helper()
	require.NoError(w.t, client.IgnoreAlreadyExists(c.Create(w.ctx, o)))
}

func (w *world) newMember(name string) *member {
	m := &member{name: name, clock: &jumpingClock{}}
	m.server, m.admin = w.newServer(name, func(change apiserver.Change) { w.intent.observe(m.name, change) })
	require.NoError(w.t, workcrds.InstallOnMember(w.ctx, m.admin))
	for _, name := range []string{agent.DefaultNamespace, userSpace} {
		w.create(m.admin, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	for _, folder := range []string{"membership/agent", "work/agent"} {
		require.NoError(w.t, mustertest.GrantFiles(w.ctx, m.admin, agentUser, "../../"+folder+"/rbac/role.yaml"))
	}
	// The administrator of a member allows these objects in Works.
	require.NoError(w.t, mustertest.Grant(w.ctx, m.admin, agentUser, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "content"},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"configmaps", "namespaces"}, Verbs: []string{"*"}},
			{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"*"}},
		},
	}))
	return m
}

// A jumpingClock is the clock of a process, which may be wrong; see setClock.
type jumpingClock struct {
	clock.RealClock

	offset atomic.Int64
}

func (c *jumpingClock) Now() time.Time { return time.Now().Add(time.Duration(c.offset.Load())) }

func (c *jumpingClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// A process is one run of a hub or an agent.
type process struct {
	mu     sync.Mutex
	gate   chan struct{} // closed when a pause ends; nil: the process is not paused
	w      *world
	dead   atomic.Bool
	synced atomic.Bool // whether the caches of the process are synced
	cancel context.CancelFunc
	ended  chan struct{}
}

func (w *world) run(name string, start func(context.Context, *process) error) *process {
	ctx, cancel := context.WithCancel(w.ctx)
	p := &process{w: w, cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		for {
			err := start(ctx, p)
			if ctx.Err() != nil {
				return
			}
			if _, restored := errors.AsType[*storeversion.RewoundError](err); !restored {
				w.h.note("%s ended: %v", name, err)
			}
			if sleep(ctx, 5*time.Second) != nil { // as a Deployment restarts it
				return
			}
		}
	}()
	return p
}

// observe notes when the caches of the process are synced: a manager starts other runnables after that.
func (p *process) observe(mgr manager.Manager) error {
	p.synced.Store(false)
	return mgr.Add(afterCaches{p})
}

type afterCaches struct{ *process }

func (a afterCaches) Start(context.Context) error { a.synced.Store(true); return nil }

func (a afterCaches) NeedLeaderElection() bool { return false }

// pause suspends a process at its requests.
func (p *process) pause() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gate = make(chan struct{})
}

func (p *process) resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gate != nil {
		close(p.gate)
	}
	p.gate = nil
}

// await waits while the process is paused, and reports whether the process was paused.
func (p *process) await() bool {
	p.mu.Lock()
	gate := p.gate
	p.mu.Unlock()
	if gate == nil {
		return false
	}
	<-gate
	return true
}

// stop ends a process in order, and waits for its end.
func (p *process) stop() {
	p.cancel()
	<-p.ended
}

// kill ends a process at once: no further request of the process arrives.
func (p *process) kill() {
	p.dead.Store(true)
	p.resume()
	if !p.synced.Load() {
		// A manager whose context ends before its caches are synced does not end. close ends the manager.
		p.w.killedAtStart = append(p.w.killedAtStart, p)
		return
	}
	p.stop()
}

func (w *world) managerOptions(name string) manager.Options {
	return manager.Options{
		Scheme: w.scheme, Logger: w.logger(name), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)},
	}
}

func (w *world) logger(name string) logr.Logger {
	if os.Getenv("MUSTER_TEST_LOGS") == "" {
		return logr.Discard()
	}
	return funcr.New(func(prefix, args string) { w.h.note("LOG %s %s", prefix, args) }, funcr.Options{}).WithName(name)
}

// startHub starts the replicas of the hub: two with leader election, or one without.
func (w *world) startHub() {
	if w.replicated {
		w.replicas = []*process{w.runHub("hub-0", w.hub), w.runHub("hub-1", w.hub)}
		return
	}
	w.replicas = []*process{w.runHub("hub", w.hub)}
}

func (w *world) killHub() {
	for _, p := range w.replicas {
		p.kill()
	}
}

// startOther starts another hub, with a JoinToken with automatic acceptance.
func (w *world) startOther() {
	server, admin := w.newServer("other", nil)
	w.other = server
	w.prepareHub(admin)
	w.otherProcess = w.runHub("other", server)
	w.otherJoinYAML = w.token(admin, "other")
}

func (w *world) runHub(name string, server *apiserver.Server) *process {
	return w.run(name, func(ctx context.Context, p *process) error {
		wire := &wire{n: w.net, process: name, server: "hub", run: p, mutant: w.mutant.hub}
		if server != w.hub {
			wire.server = name
		}
		cfg := server.Config(hubUser)
		cfg.Wrap(wire.wrap)
		managed := w.managerOptions(name)
		if w.replicated && server == w.hub {
			managed.LeaderElection, managed.LeaderElectionID = true, "muster-hub"
			managed.LeaderElectionNamespace = membership.RegistrationNamespace
			managed.LeaseDuration, managed.RenewDeadline = new(time.Minute), new(40*time.Second)
			managed.RetryPeriod = new(10 * time.Second)
		}
		mgr, err := manager.New(cfg, managed)
		if err != nil {
			return err
		}
		o := assembly.HubOptions{SkipDefinitions: true, Without: []assembly.Part{assembly.PartTenancy}}
		o.Membership.Server, o.Membership.CA = server.URL(), server.CertificateAuthority()
		o.Membership.Clock, o.Placement.Clock, o.WorkSets.Clock, o.Addons.Clock = w.clock, w.clock, w.clock, w.clock
		if w.mutant.options != nil {
			w.mutant.options(&o)
		}
		if err := assembly.SetupHub(ctx, mgr, o); err != nil {
			return err
		}
		if err := p.observe(mgr); err != nil {
			return err
		}
		return mgr.Start(ctx)
	})
}

func (w *world) startAgent(m *member) {
	name := "agent-" + m.name
	m.process = w.run(name, func(ctx context.Context, p *process) error {
		ctx, end := context.WithCancel(ctx)
		defer end()
		home := &wire{
			n: w.net, process: name, server: m.name, run: p, mutant: w.mutant.member,
			// The agent lists every kind that it may list when it searches for objects without an AppliedWork.
			allowed: func(a mustertest.Attributes, _ string) bool { return a.Verb == "list" },
		}
		cfg := m.server.Config(agentUser)
		cfg.Wrap(home.wrap)
		mgr, err := manager.New(cfg, w.managerOptions(name))
		if err != nil {
			return err
		}
		away := &wire{
			n: w.net, process: name, server: "hub", run: p, mutant: w.mutant.agent,
			allowed: func(mustertest.Attributes, string) bool { return w.intent.mayBeRefused(m.name) },
		}
		other := *away
		other.server = "other"
		o := assembly.AgentOptions{Membership: agent.Options{Name: m.name, HubConfig: func(c *rest.Config) {
			if w.other != nil && c.Host == w.other.URL() {
				c.Dial = w.other.DialContext
				c.Wrap(other.wrap)
				return
			}
			c.Dial = w.hub.DialContext
			c.Wrap(away.wrap)
		}}}
		o.Membership.Clock = m.clock
		o.Membership.KeepBootstrap = true // No user gives a member of a restored hub another JoinToken.
		o.Membership.OnPhase = func(step lifecycle.AgentStep) {
			if step.Done {
				end() // The program of examples/agent also ends, and then waits for the next join.yaml.
			}
		}
		o.Membership.Log, o.Works.Log = w.logger(name), w.logger(name+"-works")
		if w.mutant.agentOptions != nil {
			w.mutant.agentOptions(&o)
		}
		if err := assembly.SetupAgent(ctx, mgr, o); err != nil {
			return err
		}
		if err := p.observe(mgr); err != nil {
			return err
		}
		return mgr.Start(ctx)
	})
}

// close ends all processes and servers, so that the bubble can end.
func (w *world) close() {
	w.net.chaotic.Store(false)
	w.heal()
	w.killHub()
	for _, m := range w.members {
		if m.process != nil {
			m.process.kill()
		}
	}
	if w.other != nil {
		w.otherProcess.kill()
	}
	for _, p := range w.killedAtStart {
		p.dead.Store(false)
		for range 600 {
			if p.synced.Load() {
				break
			}
			w.wait(time.Second)
		}
		p.kill()
	}
	if w.replicated {
		w.wait(10 * time.Minute) // leader election leaves a goroutine that repeats its Event
	}
	for _, m := range w.members {
		m.server.Close()
	}
	if w.other != nil {
		w.other.Close()
	}
	w.hub.Close()
}

// token returns the join.yaml of a JoinToken with automatic acceptance.
func (w *world) token(admin client.Client, name string) []byte {
	w.t.Helper()
	token := &membershipv1alpha1.JoinToken{
		ObjectMeta: metav1.ObjectMeta{Namespace: membership.RegistrationNamespace, Name: name},
		Spec:       membershipv1alpha1.JoinTokenSpec{AutoAccept: true},
	}
	w.create(admin, token)
	var secret corev1.Secret
	w.until("JoinToken "+name+" has a credential", 5*time.Minute, func() error {
		if err := admin.Get(w.ctx, client.ObjectKeyFromObject(token), &secret); err != nil {
			return err
		}
		_, err := registration.ParseBootstrap(secret.Data[registration.BootstrapKey])
		return err
	})
	return secret.Data[registration.BootstrapKey]
}

// install stores a join.yaml where the agent reads it.
func (w *world) install(m *member, joinYAML []byte) {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: agent.DefaultNamespace, Name: agent.DefaultBootstrapSecret},
		Data:       map[string][]byte{registration.BootstrapKey: joinYAML},
	}
	require.NoError(w.t, client.IgnoreNotFound(m.admin.Delete(w.ctx, secret.DeepCopy())))
	require.NoError(w.t, m.admin.Create(w.ctx, secret))
}

// hasJoinYAML reports whether a member has a join.yaml. The agent of a member that has left has removed the join.yaml.
func (w *world) hasJoinYAML(m *member) bool {
	key := client.ObjectKey{Namespace: agent.DefaultNamespace, Name: agent.DefaultBootstrapSecret}
	return m.admin.Get(w.ctx, key, &corev1.Secret{}) == nil
}

// joined returns nil if the member has joined and is healthy.
func (w *world) joined(name string) error {
	var cluster membershipv1alpha1.MemberCluster
	if err := w.admin.Get(w.ctx, client.ObjectKey{Name: name}, &cluster); err != nil {
		return err
	}
	conditions := cluster.Status.Conditions
	if cluster.DeletionTimestamp == nil && meta.IsStatusConditionTrue(conditions, membershipv1alpha1.ConditionJoined) &&
		meta.IsStatusConditionTrue(conditions, membershipv1alpha1.ConditionHealthy) {
		return nil
	}
	var all []string
	for _, c := range conditions {
		all = append(all, fmt.Sprintf("%s=%s %s", c.Type, c.Status, c.Message))
	}
	return fmt.Errorf("MemberCluster %s: phase %s: %s", name, cluster.Status.Phase, strings.Join(all, "; "))
}

// until polls in virtual time, and reports a violation after the limit.
func (w *world) until(expected string, limit time.Duration, check func() error) bool {
	w.t.Helper()
	var err error
	for began := time.Now(); time.Since(began) < limit; <-time.After(time.Second) { // virtual
		if err = check(); err == nil {
			return true
		}
	}
	w.h.violated("%s: not within %s: %v", expected, limit, err)
	return false
}

// A mutant is a planted bug. The zero value is none.
type mutant struct {
	name               string
	foundBy            uint64                                    // a seed
	hub, agent, member func(http.RoundTripper) http.RoundTripper // wrap the clients of the hub, and of agents
	options            func(*assembly.HubOptions)
	agentOptions       func(*assembly.AgentOptions)
}
