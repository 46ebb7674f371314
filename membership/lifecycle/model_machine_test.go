package lifecycle

import (
	"fmt"
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

	admission   membership.Decision
	statusFirst bool // the hub writes its status before it acts, rather than afterwards
	stuck       bool // the namespace never goes
	unforceable bool // the gates cannot be forced
	lags        bool // the one mishap is that caches stand still
	vandals     bool // a user deletes objects that the hub has created
	pair        bool // the older claim is that of another agent
	apart       bool // and asks for a credential of another type
	hasty       bool // one broken promise is enough
	moves       uint8
	disasters   disasters
	careless    bool // the hub deletes without preconditions
	backups     backups
	mishaps     uint8

	hubs         memo[hubKey, hubPlan]
	joinRequests memo[joinRequestKey, joinRequestPlan]
	agents       memo[agentKey, AgentStep]
}

// memo caches the results of a pure function, and assigns equal numbers to equal results.
type memo[K comparable, V any] struct {
	of      map[K]uint16
	numbers map[string]uint16
	values  []V
}

func (m *memo[K, V]) get(key K, compute func() V) (uint16, V) {
	if n, ok := m.of[key]; ok {
		return n, m.values[n]
	}
	if m.of == nil {
		m.of, m.numbers = map[K]uint16{}, map[string]uint16{}
		var none V
		m.values = []V{none} // 0 is no step
	}
	v := compute()
	text := fmt.Sprintf("%+v", v)
	n, ok := m.numbers[text]
	if !ok {
		n = uint16(len(m.values))
		m.numbers[text], m.values = n, append(m.values, v)
	}
	m.of[key] = n
	return n, v
}

type hubKey struct {
	member, deleting, unserved, wantLeave, finalizer, gatesShut, statusFirst bool
	accepted, claim, subject, clock, namespace, access                       uint8
	leave                                                                    leaveWorld
	membership                                                               membershipWorld
	joined                                                                   bool
}

// hubPlan is a HubStep in the encoding of the model.
type hubPlan struct {
	actions    []HubAction
	phase      v1alpha1.Phase
	leave      leaveWorld
	joined     bool
	accepted   uint8 // when it was decided
	notified   membershipWorld
	after      time.Duration
	leaving    bool
	writesBack bool // the status would change
	final      bool
}

// report is the action that writes the status.
const report HubAction = "ReportStatus"

func (m *machine) hubStep(w *world) (uint16, hubPlan) {
	key := hubKey{
		w.member,
		w.deleting,
		w.unserved,
		w.wantLeave,
		w.finalizer,
		w.gatesShut,
		m.statusFirst,
		w.accepted,
		w.claim,
		w.subject(),
		w.clock,
		w.namespace,
		w.access,
		w.leave,
		w.membership,
		w.joined,
	}
	return m.hubs.get(key, func() hubPlan {
		o := w.hubSees()
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
			p.leave = leaveWorld{
				there:       true,
				awaitsAgent: l.Waiting == waitingForAgent && !l.Forced,
				awaitsNamespace: l.Waiting == waitingForNamespace && !l.Forced &&
					!l.Ended,
				forced: l.Forced,
				ended:  l.Ended,
				late:   late,
			}
		}
		p.notified = membershipWorld{
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
			if action != ReleaseNamespace || w.gatesShut { // or there is nothing to release
				p.actions = append(p.actions, action)
			}
		}
		if !m.statusFirst && p.writesBack {
			p.actions = append(p.actions, report)
		}
		return p
	})
}

// hubLooks returns the step of the hub, decided on its caches, or on the current state if the step is final or would
// create a Membership that already exists.
func (m *machine) hubLooks(w *world) (planWorld, hubPlan) {
	shown, blind := w.cached()
	n, plan := m.hubStep(&shown)
	unseen := slices.Contains(plan.actions, WriteMembership) && !shown.membership.there && w.membership.there
	if blind != 0 && (plan.final || unseen) {
		blind = 0
		n, plan = m.hubStep(w)
	}
	return planWorld{step: n, blind: blind}, plan
}

type joinRequestKey struct {
	request                               requestWorld
	i                                     int
	member, deleting, wantLeave, prepared bool
	accepted, claim, credential           uint8
	leaving, reported                     bool
	tombs                                 tombWorld
}

// joinRequestPlan is a JoinRequestStep and its name.
type joinRequestPlan struct {
	JoinRequestStep
	name string
}

func (m *machine) joinRequestStep(w *world, i int) joinRequestPlan {
	r := w.requests[i]
	r.fresh = false
	key := joinRequestKey{request: r, i: i, member: w.member, tombs: w.tombs}
	if w.member {
		key.deleting, key.wantLeave, key.prepared, key.leaving = w.deleting, w.wantLeave, w.prepared(), w.leave.there &&
			!w.leave.ended
		key.accepted, key.claim, key.credential, key.reported = w.accepted, w.claim, w.credential, w.reported() != ""
	}
	_, plan := m.joinRequests.get(key, func() joinRequestPlan {
		step := m.joinRequest(w.joinRequestSees(i, m.admission))
		p := joinRequestPlan{step, string(step.Answer)}
		for _, action := range step.Actions {
			p.name += " " + string(action)
		}
		return p
	})
	return plan
}

type agentKey struct {
	request, registered, deregistered, kept, out, policy, beating, outwaited bool
	joinRequest, hub, said                                                   uint8
	seen                                                                     membershipWorld
}

func (m *machine) agentStep(a *agentWorld) (uint16, AgentStep) {
	key := agentKey{
		a.request,
		a.registered,
		a.deregistered,
		a.kept,
		a.out,
		a.policy,
		a.beating,
		a.outwaited,
		a.joinRequest,
		a.hub,
		a.said,
		a.seen,
	}
	return m.agents.get(key, func() AgentStep { return m.agent(a.sees()) })
}
