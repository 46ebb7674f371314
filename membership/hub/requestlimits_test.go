package hub_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/hub"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/registration/csr"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
)

// TestJoinRequest_LimitOfOneToken checks that a stolen token cannot use up the quota for JoinRequests: the token has
// at most MaxRequestsPerToken requests, the oldest stay, no objects of the others are left, and a cluster with another
// token joins. The requests with a proof by an invalid key share one limit.
func TestJoinRequest_LimitOfOneToken(t *testing.T) {
	testkit.Virtual(t, testJoinRequestLimitOfOneToken)
}

func testJoinRequestLimitOfOneToken(t *testing.T) {
	const quota, limit = 8, 3
	h := startHub(t, newMemory(t), hub.Options{MaxRequests: quota, MaxRequestsPerToken: limit})
	stolen := h.token("stolen", v1alpha1.JoinTokenSpec{})
	other := h.token("other", v1alpha1.JoinTokenSpec{AutoAccept: true})
	thief := h.requester(stolen)

	send := func(name string, c client.Client, bootstrap *registration.Bootstrap) error {
		request := newRequestSender(t, name, csr.Method{}, bootstrap).request
		err := c.Create(t.Context(), request)
		for apierrors.IsConflict(err) {
			err = c.Create(t.Context(), request)
		}
		return err
	}
	h.Eventually("the quota admits a request", func() error { return send("first", thief, stolen) })
	h.request("id-first", v1alpha1.AnswerHeld, v1alpha1.ReasonWaitingForAcceptance)
	pause(time.Until(time.Now().Truncate(time.Second).Add(time.Second))) // creationTimestamp has seconds

	forged := *stolen
	forged.Key = make([]byte, len(stolen.Key))
	for i := range 40 {
		for kind, bootstrap := range map[string]*registration.Bootstrap{"flood": stolen, "forged": &forged} {
			err := send(fmt.Sprintf("%s-%d", kind, i), thief, bootstrap)
			require.True(t, err == nil || apierrors.IsForbidden(err), "%v", err) // Forbidden: the quota is used up
		}
	}
	list := func() (flood, forged int) {
		var list v1alpha1.JoinRequestList
		require.NoError(t, h.Client.List(t.Context(), &list))
		for _, request := range list.Items {
			issued := meta.FindStatusCondition(request.Status.Conditions, v1alpha1.ConditionIssued)
			if issued != nil && issued.Reason == v1alpha1.ReasonTokenRefused {
				forged++
			} else {
				flood++
			}
		}
		return flood, forged
	}
	h.Eventually("the requests are within the limits", func() error {
		valid, invalid := list()
		return orError(valid <= limit && invalid <= limit, "%d valid requests, %d invalid ones", valid, invalid)
	})
	h.Eventually("no more clusters exist than requests", func() error {
		var clusters v1alpha1.MemberClusterList
		if err := h.Client.List(t.Context(), &clusters); err != nil {
			return err
		}
		return orError(len(clusters.Items) <= limit, "%d clusters", len(clusters.Items))
	})
	h.request("id-first", v1alpha1.AnswerHeld, v1alpha1.ReasonWaitingForAcceptance)

	start, innocent := time.Now(), h.requester(other)
	h.Eventually("the quota admits the request of another token",
		func() error { return send("innocent", innocent, other) })
	t.Logf("the quota admits the request of another token after %s", time.Since(start))
	h.request("id-innocent", v1alpha1.AnswerIssued, v1alpha1.ReasonIssued)
}

// TestJoinRequest_TokenEnds checks that a request that waits for a decision is denied when its token is deleted or
// expires: with a reason, and later deleted with the MemberCluster that was created for it. A cluster that was
// accepted before still joins.
func TestJoinRequest_TokenEnds(t *testing.T) { testkit.Virtual(t, testJoinRequestTokenEnds) }

func testJoinRequestTokenEnds(t *testing.T) {
	clock := &mustertest.Clock{}
	h := startHub(t, newMemory(t), hub.Options{Clock: clock})
	never := new(int64(-1))
	tokens := map[string]*registration.Bootstrap{
		"deleted": h.token("deleted", v1alpha1.JoinTokenSpec{TTLSeconds: never}),
		"expired": h.token("expired", v1alpha1.JoinTokenSpec{TTLSeconds: new(int64(3600))}),
		"kept":    h.token("kept", v1alpha1.JoinTokenSpec{TTLSeconds: never}),
	}
	for name, bootstrap := range tokens {
		h.Eventually("the quota admits a request", func() error {
			return h.requester(bootstrap).Create(t.Context(), newRequestSender(t, name, csr.Method{}, bootstrap).request)
		})
		h.request("id-"+name, v1alpha1.AnswerHeld, v1alpha1.ReasonWaitingForAcceptance)
	}
	createRequest(t, h.requester(tokens["deleted"]), newRequestSender(t, "accepted", csr.Method{}, tokens["deleted"]))
	h.request("id-accepted", v1alpha1.AnswerHeld, v1alpha1.ReasonWaitingForAcceptance)
	h.change("accepted", func(c *v1alpha1.MemberCluster) { c.Spec.Accepted = new(true) })
	h.request("id-accepted", v1alpha1.AnswerIssued, v1alpha1.ReasonIssued)

	later := func(by time.Duration, names ...string) { // timers are real
		clock.Move(by)
		for _, name := range names {
			require.NoError(t, h.touch("id-"+name))
		}
	}
	later(30 * time.Minute)
	require.NoError(t, h.Client.Delete(t.Context(), &v1alpha1.JoinToken{
		ObjectMeta: metav1.ObjectMeta{Namespace: membership.RegistrationNamespace, Name: "deleted"},
	}))
	ended := h.request("id-deleted", v1alpha1.AnswerDenied, v1alpha1.ReasonTokenEnded)
	require.Contains(t, messages(ended.Status.Conditions), `JoinToken "deleted" was deleted`)
	require.Nil(t, h.member("deleted").Spec.Accepted)
	h.request("id-expired", v1alpha1.AnswerHeld, v1alpha1.ReasonWaitingForAcceptance)
	later(31*time.Minute, "expired", "deleted")
	ended = h.request("id-expired", v1alpha1.AnswerDenied, v1alpha1.ReasonTokenEnded)
	require.Contains(t, messages(ended.Status.Conditions), `JoinToken "expired" expired at `)
	h.untilGone("deleted") // ten minutes after the end
	later(11 * time.Minute)
	h.change("expired", func(c *v1alpha1.MemberCluster) { c.Labels = map[string]string{"touched": "again"} })
	h.untilGone("expired")
	h.request("id-kept", v1alpha1.AnswerHeld, v1alpha1.ReasonWaitingForAcceptance)
	h.request("id-accepted", v1alpha1.AnswerIssued, v1alpha1.ReasonIssued)
}
