package jointoken

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/registration/jointoken/internal/bootstrapsecret"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// +kubebuilder:rbac:groups=membership.muster.dev,namespace=muster-registration,resources=jointokens,verbs=get;list;watch
// +kubebuilder:rbac:groups=membership.muster.dev,namespace=muster-registration,resources=jointokens/status,verbs=patch
// +kubebuilder:rbac:groups="",namespace=muster-registration,resources=secrets,verbs=get;list;watch;create;update
// +kubebuilder:rbac:groups="",namespace=muster-registration,resources=serviceaccounts,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups="",namespace=muster-registration,resources=serviceaccounts/token,verbs=create
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,namespace=muster-registration,resources=rolebindings,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterroles,resourceNames=muster-bootstrap,verbs=bind
// +kubebuilder:rbac:groups=events.k8s.io,namespace=muster-registration,resources=events,verbs=create;patch

// reconciler maintains the objects of JoinTokens according to plan.
type reconciler struct {
	reader   client.Reader // not a cache
	client   client.Client
	recorder events.EventRecorder
	clock    clock.PassiveClock
	random   io.Reader
	hub      registration.Bootstrap                // what all of the hub's bootstraps have in common
	hubID    func(context.Context) (string, error) // nil: bootstraps have none
	// bootstrapTokens is true on hubs that support bootstrap tokens, and therefore may read Secrets in kube-system.
	bootstrapTokens bool
}

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	token := &v1alpha1.JoinToken{}
	err := r.reader.Get(ctx, request.NamespacedName, token)
	if apierrors.IsNotFound(err) || err == nil && token.DeletionTimestamp != nil {
		return r.forget(ctx, request.NamespacedName)
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	was := token.DeepCopy()

	step, err := r.keep(ctx, token)
	if !outdated(err) {
		if err != nil {
			step.Reason, step.Message = v1alpha1.ReasonFailed, err.Error()
		}
		err = errors.Join(err, client.IgnoreNotFound(r.report(ctx, was, token, step)))
	}
	if outdated(err) {
		log.FromContext(ctx).V(1).Info("An object changed during the reconcile, retrying", "cause", err.Error())
		return ctrl.Result{RequeueAfter: time.Second}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: r.until(step.Again)}, nil
}

// forget deletes the object of a deleted JoinToken that the garbage collector does not delete.
func (r *reconciler) forget(ctx context.Context, token types.NamespacedName) (ctrl.Result, error) {
	if !r.bootstrapTokens || !bootstrapsecret.IsName(token.Name) {
		return ctrl.Result{}, nil
	}
	err := r.store().Forget(ctx, token)
	if outdated(err) {
		return ctrl.Result{RequeueAfter: time.Second}, nil
	}
	return ctrl.Result{}, err
}

// hubFor returns the common part of all bootstraps of the hub.
func (r *reconciler) hubFor(ctx context.Context) (hub registration.Bootstrap, err error) {
	hub = r.hub
	if r.hubID != nil {
		if hub.HubID, err = r.hubID(ctx); err != nil {
			return hub, fmt.Errorf("determine the identity of the hub: %w", err)
		}
	}
	return hub, nil
}

// keep carries out the plan, and sets the resulting fields of the status.
func (r *reconciler) keep(ctx context.Context, token *v1alpha1.JoinToken) (step, error) {
	if token.Spec.Type == v1alpha1.JoinTokenBootstrapToken && !r.bootstrapTokens {
		return step{Reason: v1alpha1.ReasonNotEnabled, Message: "This hub does not support JoinTokens of type " +
			"BootstrapToken: create a JoinToken of type ServiceAccount, or run the hub with the option BootstrapTokens."}, nil
	}
	assets, err := r.observe(ctx, token)
	if err != nil {
		return step{}, err
	}
	step := plan(token, assets.credential, assets.seenAt)
	token.Status.UsedUpTime = timeOf(step.UsedUp) // whatever becomes of the rest: the grace must not begin anew
	switch step.Action {
	case issue:
		if err = r.issue(ctx, assets, step.Lifetime); err == nil {
			step = plan(token, assets.credential, assets.seenAt)
		}
	case complete:
		err = r.complete(ctx, assets)
	case withdraw:
		err = r.withdraw(ctx, assets, step.Again)
	case remove:
		err = r.remove(ctx, assets)
	case keep:
	}
	if err != nil {
		return step, err
	}
	token.Status.SecretName, token.Status.CredentialExpirationTime = "", nil
	token.Status.ExpirationTime = timeOf(step.End)
	if bootstrap := bootstrapIn(assets.secret); bootstrap != nil {
		token.Status.SecretName = assets.secret.Name
		token.Status.CredentialExpirationTime = timeOf(bootstrap.ExpirationTime)
	}
	return step, nil
}

// report writes the status if it has changed, and records an Event if the reason has changed or a credential was
// issued.
func (r *reconciler) report(ctx context.Context, was, token *v1alpha1.JoinToken, step step) error {
	ready := metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, ObservedGeneration: token.Generation,
		Reason: step.Reason, Message: lifecycle.FormatMessage(step.Message),
		LastTransitionTime: metav1.NewTime(r.clock.Now()),
	}
	if step.Reason == v1alpha1.ReasonReady {
		ready.Status = metav1.ConditionTrue
	}
	before := meta.FindStatusCondition(was.Status.Conditions, v1alpha1.ConditionReady)
	changed := before == nil || before.Reason != ready.Reason
	meta.SetStatusCondition(&token.Status.Conditions, ready)
	if equality.Semantic.DeepEqual(was.Status, token.Status) {
		return nil
	}
	patch := client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{})
	renewed := !was.Status.CredentialExpirationTime.Equal(token.Status.CredentialExpirationTime)
	if err := r.client.Status().Patch(ctx, token, patch); err != nil {
		return fmt.Errorf("update the status of JoinToken %s/%s: %w", token.Namespace, token.Name, err)
	}
	switch {
	case ready.Status == metav1.ConditionTrue && (changed || renewed):
		ends := "does not expire"
		if end := token.Status.CredentialExpirationTime; end != nil {
			ends = "expires at " + end.UTC().Format(time.RFC3339)
		}
		r.recorder.Eventf(token, nil, corev1.EventTypeNormal, "CredentialIssued", "Issue",
			"The Secret contains a credential that %s.", ends)
	case changed && (ready.Reason == v1alpha1.ReasonExpired || ready.Reason == v1alpha1.ReasonUsedUp):
		// +event:reason=Expired, UsedUp
		// +event:message=the message of the condition Ready
		r.recorder.Eventf(token, nil, corev1.EventTypeNormal, ready.Reason, "Withdraw", "%s", ready.Message)
	case changed:
		// +event:reason=any other reason of the condition Ready
		// +event:message=the message of the condition
		r.recorder.Eventf(token, nil, corev1.EventTypeWarning, ready.Reason, "Keep", "%s", ready.Message)
	}
	return nil
}

// timeOf converts a time for a status; nil: never.
func timeOf(at time.Time) *metav1.Time {
	if at.IsZero() {
		return nil
	}
	return &metav1.Time{Time: at}
}

// outdated reports whether another client wrote the object between a read and a write.
func outdated(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }

// until returns the duration until a time, at least a second; zero for the zero time.
func (r *reconciler) until(at time.Time) time.Duration {
	if at.IsZero() {
		return 0
	}
	return max(at.Sub(r.clock.Now()), time.Second)
}
