package lifecycle

// fault is a violated guarantee that is visible in a transition, not in the resulting state.
type fault string

// hubAct carries out one action of the hub. A failure ends the round, and the hub observes again.
func (m *machine) hubAct(w *modelState, plan *hubPlan, action HubAction) (wrong fault) {
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
			w.tombstones |= tombstoneOf(w.claim, currentUID)
		}
	case ReleaseClaim:
		if failed = w.stale; !failed {
			if (m.disasters.leaders || m.disasters.definitions) && !w.stable() {
				wrong = unrequestedRelease
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
			break // the access exists already
		}
		if failed = w.namespace != uint8(Present) || w.claim == noAgent; !failed {
			w.access = w.subject()
			if plan.accepted != stateAccepted {
				wrong = "access is granted to a member that is not accepted"
			}
			if !w.membership.there && !m.userDeletions {
				wrong = "access is granted before the Membership exists: the agent would assume that it is deregistered"
			}
		}
	case RevokeAccess:
		if w.objects == dirty && !m.userDeletions && plan.leaving && !w.leave.forced && plan.accepted == stateAccepted {
			wrong = "access is revoked during a leave before the member is clean or the deadline has passed"
		}
		if m.disasters.leaders && w.access != noAgent && w.member && !w.stable() && w.accepted == stateAccepted &&
			w.claim == w.access {
			wrong = unrequestedRevocation
		}
		w.access = noAgent
	case DeleteNamespace:
		if w.objects == dirty && !m.userDeletions && !w.leave.forced {
			wrong = "the namespace is deleted before the member is clean, without force"
		}
		if w.gatesClosed && !m.gatesStuck {
			wrong = "the namespace is deleted while a gate is closed that was not forced"
		}
		if (m.disasters.leaders || m.disasters.definitions) && w.namespace == uint8(Present) && w.member && !w.stable() {
			wrong = unrequestedNamespace
		}
		if w.namespace == uint8(Present) {
			w.namespace = uint8(Terminating)
		}
		w.gatesClosed = false
		if w.objects == dirty {
			w.objects = leftover
		}
	case ReleaseNamespace:
		w.gatesClosed = false
	case ForceGates:
		if !w.leave.forced {
			wrong = "gates are forced before the force is recorded"
		}
		if !m.gatesStuck { // otherwise the round continues
			w.gatesClosed = false
		}
	case report:
		if failed = w.stale; failed {
			break
		}
		if w.leave.there && !w.leave.ended && plan.leave.there {
			if w.leave.forced && !plan.leave.forced {
				wrong = "the record of a forced leave becomes one without force"
			}
		}
		if plan.leave.there && plan.leave.ended && !w.leave.ended {
			waits := w.clock != timedOut
			if w.namespace != uint8(Absent) && (waits || !plan.leave.forced) || w.access != noAgent && waits ||
				w.claim != noAgent {
				wrong = "a leave is recorded as ended while objects of the member remain on the hub"
			}
		}
		if plan.joined && w.accepted != stateAccepted {
			wrong = "a member that is not accepted is reported as joined"
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
		w.hub, w.stale = planPart{}, false
	}
	return wrong
}

// changed records that a client other than the hub has written the MemberCluster.
func (w *modelState) changed() { w.stale = w.hub.step != 0 }

// memberGone changes the state after the last finalizer of a MemberCluster is removed.
func (m *machine) memberGone(w *modelState) (wrong fault) {
	if w.clock == timedOut && w.leave.forced && w.namespace == uint8(Terminating) {
		w.abandoned = true
	}
	withDefinition := w.withDefinition && !w.wantLeave
	if w.namespace != uint8(Absent) && !w.abandoned && !withDefinition {
		wrong = "a MemberCluster is removed before its namespace"
	}
	if w.access != noAgent && w.namespace != uint8(Terminating) && !withDefinition {
		wrong = "a MemberCluster is removed before the access of its agent"
	}
	if w.objects == dirty && !withDefinition {
		w.objects = leftover
	}
	m.gone(w, m.outdate(w))
	w.withDefinition = false
	w.member, w.deleting, w.wantLeave, w.accepted, w.claim, w.leave, w.joined, w.clock = false, false, false, undecided,
		noAgent, leavePart{}, false, inTime
	w.membership, w.gatesClosed = membershipPart{}, false
	w.lag.membership = membershipPart{} // it belongs to another member from now on
	w.hub, w.stale = planPart{}, false
	return wrong
}

// joinRequestAct carries out the step of a request. The status is not written if the hub ends before.
func (m *machine) joinRequestAct(w *modelState, i int, plan *joinRequestPlan, andReports bool) (wrong fault) {
	r := &w.requests[i]
	for _, action := range plan.actions {
		switch action {
		case CreateMember:
			if w.member {
				return wrong
			}
			if (r.requestedUID != noUID || r.bound != noUID || r.reason != 0) && (!m.disasters.any() || plan.accepts) {
				wrong = readmitted
			}
			w.member, w.finalizer, w.claim = true, true, uint8(i+1)
			w.changed()
		case BindMember:
			if w.claim != noAgent && w.claim != uint8(i+1) {
				wrong = "the claim of another agent is replaced"
			}
			if w.claim == noAgent && i == 1 && !m.pair {
				// The agent has deleted this claim key, so the claim would block it forever.
				wrong = "the member is bound to a claim that its agent has deleted"
			}
			w.claim, w.finalizer = uint8(i+1), true
			if w.twoTypes {
				w.credential = w.claim
			}
			w.changed()
		case AcceptMember:
			if w.accepted == stateDenied {
				wrong = "a member that an administrator denied is accepted"
			}
			w.accepted = stateAccepted
			w.changed()
		case IssueCredential:
			if w.accepted != stateAccepted || w.claim != uint8(i+1) {
				wrong = "a credential is issued to a cluster that is not accepted"
			}
			if w.access != uint8(i+1) {
				wrong = "a credential is issued while another agent has the access"
			}
			r.answer, r.reason, r.bound = answerIssued, 0, currentUID
			return wrong // the status in the plan is older
		}
	}
	if !andReports {
		return wrong
	}
	if plan.answer >= 0 {
		r.answer = uint8(plan.answer)
	}
	r.reason, r.bound = plan.reason, noUID
	// Like the controller: the member whose claim the request has, or had.
	if w.member && (w.claim == uint8(i+1) || plan.deregisters) {
		r.bound = currentUID
	}
	return wrong
}

// agentAct carries out one action of the agent. If lost is true, the hub receives the request, and the agent does not
// receive the response.
func (m *machine) agentAct(w *modelState, action AgentAction, lost bool) (wrong fault) {
	a := &w.agent
	failed := false
	switch action {
	case MakeRequest:
		if a.registered && a.waits() {
			wrong = "the agent sends a JoinRequest because of a refusal that may be temporary"
		}
		if !a.request || a.requestedUID != a.uid {
			a.request, a.requestedUID, a.joinRequest, a.issuedUID = true, a.uid, uint8(JoinRequestNotAsked), noUID
			w.requests[0].fresh = false
			m.relabel(w, func(s *hubState) { s.requests[0].fresh = false })
		}
	case AdoptMember:
		if failed = w.readMembership() != HubReplaced; failed {
			w.updateObservation()
			break
		}
		a.uid, a.hub, a.seen = currentUID, uint8(HubNotAsked), membershipPart{}
		a.request, w.requests[0].fresh = false, false
		m.relabel(w, func(s *hubState) { s.requests[0].fresh = false })
	case CheckJoinRequest:
		a.joinRequest = uint8(m.checkJoinRequest(w, &wrong))
		a.issuedUID = noUID
		if a.joinRequest == uint8(JoinRequestIssued) {
			a.issuedUID = w.requests[0].bound
		}
		if lost {
			a.joinRequest, a.issuedUID = uint8(JoinRequestUnreachable), noUID
		}
	case Register:
		if a.joinRequest != uint8(JoinRequestIssued) {
			wrong = "the agent registers without a credential"
		}
		m.relabel(w, func(s *hubState) { s.requests[0].fresh = false })
		a.registered, a.credential, a.policy, a.returns = true, true, false, false
		a.uid = a.issuedUID
		a.request, w.requests[0].fresh = false, false
		a.joinRequest, a.issuedUID, a.hub, a.seen, a.refusedTooLong = uint8(JoinRequestNotAsked), noUID, uint8(HubNotAsked),
			membershipPart{}, false
	case ReadMembership:
		w.updateObservation()
	case SavePolicy:
		a.policy = true
	case StartBeat:
		a.beating = true
	case StopBeat:
		if a.registered && !a.deregistered && !a.out && a.waits() {
			wrong = "the agent stops its heartbeat because of a refusal that may be temporary"
		}
		a.beating = false
	case ReportJoined, ReportClean:
		if failed = w.readMembership() != HubSeen; failed {
			w.updateObservation()
			break
		}
		if w.claim == mine { // a report of another claim has no effect
			w.membership.report = uint8(ReportedJoined)
		}
		if action == ReportClean {
			w.membership.report = uint8(ReportedClean)
			if w.objects != clean {
				wrong = "the agent reports an unclean member as clean"
			}
		}
		w.updateObservation()
		if lost {
			a.hub, a.seen, a.refusedTooLong = uint8(HubUnreachable), membershipPart{}, false
		}
	case RecordDeregistered:
		a.deregistered, a.kept = true, a.joinRequest == uint8(JoinRequestDeregisteredKept)
		if !w.removalRequested && !w.stable() {
			wrong = unrequestedDeparture
		}
		if w.member && a.uid == currentUID && w.claim == mine && wrong == "" {
			wrong = "the agent records that it is deregistered, and it is not"
		}
	case CleanMember:
		notified := a.hub == uint8(HubSeen) && a.seen.leave && a.seen.clean
		if !notified && !a.deregistered {
			wrong = "the agent cleans a member that was not deregistered"
		}
		if w.objects != clean && !w.removalRequested && !w.stable() {
			wrong = unrequestedClean
		}
		w.objects, a.memberState = clean, uint8(MemberClean)
	case RecordOut:
		if w.objects != clean {
			wrong = "the agent has left permanently and the member is not clean"
		}
		a.out = true
	case ForgetBootstrap:
		a.bootstrap = bootstrapGone
	case ForgetRecord, StartOver:
		if w.objects != clean {
			wrong = "the agent deletes its record and the member is not clean"
		}
		w.givesUpClaim()
		m.relabel(w, func(s *hubState) { s.givesUpClaim() })
		w.removalRequested = false
		kept := action == StartOver && (a.kept || a.registered)
		*a = agentPart{
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
		a.plan = planPart{}
	}
	return wrong
}

// checkJoinRequest performs CheckJoinRequest: it creates the request, or reads the answer.
func (m *machine) checkJoinRequest(w *modelState, wrong *fault) JoinRequestState {
	a, r := &w.agent, &w.requests[0]
	switch {
	case !w.net:
		return JoinRequestUnreachable
	case a.bootstrap == bootstrapOther && a.request:
		return m.otherHubAnswer(w)
	case a.bootstrap != bootstrapWorks:
		return JoinRequestRefused
	case !a.request:
		*wrong = "the agent checks a JoinRequest that it has not recorded"
		return JoinRequestNotAsked
	case !r.there:
		if a.registered && a.requestedUID == noUID {
			*wrong = "a registered agent sends a request without a member UID"
		}
		*r = requestPart{there: true, fresh: true, requestedUID: a.requestedUID}
		return JoinRequestPending
	}
	switch r.answer {
	case answerBlocked:
		return JoinRequestHeld
	case answerDenied:
		return JoinRequestDenied
	case answerDeregistered:
		if r.bound == currentUID {
			return JoinRequestDeregisteredKept
		}
		return JoinRequestDeregistered
	case answerIssued:
		if r.fresh {
			return JoinRequestIssued
		}
		// An earlier request of this claim, whose answer was read or cannot be read any more. The hub will remove it.
		return JoinRequestPending
	default:
		return JoinRequestPending
	}
}

// updateObservation updates the agent's observation of its Membership, by a read or a watch.
func (w *modelState) updateObservation() {
	w.agent.hub, w.agent.seen = uint8(w.readMembership()), membershipPart{}
	switch HubState(w.agent.hub) {
	case HubSeen:
		w.agent.seen, w.agent.refusedTooLong = w.membership, false
	case HubUnreachable:
		w.agent.refusedTooLong = false
	}
}

// givesUpClaim makes the agent's current claim a former one.
func (w *modelState) givesUpClaim() {
	for _, claim := range []*uint8{&w.claim, &w.access, &w.lag.access} {
		if *claim == mine {
			*claim = older
		}
	}
	w.lag.membership.report = uint8(ReportedNothing) // it was reported with another claim than the next one
	w.tombstones = w.tombstones.renamed(func(claim, uid uint8) (uint8, uint8) {
		if claim == mine {
			claim = older
		}
		return claim, uid
	})
	if w.requests[0].there {
		w.requests[1] = w.requests[0]
		w.requests[1].fresh = false
	}
	w.requests[0] = requestPart{}
}

// givesUpClaim changes a backup in the same way.
func (s *hubState) givesUpClaim() {
	for _, claim := range []*uint8{&s.claim, &s.access} {
		if *claim == mine {
			*claim = older
		}
	}
	s.tombstones = s.tombstones.renamed(func(claim, uid uint8) (uint8, uint8) {
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
	s.requests[0] = requestPart{}
}
