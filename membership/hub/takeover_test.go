package hub_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/hub"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/registration/csr"
	"github.com/muster-sdk/muster/membership/registration/token"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// testTakeover checks that an administrator who assigns the claim to another agent revokes the access of the previous
// agent and admits the other, for all types of credentials. Clearing the claim revokes it as well.
func testTakeover(t *testing.T, h *testHub) {
	bootstrap := h.token("takeover", v1alpha1.JoinTokenSpec{AutoAccept: true})
	for _, test := range []struct {
		name          string
		before, after registration.Method
	}{
		{"takeover-to-csr", token.Method{}, csr.Method{}},
		{"takeover-to-token", csr.Method{}, token.Method{}},
		{"takeover-token", token.Method{}, token.Method{}},
	} {
		testkit.Step(t, test.name, func() {
			readerOf := func(agent *requestSender) func() error {
				config := agent.config(h, bootstrap, h.answer(agent, v1alpha1.AnswerIssued))
				c, err := client.New(config, client.Options{Scheme: newScheme(), Mapper: h.Client.RESTMapper()})
				require.NoError(t, err)
				return func() error {
					return c.Get(t.Context(), client.ObjectKey{Namespace: "member-" + test.name, Name: membership.MembershipName},
						&v1alpha1.Membership{})
				}
			}
			evicted := func(read func() error) {
				h.Eventually("the former agent has no access", func() error {
					err := read()
					return orError(apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err), "%v", err)
				})
			}
			first, second := newRequestSender(t, test.name, test.before, bootstrap),
				newRequestSender(t, test.name, test.after, bootstrap)
			requester := h.requester(bootstrap)
			createRequest(t, requester, first)
			readAsFirst := readerOf(first)
			h.Eventually("the first agent has access", readAsFirst)
			createRequest(t, requester, second)
			h.answer(second, v1alpha1.AnswerHeld)
			require.NoError(t, readAsFirst())

			h.change(test.name, func(c *v1alpha1.MemberCluster) { c.Spec.Claim = second.claim.Fingerprint() })
			readAsSecond := readerOf(second)
			h.Eventually("the second agent has access", readAsSecond)
			evicted(readAsFirst)
			require.Equal(t, test.after.Type(), h.member(test.name).Spec.Credential)

			// Their requests would claim the member again at once.
			for _, former := range []*requestSender{first, second} {
				require.NoError(t, client.IgnoreNotFound(h.Client.Delete(t.Context(), former.request)))
			}
			h.change(test.name, func(c *v1alpha1.MemberCluster) { c.Spec.Claim = "" })
			evicted(readAsSecond)
			h.remove(test.name)
		})
	}
}

// answer waits for the answer to a request.
func (h *testHub) answer(a *requestSender, want v1alpha1.JoinAnswer) *v1alpha1.JoinRequest {
	h.T.Helper()
	request := &v1alpha1.JoinRequest{}
	h.Eventually("the answer to "+a.request.Name+" is "+string(want), func() error {
		if err := h.Client.Get(h.T.Context(), client.ObjectKeyFromObject(a.request), request); err != nil {
			return err
		}
		return orError(request.Status.Answer == want, "%s: %s", request.Status.Answer, messages(request.Status.Conditions))
	})
	return request
}

// TestLaggingCache_Claims checks that a hub whose cache does not show yet that the claim was assigned to another agent
// issues no credential to the previous agent, which would revoke that of the other one.
func TestLaggingCache_Claims(t *testing.T) { testkit.Virtual(t, testLaggingCacheClaims) }

func testLaggingCacheClaims(t *testing.T) {
	clusters := lagging{suffix: "/memberclusters"}
	h := startHub(t, newMemory(t), hub.Options{}, clusters.wrap)
	bootstrap := h.token("claims", v1alpha1.JoinTokenSpec{AutoAccept: true})
	requester := h.requester(bootstrap)
	defer clusters.resume()

	// A member that is accepted and prepared, without a request.
	early := newRequestSender(t, "early", token.Method{}, bootstrap)
	h.Create(&v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "early"}, Spec: v1alpha1.MemberClusterSpec{
		Accepted: new(true), ClusterID: "id-early", Claim: early.claim.Fingerprint(), Credential: v1alpha1.CredentialToken,
	}})
	// A joined member that renews its credential.
	late := newRequestSender(t, "late", token.Method{}, bootstrap)
	createRequest(t, requester, late)
	config := late.config(h, bootstrap, h.answer(late, v1alpha1.AnswerIssued))
	agent, err := client.New(config, client.Options{Scheme: newScheme(), Mapper: h.Client.RESTMapper()})
	require.NoError(t, err)
	h.untilCondition("early", v1alpha1.ConditionReadyToJoin, metav1.ConditionTrue, v1alpha1.ReasonPrepared)
	pause(time.Second) // for the caches of the hub
	clusters.pause()
	other, err := registration.NewClaimKey()
	require.NoError(t, err)
	for _, name := range []string{"early", "late"} {
		h.change(name, func(c *v1alpha1.MemberCluster) { c.Spec.Claim = other.Fingerprint() })
	}

	createRequest(t, requester, early)
	request, _, err := token.Method{}.Request(late.claim, nil)
	require.NoError(t, err)
	renewal := &v1alpha1.Renewal{ID: "late", Request: request}
	require.NoError(t, registration.SignRenewal(renewal, h.member("late").UID, late.claim))
	before := h.membership("late")
	asks := before.DeepCopy()
	asks.Status.Renewal = renewal
	require.NoError(t, agent.Status().Patch(t.Context(), asks, client.MergeFrom(before)))
	pause(3 * time.Second)
	require.Nil(t, h.membership("late").Spec.Renewal)
	require.NoError(t, h.Client.Get(t.Context(), client.ObjectKeyFromObject(early.request), early.request))
	require.Nil(t, early.request.Status.Credential, early.request.Status.Answer)

	clusters.resume()
	h.answer(early, v1alpha1.AnswerHeld)
	h.Eventually("the renewal is refused", func() error {
		answer := h.membership("late").Spec.Renewal
		return orError(answer != nil && strings.Contains(answer.Refused, "claimKey: is "), "%+v", answer)
	})
	h.remove("early")
	h.remove("late")
}
