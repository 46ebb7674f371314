package lifecycle

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

func TestNextAgent(t *testing.T) {
	var (
		fresh  = Record{}
		asked  = Record{Claim: true}
		member = Record{Registered: true}
	)
	see := func(r Record, change func(*AgentObserved)) AgentObserved {
		o := AgentObserved{Now: epoch, JoinRequestSince: epoch, Record: r, PolicySaved: true, Beating: true}
		change(&o)
		return o
	}
	seen := func(change func(*AgentObserved)) AgentObserved {
		return see(member, func(o *AgentObserved) {
			o.Hub, o.Membership = HubSeen, *joinedMembership
			change(o)
		})
	}
	toLeave := func(change func(*AgentObserved)) AgentObserved {
		return seen(func(o *AgentObserved) {
			o.Membership.State, o.Membership.Clean = v1alpha1.StateLeave, true
			change(o)
		})
	}
	for _, test := range []struct {
		name   string
		reason string
		o      AgentObserved
		want   AgentStep
	}{
		{
			name: "new", reason: "what is sent is written down first, so that a restart finds it again",
			o: see(fresh, func(*AgentObserved) {}),
			want: AgentStep{Phase: Unregistered, Message: "The agent is creating a JoinRequest.",
				Actions: []AgentAction{MakeRequest}},
		},
		{
			name: "no bootstrap credential", reason: "only a person can help, and is told how",
			o: see(asked, func(o *AgentObserved) { o.JoinRequest = JoinRequestNoCredential }),
			want: AgentStep{
				Phase: Rejected, Actions: []AgentAction{CheckJoinRequest}, After: BlockedPoll,
				Message: "The agent has no bootstrap credential: provide the credential of a JoinToken that is Ready.",
			},
		},
		{
			name: "its own cluster does not answer", reason: "that is not the hub's doing, and may pass",
			o: see(asked, func(o *AgentObserved) { o.JoinRequest = JoinRequestNotAskable }),
			want: AgentStep{
				Phase: Registering, Actions: []AgentAction{CheckJoinRequest}, After: RetryPoll,
				Message: "The agent cannot create a JoinRequest for a local reason, and retries.",
			},
		},
		{
			name: "too many requests", reason: "there is nothing wrong with this one",
			o: see(asked, func(o *AgentObserved) { o.JoinRequest = JoinRequestFull }),
			want: AgentStep{
				Phase: Registering, Actions: []AgentAction{CheckJoinRequest}, After: BlockedPoll,
				Message: "The hub's limit of JoinRequests is reached. The agent retries.",
			},
		},
		{
			name: "no hub at all", reason: "another credential for the same place would not help",
			o: see(asked, func(o *AgentObserved) { o.JoinRequest = JoinRequestUnfit }),
			want: AgentStep{
				Phase: Rejected, Actions: []AgentAction{CheckJoinRequest}, After: BlockedPoll,
				Message: "The hub cannot accept the request: check that it is the right hub, and what the agent requests.",
			},
		},
		{
			name: "refused, and its own cluster does not answer", reason: "it sees all the same when the hub lets it in again",
			o: see(member, func(o *AgentObserved) {
				o.Hub, o.JoinRequest, o.Beating = HubRefused, JoinRequestNotAskable, false
			}),
			want: AgentStep{
				Phase: Rejected, Actions: []AgentAction{CheckJoinRequest, ReadMembership}, After: RetryPoll,
				Message: "The hub refuses the agent. The agent cannot create a JoinRequest for a local reason, and retries.",
			},
		},
		{
			name: "denied", reason: "a person may change their mind",
			o: see(asked, func(o *AgentObserved) { o.JoinRequest = JoinRequestDenied }),
			want: AgentStep{Phase: Rejected, Message: "The JoinRequest is denied: see its status on the hub.",
				Actions: []AgentAction{CheckJoinRequest}, After: BlockedPoll},
		},
		{
			name: "request gone", reason: "it is made again, in no hurry",
			o: see(asked, func(o *AgentObserved) { o.JoinRequest = JoinRequestNoRequest }),
			want: AgentStep{Phase: Registering, Message: "The agent is sending its JoinRequest to the hub.",
				Actions: []AgentAction{CheckJoinRequest},
				After:   joinRequestPoll},
		},
		{
			name: "issued", reason: "it is what was waited for",
			o:    see(asked, func(o *AgentObserved) { o.JoinRequest = JoinRequestIssued }),
			want: AgentStep{Phase: Registering, Message: "The hub has issued a credential.", Actions: []AgentAction{Register}},
		},
		{
			name: "dropped before it was in", reason: "there is nothing to clean, and nothing that a person decided against it",
			o: see(asked, func(o *AgentObserved) { o.JoinRequest = JoinRequestDeregistered }),
			want: AgentStep{Phase: Registering, Message: "The hub has dropped the JoinRequest. The agent creates another one.",
				Actions: []AgentAction{StartOver}},
		},
		{
			name: "deleted while it waited to come back", reason: "an administrator decided, and a new request would undo that",
			o:    see(Record{Claim: true, Kept: true}, func(o *AgentObserved) { o.JoinRequest = JoinRequestDeregistered }),
			want: AgentStep{Phase: Left, Message: "The hub has removed this member.", Actions: []AgentAction{RecordOut}},
		},
		{
			name: "joining", reason: "how to leave is known before the hub counts on the member",
			o: see(member, func(o *AgentObserved) {
				o.Hub, o.Membership, o.PolicySaved, o.Beating = HubSeen, MembershipSeen{State: v1alpha1.StateJoin}, false, false
			}),
			want: AgentStep{
				Phase: Joining, Message: "The agent is reporting to the hub that the member has joined.",
				Actions: []AgentAction{SavePolicy, StartBeat, ReportJoined}, After: RetryPoll,
			},
		},
		{
			name: "in the fleet", reason: "there is nothing to do but to beat",
			o:    seen(func(*AgentObserved) {}),
			want: AgentStep{Phase: Joined, Message: "The member has joined the hub.", After: BlockedPoll},
		},
		{
			name: "renewal to come", reason: "it looks again just then",
			o:    seen(func(o *AgentObserved) { o.RenewAt = epoch.Add(time.Hour) }),
			want: AgentStep{Phase: Joined, Message: "The member has joined the hub.", After: time.Hour},
		},
		{
			name: "renewal due", reason: "long before the credential ends",
			o: seen(func(o *AgentObserved) { o.RenewAt = epoch }),
			want: AgentStep{Phase: Joined, Message: "The member has joined the hub.",
				Actions: []AgentAction{RequestRenewal}, After: RetryPoll},
		},
		{
			name: "renewal refused", reason: "it stays in for as long as the credential lasts, and says so",
			o: seen(func(o *AgentObserved) { o.Renewal, o.RenewAt = RenewalRefused, epoch.Add(time.Hour) }),
			want: AgentStep{
				Phase: Joined, After: time.Hour,
				Message: "The member has joined the hub, but the hub refuses to renew the credential: see the Membership on the " +
					"hub.",
			},
		},
		{
			name: "hub away", reason: "what cannot be seen changes nothing",
			o: see(member, func(o *AgentObserved) { o.Hub, o.HubSince = HubUnreachable, epoch }),
			want: AgentStep{Phase: Joined, Message: "The hub cannot be reached. The agent retries.",
				Actions: []AgentAction{ReadMembership}, After: RetryPoll},
		},
		{
			name: "hub away for a while", reason: "all the agents that it has ask for it, so each does so ever less often",
			o: see(member, func(o *AgentObserved) { o.Hub, o.HubSince = HubUnreachable, epoch.Add(-20*time.Second) }),
			want: AgentStep{Phase: Joined, Message: "The hub cannot be reached. The agent retries.",
				Actions: []AgentAction{ReadMembership}, After: 5 * time.Second},
		},
		{
			name: "asked just now", reason: "a hub with nothing else to do answers at once",
			o: see(asked, func(o *AgentObserved) { o.JoinRequest = JoinRequestPending }),
			want: AgentStep{Phase: Registering, Message: "The hub is processing the JoinRequest.",
				Actions: []AgentAction{CheckJoinRequest},
				After:   joinRequestPoll},
		},
		{
			name: "asked a while ago", reason: "whatever keeps the hub busy, it is not to be the answering of such looks",
			o: see(asked, func(o *AgentObserved) {
				o.JoinRequest, o.JoinRequestSince = JoinRequestPending, epoch.Add(-8*time.Second)
			}),
			want: AgentStep{Phase: Registering, Message: "The hub is processing the JoinRequest.",
				Actions: []AgentAction{CheckJoinRequest},
				After:   2 * time.Second},
		},
		{
			name: "asked long ago", reason: "an administrator may decide at any time",
			o: see(asked, func(o *AgentObserved) {
				o.JoinRequest, o.JoinRequestSince = JoinRequestPending, epoch.Add(-time.Hour)
			}),
			want: AgentStep{Phase: Registering, Message: "The hub is processing the JoinRequest.",
				Actions: []AgentAction{CheckJoinRequest},
				After:   BlockedPoll},
		},
		{
			name: "refused, and asked a while ago", reason: "as for a JoinRequest",
			o: see(member, func(o *AgentObserved) {
				o.Hub, o.JoinRequest, o.JoinRequestSince, o.Beating = HubRefused, JoinRequestPending, epoch.Add(-8*time.Second),
					false
			}),
			want: AgentStep{
				Phase: Rejected, Message: "The hub refuses the agent's credential. The agent requests the reason with a " +
					"JoinRequest.",
				Actions: []AgentAction{CheckJoinRequest, ReadMembership}, After: 2 * time.Second,
			},
		},
		{
			name: "refused a moment ago", reason: "an API server that was just started refuses everybody, and a heartbeat " +
				"that is refused costs nothing",
			o: see(member, func(o *AgentObserved) { o.Hub, o.HubSince = HubRefused, epoch.Add(-ShutOutTimeout+1) }),
			want: AgentStep{
				Phase: Joined, Message: "The hub refuses the agent's credential. The agent retries.",
				Actions: []AgentAction{ReadMembership}, After: RetryPoll,
			},
		},
		{
			name: "Membership gone a moment ago", reason: "the hub makes one anew that was deleted by mistake",
			o: see(member, func(o *AgentObserved) { o.Hub, o.HubSince = HubGone, epoch }),
			want: AgentStep{
				Phase: Joined, Message: "The hub has no Membership for the agent. The agent retries.",
				Actions: []AgentAction{ReadMembership}, After: RetryPoll,
			},
		},
		{
			name: "refused right after it was let in", reason: "not all API servers of a hub know of it in the same moment, " +
				"and a join is not to wait for that",
			o: see(member, func(o *AgentObserved) { o.Hub, o.HubSince, o.Beating = HubRefused, epoch, false }),
			want: AgentStep{
				Phase: Joining, Message: "The hub refuses the agent's credential. The agent retries.",
				Actions: []AgentAction{ReadMembership}, After: joinRequestPoll,
			},
		},
		{
			name: "another member's Membership", reason: "there is nothing to wait for, and a heartbeat would keep that other " +
				"member alive",
			o: see(member, func(o *AgentObserved) { o.Hub, o.HubSince = HubOther, epoch }),
			want: AgentStep{
				Phase: Rejected, Message: "The hub's Membership belongs to another member. The agent requests the reason with a " +
					"JoinRequest.",
				Actions: []AgentAction{StopBeat, MakeRequest, CheckJoinRequest, ReadMembership},
			},
		},
		{
			name: "refused", reason: "that proves nothing, so it asks, and cleans nothing",
			o: see(member, func(o *AgentObserved) { o.Hub = HubRefused }),
			want: AgentStep{
				Phase: Rejected, Message: "The hub refuses the agent's credential. The agent requests the reason with a " +
					"JoinRequest.",
				Actions: []AgentAction{StopBeat, MakeRequest, CheckJoinRequest, ReadMembership},
			},
		},
		{
			name: "Membership gone", reason: "a user may have deleted it by mistake, so that proves no more",
			o: see(member, func(o *AgentObserved) { o.Hub, o.Beating = HubGone, false }),
			want: AgentStep{
				Phase: Rejected, Message: "The hub has no Membership for the agent. The agent requests the reason with a " +
					"JoinRequest.",
				Actions: []AgentAction{MakeRequest, CheckJoinRequest, ReadMembership},
			},
		},
		{
			name:   "Membership gone, and no way to ask for the reason",
			reason: "it waits for a person rather than clean what may be wanted",
			o:      see(member, func(o *AgentObserved) { o.Hub, o.JoinRequest, o.Beating = HubGone, JoinRequestRefused, false }),
			want: AgentStep{
				Phase: Rejected, Actions: []AgentAction{CheckJoinRequest, ReadMembership}, After: BlockedPoll,
				Message: "The hub refuses the agent and its bootstrap credential: provide the credential of a JoinToken that is " +
					"Ready, so that the agent can request the reason.",
			},
		},
		{
			name: "deregistered", reason: "that it was said is written down before anything is done about it",
			o: see(member, func(o *AgentObserved) {
				o.Hub, o.JoinRequest, o.Beating = HubRefused, JoinRequestDeregistered, false
			}),
			want: AgentStep{Phase: Leaving, Message: "The hub has deregistered this member.",
				Actions: []AgentAction{RecordDeregistered}},
		},
		{
			name: "asked to leave, gates closed", reason: "works are still being taken back, and the agent of works needs the " +
				"member as it is",
			o: toLeave(func(o *AgentObserved) { o.Membership.Clean = false }),
			want: AgentStep{Phase: Leaving, Message: "The member is leaving: waiting for the hub to withdraw its objects.",
				After: BlockedPoll},
		},
		{
			name: "asked to leave and to clean up", reason: "it beats meanwhile, so that a long clean-up does not look like a " +
				"death",
			o: toLeave(func(o *AgentObserved) { o.Beating = false }),
			want: AgentStep{Phase: Leaving, Message: "The member is leaving: the agent is cleaning up.",
				Actions: []AgentAction{StartBeat, CleanMember}},
		},
		{
			name: "not clean yet", reason: "cleaners are asked again and again",
			o: toLeave(func(o *AgentObserved) { o.Member, o.MemberAt = MemberDirty, epoch.Add(-GatePoll) }),
			want: AgentStep{Phase: Leaving, Message: "The member is leaving: the agent is cleaning up.",
				Actions: []AgentAction{CleanMember}},
		},
		{
			name: "woken while it is not clean yet", reason: "its own report is news as well, and must not bring about the next",
			o: toLeave(func(o *AgentObserved) { o.Member, o.MemberAt = MemberDirty, epoch.Add(-GatePoll/4) }),
			want: AgentStep{Phase: Leaving, Message: "The member is leaving: the agent is cleaning up.",
				After: GatePoll * 3 / 4},
		},
		{
			name: "deregistered and not clean yet", reason: "the cleaners are asked again, in their time",
			o: see(Record{Registered: true, Deregistered: true}, func(o *AgentObserved) {
				o.Beating, o.Member, o.MemberAt = false, MemberDirty, epoch.Add(time.Hour)
			}),
			want: AgentStep{Phase: Leaving, Message: "The hub has deregistered this member. The agent is cleaning up.",
				After: GatePoll},
		},
		{
			name: "clean", reason: "the hub waits for it",
			o: toLeave(func(o *AgentObserved) { o.Member = MemberClean }),
			want: AgentStep{Phase: Leaving, Message: "The member is leaving: the agent is reporting to the hub that the " +
				"member is clean.",
				Actions: []AgentAction{ReportClean}, After: RetryPoll},
		},
		{
			name: "left for good", reason: "a MemberCluster that is deleted is not to come back by itself",
			o: toLeave(func(o *AgentObserved) { o.Membership.Report, o.Membership.Rejoin = ReportedClean, false }),
			want: AgentStep{Phase: Left, Message: "The member is clean, and the hub has observed this.",
				Actions: []AgentAction{StopBeat, RecordOut}},
		},
		{
			name: "left for now", reason: "one that is kept may say Join again, so the agent waits for an answer, with a new " +
				"claim",
			o: toLeave(func(o *AgentObserved) { o.Membership.Report = ReportedClean }),
			want: AgentStep{Phase: Left, Message: "The member is clean, and the hub has observed this.",
				Actions: []AgentAction{StopBeat, StartOver}},
		},
		{
			name: "out", reason: "the record is what says to go on, so it goes last",
			o: see(Record{Registered: true, Out: true}, func(o *AgentObserved) { o.Beating = false }),
			want: AgentStep{
				Phase: Left, Done: true, Actions: []AgentAction{ForgetBootstrap, ForgetRecord},
				Message: "The member has left permanently. To join again, provide a new bootstrap credential and restart the " +
					"agent.",
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, NextAgent(test.o)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.reason, diff)
			}
		})
	}
}
