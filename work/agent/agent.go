package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/muster-sdk/muster/internal/tracing"
	"github.com/muster-sdk/muster/work/apply"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// An Agent applies the Works of one member, reports their status, and deletes their objects on request.
type Agent struct {
	options Options

	hub     hubConnection
	member  memberConnection
	engines *engines
	watches *watches
	events  *recorder
	metrics *metrics

	mu      sync.Mutex
	queue   workqueue.TypedRateLimitingInterface[reconcile.Request]
	states  map[string]*state // by the name of the Work
	orphans orphanCounts
}

// hubConnection reads and writes Works.
type hubConnection struct {
	client.Client
	cache     cache.Cache
	discovery discovery.DiscoveryInterface
}

// memberConnection reads and writes AppliedWorks, and finds the objects of Works.
type memberConnection struct {
	client.Client
	cache  cache.Cache // of the AppliedWorks of this hub
	marked *markedObjects

	statuses *statusKinds
}

// New returns an agent. It sends no request until it is started.
func New(o Options) (*Agent, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	a := &Agent{options: o, states: map[string]*state{}, orphans: orphanCounts{works: map[string]int{}}}
	if err := a.connectHub(scheme); err != nil {
		return nil, fmt.Errorf("create the client of the hub: %w", err)
	}
	if err := a.connectMember(scheme); err != nil {
		return nil, fmt.Errorf("create the client of the member: %w", err)
	}
	if a.metrics, err = newMetrics(); err != nil {
		return nil, err
	}
	return a, nil
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	return scheme, v1alpha1.AddToScheme(scheme)
}

func (a *Agent) connectHub(scheme *runtime.Scheme) error {
	config, httpClient, err := connection(a.options.Hub)
	if err != nil {
		return err
	}
	guarded := breaker{next: httpClient.Transport}
	bounded := &http.Client{Transport: &guarded, Timeout: requestTimeout}
	// The client reads only these two kinds, so it needs no discovery of the hub.
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{v1alpha1.GroupVersion, corev1.SchemeGroupVersion})
	mapper.Add(v1alpha1.GroupVersion.WithKind("Work"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	if a.hub.discovery, err = discovery.NewDiscoveryClientForConfigAndClient(config, bounded); err != nil {
		return err
	}
	options := client.Options{HTTPClient: bounded, Scheme: scheme, Mapper: mapper}
	if a.hub.Client, err = client.New(config, options); err != nil {
		return err
	}
	if a.events, err = newRecorder(config, bounded, scheme); err != nil {
		return err
	}
	a.hub.cache, err = cache.New(config, cache.Options{
		HTTPClient: httpClient, Scheme: scheme, Mapper: mapper,
		// Informers of DefaultNamespaces keep goroutines if the agent is stopped before the cache is synced.
		DefaultFieldSelector:     fields.OneTermEqualSelector("metadata.namespace", a.options.Namespace),
		DefaultTransform:         cache.TransformStripManagedFields(),
		DefaultWatchErrorHandler: logFailures(a.options.Log, "hub"),
	})
	return err
}

func (a *Agent) connectMember(scheme *runtime.Scheme) error {
	config, httpClient, err := connection(a.options.Member)
	if err != nil {
		return err
	}
	bounded := &http.Client{Transport: httpClient.Transport, Timeout: cmp.Or(a.options.Apply.Timeout,
		apply.DefaultTimeout)}
	mapper, err := apiutil.NewDynamicRESTMapper(config, bounded)
	if err != nil {
		return err
	}
	options := client.Options{HTTPClient: bounded, Scheme: scheme, Mapper: mapper}
	if a.member.Client, err = client.New(config, options); err != nil {
		return err
	}
	memberDiscovery, err := discovery.NewDiscoveryClientForConfigAndClient(config, bounded)
	if err != nil {
		return err
	}
	a.member.marked = &markedObjects{client: a.member.Client, discovery: memberDiscovery, log: a.options.Log}
	a.member.statuses = &statusKinds{discovery: memberDiscovery, known: map[schema.GroupVersionResource]bool{}}
	metadataClient, err := metadata.NewForConfigAndClient(metadata.ConfigFor(config), httpClient)
	if err != nil {
		return err
	}
	jobs, err := dynamic.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return err
	}
	a.watches = newWatches(metadataClient, jobs, a.options.Log, func(work string) { a.enqueueAfter(work, batchDelay) })
	a.engines = newEngines(a.member.Client, config, a.options.Apply, a.watches)
	a.member.cache, err = cache.New(config, cache.Options{
		HTTPClient: httpClient, Scheme: scheme, Mapper: mapper,
		DefaultLabelSelector: labels.SelectorFromSet(labels.Set{v1alpha1.HubLabel: a.options.HubName}),
		DefaultTransform:     cache.TransformStripManagedFields(), DefaultWatchErrorHandler: logFailures(a.options.Log,
			"member"),
	})
	return err
}

// requestTimeout is the timeout of each request to the hub except watches.
const requestTimeout = 10 * time.Second

// connection returns the client configuration and the HTTP client for an API server. Without a QPS, it disables the
// rate limit of the client: priority and fairness of the API server limits requests better than an estimate.
func connection(from *rest.Config) (*rest.Config, *http.Client, error) {
	config := rest.CopyConfig(from)
	if config.QPS == 0 && config.RateLimiter == nil {
		config.QPS = -1
	}
	httpClient, err := rest.HTTPClientFor(config)
	return config, httpClient, err
}

// batchDelay is how long the agent collects changes on the member before it reconciles their Work. The correction of
// drift is delayed by this time.
const batchDelay = 50 * time.Millisecond

// enqueueAfter enqueues a Work after a delay.
func (a *Agent) enqueueAfter(work string, after time.Duration) {
	a.mu.Lock()
	queue := a.queue
	a.mu.Unlock()
	if queue != nil {
		queue.AddAfter(a.request(work), after)
	}
}

func (a *Agent) request(work string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: a.options.Namespace, Name: work}}
}

// NeedLeaderElection returns true: two agents of one member would conflict with each other.
func (a *Agent) NeedLeaderElection() bool { return true }

// Start runs the agent until the context ends, and waits for all goroutines that it started. It returns an error if
// the hub or the member cannot be watched within two minutes; the caller may then retry with a new Agent. An Agent
// can be added to a manager.
func (a *Agent) Start(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer func() {
		cancel()
		running.Wait()
		a.watches.close()
	}()
	failed := make(chan error, 2)
	for name, c := range map[string]cache.Cache{"hub": a.hub.cache, "member": a.member.cache} {
		running.Go(func() {
			if err := c.Start(ctx); err != nil {
				failed <- fmt.Errorf("watch the %s: %w", name, err)
				cancel()
			}
		})
	}
	running.Go(func() { a.countOrphans(ctx) })
	if a.options.ObjectPolicy != nil {
		running.Go(func() { a.followPolicy(ctx) })
	}
	flush, err := a.events.start(klog.NewContext(ctx, a.options.Log))
	if err != nil {
		return err
	}
	defer flush()
	controller, err := a.controller()
	if err != nil {
		return err
	}
	err = controller.Start(ctx)
	select {
	case first := <-failed:
		return errors.Join(first, err)
	default:
		return err
	}
}

// reconcileTimeout is the timeout of one reconcile of a Work, so that a member that does not respond cannot block a
// worker for longer.
const reconcileTimeout = 5 * time.Minute

func (a *Agent) controller() (controller.Controller, error) {
	c, err := controller.NewTypedUnmanaged("muster-work", controller.TypedOptions[reconcile.Request]{
		MaxConcurrentReconciles: a.options.Workers,
		ReconciliationTimeout:   reconcileTimeout,
		SkipNameValidation:      new(true), // one program may be the agent of several members
		Reconciler:              tracing.Reconciler("muster-work", reconcile.Func(a.reconcile)),
		Logger:                  a.options.Log,
	})
	if err != nil {
		return nil, fmt.Errorf("create the controller of Works: %w", err)
	}
	changed := predicate.Or[client.Object](predicate.GenerationChangedPredicate{},
		predicate.NewTypedPredicateFuncs(func(o client.Object) bool {
			return o.GetDeletionTimestamp() != nil
		}))
	works := source.Kind[client.Object](a.hub.cache, &v1alpha1.Work{}, &handler.EnqueueRequestForObject{}, changed)
	if err := c.Watch(works); err != nil {
		return nil, err
	}
	toWork := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		applied, ok := o.(*v1alpha1.AppliedWork)
		if !ok || applied.Spec.Work.Namespace != a.options.Namespace {
			return nil
		}
		return []reconcile.Request{a.request(applied.Spec.Work.Name)}
	})
	changedOrReleased := predicate.Or[client.Object](changed, predicate.AnnotationChangedPredicate{})
	applied := source.Kind[client.Object](a.member.cache, &v1alpha1.AppliedWork{}, toWork, changedOrReleased)
	if err := c.Watch(applied); err != nil {
		return nil, err
	}
	queued := source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.queue = queue
		return nil
	})
	return c, c.Watch(queued)
}
