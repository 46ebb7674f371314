package admin

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/hub"
	"github.com/muster-sdk/muster/membership/registration/csr"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/apiserver"
)

// jumpingClock is a clock that advances by ten seconds at each call.
type jumpingClock struct {
	clock.RealClock
	calls atomic.Int64
}

func (h *jumpingClock) Now() time.Time {
	return h.RealClock.Now().Add(time.Duration(h.calls.Add(1)) * 10 * time.Second)
}

func (h *jumpingClock) Since(t time.Time) time.Duration { return h.Now().Sub(t) }

// TestRegister_NoSigner checks that Register reports a hub without a signer, and the next step, from the member's side.
func TestRegister_NoSigner(t *testing.T) {
	testkit.Virtual(t, testRegisterNoSigner)
}

func testRegisterNoSigner(t *testing.T) {
	server, err := apiserver.New(apiserver.Options{ManualControllers: true}) // among others the signer
	require.NoError(t, err)
	t.Cleanup(server.Close)
	server.Restore(newMemory(t).server.Save())
	f := newFleet(t, memoryServer{server})
	f.manage(func(mgr manager.Manager) error {
		return hub.SetupWithManager(mgr, hub.Options{
			Server: server.URL(), CA: server.CertificateAuthority(),
			Issuers: map[v1alpha1.CredentialType]membership.Issuer{
				v1alpha1.CredentialCertificate: &csr.Issuer{Client: f.c.Client, Clock: &jumpingClock{}},
			},
		})
	})
	bootstrap := f.token(v1alpha1.JoinTokenSpec{AutoAccept: true})
	require.NoError(t, Register(t.Context(), f.config, bootstrap, RegisterOptions{HubConfig: f.connect}))
	f.manage(func(mgr manager.Manager) error {
		return agent.SetupWithManager(mgr,
			agent.Options{Name: "unsigned", Method: csr.Method{}, HubConfig: f.connect})
	})
	mustertest.Holds(f.t, timeLimit, "Register reports the missing signer", func() bool {
		var timeout *TimeoutError
		require.ErrorAs(t, Register(t.Context(), f.config, bootstrap,
			RegisterOptions{HubConfig: f.connect, Wait: time.Second}), &timeout)
		return strings.Contains(timeout.Reason, csr.ErrNoSigner.Error())
	})
}
