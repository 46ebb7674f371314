package jointoken

import (
	"bytes"
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/registration/jointoken/internal/bootstrapsecret"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// bootstrapTokens manages the bootstrap token of a JoinToken, which the hub or an administrator has created.
type bootstrapTokens struct {
	store  *bootstrapsecret.Store
	token  *v1alpha1.JoinToken
	now    time.Time
	secret *corev1.Secret // nil: not there
	owner  bootstrapsecret.Owner
}

func (s *bootstrapTokens) observe(ctx context.Context) (err error) {
	s.secret, err = s.store.Get(ctx, s.token.Name)
	s.owner = bootstrapsecret.OwnerOf(s.secret, s.token)
	return err
}

func (s *bootstrapTokens) describe(credential *existing) {
	credential.Adopted, credential.Expires, credential.Problem = false, time.Time{}, ""
	switch s.owner {
	case bootstrapsecret.Administrator, bootstrapsecret.Other:
		credential.Adopted, credential.Expires = true, bootstrapsecret.Expiration(s.secret)
		credential.Problem = bootstrapsecret.Problem(s.secret, s.owner, s.now)
	case bootstrapsecret.Ours, bootstrapsecret.Predecessor, bootstrapsecret.NoOwner:
	}
}

func (s *bootstrapTokens) subject() rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: bootstrapsecret.User(s.token.Name)}
}

func (s *bootstrapTokens) uid() types.UID {
	if s.owner == bootstrapsecret.NoOwner || s.owner == bootstrapsecret.Predecessor {
		return ""
	}
	return s.secret.UID
}

func (s *bootstrapTokens) holds(bootstrap *registration.Bootstrap) bool {
	var want registration.Bootstrap
	if want.UseBootstrapToken(bootstrapsecret.Token(s.secret)) != nil {
		return false
	}
	return bootstrap.Token == want.Token && bytes.Equal(bootstrap.Key, want.Key) &&
		bootstrap.ExpirationTime.Equal(bootstrapsecret.Expiration(s.secret)) &&
		(s.owner != bootstrapsecret.Ours || bootstrapsecret.Whole(s.secret, s.token))
}

// issue prolongs the token. It creates a token again that a user deleted, which is how users request another secret.
func (s *bootstrapTokens) issue(ctx context.Context, bootstrap *registration.Bootstrap,
	lifetime time.Duration) (time.Duration, error) {
	if s.owner == bootstrapsecret.Predecessor {
		if err := s.store.Delete(ctx, s.secret); err != nil {
			return 0, err
		}
		s.secret, s.owner = nil, bootstrapsecret.NoOwner
	}
	if s.owner == bootstrapsecret.NoOwner || s.owner == bootstrapsecret.Ours {
		secret, err := s.store.Write(ctx, s.token, s.secret, s.now.Add(lifetime))
		if err != nil {
			return 0, err
		}
		s.secret, s.owner = secret, bootstrapsecret.Ours
	}
	bootstrap.ExpirationTime = bootstrapsecret.Expiration(s.secret)
	return lifetime, bootstrap.UseBootstrapToken(bootstrapsecret.Token(s.secret))
}

func (s *bootstrapTokens) withdraw(ctx context.Context, until time.Time) error {
	if s.owner != bootstrapsecret.Ours {
		return nil
	}
	return s.store.Close(ctx, s.secret, until)
}

func (s *bootstrapTokens) remove(ctx context.Context) error {
	if s.owner != bootstrapsecret.Ours && s.owner != bootstrapsecret.Predecessor {
		return nil
	}
	return s.store.Delete(ctx, s.secret)
}
