package lifecycle

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// HubObserved is what the hub sees of one member.
type HubObserved struct {
	Now time.Time

	// Of the MemberCluster.
	Deleting  bool                  // it has a deletionTimestamp
	Desired   v1alpha1.DesiredState // spec.state
	Accepted  *bool                 // spec.accepted
	JoinMode  v1alpha1.JoinMode     // spec.joinMode
	Claimed   bool                  // an agent has claimed it, so it is known whom to give access
	Finalizer bool                  // ours is on it
	Deadline  time.Duration         // spec.leave.deadlineSeconds
	Leave     *v1alpha1.LeaveStatus // status.leave, as recorded
	Phase     v1alpha1.Phase        // status.phase, as recorded

	// WithDefinition is true if the MemberCluster is deleted together with its CustomResourceDefinition. That is not a
	// request to leave the fleet.
	WithDefinition bool
	// Unconfirmed is true if the hub does not know yet whether WithDefinition is true of a MemberCluster with a
	// deletionTimestamp.
	Unconfirmed bool

	// Of what it has in the hub.
	Namespace  Presence
	Access     bool            // the RoleBinding to its subject is there
	Membership *MembershipSeen // nil: there is none

	// Verdict of the Acceptor, where it is [HubObserved.AsksAcceptor]; zero: there is none to ask.
	Verdict membership.Verdict
	// NoVerdict says why there is none, because the Acceptor failed; empty: there is one.
	NoVerdict string

	// Gates is what the gates said when they were asked last about what the member is to do now; nil: they have not been.
	Gates *GatesSeen
}

// MembershipSeen is a Membership as both sides see it.
type MembershipSeen struct {
	State  v1alpha1.DesiredState // spec.state
	Rejoin bool                  // spec.rejoin
	Clean  bool                  // spec.clean: the agent is told to clean up
	Report AgentReport           // what the agent has written into the status
}

// AgentReport is how far an agent says that it is.
type AgentReport int

// The reports of an agent, from the condition Joined in the status of its Membership.
const (
	ReportedNothing AgentReport = iota // it has never been there
	ReportedJoined                     // Joined is True
	ReportedClean                      // Joined is False because the member is clean
)

// GatesSeen is what the first gate that is not open has said.
type GatesSeen struct {
	Waiting   string // its name; empty: all are open
	Remaining []string
	Age       time.Duration // how long ago that was; zero: in this round
}

// HubAction is something that the hub does about a member. Each is idempotent.
type HubAction string

// The actions of the hub.
const (
	AddFinalizer HubAction = "AddFinalizer"
	// SetAccepted sets spec.accepted to true, unless the MemberCluster is another by now than the Acceptor was asked about.
	SetAccepted     HubAction = "SetAccepted"
	CreateNamespace HubAction = "CreateNamespace"
	// WriteMembership makes the Membership what [HubStep].Membership says, and creates it where there is none.
	WriteMembership HubAction = "WriteMembership"
	GrantAccess     HubAction = "GrantAccess"
	RevokeAccess    HubAction = "RevokeAccess"
	// AskGates asks the gates in their order up to the first that is not open; the hub decides anew with
	// what they said, and remembers it.
	AskGates HubAction = "AskGates"
	// ForceGates tells all gates to let go. One that cannot be forced must not hold up the rest: when this fails, the
	// actions after it are carried out all the same.
	ForceGates HubAction = "ForceGates"
	// ReleaseNamespace has the gates let go of a namespace that was deleted by hand, and of nothing on the member.
	ReleaseNamespace HubAction = "ReleaseNamespace"
	// DeleteNamespace removes the member's namespace with all that is in it.
	DeleteNamespace HubAction = "DeleteNamespace"
	// WriteTombstone records that the member left because a user requested it. It comes before what cannot be undone.
	WriteTombstone HubAction = "WriteTombstone"
	// ReleaseClaim clears which agent spoke for the cluster, so that another may.
	ReleaseClaim    HubAction = "ReleaseClaim"
	RemoveFinalizer HubAction = "RemoveFinalizer"
)

// HubStep is what the hub does next about a member.
type HubStep struct {
	Phase      v1alpha1.Phase
	Conditions []metav1.Condition // without times
	// Leave is what status.leave shall be before the hub looks again.
	Leave *v1alpha1.LeaveStatus
	// Membership is what [WriteMembership] writes.
	Membership MembershipSeen
	// Actions in their order. A later one may rely on an earlier one.
	Actions []HubAction
	// After is when to look again although nothing has happened. Zero: never.
	After time.Duration
	// Final is true when the step cannot be taken back. It must not be taken on what caches show, but on what was read
	// from the API server since.
	Final bool
}

// NextHub decides what the hub does next about a member.
func NextHub(o HubObserved) HubStep {
	o.Gates = o.Gates.short()
	step := nextHub(o)
	sentences(step.Conditions)
	step.Final = final(o, step)
	return step
}

// final reports whether a step ends something for good: the namespace, the finalizer or the claim goes, access goes
// because the member leaves or nobody speaks for it, or that a leave is forced or has ended is put on record, or taken off it
// by another. Withdrawn acceptance is not among
// them where it is all, since what it takes is given back.
func final(o HubObserved, step HubStep) bool {
	out := step.Phase == v1alpha1.PhaseLeaving || step.Phase == v1alpha1.PhaseLeft
	for _, action := range step.Actions {
		switch action {
		case DeleteNamespace, RemoveFinalizer, ReleaseClaim:
			return true
		case RevokeAccess:
			if accepts(o) && (out || !o.Claimed) {
				return true
			}
		}
	}
	if step.Phase == v1alpha1.PhaseLeft && step.Leave == nil && o.Phase != "" && o.Phase != v1alpha1.PhaseLeft {
		return true // a cache may not show yet the namespace that was created for the member
	}
	if step.Leave != nil && ended(o) && !step.Leave.Ended {
		return true // how the last leave ended is known no more
	}
	o.Leave = thisLeave(o)
	if o.Claimed && o.Namespace == Absent && !irrevocable(o) && step.Leave != nil && step.Leave.Waiting == waitingForNamespace {
		return true // the leave cannot be called off any more
	}
	return step.Leave != nil && (step.Leave.Forced && !forced(o) || step.Leave.Ended && !ended(o))
}

// DependsOnDefinition reports whether the decision depends on WithDefinition: the MemberCluster has a deletionTimestamp,
// and no other request to leave the fleet.
func (o HubObserved) DependsOnDefinition() bool {
	deleting := o.Deleting
	o.Deleting = false
	return deleting && !leaves(o)
}

// ConfirmDeletion is how long the hub waits before it concludes that a user requested the deletion of a MemberCluster. The
// API server deletes the objects of a CustomResourceDefinition before it publishes that the definition is being deleted.
const ConfirmDeletion = time.Second

// deletedUnasked is the step for a MemberCluster that is deleted with its definition, or perhaps so. Nothing changes for the
// member: its agent waits until a MemberCluster of its name exists again.
func deletedUnasked(o HubObserved) HubStep {
	step := HubStep{Phase: o.Phase, Leave: o.Leave.DeepCopy()}
	switch {
	case o.Unconfirmed:
		step.After = ConfirmDeletion
	case o.Finalizer:
		step.Actions = []HubAction{RemoveFinalizer}
	}
	return step
}

func nextHub(o HubObserved) HubStep {
	switch {
	case (o.WithDefinition || o.Unconfirmed) && o.DependsOnDefinition():
		return deletedUnasked(o)
	case leaves(o):
		return nextLeave(o)
	case !o.Finalizer:
		// Nothing is made for a member before it is certain that it will be taken back.
		step := nextJoin(o)
		step.Actions = []HubAction{AddFinalizer}
		if o.Namespace != Present && accepts(o) {
			notReadyToJoin(step.Conditions)
		}
		return step
	default:
		return nextJoin(o)
	}
}

// notReadyToJoin changes the condition ReadyToJoin of a member whose namespace does not exist yet.
func notReadyToJoin(conditions []metav1.Condition) {
	for i := range conditions {
		if conditions[i].Type == v1alpha1.ConditionReadyToJoin {
			conditions[i] = no(v1alpha1.ConditionReadyToJoin, v1alpha1.ReasonPreparing, "The hub is preparing for the cluster.")
		}
	}
}

// leaves reports whether the member is on its way out, or out. A leave can be called off until the agent has been told
// to clean up. From then on it may be gone, and a Membership that said Join again would speak to nobody.
func leaves(o HubObserved) bool {
	told := o.Membership != nil && o.Membership.Clean
	underWay := o.Leave != nil && !o.Leave.Ended && (told || o.Namespace != Present)
	return o.Deleting || o.Desired == v1alpha1.StateLeave || underWay || irrevocable(o)
}

// irrevocable reports whether the record of a leave, or the deletion of the MemberCluster, excludes that the leave is
// called off. The hub writes a tombstone only then: a leader that is paused before that write may resume at any time.
func irrevocable(o HubObserved) bool {
	l := o.Leave
	recorded := l != nil && !l.Ended && (l.Forced || l.Waiting == waitingForAgent || l.Waiting == waitingForNamespace)
	return o.Deleting || recorded
}

func nextJoin(o HubObserved) HubStep {
	if o.AsksAcceptor() {
		return byAcceptor(o)
	}
	if !accepts(o) {
		return notAccepted(o)
	}
	step := HubStep{
		Phase:      v1alpha1.PhaseAccepted,
		Membership: MembershipSeen{State: v1alpha1.StateJoin, Rejoin: true},
	}
	accepted := yes(v1alpha1.ConditionAccepted, v1alpha1.ReasonAccepted, "The cluster is accepted.")
	if o.Namespace == Terminating {
		step.Conditions = []metav1.Condition{
			accepted,
			no(v1alpha1.ConditionReadyToJoin, v1alpha1.ReasonPreparing, "The member's namespace is being deleted. The hub creates it again afterwards, and nothing changes on the member."),
			no(v1alpha1.ConditionJoined, v1alpha1.ReasonPreparing, "The hub is preparing for the cluster."),
		}
		step.Actions = []HubAction{ReleaseNamespace}
		step.After = GatePoll
		return step
	}
	if o.Namespace == Absent {
		step.Actions = append(step.Actions, CreateNamespace)
	}
	if o.Membership == nil || o.Membership.State != v1alpha1.StateJoin || !o.Membership.Rejoin {
		step.Actions = append(step.Actions, WriteMembership)
	}
	switch {
	case o.Claimed && !o.Access:
		step.Actions = append(step.Actions, GrantAccess)
	case !o.Claimed && o.Access:
		// An administrator has taken the claim away from the agent that has it.
		step.Actions = append(step.Actions, RevokeAccess)
	}

	ready := yes(v1alpha1.ConditionReadyToJoin, v1alpha1.ReasonPrepared, "The member's namespace is ready.")
	switch {
	case !o.Claimed:
		step.Conditions = []metav1.Condition{accepted, ready,
			no(v1alpha1.ConditionJoined, v1alpha1.ReasonWaitingForAgent, "No agent has asked to join as this cluster yet: "+whoStartsIt(o.JoinMode))}
	case o.Membership == nil || o.Membership.Report != ReportedJoined:
		step.Phase = v1alpha1.PhaseJoining
		step.Conditions = []metav1.Condition{accepted, ready,
			no(v1alpha1.ConditionJoined, v1alpha1.ReasonWaitingForAgent, "The agent has asked to join and has not confirmed yet.")}
	default:
		step.Phase = v1alpha1.PhaseJoined
		step.Conditions = []metav1.Condition{accepted, ready,
			yes(v1alpha1.ConditionJoined, v1alpha1.ReasonAgentJoined, "The agent has confirmed that it has joined.")}
	}
	return step
}

// whoStartsIt says what to do where no agent has come.
func whoStartsIt(mode v1alpha1.JoinMode) string {
	switch mode {
	case v1alpha1.JoinPush:
		return "the hub runs it once it reaches the member; see the condition Reachable and the member's Events."
	case v1alpha1.JoinInstall:
		return "the hub installs it; see the conditions Reachable and Installed."
	default:
		return "start one with a join token."
	}
}

func notAccepted(o HubObserved) HubStep {
	step := HubStep{Phase: v1alpha1.PhasePending}
	reason, message := v1alpha1.ReasonNotDecided, "Nobody has decided: set spec.accepted to true to let the cluster in, or to false to deny it."
	if o.Accepted != nil {
		step.Phase = v1alpha1.PhaseDenied
		reason, message = v1alpha1.ReasonDenied, "The cluster is denied, or its acceptance was withdrawn: set spec.accepted to true to let it in."
	}
	if o.Access {
		step.Actions = append(step.Actions, RevokeAccess)
	}
	step.Conditions = []metav1.Condition{
		no(v1alpha1.ConditionAccepted, reason, message),
		no(v1alpha1.ConditionReadyToJoin, v1alpha1.ReasonNotAccepted, "The cluster is not accepted."),
		no(v1alpha1.ConditionJoined, v1alpha1.ReasonNotAccepted, "The cluster is not accepted: it has no permissions on the hub."),
	}
	return step
}

// nextLeave goes one step further on the way out. Its order is the promise of the package: the record of the
// leave, the gates, the agent's confirmation, the credentials, the namespace, the finalizer.
func nextLeave(o HubObserved) HubStep {
	o.Leave = thisLeave(o)
	if ended(o) || o.Namespace == Absent && !o.Access {
		return left(o)
	}
	record := o.Leave.DeepCopy()
	if record == nil {
		record = &v1alpha1.LeaveStatus{StartedAt: metav1.NewTime(o.Now)}
	}
	// The deadline follows the policy, so that an administrator can shorten it under way.
	record.Deadline = metav1.NewTime(record.StartedAt.Add(o.Deadline))

	step := HubStep{
		Phase:      v1alpha1.PhaseLeaving,
		Leave:      record,
		Membership: MembershipSeen{State: v1alpha1.StateLeave, Rejoin: !o.Deleting, Clean: o.Membership != nil && o.Membership.Clean},
	}
	accepted := accepts(o)
	overdue := !o.Now.Before(record.Deadline.Time)
	if !accepted && o.Access {
		// Withdrawn acceptance waits for nothing, not even for the leave to be on record.
		step.Actions = append(step.Actions, RevokeAccess)
	}

	switch {
	case o.Leave == nil:
		// Record when it began before anything is done about it, or a restart would begin the deadline anew.
		step.After = time.Nanosecond
	case o.Namespace == Terminating:
		if !record.Forced {
			record.Waiting, record.Remaining = waitingForNamespace, nil
		}
		if !o.Now.Before(patientUntil(*record)) {
			if !record.Forced {
				force(record, o.Now)
				step.After = time.Nanosecond
				break
			}
			return left(o)
		}
		step.Actions = takeBack(o)
		step.After = GatePoll
	case record.Forced:
		step.Actions = takeBack(o)
		step.After = GatePoll
	case o.Gates == nil || o.Gates.Age >= GatePoll:
		step.Actions = append(step.Actions, AskGates)
		return step
	default:
		step = passGates(o, step, accepted, overdue)
	}
	step.Conditions = leaveConditions(o, *record)
	return step
}

// passGates goes from closed gates to open ones, to the agent's confirmation, to the end of its access.
func passGates(o HubObserved, step HubStep, accepted, overdue bool) HubStep {
	record, seen := step.Leave, o.Membership
	agentIn := seen != nil && seen.Report == ReportedJoined
	record.Waiting, record.Remaining = o.Gates.Waiting, firstTwenty(o.Gates.Remaining)
	if o.Gates.Waiting == "" && agentIn {
		record.Waiting = waitingForAgent
	}
	switch {
	case record.Waiting == "" && o.Gates.Age > 0:
		// What they are remembered to have said is no reason to end anything.
		step.Actions = append(step.Actions, AskGates)
		return step
	case record.Waiting == "":
		record.Waiting = waitingForNamespace
		step.Actions = takeBack(o)
		step.After = GatePoll
		return step
	case overdue:
		// Record that it was forced, and by what, before it is: afterwards nothing would tell.
		force(record, o.Now)
		step.After = time.Nanosecond
		return step
	}
	step.Membership.Clean = step.Membership.Clean || o.Gates.Waiting == ""
	if seen == nil || seen.State != step.Membership.State || seen.Rejoin != step.Membership.Rejoin || seen.Clean != step.Membership.Clean {
		step.Actions = append(step.Actions, WriteMembership)
	}
	if accepted && o.Claimed && !o.Access {
		step.Actions = append(step.Actions, GrantAccess)
	}
	step.After = min(GatePoll-o.Gates.Age, record.Deadline.Sub(o.Now))
	return step
}

// patientUntil is when the hub waits no longer for the namespace to be gone. Gates that are forced have their time also where the
// deadline had passed long before: it can be shortened to any time, and the hub may have been away.
func patientUntil(record v1alpha1.LeaveStatus) time.Time {
	from := record.Deadline.Time
	if record.ForcedAt != nil && record.ForcedAt.After(from) {
		from = record.ForcedAt.Time
	}
	return from.Add(NamespacePatience)
}

func force(record *v1alpha1.LeaveStatus, now time.Time) {
	record.Forced, record.ForcedAt = true, new(metav1.NewTime(now))
}

// takeBack ends the member's access before the namespace goes, which takes its time. Gates that are forced are told before
// that, since they may never have been asked and then say only now what becomes of what is in it, and again while it goes.
func takeBack(o HubObserved) (actions []HubAction) {
	if o.Access {
		actions = append(actions, RevokeAccess)
	}
	if forced(o) {
		actions = append(actions, ForceGates)
	}
	if o.Namespace == Present {
		actions = append(actions, DeleteNamespace)
	}
	return actions
}

func left(o HubObserved) HubStep {
	step := HubStep{Phase: v1alpha1.PhaseLeft, Leave: o.Leave.DeepCopy()}
	if o.Access {
		step.Actions = append(step.Actions, RevokeAccess)
	}
	switch {
	case o.Deleting && o.Finalizer:
		step.Actions = append(step.Actions, WriteTombstone, RemoveFinalizer)
	case o.Claimed && !irrevocable(o):
		if step.Leave == nil || step.Leave.Ended {
			step.Leave = &v1alpha1.LeaveStatus{StartedAt: metav1.NewTime(o.Now), Deadline: metav1.NewTime(o.Now.Add(o.Deadline))}
		}
		step.Phase, step.Leave.Waiting, step.Leave.Remaining = v1alpha1.PhaseLeaving, waitingForNamespace, nil
		step.After = time.Nanosecond
		step.Conditions = leaveConditions(o, *step.Leave)
		return step
	case !o.Deleting && o.Claimed:
		step.Actions = append(step.Actions, WriteTombstone, ReleaseClaim)
	}
	if step.Leave != nil && len(step.Actions) == 0 {
		// Not before: a leave that had ended would be over, and what was still to be done never done.
		step.Leave.Ended = true
	}
	if forced(o) && !ended(o) {
		// A namespace that was gone before the deadline gave the gates no chance to release what they have elsewhere.
		step.Actions = append([]HubAction{ForceGates}, step.Actions...)
	}
	reason, message := v1alpha1.ReasonLeft, "The cluster has left. Set spec.state to Join to let it come back, or delete this object."
	if forced(o) {
		reason = v1alpha1.ReasonLeaveForced
		message = fmt.Sprintf("The deadline passed and the cluster was removed while waiting for %s. %s", awaited(*o.Leave), message)
	}
	step.Conditions = []metav1.Condition{
		acceptedCondition(o),
		no(v1alpha1.ConditionReadyToJoin, reason, "The cluster has left."),
		no(v1alpha1.ConditionJoined, reason, message),
	}
	return step
}

// thisLeave is the record of the leave from this stay. One that had ended before there was a namespace again is of
// the stay before: the member joined anew, and that was not on record yet.
func thisLeave(o HubObserved) *v1alpha1.LeaveStatus {
	if ended(o) && o.Namespace == Present {
		return nil
	}
	return o.Leave
}

// What a leave waits for when all gates are open: that the agent has cleaned up, and that the namespace is gone.
const (
	waitingForAgent     = "agent"
	waitingForNamespace = "namespace"
)

func accepts(o HubObserved) bool { return o.Accepted != nil && *o.Accepted }

func ended(o HubObserved) bool { return o.Leave != nil && o.Leave.Ended }

func forced(o HubObserved) bool { return o.Leave != nil && o.Leave.Forced }
