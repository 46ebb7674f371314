package push

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/internal/requiredkinds"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/fleet"
	"github.com/muster-sdk/muster/membership/internal/clusterid"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// Options are the options of a Runner. The zero value of each field is its documented default.
type Options struct {
	// Agent returns the options of the agent of a member, for example its Companions, Cleaners, Collectors, intervals and
	// Version. It is called at each start of an agent and must be safe for concurrent use. The runner sets Name,
	// ClusterID, Labels, Member, Bootstrap and Store itself, and Log if it is not set; HubConfig is called after the
	// runner has set the connection to the hub. Default: an agent that joins, sends heartbeats and leaves.
	Agent func(member fleet.Connected) agent.Options

	// RegistrationNamespace is the option of the same name of package hub. Default: [membership.RegistrationNamespace].
	RegistrationNamespace string

	// StoreNamespace is the namespace of the state of agents, one Secret for each. A user who can read these Secrets can
	// act as the members. It must exist. Default: [membership.ConnectionNamespace].
	StoreNamespace string
}

// A Runner runs the agents of members with spec.joinMode Push. It implements [fleet.Runner]. Its methods are safe for
// concurrent use.
type Runner struct {
	options  Options
	hub      *rest.Config // the address of the hub, without a credential
	client   client.Client
	secrets  corev1client.SecretInterface // in StoreNamespace
	clusters cache.Cache
	ids      *clusterid.Reserver
	bells    bells
}

var _ fleet.Runner = (*Runner)(nil)

// New returns a runner for the hub of the manager and adds a cache of MemberClusters to the manager. It does not start
// the manager. The manager's scheme must contain membership/v1alpha1. The error names the failed step.
func New(mgr manager.Manager, o Options) (*Runner, error) {
	if err := requiredkinds.Check(mgr.GetScheme(), v1alpha1.GroupVersion.WithKind("MemberCluster")); err != nil {
		return nil, err
	}
	if o.RegistrationNamespace == "" {
		o.RegistrationNamespace = membership.RegistrationNamespace
	}
	if o.StoreNamespace == "" {
		o.StoreNamespace = membership.ConnectionNamespace
	}
	if o.Agent == nil {
		o.Agent = func(fleet.Connected) agent.Options { return agent.Options{} }
	}
	// Wrappers of the manager's config may authenticate, but agents authenticate as members.
	r := &Runner{options: o, hub: rest.AnonymousClientConfig(mgr.GetConfig())}
	server, _, err := rest.DefaultServerUrlFor(mgr.GetConfig())
	if err != nil {
		return nil, fmt.Errorf("determine the address of the hub: %w", err)
	}
	r.hub.Host = server.String()
	if r.client, err = client.New(mgr.GetConfig(),
		client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()}); err != nil {
		return nil, fmt.Errorf("create a client for the hub: %w", err)
	}
	r.ids = clusterid.NewReserver(r.client, r.client)
	core, err := corev1client.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("create a client for Secrets: %w", err)
	}
	r.secrets = core.Secrets(o.StoreNamespace)
	r.clusters, err = cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultTransform: cache.TransformStripManagedFields(),
	})
	if err != nil {
		return nil, fmt.Errorf("create a cache of MemberClusters: %w", err)
	}
	return r, r.listen(mgr)
}

// listen notifies the bells of every change of a MemberCluster.
func (r *Runner) listen(mgr manager.Manager) error {
	informer, err := r.clusters.GetInformer(context.Background(), &v1alpha1.MemberCluster{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch MemberClusters: %w", err)
	}
	ring := func(object any) {
		if name, err := toolscache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
			r.bells.ring(name)
		}
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: ring, UpdateFunc: func(_, object any) { ring(object) }, DeleteFunc: ring,
	})
	if err != nil {
		return fmt.Errorf("watch MemberClusters: %w", err)
	}
	if err := mgr.Add(r.clusters); err != nil {
		return fmt.Errorf("add the cache of MemberClusters to the manager: %w", err)
	}
	return nil
}

// Name returns "push".
func (r *Runner) Name() string { return "push" }

// Run runs the agent of a member while the member has joined or must join, and waits otherwise. It returns nil when the
// context has ended, the MemberCluster is deleted, or its join mode is not Push.
func (r *Runner) Run(ctx context.Context, connected fleet.Connected) error {
	if connected.Cluster.Spec.JoinMode != v1alpha1.JoinPush {
		return nil
	}
	m := r.member(connected)
	changed, done := r.bells.listen(m.name)
	defer done()
	if !r.clusters.WaitForCacheSync(ctx) {
		return nil // the context has ended
	}
	for ctx.Err() == nil {
		seen, err := m.observe(ctx)
		if err != nil {
			return unlessEnded(ctx, err)
		}
		switch next(seen) {
		case serving:
			if err := m.serve(ctx, seen, changed); err != nil {
				return unlessEnded(ctx, err)
			}
			continue
		case forgetting:
			if err := m.forget(ctx); err != nil {
				return unlessEnded(ctx, err)
			}
			if seen.cluster == nil {
				return nil
			}
		default:
			if err := m.withdraw(ctx); err != nil {
				return unlessEnded(ctx, err)
			}
		}
		select {
		case <-ctx.Done():
		case <-changed:
		}
	}
	return nil
}

// unlessEnded returns err, or nil if the context has ended.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return nil
}

// cluster returns the current MemberCluster; nil: it is deleted, or another one has its name. A missing object is
// verified by a live read, because the cache may be older than that of the fleet.
func (r *Runner) cluster(ctx context.Context, name string, uid types.UID) (*v1alpha1.MemberCluster, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	for _, reader := range []client.Reader{r.clusters, r.client} {
		cluster := &v1alpha1.MemberCluster{}
		if err := reader.Get(ctx, client.ObjectKey{Name: name}, cluster); client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("read MemberCluster %s: %w", name, err)
		} else if err == nil && cluster.UID == uid {
			return cluster, nil
		}
	}
	return nil, nil
}

// bells notify listeners of changes of MemberClusters. The zero value is ready for use.
type bells struct {
	mu     sync.Mutex
	byName map[string]chan struct{} // each has room for one
}

// listen returns a channel that receives a value when the MemberCluster changes, until done is called. Each name has
// one listener.
func (b *bells) listen(name string) (rung <-chan struct{}, done func()) {
	bell := make(chan struct{}, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.byName == nil {
		b.byName = map[string]chan struct{}{}
	}
	b.byName[name] = bell
	return bell, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.byName[name] == bell {
			delete(b.byName, name)
		}
	}
}

func (b *bells) ring(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case b.byName[name] <- struct{}{}:
	default: // no listener, or already notified
	}
}
