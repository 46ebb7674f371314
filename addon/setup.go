package addon

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrl "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/muster-sdk/muster/addon/internal/calls"
	"github.com/muster-sdk/muster/addon/internal/lookup"
	"github.com/muster-sdk/muster/addon/internal/registration"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/bounded"
	"github.com/muster-sdk/muster/internal/openqueue"
	"github.com/muster-sdk/muster/internal/readycondition"
	"github.com/muster-sdk/muster/internal/requiredkinds"
	"github.com/muster-sdk/muster/internal/tracing"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	placementv1alpha1 "github.com/muster-sdk/muster/placement/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// shared is the state that both controllers share.
type shared struct {
	Options
	clients

	agents        map[string]Agent
	state         *sharedState
	configs       *lookup.Finder
	worksInformer toolscache.SharedIndexInformer
	leases        *leases
	registrar     *registration.Registrar // nil: no agent has access
	registered    cache.Cache             // the objects of agents on the hub
	calls         *calls.Caller
	queues        queues
	cached        cached
}

// clients are the clients of the hub, and the recorders of Events and metrics.
type clients struct {
	client    client.Client
	live      client.Reader // not a cache
	discovery discovery.DiscoveryInterface
	cache     cache.Cache
	scheme    *runtime.Scheme
	log       logr.Logger
	recorder  events.EventRecorder
	metrics   *metrics
}

// queues are the workqueues of the controllers.
type queues struct {
	addons  openqueue.Queue[reconcile.Request]
	members openqueue.Queue[reconcile.Request]
	pauses  workqueue.TypedRateLimiter[reconcile.Request] // the pauses after conflicts
}

// cached is state that is kept between reconciles, and can be rebuilt from the API.
type cached struct {
	mu       sync.Mutex
	memories map[types.NamespacedName]*memory
	ending   map[types.UID]time.Time // since when the deletion of an Addon has been observed as a request
	wrote    map[string]time.Time    // the last write of the status of an Addon, by name
}

// Indexes that these controllers add to the manager's cache.
const (
	nameIndex      = "muster-addon.name"      // of MemberAddons
	namespaceIndex = "muster-addon.namespace" // of MemberClusters by namespace
	placementIndex = "muster-addon.placement" // of Addons by Placement
	clusterIndex   = "muster-addon.cluster"   // of PlacementDecisions by cluster
)

// SetupWithManager adds the controllers of Addons and of MemberAddons to a manager. They run on the leader only. The
// manager's scheme must have v1alpha1 of addon, work, placement and membership, and the types of Kubernetes. The
// CustomResourceDefinitions must be served when the manager starts.
//
// The permissions of the controllers are in the folder rbac, except for the permissions to read configurations of kinds
// that do not belong to muster.
func SetupWithManager(mgr manager.Manager, o Options) error {
	o, agents, err := o.withDefaults()
	if err != nil {
		return err
	}
	if err := requiredkinds.Check(mgr.GetScheme(), v1alpha1.GroupVersion.WithKind("Addon"),
		workv1alpha1.GroupVersion.WithKind("Work"), placementv1alpha1.GroupVersion.WithKind("Placement"),
		membershipv1alpha1.GroupVersion.WithKind("MemberCluster")); err != nil {
		return err
	}
	c := &shared{
		Options: o,
		clients: clients{
			client: mgr.GetClient(), live: mgr.GetAPIReader(), cache: mgr.GetCache(), scheme: mgr.GetScheme(),
			log: mgr.GetLogger().WithName("muster-addon"), recorder: mgr.GetEventRecorder("muster-addon"),
			metrics: newMetrics(mgr.GetCache()),
		},
		agents: agents, state: newSharedState(),
		cached: cached{memories: map[types.NamespacedName]*memory{}, wrote: map[string]time.Time{}},
		queues: queues{
			pauses: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](batchPeriod/2, 30*time.Second),
		},
	}
	c.calls = calls.New(calls.Options{
		Timeout: o.CallTimeout, Limit: max(1, o.Workers/4), Free: c.enqueueMember, Observe: c.metrics.observeCall,
	})
	c.state.memberChanged, c.state.addonChanged = c.enqueueMember, c.enqueueAddon
	c.leases = &leases{clock: o.Clock, changed: c.enqueueMember, seen: map[types.NamespacedName]renewal{}}
	if c.discovery, err = discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(),
		mgr.GetHTTPClient()); err != nil {
		return fmt.Errorf("create the discovery client: %w", err)
	}
	if err := c.index(mgr); err != nil {
		return err
	}
	watching, err := client.NewWithWatch(mgr.GetConfig(),
		client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient()})
	if err != nil {
		return fmt.Errorf("create the client that watches Works: %w", err)
	}
	if c.worksInformer, err = worksInformer(watching); err != nil {
		return fmt.Errorf("create the informer of Works: %w", err)
	}
	leases, known, err := c.leases.informer(watching)
	if err != nil {
		return fmt.Errorf("create the informer of Leases: %w", err)
	}
	c.configs, err = lookup.New(lookup.Options{
		Cache: c.cache, Live: c.live, Mapper: mgr.GetRESTMapper(), Log: c.log, Changed: c.configsChanged,
	})
	if err != nil {
		return fmt.Errorf("create the watch of configurations: %w", err)
	}
	watch := tenants{c, make(chan struct{})}
	for _, r := range []manager.Runnable{informers{c, c.worksInformer, leases}, c.configs, watch, c.metrics} {
		if err := mgr.Add(r); err != nil {
			return err
		}
	}
	if err := c.setupRegistration(mgr); err != nil {
		return err
	}
	return errors.Join(c.setupAddons(mgr, watch.observed), c.setupMembers(mgr, known, watch.observed))
}

// index adds the indexes of the cache.
func (c *shared) index(mgr manager.Manager) error {
	for _, i := range []struct {
		kind  client.Object
		name  string
		value client.IndexerFunc
	}{
		{&v1alpha1.MemberAddon{}, nameIndex, func(o client.Object) []string { return []string{o.GetName()} }},
		{&membershipv1alpha1.MemberCluster{}, namespaceIndex, namespaceOf},
		{&v1alpha1.Addon{}, placementIndex, placementsOf},
		{&placementv1alpha1.PlacementDecision{}, clusterIndex, clustersOf},
	} {
		if err := mgr.GetFieldIndexer().IndexField(context.Background(), i.kind, i.name, i.value); err != nil {
			return fmt.Errorf("create the index %s of %T: %w", i.name, i.kind, err)
		}
	}
	return nil
}

// reconcileTimeout returns the maximum duration of a reconcile: two minutes, and eight calls of an agent.
func (o *Options) reconcileTimeout() time.Duration { return 2*time.Minute + 8*o.CallTimeout }

func (c *shared) setupAddons(mgr manager.Manager, tenants <-chan struct{}) error {
	addonController, err := ctrl.New("muster-addon", mgr, ctrl.Options{
		Reconciler:              tracing.Reconciler("muster-addon", addons{c}),
		MaxConcurrentReconciles: 4, UsePriorityQueue: new(true),
		ReconciliationTimeout: c.reconcileTimeout(),
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](batchPeriod,
			30*time.Second),
	})
	if err != nil {
		return err
	}
	ofMember := handler.TypedEnqueueRequestsFromMapFunc(
		func(_ context.Context, m *v1alpha1.MemberAddon) []reconcile.Request {
			return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: m.Name}}}
		})
	for _, s := range []source.Source{
		c.queues.addons.Source(), synced{tenants: tenants},
		source.Kind(c.cache, &v1alpha1.Addon{}, &handler.TypedEnqueueRequestForObject[*v1alpha1.Addon]{},
			userChanges[*v1alpha1.Addon]()),
		source.Kind(c.cache, &v1alpha1.MemberAddon{}, ofMember, userChanges[*v1alpha1.MemberAddon]()),
		source.Kind(c.cache, &membershipv1alpha1.MemberCluster{}, c.memberEvents(), memberChange(affectsSelection)),
		source.Kind(c.cache, &placementv1alpha1.Placement{}, handler.TypedEnqueueRequestsFromMapFunc(
			func(ctx context.Context, p *placementv1alpha1.Placement) []reconcile.Request {
				return c.addonsWith(ctx, p.Namespace, p.Name)
			}), predicate.TypedFuncs[*placementv1alpha1.Placement]{UpdateFunc: decided}),
		source.Kind(c.cache, &placementv1alpha1.ClusterPlacement{}, handler.TypedEnqueueRequestsFromMapFunc(
			func(ctx context.Context, p *placementv1alpha1.ClusterPlacement) []reconcile.Request {
				return c.addonsWith(ctx, "", p.Name)
			}), predicate.TypedFuncs[*placementv1alpha1.ClusterPlacement]{
			UpdateFunc: func(e event.TypedUpdateEvent[*placementv1alpha1.ClusterPlacement]) bool {
				return decided(event.TypedUpdateEvent[*placementv1alpha1.Placement]{
					ObjectOld: (*placementv1alpha1.Placement)(e.ObjectOld), ObjectNew: (*placementv1alpha1.Placement)(e.ObjectNew),
				})
			},
		}),
		source.Kind(c.cache, &placementv1alpha1.PlacementDecision{}, handler.TypedEnqueueRequestsFromMapFunc(
			func(ctx context.Context, d *placementv1alpha1.PlacementDecision) []reconcile.Request {
				namespace, name := placementOf(d)
				return c.addonsWith(ctx, namespace, name)
			})),
	} {
		if err := addonController.Watch(s); err != nil {
			return err
		}
	}
	return nil
}

func (c *shared) setupMembers(mgr manager.Manager, leases toolscache.InformerSynced, tenants <-chan struct{}) error {
	memberController, err := ctrl.New("muster-memberaddon", mgr, ctrl.Options{
		Reconciler:              tracing.Reconciler("muster-memberaddon", members{c}),
		MaxConcurrentReconciles: c.Workers, UsePriorityQueue: new(true),
		ReconciliationTimeout: c.reconcileTimeout(),
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](batchPeriod/2,
			30*time.Second),
	})
	if err != nil {
		return err
	}
	toOwner := toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { c.workChanged(nil, object) },
		UpdateFunc: c.workChanged,
		DeleteFunc: func(object any) {
			if unknown, is := object.(toolscache.DeletedFinalStateUnknown); is {
				object = unknown.Obj
			}
			c.workChanged(nil, object)
		},
	}
	if _, err := c.worksInformer.AddEventHandler(toOwner); err != nil {
		return err
	}
	for _, s := range append(registrations(c.registered),
		c.queues.members.Source(), synced{[]toolscache.InformerSynced{c.worksInformer.HasSynced, leases}, tenants},
		source.Kind(c.cache, &v1alpha1.MemberAddon{}, &handler.TypedEnqueueRequestForObject[*v1alpha1.MemberAddon]{},
			userChanges[*v1alpha1.MemberAddon]()),
		source.Kind(c.cache, &v1alpha1.Addon{}, handler.TypedEnqueueRequestsFromMapFunc(c.membersOf),
			userChanges[*v1alpha1.Addon]()),
		source.Kind(c.cache, &membershipv1alpha1.MemberCluster{}, handler.TypedEnqueueRequestsFromMapFunc(c.addonsOn),
			memberChange(affectsManifests)),
	) {
		if err := memberController.Watch(s); err != nil {
			return err
		}
	}
	return nil
}

// lastStatus returns when the status of an Addon was written last. Zero: not by this process.
func (c *shared) lastStatus(addon *v1alpha1.Addon) time.Time {
	c.cached.mu.Lock()
	defer c.cached.mu.Unlock()
	return c.cached.wrote[addon.Name]
}

func (c *shared) wroteStatus(addon *v1alpha1.Addon, now time.Time) {
	c.cached.mu.Lock()
	defer c.cached.mu.Unlock()
	c.cached.wrote[addon.Name] = now
}

// maxNote is the maximum length in bytes of the note of an Event.
const maxNote = 1024

func (c *shared) event(about client.Object, kind, reason, format string, args ...any) {
	c.recorder.Eventf(about, nil, kind, reason, "Addon", "%s", bounded.Text(fmt.Sprintf(format, args...), maxNote))
}

// recordTransitions records Events for transitions of conditions.
func (c *shared) recordTransitions(about client.Object, before, after []metav1.Condition) {
	for i := range after {
		is, was := &after[i], meta.FindStatusCondition(before, after[i].Type)
		if readycondition.Is(is.Type) || was != nil && was.Status == is.Status && was.Reason == is.Reason {
			continue
		}
		if was == nil && is.Status == metav1.ConditionTrue && is.Type != v1alpha1.ConditionAvailable &&
			is.Type != v1alpha1.ConditionInstalled && is.Type != v1alpha1.ConditionDegraded {
			continue // the first status is the normal one
		}
		kind, wasTrue := corev1.EventTypeNormal, was != nil && was.Status == metav1.ConditionTrue
		switch good := is.Type != v1alpha1.ConditionDegraded; {
		case is.Type == v1alpha1.ConditionProgressing, is.Status == metav1.ConditionUnknown,
			is.Status == metav1.ConditionFalse && !wasTrue:
			continue // users do not wait for this condition
		case good == (is.Status == metav1.ConditionFalse) && !requested(is, after):
			kind = corev1.EventTypeWarning
		}
		// +event:object=Addon, MemberAddon
		// +event:reason=the reason of a condition other than Progressing
		// +event:type=Warning if a failure makes the condition worse, else Normal
		// +event:message=the type and the message of the condition
		c.event(about, kind, is.Reason, "%s: %s", is.Type, is.Message)
	}
}

// requested reports whether a condition is only affected by an update or a removal that a user requested.
func requested(is *metav1.Condition, all []metav1.Condition) bool {
	switch is.Reason {
	case v1alpha1.ReasonUpdating, v1alpha1.ReasonApplying, v1alpha1.ReasonWaitingForTurn, v1alpha1.ReasonRemoving:
		return true
	case v1alpha1.ReasonNotReady: // an update may restart the add-on
		progressing, installed := meta.FindStatusCondition(all, v1alpha1.ConditionProgressing),
			meta.FindStatusCondition(all, v1alpha1.ConditionInstalled)
		return progressing != nil && progressing.Status == metav1.ConditionTrue ||
			installed != nil && installed.Reason == v1alpha1.ReasonUpdating
	}
	return false
}
