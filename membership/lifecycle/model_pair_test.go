package lifecycle

import (
	"fmt"
	"testing"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// pair is a state with two agents that report the same cluster ID. The state is that of one of them, and its older
// claim is that of the other.
type pair struct {
	modelState
	other agentPart
}

// swapped returns the same pair from the view of the other agent.
func (p pair) swapped() pair {
	swap := [...]uint8{noAgent: noAgent, mine: older, older: mine}
	p.claim, p.access, p.credential = swap[p.claim], swap[p.access], swap[p.credential]
	p.requests[0], p.requests[1] = p.requests[1], p.requests[0]
	p.agent, p.other = p.other, p.agent
	return p
}

func (p pair) edges(m *machine, visit func(step, pair, fault)) {
	same := func(e edge) { visit(e.step, pair{e.to, p.other}, e.wrong) }
	m.hubEdges(p.modelState, same)
	m.joinRequestEdges(p.modelState, same)
	m.agentEdges(p.modelState, same)
	other := p.swapped()
	m.agentEdges(other.modelState, func(e edge) {
		visit(step{"other " + e.by, e.what}, pair{e.to, other.other}.swapped(), e.wrong)
	})
	for i, source := range []string{"agent", "other agent"} {
		to := p
		[]*agentPart{&to.agent, &to.other}[i].timesOut()
		if to != p {
			visit(step{source, "is refused for ShutOutTimeout"}, to, "")
		}
	}
	for i := range 2 { // each of them restarts
		to := p
		if i == 1 {
			to = to.swapped()
		}
		to.restartAgent()
		if i == 1 {
			to = to.swapped()
		}
		visit(step{[...]string{"agent", "other agent"}[i], "restarts"}, to, "")
	}
	for i := range p.requests {
		if to := p; p.requests[i].there {
			to.requests[i] = requestPart{}
			visit(step{"state", "an old request is removed"}, to, "")
		}
	}
	if p.adminSteps == m.adminSteps {
		return
	}
	p.adminSteps++
	for n, what := range []string{"unsets spec.accepted", "accepts", "denies"} {
		if to := p; p.accepted != uint8(n) && p.member {
			to.accepted = uint8(n)
			to.changed()
			visit(step{"administrator", what}, to, "")
		}
	}
	for _, claim := range []uint8{mine, older} {
		if to := p; p.claim != claim && p.claim != noAgent {
			to.claim, to.membership.report = claim, uint8(ReportedNothing)
			to.changed()
			visit(step{"administrator", "gives the claim to " + claims[claim]}, to, "")
		}
	}
}

// rest returns the final pair of fair steps of all components.
func (p pair) rest(m *machine) (pair, bool) {
	for range 200 {
		before := p
		m.joinRequestRound(&p.modelState, 0)
		m.joinRequestRound(&p.modelState, 1)
		m.hubRound(&p.modelState)
		m.agentRound(&p.modelState, fairness{agent: true})
		p = p.swapped()
		m.agentRound(&p.modelState, fairness{agent: true})
		p = p.swapped()
		if p == before {
			p.agent.timesOut()
			p.other.timesOut()
		}
		if p == before { // the hub removes the requests that were answered
			for i, agent := range []agentPart{p.agent, p.other} {
				if !p.requests[i].fresh && (agent.request || agent.registered) {
					p.requests[i] = requestPart{}
				}
			}
		}
		if p == before {
			return p, true
		}
	}
	return p, false
}

// TestModelOfTwoAgents checks two agents with one cluster ID: one of them has the claim and joins, and the request of
// the other is pending, without an effect on its objects.
func TestModelOfTwoAgents(t *testing.T) {
	notUnderRace(t)
	for name, twoTypes := range map[string]bool{"credentials of one type": false, "credentials of two types": true} {
		t.Run(name, func(t *testing.T) {
			m := &machine{
				hub:         NextHub,
				joinRequest: NextJoinRequest,
				agent:       NextAgent,
				admission:   membership.Hold,
				adminSteps:  1,
				pair:        true,
				twoTypes:    twoTypes,
			}
			n, wrong := m.verifyPair()
			t.Logf("%d states", n)
			if wrong != "" {
				t.Error(wrong)
			}
		})
	}
}

func (m *machine) verifyPair() (int, string) {
	start := pair{modelState: modelState{
		net: true, member: true, finalizer: true, accepted: stateAccepted, twoTypes: m.twoTypes,
	}}
	seen, from, by := map[pair]int{start: 0}, []int{-1}, []step{{}}
	trace := func(i int) (out string) {
		for ; from[i] >= 0; i = from[i] {
			out = fmt.Sprintf("  %s\n%s", by[i], out)
		}
		return out
	}
	var wrong string
	for queue, i := []pair{start}, 0; i < len(queue) && wrong == ""; i++ {
		p := queue[i]
		if broken := p.check(m); broken != "" {
			wrong = fmt.Sprintf("%s:\n%swhich is\n  %+v", broken, trace(i), p)
		}
		p.edges(m, func(name step, to pair, broken fault) {
			if name.what == string(RecordDeregistered) || name.what == string(CleanMember) {
				broken = "an agent cleans up a member because another agent has the claim"
			}
			if broken != "" {
				wrong = fmt.Sprintf("%s:\n%s  %s", broken, trace(i), name)
			}
			if _, known := seen[to]; !known {
				seen[to] = len(queue)
				queue, from, by = append(queue, to), append(from, i), append(by, name)
			}
		})
	}
	return len(seen), wrong
}

func (p pair) check(m *machine) fault {
	end, converges := p.rest(m)
	if !converges {
		return "the steps of two agents never end"
	}
	winner, loser := end, end.swapped()
	if end.claim == older {
		winner, loser = loser, winner
	}
	switch phase := m.phaseOf(&loser.agent); {
	case phase == Joined || phase == Joining || loser.agent.beating:
		return "two agents have joined as one member"
	case p.accepted == stateAccepted && !m.bothJoined(&winner.modelState):
		return "neither of two agents has joined"
	case p.accepted == stateAccepted && loser.requests[0].answer != answerBlocked:
		return "the request of the second agent is not blocked"
	case p.accepted != stateAccepted && end.access != noAgent:
		return "a member that is not accepted has access"
	}
	_, plan := m.hubStep(&end.modelState)
	if p.accepted == stateAccepted && plan.phase != v1alpha1.PhaseJoined {
		return "the member has not joined"
	}
	return ""
}

func (m *machine) phaseOf(a *agentPart) AgentPhase {
	_, step := m.agentStep(a)
	return step.Phase
}
