package hub

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// answerRenewal returns the answer to the renewal that the agent asks for, and the one that is there when
// there is nothing new to say. The error is one that passes: ask again. Whatever can never succeed is answered
// with a refusal, which the agent repeats to whoever looks there.
func (r *members) answerRenewal(ctx context.Context, o *memberObserved) (*v1alpha1.RenewalAnswer, error) {
	if o.membership == nil {
		return nil, nil
	}
	asked, answered := o.membership.Status.Renewal, o.membership.Spec.Renewal
	if asked == nil || answered != nil && answered.ID == asked.ID && answered.Credential != nil {
		return answered, nil
	}
	if refusal := lifecycle.RefuseRenewal(o.lifecycle, o.cluster.Spec.Credential, asked.Request.Type); refusal != "" {
		return &v1alpha1.RenewalAnswer{ID: asked.ID, Refused: refusal}, nil
	}
	if answered != nil && answered.ID == asked.ID {
		return answered, nil // refused; the agent asks anew, by another ID, in its time
	}
	issuer, known := r.options.Issuers[asked.Request.Type]
	if !known {
		return &v1alpha1.RenewalAnswer{ID: asked.ID, Refused: fmt.Sprintf("This hub does not issue credentials of type %s.", asked.Request.Type)}, nil
	}
	// Past the cache: what was answered a moment ago must not be issued once more.
	var latest v1alpha1.Membership
	if err := r.reader.Get(ctx, client.ObjectKeyFromObject(o.membership), &latest); err != nil {
		return answered, fmt.Errorf("read the Membership of %s: %w", o.member.Name, err)
	}
	if latest.ResourceVersion != o.membership.ResourceVersion {
		return answered, membership.ErrPending
	}
	member, err := freshMember(ctx, r.reader, o.cluster, r.options.NamespacePrefix)
	if err != nil {
		return answered, err
	}
	var credential v1alpha1.Credential
	if err = registration.VerifyRenewal(asked, member); err == nil {
		credential, err = issuer.Issue(ctx, member, asked.Request)
	}
	var invalid *membership.InvalidError
	switch {
	case err == nil:
		return &v1alpha1.RenewalAnswer{ID: asked.ID, Credential: &credential}, nil
	case errors.As(err, &invalid):
		return &v1alpha1.RenewalAnswer{ID: asked.ID, Refused: lifecycle.Sentence(invalid.Error())}, nil
	default:
		return answered, fmt.Errorf("renew the credential: %w", err)
	}
}

// freshMember returns a member as the API server has it, to issue a credential to, or [membership.ErrPending] if somebody has
// changed since what was decided on: issuing to an agent takes the credential of another that spoke for the member.
func freshMember(ctx context.Context, reader client.Reader, decided *v1alpha1.MemberCluster, namespacePrefix string) (membership.Member, error) {
	latest, err := found(ctx, reader, client.ObjectKeyFromObject(decided), &v1alpha1.MemberCluster{})
	switch {
	case err != nil:
		return membership.Member{}, fmt.Errorf("read MemberCluster %s: %w", decided.Name, err)
	case latest == nil || latest.UID != decided.UID || latest.Spec.Claim != decided.Spec.Claim ||
		latest.Spec.Credential != decided.Spec.Credential || !ptr.Equal(latest.Spec.Accepted, decided.Spec.Accepted):
		return membership.Member{}, membership.ErrPending
	default:
		return memberOf(latest, namespacePrefix), nil
	}
}
