package lifecycle

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

var starts = []world{
	{net: true},
	{net: true, member: true, accepted: yesAccepted},
	// These have a past, which saves administrators some moves.
	{
		net:       true,
		member:    true,
		accepted:  yesAccepted,
		finalizer: true,
		wantLeave: true,
		leave:     leaveWorld{there: true, ended: true},
	},
	{
		net:        true,
		member:     true,
		accepted:   noDenied,
		finalizer:  true,
		namespace:  uint8(Present),
		membership: membershipWorld{there: true, rejoin: true},
	},
	{
		net:        true,
		member:     true,
		accepted:   undecided,
		finalizer:  true,
		namespace:  uint8(Present),
		membership: membershipWorld{there: true, rejoin: true},
	},
}

// holds checks the guarantees of every reachable world.
func (m *machine) holds(w *world) fault {
	if !w.member {
		return ""
	}
	_, plan := m.hubStep(w)
	if plan.phase == v1alpha1.PhaseJoined && (w.accepted != yesAccepted || w.deleting || w.wantLeave) {
		return "the phase is Joined, of a member that shall not be in"
	}
	if w.access != noAgent && w.accepted != yesAccepted && w.namespace == uint8(Present) &&
		!plan.revokesAccess {
		return "access of a member that is not accepted is not revoked at once"
	}
	return ""
}

// comesTo checks the final worlds of fair steps from the worlds of a walk.
type comesTo struct {
	k                     *walk
	all, inTime, hubAlone *run
}

func (k *walk) comesTo(agentFirst bool, hubAlone *run) *comesTo {
	run := func(f fairness) *run { return &run{k: k, fair: f, quiet: map[int32]fault{}} }
	return &comesTo{
		k:        k,
		all:      run(fairness{agent: true, gates: true, clock: true, agentFirst: agentFirst}),
		inTime:   run(fairness{agent: true, gates: true, untilLeft: true, agentFirst: agentFirst}),
		hubAlone: hubAlone,
	}
}

const circle fault = "fair steps never come to rest"

// prepare performs the rounds that the checks of several worlds need, which is faster than one by one.
func (c *comesTo) prepare(first, last int32) {
	m := c.k.m
	c.all.prepare(first, last, func(*world) bool { return true })
	c.hubAlone.prepare(first, last, m.mustLeave)
	c.inTime.prepare(first, last, m.mustLeaveInTime)
}

// able reports whether the agent can make requests.
func (w *world) able() bool { return !w.agent.dead && w.net && w.agent.bootstrap == bootstrapWorks }

// mustLeave reports whether the member must leave even if its agent never acts.
func (m *machine) mustLeave(w *world) bool { return w.member && w.leaveRequested() }

// mustLeaveInTime reports whether the member must leave before the deadline, with its agent.
func (m *machine) mustLeaveInTime(w *world) bool {
	return m.mustLeave(w) && w.able() && !m.stuck && w.accepted == yesAccepted && w.clock == inTime && !w.leave.forced
}

func (c *comesTo) check(i int32) (fault, *world) {
	m, w := c.k.m, c.k.worlds.at(i)
	n, rests := c.all.end(i)
	end := c.k.worlds.at(n)
	if !rests {
		return circle, end
	}
	if wrong := c.all.checkEnd(n); wrong != "" {
		return wrong, end
	}
	if m.mustLeave(w) {
		n, rests := c.hubAlone.end(i)
		switch end := c.k.worlds.at(n); {
		case !rests:
			return circle, end
		case !m.left(end):
			return endless, end
		}
	}
	a, able := &w.agent, w.able()
	if m.mustLeaveInTime(w) {
		n, rests := c.inTime.end(i)
		switch end := c.k.worlds.at(n); {
		case !rests:
			return circle, end
		case !m.left(end) || end.leave.forced:
			return "a leave with a living agent does not come to its end in time", end
		}
	}
	// For good means: until the agent gets a new bootstrap credential.
	// It may have learned just before that its MemberCluster was kept, or is about to ask anew because of that.
	kept := a.kept || a.joinRequest == uint8(JoinRequestDeregisteredKept) || a.seen.rejoin &&
		a.seen.report == uint8(ReportedClean)
	answered := a.given == goneUID || w.requests[0].answer == answerIssued && w.requests[0].bound == goneUID
	wasDeleted := a.registered && a.uid == goneUID || a.deregistered && !a.kept || !a.registered && (a.kept || answered)
	isOut := end.agent.bootstrap == bootstrapGone
	wanted := w.member && !w.deleting && !w.wantLeave && w.accepted == yesAccepted && end.namespace != uint8(Terminating)
	if m.disasters.any() && w.claim != mine {
		wanted = false // it waits for an administrator, who knows what was lost
	}
	if wanted && able && !a.out && !m.bothJoined(end) && (!wasDeleted || !isOut) {
		return staysOut, end
	}
	if able && end.holds == leftover && (!m.disasters.any() || end.deregisters() && !end.adopts()) {
		return undone, end
	}
	if able && a.returns && a.request && !w.member && w.requests[0].answer != answerNone && end.member {
		return "a MemberCluster that was deleted while its agent waited to come back is made anew", end
	}
	if able && a.registered && a.uid == goneUID && !kept && (!m.disasters.any() || w.tombs&tombOf(mine, goneUID) != 0) {
		if !isOut {
			return "the agent of a MemberCluster that was deleted does not end", end
		}
		if end.member && !w.member {
			return "a MemberCluster that was deleted is made anew", end
		}
	}
	return "", end
}

// deregisters reports whether the hub has a record that the agent's member left.
func (w *world) deregisters() bool {
	return w.agent.registered && w.tombs&(tombOf(mine, w.agent.uid)|tombOf(noAgent, w.agent.uid)) != 0
}

// adopts reports whether a MemberCluster with the agent's claim waits for an administrator to accept it. The cause is
// an old request that was restored, and whose agent had not been bound yet.
func (w *world) adopts() bool { return w.member && w.claim == mine && w.accepted == undecided }

// left reports whether the hub has no objects of a member, except possibly its MemberCluster.
func (m *machine) left(w *world) bool {
	if w.member {
		_, plan := m.hubStep(w)
		if w.deleting || plan.phase != v1alpha1.PhaseLeft || w.claim != noAgent || w.leave.there && !w.leave.ended {
			return false
		}
	}
	return (w.namespace == uint8(Absent) || w.abandoned || m.stuck && w.namespace == uint8(Terminating)) &&
		w.access == noAgent
}

func (m *machine) bothJoined(w *world) bool {
	if !w.member || !w.joined || w.access != mine {
		return false
	}
	_, hub := m.hubStep(w)
	_, agent := m.agentStep(&w.agent)
	return hub.phase == v1alpha1.PhaseJoined && agent.Phase == Joined && w.agent.beating
}

// quiet checks that no component acts in a world in which nothing changes any more, except for periodic observations.
func (m *machine) quiet(w *world) fault {
	if w.member {
		if _, plan := m.hubStep(w); len(plan.actions) > 0 || plan.after != 0 && !m.stuck {
			return fault(fmt.Sprintf("the hub does not come to rest: %v, after %s", plan.actions, plan.after))
		}
	}
	for i, request := range w.requests {
		if step := m.joinRequestStep(w, i); request.there && len(step.actions) > 0 {
			return fault(fmt.Sprintf("the JoinRequest does not come to rest: %v", step.actions))
		}
	}
	if w.agent.dead || w.agent.done {
		return ""
	}
	if _, step := m.agentStep(&w.agent); step.After < time.Second && !m.stuck {
		return fault(fmt.Sprintf("the agent does not come to rest: %s, after %s", step.Message, step.After))
	}
	return ""
}

// models are the walks. Only the steps of administrators (moves) and mishaps are bounded.
var models = []struct {
	name    string
	why     string
	machine machine
	// declared is false where what happens is not part of a machine.
	undeclared bool
}{
	// The largest model is the first one, because the models run in parallel.
	{
		name: "two leaders", why: "a leader that was paused and resumes destroys nothing that was created since",
		machine: machine{moves: 1, mishaps: 1, disasters: disasters{leaders: true}}, undeclared: true,
	},
	{
		name:    "administrators",
		why:     "they may change their mind at any time, also halfway through what they had wanted before",
		machine: machine{moves: 2},
	},
	{
		name: "mishaps", why: "crashes, lost answers, expired credentials and partitions may happen between any two actions",
		machine: machine{moves: 1, mishaps: 1},
	},
	{
		name: "accepted at once", why: "an Acceptor must not let back in what an administrator has removed",
		machine: machine{moves: 1, mishaps: 1, admission: membership.Accept},
	},
	{
		name: "status first", why: "a controller may report before it acts, and die in between",
		machine: machine{moves: 1, mishaps: 1, statusFirst: true},
	},
	{
		name: "namespace stuck", why: "a finalizer that is never removed must not block a leave for ever",
		machine: machine{moves: 2, stuck: true},
	},
	{
		name: "gates stuck", why: "a gate that does not even open by force must not hold a leave for ever",
		machine: machine{moves: 1, mishaps: 1, unforceable: true},
	},
	{
		name: "restores", why: "a hub that is put back to an earlier state must not take what it does not know for a request",
		machine: machine{mishaps: 2, disasters: disasters{restores: true}}, undeclared: true,
	},
	{
		name: "restores and deleted objects", why: "a restore brings back objects that a user has deleted by hand",
		machine: machine{mishaps: 3, vandals: true, disasters: disasters{restores: true}}, undeclared: true,
	},
	{
		name: "restores under two leaders", why: "a leader that was paused before a restore does not know of it",
		machine: machine{mishaps: 3, disasters: disasters{restores: true, leaders: true}}, undeclared: true,
	},
	{
		name: "changed UIDs", why: "a MemberCluster that is missing or created again is not a request",
		machine: machine{moves: 1, mishaps: 1, disasters: disasters{reapplied: true}}, undeclared: true,
	},
	{
		name: "lost records",
		why:  "a record that expired must not let anything be cleaned up, nor let a removed member back in",
		machine: machine{
			moves:     1,
			mishaps:   1,
			disasters: disasters{expiry: true},
			admission: membership.Accept,
		},
		undeclared: true,
	},
	{
		name: "another hub", why: "another hub never ends a membership, whatever it has on record",
		machine: machine{moves: 1, mishaps: 1, disasters: disasters{otherHub: true}}, undeclared: true,
	},
	{
		name: "removed definition", why: "that a MemberCluster goes with its definition is not a request",
		machine: machine{moves: 1, mishaps: 1, disasters: disasters{definitions: true}}, undeclared: true,
	},
	{
		name: "caches lag", why: "a cache may show for minutes what is not so any more, each kind of its own or all of them",
		machine: machine{moves: 1, mishaps: 1, lags: true}, undeclared: true,
	},
	{
		name: "vandals", why: "a member must not be cleaned because a user deleted the objects that the hub had created " +
			"for it",
		machine: machine{moves: 1, mishaps: 1, vandals: true}, undeclared: true,
	},
}

func TestModel(t *testing.T) {
	notUnderRace(t)
	whole := true
	states, changes := make([]int32, len(models)), make([]*phaseChanges, len(models))
	t.Cleanup(func() { // runs after the models, which run in parallel
		sum := 0
		for _, n := range states {
			sum += int(n)
		}
		t.Logf("%d states", sum)
		checkDeclared(t, changes, whole)
	})
	for n, model := range models {
		m := model.machine
		m.hub, m.joinRequest, m.agent = NextHub, NextJoinRequest, NextAgent
		m.deeper(&whole)
		t.Run(model.name, func(t *testing.T) {
			t.Parallel()
			if !model.undeclared {
				changes[n] = newPhaseChanges()
			}
			start := time.Now()
			k, broken := m.prove(changes[n])
			states[n] = k.reached
			t.Logf("%s: %d states in %s", model.why, k.reached, time.Since(start).Round(time.Millisecond))
			for _, wrong := range slices.Sorted(maps.Keys(broken)) {
				t.Errorf("%s:\n%s", wrong, broken[wrong])
			}
		})
	}
}

// notUnderRace skips a walk under the race detector, which makes the walk ten times as slow. Walks share only what none
// of them changes. Without the race detector, go test and the step models of .ci/run visit all of it.
func notUnderRace(t *testing.T) {
	t.Helper()
	if raceDetector {
		t.Skip("shares nothing with other goroutines: the step models of .ci/run walks the model")
	}
}

// deeper extends a walk if requested (MUSTER_MODEL=deep, minutes), and shortens it under the race detector, which is
// slow and has no effect here.
func (m *machine) deeper(whole *bool) {
	if m.admission == "" {
		m.admission = membership.Hold
	}
	switch {
	case os.Getenv("MUSTER_MODEL") == "deep" && !m.vandals:
		// Not that one: who deletes a Membership in the very moment in which a leave is called off and the hub fails to
		// write its status may have to take the agent's old claim off by hand.
		m.moves++
	case m.disasters.any() && !raceDetector && !testing.Short():
		return
	case raceDetector || testing.Short():
		*whole = false
		m.moves, m.mishaps = 1, 0
	}
}

// prove visits all reachable worlds, and their final worlds, and returns the violated guarantees. It records the
// changes of phase unless changes is nil.
func (m *machine) prove(changes *phaseChanges) (*walk, map[fault]string) {
	k, broken := m.explore(starts, changes)
	// The agent takes no part in this run, so that the order of the components makes no difference.
	hubAlone := &run{k: k, fair: fairness{clock: true, untilLeft: true}}
	for _, agentFirst := range []bool{false, true} {
		c := k.comesTo(agentFirst, hubAlone)
		for i := int32(0); i < k.reached && (!m.hasty || len(broken) == 0); i++ {
			if i%batchSize == 0 {
				c.prepare(i, min(i+batchSize, k.reached))
			}
			if wrong, end := c.check(i); wrong != "" && m.counts(wrong) && broken[wrong] == "" {
				broken[wrong] = fmt.Sprintf("%swhich is\n  %+v\nand comes to\n  %+v", k.trace(i), *k.worlds.at(i), *end)
			}
		}
	}
	return k, broken
}
