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
// mutant, it does not check the guarantee.
var mutants = []struct {
	name        string
	machine     machine
	hub         func(HubObserved) HubStep
	joinRequest func(JoinRequestObserved) JoinRequestStep
	agent       func(AgentObserved) AgentStep
}{
	{
		name: "the hub admits all clusters", machine: machine{adminSteps: 1},
		hub: func(o HubObserved) HubStep { o.Spec.Accepted = new(true); return NextHub(o) },
	},
	{
		name: "the hub keeps access when acceptance is withdrawn", machine: machine{adminSteps: 1},
		hub: func(o HubObserved) HubStep {
			step := NextHub(o)
			if step.Phase == v1alpha1.PhaseDenied || step.Phase == v1alpha1.PhasePending {
				step.Actions = without(step.Actions, RevokeAccess)
			}
			return step
		},
	},
	{
		name: "the hub keeps access until the leave is recorded", machine: machine{adminSteps: 2},
		hub: func(o HubObserved) HubStep {
			step := NextHub(o)
			if step.Phase == v1alpha1.PhaseLeaving && o.Leave == nil {
				step.Actions = nil
			}
			return step
		},
	},
	{
		name: "the hub grants access before the Membership exists", machine: machine{adminSteps: 1},
		hub: func(o HubObserved) HubStep {
			step := NextHub(o)
			slices.Reverse(step.Actions)
			return step
		},
	},
	{
		name: "the hub does not wait for the agent", machine: machine{adminSteps: 1},
		hub: func(o HubObserved) HubStep {
			if o.Membership != nil && o.Membership.Clean {
				seen := *o.Membership
				seen.Report, o.Membership = ReportedClean, &seen
			}
			return NextHub(o)
		},
	},
	{
		name: "the hub forces a leave before it records the force", machine: machine{adminSteps: 1},
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
		name: "the hub never forces a leave", machine: machine{adminSteps: 1},
		hub: func(o HubObserved) HubStep { o.Now = epoch; return NextHub(o) },
	},
	{
		name: "the hub deletes the namespace before it forces the gates", machine: machine{adminSteps: 1},
		hub: func(o HubObserved) HubStep {
			step := NextHub(o)
			if slices.Contains(step.Actions, DeleteNamespace) && slices.Contains(step.Actions, ForceGates) {
				step.Actions = append(without(step.Actions, ForceGates), ForceGates)
			}
			return step
		},
	},
	{
		name: "the hub gives gates no time if it forces them long after the deadline", machine: machine{adminSteps: 1},
		hub: func(o HubObserved) HubStep {
			if o.Leave != nil {
				o.Leave = o.Leave.DeepCopy()
				o.Leave.ForcedAt = nil
			}
			return NextHub(o)
		},
	},
	{
		name:    "the hub restarts NamespaceTimeout each time it forces the gates",
		machine: machine{adminSteps: 1, namespaceStuck: true},
		hub: func(o HubObserved) HubStep {
			if o.Leave != nil && o.Leave.Forced {
				o.Leave = o.Leave.DeepCopy()
				o.Leave.ForcedAt = new(metav1.NewTime(o.Now))
			}
			return NextHub(o)
		},
	},
	{
		name: "the hub waits for a namespace forever", machine: machine{adminSteps: 1, namespaceStuck: true},
		hub: func(o HubObserved) HubStep {
			if o.Namespace == Terminating && o.Now.After(epoch.Add(deadline)) {
				o.Now = epoch.Add(deadline)
			}
			return NextHub(o)
		},
	},
	{
		name: "the hub removes the finalizer before the namespace is removed", machine: machine{adminSteps: 1},
		hub: func(o HubObserved) HubStep {
			if o.Namespace == Terminating {
				o.Namespace, o.Access = Absent, false
			}
			return NextHub(o)
		},
	},
	{
		name: "the hub keeps the claim of a member that left", machine: machine{adminSteps: 1},
		hub: func(o HubObserved) HubStep {
			step := NextHub(o)
			step.Actions = without(step.Actions, ReleaseClaim)
			return step
		},
	},
	{
		name:    "the hub records the end of a leave before it releases the claim",
		machine: machine{adminSteps: 2, failures: 0, statusFirst: true},
		hub: func(o HubObserved) HubStep {
			step := NextHub(o)
			if step.Phase == v1alpha1.PhaseLeft && step.Leave != nil {
				step.Leave.Ended = true
			}
			return step
		},
	},
	{
		name: "the hub cancels a leave after the agent was requested to clean up", machine: machine{adminSteps: 2},
		hub: func(o HubObserved) HubStep {
			if !o.Deletion.Requested && o.Spec.Desired == v1alpha1.StateJoin && o.Finalizer {
				return nextJoin(o)
			}
			return NextHub(o)
		},
	},
	{
		name:    "the hub treats the removal of the definition as a request",
		machine: machine{failures: 1, disasters: disasters{definitions: true}},
		hub: func(o HubObserved) HubStep {
			o.Deletion.WithDefinition = false
			return NextHub(o)
		},
	},
	{
		name: "the hub applies the record of the former leave", machine: machine{adminSteps: 2},
		hub: func(o HubObserved) HubStep {
			if o.Leave != nil && o.Leave.Ended && leaves(o) {
				return left(o)
			}
			return NextHub(o)
		},
	},
	{
		name: "the hub makes final steps with outdated caches", machine: machine{adminSteps: 1, failures: 1, lags: true},
		hub: func(o HubObserved) HubStep { step := NextHub(o); step.Final = false; return step },
	},
	{
		name:    "the hub does not wait for an agent whose report is missing in its caches",
		machine: machine{adminSteps: 1, failures: 1, lags: true},
		hub: func(o HubObserved) HubStep {
			step := NextHub(o)
			step.Final = step.Final && !slices.Contains(step.Actions, DeleteNamespace)
			return step
		},
	},
	{
		name:    "the hub repeats a leave while its caches show a deleted namespace",
		machine: machine{adminSteps: 1, failures: 1, lags: true},
		hub: func(o HubObserved) HubStep {
			step := NextHub(o)
			step.Final = step.Final && (!ended(o) || step.Phase == v1alpha1.PhaseLeft)
			return step
		},
	},
	{
		name: "the hub never becomes idle", machine: machine{adminSteps: 1},
		hub: func(o HubObserved) HubStep {
			step := NextHub(o)
			if step.Phase == v1alpha1.PhaseJoined {
				step.After = GatePoll
			}
			return step
		},
	},
	{
		name: "JoinRequest: credentials are issued to all clusters", machine: machine{adminSteps: 1},
		joinRequest: func(o JoinRequestObserved) JoinRequestStep {
			if o.Members.ByID != nil {
				o.Members.ByID.Accepted = new(true)
			}
			return NextJoinRequest(o)
		},
	},
	{
		name: "JoinRequest: the member of a request is not recorded", machine: machine{adminSteps: 1},
		joinRequest: func(o JoinRequestObserved) JoinRequestStep {
			o.Status.Bound, o.Status.Reason = "", ""
			return NextJoinRequest(o)
		},
	},
	{
		name: "JoinRequest: the reason of a blocked request is not recorded", machine: machine{adminSteps: 2},
		joinRequest: func(o JoinRequestObserved) JoinRequestStep { o.Status.Reason = ""; return NextJoinRequest(o) },
	},
	{
		name: "JoinRequest: a deregistered agent is denied", machine: machine{adminSteps: 1},
		joinRequest: func(o JoinRequestObserved) JoinRequestStep {
			step := NextJoinRequest(o)
			if step.Answer == v1alpha1.AnswerDeregistered {
				return JoinRequestStep{Answer: v1alpha1.AnswerDenied}
			}
			return step
		},
	},
	{
		name: "JoinRequest: no credential is issued to a leaving member", machine: machine{adminSteps: 1, failures: 1},
		joinRequest: func(o JoinRequestObserved) JoinRequestStep {
			if o.Members.ByID != nil && o.Members.ByID.leaving() {
				o.Members.ByID.Prepared = false
			}
			return NextJoinRequest(o)
		},
	},
	{
		name: "JoinRequest: the last agent gets the claim", machine: machine{pair: true},
		joinRequest: func(o JoinRequestObserved) JoinRequestStep {
			if o.Members.ByID != nil && o.Members.ByID.Claim != o.Agent.Claim {
				o.Members.ByID.Claim = ""
			}
			return NextJoinRequest(o)
		},
	},
	{
		name: "JoinRequest: the recorded type of the former agent is kept", machine: machine{adminSteps: 1, pair: true,
			twoTypes: true},
		joinRequest: func(o JoinRequestObserved) JoinRequestStep {
			if o.Members.ByID != nil {
				o.Members.ByID.Credential = o.Type
			}
			return NextJoinRequest(o)
		},
	},
	{
		name: "JoinRequest: the second agent is deregistered", machine: machine{adminSteps: 1,
			pair: true},
		joinRequest: func(o JoinRequestObserved) JoinRequestStep {
			if o.Members.ByID != nil && o.Agent.MemberUID != "" && o.Members.ByID.Claim != o.Agent.Claim {
				return deregistered(o.Members.ByID)
			}
			return NextJoinRequest(o)
		},
	},
	{
		name:        "JoinRequest: unknown members are deregistered: restore",
		machine:     machine{adminSteps: 0, failures: 2, disasters: disasters{restores: true}},
		joinRequest: withoutTombstones,
	},
	{
		name:        "JoinRequest: unknown members are deregistered: created again",
		machine:     machine{failures: 1, disasters: disasters{reapplied: true}},
		joinRequest: withoutTombstones,
	},
	{
		name:    "JoinRequest: unknown members are deregistered: lost tombstone",
		machine: machine{adminSteps: 1, failures: 1, disasters: disasters{reapplied: true}},
		joinRequest: func(o JoinRequestObserved) JoinRequestStep {
			if o.Agent.MemberUID != "" && o.Members.ByID == nil {
				return deregistered(nil)
			}
			return NextJoinRequest(o)
		},
	},
	{
		name: "JoinRequest: the hub ID is ignored", machine: machine{adminSteps: 1, failures: 1,
			disasters: disasters{otherHub: true}},
		joinRequest: func(o JoinRequestObserved) JoinRequestStep { o.Agent.HubID = ""; return NextJoinRequest(o) },
	},
	{
		name:        "JoinRequest: the Acceptor accepts members that may have been removed",
		machine:     machine{adminSteps: 1, failures: 1, disasters: disasters{expiry: true}, admission: membership.Accept},
		joinRequest: func(o JoinRequestObserved) JoinRequestStep { o.Token.Readopt = true; return NextJoinRequest(o) },
	},
	{
		name: "JoinRequest: the claim does not identify a member", machine: machine{failures: 1,
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
		name: "the hub writes no tombstone", machine: machine{adminSteps: 1},
		hub: func(o HubObserved) HubStep {
			step := NextHub(o)
			step.Actions = without(step.Actions, WriteTombstone)
			return step
		},
	},
	{
		name: "the hub writes the tombstone last", machine: machine{adminSteps: 1, failures: 1},
		hub: func(o HubObserved) HubStep {
			step := NextHub(o)
			if slices.Contains(step.Actions, WriteTombstone) {
				step.Actions = append(without(step.Actions, WriteTombstone), WriteTombstone)
			}
			return step
		},
	},
	{
		name:    "the hub writes the tombstone of a leave that can be canceled",
		machine: machine{adminSteps: 2, failures: 1, disasters: disasters{leaders: true}},
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
		name:    "the hub does not release a namespace that a user deleted",
		machine: machine{adminSteps: 1, failures: 1, userDeletions: true},
		hub: func(o HubObserved) HubStep {
			step := NextHub(o)
			step.Actions = without(step.Actions, ReleaseNamespace)
			return step
		},
	},
	{
		name:    "the hub deletes without preconditions",
		machine: machine{adminSteps: 2, failures: 1, disasters: disasters{leaders: true}, noPreconditions: true},
	},
	{
		name:    "the agent cleans up when the Membership belongs to another member",
		machine: machine{failures: 1, disasters: disasters{reapplied: true}},
		agent: func(o AgentObserved) AgentStep {
			if o.Hub == HubReplaced || o.Hub == HubOther {
				return AgentStep{Phase: Leaving, Actions: []AgentAction{RecordDeregistered}}
			}
			return NextAgent(o)
		},
	},
	{
		name:    "the agent treats the answer of another hub as a deregistration",
		machine: machine{adminSteps: 1, failures: 1, disasters: disasters{otherHub: true}},
		agent: func(o AgentObserved) AgentStep {
			if o.JoinRequest == JoinRequestDifferentHub {
				o.JoinRequest = JoinRequestDeregistered
			}
			return NextAgent(o)
		},
	},
	{
		name: "the agent treats a refusal as a deregistration", machine: machine{adminSteps: 1},
		agent: func(o AgentObserved) AgentStep {
			if o.Record.Registered && o.Hub == HubRefused && !o.Record.Deregistered {
				return AgentStep{Phase: Leaving, Actions: []AgentAction{RecordDeregistered}}
			}
			return NextAgent(o)
		},
	},
	{
		name:    "the agent treats a missing Membership as a deregistration",
		machine: machine{adminSteps: 1, failures: 1, userDeletions: true},
		agent: func(o AgentObserved) AgentStep {
			if o.Record.Registered && o.Hub == HubGone && !o.Record.Deregistered {
				return AgentStep{Phase: Leaving, Actions: []AgentAction{RecordDeregistered}}
			}
			return NextAgent(o)
		},
	},
	{
		name: "the agent does not wait for ShutOutTimeout", machine: machine{adminSteps: 1},
		agent: func(o AgentObserved) AgentStep { o.HubSince = time.Time{}; return NextAgent(o) },
	},
	{
		name: "the agent treats a refusal as temporary forever", machine: machine{adminSteps: 1},
		agent: func(o AgentObserved) AgentStep { o.HubSince = o.Now; return NextAgent(o) },
	},
	{
		name: "the agent cleans up before the gates of the hub are open", machine: machine{adminSteps: 1},
		agent: func(o AgentObserved) AgentStep { o.Membership.Clean = true; return NextAgent(o) },
	},
	{
		name: "the agent reports an unclean member as clean", machine: machine{adminSteps: 1},
		agent: func(o AgentObserved) AgentStep { o.Member = MemberClean; return NextAgent(o) },
	},
	{
		name: "the agent keeps its bootstrap credential", machine: machine{adminSteps: 1},
		agent: func(o AgentObserved) AgentStep {
			step := NextAgent(o)
			step.Actions = slices.DeleteFunc(
				slices.Clone(step.Actions), func(a AgentAction) bool { return a == ForgetBootstrap })
			return step
		},
	},
	{
		name: "the agent does not record that its MemberCluster was kept", machine: machine{adminSteps: 2},
		agent: func(o AgentObserved) AgentStep {
			o.Record.Kept = o.Record.Kept && o.Record.Deregistered
			return NextAgent(o)
		},
	},
	{
		name: "the agent retries a refused credential without a pause", machine: machine{adminSteps: 1, failures: 1},
		agent: func(o AgentObserved) AgentStep {
			step := NextAgent(o)
			if step.Phase == Rejected {
				step.After = 0
			}
			return step
		},
	},
	{
		name: "the agent ignores the request to leave", machine: machine{adminSteps: 1},
		agent: func(o AgentObserved) AgentStep { o.Membership.State = v1alpha1.StateJoin; return NextAgent(o) },
	},
}

// withoutTombstones is NextJoinRequest of the version before tombstones.
func withoutTombstones(o JoinRequestObserved) JoinRequestStep {
	if o.memberUID() != "" && (sameUID(o.Members.ByID, o.memberUID()) == nil || o.Members.ByID.Claim == "") {
		return deregistered(sameUID(o.Members.ByID, o.memberUID()))
	}
	return NextJoinRequest(o)
}

func without(actions []HubAction, gone HubAction) []HubAction {
	return slices.DeleteFunc(slices.Clone(actions), func(a HubAction) bool { return a == gone })
}

func TestModelDetectsMutants(t *testing.T) {
	notUnderRace(t)
	for _, mutant := range mutants {
		t.Run(mutant.name, func(t *testing.T) {
			t.Parallel()
			m := mutant.machine
			m.hub, m.joinRequest, m.agent, m.stopAtFirst = NextHub, NextJoinRequest, NextAgent, true
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
			detected := ""
			if m.pair {
				_, detected = m.verifyPair()
			} else {
				_, broken := m.verify(nil)
				for wrong, trace := range broken {
					detected = fmt.Sprintf("%s:\n%s", wrong, trace)
				}
			}
			if detected == "" {
				t.Error("the model does not detect the mutant")
			}
			t.Log(detected)
		})
	}
}
