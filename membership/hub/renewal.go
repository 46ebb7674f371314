package hub

import (
	"context"
	"errors"
	"fmt"

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
	var credential v1alpha1.Credential
	err := registration.VerifyRenewal(asked, o.member)
	if err == nil {
		credential, err = issuer.Issue(ctx, o.member, asked.Request)
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
