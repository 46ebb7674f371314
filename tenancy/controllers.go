package tenancy

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/muster-sdk/muster/internal/precondition"
	"github.com/muster-sdk/muster/internal/tracing"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	placementv1alpha1 "github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/tenancy/v1alpha1"
)

// +kubebuilder:rbac:groups=tenancy.muster.dev,resources=clustersets,verbs=get;list;watch;create;patch
// The hub creates MemberClusters with the labels of JoinTokens, which the policy for labels permits with the verb bind.
// +kubebuilder:rbac:groups=tenancy.muster.dev,resources=clustersets,verbs=bind
// +kubebuilder:rbac:groups=tenancy.muster.dev,resources=clustersets/status,verbs=patch
// +kubebuilder:rbac:groups=tenancy.muster.dev,resources=clustersetbindings,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=tenancy.muster.dev,resources=selectiongrants,verbs=list;watch
// +kubebuilder:rbac:groups=tenancy.muster.dev,resources=clustersetbindings/status,verbs=patch
// +kubebuilder:rbac:groups=membership.muster.dev,resources=memberclusters,verbs=get;list;watch
// +kubebuilder:rbac:groups=placement.muster.dev,resources=placementdecisions,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

func setupControllers(mgr manager.Manager, o Options) error {
	c, recorder := mgr.GetClient(), mgr.GetEventRecorder("muster-tenancy")
	if !o.WithoutGlobal {
		if err := mgr.Add(leaderRunnable(func(ctx context.Context) error { return createGlobal(ctx, c) })); err != nil {
			return fmt.Errorf("add the creation of ClusterSet %s: %w", v1alpha1.GlobalClusterSet, err)
		}
	}
	setsOf := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, b client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: b.(*v1alpha1.ClusterSetBinding).
			Spec.ClusterSetName}}}
	})
	setsSelecting := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context,
		member client.Object) (requests []reconcile.Request) {
		var list v1alpha1.ClusterSetList
		if err := c.List(ctx, &list); err != nil {
			mgr.GetLogger().Error(err, "Cannot list ClusterSets after a change of a MemberCluster")
		}
		for i := range list.Items {
			if s := setOf(&list.Items[i]); s.Selector != nil && s.Selector.Matches(labels.Set(member.GetLabels())) {
				requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Name: s.Name}})
			}
		}
		return requests
	})
	err := ctrl.NewControllerManagedBy(mgr).Named("muster-clustersets").
		For(&v1alpha1.ClusterSet{}).
		Watches(&v1alpha1.ClusterSetBinding{}, setsOf, builder.WithPredicates(predicate.Or[client.Object](
			predicate.GenerationChangedPredicate{}, predicate.NewPredicateFuncs(isDeleted)))).
		Watches(&membershipv1alpha1.MemberCluster{}, setsSelecting,
			builder.WithPredicates(predicate.Funcs{UpdateFunc: countsChanged})).
		Complete(tracing.Reconciler("muster-clustersets", &setReconciler{o, c, reporter{c, recorder}}))
	if err != nil {
		return fmt.Errorf("set up the controller of ClusterSets: %w", err)
	}
	bindingsOf := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context,
		set client.Object) (requests []reconcile.Request) {
		var list v1alpha1.ClusterSetBindingList
		if err := c.List(ctx, &list); err != nil {
			mgr.GetLogger().Error(err, "Cannot list ClusterSetBindings after a change of a ClusterSet")
		}
		for i := range list.Items {
			if list.Items[i].Spec.ClusterSetName == set.GetName() {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
			}
		}
		return requests
	})
	usedBindings := handler.EnqueueRequestsFromMapFunc(func(_ context.Context,
		object client.Object) (requests []reconcile.Request) {
		for name := range bindingsIn(object.(*placementv1alpha1.PlacementDecision)) {
			requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(),
				Name: name}})
		}
		return requests
	})
	err = ctrl.NewControllerManagedBy(mgr).Named("muster-clustersetbindings").
		For(&v1alpha1.ClusterSetBinding{}).
		Watches(&v1alpha1.ClusterSet{}, bindingsOf, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&placementv1alpha1.PlacementDecision{}, usedBindings).
		Complete(tracing.Reconciler("muster-clustersetbindings", &bindingReconciler{o, c, reporter{c, recorder}}))
	if err != nil {
		return fmt.Errorf("set up the controller of ClusterSetBindings: %w", err)
	}
	return nil
}

type leaderRunnable func(context.Context) error

func (f leaderRunnable) Start(ctx context.Context) error { return f(ctx) }

func isDeleted(object client.Object) bool { return object.GetDeletionTimestamp() != nil }

// countsChanged reports whether a change of a MemberCluster may change the counts of a set.
func countsChanged(e event.UpdateEvent) bool {
	before, after := e.ObjectOld.(*membershipv1alpha1.MemberCluster), e.ObjectNew.(*membershipv1alpha1.MemberCluster)
	return !reflect.DeepEqual(before.Labels, after.Labels) || healthy(before) != healthy(after)
}

func healthy(member *membershipv1alpha1.MemberCluster) bool {
	return meta.IsStatusConditionTrue(member.Status.Conditions, membershipv1alpha1.ConditionHealthy)
}

// createGlobal creates the ClusterSet global. It does not change an existing one.
func createGlobal(ctx context.Context, c client.Client) error {
	set := &v1alpha1.ClusterSet{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.GlobalClusterSet},
		Spec:       v1alpha1.ClusterSetSpec{Selector: &metav1.LabelSelector{}},
	}
	if err := c.Create(ctx, set); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create ClusterSet %s: %w", set.Name, err)
	}
	return nil
}

// bindingsIn returns the bindings by which the clusters of a decision were chosen.
func bindingsIn(d *placementv1alpha1.PlacementDecision) map[string]bool {
	names := map[string]bool{}
	for i := range d.Decisions {
		if name := d.Decisions[i].Binding; name != "" {
			names[name] = true
		}
	}
	return names
}

// condition returns the condition Ready.
func (o *Options) condition(generation int64, reason, message string) metav1.Condition {
	status := metav1.ConditionFalse
	if reason == v1alpha1.ReasonReady {
		status = metav1.ConditionTrue
	}
	return metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: status, Reason: reason, Message: message, ObservedGeneration: generation,
		LastTransitionTime: metav1.NewTime(o.Now()),
	}
}

// setReconciler maintains the status and the finalizer of ClusterSets.
type setReconciler struct {
	options Options
	client  client.Client
	report  reporter
}

// Reconcile observes one set, its clusters and its bindings.
func (r *setReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	set := &v1alpha1.ClusterSet{}
	if err := r.client.Get(ctx, request.NamespacedName, set); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	var bindings v1alpha1.ClusterSetBindingList
	if err := r.client.List(ctx, &bindings); err != nil {
		return reconcile.Result{}, fmt.Errorf("list ClusterSetBindings: %w", err)
	}
	var users []string
	for i := range bindings.Items {
		if b := &bindings.Items[i]; b.Spec.ClusterSetName == set.Name {
			users = append(users, b.Namespace+"/"+b.Name)
		}
	}
	slices.Sort(users)
	if err := finalize(ctx, r.client, set, len(users) > 0); err != nil {
		return reconcile.Result{}, err
	}
	if set.DeletionTimestamp != nil && len(users) == 0 {
		return reconcile.Result{}, nil
	}
	next := set.DeepCopy()
	status := &next.Status
	status.ObservedGeneration, status.Bindings = set.Generation, int32(len(users))
	if err := r.count(ctx, setOf(set).Selector, status); err != nil {
		return reconcile.Result{}, err
	}
	reason, message := v1alpha1.ReasonReady, ""
	_, invalid := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	switch {
	case set.DeletionTimestamp != nil:
		reason = v1alpha1.ReasonInUse
		message = fmt.Sprintf("ClusterSet %s is being deleted and waits for its %d ClusterSetBindings: %s. Delete them "+
			"first.",
			set.Name, len(users), first(users))
	case invalid != nil:
		reason, message = v1alpha1.ReasonInvalidSelector, fmt.Sprintf("spec.selector: %v", invalid)
	}
	meta.SetStatusCondition(&status.Conditions, r.options.condition(set.Generation, reason, message))
	if reflect.DeepEqual(set.Status, next.Status) {
		return reconcile.Result{}, nil
	}
	before, after := set.Status.Conditions, slices.Clone(status.Conditions)
	if err := r.report.patch(ctx, set, next); err != nil {
		return reconcile.Result{}, err
	}
	r.report.event(set, before, after)
	return reconcile.Result{}, nil
}

// count counts the clusters of a set. A nil selector selects none.
func (r *setReconciler) count(ctx context.Context, selector labels.Selector, status *v1alpha1.ClusterSetStatus) error {
	status.Clusters, status.ReadyClusters = 0, 0
	if selector == nil {
		return nil
	}
	var members membershipv1alpha1.MemberClusterList
	if err := r.client.List(ctx, &members, client.MatchingLabelsSelector{Selector: selector},
		client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list MemberClusters: %w", err)
	}
	for i := range members.Items {
		status.Clusters++
		if healthy(&members.Items[i]) {
			status.ReadyClusters++
		}
	}
	return nil
}

// bindingReconciler maintains the status and the finalizer of ClusterSetBindings.
type bindingReconciler struct {
	options Options
	client  client.Client
	report  reporter
}

// Reconcile observes one binding, its set, and the Placements that have clusters by it.
func (r *bindingReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	b := &v1alpha1.ClusterSetBinding{}
	if err := r.client.Get(ctx, request.NamespacedName, b); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	users, err := r.users(ctx, b)
	if err != nil {
		return reconcile.Result{}, err
	}
	if err := finalize(ctx, r.client, b, b.DeletionTimestamp == nil || len(users) > 0); err != nil {
		return reconcile.Result{}, err
	}
	if b.DeletionTimestamp != nil && len(users) == 0 {
		return reconcile.Result{}, nil
	}
	set := &v1alpha1.ClusterSet{}
	missing := r.client.Get(ctx, client.ObjectKey{Name: b.Spec.ClusterSetName}, set)
	if client.IgnoreNotFound(missing) != nil {
		return reconcile.Result{}, fmt.Errorf("read ClusterSet %s: %w", b.Spec.ClusterSetName, missing)
	}
	reason, message := v1alpha1.ReasonReady, ""
	switch {
	case b.DeletionTimestamp != nil:
		reason = v1alpha1.ReasonInUse
		message = fmt.Sprintf("ClusterSetBinding %s is being deleted and waits until its %d Placements have left their "+
			"clusters: %s.",
			b.Name, len(users), first(users))
	case missing != nil:
		reason, message = v1alpha1.ReasonClusterSetNotFound,
			fmt.Sprintf("spec.clusterSetName: ClusterSet %s does not exist. "+
				"Chosen clusters stay, and no new cluster is granted.", b.Spec.ClusterSetName)
	case setOf(set).Selector == nil:
		reason, message = v1alpha1.ReasonInvalidSelector, fmt.Sprintf("ClusterSet %s has an invalid spec.selector. "+
			"Chosen clusters stay, and no new cluster is granted.", set.Name)
	}
	next := b.DeepCopy()
	next.Status.ObservedGeneration, next.Status.UserCount = b.Generation, int32(len(users))
	next.Status.Users = slices.Clone(users[:min(len(users), v1alpha1.MaxUsers)])
	meta.SetStatusCondition(&next.Status.Conditions, r.options.condition(b.Generation, reason, message))
	if reflect.DeepEqual(b.Status, next.Status) {
		return reconcile.Result{}, nil
	}
	before, after := b.Status.Conditions, slices.Clone(next.Status.Conditions)
	if err := r.report.patch(ctx, b, next); err != nil {
		return reconcile.Result{}, err
	}
	r.report.event(b, before, after)
	return reconcile.Result{}, nil
}

// users returns the names of the Placements that have a cluster by the binding. The controller of Placements records
// another binding as soon as one grants the cluster.
func (r *bindingReconciler) users(ctx context.Context, b *v1alpha1.ClusterSetBinding) ([]string, error) {
	var decisions placementv1alpha1.PlacementDecisionList
	if err := r.client.List(ctx, &decisions, client.InNamespace(b.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list PlacementDecisions of namespace %s: %w", b.Namespace, err)
	}
	var users []string
	for i := range decisions.Items {
		if d := &decisions.Items[i]; bindingsIn(d)[b.Name] {
			name := d.Labels[placementv1alpha1.PlacementLabel]
			if owner := metav1.GetControllerOf(d); owner != nil {
				name = owner.Name
			}
			users = append(users, name)
		}
	}
	slices.Sort(users)
	return slices.Compact(users), nil
}

// first returns the first ten names of a list as a text, and the number of the others.
func first(names []string) string {
	const most = 10
	text := strings.Join(names[:min(len(names), most)], ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// finalize adds or removes the finalizer. It never adds one to an object that is being deleted.
func finalize(ctx context.Context, c client.Client, object client.Object, want bool) error {
	before := object.DeepCopyObject().(client.Object)
	changed := false
	switch {
	case !want:
		changed = controllerutil.RemoveFinalizer(object, v1alpha1.Finalizer)
	case object.GetDeletionTimestamp() == nil:
		changed = controllerutil.AddFinalizer(object, v1alpha1.Finalizer)
	}
	if !changed {
		return nil
	}
	err := c.Patch(ctx, object, precondition.Patch(before))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("patch the finalizer of %T %s: %w", object, client.ObjectKeyFromObject(object), err)
	}
	return nil
}

// reporter writes statuses, and records an Event if the condition Ready has changed.
type reporter struct {
	client   client.Client
	recorder events.EventRecorder
}

func (r reporter) patch(ctx context.Context, before, after client.Object) error {
	if err := r.client.Status().Patch(ctx, after, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write the status of %T %s: %w", before, client.ObjectKeyFromObject(before), err)
	}
	return nil
}

func (r reporter) event(about client.Object, before, after []metav1.Condition) {
	was := meta.FindStatusCondition(before, v1alpha1.ConditionReady)
	is := meta.FindStatusCondition(after, v1alpha1.ConditionReady)
	if was == nil && is.Status == metav1.ConditionTrue || was != nil && was.Reason == is.Reason {
		return
	}
	kind, message := corev1.EventTypeNormal, "The object is ready."
	if is.Status != metav1.ConditionTrue {
		kind, message = corev1.EventTypeWarning, is.Message
	}
	if is.Reason == v1alpha1.ReasonInUse {
		kind = corev1.EventTypeNormal // a requested deletion waits
	}
	// +event:object=ClusterSet, ClusterSetBinding
	// +event:reason=the reason of the condition Ready
	// +event:type=Warning if the condition is False and the reason is not InUse, else Normal
	// +event:message=the message of the condition
	r.recorder.Eventf(about, nil, kind, is.Reason, "Reconcile", "%s", message)
}
