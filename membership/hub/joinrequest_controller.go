package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/keymutex"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/muster-sdk/muster/internal/tracing"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/registration/jointoken"
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

	// concluding prevents that two requests with one cluster ID both find that there is no member yet.
	concluding keymutex.KeyMutex

	written written
	limits  *requestLimits
	excess  *lateQueue // requests beyond the limits

	identity   *hubIdentity
	tombstones *tombstones
	conflicts  workqueue.TypedRateLimiter[string] // the pauses after conflicts, by request

	// counting serializes the updates of a JoinToken's count, to avoid conflicts.
	counting sync.Mutex
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
			d.written.forget(key.Name)
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
	if d.written.newer(&request, d.options.Clock.Now()) {
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
	return retry(d.conflicts, key.Name, sooner(step.After, after), err)
}

// quietFor is for how long a Pending request has no answer in its status: most are issued by then, so the write is
// saved.
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
		d.concluding.LockKey(request.Spec.ClusterID)
		defer func() { _ = d.concluding.UnlockKey(request.Spec.ClusterID) }()
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

// observe reads a request and its possible members.
func (d *joinRequestController) observe(ctx context.Context, request *v1alpha1.JoinRequest) (
	lifecycle.JoinRequestObserved, *v1alpha1.JoinToken, error) {
	o := lifecycle.JoinRequestObserved{
		Answer: request.Status.Answer, Bound: request.Status.MemberUID, ClusterID: request.Spec.ClusterID,
		Name:  request.Spec.Name,
		Claim: registration.Fingerprint(request.Spec.ClaimKey), MemberUID: request.Spec.MemberUID,
		Type:      request.Spec.Credential.Type,
		CreatedAt: request.CreationTimestamp.Time,
	}
	o.AgentHubID = request.Spec.HubID
	if issued := meta.FindStatusCondition(request.Status.Conditions, v1alpha1.ConditionIssued); issued != nil {
		o.Reason = issued.Reason
	}
	if err := registration.Verify(request); err != nil {
		return o, nil, invalid(err, &o.Invalid)
	}
	proven := registration.ProvenKeys(request.Spec.ClaimKey, request.Spec.Keys)
	o.Keys = proven[:len(proven)-1]
	var err error
	if o.HubID, err = d.identity.id(ctx); err != nil {
		return o, nil, err
	}
	if err := d.look(ctx, d.client, &o); err != nil {
		return o, nil, err
	}

	// The token is not needed after the hub has recorded the claim: an agent whose token ends between the claim and the
	// acceptance can still join. Until a decision exists, the policy is called, and it must know the token.
	if member := o.ByClaim; member != nil && member.Accepted != nil {
		return o, nil, nil
	}
	var token *v1alpha1.JoinToken
	switch {
	case request.Spec.Token != nil:
		if token, err = jointoken.Check(ctx, d.reader, request); err != nil {
			if err = invalid(err, &o.TokenRefused); err == nil && o.ByClaim != nil {
				err = d.lookForToken(ctx, request, &o)
			}
			return o, nil, err
		}
		d.tokenEnd(token, &o)
		if o.TokenRefused = reserved(token, o); o.TokenRefused != "" {
			return o, nil, nil
		}
	case !d.options.AllowWithoutToken:
		o.TokenRefused = "spec.token: is not set, and this hub requires a JoinToken"
		return o, nil, nil
	}
	if err := d.checkLabels(ctx, request, token, &o); err != nil || o.TokenRefused != "" {
		return o, nil, err
	}
	o.Readopt = token != nil && token.Spec.AutoAccept && token.Spec.ClusterID == o.ClusterID
	if o.Acceptance, err = d.acceptance(ctx, request, token); err != nil {
		if ctx.Err() != nil {
			return o, token, err // the hub ends, the Acceptor has not failed
		}
		logf.FromContext(ctx).Error(err, "The Acceptor failed")
		o.AcceptorError = lifecycle.FormatMessage(err.Error())
	}
	return o, token, nil
}

// checkLabels refuses the request for a new member with a label that it must not have. The labels of a request have no
// effect on an existing member.
func (d *joinRequestController) checkLabels(ctx context.Context, request *v1alpha1.JoinRequest,
	token *v1alpha1.JoinToken,
	o *lifecycle.JoinRequestObserved) error {
	if len(request.Spec.Labels) == 0 || o.ByClaim != nil || o.ByID != nil || o.ByName != nil {
		return nil
	}
	var protected []string
	if d.options.ProtectedLabels != nil {
		var err error
		if protected, err = d.options.ProtectedLabels(ctx); err != nil {
			return fmt.Errorf("get the protected labels: %w", err)
		}
	}
	return invalid(jointoken.AdmitLabels(token, request, protected), &o.TokenRefused)
}

// reserved returns why a token for a single member does not admit a request; empty: it does.
func reserved(token *v1alpha1.JoinToken, o lifecycle.JoinRequestObserved) string {
	uid, member := jointoken.MemberUID(token), o.ByID
	if member == nil {
		member = o.ByName
	}
	if uid == "" || member != nil && member.UID == uid {
		return ""
	}
	return fmt.Sprintf("spec.token.name: JoinToken %q is for a single MemberCluster, which does not exist or is not "+
		"that of this cluster", token.Name)
}

// look reads the members with the claim, the cluster ID or the name of a request.
func (d *joinRequestController) look(ctx context.Context, members client.Reader,
	o *lifecycle.JoinRequestObserved) error {
	o.ByClaim, o.ByID, o.ByName, o.Others = nil, nil, nil, nil
	if err := d.lookByClaim(ctx, members, o); err != nil {
		return err
	}
	var same v1alpha1.MemberClusterList
	if err := members.List(ctx, &same, client.MatchingFields{byClusterID: o.ClusterID}); err != nil {
		return err
	}
	slices.SortFunc(same.Items, func(a, b v1alpha1.MemberCluster) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for i := range same.Items {
		if i > 0 {
			o.Others = append(o.Others, same.Items[i].Name)
			continue
		}
		var err error
		if o.ByID, err = d.see(ctx, &same.Items[i]); err != nil {
			return err
		}
	}
	named, err := found(ctx, members, client.ObjectKey{Name: o.Name}, &v1alpha1.MemberCluster{})
	if err != nil {
		return err
	}
	if named == nil {
		return d.lookForTombstones(ctx, members == d.reader, o)
	}
	if o.ByName, err = d.see(ctx, named); err != nil {
		return err
	}
	return d.lookForTombstones(ctx, members == d.reader, o)
}

// lookByClaim reads the member with the claim of a request.
func (d *joinRequestController) lookByClaim(ctx context.Context, members client.Reader,
	o *lifecycle.JoinRequestObserved) error {
	var list v1alpha1.MemberClusterList
	if err := members.List(ctx, &list, client.MatchingFields{byClaim: o.Claim}); err != nil {
		return err
	}
	for i := range list.Items {
		// Several members have one claim only if an administrator copied a MemberCluster: the cluster ID is decisive.
		if o.ByClaim != nil && list.Items[i].Spec.ClusterID != o.ClusterID {
			continue
		}
		var err error
		if o.ByClaim, err = d.see(ctx, &list.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

// lookForTombstones reads the records of members that left, if the decision may depend on them. It always does before a
// MemberCluster is created, because a claim whose member left never comes back.
func (d *joinRequestController) lookForTombstones(ctx context.Context, live bool,
	o *lifecycle.JoinRequestObserved) (err error) {
	o.Tombstones = nil
	if o.ByClaim == nil && (live || o.NeedsTombstones()) {
		o.Tombstones, err = d.tombstones.of(ctx, o.ClusterID)
	}
	return err
}

// invalid stores the message of an error that refuses a request for good, and returns all other errors.
func invalid(err error, into *string) error {
	var refused *membership.InvalidError
	if !errors.As(err, &refused) {
		return err
	}
	*into = refused.Error()
	return nil
}

// acceptance is the decision of the Acceptor, or, without one, that of the JoinToken.
func (d *joinRequestController) acceptance(ctx context.Context, request *v1alpha1.JoinRequest,
	token *v1alpha1.JoinToken) (membership.Acceptance, error) {
	switch acceptor := d.options.Acceptor; {
	case acceptor != nil:
		return ask(ctx, acceptor, request)
	case token != nil:
		return jointoken.Acceptance(token), nil
	default:
		return membership.Acceptance{Decision: membership.Hold}, nil
	}
}

// see converts a MemberCluster for the decision.
func (d *joinRequestController) see(ctx context.Context,
	cluster *v1alpha1.MemberCluster) (*lifecycle.MemberSeen, error) {
	member := memberOf(cluster, d.options.NamespacePrefix)
	subject, missing := subjectOf(member, cluster.Spec.Credential, d.options.Issuers)
	seen := &lifecycle.MemberSeen{
		Name: cluster.Name, UID: cluster.UID, ClusterID: cluster.Spec.ClusterID, Claim: cluster.Spec.Claim,
		AgentSeen:  lifecycle.AgentSeen{Keys: cluster.Spec.ClaimKeys},
		Credential: cluster.Spec.Credential, Accepted: cluster.Spec.Accepted,
		Deleting: cluster.DeletionTimestamp != nil,
		Desired:  cluster.Spec.State,
		Leaving:  cluster.Status.Leave != nil && !cluster.Status.Leave.Ended, Identified: missing == nil,
	}
	binding, err := found(ctx, d.client, client.ObjectKey{Namespace: member.Namespace, Name: membership.AgentName},
		&rbacv1.RoleBinding{})
	if err != nil {
		return nil, err
	}
	self, err := found(ctx, d.client, client.ObjectKey{Namespace: member.Namespace, Name: membership.MembershipName},
		&v1alpha1.Membership{})
	if err != nil {
		return nil, err
	}
	if self != nil && self.Spec.MemberUID == cluster.UID {
		seen.Reported = self.Status.Claim
	}
	seen.Prepared = subject != nil && self != nil && self.Spec.MemberUID == cluster.UID &&
		binding != nil && slices.Equal(binding.Subjects, []rbacv1.Subject{*subject})
	return seen, nil
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
	d.written.note(request)
	if before.Status.Answer != status.Answer && step.Answer != v1alpha1.AnswerPending {
		// +event:reason=Held, Denied, Deregistered, Issued
		// +event:type=Warning if the answer is Denied, else Normal
		// +event:message=the message of the condition Issued
		d.recorder.Eventf(request, nil, eventType(step.Answer), string(step.Answer), "Answer", "%s", step.Message)
	}
	return nil
}

// eventType returns the type of the Event about an answer. A member that left on request is not a failure.
func eventType(answer v1alpha1.JoinAnswer) string {
	if answer == v1alpha1.AnswerDenied {
		return corev1.EventTypeWarning
	}
	return corev1.EventTypeNormal
}
