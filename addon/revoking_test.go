package addon_test

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/addon"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/mustertest"
)

// denying rejects requests as an admission webhook does.
func denying(denies func(*http.Request) bool) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return mustertest.RoundTripper(func(r *http.Request) (*http.Response, error) {
			if !denies(r) {
				return next.RoundTrip(r)
			}
			body := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"admission webhook ` +
				`policy denied the request","code":403}`
			return &http.Response{
				StatusCode: http.StatusForbidden, Header: http.Header{"Content-Type": {"application/json"}},
				Body: io.NopCloser(strings.NewReader(body)), Request: r,
			}, nil
		})
	}
}

// TestRemoval_RevocationDenied checks a removal that cannot revoke the access of its agent: it reports the reason, is
// degraded at its deadline, and completes as soon as the access can be revoked.
func TestRemoval_RevocationDenied(t *testing.T) { testkit.Virtual(t, testRemovalRevocationDenied) }

func testRemovalRevocationDenied(t *testing.T) {
	h := newHub(t)
	err := h.Client.Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: membership.RegistrationNamespace}})
	require.True(t, err == nil || apierrors.IsAlreadyExists(err), err)
	h.members("a")
	h.runAgents()
	refuses := &atomic.Bool{}
	refuses.Store(true)
	h.wrap = denying(func(r *http.Request) bool {
		return refuses.Load() && r.Method == http.MethodDelete && mustertest.AttributesOf(r).Resource == "serviceaccounts"
	})
	h.start(addon.Options{Agents: []addon.Agent{reporter{echo{h.name("x")}}}, Registration: h.registration()})
	a := h.addon("x", within(600, func(*v1alpha1.AddonSpec) {}))
	m := h.createMemberAddon("x", "a", nil)
	h.Holds("the add-on is available", func() bool {
		return isTrue(h.memberAddon("x", "a"), v1alpha1.ConditionAvailable)
	})
	agent := h.agentOf("x", "a")
	canList := func() bool {
		return agent.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(h.namespaceOf("a"))) == nil
	}
	h.Holds("the agent has the requested access", canList)

	require.NoError(t, h.Client.Delete(t.Context(), a))
	h.Holds("the failed revocation is reported", func() bool {
		return strings.Contains(h.memberAddon("x", "a").Status.Message, "admission webhook policy denied the request")
	})
	h.requireCondition(m, v1alpha1.ConditionDegraded, metav1.ConditionFalse, v1alpha1.ReasonAsDesired)
	h.Holds("the permissions of the agent are revoked", func() bool { return !canList() })
	now := h.memberAddon("x", "a")
	before := now.DeepCopy()
	now.Spec.RemovalDeadlineSeconds = new(int32(1))
	require.NoError(t, h.Client.Patch(t.Context(), now, client.MergeFrom(before)))
	degraded := h.requireCondition(m, v1alpha1.ConditionDegraded, metav1.ConditionTrue, v1alpha1.ReasonRevokeFailed)
	require.Contains(t, degraded.Message, "The MemberAddon stays until the access is revoked.")
	h.Holds("the Addon reports the failed revocation", func() bool {
		return strings.Contains(h.get("x").Status.Message, "denied the request")
	})
	require.Empty(t, h.get("x").Status.ForcedRemovals, "want no forced removal")

	refuses.Store(false)
	h.triggerReconcile("x", "a")
	h.Holds("the removal ends", func() bool { return h.isDeleted(m) && h.isDeleted(a) })
}
