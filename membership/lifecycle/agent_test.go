package lifecycle

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

func TestNextAgent(t *testing.T) {
	var (
		fresh     = Record{}
		requested = Record{Claim: true}
		member    = Record{Registered: true}
	)
	observed := func(r Record, change func(*AgentObserved)) AgentObserved {
		o := AgentObserved{Now: epoch, JoinRequestSince: epoch, Record: r, PolicySaved: true, Beating: true}
		change(&o)
		return o
	}
	atHub := func(change func(*AgentObserved)) AgentObserved {
		return observed(member, func(o *AgentObserved) {
			o.Hub, o.Membership = HubSeen, *joinedMembership
			change(o)
		})
	}
	leaving := func(change func(*AgentObserved)) AgentObserved {
		return atHub(func(o *AgentObserved) {
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
			name:   "a new agent creates a JoinRequest",
			reason: "the agent records the request before it sends it, so that a restart finds it",
			o:      observed(fresh, func(*AgentObserved) {}),
			want: AgentStep{Phase: Unregistered, Message: "The agent is creating a JoinRequest.",
				Actions: []AgentAction{MakeRequest}},
		},
		{
			name:   "the agent has no bootstrap credential",
			reason: "an administrator must provide the credential, as the message states",
			o:      observed(requested, func(o *AgentObserved) { o.JoinRequest = JoinRequestNoCredential }),
			want: AgentStep{
				Phase: Rejected, Actions: []AgentAction{CheckJoinRequest}, After: BlockedPoll,
				Message: "The agent has no bootstrap credential: provide the credential of a JoinToken that is Ready.",
			},
		},
		{
			name:   "the request cannot be created for a local reason",
			reason: "the failure is not the hub's and may be temporary",
			o:      observed(requested, func(o *AgentObserved) { o.JoinRequest = JoinRequestNotAskable }),
			want: AgentStep{
				Phase: Registering, Actions: []AgentAction{CheckJoinRequest}, After: RetryPoll,
				Message: "The agent cannot create a JoinRequest for a local reason, and retries.",
			},
		},
		{
			name: "the hub's limit of JoinRequests is reached", reason: "the request itself is valid",
			o: observed(requested, func(o *AgentObserved) { o.JoinRequest = JoinRequestFull }),
			want: AgentStep{
				Phase: Registering, Actions: []AgentAction{CheckJoinRequest}, After: BlockedPoll,
				Message: "The hub's limit of JoinRequests is reached. The agent retries.",
			},
		},
		{
			name: "the server cannot accept JoinRequests", reason: "another credential for the same server would not help",
			o: observed(requested, func(o *AgentObserved) { o.JoinRequest = JoinRequestUnfit }),
			want: AgentStep{
				Phase: Rejected, Actions: []AgentAction{CheckJoinRequest}, After: BlockedPoll,
				Message: "The hub cannot accept the request: check that it is the right hub, and what the agent requests.",
			},
		},
		{
			name:   "the hub refuses the agent and a local error prevents a JoinRequest",
			reason: "the agent still reads its Membership, which shows when the hub admits it again",
			o: observed(member, func(o *AgentObserved) {
				o.Hub, o.JoinRequest, o.Beating = HubRefused, JoinRequestNotAskable, false
			}),
			want: AgentStep{
				Phase: Rejected, Actions: []AgentAction{CheckJoinRequest, ReadMembership}, After: RetryPoll,
				Message: "The hub refuses the agent. The agent cannot create a JoinRequest for a local reason, and retries.",
			},
		},
		{
			name: "the JoinRequest is denied", reason: "an administrator may change the decision",
			o: observed(requested, func(o *AgentObserved) { o.JoinRequest = JoinRequestDenied }),
			want: AgentStep{Phase: Rejected, Message: "The JoinRequest is denied: see its status on the hub.",
				Actions: []AgentAction{CheckJoinRequest}, After: BlockedPoll},
		},
		{
			name: "the JoinRequest was deleted", reason: "the agent creates it again, after a pause",
			o: observed(requested, func(o *AgentObserved) { o.JoinRequest = JoinRequestNoRequest }),
			want: AgentStep{Phase: Registering, Message: "The agent is sending its JoinRequest to the hub.",
				Actions: []AgentAction{CheckJoinRequest},
				After:   joinRequestPoll},
		},
		{
			name: "the hub has issued a credential", reason: "the agent registers with the credential",
			o:    observed(requested, func(o *AgentObserved) { o.JoinRequest = JoinRequestIssued }),
			want: AgentStep{Phase: Registering, Message: "The hub has issued a credential.", Actions: []AgentAction{Register}},
		},
		{
			name:   "deregistered before the agent is registered",
			reason: "nothing must be cleaned up, and no user has removed the member",
			o:      observed(requested, func(o *AgentObserved) { o.JoinRequest = JoinRequestDeregistered }),
			want: AgentStep{Phase: Registering, Message: "The hub has dropped the JoinRequest. The agent creates another one.",
				Actions: []AgentAction{StartOver}},
		},
		{
			name:   "the MemberCluster is deleted after a leave that kept it",
			reason: "a new request would undo the decision of the administrator",
			o: observed(Record{Claim: true, Kept: true},
				func(o *AgentObserved) { o.JoinRequest = JoinRequestDeregistered }),
			want: AgentStep{Phase: Left, Message: "The hub has removed this member.", Actions: []AgentAction{RecordOut}},
		},
		{
			name: "the agent joins", reason: "the agent saves the leave policy before it reports that it has joined",
			o: observed(member, func(o *AgentObserved) {
				o.Hub, o.Membership, o.PolicySaved, o.Beating = HubSeen, MembershipSeen{State: v1alpha1.StateJoin}, false, false
			}),
			want: AgentStep{
				Phase: Joining, Message: "The agent is reporting to the hub that the member has joined.",
				Actions: []AgentAction{SavePolicy, StartBeat, ReportJoined}, After: RetryPoll,
			},
		},
		{
			name: "the member has joined", reason: "only the heartbeat continues",
			o:    atHub(func(*AgentObserved) {}),
			want: AgentStep{Phase: Joined, Message: "The member has joined the hub.", After: BlockedPoll},
		},
		{
			name: "the credential is renewed later", reason: "the next step is at the time of the renewal",
			o:    atHub(func(o *AgentObserved) { o.RenewAt = epoch.Add(time.Hour) }),
			want: AgentStep{Phase: Joined, Message: "The member has joined the hub.", After: time.Hour},
		},
		{
			name: "the credential must be renewed now", reason: "the renewal is long before the credential expires",
			o: atHub(func(o *AgentObserved) { o.RenewAt = epoch }),
			want: AgentStep{Phase: Joined, Message: "The member has joined the hub.",
				Actions: []AgentAction{RequestRenewal}, After: RetryPoll},
		},
		{
			name:   "the hub refuses to renew the credential",
			reason: "the member stays joined until the credential expires, and the message reports the refusal",
			o:      atHub(func(o *AgentObserved) { o.Renewal, o.RenewAt = RenewalRefused, epoch.Add(time.Hour) }),
			want: AgentStep{
				Phase: Joined, After: time.Hour,
				Message: "The member has joined the hub, but the hub refuses to renew the credential: see the Membership on the " +
					"hub.",
			},
		},
		{
			name: "the hub has just become unreachable", reason: "an unreachable hub does not change the state of the member",
			o: observed(member, func(o *AgentObserved) { o.Hub, o.HubSince = HubUnreachable, epoch }),
			want: AgentStep{Phase: Joined, Message: "The hub cannot be reached. The agent retries.",
				Actions: []AgentAction{ReadMembership}, After: RetryPoll},
		},
		{
			name:   "the hub has been unreachable for 20 seconds",
			reason: "all agents of the hub retry, so the interval increases",
			o:      observed(member, func(o *AgentObserved) { o.Hub, o.HubSince = HubUnreachable, epoch.Add(-20*time.Second) }),
			want: AgentStep{Phase: Joined, Message: "The hub cannot be reached. The agent retries.",
				Actions: []AgentAction{ReadMembership}, After: 5 * time.Second},
		},
		{
			name: "the JoinRequest has just been sent", reason: "an idle hub answers immediately",
			o: observed(requested, func(o *AgentObserved) { o.JoinRequest = JoinRequestPending }),
			want: AgentStep{Phase: Registering, Message: "The hub is processing the JoinRequest.",
				Actions: []AgentAction{CheckJoinRequest},
				After:   joinRequestPoll},
		},
		{
			name:   "the JoinRequest has been pending for 8 seconds",
			reason: "polling must not keep the hub busy, so the interval increases",
			o: observed(requested, func(o *AgentObserved) {
				o.JoinRequest, o.JoinRequestSince = JoinRequestPending, epoch.Add(-8*time.Second)
			}),
			want: AgentStep{Phase: Registering, Message: "The hub is processing the JoinRequest.",
				Actions: []AgentAction{CheckJoinRequest},
				After:   2 * time.Second},
		},
		{
			name:   "the JoinRequest has been pending for an hour",
			reason: "an administrator may decide at any time, so the interval is limited",
			o: observed(requested, func(o *AgentObserved) {
				o.JoinRequest, o.JoinRequestSince = JoinRequestPending, epoch.Add(-time.Hour)
			}),
			want: AgentStep{Phase: Registering, Message: "The hub is processing the JoinRequest.",
				Actions: []AgentAction{CheckJoinRequest},
				After:   BlockedPoll},
		},
		{
			name:   "the hub refuses the agent, and its JoinRequest is pending",
			reason: "the interval is that of a first JoinRequest",
			o: observed(member, func(o *AgentObserved) {
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
			name:   "the hub has refused the credential for less than ShutOutTimeout",
			reason: "a starting API server refuses all credentials, and a refused heartbeat is harmless",
			o:      observed(member, func(o *AgentObserved) { o.Hub, o.HubSince = HubRefused, epoch.Add(-ShutOutTimeout+1) }),
			want: AgentStep{
				Phase: Joined, Message: "The hub refuses the agent's credential. The agent retries.",
				Actions: []AgentAction{ReadMembership}, After: RetryPoll,
			},
		},
		{
			name:   "the Membership has just been deleted",
			reason: "the hub creates a Membership again that was deleted by mistake",
			o:      observed(member, func(o *AgentObserved) { o.Hub, o.HubSince = HubGone, epoch }),
			want: AgentStep{
				Phase: Joined, Message: "The hub has no Membership for the agent. The agent retries.",
				Actions: []AgentAction{ReadMembership}, After: RetryPoll,
			},
		},
		{
			name:   "the credential is refused right after the registration",
			reason: "the API servers of a hub accept a new credential one after the other",
			o:      observed(member, func(o *AgentObserved) { o.Hub, o.HubSince, o.Beating = HubRefused, epoch, false }),
			want: AgentStep{
				Phase: Joining, Message: "The hub refuses the agent's credential. The agent retries.",
				Actions: []AgentAction{ReadMembership}, After: joinRequestPoll,
			},
		},
		{
			name:   "the Membership belongs to another member",
			reason: "waiting does not help, and a heartbeat would keep the other member alive",
			o:      observed(member, func(o *AgentObserved) { o.Hub, o.HubSince = HubOther, epoch }),
			want: AgentStep{
				Phase: Rejected, Message: "The hub's Membership belongs to another member. The agent requests the reason with a " +
					"JoinRequest.",
				Actions: []AgentAction{StopBeat, MakeRequest, CheckJoinRequest, ReadMembership},
			},
		},
		{
			name:   "the hub has refused the credential for ShutOutTimeout",
			reason: "a refusal is no proof of a removal: the agent requests the reason and does not clean up",
			o:      observed(member, func(o *AgentObserved) { o.Hub = HubRefused }),
			want: AgentStep{
				Phase: Rejected, Message: "The hub refuses the agent's credential. The agent requests the reason with a " +
					"JoinRequest.",
				Actions: []AgentAction{StopBeat, MakeRequest, CheckJoinRequest, ReadMembership},
			},
		},
		{
			name:   "the Membership has been missing for ShutOutTimeout",
			reason: "a user may have deleted it by mistake, so this is no proof either",
			o:      observed(member, func(o *AgentObserved) { o.Hub, o.Beating = HubGone, false }),
			want: AgentStep{
				Phase: Rejected, Message: "The hub has no Membership for the agent. The agent requests the reason with a " +
					"JoinRequest.",
				Actions: []AgentAction{MakeRequest, CheckJoinRequest, ReadMembership},
			},
		},
		{
			name:   "no Membership, and the hub refuses the bootstrap credential",
			reason: "the agent waits for an administrator and does not clean up",
			o: observed(member, func(o *AgentObserved) {
				o.Hub, o.JoinRequest, o.Beating = HubGone, JoinRequestRefused, false
			}),
			want: AgentStep{
				Phase: Rejected, Actions: []AgentAction{CheckJoinRequest, ReadMembership}, After: BlockedPoll,
				Message: "The hub refuses the agent and its bootstrap credential: provide the credential of a JoinToken that is " +
					"Ready, so that the agent can request the reason.",
			},
		},
		{
			name: "the hub has deregistered the member", reason: "the agent records the answer before it acts",
			o: observed(member, func(o *AgentObserved) {
				o.Hub, o.JoinRequest, o.Beating = HubRefused, JoinRequestDeregistered, false
			}),
			want: AgentStep{Phase: Leaving, Message: "The hub has deregistered this member.",
				Actions: []AgentAction{RecordDeregistered}},
		},
		{
			name:   "the member must leave and the hub's gates are closed",
			reason: "Works are being withdrawn, and their agent needs the member unchanged",
			o:      leaving(func(o *AgentObserved) { o.Membership.Clean = false }),
			want: AgentStep{Phase: Leaving, Message: "The member is leaving: waiting for the hub to withdraw its objects.",
				After: BlockedPoll},
		},
		{
			name:   "the member must leave and the hub's gates are open",
			reason: "heartbeats continue, so that a long clean-up does not look like a failure",
			o:      leaving(func(o *AgentObserved) { o.Beating = false }),
			want: AgentStep{Phase: Leaving, Message: "The member is leaving: the agent is cleaning up.",
				Actions: []AgentAction{StartBeat, CleanMember}},
		},
		{
			name: "the clean-up is incomplete and GatePoll has passed", reason: "the cleaners are called again",
			o: leaving(func(o *AgentObserved) { o.Member, o.MemberAt = MemberDirty, epoch.Add(-GatePoll) }),
			want: AgentStep{Phase: Leaving, Message: "The member is leaving: the agent is cleaning up.",
				Actions: []AgentAction{CleanMember}},
		},
		{
			name:   "the clean-up is incomplete and GatePoll has not passed",
			reason: "the agent's own report wakes it up, and must not cause the next call",
			o:      leaving(func(o *AgentObserved) { o.Member, o.MemberAt = MemberDirty, epoch.Add(-GatePoll/4) }),
			want: AgentStep{Phase: Leaving, Message: "The member is leaving: the agent is cleaning up.",
				After: GatePoll * 3 / 4},
		},
		{
			name:   "the member is deregistered and the clean-up is incomplete",
			reason: "the cleaners are called again after GatePoll",
			o: observed(Record{Registered: true, Deregistered: true}, func(o *AgentObserved) {
				o.Beating, o.Member, o.MemberAt = false, MemberDirty, epoch.Add(time.Hour)
			}),
			want: AgentStep{Phase: Leaving, Message: "The hub has deregistered this member. The agent is cleaning up.",
				After: GatePoll},
		},
		{
			name: "the member is clean", reason: "the hub waits for this report",
			o: leaving(func(o *AgentObserved) { o.Member = MemberClean }),
			want: AgentStep{Phase: Leaving, Message: "The member is leaving: the agent is reporting to the hub that the " +
				"member is clean.",
				Actions: []AgentAction{ReportClean}, After: RetryPoll},
		},
		{
			name:   "the member is clean and must not rejoin",
			reason: "the member of a deleted MemberCluster must not join again by itself",
			o:      leaving(func(o *AgentObserved) { o.Membership.Report, o.Membership.Rejoin = ReportedClean, false }),
			want: AgentStep{Phase: Left, Message: "The member is clean, and the hub has observed this.",
				Actions: []AgentAction{StopBeat, RecordOut}},
		},
		{
			name:   "the member is clean and may rejoin",
			reason: "spec.state may become Join again, so the agent sends a request with a new claim",
			o:      leaving(func(o *AgentObserved) { o.Membership.Report = ReportedClean }),
			want: AgentStep{Phase: Left, Message: "The member is clean, and the hub has observed this.",
				Actions: []AgentAction{StopBeat, StartOver}},
		},
		{
			name:   "the member has left permanently",
			reason: "the record makes a restarted agent continue, so it is removed last",
			o:      observed(Record{Registered: true, Out: true}, func(o *AgentObserved) { o.Beating = false }),
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
