package lifecycle

// fault is a violated guarantee that is visible in a transition, not in the resulting state.
type fault string

// hubActs carries out one action of the hub. A failure ends the round, and the hub observes again.
func (m *machine) hubActs(w *world, plan *hubPlan, action HubAction) (wrong fault) {
	failed := false
	switch action {
	case AddFinalizer:
		if failed = w.stale || w.deleting; !failed {
			w.finalizer = true
		}
	case RemoveFinalizer:
		if failed = w.stale; !failed {
			w.finalizer = false
			wrong = m.memberGone(w)
		}
	case WriteTombstone:
		if failed = w.stale; !failed {
			w.tombs |= tombOf(w.claim, thatUID)
		}
	case ReleaseClaim:
		if failed = w.stale; !failed {
			if (m.disasters.leaders || m.disasters.definitions) && !w.stable() {
				wrong = unaskedRelease
			}
			w.claim = noAgent
		}
	case CreateNamespace:
		if w.namespace == uint8(Absent) {
			w.namespace = uint8(Present)
		}
	case WriteMembership:
		if failed = w.namespace != uint8(Present) || w.hub.blind&lagMemberships != 0; !failed {
			notified := plan.notified
			notified.there, notified.report = true, w.membership.report
			w.membership = notified
		}
	case GrantAccess:
		if w.hub.blind&lagBindings != 0 && w.access != noAgent {
			break // it is there already
		}
		if failed = w.namespace != uint8(Present) || w.claim == noAgent; !failed {
			w.access = w.subject()
			if plan.accepted != yesAccepted {
				wrong = "access is granted to a member that is not accepted"
			}
			if !w.membership.there && !m.vandals {
				wrong = "access is granted before there is a Membership: the agent would take itself for deregistered"
			}
		}
	case RevokeAccess:
		if w.holds == dirty && !m.vandals && plan.leaving && !w.leave.forced && plan.accepted == yesAccepted {
			wrong = "access goes during a leave while the member is not clean, and no deadline passed"
		}
		if m.disasters.leaders && w.access != noAgent && w.member && !w.stable() && w.accepted == yesAccepted &&
			w.claim == w.access {
			wrong = unaskedRevocation
		}
		w.access = noAgent
	case DeleteNamespace:
		if w.holds == dirty && !m.vandals && !w.leave.forced {
			wrong = "the namespace goes while the member is not clean, and nothing was forced"
		}
		if w.gatesShut && !m.unforceable {
			wrong = "the namespace goes while a gate is shut that was not told what becomes of what it keeps"
		}
		if (m.disasters.leaders || m.disasters.definitions) && w.namespace == uint8(Present) && w.member && !w.stable() {
			wrong = unaskedNamespace
		}
		if w.namespace == uint8(Present) {
			w.namespace = uint8(Terminating)
		}
		w.gatesShut = false
		if w.holds == dirty {
			w.holds = leftover
		}
	case ReleaseNamespace:
		w.gatesShut = false
	case ForceGates:
		if !w.leave.forced {
			wrong = "gates are forced before that is recorded"
		}
		if !m.unforceable { // and where they cannot be, the round goes on
			w.gatesShut = false
		}
	case report:
		if failed = w.stale; failed {
			break
		}
		if w.leave.there && !w.leave.ended && plan.leave.there {
			if w.leave.forced && !plan.leave.forced {
				wrong = "a leave that was forced is recorded as one that was not"
			}
		}
		if plan.leave.there && plan.leave.ended && !w.leave.ended {
			waits := w.clock != timedOut
			if w.namespace != uint8(Absent) && (waits || !plan.leave.forced) || w.access != noAgent && waits ||
				w.claim != noAgent {
				wrong = "a leave is recorded as ended, and something of the member is left on the hub"
			}
		}
		if plan.joined && w.accepted != yesAccepted {
			wrong = "a member is reported as joined that is not accepted"
		}
		if !w.leave.there || !plan.leave.there || w.leave.ended && !plan.leave.ended {
			w.clock = inTime
		}
		if plan.leave.late && !w.leave.late {
			w.clock = overdue // the hub still waits for the deadline
		}
		w.leave, w.joined = plan.leave, plan.joined
	}
	if failed {
		w.hub, w.stale = planWorld{}, false
	}
	return wrong
}

// changed records that a client other than the hub has written the MemberCluster.
func (w *world) changed() { w.stale = w.hub.step != 0 }

// memberGone changes the world after the last finalizer of a MemberCluster is removed.
func (m *machine) memberGone(w *world) (wrong fault) {
	if w.clock == timedOut && w.leave.forced && w.namespace == uint8(Terminating) {
		w.abandoned = true
	}
	unserved := w.unserved && !w.wantLeave
	if w.namespace != uint8(Absent) && !w.abandoned && !unserved {
		wrong = "a MemberCluster is gone, and its namespace is there"
	}
	if w.access != noAgent && w.namespace != uint8(Terminating) && !unserved {
		wrong = "a MemberCluster is gone, and its agent has access"
	}
	if w.holds == dirty && !unserved {
		w.holds = leftover
	}
	m.gone(w, m.outdate(w))
	w.unserved = false
	w.member, w.deleting, w.wantLeave, w.accepted, w.claim, w.leave, w.joined, w.clock = false, false, false, undecided,
		noAgent, leaveWorld{}, false, inTime
	w.membership, w.gatesShut = membershipWorld{}, false
	w.lag.membership = membershipWorld{} // it is of another member from now on
	w.hub, w.stale = planWorld{}, false
	return wrong
}

// joinRequestActs carries out the step of a request. The status is not written if the hub ends before.
func (m *machine) joinRequestActs(w *world, i int, plan *joinRequestPlan, andReports bool) (wrong fault) {
	r := &w.requests[i]
	for _, action := range plan.actions {
		switch action {
		case CreateMember:
			if w.member {
				return wrong
			}
			if (r.asks != noUID || r.bound != noUID || r.reason != 0) && (!m.disasters.any() || plan.accepts) {
				wrong = readmitted
			}
			w.member, w.finalizer, w.claim = true, true, uint8(i+1)
			w.changed()
		case BindMember:
			if w.claim != noAgent && w.claim != uint8(i+1) {
				wrong = "a claim is taken away"
			}
			if w.claim == noAgent && i == 1 && !m.pair {
				// The agent has given this claim up and would be held by it for ever.
				wrong = "a claim that its agent has given up binds the member"
			}
			w.claim, w.finalizer = uint8(i+1), true
			if w.apart {
				w.credential = w.claim
			}
			w.changed()
		case AcceptMember:
			if w.accepted == noDenied {
				wrong = "a member that an administrator denied is accepted"
			}
			w.accepted = yesAccepted
			w.changed()
		case IssueCredential:
			if w.accepted != yesAccepted || w.claim != uint8(i+1) {
				wrong = "a credential is issued to a cluster that is not accepted"
			}
			if w.access != uint8(i+1) {
				wrong = "a credential is issued that is of no use, since the access is another's"
			}
			r.answer, r.reason, r.bound = answerIssued, 0, thatUID
			return wrong // what the plan says of the status is older than that
		}
	}
	if !andReports {
		return wrong
	}
	if plan.answer >= 0 {
		r.answer = uint8(plan.answer)
	}
	r.reason, r.bound = plan.reason, noUID
	// As the controller has it: the member whose claim it has, or had.
	if w.member && (w.claim == uint8(i+1) || plan.deregisters) {
		r.bound = thatUID
	}
	return wrong
}

// agentActs carries out one action of the agent. If lost is true, the hub receives the request, and the agent does not
// receive the response.
func (m *machine) agentActs(w *world, action AgentAction, lost bool) (wrong fault) {
	a := &w.agent
	failed := false
	switch action {
	case MakeRequest:
		if a.registered && a.waits() {
			wrong = "the agent sends a JoinRequest because of a refusal that may be a passing one"
		}
		if !a.request || a.asks != a.uid {
			a.request, a.asks, a.joinRequest, a.given = true, a.uid, uint8(JoinRequestNotAsked), noUID
			w.requests[0].fresh = false
			m.relabel(w, func(s *hubState) { s.requests[0].fresh = false })
		}
	case AdoptMember:
		if failed = w.reaches() != HubReplaced; failed {
			w.look()
			break
		}
		a.uid, a.hub, a.seen = thatUID, uint8(HubNotAsked), membershipWorld{}
		a.request, w.requests[0].fresh = false, false
		m.relabel(w, func(s *hubState) { s.requests[0].fresh = false })
	case CheckJoinRequest:
		a.joinRequest = uint8(m.ask(w, &wrong))
		a.given = noUID
		if a.joinRequest == uint8(JoinRequestIssued) {
			a.given = w.requests[0].bound
		}
		if lost {
			a.joinRequest, a.given = uint8(JoinRequestUnreachable), noUID
		}
	case Register:
		if a.joinRequest != uint8(JoinRequestIssued) {
			wrong = "the agent registers without a credential"
		}
		m.relabel(w, func(s *hubState) { s.requests[0].fresh = false })
		a.registered, a.credential, a.policy, a.returns = true, true, false, false
		a.uid = a.given
		a.request, w.requests[0].fresh = false, false
		a.joinRequest, a.given, a.hub, a.seen, a.outwaited = uint8(JoinRequestNotAsked), noUID, uint8(HubNotAsked),
			membershipWorld{}, false
	case ReadMembership:
		w.look()
	case SavePolicy:
		a.policy = true
	case StartBeat:
		a.beating = true
	case StopBeat:
		if a.registered && !a.deregistered && !a.out && a.waits() {
			wrong = "the agent stops its heartbeat because of a refusal that may be a passing one"
		}
		a.beating = false
	case ReportJoined, ReportClean:
		if failed = w.reaches() != HubSeen; failed {
			w.look()
			break
		}
		if w.claim == mine { // a report of another claim counts for nothing
			w.membership.report = uint8(ReportedJoined)
		}
		if action == ReportClean {
			w.membership.report = uint8(ReportedClean)
			if w.holds != clean {
				wrong = "the agent reports a member as clean that is not"
			}
		}
		w.look()
		if lost {
			a.hub, a.seen, a.outwaited = uint8(HubUnreachable), membershipWorld{}, false
		}
	case RecordDeregistered:
		a.deregistered, a.kept = true, a.joinRequest == uint8(JoinRequestDeregisteredKept)
		if !w.asked && !w.stable() {
			wrong = unaskedDeparture
		}
		if w.member && a.uid == thatUID && w.claim == mine && wrong == "" {
			wrong = "the agent takes itself for deregistered, and is not"
		}
	case CleanMember:
		notified := a.hub == uint8(HubSeen) && a.seen.leave && a.seen.clean
		if !notified && !a.deregistered {
			wrong = "the agent cleans a member that was not deregistered"
		}
		if w.holds != clean && !w.asked && !w.stable() {
			wrong = unaskedClean
		}
		w.holds, a.said = clean, uint8(MemberClean)
	case RecordOut:
		if w.holds != clean {
			wrong = "the agent is out for good and the member is not clean"
		}
		a.out = true
	case ForgetBootstrap:
		a.bootstrap = bootstrapGone
	case ForgetRecord, StartOver:
		if w.holds != clean {
			wrong = "the agent forgets what it knew and the member is not clean"
		}
		w.givesUpClaim()
		m.relabel(w, func(s *hubState) { s.givesUpClaim() })
		w.asked = false
		kept := action == StartOver && (a.kept || a.registered)
		*a = agentWorld{
			bootstrap: a.bootstrap,
			kept:      kept,
			plan:      a.plan,
			beating:   a.beating,
			returns:   a.returns || a.registered,
		}
	default:
		wrong = fault("unknown action " + action)
	}
	if failed {
		a.plan = planWorld{}
	}
	return wrong
}

// ask performs CheckJoinRequest: it creates the request, or reads the answer.
func (m *machine) ask(w *world, wrong *fault) JoinRequestState {
	a, r := &w.agent, &w.requests[0]
	switch {
	case !w.net:
		return JoinRequestUnreachable
	case a.bootstrap == bootstrapOther && a.request:
		return m.elsewhere(w)
	case a.bootstrap != bootstrapWorks:
		return JoinRequestRefused
	case !a.request:
		*wrong = "the agent checks a JoinRequest that it has not recorded"
		return JoinRequestNotAsked
	case !r.there:
		if a.registered && a.asks == noUID {
			*wrong = "a member asks as though it never was one"
		}
		*r = requestWorld{there: true, fresh: true, asks: a.asks}
		return JoinRequestPending
	}
	switch r.answer {
	case answerBlocked:
		return JoinRequestHeld
	case answerDenied:
		return JoinRequestDenied
	case answerDeregistered:
		if r.bound == thatUID {
			return JoinRequestDeregisteredKept
		}
		return JoinRequestDeregistered
	case answerIssued:
		if r.fresh {
			return JoinRequestIssued
		}
		// An earlier request of this claim, whose answer was taken, or can be no more: the hub will remove it.
		return JoinRequestPending
	default:
		return JoinRequestPending
	}
}

// look updates the agent's observation of its Membership, by a read or a watch.
func (w *world) look() {
	w.agent.hub, w.agent.seen = uint8(w.reaches()), membershipWorld{}
	switch HubState(w.agent.hub) {
	case HubSeen:
		w.agent.seen, w.agent.outwaited = w.membership, false
	case HubUnreachable:
		w.agent.outwaited = false
	}
}

// givesUpClaim makes the agent's current claim a former one.
func (w *world) givesUpClaim() {
	for _, claim := range []*uint8{&w.claim, &w.access, &w.lag.access} {
		if *claim == mine {
			*claim = older
		}
	}
	w.lag.membership.report = uint8(ReportedNothing) // by another claim than the next one's
	w.tombs = w.tombs.renamed(func(claim, uid uint8) (uint8, uint8) {
		if claim == mine {
			claim = older
		}
		return claim, uid
	})
	if w.requests[0].there {
		w.requests[1] = w.requests[0]
		w.requests[1].fresh = false
	}
	w.requests[0] = requestWorld{}
}

// givesUpClaim changes a backup in the same way.
func (s *hubState) givesUpClaim() {
	for _, claim := range []*uint8{&s.claim, &s.access} {
		if *claim == mine {
			*claim = older
		}
	}
	s.tombs = s.tombs.renamed(func(claim, uid uint8) (uint8, uint8) {
		if claim == mine {
			claim = older
		}
		return claim, uid
	})
	s.membership.report = uint8(ReportedNothing)
	if s.requests[0].there {
		s.requests[1] = s.requests[0]
		s.requests[1].fresh = false
	}
	s.requests[0] = requestWorld{}
}
