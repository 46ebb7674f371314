package lifecycle

// fairness selects the components that continue in a run without faults and administrators.
type fairness struct {
	agent, gates, clock bool
	agentFirst          bool
	untilLeft           bool // the run ends when the member has left
}

// run computes the final states of fair steps from the states of a walk.
type run struct {
	k    *walk
	fair fairness
	ends []int32         // by the number of the state: the number of its end plus 1; otherwise one of the following
	next []int32         // the number plus 1 of the state after the next round; 0: not known
	idle map[int32]fault // the ends that were checked by machine.checkIdle
	path []int32
}

const (
	notKnown = -iota
	underWay
)

var nextRound = step{"all components", "next round"}

// extend adds the states that were numbered since.
func (r *run) extend() {
	if missing := int(r.k.states.count) - len(r.ends); missing > 0 {
		r.ends, r.next = append(r.ends, make([]int32, missing)...), append(r.next, make([]int32, missing)...)
	}
}

// prepare performs the next round of the states whose ends are needed. It only saves time: end performs the rounds that
// are missing.
func (r *run) prepare(first, last int32, needed func(*modelState) bool) {
	r.extend()
	for i := first; i < last; i++ {
		if w := r.k.states.at(i); r.ends[i] == notKnown && r.next[i] == 0 && needed(w) {
			next := r.k.m.round(*w, r.fair)
			r.k.batch.add(&next, i, nextRound)
		}
	}
	r.k.numberBatch(func(i, next int32) { r.next[i] = next + 1 })
}

// end returns the number of the state in which fair steps end. It returns false if they repeat in a loop.
func (r *run) end(i int32) (int32, bool) {
	r.path = r.path[:0]
	converges := true
	for {
		r.extend()
		if end := r.ends[i]; end != notKnown {
			converges = end != underWay
			if converges {
				i = end - 1
			}
			break
		}
		r.path, r.ends[i] = append(r.path, i), underWay
		n := r.next[i] - 1
		if n < 0 {
			next := r.k.m.round(*r.k.states.at(i), r.fair)
			n = r.k.number(&next, i, nextRound)
		}
		if n == i {
			break
		}
		i = n
	}
	for _, on := range r.path {
		if r.ends[on] = notKnown; converges {
			r.ends[on] = i + 1
		}
	}
	return i, converges
}

// checkEnd returns the result of machine.checkIdle for an end. Many states have the same end.
func (r *run) checkEnd(end int32) fault {
	wrong, known := r.idle[end]
	if !known {
		wrong = r.k.m.checkIdle(r.k.states.at(end))
		r.idle[end] = wrong
	}
	return wrong
}

// round performs one step of each component. Timeouts pass only when no component acts.
func (m *machine) round(w modelState, f fairness) modelState {
	if f.untilLeft && m.left(&w) {
		return w
	}
	before := w
	if f.agentFirst {
		m.agentRound(&w, f)
	}
	m.joinRequestRound(&w, 1)
	m.joinRequestRound(&w, 0)
	m.hubRound(&w)
	if !f.agentFirst {
		m.agentRound(&w, f)
	}
	if w.namespace == uint8(Terminating) && !m.namespaceStuck && !w.blocked() {
		w.namespaceGone()
	}
	if f.gates && w.leave.there {
		w.gatesClosed = false
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
				w.requests[i] = requestPart{}
			}
		}
	}
	if w == before {
		w.lag = lagPart{}
	}
	if w == before && f.clock && w.leave.there && !w.leave.ended && w.clock < timedOut {
		w.clock++
	}
	return w
}

func (m *machine) hubRound(w *modelState) {
	for w.hub.step != 0 {
		m.hubContinue(w)
	}
	if !w.member {
		return
	}
	looked, plan := m.hubReconcile(w)
	if len(plan.actions) == 0 {
		return
	}
	for w.hub = looked; w.hub.step != 0; {
		m.hubContinue(w)
	}
}

func (m *machine) joinRequestRound(w *modelState, i int) {
	if w.requests[i].there {
		m.joinRequestAct(w, i, m.joinRequestStep(w, i), true)
	}
}

func (m *machine) agentRound(w *modelState, f fairness) {
	if !f.agent || w.agent.dead {
		return
	}
	for w.agent.plan.step != 0 {
		m.agentContinue(w, false)
	}
	if w.agent.done {
		return
	}
	if w.agent.registered && w.agent.hub != uint8(HubNotAsked) {
		w.updateObservation()
	}
	if !m.agentDecide(w) {
		return
	}
	for w.agent.plan.step != 0 {
		m.agentContinue(w, false)
	}
}
