package hub

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

func TestCredentialEnd(t *testing.T) {
	at := func(hour int) *metav1.Time { return new(metav1.Date(2026, 3, 1, hour, 0, 0, 0, time.UTC)) }
	until := func(end *metav1.Time) []v1alpha1.Credential { return []v1alpha1.Credential{{ExpirationTime: end}} }
	const joined = lifecycle.ReportedJoined
	for _, test := range []struct {
		reason   string
		recorded *metav1.Time
		report   lifecycle.AgentReport
		issued   []v1alpha1.Credential
		renewed  *v1alpha1.Credential
		want     *metav1.Time
	}{
		{"no credential is known", nil, joined, nil, nil, nil},
		{"the credential of the JoinRequest", nil, joined, until(at(1)), nil, at(1)},
		{"the JoinRequest is deleted", at(1), joined, nil, nil, at(1)},
		{"the credential was renewed", at(1), joined, nil, &v1alpha1.Credential{ExpirationTime: at(2)}, at(2)},
		{"another JoinRequest after a renewal whose answer still exists", at(2), joined, until(at(3)),
			&v1alpha1.Credential{ExpirationTime: at(2)}, at(3)},
		{"another JoinRequest after a renewal is deleted",
			at(3), joined, nil, &v1alpha1.Credential{ExpirationTime: at(2)}, at(3)},
		{"the credential does not end", nil, joined, until(nil), &v1alpha1.Credential{}, nil},
		{"the claim was assigned to an agent that has not reported", at(1), lifecycle.ReportedNothing, nil,
			&v1alpha1.Credential{ExpirationTime: at(2)}, nil},
		{"the agent has reported that the member is clean", at(1), lifecycle.ReportedClean, nil, nil, at(1)},
	} {
		o := memberObserved{issued: test.issued, membership: &v1alpha1.Membership{}}
		if test.renewed != nil {
			o.membership.Spec.Renewal = &v1alpha1.RenewalAnswer{Credential: test.renewed}
		}
		o.lifecycle.Membership = &lifecycle.MembershipSeen{Report: test.report}
		require.Equal(t, test.want, credentialEnd(test.recorded, o), test.reason)
	}
	require.Nil(t, credentialEnd(at(1), memberObserved{}), "the member has no Membership")
}
