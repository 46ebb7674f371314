package lifecycle

import (
	"fmt"
	"slices"
	"strings"
)

// edge is a transition out of a state.
type edge struct {
	step
	to    modelState
	wrong fault
}

// edges calls visit with every transition out of w.
func (m *machine) edges(w modelState, emit func(edge)) {
	before := w
	visit := func(e edge) {
		e.to.recordForPaused(&before)
		emit(e)
	}
	if w.paused.step != 0 {
		to := w
		action, wrong := m.resumePaused(&to)
		emit(edge{step{"paused leader", string(action)}, to, wrong})
	}
	m.hubEdges(w, visit)
	m.joinRequestEdges(w, visit)
	m.agentEdges(w, visit)
	m.modelEdges(w, visit)
	if w.adminSteps < m.adminSteps {
		m.administratorEdges(w, visit)
	}
	if w.failures < m.failures {
		m.failureEdges(w, visit)
	}
}

func (m *machine) hubEdges(w modelState, visit func(edge)) {
	if w.hub.step == 0 {
		if !w.member {
			return
		}
		looked, plan := m.hubReconcile(&w)
		if len(plan.actions) > 0 {
			w.hub, w.stale = looked, false
			visit(edge{step{"hub", "reconciles"}, w, ""})
		}
		return
	}
	action, wrong := m.hubContinue(&w)
	visit(edge{step{"hub", string(action)}, w, wrong})
}

func (m *machine) hubContinue(w *modelState) (HubAction, fault) {
	plan := &m.hubs.values[w.hub.step]
	action := plan.actions[w.hub.next]
	w.hub.next++
	last := int(w.hub.next) == len(plan.actions)
	wrong := m.hubAct(w, plan, action)
	if last {
		w.hub, w.stale = planPart{}, false
	}
	return action, wrong
}

func (m *machine) joinRequestEdges(w modelState, visit func(edge)) {
	for i := range w.requests {
		if !w.requests[i].there {
			continue
		}
		plan := m.joinRequestStep(&w, i)
		to := w
		wrong := m.joinRequestAct(&to, i, plan, true)
		visit(edge{step{joinRequestNames[i], plan.name}, to, wrong})
		if len(plan.actions) > 0 {
			to := w
			wrong := m.joinRequestAct(&to, i, plan, false)
			visit(edge{step{joinRequestCrashes[i], plan.name}, to, wrong})
		}
	}
}

var joinRequestNames = [...]string{"JoinRequest", "JoinRequest (older)"}

const crash = " (crashes before it reports)"

var joinRequestCrashes = [...]string{joinRequestNames[0] + crash, joinRequestNames[1] + crash}

func (m *machine) agentEdges(w modelState, visit func(edge)) {
	a := &w.agent
	if a.dead || a.done {
		return
	}
	if a.plan.step == 0 {
		if to := w; to.agent.registered && to.agent.hub != uint8(HubNotAsked) {
			to.updateObservation()
			visit(edge{step{"agent", "receives a watch event"}, to, ""})
		}
		if !m.agentDecide(&w) {
			return
		}
	}
	to := w
	action, wrong := m.agentContinue(&to, false)
	visit(edge{step{"agent", string(action)}, to, wrong})
	if w.failures < m.failures && (action == CheckJoinRequest || action == ReportJoined || action == ReportClean) {
		to := w
		to.failures++
		_, wrong := m.agentContinue(&to, true)
		to.agent.plan = planPart{}
		visit(edge{step{"agent (response lost)", string(action)}, to, wrong})
	}
}

// agentDecide makes the agent decide, and reports whether it must act.
func (m *machine) agentDecide(w *modelState) bool {
	n, plan := m.agentStep(&w.agent)
	w.agent.memberState = uint8(MemberNotAsked)
	if len(plan.Actions) == 0 {
		return false
	}
	w.agent.plan = planPart{step: n}
	return true
}

func (m *machine) agentContinue(w *modelState, lost bool) (AgentAction, fault) {
	plan := &m.agents.values[w.agent.plan.step]
	action := plan.Actions[w.agent.plan.next]
	w.agent.plan.next++
	wrong := m.agentAct(w, action, lost)
	if int(w.agent.plan.next) >= len(plan.Actions) {
		w.agent.plan = planPart{}
		w.agent.done = plan.Done
	}
	return action, wrong
}

// modelEdges visits the transitions that no component causes.
func (m *machine) modelEdges(w modelState, visit func(edge)) {
	do := func(what string, change func(*modelState)) {
		to := w
		change(&to)
		if to != w {
			visit(edge{step{"state", what}, to, ""})
		}
	}
	if w.leave.there && !w.leave.ended && w.clock < timedOut {
		do("time passes", func(w *modelState) { w.clock++ })
	}
	do("the agent is refused for ShutOutTimeout", func(w *modelState) { w.agent.timesOut() })
	if w.leave.there {
		do("the gates open", func(w *modelState) { w.gatesClosed = false })
	}
	if w.namespace == uint8(Terminating) {
		do("the Membership is deleted", func(w *modelState) { w.membership = membershipPart{} })
		do("the RoleBinding is deleted", func(w *modelState) { w.access = noAgent })
		if !m.namespaceStuck && !w.blocked() {
			do("the namespace is removed", func(w *modelState) { w.namespaceGone() })
		}
	}
	if w.joined && w.objects != dirty && !w.agent.dead && w.agent.registered && w.agent.hub == uint8(HubSeen) &&
		!w.agent.seen.leave &&
		w.agent.seen.report == uint8(ReportedJoined) &&
		w.access == mine {
		do("works arrive on the member", func(w *modelState) { w.objects, w.gatesClosed = dirty, true })
	}
	if w.lag.kinds != 0 {
		do("the hub's caches catch up", func(w *modelState) { w.lag = lagPart{} })
	}
	for i := range w.requests {
		if w.requests[i].there {
			do([...]string{"the old request is removed", "the old request with the older claim is removed"}[i],
				func(w *modelState) { w.requests[i] = requestPart{} })
		}
	}
}

// blocked reports whether finalizers block the removal of a namespace that a user deleted. During a leave the gates
// are forced.
func (w *modelState) blocked() bool { return w.gatesClosed && !w.leave.there }

func (w *modelState) namespaceGone() {
	w.namespace, w.membership, w.access, w.gatesClosed, w.abandoned = uint8(Absent), membershipPart{}, noAgent, false,
		false
}

const (
	agentRestarts = "the agent restarts"
	agentRestored = "provides a new bootstrap credential and restarts the agent"
)

func (m *machine) administratorEdges(w modelState, visit func(edge)) {
	w.adminSteps++
	do := func(what string, change func(*modelState)) {
		to := w
		change(&to)
		to.changed()
		visit(edge{step{"administrator", what}, to, ""})
	}
	if w.agent.bootstrap != bootstrapWorks {
		do(agentRestored, func(w *modelState) {
			w.restartAgent()
			w.agent.bootstrap, w.agent.returns = bootstrapWorks, false
		})
	}
	if !w.member {
		do("creates a MemberCluster with the cluster ID", func(w *modelState) { w.member = true })
		return
	}
	for n, what := range []string{"unsets spec.accepted", "accepts", "denies"} {
		if w.accepted != uint8(n) {
			do(what, func(w *modelState) { w.accepted = uint8(n) })
		}
	}
	if w.wantLeave {
		do("sets spec.state to Join", func(w *modelState) { w.wantLeave = false })
	} else {
		do("sets spec.state to Leave", func(w *modelState) { w.wantLeave, w.removalRequested = true, w.requestsRemoval() })
	}
	if !w.deleting {
		to := w
		to.deleting, to.removalRequested = true, w.requestsRemoval()
		to.changed()
		var wrong fault
		if !w.finalizer {
			wrong = m.memberGone(&to)
		}
		visit(edge{step{"administrator", "deletes the MemberCluster"}, to, wrong})
	}
}

func (m *machine) failureEdges(w modelState, visit func(edge)) {
	w.failures++
	do := func(what string, change func(*modelState)) {
		to := w
		change(&to)
		visit(edge{step{"failure", what}, to, ""})
	}
	if m.disasters.any() {
		m.disasterEdges(w, visit)
		return
	}
	if m.lags {
		for _, lag := range lags {
			do(lag.what, func(w *modelState) { w.pauseCaches(lag.kinds) })
		}
		return
	}
	if w.hub.step != 0 {
		do("the hub restarts", func(w *modelState) { w.hub, w.stale = planPart{}, false })
	}
	if !w.agent.dead {
		do(agentRestarts, func(w *modelState) { w.restartAgent() })
		do("the agent stops permanently", func(w *modelState) { w.restartAgent(); w.agent.dead = true })
	}
	if w.agent.credential {
		do("the agent's credential expires", func(w *modelState) { w.agent.credential = false })
	}
	if m.userDeletions && w.namespace == uint8(Present) {
		do("a user deletes the namespace", func(w *modelState) { w.namespace = uint8(Terminating) })
		do("a user deletes the Membership", func(w *modelState) { w.membership = membershipPart{} })
		do("a user deletes the RoleBinding", func(w *modelState) { w.access = noAgent })
	}
	do("the network fails or heals", func(w *modelState) { w.net = !w.net })
	if w.agent.bootstrap == bootstrapWorks {
		do("the bootstrap credential expires", func(w *modelState) { w.agent.bootstrap = bootstrapRefused })
	}
}

var lags = []struct {
	kinds uint8
	what  string
}{
	{lagNamespaces, "the cache of Namespaces is paused"},
	{lagBindings, "the cache of RoleBindings is paused"},
	{lagMemberships, "the cache of Memberships is paused"},
	{lagAll, "all caches of the hub are paused"},
}

func (w *modelState) restartAgent() {
	a := &w.agent
	a.done, a.joinRequest, a.issuedUID, a.hub, a.refusedTooLong, a.seen, a.beating, a.memberState, a.plan = false, 0, 0,
		0, false, membershipPart{}, false, 0, planPart{}
}

// walk contains all reachable states, and the step to each.
type walk struct {
	m      *machine
	states *index[modelState]
	from   []int32
	by     []uint16 // the number of the step
	steps  *index[step]
	// changes are the observed changes of phase, if the walk records them.
	changes *phaseChanges
	batch   batch

	reached int32 // the number of visited states, without those of fair steps only
}

// step is the name of an edge.
type step struct{ by, what string }

func (s step) String() string { return s.by + ": " + s.what }

// explore visits all reachable states, or mostStates of them, the nearest first. For each violated guarantee, it
// returns the shortest sequence of steps.
func (m *machine) explore(starts []modelState, changes *phaseChanges) (*walk, map[fault]string) {
	k, broken := &walk{m: m, states: newIndex[modelState](), steps: newIndex[step](), changes: changes}, map[fault]string{}
	for _, w := range starts {
		k.number(&w, -1, step{})
	}
	unfinished := func(i int32) bool {
		return i < k.states.count && (m.mostStates == 0 || i < m.mostStates) && (!m.stopAtFirst || len(broken) == 0)
	}
	i := int32(0)
	for unfinished(i) {
		for last := i + batchSize; i < last && unfinished(i); i++ {
			w := k.states.at(i)
			if wrong := m.checkInvariants(w); wrong != "" && m.isFault(wrong) && broken[wrong] == "" {
				broken[wrong] = fmt.Sprintf("%swhich results in\n  %+v", k.trace(i), *w)
			}
			k.recordStart(i)
			m.edges(*w, func(e edge) {
				if e.wrong != "" && m.isFault(e.wrong) && broken[e.wrong] == "" {
					broken[e.wrong] = fmt.Sprintf("%s  %s\nwhich results in\n  %+v", k.trace(i), e.step, e.to)
				}
				k.recordEdge(i, &e)
				k.batch.add(&e.to, i, e.step)
			})
		}
		k.numberBatch(nil)
	}
	k.reached = i
	return k, broken
}

// batch contains states that are numbered together, with the number of the state before each and the step between them.
type batch struct {
	states []modelState
	hashes []uint32
	from   []int32
	by     []step
}

// batchSize is the number of states whose successors are numbered together.
const batchSize = 32

func (b *batch) add(w *modelState, from int32, by step) {
	b.states, b.from, b.by = append(b.states, *w), append(b.from, from), append(b.by, by)
}

// numberBatch numbers the states of the batch, in order, and empties the batch. If numbered is not nil, numberBatch
// calls it for each state, with the number of the state before and the number of the state.
func (k *walk) numberBatch(numbered func(from, to int32)) {
	b := &k.batch
	b.hashes = b.hashes[:0]
	for i := range b.states {
		b.hashes = append(b.hashes, k.states.hash(&b.states[i]))
	}
	k.states.load(b.hashes)
	for i := range b.states {
		n := k.numberHashed(&b.states[i], b.hashes[i], b.from[i], b.by[i])
		if numbered != nil {
			numbered(b.from[i], n)
		}
	}
	b.states, b.from, b.by = b.states[:0], b.from[:0], b.by[:0]
}

// number returns the number of a state, and assigns a new one if the state was not visited before.
func (k *walk) number(w *modelState, from int32, by step) int32 {
	return k.numberHashed(w, k.states.hash(w), from, by)
}

func (k *walk) numberHashed(w *modelState, hash uint32, from int32, by step) int32 {
	n, added := k.states.numberHashed(w, hash)
	if added {
		name, _ := k.steps.number(&by)
		k.from, k.by = append(k.from, from), append(k.by, uint16(name))
	}
	return n
}

// trace returns the steps by which a state was reached.
func (k *walk) trace(i int32) string {
	var steps []string
	for ; k.from[i] >= 0; i = k.from[i] {
		steps = append(steps, "  "+k.steps.at(int32(k.by[i])).String()+"\n")
	}
	slices.Reverse(steps)
	return strings.Join(steps, "")
}

// requestsRemoval reports whether the removal of the member by a user now requests the removal of the objects on the
// member.
func (w *modelState) requestsRemoval() bool {
	return w.removalRequested || w.agent.registered || w.agent.issuedUID != noUID || w.claim == mine
}
