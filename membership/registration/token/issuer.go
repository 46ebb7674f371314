package token

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/precondition"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

const (
	// DefaultLifetime is the default lifetime of a token. An agent renews it before 80 % of the lifetime have passed, so
	// that a hub or a member may be unavailable for a day and a half at any time.
	DefaultLifetime = 7 * 24 * time.Hour

	// The minimum of the API server.
	minLifetime = 10 * time.Minute
)

// +kubebuilder:rbac:groups="",resources=serviceaccounts,resourceNames=muster-agent,verbs=get;delete
// +kubebuilder:rbac:groups="",resources=serviceaccounts,verbs=create
// +kubebuilder:rbac:groups="",resources=serviceaccounts/token,resourceNames=muster-agent,verbs=create

// Issuer issues tokens of the hub's API server. It may be used concurrently.
type Issuer struct {
	// Client creates ServiceAccounts and tokens. Required.
	Client client.Client
	// Reader reads ServiceAccounts. Use a manager's API reader, so that they are not all cached. Unset: Client.
	Reader client.Reader
	// Lifetime of tokens unless an agent requests less; at least 10 minutes. The API server may grant less. Unset:
	// [DefaultLifetime].
	Lifetime time.Duration
}

var _ membership.Issuer = (*Issuer)(nil)

// Subject returns the ServiceAccount membership.AgentName in the member's namespace.
func (i *Issuer) Subject(member membership.Member) (rbacv1.Subject, error) {
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: membership.AgentName, Namespace: member.Namespace}, nil
}

// Issue returns a token of the member's ServiceAccount for the API server's own audience, sealed for the request's
// key. It creates the ServiceAccount if it does not exist; the namespace must exist. Each call issues a token; no
// client can read a token that is not delivered. It returns an [*membership.InvalidError] for an invalid request, and
// otherwise the errors of the API server.
func (i *Issuer) Issue(ctx context.Context, member membership.Member,
	request v1alpha1.CredentialRequest) (v1alpha1.Credential, error) {
	if request.Type != v1alpha1.CredentialToken {
		return v1alpha1.Credential{}, &membership.InvalidError{Field: "type", Problem: fmt.Sprintf(
			"is %q, and this issuer's is %q", request.Type, v1alpha1.CredentialToken)}
	}
	// Sealing detects malformed keys, and keys of low order, which hide nothing.
	if _, err := seal(request.PublicKey, member.Claim, ""); err != nil {
		return v1alpha1.Credential{}, &membership.InvalidError{Field: "publicKey", Problem: "must be an X25519 key of 32 " +
			"bytes"}
	}
	issued, err := i.token(ctx, member, i.seconds(request))
	if err != nil {
		return v1alpha1.Credential{},
			fmt.Errorf("issue a token of ServiceAccount %s/%s: %w", member.Namespace, membership.AgentName, err)
	}
	sealed, err := seal(request.PublicKey, member.Claim, issued.Status.Token)
	if err != nil {
		return v1alpha1.Credential{}, fmt.Errorf("seal the token for member %s: %w", member.Name, err)
	}
	expiration := issued.Status.ExpirationTimestamp
	lifetime := time.Duration(ptr.Deref(issued.Spec.ExpirationSeconds, 0)) * time.Second
	return v1alpha1.Credential{
		Type:           v1alpha1.CredentialToken,
		SealedToken:    sealed,
		IssuedAt:       new(metav1.NewTime(expiration.Add(-lifetime))), // by the API server's clock
		ExpirationTime: &expiration,
	}, nil
}

func (i *Issuer) seconds(request v1alpha1.CredentialRequest) int64 {
	lifetime := i.Lifetime
	if lifetime == 0 {
		lifetime = DefaultLifetime
	}
	seconds := int64(lifetime / time.Second)
	if asked := request.ExpirationSeconds; asked != nil {
		seconds = min(seconds, int64(*asked))
	}
	return max(seconds, int64(minLifetime/time.Second))
}

// token requests a token of the member's ServiceAccount. A ServiceAccount belongs to one claim: when another agent
// takes over the claim, the ServiceAccount is deleted, which invalidates the tokens of the previous agent.
func (i *Issuer) token(ctx context.Context, member membership.Member, seconds int64) (*authenticationv1.TokenRequest,
	error) {
	account := &corev1.ServiceAccount{}
	key := client.ObjectKey{Namespace: member.Namespace, Name: membership.AgentName}
	err := i.reader().Get(ctx, key, account)
	if err == nil && account.Annotations[claimAnnotation] != member.Claim {
		err = i.Client.Delete(ctx, account, precondition.Unchanged(account))
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("delete the ServiceAccount of another claim: %w", err)
		}
		err = apierrors.NewNotFound(corev1.Resource("serviceaccounts"), key.Name)
	}
	switch {
	case apierrors.IsNotFound(err):
		account = &corev1.ServiceAccount{
			ObjectMeta: metav1.ObjectMeta{
				Name: key.Name, Namespace: key.Namespace,
				Labels:      map[string]string{membership.MemberLabel: member.Name},
				Annotations: map[string]string{claimAnnotation: member.Claim},
			},
			AutomountServiceAccountToken: new(false),
		}
		if err := i.Client.Create(ctx, account); err != nil {
			return nil, fmt.Errorf("create the ServiceAccount: %w", err)
		}
	case err != nil:
		return nil, fmt.Errorf("get the ServiceAccount: %w", err)
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	return request, i.Client.SubResource("token").Create(ctx, account, request)
}

// claimAnnotation contains the claim of a ServiceAccount.
const claimAnnotation = v1alpha1.GroupName + "/claim"

func (i *Issuer) reader() client.Reader {
	if i.Reader != nil {
		return i.Reader
	}
	return i.Client
}
