package hub_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
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

// TestJoin_RequiresToken checks that a request without a token does not bypass the limits of tokens, and that the
// policy is not called for it.
func TestJoin_RequiresToken(t *testing.T) { testkit.Virtual(t, testJoinRequiresToken) }

func testJoinRequiresToken(t *testing.T) {
	var mu sync.Mutex
	var called []string
	policy := membership.AcceptorFunc(func(_ context.Context, request *v1alpha1.JoinRequest) (membership.Acceptance,
		error) {
		mu.Lock()
		defer mu.Unlock()
		called = append(called, request.Spec.Name)
		if token := request.Spec.Token; token != nil && token.Name == "trusted" {
			return membership.Acceptance{Decision: membership.Accept}, nil
		}
		return membership.Acceptance{Decision: membership.Hold}, nil
	})
	h := startHub(t, newMemory(t), hub.Options{Acceptor: policy})
	bound := h.token("bound", v1alpha1.JoinTokenSpec{ClusterID: "someone-else"})
	weak := h.token("weak", v1alpha1.JoinTokenSpec{})
	h.token("trusted", v1alpha1.JoinTokenSpec{})
	requester := h.requester(bound)
	send := func(a *requestSender) {
		createRequest(t, requester, a)
		// Another hub on this plane may accept it.
		t.Cleanup(func() { _ = h.Client.Delete(context.Background(), a.request) })
	}
	announce := func(name string, spec v1alpha1.MemberClusterSpec) {
		spec.ClusterID = "id-" + name
		h.Create(&v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec})
		t.Cleanup(func() {
			_ = h.Client.Delete(context.Background(), &v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}})
		})
	}

	announce("announced", v1alpha1.MemberClusterSpec{Accepted: new(true)})
	send(newRequestSender(t, "announced", csr.Method{}, nil))
	denied := h.request("id-announced", v1alpha1.AnswerDenied, v1alpha1.ReasonTokenRefused)
	require.Contains(t, messages(denied.Status.Conditions), "spec.token: is not set, and this hub requires a JoinToken")
	require.Empty(t, h.member("announced").Spec.Claim)
	send(newRequestSender(t, "unknown", csr.Method{}, nil))
	h.request("id-unknown", v1alpha1.AnswerDenied, v1alpha1.ReasonTokenRefused)
	require.True(t, h.isGone("unknown"), "nothing is created for a denied request")

	// A member that is missing without a tombstone needs a token like all other requests.
	send(newRequestSender(t, "gone", csr.Method{}, nil, func(r *v1alpha1.JoinRequest) { r.Spec.MemberUID = "gone" }))
	h.request("id-gone", v1alpha1.AnswerDenied, v1alpha1.ReasonTokenRefused)

	// A claim that used one token cannot use the name of another token.
	announce("renamed", v1alpha1.MemberClusterSpec{})
	first := newRequestSender(t, "renamed", csr.Method{}, weak)
	send(first)
	blocked := h.request("id-renamed", v1alpha1.AnswerHeld, v1alpha1.ReasonWaitingForAcceptance)
	require.NoError(t, h.Client.Delete(t.Context(), blocked))
	again := &v1alpha1.JoinRequest{ObjectMeta: metav1.ObjectMeta{Namespace: blocked.Namespace}, Spec: first.request.Spec}
	pretended := *weak
	pretended.TokenName = "trusted"
	require.NoError(t, registration.Sign(again, first.claim, &pretended))
	require.NoError(t, requester.Create(t.Context(), again))
	blocked = h.request("id-renamed", v1alpha1.AnswerHeld, v1alpha1.ReasonWaitingForAcceptance)
	require.Equal(t, "trusted", blocked.Spec.Token.Name)
	require.Nil(t, h.member("renamed").Spec.Accepted)

	mu.Lock()
	defer mu.Unlock()
	slices.Sort(called)
	require.Equal(t, []string{"renamed"}, slices.Compact(called))
}

// TestJoin_AllowWithoutToken checks that a product that admits JoinRequests itself can use AllowWithoutToken.
func TestJoin_AllowWithoutToken(t *testing.T) { testkit.Virtual(t, testJoinAllowWithoutToken) }

func testJoinAllowWithoutToken(t *testing.T) {
	h := startHub(t, newMemory(t), hub.Options{AllowWithoutToken: true})
	a := newRequestSender(t, "tokenless", csr.Method{}, nil)
	createRequest(t, h.requester(h.token("tokenless", v1alpha1.JoinTokenSpec{})), a)
	h.request("id-tokenless", v1alpha1.AnswerHeld, v1alpha1.ReasonWaitingForAcceptance)
	h.change("tokenless", func(c *v1alpha1.MemberCluster) { c.Spec.Accepted = new(true) })
	issued := h.request("id-tokenless", v1alpha1.AnswerIssued, v1alpha1.ReasonIssued)
	require.NotNil(t, issued.Status.Credential)
	h.change("tokenless", func(c *v1alpha1.MemberCluster) { c.Spec.Leave.DeadlineSeconds = 1 })
	h.remove("tokenless")
	require.NoError(t, client.IgnoreNotFound(h.Client.Delete(t.Context(), issued)))
}

func (h *testHub) isGone(name string) bool {
	h.T.Helper()
	err := h.Client.Get(h.T.Context(), client.ObjectKey{Name: name}, &v1alpha1.MemberCluster{})
	require.NoError(h.T, client.IgnoreNotFound(err))
	return err != nil
}

// testStolenCredentialIsNotRenewed checks that a credential without its key is not renewed: a stolen credential must
// not give permanent access.
func testStolenCredentialIsNotRenewed(t *testing.T, h *testHub) {
	bootstrap := h.token("stolen", v1alpha1.JoinTokenSpec{AutoAccept: true})
	for name, method := range map[string]registration.Method{"stolen-token": token.Method{}, "stolen-csr": csr.Method{}} {
		testkit.Step(t, name, func() {
			agent := newRequestSender(t, name, method, bootstrap)
			createRequest(t, h.requester(bootstrap), agent)
			config := agent.config(h, bootstrap, h.request("id-"+name, v1alpha1.AnswerIssued, v1alpha1.ReasonIssued))
			member, err := client.New(config, client.Options{Scheme: newScheme(), Mapper: h.Client.RESTMapper()})
			require.NoError(t, err)
			uid := h.member(name).UID
			thief, err := registration.NewClaimKey()
			require.NoError(t, err)

			for _, test := range []struct {
				id      string
				sign    func(*v1alpha1.Renewal)
				refusal string
			}{
				{"unsigned", func(*v1alpha1.Renewal) {}, "signature: must be set"},
				{"by-another-key", func(r *v1alpha1.Renewal) { require.NoError(t, registration.SignRenewal(r, uid, thief)) },
					"claimKey: is "},
				{"changed", func(r *v1alpha1.Renewal) {
					require.NoError(t, registration.SignRenewal(r, uid, agent.claim))
					r.Request.ExpirationSeconds = new(int32(31536000))
				}, "signature: is not a signature of this renewal"},
				{"by-the-agent", func(r *v1alpha1.Renewal) { require.NoError(t, registration.SignRenewal(r, uid, agent.claim)) },
					""},
			} {
				request, _, err := method.Request(agent.claim, nil)
				require.NoError(t, err)
				renewal := &v1alpha1.Renewal{ID: test.id, Request: request}
				test.sign(renewal)
				before := h.membership(name)
				after := before.DeepCopy()
				after.Status.Renewal = renewal
				require.NoError(t, member.Status().Patch(t.Context(), after, client.MergeFrom(before)))
				var answer *v1alpha1.RenewalAnswer
				h.Eventually("renewal "+test.id+" is answered", func() error {
					answer = h.membership(name).Spec.Renewal
					return orError(answer != nil && answer.ID == test.id, "%+v", answer)
				})
				require.Equal(t, test.refusal == "", answer.Credential != nil, test.id)
				require.Contains(t, answer.Refused, test.refusal, test.id)
			}
			h.remove(name)
		})
	}
}

// TestJoinToken_OwnedByMember checks that a token that a MemberCluster owns admits only that member, so that a late
// request creates no other one.
func TestJoinToken_OwnedByMember(t *testing.T) { testkit.Virtual(t, testJoinTokenOwnedByMember) }

func testJoinTokenOwnedByMember(t *testing.T) {
	h := startHub(t, newMemory(t), hub.Options{})
	bootstrap := h.token("owned", v1alpha1.JoinTokenSpec{AutoAccept: true})
	owner := &v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}
	h.Create(owner)
	t.Cleanup(func() { _ = h.Client.Delete(context.Background(), owner) })
	h.Eventually("the token has an owner", func() error {
		token := &v1alpha1.JoinToken{}
		if err := h.Client.Get(t.Context(), client.ObjectKey{Namespace: membership.RegistrationNamespace, Name: "owned"},
			token); err != nil {
			return err
		}
		token.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: "MemberCluster", Name: owner.Name, UID: owner.UID,
		}}
		return h.Client.Update(t.Context(), token)
	})
	requester := h.requester(bootstrap)
	send := func(name string) {
		request := newRequestSender(t, name, csr.Method{}, bootstrap).request
		// the API server must observe the quota first
		h.Eventually("a JoinRequest can be created", func() error {
			return requester.Create(t.Context(), request.DeepCopy())
		})
		t.Cleanup(func() { _ = h.Client.Delete(context.Background(), request) })
	}
	send("stranger")
	denied := h.request("id-stranger", v1alpha1.AnswerDenied, v1alpha1.ReasonTokenRefused)
	require.Contains(t, messages(denied.Status.Conditions), "for a single MemberCluster")
	require.True(t, h.isGone("stranger"))
	send("owner")
	h.untilCondition("owner", v1alpha1.ConditionAccepted, metav1.ConditionTrue, v1alpha1.ReasonAccepted)
}

// TestProtectedLabels checks that a cluster can request a protected label only with a token that allows it, and only
// for a new member.
func TestProtectedLabels(t *testing.T) { testkit.Virtual(t, testProtectedLabels) }

func testProtectedLabels(t *testing.T) {
	h := startHub(t, newMemory(t), hub.Options{
		ProtectedLabels: func(context.Context) ([]string, error) { return []string{"region"}, nil },
	})
	strict := h.token("strict", v1alpha1.JoinTokenSpec{AutoAccept: true})
	open := h.token("open", v1alpha1.JoinTokenSpec{
		AutoAccept: true, AllowedLabels: []v1alpha1.AllowedLabel{{Key: "region", Values: []string{"eu"}}},
	})
	send := func(name string, bootstrap *registration.Bootstrap) {
		request := newRequestSender(t, name, csr.Method{}, bootstrap, func(r *v1alpha1.JoinRequest) {
			r.Spec.Labels = map[string]string{"region": "eu"}
		}).request
		hub := h.requester(bootstrap)
		h.Eventually("the hub accepts the request", func() error { return hub.Create(t.Context(), request.DeepCopy()) })
		t.Cleanup(func() { _ = h.Client.Delete(context.Background(), request) })
	}
	send("steered", strict)
	denied := h.request("id-steered", v1alpha1.AnswerDenied, v1alpha1.ReasonTokenRefused)
	require.Contains(t, messages(denied.Status.Conditions), `spec.labels["region"]`)
	require.Contains(t, messages(denied.Status.Conditions), `allowedLabels`)
	require.True(t, h.isGone("steered"))

	send("allowed", open)
	h.untilCondition("allowed", v1alpha1.ConditionAccepted, metav1.ConditionTrue, v1alpha1.ReasonAccepted)
	require.Equal(t, "eu", h.member("allowed").Labels["region"])

	predefined := &v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "predefined"}}
	predefined.Spec = v1alpha1.MemberClusterSpec{ClusterID: "id-predefined", Accepted: new(true)}
	h.Create(predefined)
	send("predefined", strict)
	h.request("id-predefined", v1alpha1.AnswerIssued, v1alpha1.ReasonIssued)
	require.Empty(t, h.member("predefined").Labels["region"], "the labels of a request do not change an existing member")
	h.remove("allowed")
	h.remove("predefined")
}
