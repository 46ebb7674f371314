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

// RBAC cannot limit these permissions to bootstrap tokens: their names are not known in advance, a rule for create
// cannot contain names, and there are no rules for types. The Role is separate from all others, for hubs with such
// tokens.
//
// +kubebuilder:rbac:groups="",namespace=kube-system,resources=secrets,verbs=get;list;watch;create;update;delete

// Store reads and writes the Secrets. Each call sends one request.
type Store struct {
	Reader client.Reader // not a cache
	Client client.Client
	Random io.Reader
}

// Get returns the Secret of a name, or nil. A Secret that is not a bootstrap token is an error.
func (s *Store) Get(ctx context.Context, name string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	if err := s.Reader.Get(ctx, keyOf(name), secret); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("get Secret %s: %w", keyOf(name), err)
	}
	if secret.Type != bootstrapapi.SecretTypeBootstrapToken {
		return nil, fmt.Errorf("the Secret %s is not of type %s: delete that Secret, or use another ID", keyOf(name),
			bootstrapapi.SecretTypeBootstrapToken)
	}
	return secret, nil
}

// Write creates or repairs the Secret of a JoinToken, with an expiration. It does not change the token. Secret is the
// existing one, which must have been created for this JoinToken, or nil.
func (s *Store) Write(ctx context.Context, token *v1alpha1.JoinToken, secret *corev1.Secret,
	expiration time.Time) (*corev1.Secret, error) {
	text := ""
	if secret != nil && bootstraptokens.IsValidBootstrapToken(Token(secret)) {
		text = bootstrapsecrets.GetData(secret, bootstrapapi.BootstrapTokenSecretKey)
	}
	if text == "" {
		var err error
		if text, err = s.random(); err != nil {
			return nil, fmt.Errorf("generate a bootstrap token for JoinToken %s: %w", token.Name, err)
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

// random returns 80 random bits as sixteen characters that are valid in bootstrap tokens.
func (s *Store) random() (string, error) {
	const bits = 80
	random := make([]byte, bits/8)
	if _, err := io.ReadFull(s.Random, random); err != nil {
		return "", err
	}
	return strings.ToLower(base32.StdEncoding.EncodeToString(random)), nil
}

// Close removes the usage of a token for the discovery of the hub, and sets its expiration to a time, unless that is
// zero or the token expires earlier. It does not write a token that is closed already.
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
		return fmt.Errorf("expire the bootstrap token of Secret %s: %w", keyOf(secret.Name), err)
	}
	return nil
}

// Delete deletes a Secret if it has not changed or been replaced since it was read.
func (s *Store) Delete(ctx context.Context, secret *corev1.Secret) error {
	err := s.Client.Delete(ctx, secret, precondition.Unchanged(secret))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete Secret %s: %w", keyOf(secret.Name), err)
	}
	return nil
}

// Forget deletes the Secret of a deleted JoinToken.
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
