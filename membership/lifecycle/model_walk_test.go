package lifecycle

import (
	"fmt"
	"strings"
)

// edge is a transition out of a world.
type edge struct {
	by    string
	what  string
	to    world
	wrong fault
}

// edges calls visit with every transition out of w.
func (m *machine) edges(w world, visit func(edge)) {
	m.hubEdges(w, visit)
	m.doorEdges(w, visit)
	m.agentEdges(w, visit)
	m.worldEdges(w, visit)
	if w.moves < m.moves {
		m.administratorEdges(w, visit)
	}
	if w.mishaps < m.mishaps {
		m.mishapEdges(w, visit)
	}
}

func (m *machine) hubEdges(w world, visit func(edge)) {
	if w.hub.step == 0 {
		if !w.member {
			return
		}
		n, plan := m.hubStep(&w)
		if len(plan.actions) > 0 {
			w.hub, w.stale = planWorld{step: n}, false
			visit(edge{by: "hub", what: "looks", to: w})
		}
		return
	}
	action, wrong := m.hubGoesOn(&w)
	visit(edge{"hub", string(action), w, wrong})
}

func (m *machine) hubGoesOn(w *world) (HubAction, fault) {
	plan := m.hubs.values[w.hub.step]
	action := plan.actions[w.hub.next]
	w.hub.next++
	if int(w.hub.next) == len(plan.actions) {
		defer func() { w.hub, w.stale = planWorld{}, false }()
	}
	return action, m.hubActs(w, plan, action)
}

func (m *machine) doorEdges(w world, visit func(edge)) {
	for i := range w.requests {
		if !w.requests[i].there {
			continue
		}
		step := m.doorStep(&w, i)
		by := [...]string{"door", "door (older request)"}[i]
		what := string(step.Answer)
		for _, action := range step.Actions {
			what += " " + string(action)
		}
		to := w
		wrong := m.doorActs(&to, i, step, true)
		visit(edge{by, what, to, wrong})
		if len(step.Actions) > 0 {
			to := w
			wrong := m.doorActs(&to, i, step, false)
			visit(edge{by, what + ", and dies before it reports", to, wrong})
		}
	}
}

func (m *machine) agentEdges(w world, visit func(edge)) {
	a := &w.agent
	if a.dead || a.done {
		return
	}
	if a.plan.step == 0 {
		if to := w; to.agent.registered && to.agent.hub != uint8(HubNotAsked) {
			to.look()
			visit(edge{by: "agent", what: "is told by its watch", to: to})
		}
		to := w
		if m.agentLooks(&to) {
			visit(edge{by: "agent", what: "decides", to: to})
		}
		return
	}
	step := m.agents.values[a.plan.step]
	action := step.Actions[a.plan.next]
	to := w
	action, wrong := m.agentGoesOn(&to, false)
	visit(edge{"agent", string(action), to, wrong})
	if w.mishaps < m.mishaps && (action == AskDoor || action == ReportJoined || action == ReportClean) {
		to := w
		to.mishaps++
		_, wrong := m.agentGoesOn(&to, true)
		to.agent.plan = planWorld{}
		visit(edge{"agent", string(action) + ", and the answer is lost", to, wrong})
	}
}

// agentLooks has the agent decide, and reports whether there is anything to do.
func (m *machine) agentLooks(w *world) bool {
	n, step := m.agentStep(&w.agent)
	w.agent.said = uint8(MemberNotAsked)
	if len(step.Actions) == 0 {
		return false
	}
	w.agent.plan = planWorld{step: n}
	return true
}

func (m *machine) agentGoesOn(w *world, lost bool) (AgentAction, fault) {
	step := m.agents.values[w.agent.plan.step]
	action := step.Actions[w.agent.plan.next]
	w.agent.plan.next++
	wrong := m.agentActs(w, action, lost)
	if int(w.agent.plan.next) >= len(step.Actions) {
		w.agent.plan = planWorld{}
		w.agent.done = step.Done
	}
	return action, wrong
}

// worldEdges is what happens by itself.
func (m *machine) worldEdges(w world, visit func(edge)) {
	do := func(what string, change func(*world)) {
		to := w
		change(&to)
		if to != w {
			visit(edge{by: "world", what: what, to: to})
		}
	}
	if w.leave.there && !w.leave.ended && w.clock < outOfPatience {
		do("time passes", func(w *world) { w.clock++ })
	}
	if w.leave.there {
		do("the gates open", func(w *world) { w.gatesShut = false })
	}
	if w.namespace == uint8(Terminating) {
		do("the Membership goes", func(w *world) { w.membership = membershipWorld{} })
		do("the RoleBinding goes", func(w *world) { w.access = nobody })
		if !m.stuck {
			do("the namespace is gone", func(w *world) { w.namespaceGone() })
		}
	}
	if w.joined && w.holds != dirty && !w.agent.dead && w.agent.registered && w.agent.hub == uint8(HubSeen) && !w.agent.seen.leave && w.agent.seen.report == uint8(ReportedJoined) && w.access == mine {
		do("works arrive on the member", func(w *world) { w.holds, w.gatesShut = dirty, true })
	}
	for i := range w.requests {
		if w.requests[i].there {
			do(fmt.Sprintf("request %d is removed for its age", i), func(w *world) { w.requests[i] = requestWorld{} })
		}
	}
}

func (w *world) namespaceGone() {
	w.namespace, w.membership, w.access, w.gatesShut = uint8(Absent), membershipWorld{}, nobody, false
}

func (m *machine) administratorEdges(w world, visit func(edge)) {
	w.moves++
	do := func(what string, change func(*world)) {
		to := w
		change(&to)
		to.changed()
		visit(edge{by: "administrator", what: what, to: to})
	}
	if !w.member {
		do("makes a MemberCluster with the cluster ID", func(w *world) { w.member = true })
		return
	}
	for n, what := range []string{"unsets spec.accepted", "accepts", "denies"} {
		if w.accepted != uint8(n) {
			do(what, func(w *world) { w.accepted = uint8(n) })
		}
	}
	if w.wantLeave {
		do("sets spec.state to Join", func(w *world) { w.wantLeave = false })
	} else {
		do("sets spec.state to Leave", func(w *world) { w.wantLeave = true })
	}
	if !w.deleting {
		to := w
		to.deleting = true
		to.changed()
		var wrong fault
		if !w.finalizer {
			wrong = m.memberGone(&to)
		}
		visit(edge{"administrator", "deletes the MemberCluster", to, wrong})
	}
}

func (m *machine) mishapEdges(w world, visit func(edge)) {
	w.mishaps++
	do := func(what string, change func(*world)) {
		to := w
		change(&to)
		visit(edge{by: "mishap", what: what, to: to})
	}
	if w.hub.step != 0 {
		do("the hub dies and starts again", func(w *world) { w.hub, w.stale = planWorld{}, false })
	}
	if !w.agent.dead {
		do("the agent dies and starts again", func(w *world) { w.restartAgent() })
		do("the agent dies for ever", func(w *world) { w.restartAgent(); w.agent.dead = true })
	}
	if w.agent.credential {
		do("the agent's credential expires", func(w *world) { w.agent.credential = false })
	}
	do("the network fails or heals", func(w *world) { w.net = !w.net })
	if w.agent.bootstrap == bootstrapWorks {
		do("the bootstrap credential expires", func(w *world) { w.agent.bootstrap = bootstrapRefused })
	}
}

func (w *world) restartAgent() {
	a := &w.agent
	a.done, a.door, a.given, a.hub, a.seen, a.beating, a.said, a.plan = false, 0, 0, 0, membershipWorld{}, false, 0, planWorld{}
}

// walk is all that can be reached.
type walk struct {
	m      *machine
	index  map[world]int32
	worlds []world
	from   []int32
	by     []string
}

// explore reaches all that can be reached, the nearest first. It returns, of every promise that is broken, by which
// steps that comes about soonest.
func (m *machine) explore(starts []world, holds func(from, to *world) fault) (*walk, map[fault]string) {
	k, broken := &walk{m: m, index: map[world]int32{}}, map[fault]string{}
	for _, w := range starts {
		k.add(w, -1, "")
	}
	for i := 0; i < len(k.worlds); i++ {
		w := k.worlds[i]
		m.edges(w, func(e edge) {
			wrong := e.wrong
			if wrong == "" {
				wrong = holds(&w, &e.to)
			}
			if _, known := broken[wrong]; wrong != "" && !known {
				broken[wrong] = fmt.Sprintf("%s  %s: %s\nwhich makes\n  %+v", k.trace(i), e.by, e.what, e.to)
			}
			k.add(e.to, int32(i), e.by+": "+e.what)
		})
	}
	return k, broken
}

func (k *walk) add(w world, from int32, by string) {
	if _, known := k.index[w]; known {
		return
	}
	k.index[w] = int32(len(k.worlds))
	k.worlds, k.from, k.by = append(k.worlds, w), append(k.from, from), append(k.by, by)
}

func (k *walk) trace(i int) string {
	var steps []string
	for ; k.from[i] >= 0; i = int(k.from[i]) {
		steps = append(steps, "  "+k.by[i]+"\n")
	}
	var out strings.Builder
	for i := len(steps) - 1; i >= 0; i-- {
		out.WriteString(steps[i])
	}
	return out.String()
}
