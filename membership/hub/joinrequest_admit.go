package hub

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/registration/jointoken"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// admit creates or binds the MemberCluster, as the step requires, and returns the MemberCluster of the request.
func (d *joinRequestController) admit(ctx context.Context, members client.Reader, request *v1alpha1.JoinRequest,
	token *v1alpha1.JoinToken, step lifecycle.JoinRequestStep) (*v1alpha1.MemberCluster, error) {
	create, bind := slices.Contains(step.Actions, lifecycle.CreateMember),
		slices.Contains(step.Actions, lifecycle.BindMember)
	if (create || bind) && token != nil {
		if err := d.count(ctx, request, token); err != nil {
			return nil, err
		}
	}
	write := func(cluster *v1alpha1.MemberCluster) {
		spec := &cluster.Spec
		spec.ClusterID, spec.Credential = request.Spec.ClusterID, request.Spec.Credential.Type
		spec.Claim = registration.Fingerprint(request.Spec.ClaimKey)
		spec.ClaimKeys = lifecycle.BoundClaimKeys(spec.Claim, spec.ClaimKeys,
			registration.ProvenKeys(request.Spec.ClaimKey, request.Spec.Keys), d.options.Clock.Now())
		if slices.Contains(step.Actions, lifecycle.AcceptMember) {
			spec.Accepted = new(true)
		}
		if cluster.DeletionTimestamp == nil {
			// The hub must observe the deletion of a MemberCluster that an agent has claimed.
			controllerutil.AddFinalizer(cluster, membership.Finalizer)
		}
	}
	if create {
		cluster := newMember(request, token)
		write(cluster)
		return cluster, d.client.Create(ctx, cluster)
	}
	if step.Member == nil {
		return nil, nil
	}
	cluster, err := found(ctx, members, client.ObjectKey{Name: step.Member.Name}, &v1alpha1.MemberCluster{})
	reused := slices.Contains(step.Actions, lifecycle.ReportReuse)
	if err != nil || cluster == nil || !bind && !reused {
		return cluster, err
	}
	before := cluster.DeepCopy()
	if bind {
		write(cluster)
	} else if keys := cluster.Spec.ClaimKeys; keys != nil && keys.ReusedAt == nil {
		keys.ReusedAt = new(metav1.NewTime(d.options.Clock.Now()))
	}
	return cluster, d.client.Patch(ctx, cluster, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// count counts a request on the current state of its token. If the token has no uses left, the next reconcile of the
// request denies it.
func (d *joinRequestController) count(ctx context.Context, request *v1alpha1.JoinRequest,
	token *v1alpha1.JoinToken) error {
	unlock, err := d.counting.lock(ctx, token.Name)
	if err != nil {
		return err
	}
	defer unlock()
	if err := d.reader.Get(ctx, client.ObjectKeyFromObject(token), token); err != nil {
		return err
	}
	if jointoken.Admit(token, request) != nil {
		return membership.ErrPending
	}
	return jointoken.Count(ctx, d.client, token, request.Spec.ClusterID)
}

// newMember returns the MemberCluster for a request. It has the finalizer from the start, which saves a write.
func newMember(request *v1alpha1.JoinRequest, token *v1alpha1.JoinToken) *v1alpha1.MemberCluster {
	cluster := &v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{
		Name: request.Spec.Name, Labels: map[string]string{}, Finalizers: []string{membership.Finalizer},
		Annotations: map[string]string{requestAnnotation: string(request.UID)},
	}}
	maps.Copy(cluster.Labels, request.Spec.Labels)
	if token != nil {
		maps.Copy(cluster.Labels, token.Spec.Labels)
		cluster.Labels[membership.JoinTokenLabel] = token.Name
	}
	return cluster
}

// issue calls the issuer. It denies a request that can never succeed.
func (d *joinRequestController) issue(ctx context.Context, request *v1alpha1.JoinRequest,
	cluster *v1alpha1.MemberCluster,
	step lifecycle.JoinRequestStep) (*v1alpha1.Credential, lifecycle.JoinRequestStep, error) {
	if cluster == nil {
		return nil, step, membership.ErrPending // the MemberCluster was deleted a moment ago
	}
	issuer, known := d.options.Issuers[request.Spec.Credential.Type]
	if !known {
		step.Answer, step.Reason = v1alpha1.AnswerDenied, v1alpha1.ReasonInvalidRequest
		step.Message = fmt.Sprintf("spec.credential.type: this hub does not issue credentials of type %s.",
			request.Spec.Credential.Type)
		return nil, step, nil
	}
	if !lifecycle.HasCurrentKey(cluster.Spec.Claim, cluster.Spec.ClaimKeys,
		registration.ProvenKeys(request.Spec.ClaimKey, request.Spec.Keys)) {
		return nil, step, membership.ErrPending // the current key has changed since the decision
	}
	// Read without the cache, so that no credential is issued twice.
	var latest v1alpha1.JoinRequest
	if err := d.reader.Get(ctx, client.ObjectKeyFromObject(request), &latest); err != nil {
		return nil, step, err
	}
	if latest.Status.Answer == v1alpha1.AnswerIssued && latest.Status.MemberUID == cluster.UID {
		return nil, step, membership.ErrPending
	}
	member, err := freshMember(ctx, d.reader, cluster, d.options.NamespacePrefix)
	if err != nil {
		return nil, step, err
	}
	credential, err := issuer.Issue(ctx, member, request.Spec.Credential)
	var invalid *membership.InvalidError
	switch {
	case err == nil:
		step.Answer, step.Reason, step.Message = v1alpha1.AnswerIssued, v1alpha1.ReasonIssued,
			"The credential is in the status."
		return &credential, step, nil
	case errors.As(err, &invalid):
		step.Answer, step.Reason, step.Message = v1alpha1.AnswerDenied, v1alpha1.ReasonInvalidRequest,
			lifecycle.FormatMessage("spec.credential."+invalid.Error())
		return nil, step, nil
	case !errors.Is(err, membership.ErrPending):
		step.Reason, step.Message = v1alpha1.ReasonIssueFailed, lifecycle.FormatMessage(err.Error())
	}
	return nil, step, err
}
