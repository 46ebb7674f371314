package agent

import (
	"bytes"
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/muster-sdk/muster/membership/registration"
)

// A BootstrapSource provides the bootstrap credential of an agent. The agent calls it for each read of its JoinRequest,
// so a new credential takes effect without a restart, and when the hub does not respond at its address, because it may
// have moved. A user who can change the source can act as the member: see the package documentation.
type BootstrapSource interface {
	// Load returns the bootstrap credential; nil: there is none.
	Load(ctx context.Context) (*registration.Bootstrap, error)
	// Forget deletes the bootstrap credential after the member has left for good, so that a restart does not join again.
	// It is no error if there is none. It should keep a credential that was replaced since Load; the agent calls Load once
	// more when it begins to clean up.
	Forget(ctx context.Context) error
}

// BootstrapFunc is a [BootstrapSource] that calls a function. Its Forget does nothing: a program that still has the
// credential when it starts again joins again.
type BootstrapFunc func(ctx context.Context) (*registration.Bootstrap, error)

// Load calls the function.
func (f BootstrapFunc) Load(ctx context.Context) (*registration.Bootstrap, error) { return f(ctx) }

// Forget does nothing.
func (f BootstrapFunc) Forget(context.Context) error { return nil }

// SecretBootstrap reads the bootstrap credential from key [registration.BootstrapKey] of a Secret. Its Forget deletes
// the Secret, unless the content has changed since the last read. It needs the permissions get and delete on that
// Secret.
func SecretBootstrap(secrets corev1client.SecretInterface, name string) BootstrapSource {
	return &secretBootstrap{secrets: secrets, name: name}
}

type secretBootstrap struct {
	secrets corev1client.SecretInterface
	name    string
	known   []byte // as last read; nil: not read
}

func (s *secretBootstrap) Load(ctx context.Context) (*registration.Bootstrap, error) {
	secret, err := s.secrets.Get(ctx, s.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the bootstrap Secret %s: %w", s.name, err)
	}
	s.known = secret.Data[registration.BootstrapKey]
	bootstrap, err := registration.ParseBootstrap(secret.Data[registration.BootstrapKey])
	if err != nil {
		return nil, fmt.Errorf("read key %s of the bootstrap Secret %s: %w", registration.BootstrapKey, s.name, err)
	}
	return bootstrap, nil
}

// Forget keeps a Secret whose content has changed since the last read: it is for the next join.
func (s *secretBootstrap) Forget(ctx context.Context) error {
	secret, err := s.secrets.Get(ctx, s.name, metav1.GetOptions{})
	if err == nil && s.known != nil && !bytes.Equal(s.known, secret.Data[registration.BootstrapKey]) {
		return nil
	}
	if err == nil {
		unchanged := &metav1.Preconditions{UID: &secret.UID, ResourceVersion: &secret.ResourceVersion}
		err = s.secrets.Delete(ctx, s.name, metav1.DeleteOptions{Preconditions: unchanged})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete the bootstrap Secret %s: %w", s.name, err)
	}
	return nil
}
