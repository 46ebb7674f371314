package workset

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrl "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/muster-sdk/muster/internal/requiredkinds"
	"github.com/muster-sdk/muster/internal/tracing"
	"github.com/muster-sdk/muster/placement"
	"github.com/muster-sdk/muster/placement/internal/revision"
	"github.com/muster-sdk/muster/placement/internal/scope"
	"github.com/muster-sdk/muster/placement/internal/selection"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler/replicas"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// SetupWithManager adds the controller of WorkSets to a manager. The controller distributes the objects of WorkSets to
// the clusters that their Placements selected, and reports the progress. It runs on the leader only. The manager's
// scheme must have placement/v1alpha1, work/v1alpha1, the types of Kubernetes, and membership/v1alpha1 unless
// Options.Clusters is set. The CustomResourceDefinitions must be served when the manager starts.
//
// The permissions of the controller are in the folder rbac, except for the permissions to read what WorkSets select.
func SetupWithManager(mgr manager.Manager, o Options) error {
	o, err := o.withDefaults()
	if err != nil {
		return err
	}
	if err := requiredkinds.Check(mgr.GetScheme(), v1alpha1.GroupVersion.WithKind("WorkSet"),
		workv1alpha1.GroupVersion.WithKind("Work")); err != nil {
		return err
	}
	c := &controller{
		Options: o, api: api{client: mgr.GetClient(), live: mgr.GetAPIReader(), cache: mgr.GetCache()},
		log: mgr.GetLogger().WithName("muster-workset"), recorder: mgr.GetEventRecorder("muster-workset"),
		store:  revision.NewStore(mgr.GetClient(), mgr.GetAPIReader()),
		queues: newQueues(),
		sets: knownSets{states: map[types.NamespacedName]*state{},
			unclaimedWorks: map[types.NamespacedName]int{}},
	}
	if c.api.discovery, err = discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(),
		mgr.GetHTTPClient()); err != nil {
		return fmt.Errorf("make the discovery client: %w", err)
	}
	if c.metrics, err = newMetrics(); err != nil {
		return fmt.Errorf("register the metrics of WorkSets: %w", err)
	}
	if c.pollsNamespaces = c.Clusters != nil; !c.pollsNamespaces {
		c.Clusters, c.Namespace = placement.Members(mgr.GetCache()), memberNamespaces(mgr.GetCache())
	}
	c.fleet = newFleet(c.Namespace, c.clusterChanged)
	c.works = newWorkCache(c.enqueue)
	if c.Estimator == nil {
		c.Estimator = replicas.FromAvailable(func(name string) (corev1.ResourceList, bool) {
			m := c.fleet.member(name)
			if m.latest == nil || m.latest.Available == nil {
				return nil, false
			}
			return m.latest.Available, true
		})
	}
	c.watcher, err = selection.New(selection.Options{
		Config: mgr.GetConfig(), HTTPClient: mgr.GetHTTPClient(), Mapper: mgr.GetRESTMapper(), Log: c.log,
		Allow:   c.maySelect,
		Changed: c.enqueue,
	})
	if err != nil {
		return fmt.Errorf("make the watches of selected objects: %w", err)
	}
	watching, err := client.NewWithWatch(mgr.GetConfig(), client.Options{Scheme: mgr.GetScheme(),
		Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient()})
	if err != nil {
		return fmt.Errorf("make the client that watches Works: %w", err)
	}
	informer, known, err := c.works.informer(watching)
	if err != nil {
		return fmt.Errorf("make the watch of Works: %w", err)
	}
	feed := &feed{controller: c, informer: informer, known: known, tenants: make(chan struct{})}
	if err := mgr.Add(feed); err != nil {
		return err
	}
	if err := c.watch(mgr, feed); err != nil {
		return err
	}
	return c.writers(mgr)
}

// watch enqueues WorkSets after events of them, their Placements and PlacementDecisions.
func (c *controller) watch(mgr manager.Manager, feed *feed) error {
	looks, err := ctrl.New("muster-workset", mgr, ctrl.Options{
		Reconciler:              tracing.Reconciler("muster-workset", c),
		MaxConcurrentReconciles: c.Workers, UsePriorityQueue: new(true), ReconciliationTimeout: reconcileTimeout,
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](batchPeriod, 30*time.Second),
	})
	if err != nil {
		return err
	}
	for _, s := range []source.Source{
		feedSource{feed}, c.queues.requests.Source(),
		source.Kind(mgr.GetCache(), &v1alpha1.WorkSet{}, &handler.TypedEnqueueRequestForObject[*v1alpha1.WorkSet]{},
			changedByUser[*v1alpha1.WorkSet]()),
		source.Kind(mgr.GetCache(), &v1alpha1.ClusterWorkSet{},
			&handler.TypedEnqueueRequestForObject[*v1alpha1.ClusterWorkSet]{}, changedByUser[*v1alpha1.ClusterWorkSet]()),
		source.Kind(mgr.GetCache(), &v1alpha1.Placement{}, handler.TypedEnqueueRequestsFromMapFunc(
			func(ctx context.Context, p *v1alpha1.Placement) []reconcile.Request {
				return c.setsOf(ctx, client.ObjectKeyFromObject(p))
			}), predicate.TypedFuncs[*v1alpha1.Placement]{
			UpdateFunc: func(e event.TypedUpdateEvent[*v1alpha1.Placement]) bool { return decided(e.ObjectOld, e.ObjectNew) },
		}),
		source.Kind(mgr.GetCache(), &v1alpha1.ClusterPlacement{}, handler.TypedEnqueueRequestsFromMapFunc(
			func(ctx context.Context, p *v1alpha1.ClusterPlacement) []reconcile.Request {
				return c.setsOf(ctx, client.ObjectKeyFromObject(p))
			}), predicate.TypedFuncs[*v1alpha1.ClusterPlacement]{
			UpdateFunc: func(e event.TypedUpdateEvent[*v1alpha1.ClusterPlacement]) bool {
				return decided((*v1alpha1.Placement)(e.ObjectOld), (*v1alpha1.Placement)(e.ObjectNew))
			},
		}),
		source.Kind(mgr.GetCache(), &v1alpha1.PlacementDecision{}, handler.TypedEnqueueRequestsFromMapFunc(
			func(ctx context.Context, d *v1alpha1.PlacementDecision) []reconcile.Request {
				owner := metav1.GetControllerOf(d)
				switch {
				case owner == nil:
					return nil
				case d.Namespace == v1alpha1.ClusterScopeNamespace && owner.Kind == scope.PlacementKind("").Kind:
					return c.setsOf(ctx, types.NamespacedName{Name: owner.Name})
				}
				return c.setsOf(ctx, types.NamespacedName{Namespace: d.Namespace, Name: owner.Name})
			})),
	} {
		if err := looks.Watch(s); err != nil {
			return err
		}
	}
	return nil
}

// writers adds the controller that writes the Works of single clusters.
func (c *controller) writers(mgr manager.Manager) error {
	writers, err := ctrl.NewTyped("muster-workset-delivery", mgr, ctrl.TypedOptions[delivery]{
		Reconciler: reconcile.TypedFunc[delivery](c.deliver), MaxConcurrentReconciles: c.Writers, UsePriorityQueue: new(true),
		ReconciliationTimeout: writeTimeout,
		RateLimiter:           workqueue.NewTypedItemExponentialFailureRateLimiter[delivery](batchPeriod, 30*time.Second),
	})
	if err != nil {
		return err
	}
	return writers.Watch(c.queues.deliveries.Source())
}

// The maximum duration of one reconcile of a WorkSet, and of one write of a cluster's Works.
const (
	reconcileTimeout = 2 * time.Minute
	writeTimeout     = time.Minute
)

// changedByUser returns a predicate that selects changes by users. It ignores the status, which this controller writes.
func changedByUser[T client.Object]() predicate.TypedFuncs[T] {
	return predicate.TypedFuncs[T]{
		UpdateFunc: func(e event.TypedUpdateEvent[T]) bool {
			return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() || e.ObjectOld.GetUID() != e.ObjectNew.GetUID() ||
				(e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil) ||
				!reflect.DeepEqual(e.ObjectOld.GetFinalizers(), e.ObjectNew.GetFinalizers())
		}}
}

// decided reports whether the decisions of a Placement may have changed.
func decided(before, after *v1alpha1.Placement) bool {
	return before.Generation != after.Generation || before.UID != after.UID ||
		before.Status.ObservedGeneration != after.Status.ObservedGeneration ||
		before.Status.DecidedGeneration != after.Status.DecidedGeneration ||
		before.Status.SelectedClusters != after.Status.SelectedClusters
}

// setsOf returns the WorkSets that refer to a Placement.
func (c *controller) setsOf(ctx context.Context, placement types.NamespacedName) []reconcile.Request {
	sets, err := scope.ListWorkSets(ctx, c.api.cache, placement.Namespace)
	if err != nil {
		c.log.Error(err, "Failed to list WorkSets", "namespace", placement.Namespace)
		return nil
	}
	var found []reconcile.Request
	for _, set := range sets {
		for _, reference := range set.Spec.Placements {
			if reference.Name == placement.Name {
				found = append(found, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(set)})
			}
		}
	}
	return found
}

// clusterChanged enqueues the WorkSets that have Works on a cluster, or should have some.
func (c *controller) clusterChanged(name string) {
	c.sets.mu.Lock()
	var found []types.NamespacedName
	for set, s := range c.sets.states {
		s.shared.mu.Lock()
		if s.shared.follows[name] {
			found = append(found, set)
		}
		s.shared.mu.Unlock()
	}
	c.sets.mu.Unlock()
	for _, set := range found {
		c.enqueue(set)
	}
}

// feed watches Works, clusters and selected objects.
type feed struct {
	*controller

	informer toolscache.SharedIndexInformer // of Works
	known    toolscache.InformerSynced      // all existing Works are in the cache
	tenants  chan struct{}                  // closed when the bindings are observed
}

// NeedLeaderElection is true: two controllers would overwrite each other's Works.
func (f *feed) NeedLeaderElection() bool { return true }

// Start watches until the context ends.
func (f *feed) Start(ctx context.Context) error {
	// Errors of the watch go to this logger instead of klog.
	ctx, cancel := context.WithCancelCause(klog.NewContext(ctx, f.log))
	defer cancel(nil)
	var running sync.WaitGroup
	for what, run := range map[string]func(context.Context) error{
		"the watch of Works":              func(ctx context.Context) error { f.informer.RunWithContext(ctx); return nil },
		"the source of clusters":          func(ctx context.Context) error { return f.Clusters.Run(ctx, f.fleet) },
		"the watch of selected objects":   f.watcher.Start,
		"the watch of ClusterSetBindings": f.watchTenancy,
	} {
		running.Go(func() {
			err := run(ctx)
			if err == nil && ctx.Err() == nil {
				err = errors.New("the source ended")
			}
			if err != nil && ctx.Err() == nil {
				cancel(fmt.Errorf("%s: %w", what, err))
			}
		})
	}
	running.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// feedSource is a source that delays reconciles until all existing objects are observed. The controller would treat
// unobserved objects as missing.
type feedSource struct{ *feed }

// Start does nothing: the manager starts the feed.
func (feedSource) Start(context.Context, workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	return nil
}

// WaitForSync waits until all Works and clusters are observed.
func (f feedSource) WaitForSync(ctx context.Context) error {
	if !toolscache.WaitForCacheSync(ctx.Done(), f.known) {
		return fmt.Errorf("list Works: %w", context.Cause(ctx))
	}
	select {
	case <-f.fleet.synced:
	case <-ctx.Done():
		return fmt.Errorf("wait for the source of clusters: %w", context.Cause(ctx))
	}
	select {
	case <-f.tenants:
	case <-ctx.Done():
		return fmt.Errorf("wait for ClusterSetBindings: %w", context.Cause(ctx))
	}
	var sets v1alpha1.WorkSetList
	if err := f.api.cache.List(ctx, &sets); err != nil {
		return fmt.Errorf("list WorkSets: %w", err)
	}
	names := make([]types.NamespacedName, 0, len(sets.Items))
	for i := range sets.Items {
		names = append(names, client.ObjectKeyFromObject(&sets.Items[i]))
	}
	clusterScoped, err := scope.ListWorkSets(ctx, f.api.cache, "")
	if err != nil {
		return fmt.Errorf("list ClusterWorkSets: %w", err)
	}
	for _, set := range clusterScoped {
		names = append(names, client.ObjectKeyFromObject(set))
	}
	f.Readiness.await(names)
	return nil
}
