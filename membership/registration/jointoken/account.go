package jointoken

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/precondition"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// accountTokens issues expiring tokens of a ServiceAccount that exists for one JoinToken.
type accountTokens struct {
	reader  client.Reader
	client  client.Client
	token   *v1alpha1.JoinToken
	account *corev1.ServiceAccount // nil: not there
}

func (s *accountTokens) observe(ctx context.Context) (err error) {
	s.account, err = get(ctx, s.reader, s.token, accountOf(s.token))
	return err
}

func (s *accountTokens) describe(*existing) {}

func (s *accountTokens) subject() rbacv1.Subject {
	account := accountOf(s.token)
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: account.Name, Namespace: account.Namespace}
}

func (s *accountTokens) uid() types.UID {
	if s.account == nil {
		return ""
	}
	return s.account.UID
}

func (s *accountTokens) holds(*registration.Bootstrap) bool { return true } // No two of them are alike.

func (s *accountTokens) issue(ctx context.Context, bootstrap *registration.Bootstrap,
	lifetime time.Duration) (time.Duration, error) {
	if s.account == nil {
		account := accountOf(s.token)
		if err := s.client.Create(ctx, account); err != nil {
			return 0, fmt.Errorf("create ServiceAccount %s: %w", account.Name, err)
		}
		s.account = account
	}
	seconds := int64(lifetime / time.Second)
	issued := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	if err := s.client.SubResource("token").Create(ctx, s.account, issued); err != nil {
		return 0, fmt.Errorf("issue a token of ServiceAccount %s: %w", s.account.Name, err)
	}
	bootstrap.Token, bootstrap.ExpirationTime = issued.Status.Token, issued.Status.ExpirationTimestamp.Time
	return time.Duration(ptr.Deref(issued.Spec.ExpirationSeconds, seconds)) * time.Second, nil
}

// withdraw does nothing: no issued token is valid for long after the end of the JoinToken.
func (s *accountTokens) withdraw(context.Context, time.Time) error { return nil }

func (s *accountTokens) remove(ctx context.Context) error {
	if s.account == nil {
		return nil
	}
	if err := client.IgnoreNotFound(
		s.client.Delete(ctx, s.account, precondition.Unchanged(s.account))); err != nil {
		return fmt.Errorf("delete ServiceAccount %s: %w", s.account.Name, err)
	}
	return nil
}

func accountOf(token *v1alpha1.JoinToken) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metaOf(token, "join-"+token.Name), AutomountServiceAccountToken: new(false)}
}
