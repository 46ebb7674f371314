package identity

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/registration"
)

// TokenName returns the name of the JoinToken, and of its Secret, that a hub creates for the identity of a member.
// No other Secret of the registration namespace may have this name: the subject of the member can read it.
func TokenName(member string) string {
	const prefix, limit = "identity-", 52 // the limit of a JoinToken
	if len(prefix)+len(member) <= limit {
		return prefix + member
	}
	sum := sha256.Sum256([]byte(member))
	hash := hex.EncodeToString(sum[:])[:16]
	return prefix + member[:limit-len(prefix)-len(hash)-1] + "-" + hash
}

// Source is a source of bootstrap credentials for an agent whose own credential for the hub authenticates the subject
// in spec.identity of its MemberCluster: the agent needs no join.yaml. Until the agent has joined, the hub permits
// only this subject to read the Secret of a JoinToken that admits only this member. An agent uses a Source as its
// Options.Bootstrap, together with [Method].
type Source struct {
	secrets corev1client.SecretInterface
	server  string
	ca      []byte
	member  string
	name    string
}

// NewSource returns the source of a member. The config is that of the hub with the agent's own credential. The agent
// uses the address in this config. The member is the name of the MemberCluster. An empty namespace is
// [membership.RegistrationNamespace].
func NewSource(hub *rest.Config, member, namespace string) (*Source, error) {
	if namespace == "" {
		namespace = membership.RegistrationNamespace
	}
	config := rest.CopyConfig(hub)
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, fmt.Errorf("read the certificates of the hub: %w", err)
	}
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("determine the address of the hub: %w", err)
	}
	core, err := corev1client.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create a client for the hub: %w", err)
	}
	return &Source{
		secrets: core.Secrets(namespace), server: server.String(), ca: config.CAData, member: member,
		name: TokenName(member),
	}, nil
}

// Load reads the bootstrap credential from the hub.
func (s *Source) Load(ctx context.Context) (*registration.Bootstrap, error) {
	secret, err := s.secrets.Get(ctx, s.name, metav1.GetOptions{})
	switch {
	case apierrors.IsForbidden(err) || apierrors.IsNotFound(err):
		return nil, fmt.Errorf("the hub offers the agent no bootstrap credential for member %s. Set spec.identity of "+
			"MemberCluster %s to the subject of the agent's credential; if another agent has joined as this member, clear its "+
			"spec.claim: %w", s.member, s.member, err)
	case err != nil:
		return nil, fmt.Errorf("read the bootstrap credential from the hub: %w", err)
	}
	return s.parse(secret)
}

func (s *Source) parse(secret *corev1.Secret) (*registration.Bootstrap, error) {
	bootstrap, err := registration.ParseBootstrap(secret.Data[registration.BootstrapKey])
	if err != nil {
		return nil, fmt.Errorf("read key %s of Secret %s on the hub: %w", registration.BootstrapKey, s.name, err)
	}
	bootstrap.Server = s.server // the agent has reached the hub there
	if len(s.ca) > 0 {
		bootstrap.CA = s.ca
	}
	return bootstrap, nil
}

// Forget does nothing: the hub deletes the credential.
func (*Source) Forget(context.Context) error { return nil }
