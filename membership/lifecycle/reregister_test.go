package lifecycle

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// TestNextAgent_Reregister checks that an agent that must register again keeps its registration until the new one is
// issued, and that no answer of the other hub makes it clean up.
func TestNextAgent_Reregister(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	member := Record{Claim: true, Registered: true}
	in := MembershipSeen{State: v1alpha1.StateJoin, Report: ReportedJoined}
	for _, test := range []struct {
		reason string
		o      AgentObserved
		phase  AgentPhase
		want   []AgentAction
		never  []AgentAction
	}{
		{
			reason: "a joined member stays joined and sends a JoinRequest",
			o:      AgentObserved{Hub: HubSeen, Membership: in, Beating: true, PolicySaved: true},
			phase:  Joined, want: []AgentAction{MakeRequest, CheckJoinRequest}, never: []AgentAction{StopBeat},
		},
		{
			reason: "an agent whose hub is unreachable also sends a JoinRequest",
			o:      AgentObserved{Hub: HubUnreachable, Beating: true, HubSince: now},
			phase:  Joined, want: []AgentAction{ReadMembership, MakeRequest, CheckJoinRequest}, never: []AgentAction{StopBeat},
		},
		{
			reason: "the agent registers with an issued credential",
			o: AgentObserved{Hub: HubSeen, Membership: in, Beating: true, PolicySaved: true,
				JoinRequest: JoinRequestIssued},
			phase: Joining, want: []AgentAction{Register},
		},
		{
			reason: "a blocked JoinRequest is checked again and not replaced",
			o:      AgentObserved{Hub: HubSeen, Membership: in, Beating: true, PolicySaved: true, JoinRequest: JoinRequestHeld},
			phase:  Joined, want: []AgentAction{CheckJoinRequest}, never: []AgentAction{MakeRequest},
		},
		{
			reason: "a deregistration by the other hub has no effect",
			o: AgentObserved{Hub: HubSeen, Membership: in, Beating: true, PolicySaved: true,
				JoinRequest: JoinRequestDeregistered},
			phase: Joined, want: []AgentAction{CheckJoinRequest},
			never: []AgentAction{RecordDeregistered, CleanMember, StartOver, StopBeat},
		},
		{
			reason: "a requested leave has precedence",
			o: AgentObserved{
				Hub: HubSeen, Membership: MembershipSeen{State: v1alpha1.StateLeave, Clean: true}, Beating: true, PolicySaved: true,
			},
			phase: Leaving, want: []AgentAction{CleanMember}, never: []AgentAction{CheckJoinRequest, MakeRequest},
		},
	} {
		t.Run(test.reason, func(t *testing.T) {
			test.o.Now, test.o.Record, test.o.Reregister = now, member, true
			step := NextAgent(test.o)
			require.Equal(t, test.phase, step.Phase)
			require.Subset(t, step.Actions, test.want)
			for _, action := range test.never {
				require.NotContains(t, step.Actions, action)
			}
			test.o.Reregister = false
			if test.o.Hub == HubSeen || test.o.Hub == HubUnreachable {
				require.NotContains(t, NextAgent(test.o).Actions, CheckJoinRequest, "without the request to register again")
			}
		})
	}
}
