package hub_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/registration/csr"
	"github.com/muster-sdk/muster/membership/registration/token"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
)

// testClaimKeys makes an agent replace its claim key, and an earlier copy of its Secret renew the credential and join.
func testClaimKeys(t *testing.T, h *testHub) {
	bootstrap := h.token("keys", v1alpha1.JoinTokenSpec{})
	for name, method := range map[string]registration.Method{"keys-token": token.Method{}, "keys-csr": csr.Method{}} {
		testkit.Step(t, name, func() {
			lifetime := map[bool]time.Duration{true: token.DefaultLifetime,
				false: csr.DefaultLifetime}[method == registration.Method(token.Method{})]
			clock := &mustertest.Clock{}
			a := h.joined(bootstrap, agent.Options{Name: name, Method: method, Clock: clock})
			require.Nil(t, h.member(name).Spec.ClaimKeys)
			copied, err := a.store.Load(t.Context())
			require.NoError(t, err)

			clock.Move(lifetime * 79 / 100)
			h.Eventually("the renewal has a new key", func() error {
				return orError(h.member(name).Spec.ClaimKeys != nil, "spec.claimKeys is not set")
			})
			h.untilCondition(name, v1alpha1.ConditionCredentialValid, metav1.ConditionTrue, v1alpha1.ReasonIssued)
			member := h.member(name)
			keys := member.Spec.ClaimKeys
			require.Equal(t, member.Spec.Claim, keys.Claim)
			require.NotEqual(t, keys.Claim, keys.Current)
			require.Nil(t, keys.ReusedAt)
			h.Eventually("the agent has adopted the credential", func() error {
				return orError(h.membership(name).Status.Renewal == nil, "the agent still requests a credential")
			})
			a.stop()

			// The copy renews.
			other := h.newAgent(bootstrap, a.options)
			require.NoError(t, other.store.Save(t.Context(), copied))
			other.start()
			cluster := h.untilCondition(name, v1alpha1.ConditionClusterIDUnique, metav1.ConditionFalse,
				v1alpha1.ReasonClaimKeyReused)
			require.Contains(t, meta.FindStatusCondition(cluster.Status.Conditions,
				v1alpha1.ConditionClusterIDUnique).Message, "remove spec.claimKeys.reusedAt")
			h.untilCondition(name, v1alpha1.ConditionCredentialValid, metav1.ConditionFalse, v1alpha1.ReasonRenewalRefused)
			other.stop()
			require.Equal(t, keys.Current, h.member(name).Spec.ClaimKeys.Current)

			// The agent continues.
			answered := h.membership(name).Spec.Renewal.ID
			clock.Move(lifetime * 79 / 100)
			a.start()
			h.Eventually("the agent renews its credential", func() error {
				answer := h.membership(name).Spec.Renewal
				return orError(answer.ID != answered && answer.Credential != nil, "answered %v", answer)
			})
			h.untilCondition(name, v1alpha1.ConditionCredentialValid, metav1.ConditionTrue, v1alpha1.ReasonIssued)
			require.NotNil(t, h.member(name).Spec.ClaimKeys.ReusedAt, "the report stays until an administrator removes it")
			unreport := func() {
				h.change(name, func(c *v1alpha1.MemberCluster) { c.Spec.ClaimKeys.ReusedAt = nil })
				h.Eventually("the report is closed", func() error {
					c := meta.FindStatusCondition(h.member(name).Status.Conditions, v1alpha1.ConditionClusterIDUnique)
					return orError(c == nil, "%v", c)
				})
			}
			unreport()

			// The copy joins again.
			joining := newRequestSender(t, name, method, bootstrap)
			var record struct {
				ClaimKey []byte `json:"claimKey"`
			}
			require.NoError(t, json.Unmarshal(copied, &record))
			joining.claim, err = registration.ParseClaimKey(record.ClaimKey)
			require.NoError(t, err)
			joining.request.Spec.MemberUID = member.UID
			joining.request.Spec.Credential, joining.private, err = method.Request(joining.claim, nil)
			require.NoError(t, err)
			require.NoError(t, registration.Sign(joining.request, joining.claim, bootstrap))
			require.NoError(t, client.IgnoreNotFound(h.Client.Delete(t.Context(), joining.request.DeepCopy())))
			createRequest(t, h.requester(bootstrap), joining)
			h.untilCondition(name, v1alpha1.ConditionClusterIDUnique, metav1.ConditionFalse, v1alpha1.ReasonClaimKeyReused)
			refused := h.answer(joining, v1alpha1.AnswerHeld)
			require.Equal(t, v1alpha1.ReasonClaimKeyReplaced,
				meta.FindStatusCondition(refused.Status.Conditions, v1alpha1.ConditionIssued).Reason)

			// An administrator accepts the first key again, as for an agent that was restored.
			h.change(name, func(c *v1alpha1.MemberCluster) { c.Spec.ClaimKeys = nil })
			h.answer(joining, v1alpha1.AnswerIssued)
			require.NoError(t, client.IgnoreNotFound(h.Client.Delete(t.Context(), joining.request)))
			h.remove(name)
			a.stop()
		})
	}
}
