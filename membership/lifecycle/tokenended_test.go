package lifecycle

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// TestNextJoinRequest_TokenEnded checks that the end of a JoinToken ends a request that waits for a decision, but not
// that of a cluster that is decided on, or of an agent that is registered as a member.
func TestNextJoinRequest_TokenEnded(t *testing.T) {
	waiting := &MemberSeen{Name: "east", UID: "u", ClusterID: "id", Claim: "c"}
	accepted, denied := *waiting, *waiting
	accepted.Accepted, denied.Accepted = new(true), new(false)
	for _, test := range []struct {
		reason string
		change func(*JoinRequestObserved)
		answer v1alpha1.JoinAnswer
		cause  string
		after  time.Duration
	}{
		{"an undecided request whose token has ended", func(o *JoinRequestObserved) { o.Token.Ended = "Expired." },
			v1alpha1.AnswerDenied, v1alpha1.ReasonTokenEnded, 0},
		{"an undecided request whose token ends later", func(o *JoinRequestObserved) { o.Token.EndsIn = time.Hour },
			v1alpha1.AnswerHeld, v1alpha1.ReasonWaitingForAcceptance, time.Hour},
		{"the cluster was accepted",
			func(o *JoinRequestObserved) { o.Token.Ended, o.Members.ByClaim = "Expired.", &accepted },
			v1alpha1.AnswerPending, v1alpha1.ReasonIssuing, 0},
		{"the cluster was denied", func(o *JoinRequestObserved) { o.Token.Ended, o.Members.ByClaim = "Expired.", &denied },
			v1alpha1.AnswerDenied, v1alpha1.ReasonDenied, 0},
		{"the agent of an unknown member waits for an administrator",
			func(o *JoinRequestObserved) { o.Token.Ended, o.Agent.MemberUID = "Expired.", "v" },
			v1alpha1.AnswerHeld, v1alpha1.ReasonUnknownMember, 0},
	} {
		t.Run(test.reason, func(t *testing.T) {
			o := JoinRequestObserved{ClusterID: "id", Name: "east", Agent: RequesterSeen{Claim: "c"},
				Members: MembersSeen{ByClaim: waiting, ByID: waiting}}
			test.change(&o)
			step := NextJoinRequest(o)
			require.Equal(t, test.answer, step.Answer, "%+v", step)
			if test.reason != "the cluster was accepted" && test.reason != "the cluster was denied" {
				require.Equal(t, test.cause, step.Reason)
				require.Equal(t, test.after, step.After)
			}
		})
	}
}
