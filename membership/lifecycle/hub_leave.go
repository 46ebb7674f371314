package lifecycle

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// nextLeave decides the next step of a leave. Its order is guaranteed: the record of the leave, the gates, the agent's
// confirmation, the credentials, the namespace, the finalizer.
func nextLeave(o HubObserved) HubStep {
	o.Leave = thisLeave(o)
	if ended(o) || o.Namespace == Absent && !o.Access {
		return left(o)
	}
	record := o.Leave.DeepCopy()
	if record == nil {
		record = &v1alpha1.LeaveStatus{StartedAt: metav1.NewTime(o.Now)}
	}
	// The deadline follows the spec, so that an administrator can shorten it during the leave.
	record.Deadline = metav1.NewTime(record.StartedAt.Add(o.Spec.Deadline))

	step := HubStep{
		Phase: v1alpha1.PhaseLeaving,
		Leave: record,
		Membership: MembershipSeen{
			State:  v1alpha1.StateLeave,
			Rejoin: !o.Deletion.Requested,
			Clean:  o.Membership != nil && o.Membership.Clean,
		},
	}
	accepted := accepts(o)
	overdue := !o.Now.Before(record.Deadline.Time)
	if !accepted && o.Access {
		// Withdrawn acceptance takes effect immediately, even before the leave is recorded.
		step.Actions = append(step.Actions, RevokeAccess)
	}

	switch {
	case o.Leave == nil:
		// Record the start before any action. Otherwise a restart would restart the deadline.
		step.After = time.Nanosecond
	case o.Namespace == Terminating:
		if !record.Forced {
			record.Waiting, record.Remaining = waitingForNamespace, nil
		}
		if !o.Now.Before(namespaceDeadline(*record)) {
			if !record.Forced {
				force(record, o.Now)
				step.After = time.Nanosecond
				break
			}
			return left(o)
		}
		step.Actions = withdrawActions(o)
		step.After = GatePoll
	case record.Forced:
		step.Actions = withdrawActions(o)
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

// passGates decides the part of a leave from closed gates to the agent's confirmation and the end of its access.
func passGates(o HubObserved, step HubStep, accepted, overdue bool) HubStep {
	record, seen := step.Leave, o.Membership
	agentIn := seen != nil && seen.Report == ReportedJoined
	record.Waiting, record.Remaining = o.Gates.Waiting, firstTwenty(o.Gates.Remaining)
	if o.Gates.Waiting == "" && agentIn {
		record.Waiting = waitingForAgent
	}
	switch {
	case record.Waiting == "" && o.Gates.Age > 0:
		// A stored result of the gates is not sufficient for a step that cannot be undone.
		step.Actions = append(step.Actions, AskGates)
		return step
	case record.Waiting == "":
		record.Waiting = waitingForNamespace
		step.Actions = withdrawActions(o)
		step.After = GatePoll
		return step
	case overdue:
		// Record that the leave is forced, and its blocker, before forcing it: afterwards the blocker is unknown.
		force(record, o.Now)
		step.After = time.Nanosecond
		return step
	}
	step.Membership.Clean = step.Membership.Clean || o.Gates.Waiting == ""
	if seen == nil || seen.State != step.Membership.State || seen.Rejoin != step.Membership.Rejoin ||
		seen.Clean != step.Membership.Clean {
		step.Actions = append(step.Actions, WriteMembership)
	}
	if accepted && o.Spec.Claimed && !o.Access {
		step.Actions = append(step.Actions, GrantAccess)
	}
	step.After = min(GatePoll-o.Gates.Age, record.Deadline.Sub(o.Now))
	return step
}

// namespaceDeadline returns the time at which the hub stops waiting for the namespace to be removed. Forced gates get
// the full timeout even if the deadline passed long before: the deadline can be shortened to any time, and the hub may
// have been unavailable.
func namespaceDeadline(record v1alpha1.LeaveStatus) time.Time {
	from := record.Deadline.Time
	if record.ForcedAt != nil && record.ForcedAt.After(from) {
		from = record.ForcedAt.Time
	}
	return from.Add(NamespaceTimeout)
}

func force(record *v1alpha1.LeaveStatus, now time.Time) {
	record.Forced, record.ForcedAt = true, new(metav1.NewTime(now))
}

// withdrawActions ends the member's access before the namespace is deleted, because the deletion takes time. The gates
// are forced before the deletion and again while the namespace terminates: they may not have been called before, and
// set the deletion policies of objects in the namespace only when they are called.
func withdrawActions(o HubObserved) (actions []HubAction) {
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
	case o.Deletion.Requested && o.Finalizer:
		step.Actions = append(step.Actions, WriteTombstone, RemoveFinalizer)
	case o.Spec.Claimed && !irrevocable(o):
		if step.Leave == nil || step.Leave.Ended {
			step.Leave = &v1alpha1.LeaveStatus{
				StartedAt: metav1.NewTime(o.Now), Deadline: metav1.NewTime(o.Now.Add(o.Spec.Deadline)),
			}
		}
		step.Phase, step.Leave.Waiting, step.Leave.Remaining = v1alpha1.PhaseLeaving, waitingForNamespace, nil
		step.After = time.Nanosecond
		step.Conditions = leaveConditions(o, *step.Leave)
		return step
	case !o.Deletion.Requested && o.Spec.Claimed:
		step.Actions = append(step.Actions, WriteTombstone, ReleaseClaim)
	}
	if step.Leave != nil && len(step.Actions) == 0 {
		// Not earlier: the remaining actions of a leave that is recorded as ended would never be carried out.
		step.Leave.Ended = true
	}
	if forced(o) && !ended(o) {
		// If the namespace was removed before the deadline, the gates could not release their objects outside of it.
		step.Actions = append([]HubAction{ForceGates}, step.Actions...)
	}
	reason, message := v1alpha1.ReasonLeft, "The cluster has left. Set spec.state to Join to let the cluster join "+
		"again, or delete this MemberCluster."
	if forced(o) {
		reason = v1alpha1.ReasonLeaveForced
		message = fmt.Sprintf(
			"The deadline passed and the cluster was removed while waiting for %s. %s", awaited(*o.Leave), message)
	}
	step.Conditions = []metav1.Condition{
		acceptedCondition(o),
		no(v1alpha1.ConditionReadyToJoin, reason, "The cluster has left."),
		no(v1alpha1.ConditionJoined, reason, message),
	}
	return step
}

// thisLeave returns the record of the current leave. If a leave had ended and the namespace exists again, the record
// belongs to the previous membership: the member joined again, and the record was not removed yet.
func thisLeave(o HubObserved) *v1alpha1.LeaveStatus {
	if ended(o) && o.Namespace == Present {
		return nil
	}
	return o.Leave
}
