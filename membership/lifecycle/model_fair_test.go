package lifecycle

// fairness selects the components that continue in a run without faults and administrators.
type fairness struct {
	agent, gates, clock bool
	agentFirst          bool
	untilLeft           bool // and then the run is over
}

// run computes the final worlds of fair steps from the worlds of a walk.
type run struct {
	k    *walk
	fair fairness
	ends []int32 // by the number of the world; less than 0: not known, or being found out
}

const (
	notKnown = -1 - iota
	underWay
)

// end returns the world in which fair steps end. It returns false if they repeat in a circle.
func (r *run) end(i int32) (world, bool) {
	var path []int32
	rests := true
	for {
		for len(r.ends) < len(r.k.worlds) {
			r.ends = append(r.ends, notKnown)
		}
		if end := r.ends[i]; end != notKnown {
			rests = end != underWay
			if rests {
				i = end
			}
			break
		}
		path, r.ends[i] = append(path, i), underWay
		next := r.k.number(r.k.m.round(r.k.worlds[i], r.fair), i, step{"everybody", "goes on"})
		if next == i {
			break
		}
		i = next
	}
	for _, on := range path {
		if r.ends[on] = notKnown; rests {
			r.ends[on] = i
		}
	}
	return r.k.worlds[i], rests
}

// round performs one step of each component. Timeouts pass only when no component acts.
func (m *machine) round(w world, f fairness) world {
	if f.untilLeft && m.left(&w) {
		return w
	}
	before := w
	if f.agentFirst {
		m.agentTurn(&w, f)
	}
	m.joinRequestTurn(&w, 1)
	m.joinRequestTurn(&w, 0)
	m.hubTurn(&w)
	if !f.agentFirst {
		m.agentTurn(&w, f)
	}
	if w.namespace == uint8(Terminating) && !m.stuck && !w.blocked() {
		w.namespaceGone()
	}
	if f.gates && w.leave.there {
		w.gatesShut = false
	}
	if w == before && f.agent {
		w.agent.timesOut() // long before a deadline passes, or a request is removed for its age
		if w != before {
			return w
		}
	}
	if w == before {
		for i := range w.requests {
			if !w.requests[i].fresh {
				w.requests[i] = requestWorld{}
			}
		}
	}
	if w == before {
		w.lag = lagWorld{}
	}
	if w == before && f.clock && w.leave.there && !w.leave.ended && w.clock < timedOut {
		w.clock++
	}
	return w
}

func (m *machine) hubTurn(w *world) {
	for w.hub.step != 0 {
		m.hubGoesOn(w)
	}
	if !w.member {
		return
	}
	looked, plan := m.hubLooks(w)
	if len(plan.actions) == 0 {
		return
	}
	for w.hub = looked; w.hub.step != 0; {
		m.hubGoesOn(w)
	}
}

func (m *machine) joinRequestTurn(w *world, i int) {
	if w.requests[i].there {
		m.joinRequestActs(w, i, m.joinRequestStep(w, i).JoinRequestStep, true)
	}
}

func (m *machine) agentTurn(w *world, f fairness) {
	if !f.agent || w.agent.dead {
		return
	}
	for w.agent.plan.step != 0 {
		m.agentGoesOn(w, false)
	}
	if w.agent.done {
		return
	}
	if w.agent.registered && w.agent.hub != uint8(HubNotAsked) {
		w.look()
	}
	if !m.agentLooks(w) {
		return
	}
	for w.agent.plan.step != 0 {
		m.agentGoesOn(w, false)
	}
}
