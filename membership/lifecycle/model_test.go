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

var starts = []modelState{
	{net: true},
	{net: true, member: true, accepted: stateAccepted},
	// These states are not initial. They save administrators some steps.
	{
		net:       true,
		member:    true,
		accepted:  stateAccepted,
		finalizer: true,
		wantLeave: true,
		leave:     leavePart{there: true, ended: true},
	},
	{
		net:        true,
		member:     true,
		accepted:   stateDenied,
		finalizer:  true,
		namespace:  uint8(Present),
		membership: membershipPart{there: true, rejoin: true},
	},
	{
		net:        true,
		member:     true,
		accepted:   undecided,
		finalizer:  true,
		namespace:  uint8(Present),
		membership: membershipPart{there: true, rejoin: true},
	},
}

// checkInvariants checks the guarantees of every reachable state.
func (m *machine) checkInvariants(w *modelState) fault {
	if !w.member {
		return ""
	}
	_, plan := m.hubStep(w)
	if plan.phase == v1alpha1.PhaseJoined && (w.accepted != stateAccepted || w.deleting || w.wantLeave) {
		return "the phase is Joined for a member that must not be joined"
	}
	if w.access != noAgent && w.accepted != stateAccepted && w.namespace == uint8(Present) &&
		!plan.revokesAccess {
		return "access of a member that is not accepted is not revoked immediately"
	}
	return ""
}

// outcomes checks the final states of fair steps from the states of a walk.
type outcomes struct {
	k                     *walk
	all, inTime, hubAlone *run
}

func (k *walk) newOutcomes(agentFirst bool, hubAlone *run) *outcomes {
	run := func(f fairness) *run { return &run{k: k, fair: f, idle: map[int32]fault{}} }
	return &outcomes{
		k:        k,
		all:      run(fairness{agent: true, gates: true, clock: true, agentFirst: agentFirst}),
		inTime:   run(fairness{agent: true, gates: true, untilLeft: true, agentFirst: agentFirst}),
		hubAlone: hubAlone,
	}
}

const circle fault = "fair steps never end"

// prepare performs the rounds that the checks of several states need, which is faster than one by one.
func (c *outcomes) prepare(first, last int32) {
	m := c.k.m
	c.all.prepare(first, last, func(*modelState) bool { return true })
	c.hubAlone.prepare(first, last, m.mustLeave)
	c.inTime.prepare(first, last, m.mustLeaveInTime)
}

// canRequest reports whether the agent can make requests.
func (w *modelState) canRequest() bool {
	return !w.agent.dead && w.net && w.agent.bootstrap == bootstrapWorks
}

// mustLeave reports whether the member must leave even if its agent never acts.
func (m *machine) mustLeave(w *modelState) bool { return w.member && w.leaveRequested() }

// mustLeaveInTime reports whether the member must leave before the deadline, with its agent.
func (m *machine) mustLeaveInTime(w *modelState) bool {
	return m.mustLeave(w) && w.canRequest() && !m.namespaceStuck && w.accepted == stateAccepted &&
		w.clock == inTime && !w.leave.forced
}

func (c *outcomes) check(i int32) (fault, *modelState) {
	m, w := c.k.m, c.k.states.at(i)
	n, converges := c.all.end(i)
	end := c.k.states.at(n)
	if !converges {
		return circle, end
	}
	if wrong := c.all.checkEnd(n); wrong != "" {
		return wrong, end
	}
	if m.mustLeave(w) {
		n, converges := c.hubAlone.end(i)
		switch end := c.k.states.at(n); {
		case !converges:
			return circle, end
		case !m.left(end):
			return endless, end
		}
	}
	a, able := &w.agent, w.canRequest()
	if m.mustLeaveInTime(w) {
		n, converges := c.inTime.end(i)
		switch end := c.k.states.at(n); {
		case !converges:
			return circle, end
		case !m.left(end) || end.leave.forced:
			return "a leave with a running agent does not end before the deadline", end
		}
	}
	// The agent leaves permanently: until it gets a new bootstrap credential. It may have just received the answer that
	// its MemberCluster was kept, or may be about to send another request because of that.
	kept := a.kept || a.joinRequest == uint8(JoinRequestDeregisteredKept) || a.seen.rejoin &&
		a.seen.report == uint8(ReportedClean)
	answered := a.issuedUID == goneUID || w.requests[0].answer == answerIssued && w.requests[0].bound == goneUID
	wasDeleted := a.registered && a.uid == goneUID || a.deregistered && !a.kept || !a.registered && (a.kept || answered)
	isOut := end.agent.bootstrap == bootstrapGone
	wanted := w.member && !w.deleting && !w.wantLeave && w.accepted == stateAccepted && end.namespace != uint8(Terminating)
	if m.disasters.any() && w.claim != mine {
		wanted = false // the member waits for an administrator
	}
	if wanted && able && !a.out && !m.bothJoined(end) && (!wasDeleted || !isOut) {
		return staysOut, end
	}
	if able && end.objects == leftover && (!m.disasters.any() || end.deregisters() && !end.awaitsAcceptance()) {
		return undone, end
	}
	if able && a.returns && a.request && !w.member && w.requests[0].answer != answerNone && end.member {
		return "a MemberCluster that was deleted while its agent waited to rejoin is created again", end
	}
	if able && a.registered && a.uid == goneUID && !kept && (!m.disasters.any() || w.tombstones&tombstoneOf(mine,
		goneUID) != 0) {
		if !isOut {
			return "the agent of a deleted MemberCluster does not end", end
		}
		if end.member && !w.member {
			return "a deleted MemberCluster is created again", end
		}
	}
	return "", end
}

// deregisters reports whether the hub has a record that the agent's member left.
func (w *modelState) deregisters() bool {
	return w.agent.registered && w.tombstones&(tombstoneOf(mine, w.agent.uid)|tombstoneOf(noAgent, w.agent.uid)) != 0
}

// awaitsAcceptance reports whether a MemberCluster with the agent's claim waits for an administrator to accept it.
// The cause is an old request that was restored, and whose agent had not been bound yet.
func (w *modelState) awaitsAcceptance() bool {
	return w.member && w.claim == mine && w.accepted == undecided
}

// left reports whether the hub has no objects of a member, except possibly its MemberCluster.
func (m *machine) left(w *modelState) bool {
	if w.member {
		_, plan := m.hubStep(w)
		if w.deleting || plan.phase != v1alpha1.PhaseLeft || w.claim != noAgent || w.leave.there && !w.leave.ended {
			return false
		}
	}
	return (w.namespace == uint8(Absent) || w.abandoned || m.namespaceStuck && w.namespace == uint8(Terminating)) &&
		w.access == noAgent
}

func (m *machine) bothJoined(w *modelState) bool {
	if !w.member || !w.joined || w.access != mine {
		return false
	}
	_, hub := m.hubStep(w)
	_, agent := m.agentStep(&w.agent)
	return hub.phase == v1alpha1.PhaseJoined && agent.Phase == Joined && w.agent.beating
}

// checkIdle checks that no component acts in a state in which nothing changes any more, except for periodic
// observations.
func (m *machine) checkIdle(w *modelState) fault {
	if w.member {
		if _, plan := m.hubStep(w); len(plan.actions) > 0 || plan.after != 0 && !m.namespaceStuck {
			return fault(fmt.Sprintf("the hub never becomes idle: actions %v, requeue after %s", plan.actions, plan.after))
		}
	}
	for i, request := range w.requests {
		if step := m.joinRequestStep(w, i); request.there && len(step.actions) > 0 {
			return fault(fmt.Sprintf("the JoinRequest never becomes idle: actions %v", step.actions))
		}
	}
	if w.agent.dead || w.agent.done {
		return ""
	}
	if _, step := m.agentStep(&w.agent); step.After < time.Second && !m.namespaceStuck {
		return fault(fmt.Sprintf("the agent never becomes idle: %s, requeue after %s", step.Message, step.After))
	}
	return ""
}

// models are the walks. Only the steps of administrators and the failures are limited. Of a model with undeclared
// changes, go test visits the nearest states; the step models of .ci/run visits all of them.
var models = []struct {
	name    string
	why     string
	machine machine
	// undeclared is true if the changes of phase are not part of the declared state machines.
	undeclared bool
}{
	// The largest model is the first one, because the models run in parallel.
	{
		name: "two leaders", why: "a leader that was paused and resumes deletes no object that was created since",
		machine: machine{adminSteps: 1, failures: 1, disasters: disasters{leaders: true}}, undeclared: true,
	},
	{
		name:    "administrators",
		why:     "administrators may change their decisions at any time, also before the former ones are completed",
		machine: machine{adminSteps: 2},
	},
	{
		name:    "crashes and partitions",
		why:     "crashes, lost answers, expired credentials and partitions may happen between any two actions",
		machine: machine{adminSteps: 1, failures: 1},
	},
	{
		name: "accepted by the Acceptor", why: "an Acceptor must not admit a member that an administrator has removed",
		machine: machine{adminSteps: 1, failures: 1, admission: membership.Accept},
	},
	{
		name: "status first", why: "a controller may write the status before it acts, and crash in between",
		machine: machine{adminSteps: 1, failures: 1, statusFirst: true},
	},
	{
		name: "namespace stuck", why: "a finalizer that is never removed must not block a leave forever",
		machine: machine{adminSteps: 2, namespaceStuck: true},
	},
	{
		name: "gates stuck", why: "a gate that stays closed when it is forced must not block a leave forever",
		machine: machine{adminSteps: 1, failures: 1, gatesStuck: true},
	},
	{
		name: "restores", why: "a hub that is restored must not treat missing state as a request",
		machine: machine{failures: 2, disasters: disasters{restores: true}}, undeclared: true,
	},
	{
		name: "restores and deleted objects", why: "a restore brings back objects that a user has deleted by hand",
		machine: machine{failures: 3, userDeletions: true, disasters: disasters{restores: true}}, undeclared: true,
	},
	{
		name: "restores under two leaders", why: "a leader that was paused before a restore has outdated state",
		machine: machine{failures: 3, disasters: disasters{restores: true, leaders: true}}, undeclared: true,
	},
	{
		name: "changed UIDs", why: "a MemberCluster that is missing or created again is not a request",
		machine: machine{adminSteps: 1, failures: 1, disasters: disasters{reapplied: true}}, undeclared: true,
	},
	{
		name: "lost tombstones",
		why:  "an expired tombstone must cause no clean-up and must not admit a removed member",
		machine: machine{
			adminSteps: 1,
			failures:   1,
			disasters:  disasters{expiry: true},
			admission:  membership.Accept,
		},
		undeclared: true,
	},
	{
		name: "another hub", why: "another hub never ends a membership, whatever its tombstones are",
		machine: machine{adminSteps: 1, failures: 1, disasters: disasters{otherHub: true}}, undeclared: true,
	},
	{
		name: "removed definition", why: "the deletion of a MemberCluster with its definition is not a request",
		machine: machine{adminSteps: 1, failures: 1, disasters: disasters{definitions: true}}, undeclared: true,
	},
	{
		name: "caches lag", why: "a cache may be outdated for minutes, for one kind or for all kinds",
		machine: machine{adminSteps: 1, failures: 1, lags: true}, undeclared: true,
	},
	{
		name: "deleted objects", why: "a member must not be cleaned up because a user deleted its objects on the hub",
		machine: machine{adminSteps: 1, failures: 1, userDeletions: true}, undeclared: true,
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
		m.configure(&whole)
		if model.undeclared && os.Getenv("MUSTER_MODEL") == "" {
			m.mostStates = 300_000
		}
		t.Run(model.name, func(t *testing.T) {
			t.Parallel()
			if !model.undeclared {
				changes[n] = newPhaseChanges()
			}
			start := time.Now()
			k, broken := m.verify(changes[n])
			states[n] = k.reached
			t.Logf("%s: %d states in %s", model.why, k.reached, time.Since(start).Round(time.Millisecond))
			for _, wrong := range slices.Sorted(maps.Keys(broken)) {
				t.Errorf("%s:\n%s", wrong, broken[wrong])
			}
		})
	}
}

// notUnderRace skips a walk under the race detector, which makes the walk ten times as slow. Walks share only what none
// of them changes. Without the race detector, go test visits a part of the largest ones, and the step models of .ci/run
// visits all of them.
func notUnderRace(t *testing.T) {
	t.Helper()
	if raceDetector {
		t.Skip("shares nothing with other goroutines: the step models of .ci/run walks the model")
	}
}

// configure extends a walk if requested (MUSTER_MODEL=deep, minutes), and shortens it under the race detector, which is
// slow and has no effect here.
func (m *machine) configure(whole *bool) {
	if m.admission == "" {
		m.admission = membership.Hold
	}
	switch {
	case os.Getenv("MUSTER_MODEL") == "deep" && !m.userDeletions:
		// Not for deletions by users: if a user deletes a Membership while a leave is canceled and the hub fails to
		// write its status, an administrator may have to clear the agent's former claim.
		m.adminSteps++
	case m.disasters.any() && !raceDetector && !testing.Short():
		return
	case raceDetector || testing.Short():
		*whole = false
		m.adminSteps, m.failures = 1, 0
	}
}

// verify visits the states of explore, and their final states, and returns the violated guarantees. It records the
// changes of phase unless changes is nil.
func (m *machine) verify(changes *phaseChanges) (*walk, map[fault]string) {
	k, broken := m.explore(starts, changes)
	// The agent does not act in this run, so the order of the components makes no difference.
	hubAlone := &run{k: k, fair: fairness{clock: true, untilLeft: true}}
	for _, agentFirst := range []bool{false, true} {
		c := k.newOutcomes(agentFirst, hubAlone)
		for i := int32(0); i < k.reached && (!m.stopAtFirst || len(broken) == 0); i++ {
			if i%batchSize == 0 {
				c.prepare(i, min(i+batchSize, k.reached))
			}
			if wrong, end := c.check(i); wrong != "" && m.isFault(wrong) && broken[wrong] == "" {
				broken[wrong] = fmt.Sprintf("%swhich is\n  %+v\nand ends in\n  %+v", k.trace(i), *k.states.at(i), *end)
			}
		}
	}
	return k, broken
}
