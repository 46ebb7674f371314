package lifecycle

import (
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// disasters selects the disasters of a model, in addition to crashes and partitions.
type disasters struct {
	restores  bool // the hub's etcd is restored to an earlier state
	reapplied bool // the MemberCluster is lost, or created again with another UID
	expiry    bool // the records of members that left are lost
	otherHub  bool // the agent gets the bootstrap credential of another hub
	leaders   bool // a leader is paused and resumes when another has led

	definitions bool // the CustomResourceDefinition of MemberClusters is deleted, with all MemberClusters
}

func (d disasters) any() bool {
	return d.restores || d.reapplied || d.expiry || d.otherHub || d.leaders || d.definitions
}

// Faults that are checked in a disaster, in addition to endless loops.
const (
	unrequestedClean      fault = "a member is cleaned up without a request"
	unrequestedDeparture  fault = "the agent records that it is deregistered without a request"
	unrequestedNamespace  fault = "the namespace is deleted without a request"
	unrequestedRevocation fault = "access is revoked without a request"
	unrequestedTombstone  fault = "the tombstone of a canceled leave is written"
	unrequestedRelease    fault = "the claim is released without a request"
	undone                fault = "the member has left the hub and its agent does not clean it up"
	endless               fault = "a leave without the agent does not end"
	staysOut              fault = "a member that should join does not join"
	readmitted            fault = "the request of a deleted member creates another member"
)

// isFault reports whether a fault applies in this model. After a disaster the hub has lost state: a leave may end
// before the member is clean, and its agent cleans up later, and a member that had left may need the acceptance of an
// administrator. A leader that resumes may create objects that are not needed any more; it must not delete any.
func (m *machine) isFault(wrong fault) bool {
	if !m.disasters.any() {
		return true
	}
	switch wrong {
	case circle,
		unrequestedClean,
		unrequestedDeparture,
		unrequestedNamespace,
		unrequestedRevocation,
		unrequestedTombstone,
		unrequestedRelease,
		readmitted,
		"the claim of another agent is replaced",
		"a credential is issued to a cluster that is not accepted":
		return true
	case undone, endless:
		return !m.disasters.leaders
	case staysOut:
		return m.disasters.reapplied || m.disasters.otherHub || m.disasters.leaders || m.disasters.definitions
	default:
		return false
	}
}

// hubState is the content of the hub's etcd.
type hubState struct {
	member, deleting, withDefinition, wantLeave, finalizer, joined, gatesClosed, abandoned bool

	accepted, claim, credential, clock, namespace, access uint8
	leave                                                 leavePart
	membership                                            membershipPart
	requests                                              [2]requestPart
	tombstones                                            tombstoneSet

	same bool // its MemberCluster is the current one
}

func (w *modelState) state() hubState {
	return hubState{
		member:         w.member,
		deleting:       w.deleting,
		withDefinition: w.withDefinition,
		wantLeave:      w.wantLeave,
		finalizer:      w.finalizer,
		joined:         w.joined,
		gatesClosed:    w.gatesClosed,
		abandoned:      w.abandoned,
		accepted:       w.accepted,
		claim:          w.claim,
		credential:     w.credential,
		clock:          w.clock,
		namespace:      w.namespace,
		access:         w.access,
		leave:          w.leave,
		membership:     w.membership,
		requests:       w.requests,
		tombstones:     w.tombstones,
		same:           w.member,
	}
}

// backups numbers the backups, so that a state stays small.
type backups struct {
	of  map[hubState]uint16
	all []hubState
}

func (b *backups) number(s hubState) uint16 {
	if b.of == nil {
		b.of, b.all = map[hubState]uint16{}, []hubState{{}} // 0 is none
	}
	n, known := b.of[s]
	if !known {
		n = uint16(len(b.all))
		b.of[s], b.all = n, append(b.all, s)
	}
	return n
}

// relabel changes a backup, decoded with its current names.
func (m *machine) relabel(w *modelState, change func(*hubState)) {
	if w.backup == 0 {
		return
	}
	s := m.backups.all[w.backup]
	change(&s)
	w.backup = m.backups.number(s)
}

// outdate records in the backup that its MemberCluster is not the current one any more, and returns the new name of
// its UID.
func (m *machine) outdate(w *modelState) uint8 {
	called := goneUID
	m.relabel(w, func(s *hubState) {
		if s.same {
			called = savedUID
		}
		s.same = false
	})
	return called
}

// restore restores the hub from the backup. Its leader is another one afterwards, with separate caches.
func (m *machine) restore(w *modelState) {
	s := m.backups.all[w.backup]
	rename := func(uid *uint8) {
		switch {
		case *uid == currentUID && !s.same:
			*uid = goneUID
		case *uid == savedUID && s.member:
			*uid = currentUID
		}
	}
	rename(&w.agent.uid)
	rename(&w.agent.requestedUID)
	rename(&w.agent.issuedUID)
	w.member, w.deleting, w.wantLeave, w.finalizer, w.joined, w.gatesClosed = s.member, s.deleting, s.wantLeave,
		s.finalizer,
		s.joined, s.gatesClosed
	w.withDefinition = s.withDefinition
	w.abandoned, w.accepted, w.claim, w.credential, w.clock, w.namespace = s.abandoned, s.accepted, s.claim, s.credential,
		s.clock, s.namespace
	w.access, w.leave, w.membership, w.requests, w.tombstones = s.access, s.leave, s.membership, s.requests, s.tombstones
	if w.objects == leftover {
		w.objects = dirty // the leave is undone
	}
	w.removalRequested = w.removalRequested || w.stable()
	w.hub, w.stale, w.paused, w.pausedOld, w.lag, w.backup = planPart{}, false, planPart{}, 0, lagPart{}, 0
}

// stable reports whether a user's request to remove the member still exists.
func (w *modelState) stable() bool {
	return w.member && (w.leaveRequested() || w.leave.there && !w.leave.ended)
}

// leaveRequested reports whether a user has requested that the member leaves.
func (w *modelState) leaveRequested() bool { return w.wantLeave || w.deleting && !w.withDefinition }

// uidChanges replaces the MemberCluster by another one with the same spec.
func (m *machine) uidChanges(w *modelState) {
	called := m.outdate(w)
	m.gone(w, called)
	w.deleting, w.withDefinition, w.finalizer, w.leave, w.joined, w.clock = false, false, false, leavePart{}, false,
		inTime
	w.membership, w.lag.membership = membershipPart{}, membershipPart{} // they belong to another UID
	w.hub, w.stale = planPart{}, false
}

// gone renames the UID of the former MemberCluster.
func (m *machine) gone(w *modelState, called uint8) {
	if w.paused.step != 0 {
		w.pausedOld |= pausedUID
	}
	rename := func(uid *uint8) {
		if *uid == currentUID {
			*uid = called
		}
	}
	rename(&w.agent.uid)
	rename(&w.agent.requestedUID)
	rename(&w.agent.issuedUID)
	for i := range w.requests {
		rename(&w.requests[i].requestedUID)
		rename(&w.requests[i].bound)
	}
	w.tombstones = w.tombstones.renamed(func(claim, uid uint8) (uint8, uint8) { rename(&uid); return claim, uid })
}

// lost removes all state of the member from the hub, without a record.
func (m *machine) lost(w *modelState) {
	called := m.outdate(w)
	m.gone(w, called)
	w.withDefinition = false
	w.member, w.deleting, w.wantLeave, w.finalizer, w.joined, w.gatesClosed, w.abandoned = false, false, false, false,
		false,
		false, false
	w.accepted, w.claim, w.leave, w.clock, w.namespace, w.access = undecided, noAgent, leavePart{}, inTime, uint8(
		Absent), noAgent
	w.membership, w.lag, w.requests, w.tombstones = membershipPart{}, lagPart{}, [2]requestPart{}, 0
	w.hub, w.stale, w.paused, w.pausedOld = planPart{}, false, planPart{}, 0
}

func (m *machine) disasterEdges(w modelState, visit func(edge)) {
	do := func(what string, change func(*modelState)) {
		to := w
		change(&to)
		visit(edge{step{"disaster", what}, to, ""})
	}
	d := m.disasters
	if d.restores && w.backup == 0 {
		do("a backup is created", func(w *modelState) { w.backup = m.backups.number(w.state()) })
	}
	if d.restores && w.backup != 0 {
		do("the hub is restored", func(w *modelState) { m.restore(w) })
		do("the hub is restored and refuses credentials issued after the backup",
			func(w *modelState) { m.restore(w); w.agent.credential = false })
	}
	if d.reapplied && w.member {
		do("the MemberCluster is created again", func(w *modelState) { m.uidChanges(w) })
		do("the hub is lost and a MemberCluster of the name is created", func(w *modelState) {
			accepted := w.accepted
			m.lost(w)
			w.member, w.accepted = true, accepted
		})
		do("the hub is lost", func(w *modelState) { m.lost(w) })
	}
	if d.expiry && w.tombstones != 0 && !w.requests[1].there {
		do("the tombstones are lost", func(w *modelState) { w.tombstones = 0 })
	}
	if d.otherHub && w.agent.bootstrap == bootstrapWorks {
		do("the bootstrap credential of another hub is installed", func(w *modelState) { w.agent.bootstrap = bootstrapOther })
	}
	if d.definitions && w.member && !w.deleting {
		do("the CustomResourceDefinition of MemberClusters is deleted", func(w *modelState) {
			w.deleting, w.withDefinition = true, true
			if w.changed(); !w.finalizer {
				m.memberGone(w)
			}
		})
	}
	if d.leaders && w.hub.step != 0 && w.paused.step == 0 {
		do("the leader is paused and another one leads", func(w *modelState) {
			w.paused, w.pausedOld, w.hub = w.hub, 0, planPart{}
			if w.stale {
				w.pausedOld = pausedMember
			}
			w.stale = false
		})
	}
}

// The changes since a leader was paused.
const (
	pausedMember uint8 = 1 << iota
	pausedNamespace
	pausedAccess
	pausedMembership
	pausedUID
)

// resumePaused continues the paused leader with its decision.
func (m *machine) resumePaused(w *modelState) (HubAction, fault) {
	leads, stale := w.hub, w.stale
	before := w.state()
	w.hub, w.stale = w.paused, w.pausedOld&pausedMember != 0
	plan := &m.hubs.values[w.hub.step]
	action := plan.actions[w.hub.next]
	if action == WriteTombstone && w.pausedOld&pausedUID == 0 && w.member && w.claim != noAgent && !w.stable() {
		return action, unrequestedTombstone // its creation has no precondition
	}
	if !m.noPreconditions && w.refusesPaused(action) {
		w.paused, w.pausedOld, w.hub, w.stale = planPart{}, 0, leads, stale
		return action + " (conflict)", ""
	}
	_, wrong := m.hubContinue(w)
	w.paused, w.hub, w.stale = w.hub, leads, stale
	if w.paused.step == 0 {
		w.pausedOld = 0
	}
	if after := w.state(); w.hub.step != 0 && w.memberWritten(before, after) {
		w.stale = true
	}
	return action, wrong
}

// refusesPaused reports whether the API server rejects a write because of its precondition.
func (w *modelState) refusesPaused(action HubAction) bool {
	switch action {
	case DeleteNamespace:
		return w.pausedOld&pausedNamespace != 0
	case RevokeAccess, GrantAccess:
		return w.pausedOld&pausedAccess != 0
	case WriteMembership:
		return w.pausedOld&pausedMembership != 0
	case WriteTombstone:
		return w.pausedOld&pausedMember != 0
	default:
		return false // all others fail without a precondition, or change no existing object
	}
}

func (w *modelState) memberWritten(before, after hubState) bool {
	a, b := before, after
	return a.member != b.member || a.deleting != b.deleting || a.wantLeave != b.wantLeave || a.finalizer != b.finalizer ||
		a.accepted != b.accepted || a.claim != b.claim || a.credential != b.credential || a.leave != b.leave ||
		a.joined != b.joined
}

// recordForPaused records the changes since the leader was paused.
func (w *modelState) recordForPaused(earlier *modelState) {
	if w.paused.step == 0 {
		return
	}
	before, after := earlier.state(), w.state()
	if w.memberWritten(before, after) {
		w.pausedOld |= pausedMember
	}
	if before.namespace != after.namespace {
		w.pausedOld |= pausedNamespace
	}
	if before.access != after.access {
		w.pausedOld |= pausedAccess
	}
	if before.membership != after.membership {
		w.pausedOld |= pausedMembership
	}
}

// otherHubAnswer returns the agent's observation of its request at another hub, which accepts all requests and has a
// record that this member has left. The agent does not check which hub answers: the answer of the hub must be
// sufficient.
func (m *machine) otherHubAnswer(w *modelState) JoinRequestState {
	a := &w.agent
	key := bit(a.registered) | uint64(a.requestedUID)<<1
	if _, state := m.others.get(key); state != nil {
		return *state
	}
	_, state := m.others.put(key, m.decideOtherHub(a))
	return *state
}

func (m *machine) decideOtherHub(a *agentPart) JoinRequestState {
	o := JoinRequestObserved{
		ClusterID: "id",
		Name:      "east",
		Agent:     RequesterSeen{Claim: claims[mine], MemberUID: uids[a.requestedUID]},
		Type:      v1alpha1.CredentialToken,
		CreatedAt: epoch,
		HubID:     "other",
		Acceptor:  AcceptorSeen{Acceptance: membership.Acceptance{Decision: membership.Accept}},
		Tombstones: []Tombstone{{MemberUID: uids[a.requestedUID], ClusterID: "id", Claim: claims[mine], Decided: true,
			Time: epoch}},
	}
	if a.registered {
		o.Agent.HubID = "this"
	}
	step := m.joinRequest(o)
	switch {
	case step.Reason == v1alpha1.ReasonDifferentHub:
		return JoinRequestDifferentHub
	case step.Answer == v1alpha1.AnswerDeregistered && a.registered:
		return JoinRequestDeregistered
	default:
		return JoinRequestHeld // joining another hub is not part of this model
	}
}
