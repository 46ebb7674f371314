package hub

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/muster-sdk/muster/internal/assume"
	"github.com/muster-sdk/muster/internal/requeue"
	"github.com/muster-sdk/muster/internal/tracing"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// +kubebuilder:rbac:groups=membership.muster.dev,resources=joinrequests,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=membership.muster.dev,resources=joinrequests/status,verbs=update;patch
// +kubebuilder:rbac:groups=membership.muster.dev,resources=jointokens,verbs=get
// +kubebuilder:rbac:groups=membership.muster.dev,resources=jointokens/status,verbs=patch

// joinRequestController is the controller of JoinRequests: it observes a request and its possible members, calls
// package lifecycle to decide, carries out the step and reports.
type joinRequestController struct {
	client   client.Client
	reader   client.Reader // without a cache
	options  Options
	recorder events.EventRecorder

	// concluding contains a lock for each cluster ID. It prevents that two concurrent requests with one cluster ID both
	// observe that no member exists yet.
	concluding keyLocks

	written assume.Versions
	limits  *requestLimits
	excess  *lateQueue // requests beyond the limits

	identity   *hubIdentity
	tombstones *tombstones
	conflicts  workqueue.TypedRateLimiter[string] // the pauses after conflicts, by request

	// counting contains a lock for each JoinToken. It serializes the updates of the count, to avoid conflicts.
	counting keyLocks
}

// The indices of the hub's caches. The API server supports the field selector for the cluster ID of MemberClusters as
// well.
const (
	byClusterID = "spec.clusterID"
	byClaim     = "spec.claim"
	byName      = "spec.name"
	byToken     = "spec.token.name"
)

func (d *joinRequestController) setup(mgr manager.Manager, hub cluster.Cluster) error {
	options := controllerOptions(d.options.Workers)
	options.Reconciler = tracing.Reconciler("muster-joinrequest", d)
	c, err := controller.New("muster-joinrequest", mgr, options)
	if err != nil {
		return err
	}
	ctx, indexer := context.Background(), hub.GetFieldIndexer()
	err = errors.Join(
		indexer.IndexField(ctx, &v1alpha1.MemberCluster{}, byClusterID, func(o client.Object) []string {
			return []string{o.(*v1alpha1.MemberCluster).Spec.ClusterID}
		}),
		indexer.IndexField(ctx, &v1alpha1.MemberCluster{}, byClaim, func(o client.Object) []string {
			return []string{o.(*v1alpha1.MemberCluster).Spec.Claim}
		}),
		indexer.IndexField(ctx, &v1alpha1.JoinRequest{}, byClusterID, func(o client.Object) []string {
			return []string{o.(*v1alpha1.JoinRequest).Spec.ClusterID}
		}),
		indexer.IndexField(ctx, &v1alpha1.JoinRequest{}, byName, func(o client.Object) []string {
			return []string{o.(*v1alpha1.JoinRequest).Spec.Name}
		}),
		indexer.IndexField(ctx, &v1alpha1.JoinRequest{}, byToken, func(o client.Object) []string {
			if token := o.(*v1alpha1.JoinRequest).Spec.Token; token != nil {
				return []string{token.Name}
			}
			return nil
		}),
	)
	if err != nil {
		return err
	}
	ofMember := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, object client.Object) []reconcile.Request {
		return append(d.requests(ctx, byName, object.GetName()),
			d.requests(ctx, byClusterID, object.(*v1alpha1.MemberCluster).Spec.ClusterID)...)
	})
	byLabel := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, object client.Object) []reconcile.Request {
		member := &v1alpha1.MemberCluster{}
		key := client.ObjectKey{Name: object.GetLabels()[membership.MemberLabel]}
		if d.client.Get(ctx, key, member) != nil {
			return nil
		}
		return d.requests(ctx, byClusterID, member.Spec.ClusterID)
	})
	return errors.Join(
		c.Watch(source.Kind[client.Object](hub.GetCache(), &v1alpha1.JoinRequest{}, &handler.EnqueueRequestForObject{},
			butStatus)),
		c.Watch(source.Kind[client.Object](hub.GetCache(), &v1alpha1.MemberCluster{}, ofMember)),
		c.Watch(source.Kind[client.Object](hub.GetCache(), &v1alpha1.Membership{}, byLabel)),
		c.Watch(source.Kind[client.Object](hub.GetCache(), &rbacv1.RoleBinding{}, byLabel)),
		c.Watch(source.Kind[client.Object](hub.GetCache(), tokenMetadata(), d.ofToken())),
		c.Watch(d.excess),
	)
}

// requests lists the JoinRequests with a value of an index.
func (d *joinRequestController) requests(ctx context.Context, index, value string) []reconcile.Request {
	if value == "" {
		return nil
	}
	var list v1alpha1.JoinRequestList
	if d.client.List(ctx, &list, client.InNamespace(d.options.RegistrationNamespace),
		client.MatchingFields{index: value}) != nil {
		return nil // the cache is stopping
	}
	out := make([]reconcile.Request, len(list.Items))
	for i := range list.Items {
		out[i].NamespacedName = client.ObjectKeyFromObject(&list.Items[i])
	}
	return out
}

// Reconcile performs the next step of a JoinRequest.
func (d *joinRequestController) Reconcile(ctx context.Context, key reconcile.Request) (reconcile.Result, error) {
	if key.Namespace != d.options.RegistrationNamespace {
		return reconcile.Result{}, nil
	}
	var request v1alpha1.JoinRequest
	if err := d.client.Get(ctx, key.NamespacedName, &request); err != nil {
		if apierrors.IsNotFound(err) {
			d.conflicts.Forget(key.Name)
			d.written.Forget(key.NamespacedName)
			d.limits.leave(key.Name)
			if d.limits.takeDeleted(key.Name) {
				if err := d.recount(ctx); err != nil {
					d.limits.noteDeleted(key.Name)
					return retry(d.conflicts, key.Name, 0, err)
				}
			}
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if request.DeletionTimestamp != nil {
		return retry(d.conflicts, key.Name, 0, d.release(ctx, &request))
	}
	if d.written.Lacks(&request, d.options.Clock.Now()) {
		return reconcile.Result{RequeueAfter: conflictPause}, nil
	}
	step, err := d.answer(ctx, &request)
	if errors.Is(err, errTooMany) {
		return reconcile.Result{}, nil
	}
	if err != nil && !errors.Is(err, membership.ErrPending) {
		err = fmt.Errorf("answer JoinRequest %s: %w", request.Name, err)
	}
	// Requests that cannot be answered expire as well.
	gone, collected := d.collect(ctx, &request, step)
	switch {
	case gone:
		return retry(d.conflicts, key.Name, 0, collected)
	case collected != nil:
		return retry(d.conflicts, key.Name, 0, errors.Join(err, collected))
	}
	after := d.untilCollected(&request)
	if request.Status.Answer == "" {
		after = quietFor
	}
	return retry(d.conflicts, key.Name, requeue.Sooner(step.After, after), err)
}

// quietFor is how long the answer Pending of a new request is not written: most credentials are issued within this
// time, which saves the write.
const quietFor = 2 * time.Second

// answer decides on a request, carries out the step and writes the answer to the status.
func (d *joinRequestController) answer(ctx context.Context,
	request *v1alpha1.JoinRequest) (lifecycle.JoinRequestStep, error) {
	observed, token, err := d.observe(ctx, request)
	if err != nil {
		return lifecycle.JoinRequestStep{}, err
	}
	step := lifecycle.NextJoinRequest(observed)
	if err := d.limit(ctx, request, observed, token != nil, step); err != nil {
		return step, err
	}
	members := client.Reader(d.client)
	if step.Final {
		// A cache that is disconnected from its API server may lag by a minute.
		members = d.reader
		unlock, err := d.concluding.lock(ctx, request.Spec.ClusterID)
		if err != nil {
			return step, err
		}
		defer unlock()
		if err := d.look(ctx, members, &observed); err != nil {
			return step, err
		}
		step = lifecycle.NextJoinRequest(observed)
	}
	member, err := d.admit(ctx, members, request, token, step)
	if err != nil {
		return step, err
	}
	var credential *v1alpha1.Credential
	if slices.Contains(step.Actions, lifecycle.IssueCredential) {
		credential, step, err = d.issue(ctx, request, member, step)
		if err != nil {
			return step, errors.Join(d.report(ctx, request, step, member, nil), err)
		}
	}
	return step, d.report(ctx, request, step, member, credential)
}

// report writes the answer to the status, if it has changed.
func (d *joinRequestController) report(ctx context.Context, request *v1alpha1.JoinRequest,
	step lifecycle.JoinRequestStep,
	cluster *v1alpha1.MemberCluster, credential *v1alpha1.Credential) error {
	before := request.DeepCopy()
	status := &request.Status
	if status.Answer == "" && step.Answer == v1alpha1.AnswerPending &&
		d.options.Clock.Since(request.CreationTimestamp.Time).Abs() < quietFor {
		return nil
	}
	status.Answer = step.Answer
	status.Claim = registration.Fingerprint(request.Spec.ClaimKey)
	is, err := d.identity.get(ctx)
	if err != nil {
		return err
	}
	if status.Hub == nil || status.Hub.ID != is.ID {
		status.Hub = &is
	}
	status.MemberName, status.MemberUID, status.Namespace = "", "", ""
	if cluster != nil && cluster.Spec.Claim == status.Claim || cluster != nil &&
		step.Answer == v1alpha1.AnswerDeregistered {
		status.MemberName, status.MemberUID = cluster.Name, cluster.UID
		status.Namespace = membership.NamespaceFor(d.options.NamespacePrefix, cluster.Name)
	}
	switch {
	case credential != nil:
		status.Credential = credential
	case step.Answer != v1alpha1.AnswerIssued:
		status.Credential = nil
	}
	issued := metav1.ConditionFalse
	if step.Answer == v1alpha1.AnswerIssued {
		issued = metav1.ConditionTrue
	}
	if was := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionIssued); was != nil &&
		step.Reason == v1alpha1.ReasonTokenEnded && was.Reason != step.Reason {
		// The request is kept for a while from now on: see untilCollected.
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionIssued)
	}
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionIssued, Status: issued, Reason: step.Reason, Message: step.Message,
		ObservedGeneration: request.Generation, LastTransitionTime: metav1.NewTime(d.options.Clock.Now()),
	})
	if equality.Semantic.DeepEqual(before.Status, *status) {
		return nil
	}
	status.Hub = &is // a new epoch alone is not written
	lock := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := d.client.Status().Patch(ctx, request, lock); err != nil {
		return client.IgnoreNotFound(err)
	}
	d.written.Record(request)
	if before.Status.Answer != status.Answer && step.Answer != v1alpha1.AnswerPending {
		// +event:reason=Held, Denied, Deregistered, Issued
		// +event:type=Warning if the answer is Denied, else Normal
		// +event:message=the message of the condition Issued
		d.recorder.Eventf(request, nil, eventType(step.Answer), string(step.Answer), "Answer", "%s", step.Message)
	}
	return nil
}

// eventType returns the type of the Event about an answer. The answer to a member that left on request is not a
// Warning.
func eventType(answer v1alpha1.JoinAnswer) string {
	if answer == v1alpha1.AnswerDenied {
		return corev1.EventTypeWarning
	}
	return corev1.EventTypeNormal
}
