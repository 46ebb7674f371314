package hub

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/registration/jointoken"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// tokenMetadata returns an object that selects the metadata of JoinTokens. The cache contains only their metadata.
func tokenMetadata() *metav1.PartialObjectMetadata {
	token := &metav1.PartialObjectMetadata{}
	token.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("JoinToken"))
	return token
}

// ofToken enqueues the requests with a token that was deleted, or whose spec was changed.
func (d *joinRequestController) ofToken() handler.EventHandler {
	enqueue := func(ctx context.Context, token client.Object,
		queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		for _, request := range d.requests(ctx, byToken, token.GetName()) {
			queue.Add(request)
		}
	}
	return handler.Funcs{
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent,
			queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			enqueue(ctx, e.Object, queue)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent,
			queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			if e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() {
				enqueue(ctx, e.ObjectNew, queue)
			}
		},
	}
}

// tokenEnd observes the expiration of the token of a request.
func (d *joinRequestController) tokenEnd(token *v1alpha1.JoinToken, o *lifecycle.JoinRequestObserved) {
	end := jointoken.End(token)
	if end.IsZero() {
		return
	}
	if o.Token.EndsIn = end.Sub(d.options.Clock.Now()); o.Token.EndsIn <= 0 {
		o.Token.EndsIn = 0
		o.Token.Ended = fmt.Sprintf("JoinToken %q expired at %s while the request waited for a decision: give the agent the "+
			"join.yaml of another JoinToken.", token.Name, end.UTC().Format(time.RFC3339))
	}
}

// lookForToken observes whether the token that admitted a request has been deleted.
func (d *joinRequestController) lookForToken(ctx context.Context, request *v1alpha1.JoinRequest,
	o *lifecycle.JoinRequestObserved) error {
	key := client.ObjectKey{Namespace: request.Namespace, Name: request.Spec.Token.Name}
	token, err := found(ctx, d.reader, key, &v1alpha1.JoinToken{})
	if err != nil || token != nil && !request.CreationTimestamp.Before(&token.CreationTimestamp) {
		return err
	}
	o.Token.Ended = fmt.Sprintf("JoinToken %q was deleted while the request waited for a decision: give the agent the "+
		"join.yaml of another JoinToken.", key.Name)
	return nil
}
