package admin

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
)

func TestAccept(t *testing.T) {
	testkit.Virtual(t, testAccept)
}

func testAccept(t *testing.T) {
	f := newFleet(t, newMemory(t))
	f.run()
	ctx := t.Context()
	none := DecideOptions{}
	_, err := Accept(ctx, f.config, "north", none)
	require.ErrorIs(t, err, ErrNotFound)
	_, err = Accept(ctx, f.config, "", none)
	var invalid *membership.InvalidError
	require.ErrorAs(t, err, &invalid)

	require.NoError(t, Register(ctx, f.config, f.token(v1alpha1.JoinTokenSpec{}), RegisterOptions{HubConfig: f.connect}))
	f.runAgent("north", nil)
	var request v1alpha1.JoinRequest
	mustertest.Holds(f.t, timeLimit, "the request is pending", func() bool {
		var list v1alpha1.JoinRequestList
		require.NoError(t, f.c.List(ctx, &list, client.InNamespace(membership.RegistrationNamespace)))
		if len(list.Items) == 1 {
			request = list.Items[0]
		}
		return request.Status.Answer == v1alpha1.AnswerHeld
	})
	again := f.token(v1alpha1.JoinTokenSpec{})
	mustertest.Holds(f.t, timeLimit, "Register reports the missing acceptance", func() bool {
		var timeout *TimeoutError
		require.ErrorAs(t,
			Register(ctx, f.config, again, RegisterOptions{HubConfig: f.connect, Wait: time.Second}), &timeout)
		return strings.Contains(timeout.Reason, "spec.accepted")
	})

	member, err := Accept(ctx, f.config, request.Name, none)
	require.NoError(t, err)
	require.Equal(t, "north", member.Name, "the name of a request selects its member")
	require.True(t, *f.member("north").Spec.Accepted)
	before := f.member("north").Generation
	_, err = Accept(ctx, f.config, "north", none)
	require.NoError(t, err)
	require.Equal(t, before, f.member("north").Generation, "a second Accept changes nothing")

	_, err = Deny(ctx, f.config, "north", none)
	require.NoError(t, err)
	mustertest.Holds(f.t, timeLimit, "the member is denied",
		func() bool { return f.member("north").Status.Phase == v1alpha1.PhaseDenied })
}

// TestAccept_PendingRequests checks requests that are pending for other reasons than acceptance.
func TestAccept_PendingRequests(t *testing.T) {
	testkit.Virtual(t, testAcceptPendingRequests)
}

func testAcceptPendingRequests(t *testing.T) {
	f := newFleet(t, newMemory(t))
	for _, test := range []struct {
		reason string
		name   string
		status v1alpha1.JoinRequestStatus
		err    error
		text   string // of the error
	}{
		{"the cluster ID belongs to another agent", "a", pendingStatus(v1alpha1.ReasonClusterIDTaken, "Set spec.claim"),
			ErrClusterTaken, "Set spec.claim"},
		{"the name belongs to another cluster", "b", pendingStatus(v1alpha1.ReasonNameTaken, "Choose another name"),
			ErrNameTaken,
			"Choose another name"},
		{"the request is denied", "c", v1alpha1.JoinRequestStatus{Answer: v1alpha1.AnswerDenied}, ErrDenied,
			"join again"},
		{"no response of the hub", "d", v1alpha1.JoinRequestStatus{}, ErrNotFound, "no response"},
		{"the MemberCluster of the request does not exist", "e",
			v1alpha1.JoinRequestStatus{Answer: v1alpha1.AnswerHeld, MemberName: "gone"},
			ErrNotFound, "does not exist"},
	} {
		f.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: membership.RegistrationNamespace}})
		request := &v1alpha1.JoinRequest{
			ObjectMeta: metav1.ObjectMeta{Namespace: membership.RegistrationNamespace, Name: "request-" + test.name},
			Spec: v1alpha1.JoinRequestSpec{ClusterID: test.name, Name: test.name, ClaimKey: []byte("x"), Signature: []byte("x"),
				Credential: v1alpha1.CredentialRequest{Type: v1alpha1.CredentialToken}},
		}
		f.create(request)
		request.Status = test.status
		require.NoError(t, f.c.Status().Update(t.Context(), request))
		for _, name := range []string{test.name, request.Name} {
			_, err := Accept(t.Context(), f.config, name, DecideOptions{})
			require.ErrorIs(t, err, test.err, test.reason)
			require.ErrorContains(t, err, test.text, test.reason)
		}
		second := request.DeepCopy()
		second.ObjectMeta = metav1.ObjectMeta{Namespace: request.Namespace, Name: "second-" + test.name}
		f.create(second)
		_, err := Accept(t.Context(), f.config, test.name, DecideOptions{})
		require.ErrorIs(t, err, ErrNameTaken, "two requests have the same name")
	}
}

func pendingStatus(reason, message string) v1alpha1.JoinRequestStatus {
	return v1alpha1.JoinRequestStatus{Answer: v1alpha1.AnswerHeld, Conditions: []metav1.Condition{{
		Type: v1alpha1.ConditionIssued, Status: metav1.ConditionFalse, Reason: reason, Message: message,
		LastTransitionTime: metav1.Now(),
	}}}
}
