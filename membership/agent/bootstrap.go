package agent

import (
	"bytes"
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/muster-sdk/muster/membership/internal/agentstate"
	"github.com/muster-sdk/muster/membership/registration"
)

// A BootstrapSource provides the bootstrap credential of an agent. The agent reads it each time it reads its
// JoinRequest, so a new credential takes effect without a restart, and when the hub does not respond at its address,
// because the hub may have moved. A user who can change the source can act as the member: see the package
// documentation.
type BootstrapSource interface {
	// Load returns the bootstrap credential; nil: there is none. A bootstrap with an empty Token is only the address of
	// the hub.
	Load(ctx context.Context) (*registration.Bootstrap, error)
	// Forget deletes the bootstrap credential after the member has left permanently, so that the agent does not join
	// again after a restart. It returns nil if there is no credential. It should keep a credential that was replaced
	// since Load; the agent calls Load again when it begins to clean up.
	Forget(ctx context.Context) error
}

// BootstrapFunc is a [BootstrapSource] that calls a function. Its Forget does nothing: a program whose function still
// returns the credential after a restart joins again.
type BootstrapFunc func(ctx context.Context) (*registration.Bootstrap, error)

// Load calls the function.
func (f BootstrapFunc) Load(ctx context.Context) (*registration.Bootstrap, error) { return f(ctx) }

// Forget does nothing.
func (f BootstrapFunc) Forget(context.Context) error { return nil }

// SecretBootstrap reads the bootstrap credential from key [registration.BootstrapKey] of a Secret. Its Forget deletes
// the Secret, unless the content has changed since the last read. Without Options.KeepBootstrap, the key hub.yaml with
// the address of the hub replaces that key when the agent has a credential of its own. It needs the permissions get and
// delete on that Secret, and update without Options.KeepBootstrap.
func SecretBootstrap(secrets corev1client.SecretInterface, name string) BootstrapSource {
	return &secretBootstrap{secrets: secrets, name: name}
}

type secretBootstrap struct {
	secrets corev1client.SecretInterface
	name    string
	known   []byte // content, as last read; nil: not read
}

func (s *secretBootstrap) Load(ctx context.Context) (*registration.Bootstrap, error) {
	secret, err := s.secrets.Get(ctx, s.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the bootstrap Secret %s: %w", s.name, err)
	}
	s.known = content(secret)
	if secret.Data[registration.BootstrapKey] == nil && secret.Data[agentstate.AddressKey] != nil {
		bootstrap, err := agentstate.ParseAddress(secret.Data[agentstate.AddressKey])
		if err != nil {
			return nil, fmt.Errorf("read key %s of the bootstrap Secret %s: %w", agentstate.AddressKey, s.name, err)
		}
		return bootstrap, nil
	}
	bootstrap, err := registration.ParseBootstrap(secret.Data[registration.BootstrapKey])
	if err != nil {
		return nil, fmt.Errorf("read key %s of the bootstrap Secret %s: %w", registration.BootstrapKey, s.name, err)
	}
	return bootstrap, nil
}

// content returns the credential in a bootstrap Secret, or else the address.
func content(secret *corev1.Secret) []byte {
	if credential := secret.Data[registration.BootstrapKey]; credential != nil {
		return credential
	}
	return secret.Data[agentstate.AddressKey]
}

// Forget keeps a Secret whose content has changed since the last read: the new content is for the next join.
func (s *secretBootstrap) Forget(ctx context.Context) error {
	secret, err := s.secrets.Get(ctx, s.name, metav1.GetOptions{})
	if err == nil && s.known != nil && !bytes.Equal(s.known, content(secret)) {
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

// credentialRemover is a [BootstrapSource] that can remove the credential and keep the address of the hub.
type credentialRemover interface {
	// removeCredential removes the credential if the condition is true for it, and reports whether it has.
	removeCredential(ctx context.Context, used func(*registration.Bootstrap) bool) (removed bool, err error)
}

func (s *secretBootstrap) removeCredential(ctx context.Context, used func(*registration.Bootstrap) bool) (bool, error) {
	secret, err := s.secrets.Get(ctx, s.name, metav1.GetOptions{})
	if err != nil {
		return false, fmt.Errorf("read the bootstrap Secret %s: %w", s.name, err)
	}
	bootstrap, err := registration.ParseBootstrap(secret.Data[registration.BootstrapKey])
	if err != nil || !used(bootstrap) {
		return false, nil //nolint:nilerr // Load reports an invalid credential
	}
	if secret.Data, err = withoutCredential(secret, bootstrap); err != nil {
		return false, err
	}
	if _, err := s.secrets.Update(ctx, secret, metav1.UpdateOptions{}); err != nil {
		return false, fmt.Errorf("remove the credential from the bootstrap Secret %s: %w", s.name, err)
	}
	s.known = content(secret)
	return true, nil
}

// withoutCredential returns the content of a bootstrap Secret without the keys of a JoinToken's Secret.
func withoutCredential(secret *corev1.Secret, bootstrap *registration.Bootstrap) (map[string][]byte, error) {
	address, err := agentstate.MarshalAddress(bootstrap)
	if err != nil {
		return nil, err
	}
	data := maps.Clone(secret.Data)
	delete(data, registration.BootstrapKey)
	delete(data, registration.ValuesKey)
	data[agentstate.AddressKey] = address
	return data, nil
}

// removal is the state of the removal of the bootstrap credential since the last join, or since the agent started.
type removal struct {
	done        bool   // it was tried
	fingerprint string // of the removed credential; empty: none
}

// removeBootstrap removes the bootstrap credential after the member has its own credential. It keeps a credential of
// another hub or with another address, which a later step uses. If another client writes the same credential again,
// the credential stays until the agent is restarted. An error does not stop the step.
func (a *agent) removeBootstrap(ctx context.Context) {
	source, is := a.Bootstrap.(credentialRemover)
	if a.KeepBootstrap || !is {
		return
	}
	var credential string
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	removed, err := source.removeCredential(ctx, func(b *registration.Bootstrap) bool {
		credential = agentstate.Fingerprint(b)
		own := !a.state.record.foreign(b) && a.state.record.Member.at(b.Server, b.CA)
		return own && credential != a.requests.removal.fingerprint
	})
	switch {
	case removed:
		a.requests.removal.fingerprint = credential
		a.requests.disconnect()
		a.Log.Info("The agent uses its own credential and has removed the bootstrap credential")
	case apierrors.IsForbidden(err):
		a.requests.removal.fingerprint = credential
		a.Log.Info("The agent must not remove its bootstrap credential: its Role needs the verb update on the Secret",
			"error", err.Error())
	case err != nil:
		a.Log.V(1).Info("Cannot remove the bootstrap credential, trying again", "error", err.Error())
	}
}
