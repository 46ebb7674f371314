package lifecycle

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// HubObserved is the hub's observation of one member.
type HubObserved struct {
	Now time.Time

	// Of the MemberCluster.
	Spec      SpecSeen
	Deletion  DeletionSeen
	Finalizer bool                  // the hub's finalizer is set
	Leave     *v1alpha1.LeaveStatus // status.leave, as recorded
	Phase     v1alpha1.Phase        // status.phase, as recorded

	// Of the member's objects on the hub.
	Namespace  Presence
	Access     bool            // the RoleBinding to its subject exists
	Membership *MembershipSeen // nil: it does not exist

	// Acceptor is zero if there is no Acceptor, or [HubObserved.AsksAcceptor] is false.
	Acceptor AcceptorSeen
	// Gates is the last result of the gates for the member's current desired state; nil: the gates were not called.
	Gates *GatesSeen
}

// SpecSeen is the observed spec of a MemberCluster.
type SpecSeen struct {
	Desired  v1alpha1.DesiredState // spec.state
	Accepted *bool                 // spec.accepted
	JoinMode v1alpha1.JoinMode     // spec.joinMode
	Claimed  bool                  // spec.claim is set, so the subject of the access is known
	Deadline time.Duration         // spec.leave.deadlineSeconds
}

// DeletionSeen is the observed deletion of a MemberCluster.
type DeletionSeen struct {
	// Requested is true if the deletion of the MemberCluster was requested.
	Requested bool
	// WithDefinition is true if the MemberCluster is deleted together with its CustomResourceDefinition, which is not a
	// request to leave.
	WithDefinition bool
	// Unconfirmed is true if the hub does not know yet whether WithDefinition is true of a MemberCluster with a
	// deletionTimestamp.
	Unconfirmed bool
}

// AcceptorSeen is the result of the Acceptor.
type AcceptorSeen struct {
	// Acceptance is the decision; zero: the Acceptor was not called.
	membership.Acceptance
	// Error is the error of an Acceptor that failed; empty: it did not fail.
	Error string
}

// MembershipSeen is a Membership as observed by the hub and the agent.
type MembershipSeen struct {
	State  v1alpha1.DesiredState // spec.state
	Rejoin bool                  // spec.rejoin
	Clean  bool                  // spec.clean: the agent must clean up
	Report AgentReport           // the agent's report in the status
}

// AgentReport is the progress that an agent reports.
type AgentReport int

// The reports of an agent, from the condition Joined in the status of its Membership.
const (
	ReportedNothing AgentReport = iota // the agent has never joined
	// ReportedJoined: the condition Joined is True.
	ReportedJoined
	ReportedClean // Joined is False because the member is clean
)

// GatesSeen is the result of the first gate that is not open.
type GatesSeen struct {
	Waiting   string // the name of the gate; empty: all gates are open
	Remaining []string
	Age       time.Duration // the age of the result; zero: from this reconcile
}

// HubAction is an action of the hub for a member. Every action is idempotent.
type HubAction string

// The actions of the hub.
const (
	AddFinalizer HubAction = "AddFinalizer"
	// SetAccepted sets spec.accepted to true, unless the MemberCluster has changed since the Acceptor decided.
	SetAccepted     HubAction = "SetAccepted"
	CreateNamespace HubAction = "CreateNamespace"
	// WriteMembership updates the Membership to [HubStep].Membership, and creates it if it does not exist.
	WriteMembership HubAction = "WriteMembership"
	GrantAccess     HubAction = "GrantAccess"
	RevokeAccess    HubAction = "RevokeAccess"
	// AskGates calls the gates in order, up to the first that is not open. The hub stores the result and decides again
	// with it.
	AskGates HubAction = "AskGates"
	// ForceGates makes all gates release the member. A gate that cannot be forced must not block the rest: if this action
	// fails, the actions after it are still carried out.
	ForceGates HubAction = "ForceGates"
	// ReleaseNamespace makes the gates release a namespace that a user deleted. No object on the member is deleted.
	ReleaseNamespace HubAction = "ReleaseNamespace"
	// DeleteNamespace deletes the member's namespace with its content.
	DeleteNamespace HubAction = "DeleteNamespace"
	// WriteTombstone records that the member left because a user requested it. It precedes all actions that cannot be
	// undone.
	WriteTombstone HubAction = "WriteTombstone"
	// ReleaseClaim clears spec.claim, so that another agent may claim the cluster.
	ReleaseClaim    HubAction = "ReleaseClaim"
	RemoveFinalizer HubAction = "RemoveFinalizer"
)

// HubStep is the next step of the hub for a member.
type HubStep struct {
	Phase      v1alpha1.Phase
	Conditions []metav1.Condition // without times
	// Leave is the desired status.leave. It must be written before the hub reconciles the member again.
	Leave *v1alpha1.LeaveStatus
	// Membership is the content that [WriteMembership] writes.
	Membership MembershipSeen
	// Actions in order. An action may depend on the ones before it.
	Actions []HubAction
	// After is the time until the next reconcile if no object changes. Zero: never.
	After time.Duration
	// Final is true if the step cannot be undone. The decision must then be repeated on state that was read from the API
	// server, not from caches.
	Final bool
}

// NextHub decides the next step of the hub for a member.
func NextHub(o HubObserved) HubStep {
	o.Gates = o.Gates.short()
	step := nextHub(o)
	limitMessages(step.Conditions)
	step.Final = final(o, step)
	return step
}

// final reports whether a step cannot be undone: it removes the namespace, the finalizer or the claim; it removes
// access because the member leaves or its claim was cleared; or it records that a leave is forced or has ended, or
// replaces such a record. Withdrawn acceptance alone is not final, because the removed access can be granted again.
func final(o HubObserved, step HubStep) bool {
	out := step.Phase == v1alpha1.PhaseLeaving || step.Phase == v1alpha1.PhaseLeft
	for _, action := range step.Actions {
		switch action {
		case DeleteNamespace, RemoveFinalizer, ReleaseClaim:
			return true
		case RevokeAccess:
			if accepts(o) && (out || !o.Spec.Claimed) {
				return true
			}
		}
	}
	if step.Phase == v1alpha1.PhaseLeft && step.Leave == nil && o.Phase != "" && o.Phase != v1alpha1.PhaseLeft {
		return true // the cache may not contain the new namespace of the member yet
	}
	if step.Leave != nil && ended(o) && !step.Leave.Ended {
		return true // removes the record of the end of the last leave
	}
	o.Leave = thisLeave(o)
	if o.Spec.Claimed && o.Namespace == Absent && !irrevocable(o) && step.Leave != nil &&
		step.Leave.Waiting == waitingForNamespace {
		return true // the leave can no longer be called off
	}
	return step.Leave != nil && (step.Leave.Forced && !forced(o) || step.Leave.Ended && !ended(o))
}

// DependsOnDefinition reports whether the decision depends on WithDefinition: the MemberCluster has a
// deletionTimestamp, and no other request to leave the fleet.
func (o HubObserved) DependsOnDefinition() bool {
	deleting := o.Deletion.Requested
	o.Deletion.Requested = false
	return deleting && !leaves(o)
}

// ConfirmDeletion is how long the hub waits before it concludes that a user requested the deletion of a MemberCluster.
// The API server deletes the objects of a CustomResourceDefinition before it publishes that the definition is being
// deleted.
const ConfirmDeletion = time.Second

// deletedUnrequested returns the step for a MemberCluster that is, or may be, deleted with its definition. Nothing
// changes for the member: its agent waits until a MemberCluster with its name exists again.
func deletedUnrequested(o HubObserved) HubStep {
	step := HubStep{Phase: o.Phase, Leave: o.Leave.DeepCopy()}
	switch {
	case o.Deletion.Unconfirmed:
		step.After = ConfirmDeletion
	case o.Finalizer:
		step.Actions = []HubAction{RemoveFinalizer}
	}
	return step
}

func nextHub(o HubObserved) HubStep {
	switch {
	case (o.Deletion.WithDefinition || o.Deletion.Unconfirmed) && o.DependsOnDefinition():
		return deletedUnrequested(o)
	case leaves(o):
		return nextLeave(o)
	case !o.Finalizer:
		// The hub creates no object for a member before the finalizer ensures the removal of these objects.
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

// leaves reports whether the member is leaving or has left. A leave can be called off until the hub has requested the
// clean-up. After that the agent may have ended, and no agent would read a Membership whose state is Join again.
func leaves(o HubObserved) bool {
	notified := o.Membership != nil && o.Membership.Clean
	underWay := o.Leave != nil && !o.Leave.Ended && (notified || o.Namespace != Present)
	return o.Deletion.Requested || o.Spec.Desired == v1alpha1.StateLeave || underWay || irrevocable(o)
}

// irrevocable reports whether the leave can no longer be called off, according to its record or because the
// MemberCluster is being deleted. The hub writes a tombstone only then: a leader that is paused before that write may
// resume at any time.
func irrevocable(o HubObserved) bool {
	l := o.Leave
	recorded := l != nil && !l.Ended && (l.Forced || l.Waiting == waitingForAgent || l.Waiting == waitingForNamespace)
	return o.Deletion.Requested || recorded
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
			no(v1alpha1.ConditionReadyToJoin, v1alpha1.ReasonPreparing,
				"The member's namespace is being deleted. The hub creates it again afterwards, and nothing changes on the member."),
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
	case o.Spec.Claimed && !o.Access:
		step.Actions = append(step.Actions, GrantAccess)
	case !o.Spec.Claimed && o.Access:
		// An administrator has cleared the claim of the agent.
		step.Actions = append(step.Actions, RevokeAccess)
	}

	ready := yes(v1alpha1.ConditionReadyToJoin, v1alpha1.ReasonPrepared, "The member's namespace is ready.")
	switch {
	case !o.Spec.Claimed:
		step.Conditions = []metav1.Condition{
			accepted,
			ready,
			no(v1alpha1.ConditionJoined, v1alpha1.ReasonWaitingForAgent,
				"No agent has requested to join as this cluster yet: "+agentStarter(o.Spec.JoinMode)),
		}
	case o.Membership == nil || o.Membership.Report != ReportedJoined:
		step.Phase = v1alpha1.PhaseJoining
		step.Conditions = []metav1.Condition{
			accepted,
			ready,
			no(v1alpha1.ConditionJoined, v1alpha1.ReasonWaitingForAgent,
				"The agent has requested to join and has not confirmed yet."),
		}
	default:
		step.Phase = v1alpha1.PhaseJoined
		step.Conditions = []metav1.Condition{accepted, ready,
			yes(v1alpha1.ConditionJoined, v1alpha1.ReasonAgentJoined, "The agent has confirmed that it has joined.")}
	}
	return step
}

// agentStarter returns the part of a message about how the agent is started, for a member without a JoinRequest.
func agentStarter(mode v1alpha1.JoinMode) string {
	switch mode {
	case v1alpha1.JoinPush:
		return "the hub runs the agent when the hub reaches the member; see the condition Reachable and the member's Events."
	case v1alpha1.JoinInstall:
		return "the hub installs the agent; see the conditions Reachable and Installed."
	default:
		return "start an agent with a join token."
	}
}

func notAccepted(o HubObserved) HubStep {
	step := HubStep{Phase: v1alpha1.PhasePending}
	reason, message := v1alpha1.ReasonNotDecided, "No administrator has decided: set spec.accepted to true to accept "+
		"the cluster, or to false to deny it."
	if o.Spec.Accepted != nil {
		step.Phase = v1alpha1.PhaseDenied
		reason, message = v1alpha1.ReasonDenied, "The cluster is denied, or its acceptance was withdrawn: set "+
			"spec.accepted to true to accept the cluster."
	}
	if o.Access {
		step.Actions = append(step.Actions, RevokeAccess)
	}
	step.Conditions = []metav1.Condition{
		no(v1alpha1.ConditionAccepted, reason, message),
		no(v1alpha1.ConditionReadyToJoin, v1alpha1.ReasonNotAccepted, "The cluster is not accepted."),
		no(v1alpha1.ConditionJoined, v1alpha1.ReasonNotAccepted,
			"The cluster is not accepted and has no permissions on the hub."),
	}
	return step
}

// The blockers of a leave when all gates are open: the agent's clean-up, and the removal of the namespace.
const (
	waitingForAgent     = "agent"
	waitingForNamespace = "namespace"
)

func accepts(o HubObserved) bool { return o.Spec.Accepted != nil && *o.Spec.Accepted }

func ended(o HubObserved) bool { return o.Leave != nil && o.Leave.Ended }

func forced(o HubObserved) bool { return o.Leave != nil && o.Leave.Forced }
