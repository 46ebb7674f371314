package lifecycle

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

var joinedMembership = &MembershipSeen{State: v1alpha1.StateJoin, Rejoin: true, Report: ReportedJoined}

// inFleet returns a joined member that needs no action.
func inFleet(change func(*HubObserved)) HubObserved {
	seen := *joinedMembership
	o := HubObserved{
		Now:       epoch.Add(time.Minute),
		Spec:      SpecSeen{Desired: v1alpha1.StateJoin, Accepted: new(true), Claimed: true, Deadline: deadline},
		Finalizer: true, Namespace: Present, Access: true, Membership: &seen,
	}
	change(&o)
	return o
}

// isLeaving returns a member whose leave is recorded and whose gates have been called.
func isLeaving(change func(*HubObserved)) HubObserved {
	return inFleet(func(o *HubObserved) {
		o.Deletion.Requested = true
		o.Leave = &v1alpha1.LeaveStatus{StartedAt: metav1.NewTime(epoch), Deadline: metav1.NewTime(epoch.Add(deadline))}
		o.Gates = &GatesSeen{}
		change(o)
	})
}

func TestNextHub(t *testing.T) {
	type want struct {
		phase   v1alpha1.Phase
		actions []HubAction
		reason  string // of Joined
		message string // of Joined
		leave   *v1alpha1.LeaveStatus
		after   time.Duration
	}
	record := func(change func(*v1alpha1.LeaveStatus)) *v1alpha1.LeaveStatus {
		l := &v1alpha1.LeaveStatus{StartedAt: metav1.NewTime(epoch), Deadline: metav1.NewTime(epoch.Add(deadline))}
		change(l)
		return l
	}
	for _, test := range []struct {
		name   string
		reason string
		o      HubObserved
		want   want
	}{
		{
			name: "undecided", reason: "a person has to be told what to do",
			o: HubObserved{Spec: SpecSeen{Desired: v1alpha1.StateJoin}, Finalizer: true},
			want: want{phase: v1alpha1.PhasePending, reason: v1alpha1.ReasonNotAccepted, message: "The cluster is not " +
				"accepted and has no permissions on the hub."},
		},
		{
			name: "new", reason: "nothing is made for a member before it is certain that it will be taken back",
			o: HubObserved{Spec: SpecSeen{Desired: v1alpha1.StateJoin, Accepted: new(true)}},
			want: want{
				phase: v1alpha1.PhaseAccepted, actions: []HubAction{AddFinalizer}, reason: v1alpha1.ReasonWaitingForAgent,
				message: "No agent has requested to join as this cluster yet: start an agent with a join token.",
			},
		},
		{
			name: "new, and the hub's to run", reason: "a join token is of no use there",
			o: HubObserved{Spec: SpecSeen{Desired: v1alpha1.StateJoin, Accepted: new(true), JoinMode: v1alpha1.JoinPush}},
			want: want{
				phase: v1alpha1.PhaseAccepted, actions: []HubAction{AddFinalizer}, reason: v1alpha1.ReasonWaitingForAgent,
				message: "No agent has requested to join as this cluster yet: the hub runs the agent when the hub reaches the " +
					"member; see the condition Reachable and the member's Events.",
			},
		},
		{
			name: "new, and the hub's to install", reason: "nor there",
			o: HubObserved{Spec: SpecSeen{Desired: v1alpha1.StateJoin, Accepted: new(true), JoinMode: v1alpha1.JoinInstall}},
			want: want{
				phase: v1alpha1.PhaseAccepted, actions: []HubAction{AddFinalizer}, reason: v1alpha1.ReasonWaitingForAgent,
				message: "No agent has requested to join as this cluster yet: the hub installs the agent; see the conditions " +
					"Reachable and Installed.",
			},
		},
		{
			name: "claimed", reason: "access comes last: an agent must not look for a Membership that is not there yet",
			o: HubObserved{Spec: SpecSeen{Desired: v1alpha1.StateJoin, Accepted: new(true), Claimed: true}, Finalizer: true},
			want: want{
				phase: v1alpha1.PhaseJoining, actions: []HubAction{CreateNamespace, WriteMembership, GrantAccess},
				reason:  v1alpha1.ReasonWaitingForAgent,
				message: "The agent has requested to join and has not confirmed yet.",
			},
		},
		{
			name: "in the fleet", reason: "a member that wants nothing costs nothing",
			o: inFleet(func(*HubObserved) {}),
			want: want{phase: v1alpha1.PhaseJoined, reason: v1alpha1.ReasonAgentJoined, message: "The agent has confirmed " +
				"that it has joined."},
		},
		{
			name: "acceptance withdrawn", reason: "it cuts access at once, and leaves all else to come back to",
			o: inFleet(func(o *HubObserved) { o.Spec.Accepted = new(false) }),
			want: want{
				phase: v1alpha1.PhaseDenied, actions: []HubAction{RevokeAccess}, reason: v1alpha1.ReasonNotAccepted,
				message: "The cluster is not accepted and has no permissions on the hub.",
			},
		},
		{
			name: "acceptance given back", reason: "the agent needs nothing but its access",
			o: inFleet(func(o *HubObserved) { o.Access = false }),
			want: want{phase: v1alpha1.PhaseJoined, actions: []HubAction{GrantAccess}, reason: v1alpha1.ReasonAgentJoined,
				message: "The agent has confirmed that it has joined."},
		},
		{
			name: "claim cleared", reason: "a member without a claim has no access",
			o: inFleet(func(o *HubObserved) { o.Spec.Claimed, o.Membership.Report = false, ReportedNothing }),
			want: want{
				phase: v1alpha1.PhaseAccepted, actions: []HubAction{RevokeAccess}, reason: v1alpha1.ReasonWaitingForAgent,
				message: "No agent has requested to join as this cluster yet: start an agent with a join token.",
			},
		},
		{
			name: "back too soon", reason: "a namespace that goes cannot be used, and the wait must be explained",
			o: inFleet(func(o *HubObserved) { o.Namespace, o.Membership, o.Access = Terminating, nil, false }),
			want: want{
				phase: v1alpha1.PhaseAccepted, reason: v1alpha1.ReasonPreparing, message: "The hub is preparing for the cluster.",
				after: GatePoll, actions: []HubAction{ReleaseNamespace},
			},
		},
		{
			name: "deleted", reason: "when the leave began is on record before anything is done, or a restart would begin the " +
				"deadline anew",
			o: isLeaving(func(o *HubObserved) { o.Leave, o.Gates, o.Now = nil, nil, epoch }),
			want: want{
				phase: v1alpha1.PhaseLeaving, reason: v1alpha1.ReasonLeaving, message: "The cluster is leaving.",
				leave: record(func(*v1alpha1.LeaveStatus) {}), after: time.Nanosecond,
			},
		},
		{
			name: "deleted and denied at once", reason: "withdrawn acceptance does not wait for a record",
			o: isLeaving(func(o *HubObserved) { o.Leave, o.Gates, o.Now, o.Spec.Accepted = nil, nil, epoch, nil }),
			want: want{
				phase: v1alpha1.PhaseLeaving, actions: []HubAction{RevokeAccess}, reason: v1alpha1.ReasonLeaving,
				message: "The cluster is leaving.",
				leave:   record(func(*v1alpha1.LeaveStatus) {}), after: time.Nanosecond,
			},
		},
		{
			name: "gates not asked", reason: "asking them starts the clean-up, so it is an action",
			o: isLeaving(func(o *HubObserved) { o.Gates = nil }),
			want: want{phase: v1alpha1.PhaseLeaving, actions: []HubAction{AskGates},
				leave: record(func(*v1alpha1.LeaveStatus) {})},
		},
		{
			name: "a gate is shut", reason: "the agent is told that it leaves, and not yet to clean up; people see for what " +
				"it waits",
			o: isLeaving(func(o *HubObserved) {
				o.Gates = &GatesSeen{Waiting: "works", Remaining: []string{"a", "b", "c", "d", "e"}}
			}),
			want: want{
				phase: v1alpha1.PhaseLeaving, actions: []HubAction{WriteMembership}, reason: v1alpha1.ReasonLeaving,
				message: "Waiting until 2026-01-01T00:15:00Z for works (a, b, c and 2 more).", after: GatePoll,
				leave: record(func(l *v1alpha1.LeaveStatus) {
					l.Waiting, l.Remaining = "works",
						[]string{"a", "b", "c", "d", "e"}
				}),
			},
		},
		{
			name: "a gate was shut a moment ago", reason: "gates are asked from time to time, and not whenever something " +
				"happens",
			o: isLeaving(func(o *HubObserved) {
				o.Membership.State, o.Membership.Rejoin, o.Gates = v1alpha1.StateLeave, false,
					&GatesSeen{Waiting: "works", Age: GatePoll - time.Millisecond}
			}),
			want: want{
				phase: v1alpha1.PhaseLeaving, reason: v1alpha1.ReasonLeaving, message: "Waiting until 2026-01-01T00:15:00Z for " +
					"works.", after: time.Millisecond,
				leave: record(func(l *v1alpha1.LeaveStatus) { l.Waiting = "works" }),
			},
		},
		{
			name: "a gate was shut some time ago", reason: "it may be open by now",
			o: isLeaving(func(o *HubObserved) { o.Gates = &GatesSeen{Waiting: "works", Age: GatePoll} }),
			want: want{phase: v1alpha1.PhaseLeaving, actions: []HubAction{AskGates},
				leave: record(func(*v1alpha1.LeaveStatus) {})},
		},
		{
			name: "clean, and the gates were open a moment ago", reason: "what ends now is not ended on what is remembered",
			o: isLeaving(func(o *HubObserved) { o.Membership.Report, o.Gates.Age = ReportedClean, time.Millisecond }),
			want: want{
				phase: v1alpha1.PhaseLeaving, actions: []HubAction{AskGates}, reason: v1alpha1.ReasonLeaving,
				message: "The cluster is leaving.",
				leave:   record(func(*v1alpha1.LeaveStatus) {}),
			},
		},
		{
			name: "much is left", reason: "the record holds what the API takes, and the message says how much more there is",
			o: isLeaving(func(o *HubObserved) {
				o.Membership.State, o.Membership.Rejoin, o.Gates = v1alpha1.StateLeave, false,
					&GatesSeen{Waiting: "works", Remaining: slices.Repeat([]string{"a"}, 25)}
			}),
			want: want{
				phase: v1alpha1.PhaseLeaving, reason: v1alpha1.ReasonLeaving, after: GatePoll,
				message: "Waiting until 2026-01-01T00:15:00Z for works (a, a, a and 22 more).",
				leave: record(func(l *v1alpha1.LeaveStatus) {
					l.Waiting, l.Remaining = "works",
						slices.Repeat([]string{"a"}, 20)
				}),
			},
		},
		{
			name: "almost overdue", reason: "the deadline is kept to, rather than to the next look",
			o: isLeaving(func(o *HubObserved) {
				o.Now, o.Membership.State, o.Membership.Rejoin, o.Membership.Clean = epoch.Add(deadline-time.Second),
					v1alpha1.StateLeave, false, true
			}),
			want: want{
				phase: v1alpha1.PhaseLeaving, reason: v1alpha1.ReasonLeaving, after: time.Second,
				message: "Waiting until 2026-01-01T00:15:00Z for the agent to confirm that the member is clean.",
				leave:   record(func(l *v1alpha1.LeaveStatus) { l.Waiting = "agent" }),
			},
		},
		{
			name: "denied while leaving", reason: "the agent cannot confirm any more, and only a person can change that",
			o: isLeaving(func(o *HubObserved) {
				o.Spec.Accepted, o.Access, o.Membership.State, o.Membership.Rejoin, o.Membership.Clean = new(false), false,
					v1alpha1.StateLeave, false, true
			}),
			want: want{
				phase: v1alpha1.PhaseLeaving, reason: v1alpha1.ReasonLeaving, after: GatePoll,
				message: "The agent cannot confirm that the member is clean, because its acceptance was withdrawn: set " +
					"spec.accepted to true, or wait until the member is removed without the confirmation at 2026-01-01T00:15:00Z.",
				leave: record(func(l *v1alpha1.LeaveStatus) { l.Waiting = "agent" }),
			},
		},
		{
			name: "called off too late, and the Membership lost", reason: "that the agent was told is on record as well",
			o: isLeaving(func(o *HubObserved) {
				o.Deletion.Requested, o.Membership, o.Gates, o.Leave.Waiting = false, nil, nil,
					"agent"
			}),
			want: want{phase: v1alpha1.PhaseLeaving, actions: []HubAction{AskGates},
				leave: record(func(l *v1alpha1.LeaveStatus) { l.Waiting = "agent" })},
		},
		{
			name: "clean", reason: "access goes before the namespace, which takes its time to",
			o: isLeaving(func(o *HubObserved) { o.Membership.Report = ReportedClean }),
			want: want{
				phase: v1alpha1.PhaseLeaving, actions: []HubAction{RevokeAccess, DeleteNamespace}, reason: v1alpha1.ReasonLeaving,
				message: "Waiting for the member's namespace to be removed.",
				leave:   record(func(r *v1alpha1.LeaveStatus) { r.Waiting = waitingForNamespace }), after: GatePoll,
			},
		},
		{
			name: "overdue", reason: "what the leave waited for is recorded before it is forced: afterwards nothing would tell",
			o: isLeaving(func(o *HubObserved) { o.Now = epoch.Add(deadline) }),
			want: want{
				phase: v1alpha1.PhaseLeaving, reason: v1alpha1.ReasonLeaving, after: time.Nanosecond,
				message: "The deadline passed: the cluster is being removed while waiting for the agent.",
				leave: record(func(l *v1alpha1.LeaveStatus) {
					l.Forced, l.ForcedAt, l.Waiting = true, new(metav1.NewTime(epoch.Add(deadline))), "agent"
				}),
			},
		},
		{
			name: "forced late, and the namespace goes", reason: "a deadline that was shortened to long ago leaves gates the " +
				"time to let go",
			o: isLeaving(func(o *HubObserved) {
				o.Now, o.Spec.Deadline, o.Namespace, o.Access, o.Membership, o.Gates = epoch.Add(deadline+NamespaceTimeout-1),
					time.Minute, Terminating, false, nil, nil
				o.Leave.Forced, o.Leave.ForcedAt, o.Leave.Waiting = true, new(metav1.NewTime(epoch.Add(deadline))), "works"
			}),
			want: want{
				phase: v1alpha1.PhaseLeaving, actions: []HubAction{ForceGates}, reason: v1alpha1.ReasonLeaving, after: GatePoll,
				message: "The deadline passed: the cluster is being removed while waiting for works.",
				leave: record(func(l *v1alpha1.LeaveStatus) {
					l.Deadline = metav1.NewTime(epoch.Add(time.Minute))
					l.Forced, l.ForcedAt, l.Waiting = true, new(metav1.NewTime(epoch.Add(deadline))), "works"
				}),
			},
		},
		{
			name: "forced, and the namespace does not go",
			reason: "a finalizer that is never removed blocks a leave no longer " +
				"than that",
			o: isLeaving(func(o *HubObserved) {
				o.Now, o.Spec.Deadline, o.Namespace, o.Access, o.Membership, o.Gates = epoch.Add(deadline+NamespaceTimeout),
					time.Minute, Terminating, false, nil, nil
				o.Leave.Forced, o.Leave.ForcedAt, o.Leave.Waiting = true, new(metav1.NewTime(epoch.Add(deadline))), "works"
			}),
			want: want{
				phase: v1alpha1.PhaseLeft, actions: []HubAction{ForceGates, WriteTombstone, RemoveFinalizer},
				reason: v1alpha1.ReasonLeaveForced,
				message: "The deadline passed and the cluster was removed while waiting for works. The cluster has left. Set " +
					"spec.state to Join to let the cluster join again, or delete this MemberCluster.",
				leave: record(func(l *v1alpha1.LeaveStatus) {
					l.Forced, l.ForcedAt, l.Waiting = true, new(metav1.NewTime(epoch.Add(deadline))), "works"
				}),
			},
		},
		{
			name: "forced", reason: "a gate may not have been asked yet, and says only now what becomes of what goes with the " +
				"namespace",
			o: isLeaving(func(o *HubObserved) {
				o.Now, o.Gates, o.Leave.Forced, o.Leave.Waiting = epoch.Add(deadline), nil, true, "works"
			}),
			want: want{
				phase: v1alpha1.PhaseLeaving, actions: []HubAction{RevokeAccess, ForceGates, DeleteNamespace},
				reason: v1alpha1.ReasonLeaving, after: GatePoll,
				message: "The deadline passed: the cluster is being removed while waiting for works.",
				leave:   record(func(l *v1alpha1.LeaveStatus) { l.Forced, l.Waiting = true, "works" }),
			},
		},
		{
			name: "forced, and the namespace goes", reason: "gates are forced until they let go, since their finalizers hold " +
				"the namespace",
			o: isLeaving(func(o *HubObserved) {
				o.Namespace, o.Access, o.Membership, o.Gates, o.Leave.Forced, o.Leave.Waiting = Terminating, false, nil, nil, true,
					"works"
			}),
			want: want{
				phase: v1alpha1.PhaseLeaving, actions: []HubAction{ForceGates}, reason: v1alpha1.ReasonLeaving, after: GatePoll,
				message: "The deadline passed: the cluster is being removed while waiting for works.",
				leave:   record(func(l *v1alpha1.LeaveStatus) { l.Forced, l.Waiting = true, "works" }),
			},
		},
		{
			name: "gone", reason: "the finalizer goes when nothing else is left",
			o: isLeaving(func(o *HubObserved) { o.Namespace, o.Access, o.Membership, o.Gates = Absent, false, nil, nil }),
			want: want{
				phase: v1alpha1.PhaseLeft, actions: []HubAction{WriteTombstone, RemoveFinalizer}, reason: v1alpha1.ReasonLeft,
				message: "The cluster has left. Set spec.state to Join to let the cluster join again, or delete this " +
					"MemberCluster.",
				leave: record(func(*v1alpha1.LeaveStatus) {}),
			},
		},
		{
			name: "gone, and the leave could be called off", reason: "a leader that is paused before it writes the tombstone " +
				"could outlast the leave",
			o: isLeaving(func(o *HubObserved) {
				o.Deletion.Requested, o.Spec.Desired = false, v1alpha1.StateLeave
				o.Namespace, o.Access, o.Membership, o.Gates = Absent, false, nil, nil
			}),
			want: want{
				phase: v1alpha1.PhaseLeaving, reason: v1alpha1.ReasonLeaving, message: "Waiting for the member's namespace to be " +
					"removed.",
				leave: record(func(r *v1alpha1.LeaveStatus) { r.Waiting = waitingForNamespace }), after: time.Nanosecond,
			},
		},
		{
			name: "gone, and Join is desired again", reason: "a leave whose end is on record is not called off",
			o: isLeaving(func(o *HubObserved) {
				o.Deletion.Requested, o.Spec.Desired = false, v1alpha1.StateJoin
				o.Namespace, o.Access, o.Membership, o.Gates = Present, false, nil, &GatesSeen{}
				o.Leave.Waiting = waitingForNamespace
			}),
			want: want{
				phase: v1alpha1.PhaseLeaving, actions: []HubAction{DeleteNamespace}, reason: v1alpha1.ReasonLeaving,
				message: "Waiting for the member's namespace to be removed.",
				leave:   record(func(r *v1alpha1.LeaveStatus) { r.Waiting = waitingForNamespace }), after: GatePoll,
			},
		},
		{
			name: "gone, and the object kept", reason: "the end is not on record before the claim is released, or Join would " +
				"be blocked by it",
			o: isLeaving(func(o *HubObserved) {
				o.Deletion.Requested, o.Spec.Desired = false, v1alpha1.StateLeave
				o.Namespace, o.Access, o.Membership, o.Gates = Absent, false, nil, nil
				o.Leave.Waiting = waitingForNamespace
			}),
			want: want{
				phase: v1alpha1.PhaseLeft, actions: []HubAction{WriteTombstone, ReleaseClaim}, reason: v1alpha1.ReasonLeft,
				message: "The cluster has left. Set spec.state to Join to let the cluster join again, or delete this " +
					"MemberCluster.",
				leave: record(func(r *v1alpha1.LeaveStatus) { r.Waiting = waitingForNamespace }),
			},
		},
		{
			name: "leaves again", reason: "the record of the leave before must not pass for this one's, whose agent has yet " +
				"to confirm",
			o: isLeaving(func(o *HubObserved) { o.Leave.Ended, o.Leave.Forced, o.Now = true, true, epoch.Add(time.Hour) }),
			want: want{
				phase: v1alpha1.PhaseLeaving, reason: v1alpha1.ReasonLeaving, message: "The cluster is leaving.",
				after: time.Nanosecond,
				leave: &v1alpha1.LeaveStatus{StartedAt: metav1.NewTime(epoch.Add(time.Hour)),
					Deadline: metav1.NewTime(epoch.Add(time.Hour + deadline))},
			},
		},
		{
			name: "left by force", reason: "the force and its reason stay on record",
			o: isLeaving(func(o *HubObserved) {
				o.Deletion.Requested, o.Spec.Desired, o.Spec.Claimed = false, v1alpha1.StateLeave, false
				o.Namespace, o.Access, o.Membership, o.Gates = Absent, false, nil, nil
				o.Leave.Forced, o.Leave.Waiting = true, "agent"
			}),
			want: want{
				phase: v1alpha1.PhaseLeft, actions: []HubAction{ForceGates}, reason: v1alpha1.ReasonLeaveForced,
				message: "The deadline passed and the cluster was removed while waiting for the agent. The cluster has left. Set " +
					"spec.state to Join to let the cluster join again, or delete this MemberCluster.",
				leave: record(func(l *v1alpha1.LeaveStatus) { l.Forced, l.Waiting, l.Ended = true, "agent", true }),
			},
		},
		{
			name: "left by force and ended", reason: "the gates are not forced again for as long as the object exists",
			o: isLeaving(func(o *HubObserved) {
				o.Deletion.Requested, o.Spec.Desired, o.Spec.Claimed = false, v1alpha1.StateLeave, false
				o.Namespace, o.Access, o.Membership, o.Gates = Absent, false, nil, nil
				o.Leave.Forced, o.Leave.Waiting, o.Leave.Ended = true, "agent", true
			}),
			want: want{
				phase: v1alpha1.PhaseLeft, reason: v1alpha1.ReasonLeaveForced,
				message: "The deadline passed and the cluster was removed while waiting for the agent. The cluster has left. Set " +
					"spec.state to Join to let the cluster join again, or delete this MemberCluster.",
				leave: record(func(l *v1alpha1.LeaveStatus) { l.Forced, l.Waiting, l.Ended = true, "agent", true }),
			},
		},
		{
			name: "called off", reason: "until the agent is told to clean up nothing irrevocable has happened",
			o: isLeaving(func(o *HubObserved) {
				o.Deletion.Requested, o.Gates, o.Membership.State = false, nil, v1alpha1.StateLeave
			}),
			want: want{
				phase: v1alpha1.PhaseJoined, actions: []HubAction{WriteMembership}, reason: v1alpha1.ReasonAgentJoined,
				message: "The agent has confirmed that it has joined.",
			},
		},
		{
			name: "called off too late", reason: "the agent may be gone by now, so the member leaves before it joins again",
			o: isLeaving(func(o *HubObserved) {
				o.Deletion.Requested, o.Membership.State, o.Membership.Clean = false, v1alpha1.StateLeave, true
			}),
			want: want{
				phase: v1alpha1.PhaseLeaving, reason: v1alpha1.ReasonLeaving, after: GatePoll,
				message: "Waiting until 2026-01-01T00:15:00Z for the agent to confirm that the member is clean.",
				leave:   record(func(l *v1alpha1.LeaveStatus) { l.Waiting = "agent" }),
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			step := NextHub(test.o)
			got := want{phase: step.Phase, actions: step.Actions, leave: step.Leave, after: step.After}
			for _, c := range step.Conditions {
				if c.Type == v1alpha1.ConditionJoined {
					got.reason, got.message = c.Reason, c.Message
				}
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.reason, diff)
			}
		})
	}
}

func TestFinal(t *testing.T) {
	for _, test := range []struct {
		name   string
		reason string
		o      HubObserved
		want   bool
	}{
		{"in the fleet", "nothing is done", inFleet(func(*HubObserved) {}), false},
		{"acceptance withdrawn", "it can be given back", inFleet(func(o *HubObserved) { o.Spec.Accepted = new(false) }),
			false},
		{"claim cleared", "the agent takes itself for deregistered", inFleet(func(o *HubObserved) { o.Spec.Claimed = false }),
			true},
		{"a gate is shut", "the leave can be called off", isLeaving(func(o *HubObserved) { o.Gates.Waiting = "works" }),
			false},
		{"denied while leaving", "withdrawn acceptance waits for nothing",
			isLeaving(func(o *HubObserved) { o.Spec.Accepted, o.Gates.Waiting = nil, "works" }), false},
		{"clean", "a member that has not cleaned up could not do so any more",
			isLeaving(func(o *HubObserved) { o.Membership.Report = ReportedClean }), true},
		{"access outlives the namespace's end", "the same", isLeaving(func(o *HubObserved) { o.Namespace = Terminating }),
			true},
		{"overdue", "a leave that is recorded as forced is not waited for any more",
			isLeaving(func(o *HubObserved) { o.Now = epoch.Add(deadline) }), true},
		{"forced, and the namespace goes", "to look past the caches at every look would be polling",
			isLeaving(func(o *HubObserved) {
				o.Namespace, o.Access, o.Membership, o.Leave.Forced = Terminating, false, nil, true
			}), false},
		{"gone", "what is left then is left for ever",
			isLeaving(func(o *HubObserved) { o.Namespace, o.Access, o.Membership = Absent, false, nil }), true},
		{"gone, and the object kept", "the same", isLeaving(func(o *HubObserved) {
			o.Deletion.Requested, o.Spec.Desired = false, v1alpha1.StateLeave
			o.Namespace, o.Access, o.Membership = Absent, false, nil
		}), true},
		{"gone, and the claim released", "the same: the record of the end is the last that is done",
			isLeaving(func(o *HubObserved) {
				o.Deletion.Requested, o.Spec.Desired, o.Spec.Claimed = false, v1alpha1.StateLeave, false
				o.Namespace, o.Access, o.Membership = Absent, false, nil
			}), true},
		{"without a record of the leave", "the namespace may have been created a moment ago", isLeaving(func(o *HubObserved) {
			o.Deletion.Requested, o.Spec.Desired, o.Spec.Claimed = false, v1alpha1.StateLeave, false
			o.Namespace, o.Access, o.Membership = Absent, false, nil
			o.Leave, o.Phase = nil, v1alpha1.PhaseAccepted
		}), true},
		{"left without a record of the leave", "a member that wants nothing costs nothing", isLeaving(func(o *HubObserved) {
			o.Deletion.Requested, o.Spec.Desired, o.Spec.Claimed = false, v1alpha1.StateLeave, false
			o.Namespace, o.Access, o.Membership = Absent, false, nil
			o.Leave, o.Phase = nil, v1alpha1.PhaseLeft
		}), false},
		{"leaves again", "a namespace that a cache still shows is no other stay, whose leave would end and begin as long " +
			"as it does", isLeaving(func(o *HubObserved) {
			o.Leave.Ended = true
		}), true},
		{"left long ago", "a member that wants nothing costs nothing", isLeaving(func(o *HubObserved) {
			o.Deletion.Requested, o.Spec.Desired, o.Spec.Claimed = false, v1alpha1.StateLeave, false
			o.Namespace, o.Access, o.Membership = Absent, false, nil
			o.Leave.Ended, o.Leave.Forced = true, true
		}), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if step := NextHub(test.o); step.Final != test.want {
				t.Errorf("%s: final is %v, want %v: %+v", test.reason, step.Final, test.want, step)
			}
		})
	}
}

// TestNextHub_ReadyToJoinOnlyWithNamespace checks that a member whose finalizer is added first is not reported as ready
// to join: its namespace is created afterwards.
func TestNextHub_ReadyToJoinOnlyWithNamespace(t *testing.T) {
	for _, test := range []struct {
		namespace Presence
		want      metav1.ConditionStatus
	}{{Absent, metav1.ConditionFalse}, {Present, metav1.ConditionTrue}} {
		step := NextHub(HubObserved{
			Now: epoch, Spec: SpecSeen{Accepted: new(true), Deadline: deadline}, Namespace: test.namespace,
		})
		if ready := meta.FindStatusCondition(step.Conditions, v1alpha1.ConditionReadyToJoin); ready == nil ||
			ready.Status != test.want {
			t.Errorf("namespace %v: got %+v, want ReadyToJoin %s", test.namespace, ready, test.want)
		}
	}
}

func TestWithError(t *testing.T) {
	const ready = v1alpha1.ConditionReadyToJoin
	for _, test := range []struct {
		name   string
		reason string
		o      HubObserved
		want   metav1.Condition
	}{
		{"in the fleet", "what an agent needs is not all there", inFleet(func(*HubObserved) {}),
			no(ready, v1alpha1.ReasonPreparing, "Trouble.")},
		{"leaving", "that it leaves is why it cannot join, and the trouble why it does not get further",
			isLeaving(func(*HubObserved) {}), no(ready, v1alpha1.ReasonLeaving, "The cluster is leaving. Trouble.")},
		{"denied", "the same", inFleet(func(o *HubObserved) { o.Spec.Accepted = new(false) }),
			no(ready, v1alpha1.ReasonNotAccepted, "The cluster is not accepted. Trouble.")},
	} {
		t.Run(test.name, func(t *testing.T) {
			step := NextHub(test.o)
			failing := step.WithError("Trouble.")
			for i, got := range failing.Conditions {
				want := step.Conditions[i]
				if got.Type == ready {
					want = test.want
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", test.reason, diff)
				}
			}
		})
	}
}

func TestRefuseRenewal(t *testing.T) {
	const token, certificate = v1alpha1.CredentialToken, v1alpha1.CredentialCertificate
	for _, test := range []struct {
		name   string
		reason string
		o      HubObserved
		asked  v1alpha1.CredentialType
		want   string
	}{
		{"in the fleet", "members renew", inFleet(func(*HubObserved) {}), token, ""},
		{"not accepted", "a certificate cannot be called back", inFleet(func(o *HubObserved) { o.Spec.Accepted = nil }),
			token,
			"The cluster is not accepted: an administrator must set spec.accepted of its MemberCluster to true."},
		{"leaving", "a clean-up may take longer than a credential lives", isLeaving(func(*HubObserved) {}), token, ""},
		{"leaving without access", "there is nothing more to confirm", isLeaving(func(o *HubObserved) { o.Access = false }),
			token, "The cluster is leaving."},
		{"forced", "the hub waits no more", isLeaving(func(o *HubObserved) { o.Leave.Forced = true }), token,
			"The cluster is leaving."},
		{"another type", "the subject of the access depends on it", inFleet(func(*HubObserved) {}), certificate,
			"The agent joined with a credential of another type: let the cluster leave and join again to change it."},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := RefuseRenewal(test.o, token, test.asked); got != test.want {
				t.Errorf("%s: want %q, got %q", test.reason, test.want, got)
			}
		})
	}
}
