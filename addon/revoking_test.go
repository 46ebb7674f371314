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

// TestRevokingRefused checks a removal that cannot revoke the access of its agent: it reports the reason, is degraded
// at its deadline, and completes as soon as the access can be revoked.
func TestRevokingRefused(t *testing.T) { testkit.Virtual(t, testRevokingRefused) }

func testRevokingRefused(t *testing.T) {
	h := newHub(t)
	err := h.client.Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: membership.RegistrationNamespace}})
	require.True(t, err == nil || apierrors.IsAlreadyExists(err), err)
	h.members("a")
	h.obey()
	refuses := &atomic.Bool{}
	refuses.Store(true)
	h.wrap = denying(func(r *http.Request) bool {
		return refuses.Load() && r.Method == http.MethodDelete && mustertest.AttributesOf(r).Resource == "serviceaccounts"
	})
	h.start(addon.Options{Agents: []addon.Agent{reporter{echo{h.name("x")}}}, Registration: h.registration()})
	a := h.addon("x", within(600, func(*v1alpha1.AddonSpec) {}))
	m := h.own("x", "a", nil)
	h.eventually("it runs", func() bool { return is(h.memberAddon("x", "a"), v1alpha1.ConditionAvailable) })
	agent := h.agentOf("x", "a")
	may := func() bool {
		return agent.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(h.namespaceOf("a"))) == nil
	}
	h.eventually("its agent may what it asks for", may)

	require.NoError(t, h.client.Delete(t.Context(), a))
	h.eventually("it says why it does not end", func() bool {
		return strings.Contains(h.memberAddon("x", "a").Status.Message, "admission webhook policy denied the request")
	})
	h.says(m, v1alpha1.ConditionDegraded, metav1.ConditionFalse, v1alpha1.ReasonAsDesired)
	h.eventually("what gives it rights has gone", func() bool { return !may() })
	now := h.memberAddon("x", "a")
	before := now.DeepCopy()
	now.Spec.RemovalDeadlineSeconds = new(int32(1))
	require.NoError(t, h.client.Patch(t.Context(), now, client.MergeFrom(before)))
	said := h.says(m, v1alpha1.ConditionDegraded, metav1.ConditionTrue, v1alpha1.ReasonRevokeFailed)
	require.Contains(t, said.Message, "The MemberAddon stays until the access is revoked.")
	h.eventually("so does the Addon", func() bool {
		return strings.Contains(h.get("x").Status.Message, "denied the request")
	})
	require.Empty(t, h.get("x").Status.ForcedRemovals, "nothing was")

	refuses.Store(false)
	h.poke("x", "a")
	h.eventually("it ends", func() bool { return h.gone(m) && h.gone(a) })
}
