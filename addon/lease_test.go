package addon_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/addon"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership"
)

// TestHealth_Lease checks that an add-on is healthy while its agent renews its Lease, and that the agent cannot renew
// other Leases.
func TestHealth_Lease(t *testing.T) { testkit.Virtual(t, testHealthLease) }

func testHealthLease(t *testing.T) {
	h := newHub(t)
	err := h.Client.Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: membership.RegistrationNamespace}})
	require.True(t, err == nil || apierrors.IsAlreadyExists(err), err)
	h.members("a")
	h.choose("all", "a")
	h.runAgents()
	names := []string{h.name("x"), h.name("x-y")}
	r := h.start(addon.Options{Agents: []addon.Agent{reporter{echo{names[0]}}, reporter{echo{names[1]}}},
		Registration: h.registration()})
	for _, name := range []string{"x", "x-y"} {
		h.addon(name, func(s *v1alpha1.AddonSpec) {
			h.byPlacement("all")(s)
			s.Health = v1alpha1.HealthCheck{Type: v1alpha1.HealthLease, LeaseDurationSeconds: new(int32(5))}
		})
	}
	for _, name := range []string{"x", "x-y"} {
		h.Holds(name+" is applied and has no renewed Lease", func() bool {
			m := h.memberAddon(name, "a")
			return isTrue(m, v1alpha1.ConditionManifestsApplied) && meta.IsStatusConditionFalse(m.Status.Conditions,
				v1alpha1.ConditionAvailable)
		})
	}
	agent := h.agentOf("x", "a")
	renew := func(name string) error { return renewLease(t.Context(), agent, h.namespaceOf("a"), h.name(name)) }
	h.Holds("the agent renews its Lease", func() bool { return renew("x") == nil })
	require.True(t, apierrors.IsForbidden(renew("x-y")), "Lease of another add-on")
	h.Holds("the add-on is available", func() bool {
		return isTrue(h.memberAddon("x", "a"), v1alpha1.ConditionAvailable)
	})
	require.False(t, isTrue(h.memberAddon("x-y", "a"), v1alpha1.ConditionAvailable))

	require.NoError(t, renew("x"))
	r.quiet(t)
	before := r.wire.Writes()
	for until := time.Now().Add(8 * time.Second); time.Now().Before(until); {
		require.NoError(t, renew("x"))
		<-time.After(500 * time.Millisecond)
	}
	require.Equal(t, before, r.wire.Writes(), "renewals of a Lease must not cause writes")
	require.True(t, isTrue(h.memberAddon("x", "a"), v1alpha1.ConditionAvailable))

	h.Holds("the Lease expires", func() bool {
		m := h.memberAddon("x", "a")
		available := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionAvailable)
		return available.Status == metav1.ConditionFalse && available.Reason == v1alpha1.ReasonLeaseExpired
	})
	require.NoError(t, renew("x"))
	h.Holds("the add-on is available again", func() bool {
		return isTrue(h.memberAddon("x", "a"), v1alpha1.ConditionAvailable)
	})
}
