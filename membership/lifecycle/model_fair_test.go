package lifecycle

// fairness selects the components that continue in a run without faults and administrators.
type fairness struct {
	agent, gates, clock bool
	agentFirst          bool
	untilLeft           bool // and then the run is over
}

// run computes the final worlds of fair steps from the worlds of a walk.
type run struct {
	k     *walk
	fair  fairness
	ends  []int32         // by the number of the world: the number of its end plus 1; otherwise one of the following
	next  []int32         // the number plus 1 of the world after the next round; 0: not known
	quiet map[int32]fault // the ends that were checked by machine.quiet
	path  []int32
}

const (
	notKnown = -iota
	underWay
)

var goesOn = step{"everybody", "goes on"}

// extend adds the worlds that were numbered since.
func (r *run) extend() {
	if missing := int(r.k.worlds.count) - len(r.ends); missing > 0 {
		r.ends, r.next = append(r.ends, make([]int32, missing)...), append(r.next, make([]int32, missing)...)
	}
}

// prepare performs the next round of the worlds whose ends are needed. It only saves time: end performs the rounds that
// are missing.
func (r *run) prepare(first, last int32, needed func(*world) bool) {
	r.extend()
	for i := first; i < last; i++ {
		if w := r.k.worlds.at(i); r.ends[i] == notKnown && r.next[i] == 0 && needed(w) {
			next := r.k.m.round(*w, r.fair)
			r.k.batch.add(&next, i, goesOn)
		}
	}
	r.k.numberBatch(func(i, next int32) { r.next[i] = next + 1 })
}

// end returns the number of the world in which fair steps end. It returns false if they repeat in a circle.
func (r *run) end(i int32) (int32, bool) {
	r.path = r.path[:0]
	rests := true
	for {
		r.extend()
		if end := r.ends[i]; end != notKnown {
			rests = end != underWay
			if rests {
				i = end - 1
			}
			break
		}
		r.path, r.ends[i] = append(r.path, i), underWay
		n := r.next[i] - 1
		if n < 0 {
			next := r.k.m.round(*r.k.worlds.at(i), r.fair)
			n = r.k.number(&next, i, goesOn)
		}
		if n == i {
			break
		}
		i = n
	}
	for _, on := range r.path {
		if r.ends[on] = notKnown; rests {
			r.ends[on] = i + 1
		}
	}
	return i, rests
}

// checkEnd returns the result of machine.quiet for an end. Many worlds have the same end.
func (r *run) checkEnd(end int32) fault {
	wrong, known := r.quiet[end]
	if !known {
		wrong = r.k.m.quiet(r.k.worlds.at(end))
		r.quiet[end] = wrong
	}
	return wrong
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
		m.joinRequestActs(w, i, m.joinRequestStep(w, i), true)
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
