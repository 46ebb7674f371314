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

// A BootstrapSource has what an agent needs to ask a hub to join it. It is looked into each time that the agent
// asks, so a new credential takes effect without a restart; and when the hub does not answer where it was, as it may have moved. Whoever
// can change what it has is trusted with the member: see the package's documentation.
type BootstrapSource interface {
	// Load returns the bootstrap credential, or nil when there is none.
	Load(ctx context.Context) (*registration.Bootstrap, error)
	// Forget throws it away when the member is out for good, so that a restart does not join anew. It is
	// no error if there is none. A credential that somebody has put there since Load should be kept; when the agent
	// begins to clean up it calls Load once more.
	Forget(ctx context.Context) error
}

// BootstrapFunc makes a [BootstrapSource] of a function. It forgets nothing: a program that still has the
// credential when it starts again joins again.
type BootstrapFunc func(ctx context.Context) (*registration.Bootstrap, error)

// Load calls the function.
func (f BootstrapFunc) Load(ctx context.Context) (*registration.Bootstrap, error) { return f(ctx) }

// Forget does nothing.
func (f BootstrapFunc) Forget(context.Context) error { return nil }

// SecretBootstrap reads the bootstrap credential from key [registration.BootstrapKey] of a Secret, and deletes
// the Secret to forget it, unless it has another content than when it was last read. It needs the permissions get and delete on that Secret.
func SecretBootstrap(secrets corev1client.SecretInterface, name string) BootstrapSource {
	return &secretBootstrap{secrets: secrets, name: name}
}

type secretBootstrap struct {
	secrets corev1client.SecretInterface
	name    string
	known   []byte // as last read; nil: nothing was
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

// Forget leaves alone what has come to be there since it was last read: that is for the next to join.
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
