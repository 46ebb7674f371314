package admin

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
)

func TestAccept(t *testing.T) {
	f := newFleet(t)
	f.run()
	ctx := t.Context()
	none := DecideOptions{}
	_, err := Accept(ctx, f.config, "north", none)
	require.ErrorIs(t, err, ErrNotFound)
	_, err = Accept(ctx, f.config, "", none)
	var invalid *membership.InvalidError
	require.ErrorAs(t, err, &invalid)

	require.NoError(t, Register(ctx, f.config, f.token(v1alpha1.JoinTokenSpec{}), RegisterOptions{}))
	f.attend("north", nil)
	var request v1alpha1.JoinRequest
	mustertest.Holds(f.t, timeLimit, "the agent is not held", func() bool {
		var list v1alpha1.JoinRequestList
		require.NoError(t, f.c.List(ctx, &list, client.InNamespace(membership.RegistrationNamespace)))
		if len(list.Items) == 1 {
			request = list.Items[0]
		}
		return request.Status.Answer == v1alpha1.AnswerHeld
	})
	again := f.token(v1alpha1.JoinTokenSpec{})
	mustertest.Holds(f.t, timeLimit, "the member's side does not know what is missing", func() bool {
		var timeout *TimeoutError
		require.ErrorAs(t, Register(ctx, f.config, again, RegisterOptions{Wait: time.Second}), &timeout)
		return strings.Contains(timeout.Reason, "spec.accepted")
	})

	member, err := Accept(ctx, f.config, request.Name, none)
	require.NoError(t, err)
	require.Equal(t, "north", member.Name, "it is named by its request")
	require.True(t, *f.member("north").Spec.Accepted)
	before := f.member("north").Generation
	_, err = Accept(ctx, f.config, "north", none)
	require.NoError(t, err)
	require.Equal(t, before, f.member("north").Generation, "twice is harmless")

	_, err = Deny(ctx, f.config, "north", none)
	require.NoError(t, err)
	mustertest.Holds(f.t, timeLimit, "it is not denied",
		func() bool { return f.member("north").Status.Phase == v1alpha1.PhaseDenied })
}

// TestAcceptRequest checks requests that are pending for other reasons than acceptance.
func TestAcceptRequest(t *testing.T) {
	f := newFleet(t)
	for _, test := range []struct {
		reason string
		name   string
		status v1alpha1.JoinRequestStatus
		is     error
		says   string
	}{
		{"another agent speaks for the cluster", "a", pendingStatus(v1alpha1.ReasonClusterIDTaken, "Set spec.claim"),
			ErrClusterTaken, "Set spec.claim"},
		{"another cluster has the name", "b", pendingStatus(v1alpha1.ReasonNameTaken, "Choose another name"), ErrNameTaken,
			"Choose another name"},
		{"the token does not let it in", "c", v1alpha1.JoinRequestStatus{Answer: v1alpha1.AnswerDenied}, ErrDenied,
			"join again"},
		{"the hub has not looked yet", "d", v1alpha1.JoinRequestStatus{}, ErrNotFound, "no response"},
		{"its member is gone", "e", v1alpha1.JoinRequestStatus{Answer: v1alpha1.AnswerHeld, MemberName: "gone"},
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
			require.ErrorIs(t, err, test.is, test.reason)
			require.ErrorContains(t, err, test.says, test.reason)
		}
		second := request.DeepCopy()
		second.ObjectMeta = metav1.ObjectMeta{Namespace: request.Namespace, Name: "second-" + test.name}
		f.create(second)
		_, err := Accept(t.Context(), f.config, test.name, DecideOptions{})
		require.ErrorIs(t, err, ErrNameTaken, "two want the name, and a person has to say which")
	}
}

func pendingStatus(reason, message string) v1alpha1.JoinRequestStatus {
	return v1alpha1.JoinRequestStatus{Answer: v1alpha1.AnswerHeld, Conditions: []metav1.Condition{{
		Type: v1alpha1.ConditionIssued, Status: metav1.ConditionFalse, Reason: reason, Message: message,
		LastTransitionTime: metav1.Now(),
	}}}
}
