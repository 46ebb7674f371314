package bootstrapsecret

import (
	"context"
	"encoding/base32"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	bootstraptokens "k8s.io/cluster-bootstrap/token/util"
	bootstrapsecrets "k8s.io/cluster-bootstrap/util/secrets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/precondition"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// RBAC can limit none of this to bootstrap tokens: their names are not known beforehand, create has no name, and there
// are no rules about types. The Role is apart from all others, for hubs that have such tokens.
//
// +kubebuilder:rbac:groups="",namespace=kube-system,resources=secrets,verbs=get;list;watch;create;update;delete

// Store reads and writes the Secrets, one request a call.
type Store struct {
	Reader client.Reader // not a cache
	Client client.Client
	Random io.Reader
}

// Get returns the Secret of a name, or nil. One that is no bootstrap token is an error.
func (s *Store) Get(ctx context.Context, name string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	if err := s.Reader.Get(ctx, keyOf(name), secret); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("get Secret %s: %w", keyOf(name), err)
	}
	if secret.Type != bootstrapapi.SecretTypeBootstrapToken {
		return nil, fmt.Errorf("the Secret %s is not of type %s: delete it, or take another ID", keyOf(name),
			bootstrapapi.SecretTypeBootstrapToken)
	}
	return secret, nil
}

// Write makes or repairs the Secret of a JoinToken, with an expiration. The token in it stays what it is. Secret is the
// one that is there, which must be the JoinToken's own, or nil.
func (s *Store) Write(ctx context.Context, token *v1alpha1.JoinToken, secret *corev1.Secret,
	expiration time.Time) (*corev1.Secret, error) {
	text := ""
	if secret != nil && bootstraptokens.IsValidBootstrapToken(Token(secret)) {
		text = bootstrapsecrets.GetData(secret, bootstrapapi.BootstrapTokenSecretKey)
	}
	if text == "" {
		var err error
		if text, err = s.random(); err != nil {
			return nil, fmt.Errorf("make a bootstrap token for JoinToken %s: %w", token.Name, err)
		}
	}
	if secret != nil {
		secret = secret.DeepCopy()
		secret.Data = fill(token, text, expiration)
		if err := s.Client.Update(ctx, secret); err != nil {
			return nil, fmt.Errorf("update Secret %s: %w", keyOf(token.Name), err)
		}
		return secret, nil
	}
	secret = &corev1.Secret{
		ObjectMeta: metaOf(token), Type: bootstrapapi.SecretTypeBootstrapToken, Data: fill(token, text, expiration),
	}
	if err := s.Client.Create(ctx, secret); err != nil {
		return nil, fmt.Errorf("create Secret %s: %w", keyOf(token.Name), err)
	}
	return secret, nil
}

// random returns 80 random bits as sixteen of the letters and digits that bootstrap tokens have.
func (s *Store) random() (string, error) {
	const bits = 80
	random := make([]byte, bits/8)
	if _, err := io.ReadFull(s.Random, random); err != nil {
		return "", err
	}
	return strings.ToLower(base32.StdEncoding.EncodeToString(random)), nil
}

// Close removes the use of a token for finding the hub, and sets its expiration to a time, unless that is zero or the
// token ends before. A token that is closed already is not written.
func (s *Store) Close(ctx context.Context, secret *corev1.Secret, until time.Time) error {
	closed := secret.DeepCopy()
	delete(closed.Data, bootstrapapi.BootstrapTokenUsageSigningKey)
	if end := Expiration(secret); !until.IsZero() && (end.IsZero() || until.Before(end)) {
		closed.Data[bootstrapapi.BootstrapTokenExpirationKey] = []byte(until.UTC().Format(time.RFC3339))
	}
	if len(closed.Data) == len(secret.Data) && Expiration(closed).Equal(Expiration(secret)) {
		return nil
	}
	if err := s.Client.Update(ctx, closed); err != nil {
		return fmt.Errorf("end the bootstrap token of Secret %s: %w", keyOf(secret.Name), err)
	}
	return nil
}

// Delete deletes a Secret as it was read, and none that has changed or replaced it since.
func (s *Store) Delete(ctx context.Context, secret *corev1.Secret) error {
	err := s.Client.Delete(ctx, secret, precondition.Unchanged(secret))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete Secret %s: %w", keyOf(secret.Name), err)
	}
	return nil
}

// Forget deletes what was made for a JoinToken that is gone.
func (s *Store) Forget(ctx context.Context, token types.NamespacedName) error {
	secret, err := s.Get(ctx, token.Name)
	if err != nil || secret == nil {
		return err
	}
	if secret.Labels[membership.JoinTokenLabel] == "" || secret.Annotations[namespaceAnnotation] != token.Namespace {
		return nil
	}
	return s.Delete(ctx, secret)
}
