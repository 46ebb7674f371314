package hub

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/muster-sdk/muster/internal/requeue"
	"github.com/muster-sdk/muster/internal/storeversion"
	"github.com/muster-sdk/muster/internal/tracing"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/heartbeat"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// The verb confine makes the policy of membership/crds apply to the hub.
// +kubebuilder:rbac:groups=membership.muster.dev,resources=hubs,verbs=confine
// +kubebuilder:rbac:groups=membership.muster.dev,resources=memberclusters,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups=membership.muster.dev,resources=memberclusters/status,verbs=update;patch
// +kubebuilder:rbac:groups=membership.muster.dev,resources=memberships,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=rolebindings,verbs=get;list;watch;create;update;delete
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterroles,resourceNames=muster-agent;muster-bootstrap,verbs=bind
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch;update

// members is the controller of MemberClusters: it observes a member, calls package lifecycle to decide, carries out the
// step and reports.
type members struct {
	client     client.Client
	reader     client.Reader // without a cache
	options    Options
	recorder   events.EventRecorder
	heartbeats *heartbeat.Watcher
	extensions *extensions
	memory     memory
	deletions  deletions
	retries    retries
	tombstones *tombstones
	epochs     *consistency
}

// setup adds the controller to the manager. Members whose health changes are added to queue.
func (r *members) setup(mgr manager.Manager, hub cluster.Cluster, queue *lateQueue) error {
	options := controllerOptions(r.options.Workers)
	options.Reconciler = tracing.Reconciler("muster-membercluster", r)
	c, err := controller.New("muster-membercluster", mgr, options)
	if err != nil {
		return err
	}
	byLabel := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		member, ours := object.GetLabels()[membership.MemberLabel]
		if !ours {
			return nil
		}
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: member}}}
	})
	issuedTo := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, object client.Object) []reconcile.Request {
		request, ok := object.(*v1alpha1.JoinRequest)
		if ok && rivalRequest(request) {
			return r.withClusterID(ctx, request.Spec.ClusterID)
		}
		if !ok || request.Status.Credential == nil {
			return nil
		}
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: request.Status.MemberName}}}
	})
	return errors.Join(
		c.Watch(queue),
		c.Watch(source.Kind[client.Object](hub.GetCache(), &v1alpha1.MemberCluster{}, &handler.EnqueueRequestForObject{},
			butStatus)),
		c.Watch(source.Kind[client.Object](hub.GetCache(), &v1alpha1.Membership{}, byLabel)),
		c.Watch(source.Kind[client.Object](hub.GetCache(), &v1alpha1.JoinRequest{}, issuedTo)),
		c.Watch(source.Kind[client.Object](hub.GetCache(), &corev1.Namespace{}, byLabel)),
		c.Watch(source.Kind[client.Object](hub.GetCache(), &rbacv1.RoleBinding{}, byLabel)),
	)
}

// withClusterID lists the members with a cluster ID.
func (r *members) withClusterID(ctx context.Context, id string) []reconcile.Request {
	var list v1alpha1.MemberClusterList
	if r.client.List(ctx, &list, client.MatchingFields{byClusterID: id}) != nil {
		return nil // the cache is stopping
	}
	out := make([]reconcile.Request, len(list.Items))
	for i := range list.Items {
		out[i].Name = list.Items[i].Name
	}
	return out
}

// Reconcile performs the next step of a member.
func (r *members) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var cluster v1alpha1.MemberCluster
	if err := r.client.Get(ctx, request.NamespacedName, &cluster); err != nil {
		if apierrors.IsNotFound(err) {
			r.retries.conflicts.Forget(request.Name)
			r.unwatch(request.Name)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if r.memory.written.Lacks(&cluster, r.options.Clock.Now()) {
		return reconcile.Result{RequeueAfter: conflictPause}, nil
	}
	observed, step, out, err := r.round(ctx, &cluster)
	if err != nil {
		return r.retries.result(ctx, request.Name, 0, client.IgnoreNotFound(err))
	}
	if out.gone {
		// The MemberCluster was deleted, so its status cannot be written. Events can.
		gone := observed.cluster
		before := gone.DeepCopy()
		gone.Status.Phase = step.Phase
		for _, condition := range step.Conditions {
			r.set(gone, condition)
		}
		r.note(ctx, before, gone)
		if observed.lifecycle.Deletion.WithDefinition {
			ctrllog.FromContext(ctx).Info("Released a MemberCluster that was deleted together with its definition; the member " +
				"is unchanged")
		}
		r.unwatch(gone.Name)
		return r.retries.result(ctx, request.Name, 0, out.failed)
	}
	again, err := r.report(ctx, observed, step, out)
	return r.retries.result(ctx, request.Name, requeue.Sooner(step.After, again),
		errors.Join(out.failed, out.renewing, out.confirming, err, r.restoreLease(ctx, observed)))
}

// errUnseen means that an object exists that the cache does not contain.
var errUnseen = errors.New("an object exists that the cache does not contain yet")

// round observes, decides and acts: with the caches, and again with the API server if the step is final or the caches
// lag. A cache that is disconnected from its API server may lag by a minute.
func (r *members) round(ctx context.Context, cluster *v1alpha1.MemberCluster) (observed memberObserved,
	step lifecycle.HubStep, out outcome, err error) {
	if observed, step, err = r.decide(ctx, r.client, cluster, nil); err != nil {
		return observed, step, out, err
	}
	if !step.Final {
		if out = r.act(ctx, &observed, step); !errors.Is(out.failed, errUnseen) {
			return observed, step, out, nil
		}
	}
	latest := &v1alpha1.MemberCluster{}
	if err := r.reader.Get(ctx, client.ObjectKeyFromObject(cluster), latest); err != nil {
		return observed, step, out, fmt.Errorf("read member %s: %w", cluster.Name, err)
	}
	if observed, step, err = r.decide(ctx, r.reader, latest, observed.lifecycle.Gates); err != nil {
		return observed, step, out, err
	}
	return observed, step, r.act(ctx, &observed, step), nil
}

// decide observes a member and decides on the next step. It calls the gates at most once per reconcile.
func (r *members) decide(ctx context.Context, from client.Reader, cluster *v1alpha1.MemberCluster,
	gates *lifecycle.GatesSeen) (memberObserved, lifecycle.HubStep, error) {
	observed, err := r.observe(ctx, from, cluster)
	if err != nil {
		return observed, lifecycle.HubStep{}, fmt.Errorf("observe member %s: %w", cluster.Name, err)
	}
	if observed.lifecycle.Gates = gates; gates == nil {
		observed.lifecycle.Gates = r.extensions.asked.get(observed.cluster, observed.lifecycle.Now)
	}
	if err := r.extensions.askAcceptor(ctx, &observed); err != nil {
		return observed, lifecycle.HubStep{}, err
	}
	step := lifecycle.NextHub(observed.lifecycle)
	if slices.Contains(step.Actions, lifecycle.AskGates) {
		observed.lifecycle.Gates = r.extensions.askGates(ctx, observed.member)
		r.extensions.asked.set(observed.cluster, *observed.lifecycle.Gates, r.options.Clock.Now())
		step = lifecycle.NextHub(observed.lifecycle)
	}
	return observed, step, nil
}

func (r *members) unwatch(member string) {
	r.heartbeats.Untrack(member)
	r.memory.forget(member, membership.NamespaceFor(r.options.NamespacePrefix, member))
	r.extensions.asked.forget(member)
	r.deletions.forget(member)
}

// newConflictPauses returns the pauses after conflicts. They grow per object, because a cache with the state before a
// restore causes conflicts until the process ends.
func newConflictPauses() workqueue.TypedRateLimiter[string] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[string](conflictPause, maxConflictPause)
}

// retries determines when a member is reconciled again.
type retries struct {
	conflicts workqueue.TypedRateLimiter[string] // the pauses after conflicts, by member
	cache     client.Reader
	reader    client.Reader // without a cache
	store     *storeversion.Monitor
}

// result converts the outcome of a member's reconcile like retry. After repeated conflicts it compares the cached
// MemberCluster with that of the API server, because a restored store causes conflicts that do not end.
func (r *retries) result(ctx context.Context, name string, after time.Duration, err error) (reconcile.Result, error) {
	if apierrors.IsConflict(err) && r.conflicts.NumRequeues(name) >= conflictsBeforeComparison {
		cached, live := &v1alpha1.MemberCluster{}, &v1alpha1.MemberCluster{}
		key := client.ObjectKey{Name: name}
		if r.cache.Get(ctx, key, cached) == nil && r.reader.Get(ctx, key, live) == nil {
			r.store.Compare(cached, live)
		}
	}
	return retry(r.conflicts, name, after, err)
}

// retry converts the outcome of a reconcile into a result. A conflict is not an error: the object changed, and the next
// reconcile observes the change.
func retry(conflicts workqueue.TypedRateLimiter[string], name string, after time.Duration, err error) (reconcile.Result,
	error) {
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: conflicts.When(name)}, nil
	}
	conflicts.Forget(name)
	switch {
	case errors.Is(err, membership.ErrPending):
		return reconcile.Result{RequeueAfter: pendingPause}, nil
	case err != nil:
		return reconcile.Result{}, err
	default:
		return reconcile.Result{RequeueAfter: after}, nil
	}
}

const (
	conflictPause    = 50 * time.Millisecond
	maxConflictPause = time.Minute
	// conflictsBeforeComparison is the number of consecutive conflicts before a MemberCluster is compared with the API
	// server.
	conflictsBeforeComparison = 3
	pendingPause              = 200 * time.Millisecond
)
