package agent

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
)

// bootstrapSecret is the Secret boot in the namespace of the JoinRequests.
type bootstrapSecret struct {
	*fakeHub
	secrets corev1client.SecretInterface
}

func newBootstrapSecret(h *fakeHub) *bootstrapSecret {
	h.t.Helper()
	member, err := newMember(h.config)
	require.NoError(h.t, err)
	h.t.Cleanup(member.close)
	return &bootstrapSecret{fakeHub: h, secrets: member.core.Secrets(h.name)}
}

// source is a source for one agent.
func (s *bootstrapSecret) source() BootstrapSource { return SecretBootstrap(s.secrets, "boot") }

func (s *bootstrapSecret) read() map[string][]byte {
	s.t.Helper()
	var secret corev1.Secret
	require.NoError(s.t, s.c.Get(s.t.Context(), client.ObjectKey{Namespace: s.name, Name: "boot"}, &secret))
	return secret.Data
}

// write writes a bootstrap credential into the Secret, like a user.
func (s *bootstrapSecret) write(b registration.Bootstrap) {
	s.t.Helper()
	data, err := b.Marshal()
	require.NoError(s.t, err)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: "boot"},
		Data: map[string][]byte{registration.BootstrapKey: data, registration.ValuesKey: data}}
	if err := s.c.Update(s.t.Context(), secret); err != nil {
		s.ensure(secret)
	}
}

// removed waits until the Secret contains only the address of the hub.
func (s *bootstrapSecret) removed() {
	s.t.Helper()
	mustertest.Eventually(s.t, timeLimit, "the bootstrap credential is removed", func() error {
		data := s.read()
		if len(data) != 1 || data["hub.yaml"] == nil || strings.Contains(string(data["hub.yaml"]), s.bootstrap.Token) {
			return fmt.Errorf("the Secret contains %v", slices.Collect(maps.Keys(data)))
		}
		return nil
	})
	address, err := s.source().Load(s.t.Context())
	require.NoError(s.t, err)
	require.Equal(s.t, &registration.Bootstrap{Server: s.bootstrap.Server, CA: s.bootstrap.CA}, address)
}

// TestBootstrap_Removed checks that an agent removes its bootstrap credential by default, requests another one when
// the hub refuses its own credential, and joins as the same member with it.
func TestBootstrap_Removed(t *testing.T) { testkit.Virtual(t, testBootstrapRemoved) }

func testBootstrapRemoved(t *testing.T) {
	h := newFakeHub(t, newMemory(t), "boot-removed").serve()
	secret, store := newBootstrapSecret(h), &memory{}
	secret.write(*h.bootstrap)
	o := Options{Bootstrap: secret.source(), Store: store, Clock: newFastClock()}
	r := h.run(o)
	requirePhase(t, r, lifecycle.Joined)
	secret.removed()
	claim := store.parsed(t).ClaimKey

	// An agent that is started again needs no bootstrap credential.
	r.stop()
	r = h.run(o)
	requirePhase(t, r, lifecycle.Joined)

	h.revokeAccess(h.admit)
	mustertest.Eventually(t, timeLimit, "the agent requests another bootstrap credential", func() error {
		const want = "has no bootstrap credential to request the reason: provide the credential of a JoinToken that is " +
			"Ready. (there is no bootstrap credential: the agent removed it after the cluster had joined)"
		if last := r.last(); last.Phase != lifecycle.Rejected || !strings.Contains(last.Message, want) {
			return fmt.Errorf("the agent is %s: %s", last.Phase, last.Message)
		}
		return nil
	})
	var requests v1alpha1.JoinRequestList
	require.NoError(t, h.c.List(t.Context(), &requests, client.InNamespace(h.name)))
	require.Empty(t, requests.Items)
	second := *h.bootstrap
	second.TokenName = "second"
	secret.write(second)
	requirePhase(t, r, lifecycle.Joined)
	secret.removed()
	require.Equal(t, claim, store.parsed(t).ClaimKey, "the agent keeps its claim")

	// Another client writes a credential while the cluster is a member.
	third := *h.bootstrap
	third.TokenName = "third"
	secret.write(third)
	secret.removed()
}

// TestBootstrap_Kept checks that the credential is kept with the option, and that a credential for another hub or
// address is kept without it.
func TestBootstrap_Kept(t *testing.T) { testkit.Virtual(t, testBootstrapKept) }

func testBootstrapKept(t *testing.T) {
	h := newFakeHub(t, newMemory(t), "boot-kept").serve()
	secret, store := newBootstrapSecret(h), &memory{}
	secret.write(*h.bootstrap)
	o := Options{Bootstrap: secret.source(), Store: store, Clock: newFastClock(), KeepBootstrap: true}
	r := h.run(o)
	requirePhase(t, r, lifecycle.Joined)
	h.requireHeartbeats()
	require.Contains(t, secret.read(), registration.BootstrapKey)
	r.stop()

	other := *h.bootstrap
	other.Server = "https://192.0.2.1:6443"
	secret.write(other)
	o.KeepBootstrap = false
	r = h.run(o)
	requirePhase(t, r, lifecycle.Joined)
	h.requireHeartbeats()
	require.Contains(t, secret.read(), registration.BootstrapKey, "a credential for another address is kept")
	secret.write(*h.bootstrap)
	secret.removed()
}
