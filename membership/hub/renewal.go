package hub

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// answerRenewal returns the answer to the renewal that the agent requests, or the existing one if nothing changes. An
// error is temporary, and the caller retries. A request that can never succeed is refused, and the agent reports the
// refusal.
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
		return answered, nil // refused; the agent makes another request later, with another ID
	}
	issuer, known := r.options.Issuers[asked.Request.Type]
	if !known {
		return &v1alpha1.RenewalAnswer{ID: asked.ID,
				Refused: fmt.Sprintf("Credential type %s: the hub does not issue credentials of this type.", asked.Request.Type)},
			nil
	}
	// Read without the cache, so that no credential is issued twice.
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
		if !lifecycle.HasCurrentKey(member.Claim, o.cluster.Spec.ClaimKeys, provenKeys(asked)) {
			if err := r.reportReuse(ctx, o.cluster); err != nil {
				return answered, fmt.Errorf("report that a replaced claim key was used: %w", err)
			}
			return &v1alpha1.RenewalAnswer{ID: asked.ID, Refused: lifecycle.KeyReplaced}, nil
		}
		credential, err = issuer.Issue(ctx, member, asked.Request)
	}
	var invalid *membership.InvalidError
	switch {
	case err == nil:
		// Record the key first: after a crash here, this renewal still proves the current key, and no earlier one does.
		if err := r.rotate(ctx, o.cluster, asked); err != nil {
			return answered, fmt.Errorf("record the new claim key: %w", err)
		}
		return &v1alpha1.RenewalAnswer{ID: asked.ID, Credential: &credential}, nil
	case errors.As(err, &invalid):
		return &v1alpha1.RenewalAnswer{ID: asked.ID, Refused: lifecycle.FormatMessage(invalid.Error())}, nil
	default:
		return answered, fmt.Errorf("renew the credential: %w", err)
	}
}

func provenKeys(asked *v1alpha1.Renewal) []string {
	return registration.ProvenKeys(asked.ClaimKey, asked.Keys)
}

// rotate records the newest key of a renewal as the current claim key.
func (r *members) rotate(ctx context.Context, cluster *v1alpha1.MemberCluster, asked *v1alpha1.Renewal) error {
	return r.patch(ctx, cluster, func() {
		cluster.Spec.ClaimKeys = lifecycle.NextClaimKeys(cluster.Spec.Claim, cluster.Spec.ClaimKeys, provenKeys(asked),
			r.options.Clock.Now())
	})
}

// reportReuse records that a renewal was signed with replaced keys. It keeps the time of the first occurrence.
func (r *members) reportReuse(ctx context.Context, cluster *v1alpha1.MemberCluster) error {
	return r.patch(ctx, cluster, func() {
		if keys := cluster.Spec.ClaimKeys; keys != nil && keys.ReusedAt == nil {
			keys.ReusedAt = new(metav1.NewTime(r.options.Clock.Now()))
		}
	})
}

// freshMember reads a member without a cache before a credential is issued. It returns [membership.ErrPending] if the
// member has changed since the decision: issuing to an agent may invalidate the credential of the previous one.
func freshMember(ctx context.Context, reader client.Reader, decided *v1alpha1.MemberCluster,
	namespacePrefix string) (membership.Member, error) {
	latest, err := found(ctx, reader, client.ObjectKeyFromObject(decided), &v1alpha1.MemberCluster{})
	switch {
	case err != nil:
		return membership.Member{}, fmt.Errorf("read MemberCluster %s: %w", decided.Name, err)
	case latest == nil || latest.UID != decided.UID || latest.Spec.Claim != decided.Spec.Claim ||
		latest.Spec.Credential != decided.Spec.Credential ||
		!equality.Semantic.DeepEqual(latest.Spec.ClaimKeys, decided.Spec.ClaimKeys) ||
		!ptr.Equal(latest.Spec.Accepted, decided.Spec.Accepted):
		return membership.Member{}, membership.ErrPending
	default:
		return memberOf(latest, namespacePrefix), nil
	}
}
