package lifecycle

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// machine is the system under test: the three functions, or mutants of them, and the limits of the walk.
type machine struct {
	hub         func(HubObserved) HubStep
	joinRequest func(JoinRequestObserved) JoinRequestStep
	agent       func(AgentObserved) AgentStep

	admission       membership.Decision
	statusFirst     bool  // the hub writes its status before it acts, rather than afterwards
	namespaceStuck  bool  // the namespace is never removed
	gatesStuck      bool  // the gates stay closed when they are forced
	lags            bool  // the only failure is that caches are paused
	userDeletions   bool  // a user deletes objects that the hub has created
	pair            bool  // the older claim is that of another agent
	twoTypes        bool  // the other agent requests a credential of another type
	stopAtFirst     bool  // the walk stops at the first fault
	mostStates      int32 // 0: all
	adminSteps      uint8
	disasters       disasters
	noPreconditions bool // the hub deletes without preconditions
	backups         backups
	failures        uint8

	hubs         memo[hubPlan]
	joinRequests memo[joinRequestPlan]
	agents       memo[AgentStep]
	others       memo[JoinRequestState] // the answers of another hub
}

// hubPlan is a HubStep in the encoding of the model.
type hubPlan struct {
	actions    []HubAction
	phase      v1alpha1.Phase
	leave      leavePart
	joined     bool
	accepted   uint8 // at the time of the decision
	notified   membershipPart
	after      time.Duration
	leaving    bool
	writesBack bool // the status would change
	final      bool
	// The actions contain RevokeAccess and WriteMembership.
	revokesAccess, writesMembership bool
}

// report is the action that writes the status.
const report HubAction = "ReportStatus"

// hubKey contains everything of a state that planHub uses.
func (w *modelState) hubKey() uint64 {
	return bit(w.member) | bit(w.deleting)<<1 | bit(w.withDefinition)<<2 | bit(w.wantLeave)<<3 | bit(w.finalizer)<<4 |
		bit(w.gatesClosed)<<5 | bit(w.joined)<<6 | uint64(w.accepted)<<7 | uint64(w.claim)<<11 | uint64(w.subject())<<15 |
		uint64(w.clock)<<19 | uint64(w.namespace)<<23 | uint64(w.access)<<27 | w.leave.bits()<<31 |
		w.membership.bits()<<(31+leaveBits)
}

func (m *machine) hubStep(w *modelState) (uint16, *hubPlan) {
	key := w.hubKey()
	if n, plan := m.hubs.get(key); plan != nil {
		return n, plan
	}
	return m.hubs.put(key, m.planHub(w))
}

func (m *machine) planHub(w *modelState) hubPlan {
	o := w.hubObserved()
	gates := o.Gates
	o.Gates = nil
	step := m.hub(o)
	if slices.Contains(step.Actions, AskGates) {
		o.Gates = gates
		step = m.hub(o)
	}
	p := hubPlan{phase: step.Phase, after: step.After, accepted: w.accepted, final: step.Final}
	if step.Leave != nil {
		l := step.Leave
		late := l.ForcedAt != nil && !l.ForcedAt.Before(new(metav1.NewTime(epoch.Add(deadline+NamespaceTimeout))))
		p.leave = leavePart{
			there:       true,
			awaitsAgent: l.Waiting == waitingForAgent && !l.Forced,
			awaitsNamespace: l.Waiting == waitingForNamespace && !l.Forced &&
				!l.Ended,
			forced: l.Forced,
			ended:  l.Ended,
			late:   late,
		}
	}
	p.notified = membershipPart{
		leave:  step.Membership.State == v1alpha1.StateLeave,
		rejoin: step.Membership.Rejoin,
		clean:  step.Membership.Clean,
	}
	for _, c := range step.Conditions {
		p.joined = p.joined || c.Type == v1alpha1.ConditionJoined && c.Status == "True"
	}
	p.leaving = step.Phase == v1alpha1.PhaseLeaving || step.Phase == v1alpha1.PhaseLeft
	p.writesBack = p.leave != w.leave || p.joined != w.joined
	if m.statusFirst && p.writesBack {
		p.actions = append(p.actions, report)
	}
	for _, action := range step.Actions {
		if action != ReleaseNamespace || w.gatesClosed { // otherwise the action has no effect
			p.actions = append(p.actions, action)
		}
	}
	if !m.statusFirst && p.writesBack {
		p.actions = append(p.actions, report)
	}
	p.revokesAccess = slices.Contains(p.actions, RevokeAccess)
	p.writesMembership = slices.Contains(p.actions, WriteMembership)
	return p
}

// hubReconcile returns the step of the hub, decided on its caches, or on the current state if the step is final or
// would create a Membership that already exists.
func (m *machine) hubReconcile(w *modelState) (planPart, *hubPlan) {
	if w.lag.kinds == 0 {
		n, plan := m.hubStep(w)
		return planPart{step: n}, plan
	}
	shown, blind := w.cached()
	n, plan := m.hubStep(&shown)
	unseen := plan.writesMembership && !shown.membership.there && w.membership.there
	if blind != 0 && (plan.final || unseen) {
		blind = 0
		n, plan = m.hubStep(w)
	}
	return planPart{step: n, blind: blind}, plan
}

// joinRequestPlan is a JoinRequestStep in the encoding of the model, and its name.
type joinRequestPlan struct {
	name        string
	actions     []JoinRequestAction
	answer      int // less than 0: unknown to the model
	reason      uint8
	accepts     bool
	deregisters bool // a member whose MemberCluster exists
}

// joinRequestKey contains everything of a state that NextJoinRequest uses for a request.
func (w *modelState) joinRequestKey(i int) uint64 {
	r := w.requests[i]
	r.fresh = false
	key := r.bits() | uint64(i)<<requestBits | uint64(w.tombstones)<<(requestBits+1)
	if !w.member {
		return key
	}
	more := uint64(1) | bit(w.deleting)<<1 | bit(w.wantLeave)<<2 | bit(w.prepared())<<3 |
		bit(w.leave.there && !w.leave.ended)<<4 | bit(w.reported() != "")<<5 | uint64(w.accepted)<<6 |
		uint64(w.claim)<<10 | uint64(w.credential)<<14
	return key | more<<(requestBits+1+tombstoneBits)
}

func (m *machine) joinRequestStep(w *modelState, i int) *joinRequestPlan {
	key := w.joinRequestKey(i)
	if _, plan := m.joinRequests.get(key); plan != nil {
		return plan
	}
	step := m.joinRequest(w.joinRequestObserved(i, m.admission))
	p := joinRequestPlan{
		name:        string(step.Answer),
		actions:     step.Actions,
		answer:      slices.Index(answers, step.Answer),
		reason:      uint8(max(slices.Index(reasons, step.Reason), 0)),
		accepts:     slices.Contains(step.Actions, AcceptMember),
		deregisters: step.Answer == v1alpha1.AnswerDeregistered && step.Member != nil,
	}
	for _, action := range step.Actions {
		p.name += " " + string(action)
	}
	_, plan := m.joinRequests.put(key, p)
	return plan
}

// key contains everything of an agent that NextAgent uses.
func (a *agentPart) key() uint64 {
	return bit(a.request) | bit(a.registered)<<1 | bit(a.deregistered)<<2 | bit(a.kept)<<3 | bit(a.out)<<4 |
		bit(a.policy)<<5 | bit(a.beating)<<6 | bit(a.refusedTooLong)<<7 | uint64(a.joinRequest)<<8 | uint64(a.hub)<<12 |
		uint64(a.memberState)<<16 | a.seen.bits()<<20
}

func (m *machine) agentStep(a *agentPart) (uint16, *AgentStep) {
	key := a.key()
	if n, step := m.agents.get(key); step != nil {
		return n, step
	}
	return m.agents.put(key, m.agent(a.observed()))
}
