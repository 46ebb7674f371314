package unassigned

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/muster-sdk/muster/internal/tracing"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// The controller needs these permissions.

// +kubebuilder:rbac:groups=work.muster.dev,resources=works,verbs=get;list;watch
// +kubebuilder:rbac:groups=work.muster.dev,resources=works/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Options are the options of the controller. The zero value is a working default.
type Options struct {
	// Now returns the time for conditions. Nil: time.Now.
	Now func() time.Time
}

// pageSize is the maximum number of Works in a page of a list.
const pageSize = 100

// SetupWithManager adds the controller to a manager. The scheme of the manager must have work/v1alpha1. The
// controller runs only on the leader.
func SetupWithManager(mgr manager.Manager, o Options) error {
	if o.Now == nil {
		o.Now = time.Now
	}
	works := &metav1.PartialObjectMetadata{}
	works.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Work"))
	own, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		ByObject: map[client.Object]cache.ByObject{works: {Transform: identityOnly}},
	})
	if err != nil {
		return fmt.Errorf("create the cache of Works: %w", err)
	}
	if err := mgr.Add(own); err != nil {
		return fmt.Errorf("add the cache of Works: %w", err)
	}
	r := &reconciler{
		options: o, client: mgr.GetClient(), live: mgr.GetAPIReader(),
		recorder: mgr.GetEventRecorder("muster-work-unassigned"), reported: map[string]bool{},
	}
	c, err := controller.New("muster-work-unassigned", mgr,
		controller.Options{Reconciler: tracing.Reconciler("muster-work-unassigned", r)})
	if err != nil {
		return fmt.Errorf("create the controller of unassigned Works: %w", err)
	}
	namespaceOf := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, work client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: work.GetNamespace()}}}
	})
	butStatus := predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.NewPredicateFuncs(
		func(work client.Object) bool { return work.GetDeletionTimestamp() != nil }))
	return errors.Join(
		c.Watch(source.Kind[client.Object](own, works, namespaceOf, butStatus)),
		c.Watch(source.Kind[client.Object](mgr.GetCache(), &corev1.Namespace{}, &handler.EnqueueRequestForObject{},
			predicate.LabelChangedPredicate{})),
	)
}

// identityOnly drops all metadata of a Work except those that the controller reads.
func identityOnly(object any) (any, error) {
	work, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil
	}
	return &metav1.PartialObjectMetadata{TypeMeta: work.TypeMeta, ObjectMeta: metav1.ObjectMeta{
		Namespace: work.Namespace, Name: work.Name, UID: work.UID, ResourceVersion: work.ResourceVersion,
		Generation: work.Generation, DeletionTimestamp: work.DeletionTimestamp,
	}}, nil
}

// reconciler reconciles the Works of one namespace at a time.
type reconciler struct {
	options  Options
	client   client.Client
	live     client.Reader // not from a cache
	recorder events.EventRecorder

	mu       sync.Mutex
	reported map[string]bool // the namespaces whose Works were reported as unassigned by this process
}

// Reconcile writes the status of the Works in a namespace that belongs to no member.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	namespace := request.Name
	member, err := r.memberOf(ctx, namespace)
	if err != nil {
		return reconcile.Result{}, err
	}
	r.mu.Lock()
	reported := r.reported[namespace]
	r.mu.Unlock()
	if member != "" && !reported {
		return reconcile.Result{}, nil
	}
	found, err := r.report(ctx, namespace, member)
	if err != nil {
		return reconcile.Result{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reported[namespace] = found && member == ""; !r.reported[namespace] {
		delete(r.reported, namespace)
	}
	return reconcile.Result{}, nil
}

// memberOf returns the member that a namespace belongs to; empty: none. It confirms an empty result with the API
// server, because the cache may lag behind and an agent may already watch the namespace.
func (r *reconciler) memberOf(ctx context.Context, namespace string) (string, error) {
	for _, reader := range []client.Reader{r.client, r.live} {
		var found corev1.Namespace
		err := reader.Get(ctx, client.ObjectKey{Name: namespace}, &found)
		if client.IgnoreNotFound(err) != nil {
			return "", fmt.Errorf("read namespace %s: %w", namespace, err)
		}
		if member := found.Labels[membership.MemberLabel]; err == nil && member != "" {
			return member, nil
		}
	}
	return "", nil
}

// report writes the status of all Works in a namespace, and returns whether the namespace has Works.
func (r *reconciler) report(ctx context.Context, namespace, member string) (found bool, err error) {
	var errs []error
	list := v1alpha1.WorkList{}
	for {
		options := &client.ListOptions{Namespace: namespace, Limit: pageSize, Continue: list.Continue}
		list = v1alpha1.WorkList{}
		if err := r.live.List(ctx, &list, options); err != nil {
			return found, errors.Join(append(errs, fmt.Errorf("list the Works in namespace %s: %w", namespace, err))...)
		}
		for i := range list.Items {
			found = true
			errs = append(errs, r.write(ctx, &list.Items[i], member))
		}
		if list.Continue == "" {
			return found, errors.Join(errs...)
		}
	}
}

// write writes the status of one Work, unless the Work has changed since it was read.
func (r *reconciler) write(ctx context.Context, work *v1alpha1.Work, member string) error {
	status, news := statusOf(work, r.options.Now())
	if member != "" {
		status, news = statusWhenAssigned(work, member, r.options.Now())
	}
	if !news || apiequality.Semantic.DeepEqual(work.Status, status) {
		return nil
	}
	meta := metav1.ObjectMeta{Namespace: work.Namespace, Name: work.Name, UID: work.UID,
		ResourceVersion: work.ResourceVersion}
	before := &v1alpha1.Work{ObjectMeta: *meta.DeepCopy(), Status: work.Status}
	next := &v1alpha1.Work{ObjectMeta: meta, Status: status}
	err := r.client.Status().Patch(ctx, next, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	switch {
	case apierrors.IsNotFound(err): // the Work was deleted
		return nil
	case err != nil:
		return fmt.Errorf("write the status of Work %s/%s: %w", work.Namespace, work.Name, err)
	}
	if member == "" {
		// +event:message=the message of the status
		r.recorder.Eventf(work, nil, corev1.EventTypeWarning, v1alpha1.ReasonNoMember, "Report", "%s", status.Message)
	}
	return nil
}
