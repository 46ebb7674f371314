package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/precondition"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// errTooMany means that a request was deleted because its JoinToken has too many requests.
var errTooMany = errors.New("too many JoinRequests of one JoinToken")

// requestLimits counts the requests that wait for a decision or are denied, by JoinToken. Requests whose token is
// unknown, such as those with an invalid proof, share one limit. All of it is rebuilt when the hub reconciles the
// requests after a restart.
type requestLimits struct {
	limit int

	mu      sync.Mutex
	of      map[string]string // the token of each counted request, by name
	deleted map[string]bool   // requests that were deleted as excess
	waiting map[string]map[string]metav1.Time
}

func newRequestLimits(limit int) *requestLimits {
	return &requestLimits{
		limit: limit, of: map[string]string{}, deleted: map[string]bool{}, waiting: map[string]map[string]metav1.Time{},
	}
}

// enter counts a request. If the token has more requests than the limit, it returns the name of the newest one, which
// must be deleted. Otherwise it returns "".
func (l *requestLimits) enter(token, request string, created metav1.Time) (newest string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if was, counted := l.of[request]; counted && was != token {
		l.remove(request)
	}
	l.of[request] = token
	all := l.waiting[token]
	if all == nil {
		all = map[string]metav1.Time{}
		l.waiting[token] = all
	}
	all[request] = created
	return l.newest(token)
}

// newest returns the name of the newest request of a token that has more requests than the limit; empty: it has not.
func (l *requestLimits) newest(token string) (newest string) {
	all := l.waiting[token]
	if len(all) <= l.limit {
		return ""
	}
	for name, at := range all {
		if newest == "" || cmp.Or(at.Compare(all[newest].Time), cmp.Compare(name, newest)) > 0 {
			newest = name
		}
	}
	return newest
}

// leave ends the count of a request that was deleted or decided on. If its token still has more requests than the
// limit, it returns the name of the newest one.
func (l *requestLimits) leave(request string) (newest string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	token := l.of[request]
	l.remove(request)
	return l.newest(token)
}

// noteDeleted records that a request was deleted because its token has too many requests.
func (l *requestLimits) noteDeleted(request string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deleted[request] = true
}

// takeDeleted reports once whether a request was deleted because its token had too many requests.
func (l *requestLimits) takeDeleted(request string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	was := l.deleted[request]
	delete(l.deleted, request)
	return was
}

func (l *requestLimits) remove(request string) {
	token, counted := l.of[request]
	if !counted {
		return
	}
	delete(l.of, request)
	if delete(l.waiting[token], request); len(l.waiting[token]) == 0 {
		delete(l.waiting, token)
	}
}

// limit deletes the newest request of a JoinToken that has more requests than the limit, usually before any object is
// created for it. Therefore a stolen token cannot use up the quota for JoinRequests, which all tokens share. Requests
// of clusters that are decided on, and those that the hub accepts immediately, are limited only by spec.maxUses of the
// token. The error is errTooMany if the request itself was deleted.
func (d *joinRequestController) limit(ctx context.Context, request *v1alpha1.JoinRequest,
	o lifecycle.JoinRequestObserved, admitted bool, step lifecycle.JoinRequestStep) error {
	decided := o.Members.ByClaim != nil && o.Members.ByClaim.Accepted != nil
	if decided || step.Answer != v1alpha1.AnswerHeld && step.Answer != v1alpha1.AnswerDenied {
		d.limits.leave(request.Name)
		return nil
	}
	token := ""
	if request.Spec.Token != nil && (admitted || step.Reason == v1alpha1.ReasonTokenEnded) {
		token = request.Spec.Token.Name
	}
	switch newest := d.limits.enter(token, request.Name, request.CreationTimestamp); newest {
	case "":
		return nil
	case request.Name:
	default: // a MemberCluster may be created for it at this moment, so its own reconcile deletes it
		d.excess.addKey(client.ObjectKey{Namespace: request.Namespace, Name: newest})
		return nil
	}
	// The MemberCluster may be missing in the cache.
	name := cmp.Or(request.Status.MemberName, request.Spec.Name)
	if err := d.collectMember(ctx, d.reader, request, name); err != nil {
		return err
	}
	if err := client.IgnoreNotFound(d.client.Delete(ctx, request, precondition.Unchanged(request))); err != nil {
		return err
	}
	d.limits.noteDeleted(request.Name)
	if newest := d.limits.leave(request.Name); newest != "" {
		d.excess.addKey(client.ObjectKey{Namespace: request.Namespace, Name: newest})
	}
	if token != "" {
		about := &v1alpha1.JoinToken{ObjectMeta: metav1.ObjectMeta{Namespace: request.Namespace, Name: token}}
		// +event:object=JoinToken
		d.recorder.Eventf(about, nil, corev1.EventTypeWarning, "TooManyRequests", "Limit",
			"%d JoinRequests of this JoinToken wait for a decision or are denied: the newest are deleted. If the credential "+
				"was stolen, delete the JoinToken and create another one.", d.limits.limit)
	}
	return errTooMany
}

// recount corrects the usage of the quota for JoinRequests after requests were deleted as excess. The quota controller
// of Kubernetes corrects it with a delay, during which the API server would reject the requests of all tokens.
func (d *joinRequestController) recount(ctx context.Context) error {
	var quota corev1.ResourceQuota
	key := client.ObjectKey{Namespace: d.options.RegistrationNamespace, Name: quotaName}
	if err := d.reader.Get(ctx, key, &quota); err != nil {
		return client.IgnoreNotFound(err)
	}
	var requests v1alpha1.JoinRequestList
	if err := d.client.List(ctx, &requests, client.InNamespace(key.Namespace)); err != nil {
		return err
	}
	used := quota.Status.Used[countRequests]
	if used.CmpInt64(int64(len(requests.Items))) <= 0 {
		return nil
	}
	quota.Status.Used[countRequests] = *resource.NewQuantity(int64(len(requests.Items)), resource.DecimalSI)
	if err := d.client.Status().Update(ctx, &quota); err != nil {
		return fmt.Errorf("correct the usage of ResourceQuota %s: %w", quota.Name, err)
	}
	return nil
}
