package lifecycle

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// modelState is a joint state of one cluster's hub, JoinRequests and agent. It is small and comparable, so that all
// reachable states fit into a map. Names are relative, which makes their number finite: a UID is that of the current
// MemberCluster or of a former one; a claim is the current one of the agent or a former one.
type modelState struct {
	// The MemberCluster.
	member         bool
	deleting       bool
	withDefinition bool // it is deleted with its CustomResourceDefinition
	wantLeave      bool
	accepted       uint8 // unset, yes, denied
	finalizer      bool
	claim          uint8 // none, mine, older
	twoTypes       bool  // the two claims request credentials of different types
	credential     uint8 // the claim whose type is recorded; used if the types differ
	leave          leavePart
	joined         bool // the recorded condition Joined is True
	clock          uint8

	// The objects of the member on the hub.
	namespace   uint8
	access      uint8 // the subject of the RoleBinding: none, mine, older
	membership  membershipPart
	gatesClosed bool // Works exist
	abandoned   bool // the namespace exists after its MemberCluster was removed

	requests   [2]requestPart // created with the claim mine and with an older one
	tombstones tombstoneSet

	agent   agentPart
	objects memberPart
	net     bool // the agent reaches the hub

	lag              lagPart
	hub              planPart
	paused           planPart // of a leader that was paused
	backup           uint16   // of the hub; 0: there is none
	removalRequested bool     // a user has requested the removal of the member that the agent is registered as
	// pausedOld are the changes since the leader was paused.
	pausedOld  uint8
	stale      bool // the MemberCluster has changed since the hub read it
	adminSteps uint8
	failures   uint8
}

// tombstoneSet contains the tombstones, a bit for each claim and UID.
type tombstoneSet uint16

const tombstoneBits = 9

func tombstoneOf(claim, uid uint8) tombstoneSet {
	if uid == noUID {
		return 0
	}
	return 1 << (claim*3 + uid - currentUID)
}

// renamed returns the set after a renaming.
func (t tombstoneSet) renamed(rename func(claim, uid uint8) (uint8, uint8)) (out tombstoneSet) {
	if t == 0 {
		return 0
	}
	for claim := noAgent; claim <= older; claim++ {
		for uid := currentUID; uid <= savedUID; uid++ {
			if t&tombstoneOf(claim, uid) != 0 {
				out |= tombstoneOf(rename(claim, uid))
			}
		}
	}
	return out
}

func (t tombstoneSet) list() (out []Tombstone) {
	for claim := noAgent; claim <= older; claim++ {
		for uid := currentUID; uid <= savedUID; uid++ {
			if t&tombstoneOf(claim, uid) != 0 {
				out = append(
					out,
					Tombstone{
						MemberUID: uids[uid],
						Claim:     claims[claim],
						ClusterID: "id",
						Kept:      uid == currentUID,
						Decided:   true,
						Time:      epoch,
					},
				)
			}
		}
	}
	return out
}

// lagPart is the content of the hub's paused caches.
type lagPart struct {
	kinds      uint8 // the kinds whose caches are paused
	namespace  uint8
	access     uint8
	membership membershipPart
}

// The kinds whose caches can be paused.
const (
	lagNamespaces uint8 = 1 << iota
	lagBindings
	lagMemberships
	lagAll = lagNamespaces | lagBindings | lagMemberships
)

type leavePart struct {
	there, awaitsAgent, forced, ended bool
	awaitsNamespace                   bool
	late                              bool // the leave was forced only after the deadline
}

type membershipPart struct {
	there, leave, rejoin, clean bool
	report                      uint8
}

type requestPart struct {
	there        bool
	fresh        bool  // the agent has recorded this request
	requestedUID uint8 // spec.memberUID: none, current, gone
	bound        uint8 // status.memberUID: none, current, gone
	answer       uint8
	reason       uint8 // the reason of a blocked request, if it has an effect
}

type agentPart struct {
	dead, done bool
	bootstrap  uint8 // valid, refused, deleted, of another hub

	// Recorded.
	request            bool  // with a claim key, which is kept longer
	requestedUID       uint8 // the member's UID in the request
	registered, policy bool
	uid                uint8 // of the MemberCluster that the agent is registered with
	credential         bool  // the credential is valid
	deregistered, kept bool
	out                bool
	returns            bool // not recorded: the agent has left a MemberCluster that was kept

	// In memory.
	joinRequest, hub uint8
	refusedTooLong   bool  // the hub has refused the agent for ShutOutTimeout
	issuedUID        uint8 // the UID in the answer, if the answer has a credential
	seen             membershipPart
	beating          bool
	memberState      uint8 // the result of the cleaners in this round
	plan             planPart
}

// memberPart is the existence of the hub's objects on the member.
type memberPart uint8

// planPart is a step in progress: its number among all observed steps, and its position.
type planPart struct {
	step  uint16 // 0: none
	next  uint8
	blind uint8 // the kinds whose caches were outdated at the decision
}

const (
	clean    memberPart = iota
	dirty               // objects of this membership exist
	leftover            // objects of an ended membership exist
)

const (
	noAgent uint8 = iota
	mine
	older
)

const (
	noUID uint8 = iota
	currentUID
	goneUID
	savedUID // of the MemberCluster in the backup, which does not exist any more either
)

const (
	undecided uint8 = iota
	stateAccepted
	stateDenied
)

const (
	inTime uint8 = iota
	overdue
	timedOut
)

const (
	bootstrapWorks uint8 = iota
	bootstrapRefused
	bootstrapGone
	bootstrapOther
)

var answers = []v1alpha1.JoinAnswer{
	"",
	v1alpha1.AnswerPending,
	v1alpha1.AnswerHeld,
	v1alpha1.AnswerDenied,
	v1alpha1.AnswerDeregistered,
	v1alpha1.AnswerIssued,
}

var reasons = []string{"", v1alpha1.ReasonStateLeave, v1alpha1.ReasonClusterIDTaken}

const (
	answerNone uint8 = iota
	answerPending
	answerBlocked
	answerDenied
	answerDeregistered
	answerIssued
)

var (
	epoch    = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	deadline = 15 * time.Minute
	claims   = []string{"", "mine", "older"}
	uids     = []types.UID{"", "current", "gone", "saved"}
)

func (w *modelState) now() time.Time {
	now := epoch.Add([]time.Duration{time.Minute, deadline, deadline + NamespaceTimeout}[w.clock])
	if w.leave.late { // the clock was reset when the leave was forced
		now = now.Add(NamespaceTimeout)
	}
	return now
}

func (w *modelState) desired() v1alpha1.DesiredState {
	if w.wantLeave {
		return v1alpha1.StateLeave
	}
	return v1alpha1.StateJoin
}

func (w *modelState) acceptance() *bool {
	return []*bool{nil, new(true), new(false)}[w.accepted]
}

func (m membershipPart) observed() *MembershipSeen {
	if !m.there {
		return nil
	}
	state := v1alpha1.StateJoin
	if m.leave {
		state = v1alpha1.StateLeave
	}
	return &MembershipSeen{State: state, Rejoin: m.rejoin, Clean: m.clean, Report: AgentReport(m.report)}
}

func (l leavePart) record() *v1alpha1.LeaveStatus {
	if !l.there {
		return nil
	}
	record := &v1alpha1.LeaveStatus{
		StartedAt: metav1.NewTime(epoch), Deadline: metav1.NewTime(epoch.Add(deadline)),
		Forced: l.forced, Ended: l.ended,
	}
	if l.forced {
		at := epoch.Add(deadline)
		if l.late {
			at = at.Add(NamespaceTimeout)
		}
		record.ForcedAt = new(metav1.NewTime(at))
	}
	if l.awaitsAgent {
		record.Waiting = waitingForAgent
	}
	if l.awaitsNamespace {
		record.Waiting = waitingForNamespace
	}
	return record
}

// hubObserved returns the observation of the hub's controller, with the result of the gates.
func (w *modelState) hubObserved() HubObserved {
	o := HubObserved{
		Now: w.now(), Deletion: DeletionSeen{Requested: w.deleting, WithDefinition: w.withDefinition},
		Spec:      SpecSeen{Desired: w.desired(), Accepted: w.acceptance(), Claimed: w.claim != noAgent, Deadline: deadline},
		Finalizer: w.finalizer, Leave: w.leave.record(),
		Namespace: Presence(w.namespace), Membership: w.membership.observed(), Gates: &GatesSeen{},
		// Like the controller: the desired access, or any access if no access is desired.
		Access: w.access != noAgent && (w.accepted != stateAccepted || w.claim == noAgent || w.access == w.subject()),
	}
	if w.gatesClosed {
		o.Gates = &GatesSeen{Waiting: "works", Remaining: []string{"work/guestbook"}}
	}
	return o
}

// cached returns the state according to the caches of the hub, and the kinds that are outdated.
func (w *modelState) cached() (shown modelState, blind uint8) {
	shown = *w
	if w.lag.kinds&lagNamespaces != 0 && w.namespace != w.lag.namespace {
		shown.namespace, blind = w.lag.namespace, blind|lagNamespaces
	}
	if w.lag.kinds&lagBindings != 0 && w.access != w.lag.access {
		shown.access, blind = w.lag.access, blind|lagBindings
	}
	if w.lag.kinds&lagMemberships != 0 && w.membership != w.lag.membership {
		shown.membership, blind = w.lag.membership, blind|lagMemberships
	}
	return shown, blind
}

// pauseCaches pauses caches at the current state.
func (w *modelState) pauseCaches(kinds uint8) {
	w.lag = lagPart{kinds: kinds}
	if kinds&lagNamespaces != 0 {
		w.lag.namespace = w.namespace
	}
	if kinds&lagBindings != 0 {
		w.lag.access = w.access
	}
	if kinds&lagMemberships != 0 {
		w.lag.membership = w.membership
	}
}

func (w *modelState) joinRequestObserved(i int, admission membership.Decision) JoinRequestObserved {
	r := w.requests[i]
	o := JoinRequestObserved{
		Status:     AnswerSeen{Answer: answers[r.answer], Reason: reasons[r.reason], Bound: uids[r.bound]},
		Acceptor:   AcceptorSeen{Acceptance: membership.Acceptance{Decision: admission}},
		ClusterID:  "id",
		Name:       "east",
		Agent:      RequesterSeen{Claim: claims[i+1], MemberUID: uids[r.requestedUID]},
		Type:       w.typeOf(uint8(i + 1)),
		CreatedAt:  epoch,
		HubID:      "this",
		Tombstones: w.tombstones.list(),
	}
	if w.member {
		o.Members.ByID = &MemberSeen{
			Name:       "east",
			UID:        uids[currentUID],
			ClusterID:  "id",
			Claim:      claims[w.claim],
			Accepted:   w.acceptance(),
			Credential: w.typeOf(w.credential),
			Deleting:   w.deleting,
			Desired:    w.desired(),
			Leaving:    w.leave.there && !w.leave.ended,
			Prepared:   w.prepared(),
			AgentSeen:  AgentSeen{Reported: w.reported()},
		}
		o.Members.ByName = o.Members.ByID
	}
	return o
}

// reported returns the claim of the agent that has written the status of the Membership. It is used only if it is the
// member's.
func (w *modelState) reported() string {
	if w.membership.there && w.membership.report != uint8(ReportedNothing) {
		return claims[mine]
	}
	return ""
}

func (w *modelState) prepared() bool {
	return w.namespace == uint8(Present) && w.membership.there && w.access != noAgent && w.access == w.subject()
}

// subject returns the subject of the access. If the recorded type is that of another claim, it is that claim's: like a
// ServiceAccount, it does not depend on the agent with its token.
func (w *modelState) subject() uint8 {
	if w.twoTypes && w.claim != noAgent {
		return w.credential
	}
	return w.claim
}

// typeOf returns the type of credential that a claim requests.
func (w *modelState) typeOf(claim uint8) v1alpha1.CredentialType {
	if w.twoTypes && claim == older {
		return v1alpha1.CredentialCertificate
	}
	return v1alpha1.CredentialToken
}

func (a *agentPart) observed() AgentObserved {
	o := AgentObserved{
		Now:              epoch,
		JoinRequest:      JoinRequestState(a.joinRequest),
		Hub:              HubState(a.hub),
		JoinRequestSince: epoch,
		HubSince:         epoch,
		PolicySaved:      a.policy,
		Beating:          a.beating,
		Member:           MemberState(a.memberState),
		Record: Record{
			Claim:        a.request,
			Registered:   a.registered,
			Deregistered: a.deregistered,
			Kept:         a.kept,
			Out:          a.out,
		},
	}
	if a.refusedTooLong {
		o.HubSince = epoch.Add(-ShutOutTimeout)
	}
	if seen := a.seen.observed(); seen != nil {
		o.Membership = *seen
	}
	return o
}

// readMembership returns the agent's observation if it read its Membership now.
func (w *modelState) readMembership() HubState {
	switch {
	case !w.net:
		return HubUnreachable
	case w.access != mine || !w.agent.credential:
		return HubRefused
	case !w.membership.there:
		return HubGone
	case w.agent.uid != currentUID && w.claim == mine:
		return HubReplaced
	case w.agent.uid != currentUID:
		return HubOther
	default:
		return HubSeen
	}
}

// waits reports whether the hub refuses the agent, and the refusal may be temporary for the agent.
func (a *agentPart) waits() bool {
	return !a.dead && !a.done && !a.refusedTooLong && (a.hub == uint8(HubRefused) || a.hub == uint8(HubGone))
}

// timesOut lets the time pass during which a refused agent continues as before.
func (a *agentPart) timesOut() { a.refusedTooLong = a.refusedTooLong || a.waits() }
