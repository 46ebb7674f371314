package lifecycle

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// mutants are machines with one incorrect decision, some of them from earlier versions. If the model does not detect a
// mutant, it does not prove the guarantee.
var mutants = []struct {
	name        string
	machine     machine
	hub         func(HubObserved) HubStep
	joinRequest func(JoinRequestObserved) JoinRequestStep
	agent       func(AgentObserved) AgentStep
}{
	{
		name: "hub lets everybody in", machine: machine{moves: 1},
		hub: func(o HubObserved) HubStep { o.Spec.Accepted = new(true); return NextHub(o) },
	},
	{
		name: "hub leaves access when acceptance is withdrawn", machine: machine{moves: 1},
		hub: func(o HubObserved) HubStep {
			step := NextHub(o)
			if step.Phase == v1alpha1.PhaseDenied || step.Phase == v1alpha1.PhasePending {
				step.Actions = without(step.Actions, RevokeAccess)
			}
			return step
		},
	},
	{
		name: "hub leaves access until the leave is on record", machine: machine{moves: 2},
		hub: func(o HubObserved) HubStep {
			step := NextHub(o)
			if step.Phase == v1alpha1.PhaseLeaving && o.Leave == nil {
				step.Actions = nil
			}
			return step
		},
	},
	{
		name: "hub grants access before there is a Membership", machine: machine{moves: 1},
		hub: func(o HubObserved) HubStep {
			step := NextHub(o)
			slices.Reverse(step.Actions)
			return step
		},
	},
	{
		name: "hub does not wait for the agent", machine: machine{moves: 1},
		hub: func(o HubObserved) HubStep {
			if o.Membership != nil && o.Membership.Clean {
				seen := *o.Membership
				seen.Report, o.Membership = ReportedClean, &seen
			}
			return NextHub(o)
		},
	},
	{
		name: "hub forces before it records that", machine: machine{moves: 1},
		hub: func(o HubObserved) HubStep {
			step := NextHub(o)
			if step.Leave != nil && step.Leave.Forced && (o.Leave == nil || !o.Leave.Forced) {
				o.Leave = step.Leave
				step.Actions = NextHub(o).Actions
			}
			return step
		},
	},
	{
		name: "hub never forces", machine: machine{moves: 1},
		hub: func(o HubObserved) HubStep { o.Now = epoch; return NextHub(o) },
	},
	{
		name: "hub deletes the namespace before it forces the gates", machine: machine{moves: 1},
		hub: func(o HubObserved) HubStep {
			step := NextHub(o)
			if slices.Contains(step.Actions, DeleteNamespace) && slices.Contains(step.Actions, ForceGates) {
				step.Actions = append(without(step.Actions, ForceGates), ForceGates)
			}
			return step
		},
	},
	{
		name: "hub gives gates no time that it forces long past the deadline", machine: machine{moves: 1},
		hub: func(o HubObserved) HubStep {
			if o.Leave != nil {
				o.Leave = o.Leave.DeepCopy()
				o.Leave.ForcedAt = nil
			}
			return NextHub(o)
		},
	},
	{
		name: "hub gives gates their time anew each time that it forces them", machine: machine{moves: 1, stuck: true},
		hub: func(o HubObserved) HubStep {
			if o.Leave != nil && o.Leave.Forced {
				o.Leave = o.Leave.DeepCopy()
				o.Leave.ForcedAt = new(metav1.NewTime(o.Now))
			}
			return NextHub(o)
		},
	},
	{
		name: "hub waits for a namespace for ever", machine: machine{moves: 1, stuck: true},
		hub: func(o HubObserved) HubStep {
			if o.Namespace == Terminating && o.Now.After(epoch.Add(deadline)) {
				o.Now = epoch.Add(deadline)
			}
			return NextHub(o)
		},
	},
	{
		name: "hub lets go before the namespace is gone", machine: machine{moves: 1},
		hub: func(o HubObserved) HubStep {
			if o.Namespace == Terminating {
				o.Namespace, o.Access = Absent, false
			}
			return NextHub(o)
		},
	},
	{
		name: "hub keeps the claim of a member that left", machine: machine{moves: 1},
		hub: func(o HubObserved) HubStep {
			step := NextHub(o)
			step.Actions = without(step.Actions, ReleaseClaim)
			return step
		},
	},
	{
		name: "hub records the end before it releases the claim", machine: machine{moves: 2, mishaps: 0, statusFirst: true},
		hub: func(o HubObserved) HubStep {
			step := NextHub(o)
			if step.Phase == v1alpha1.PhaseLeft && step.Leave != nil {
				step.Leave.Ended = true
			}
			return step
		},
	},
	{
		name: "hub calls a leave off although the agent was told to clean up", machine: machine{moves: 2},
		hub: func(o HubObserved) HubStep {
			if !o.Deletion.Requested && o.Spec.Desired == v1alpha1.StateJoin && o.Finalizer {
				return nextJoin(o)
			}
			return NextHub(o)
		},
	},
	{
		name:    "hub takes the removal of the definition for a request",
		machine: machine{mishaps: 1, disasters: disasters{definitions: true}},
		hub: func(o HubObserved) HubStep {
			o.Deletion.WithDefinition = false
			return NextHub(o)
		},
	},
	{
		name: "hub takes the record of the leave before for this one", machine: machine{moves: 2},
		hub: func(o HubObserved) HubStep {
			if o.Leave != nil && o.Leave.Ended && leaves(o) {
				return left(o)
			}
			return NextHub(o)
		},
	},
	{
		name: "hub lets go of what its caches do not show", machine: machine{moves: 1, mishaps: 1, lags: true},
		hub: func(o HubObserved) HubStep { step := NextHub(o); step.Final = false; return step },
	},
	{
		name:    "hub does not wait for an agent of which its caches do not show that it has joined",
		machine: machine{moves: 1, mishaps: 1, lags: true},
		hub: func(o HubObserved) HubStep {
			step := NextHub(o)
			step.Final = step.Final && !slices.Contains(step.Actions, DeleteNamespace)
			return step
		},
	},
	{
		name:    "hub ends and begins a leave for as long as its caches show what is gone",
		machine: machine{moves: 1, mishaps: 1, lags: true},
		hub: func(o HubObserved) HubStep {
			step := NextHub(o)
			step.Final = step.Final && (!ended(o) || step.Phase == v1alpha1.PhaseLeft)
			return step
		},
	},
	{
		name: "hub never comes to rest", machine: machine{moves: 1},
		hub: func(o HubObserved) HubStep {
			step := NextHub(o)
			if step.Phase == v1alpha1.PhaseJoined {
				step.After = GatePoll
			}
			return step
		},
	},
	{
		name: "JoinRequest: the hub issues to everybody", machine: machine{moves: 1},
		joinRequest: func(o JoinRequestObserved) JoinRequestStep {
			if o.Members.ByID != nil {
				o.Members.ByID.Accepted = new(true)
			}
			return NextJoinRequest(o)
		},
	},
	{
		name: "JoinRequest: the hub does not remember the member of a request", machine: machine{moves: 1},
		joinRequest: func(o JoinRequestObserved) JoinRequestStep {
			o.Status.Bound, o.Status.Reason = "", ""
			return NextJoinRequest(o)
		},
	},
	{
		name: "JoinRequest: the hub does not remember what a request waited for", machine: machine{moves: 2},
		joinRequest: func(o JoinRequestObserved) JoinRequestStep { o.Status.Reason = ""; return NextJoinRequest(o) },
	},
	{
		name: "JoinRequest: the hub does not tell an agent that it is deregistered", machine: machine{moves: 1},
		joinRequest: func(o JoinRequestObserved) JoinRequestStep {
			step := NextJoinRequest(o)
			if step.Answer == v1alpha1.AnswerDeregistered {
				return JoinRequestStep{Answer: v1alpha1.AnswerDenied}
			}
			return step
		},
	},
	{
		name: "JoinRequest: the hub gives no credential to a member that leaves", machine: machine{moves: 1, mishaps: 1},
		joinRequest: func(o JoinRequestObserved) JoinRequestStep {
			if o.Members.ByID != nil && o.Members.ByID.leaving() {
				o.Members.ByID.Prepared = false
			}
			return NextJoinRequest(o)
		},
	},
	{
		name: "JoinRequest: the hub gives the claim to the last agent", machine: machine{pair: true},
		joinRequest: func(o JoinRequestObserved) JoinRequestStep {
			if o.Members.ByID != nil && o.Members.ByID.Claim != o.Agent.Claim {
				o.Members.ByID.Claim = ""
			}
			return NextJoinRequest(o)
		},
	},
	{
		name: "JoinRequest: the hub leaves the type of the agent before on record", machine: machine{moves: 1, pair: true,
			apart: true},
		joinRequest: func(o JoinRequestObserved) JoinRequestStep {
			if o.Members.ByID != nil {
				o.Members.ByID.Credential = o.Type
			}
			return NextJoinRequest(o)
		},
	},
	{
		name: "JoinRequest: the hub tells the agent that comes second that it is deregistered", machine: machine{moves: 1,
			pair: true},
		joinRequest: func(o JoinRequestObserved) JoinRequestStep {
			if o.Members.ByID != nil && o.Agent.MemberUID != "" && o.Members.ByID.Claim != o.Agent.Claim {
				return deregistered(o.Members.ByID)
			}
			return NextJoinRequest(o)
		},
	},
	{
		name:        "JoinRequest: the hub deregisters whatever it does not know, as it once did: restored",
		machine:     machine{moves: 0, mishaps: 2, disasters: disasters{restores: true}},
		joinRequest: forgetful,
	},
	{
		name:        "JoinRequest: the hub deregisters whatever it does not know, as it once did: created again",
		machine:     machine{mishaps: 1, disasters: disasters{reapplied: true}},
		joinRequest: forgetful,
	},
	{
		name:    "JoinRequest: the hub deregisters whatever it does not know, as it once did: record lost",
		machine: machine{moves: 1, mishaps: 1, disasters: disasters{reapplied: true}},
		joinRequest: func(o JoinRequestObserved) JoinRequestStep {
			if o.Agent.MemberUID != "" && o.Members.ByID == nil {
				return deregistered(nil)
			}
			return NextJoinRequest(o)
		},
	},
	{
		name: "JoinRequest: the hub ignores the hub's identity", machine: machine{moves: 1, mishaps: 1,
			disasters: disasters{otherHub: true}},
		joinRequest: func(o JoinRequestObserved) JoinRequestStep { o.Agent.HubID = ""; return NextJoinRequest(o) },
	},
	{
		name:        "JoinRequest: the hub lets a policy accept what may have been removed",
		machine:     machine{moves: 1, mishaps: 1, disasters: disasters{expiry: true}, admission: membership.Accept},
		joinRequest: func(o JoinRequestObserved) JoinRequestStep { o.Token.Readopt = true; return NextJoinRequest(o) },
	},
	{
		name: "JoinRequest: the hub takes the claim for nothing", machine: machine{mishaps: 1,
			disasters: disasters{reapplied: true}},
		joinRequest: func(o JoinRequestObserved) JoinRequestStep {
			if o.Members.ByID != nil && o.Agent.MemberUID != "" && o.Members.ByID.UID != o.Agent.MemberUID {
				return blocked(nil, v1alpha1.ReasonClusterIDTaken, "Taken.")
			}
			return NextJoinRequest(o)
		},
		agent: func(o AgentObserved) AgentStep {
			if o.Hub == HubReplaced {
				o.Hub = HubOther
			}
			return NextAgent(o)
		},
	},
	{
		name: "hub writes no record of a leave", machine: machine{moves: 1},
		hub: func(o HubObserved) HubStep {
			step := NextHub(o)
			step.Actions = without(step.Actions, WriteTombstone)
			return step
		},
	},
	{
		name: "hub writes the record too late", machine: machine{moves: 1, mishaps: 1},
		hub: func(o HubObserved) HubStep {
			step := NextHub(o)
			if slices.Contains(step.Actions, WriteTombstone) {
				step.Actions = append(without(step.Actions, WriteTombstone), WriteTombstone)
			}
			return step
		},
	},
	{
		name:    "hub records a leave that can be called off",
		machine: machine{moves: 2, mishaps: 1, disasters: disasters{leaders: true}},
		hub: func(o HubObserved) HubStep {
			if o.Spec.Claimed && o.Spec.Desired == v1alpha1.StateLeave && o.Namespace == Absent &&
				(o.Leave == nil || !o.Leave.Ended) {
				before := o.Leave
				o.Leave = &v1alpha1.LeaveStatus{Waiting: waitingForNamespace}
				step := NextHub(o)
				step.Leave = before
				return step
			}
			return NextHub(o)
		},
	},
	{
		name:    "hub does not release a namespace that was deleted by hand",
		machine: machine{moves: 1, mishaps: 1, vandals: true},
		hub: func(o HubObserved) HubStep {
			step := NextHub(o)
			step.Actions = without(step.Actions, ReleaseNamespace)
			return step
		},
	},
	{
		name:    "hub deletes without preconditions",
		machine: machine{moves: 2, mishaps: 1, disasters: disasters{leaders: true}, careless: true},
	},
	{
		name:    "agent cleans up when its Membership is another's",
		machine: machine{mishaps: 1, disasters: disasters{reapplied: true}},
		agent: func(o AgentObserved) AgentStep {
			if o.Hub == HubReplaced || o.Hub == HubOther {
				return AgentStep{Phase: Leaving, Actions: []AgentAction{RecordDeregistered}}
			}
			return NextAgent(o)
		},
	},
	{
		name:    "agent takes another hub's answer for its own",
		machine: machine{moves: 1, mishaps: 1, disasters: disasters{otherHub: true}},
		agent: func(o AgentObserved) AgentStep {
			if o.JoinRequest == JoinRequestDifferentHub {
				o.JoinRequest = JoinRequestDeregistered
			}
			return NextAgent(o)
		},
	},
	{
		name: "agent takes a refusal for proof", machine: machine{moves: 1},
		agent: func(o AgentObserved) AgentStep {
			if o.Record.Registered && o.Hub == HubRefused && !o.Record.Deregistered {
				return AgentStep{Phase: Leaving, Actions: []AgentAction{RecordDeregistered}}
			}
			return NextAgent(o)
		},
	},
	{
		name: "agent takes a missing Membership for proof", machine: machine{moves: 1, mishaps: 1, vandals: true},
		agent: func(o AgentObserved) AgentStep {
			if o.Record.Registered && o.Hub == HubGone && !o.Record.Deregistered {
				return AgentStep{Phase: Leaving, Actions: []AgentAction{RecordDeregistered}}
			}
			return NextAgent(o)
		},
	},
	{
		name: "agent takes a refusal for final at once", machine: machine{moves: 1},
		agent: func(o AgentObserved) AgentStep { o.HubSince = time.Time{}; return NextAgent(o) },
	},
	{
		name: "agent takes a refusal for passing for ever", machine: machine{moves: 1},
		agent: func(o AgentObserved) AgentStep { o.HubSince = o.Now; return NextAgent(o) },
	},
	{
		name: "agent cleans up before the hub's gates are open", machine: machine{moves: 1},
		agent: func(o AgentObserved) AgentStep { o.Membership.Clean = true; return NextAgent(o) },
	},
	{
		name: "agent says that it is clean and is not", machine: machine{moves: 1},
		agent: func(o AgentObserved) AgentStep { o.Member = MemberClean; return NextAgent(o) },
	},
	{
		name: "agent keeps its bootstrap credential", machine: machine{moves: 1},
		agent: func(o AgentObserved) AgentStep {
			step := NextAgent(o)
			step.Actions = slices.DeleteFunc(
				slices.Clone(step.Actions), func(a AgentAction) bool { return a == ForgetBootstrap })
			return step
		},
	},
	{
		name: "agent does not remember that it waits to come back", machine: machine{moves: 2},
		agent: func(o AgentObserved) AgentStep {
			o.Record.Kept = o.Record.Kept && o.Record.Deregistered
			return NextAgent(o)
		},
	},
	{
		name: "agent asks with the credential that was refused, without a pause", machine: machine{moves: 1, mishaps: 1},
		agent: func(o AgentObserved) AgentStep {
			step := NextAgent(o)
			if step.Phase == Rejected {
				step.After = 0
			}
			return step
		},
	},
	{
		name: "agent stays when it is asked to leave", machine: machine{moves: 1},
		agent: func(o AgentObserved) AgentStep { o.Membership.State = v1alpha1.StateJoin; return NextAgent(o) },
	},
}

// forgetful is NextJoinRequest of the version before tombstones.
func forgetful(o JoinRequestObserved) JoinRequestStep {
	if o.memberUID() != "" && (sameUID(o.Members.ByID, o.memberUID()) == nil || o.Members.ByID.Claim == "") {
		return deregistered(sameUID(o.Members.ByID, o.memberUID()))
	}
	return NextJoinRequest(o)
}

func without(actions []HubAction, gone HubAction) []HubAction {
	return slices.DeleteFunc(slices.Clone(actions), func(a HubAction) bool { return a == gone })
}

func TestModelNoticesMutants(t *testing.T) {
	notUnderRace(t)
	for _, mutant := range mutants {
		t.Run(mutant.name, func(t *testing.T) {
			t.Parallel()
			m := mutant.machine
			m.hub, m.joinRequest, m.agent, m.hasty = NextHub, NextJoinRequest, NextAgent, true
			if m.admission == "" {
				m.admission = membership.Hold
			}
			if mutant.hub != nil {
				m.hub = mutant.hub
			}
			if mutant.joinRequest != nil {
				m.joinRequest = mutant.joinRequest
			}
			if mutant.agent != nil {
				m.agent = mutant.agent
			}
			noticed := ""
			if m.pair {
				_, noticed = m.provePair()
			} else {
				_, broken := m.prove(nil)
				for wrong, trace := range broken {
					noticed = fmt.Sprintf("%s:\n%s", wrong, trace)
				}
			}
			if noticed == "" {
				t.Error("the model does not notice")
			}
			t.Log(noticed)
		})
	}
}
