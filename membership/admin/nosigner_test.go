package admin

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/hub"
	"github.com/muster-sdk/muster/membership/registration/csr"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/localplane"
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
	p := localplane.ForTest(t, localplane.Options{Name: "unsigned", NoSigner: true, Prepare: prepare})
	c, err := connect(Hub, p.Config())
	require.NoError(t, err)
	f := &fleet{t: t, plane: p, config: p.Config(), c: c}
	f.manage(func(mgr manager.Manager) error {
		return hub.SetupWithManager(mgr, hub.Options{Issuers: map[v1alpha1.CredentialType]membership.Issuer{
			v1alpha1.CredentialCertificate: &csr.Issuer{Client: c.Client, Clock: &jumpingClock{}},
		}})
	})
	bootstrap := f.token(v1alpha1.JoinTokenSpec{AutoAccept: true})
	require.NoError(t, Register(t.Context(), f.config, bootstrap, RegisterOptions{}))
	f.manage(func(mgr manager.Manager) error {
		return agent.SetupWithManager(mgr, agent.Options{Name: "unsigned", Method: csr.Method{}})
	})
	mustertest.Holds(f.t, timeLimit, "Register reports the missing signer", func() bool {
		var timeout *TimeoutError
		require.ErrorAs(t, Register(t.Context(), f.config, bootstrap, RegisterOptions{Wait: time.Second}), &timeout)
		return strings.Contains(timeout.Reason, csr.ErrNoSigner.Error())
	})
}
