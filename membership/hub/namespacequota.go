package hub

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/muster-sdk/muster/internal/tracing"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// +kubebuilder:rbac:groups="",resources=resourcequotas,verbs=get;list;watch;create;update

// NamespaceQuotaName is the name of the ResourceQuota in the namespace of each member. See [Options].NamespaceQuota.
const NamespaceQuotaName = "muster-member"

// namespaceQuotaPause is the minimum time between two corrections of one ResourceQuota. Otherwise another client that
// changes the ResourceQuota repeatedly would cause writes without a pause.
const namespaceQuotaPause = 10 * time.Second

// namespaceQuotas is the controller that creates and corrects the ResourceQuota in the namespace of each member. It
// never deletes a ResourceQuota.
type namespaceQuotas struct {
	client client.Client
	reader client.Reader // without a cache
	hard   corev1.ResourceList
	prefix string // of the members' namespaces
	clock  clock.PassiveClock
	last   sync.Map // the time of the last correction, by namespace
}

func (q *namespaceQuotas) setup(mgr manager.Manager, hub cluster.Cluster, workers int) error {
	options := controllerOptions(workers)
	options.Reconciler = tracing.Reconciler("muster-namespacequota", q)
	c, err := controller.New("muster-namespacequota", mgr, options)
	if err != nil {
		return err
	}
	byNamespace := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		if object.GetName() != NamespaceQuotaName {
			return nil
		}
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: object.GetNamespace()}}}
	})
	return errors.Join(
		c.Watch(source.Kind[client.Object](hub.GetCache(), &corev1.Namespace{}, &handler.EnqueueRequestForObject{},
			withoutUpdates)),
		c.Watch(source.Kind[client.Object](hub.GetCache(), &corev1.ResourceQuota{}, byNamespace, quotaSpecChanged)),
	)
}

// withoutUpdates ignores updates: the name of a member's namespace never changes, and the cache reports a label that
// is added or removed as a creation or a deletion.
var withoutUpdates = predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}

// quotaSpecChanged ignores changes of the usage, which the API server records for each created object.
var quotaSpecChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, isQuota := e.ObjectOld.(*corev1.ResourceQuota)
	after, isQuotaToo := e.ObjectNew.(*corev1.ResourceQuota)
	return !isQuota || !isQuotaToo || before.ResourceVersion == after.ResourceVersion || // resync
		before.UID != after.UID || !equality.Semantic.DeepEqual(before.Spec, after.Spec)
}}

// Reconcile ensures the ResourceQuota of one namespace.
func (q *namespaceQuotas) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	namespace := &corev1.Namespace{}
	if err := q.client.Get(ctx, request.NamespacedName, namespace); err != nil {
		if apierrors.IsNotFound(err) {
			q.last.Delete(request.Name)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	member := namespace.Labels[membership.MemberLabel]
	if namespace.DeletionTimestamp != nil || membership.NamespaceFor(q.prefix, member) != namespace.Name {
		return reconcile.Result{}, nil
	}
	after, err := q.ensure(ctx, namespace.Name, member)
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return reconcile.Result{}, nil // the hub creates the namespace again, or the member leaves
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: conflictPause}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("ensure ResourceQuota %s/%s: %w", namespace.Name, NamespaceQuotaName, err)
	}
	return reconcile.Result{RequeueAfter: after}, nil
}

// ensure creates or corrects the ResourceQuota of a namespace. It returns the time until a delayed correction is
// permitted; zero: no correction is delayed.
func (q *namespaceQuotas) ensure(ctx context.Context, namespace, member string) (time.Duration, error) {
	want := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: NamespaceQuotaName, Labels: map[string]string{membership.MemberLabel: member},
		},
		Spec: corev1.ResourceQuotaSpec{Hard: q.hard},
	}
	key := client.ObjectKeyFromObject(want)
	found := &corev1.ResourceQuota{}
	err := q.client.Get(ctx, key, found)
	if apierrors.IsNotFound(err) {
		if err = q.client.Create(ctx, want); !apierrors.IsAlreadyExists(err) {
			return 0, err
		}
		// The cache does not contain it: it is new, or it has no label.
		err = q.reader.Get(ctx, key, found)
	}
	if err != nil {
		return 0, err
	}
	if found.DeletionTimestamp != nil || found.Labels[membership.MemberLabel] == member &&
		equality.Semantic.DeepEqual(found.Spec, want.Spec) {
		return 0, nil
	}
	now := q.clock.Now()
	if last, ok := q.last.Load(namespace); ok {
		if wait := last.(time.Time).Add(namespaceQuotaPause).Sub(now); wait > 0 && wait <= namespaceQuotaPause {
			return wait, nil
		}
	}
	found.Spec = want.Spec
	metav1.SetMetaDataLabel(&found.ObjectMeta, membership.MemberLabel, member)
	if err := q.client.Update(ctx, found); err != nil {
		return 0, err
	}
	q.last.Store(namespace, now)
	ctrllog.FromContext(ctx).Info("Corrected a ResourceQuota that differed from the option NamespaceQuota",
		"namespace", namespace, "resourcequota", NamespaceQuotaName)
	return 0, nil
}

// unlimited are the resources that a NamespaceQuota cannot limit: the hub creates one object of each for a member.
var unlimited = []corev1.ResourceName{
	"count/memberships." + v1alpha1.GroupName, "count/leases.coordination.k8s.io",
	"count/rolebindings.rbac.authorization.k8s.io", "count/resourcequotas", "resourcequotas",
}

// checkNamespaceQuota returns the problem of each invalid entry, by the name of the entry.
func checkNamespaceQuota(quota corev1.ResourceList) map[corev1.ResourceName]string {
	problems := map[corev1.ResourceName]string{}
	for name, limit := range quota {
		resource, counts := strings.CutPrefix(string(name), "count/")
		switch whole, isWhole := limit.AsInt64(); {
		case !counts || resource == "":
			problems[name] = "only numbers of objects can be limited: write count/RESOURCE.GROUP, such as " +
				"count/works.work.muster.dev, or count/RESOURCE for the core group"
		case slices.Contains(unlimited, name):
			problems[name] = "the hub creates one of these objects for each member: leave it out"
		case !isWhole || whole < 0:
			problems[name] = fmt.Sprintf("must be a number of objects that is not negative, got %s", limit.String())
		}
	}
	return problems
}
