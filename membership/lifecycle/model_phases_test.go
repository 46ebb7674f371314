package lifecycle

import (
	"fmt"
	"testing"
)

// phaseChanges are the changes of phase that a walk observed, with the cause of the first of each.
type phaseChanges struct {
	hub, agent         map[[2]string]string
	fromHub, fromAgent string // the phases of the state whose edges are visited
}

func newPhaseChanges() *phaseChanges {
	return &phaseChanges{hub: map[[2]string]string{}, agent: map[[2]string]string{}}
}

func (m *machine) hubPhase(w *modelState) string {
	if !w.member {
		return outside
	}
	_, plan := m.hubStep(w)
	return string(plan.phase)
}

func (m *machine) agentPhase(a *agentPart) string {
	if a.done {
		return string(Left)
	}
	_, plan := m.agentStep(a)
	return string(plan.Phase)
}

// recordStart records the state whose edges follow.
func (k *walk) recordStart(i int32) {
	c := k.changes
	if c == nil {
		return
	}
	w := k.states.at(i)
	c.fromHub, c.fromAgent = k.m.hubPhase(w), k.m.agentPhase(&w.agent)
	if i < 2 { // the others are not initial states
		k.add(c.hub, outside, c.fromHub, i, step{})
		k.add(c.agent, outside, c.fromAgent, i, step{})
	}
}

// recordEdge records an edge of the state with the number i.
func (k *walk) recordEdge(i int32, e *edge) {
	c := k.changes
	if c == nil {
		return
	}
	k.add(c.hub, c.fromHub, k.m.hubPhase(&e.to), i, e.step)
	if !e.to.agent.dead && e.what != agentRestarts && e.what != agentRestored {
		k.add(c.agent, c.fromAgent, k.m.agentPhase(&e.to.agent), i, e.step)
	}
}

func (k *walk) add(walked map[[2]string]string, from, to string, i int32, by step) {
	if from == to {
		return
	}
	change := [2]string{from, to}
	if _, known := walked[change]; !known {
		walked[change] = fmt.Sprintf("%s  %s", k.trace(i), by)
	}
}

// checkDeclared compares the changes of phase that the walks observed with those that the machines declare. A walk of
// which nothing is recorded is nil. All declared changes must happen if the walks are whole.
func checkDeclared(t *testing.T, walks []*phaseChanges, whole bool) {
	t.Helper()
	for side, declared := range map[string][]transition{"hub": flatten(hubTransitions),
		"agent": flatten(agentTransitions)} {
		walked := map[[2]string]string{}
		for _, walk := range walks {
			if walk == nil {
				continue
			}
			for change, by := range map[string]map[[2]string]string{"hub": walk.hub, "agent": walk.agent}[side] {
				if _, known := walked[change]; !known {
					walked[change] = by
				}
			}
		}
		known := map[[2]string]bool{}
		for _, transition := range declared {
			change := [2]string{transition.from, transition.to}
			if known[change] {
				t.Errorf("state machine of the %s: transition %v is declared twice", side, change)
			}
			known[change] = true
			if _, met := walked[change]; !met && whole {
				t.Errorf("state machine of the %s: declared transition %v never happens", side, change)
			}
		}
		for change, by := range walked {
			if !known[change] {
				t.Errorf("state machine of the %s: transition %v is not declared, steps:\n%s", side, change, by)
			}
		}
	}
}
