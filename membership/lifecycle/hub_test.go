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

// observedJoined returns a joined member that needs no action.
func observedJoined(change func(*HubObserved)) HubObserved {
	seen := *joinedMembership
	o := HubObserved{
		Now:       epoch.Add(time.Minute),
		Spec:      SpecSeen{Desired: v1alpha1.StateJoin, Accepted: new(true), Claimed: true, Deadline: deadline},
		Finalizer: true, Namespace: Present, Access: true, Membership: &seen,
	}
	change(&o)
	return o
}

// observedLeaving returns a member whose leave is recorded and whose gates have been called.
func observedLeaving(change func(*HubObserved)) HubObserved {
	return observedJoined(func(o *HubObserved) {
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
			name: "spec.accepted is not set", reason: "the message tells an administrator what to do",
			o: HubObserved{Spec: SpecSeen{Desired: v1alpha1.StateJoin}, Finalizer: true},
			want: want{phase: v1alpha1.PhasePending, reason: v1alpha1.ReasonNotAccepted, message: "The cluster is not " +
				"accepted and has no permissions on the hub."},
		},
		{
			name: "a new accepted member", reason: "the finalizer is added before any object is created",
			o: HubObserved{Spec: SpecSeen{Desired: v1alpha1.StateJoin, Accepted: new(true)}},
			want: want{
				phase: v1alpha1.PhaseAccepted, actions: []HubAction{AddFinalizer}, reason: v1alpha1.ReasonWaitingForAgent,
				message: "No agent has requested to join as this cluster yet: start an agent with a join token.",
			},
		},
		{
			name: "a new member whose agent the hub runs", reason: "the message does not mention join tokens",
			o: HubObserved{Spec: SpecSeen{Desired: v1alpha1.StateJoin, Accepted: new(true), JoinMode: v1alpha1.JoinPush}},
			want: want{
				phase: v1alpha1.PhaseAccepted, actions: []HubAction{AddFinalizer}, reason: v1alpha1.ReasonWaitingForAgent,
				message: "No agent has requested to join as this cluster yet: the hub runs the agent when the hub reaches the " +
					"member; see the condition Reachable and the member's Events.",
			},
		},
		{
			name: "a new member whose agent the hub installs", reason: "the message does not mention join tokens",
			o: HubObserved{Spec: SpecSeen{Desired: v1alpha1.StateJoin, Accepted: new(true), JoinMode: v1alpha1.JoinInstall}},
			want: want{
				phase: v1alpha1.PhaseAccepted, actions: []HubAction{AddFinalizer}, reason: v1alpha1.ReasonWaitingForAgent,
				message: "No agent has requested to join as this cluster yet: the hub installs the agent; see the conditions " +
					"Reachable and Installed.",
			},
		},
		{
			name:   "an agent has claimed the member",
			reason: "access is granted last: an agent must not read a Membership that does not exist yet",
			o: HubObserved{Spec: SpecSeen{Desired: v1alpha1.StateJoin, Accepted: new(true), Claimed: true},
				Finalizer: true},
			want: want{
				phase: v1alpha1.PhaseJoining, actions: []HubAction{CreateNamespace, WriteMembership, GrantAccess},
				reason:  v1alpha1.ReasonWaitingForAgent,
				message: "The agent has requested to join and has not confirmed yet.",
			},
		},
		{
			name: "the member has joined and nothing has changed", reason: "the step has no action and no requeue",
			o: observedJoined(func(*HubObserved) {}),
			want: want{phase: v1alpha1.PhaseJoined, reason: v1alpha1.ReasonAgentJoined, message: "The agent has confirmed " +
				"that it has joined."},
		},
		{
			name:   "acceptance of a joined member is withdrawn",
			reason: "access is revoked immediately, and all other objects are kept",
			o:      observedJoined(func(o *HubObserved) { o.Spec.Accepted = new(false) }),
			want: want{
				phase: v1alpha1.PhaseDenied, actions: []HubAction{RevokeAccess}, reason: v1alpha1.ReasonNotAccepted,
				message: "The cluster is not accepted and has no permissions on the hub.",
			},
		},
		{
			name: "the member is accepted again", reason: "only the access is missing",
			o: observedJoined(func(o *HubObserved) { o.Access = false }),
			want: want{phase: v1alpha1.PhaseJoined, actions: []HubAction{GrantAccess}, reason: v1alpha1.ReasonAgentJoined,
				message: "The agent has confirmed that it has joined."},
		},
		{
			name: "the claim is cleared", reason: "a member without a claim has no access",
			o: observedJoined(func(o *HubObserved) { o.Spec.Claimed, o.Membership.Report = false, ReportedNothing }),
			want: want{
				phase: v1alpha1.PhaseAccepted, actions: []HubAction{RevokeAccess}, reason: v1alpha1.ReasonWaitingForAgent,
				message: "No agent has requested to join as this cluster yet: start an agent with a join token.",
			},
		},
		{
			name:   "the namespace of the former membership is terminating",
			reason: "a terminating namespace cannot be used, and the message explains the wait",
			o:      observedJoined(func(o *HubObserved) { o.Namespace, o.Membership, o.Access = Terminating, nil, false }),
			want: want{
				phase: v1alpha1.PhaseAccepted, reason: v1alpha1.ReasonPreparing, message: "The hub is preparing for the cluster.",
				after: GatePoll, actions: []HubAction{ReleaseNamespace},
			},
		},
		{
			name:   "the MemberCluster is deleted",
			reason: "the start of the leave is recorded first; otherwise a restart would start the deadline again",
			o:      observedLeaving(func(o *HubObserved) { o.Leave, o.Gates, o.Now = nil, nil, epoch }),
			want: want{
				phase: v1alpha1.PhaseLeaving, reason: v1alpha1.ReasonLeaving, message: "The cluster is leaving.",
				leave: record(func(*v1alpha1.LeaveStatus) {}), after: time.Nanosecond,
			},
		},
		{
			name: "the MemberCluster is deleted and not accepted", reason: "access is revoked before the leave is recorded",
			o: observedLeaving(func(o *HubObserved) { o.Leave, o.Gates, o.Now, o.Spec.Accepted = nil, nil, epoch, nil }),
			want: want{
				phase: v1alpha1.PhaseLeaving, actions: []HubAction{RevokeAccess}, reason: v1alpha1.ReasonLeaving,
				message: "The cluster is leaving.",
				leave:   record(func(*v1alpha1.LeaveStatus) {}), after: time.Nanosecond,
			},
		},
		{
			name: "the gates have not been called", reason: "the call of the gates starts the clean-up, so it is an action",
			o: observedLeaving(func(o *HubObserved) { o.Gates = nil }),
			want: want{phase: v1alpha1.PhaseLeaving, actions: []HubAction{AskGates},
				leave: record(func(*v1alpha1.LeaveStatus) {})},
		},
		{
			name:   "a gate is closed",
			reason: "the Membership requests the leave without a clean-up, and the message names the gate",
			o: observedLeaving(func(o *HubObserved) {
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
			name: "a gate was closed less than GatePoll ago", reason: "gates are called periodically, not on each reconcile",
			o: observedLeaving(func(o *HubObserved) {
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
			name: "a gate was closed GatePoll ago", reason: "the gate may be open now",
			o: observedLeaving(func(o *HubObserved) { o.Gates = &GatesSeen{Waiting: "works", Age: GatePoll} }),
			want: want{phase: v1alpha1.PhaseLeaving, actions: []HubAction{AskGates},
				leave: record(func(*v1alpha1.LeaveStatus) {})},
		},
		{
			name:   "the member is clean and the gates were open earlier",
			reason: "a leave does not end because of a cached result of the gates",
			o:      observedLeaving(func(o *HubObserved) { o.Membership.Report, o.Gates.Age = ReportedClean, time.Millisecond }),
			want: want{
				phase: v1alpha1.PhaseLeaving, actions: []HubAction{AskGates}, reason: v1alpha1.ReasonLeaving,
				message: "The cluster is leaving.",
				leave:   record(func(*v1alpha1.LeaveStatus) {}),
			},
		},
		{
			name:   "a gate reports 25 remaining objects",
			reason: "the record has at most 20 entries, and the message counts all others",
			o: observedLeaving(func(o *HubObserved) {
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
			name: "one second before the deadline", reason: "the next reconcile is at the deadline, not after GatePoll",
			o: observedLeaving(func(o *HubObserved) {
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
			name:   "acceptance is withdrawn while the member is leaving",
			reason: "the agent cannot confirm any more, and only an administrator can change that",
			o: observedLeaving(func(o *HubObserved) {
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
			name:   "the leave is canceled after the clean-up began and the Membership is lost",
			reason: "the recorded leave also shows that the agent was notified",
			o: observedLeaving(func(o *HubObserved) {
				o.Deletion.Requested, o.Membership, o.Gates, o.Leave.Waiting = false, nil, nil,
					"agent"
			}),
			want: want{phase: v1alpha1.PhaseLeaving, actions: []HubAction{AskGates},
				leave: record(func(l *v1alpha1.LeaveStatus) { l.Waiting = "agent" })},
		},
		{
			name: "the member is clean", reason: "access is revoked before the namespace is deleted, which may take long",
			o: observedLeaving(func(o *HubObserved) { o.Membership.Report = ReportedClean }),
			want: want{
				phase: v1alpha1.PhaseLeaving, actions: []HubAction{RevokeAccess, DeleteNamespace}, reason: v1alpha1.ReasonLeaving,
				message: "Waiting for the member's namespace to be removed.",
				leave:   record(func(r *v1alpha1.LeaveStatus) { r.Waiting = waitingForNamespace }), after: GatePoll,
			},
		},
		{
			name:   "the deadline has passed",
			reason: "the blocker is recorded before the leave is forced, and is unknown afterwards",
			o:      observedLeaving(func(o *HubObserved) { o.Now = epoch.Add(deadline) }),
			want: want{
				phase: v1alpha1.PhaseLeaving, reason: v1alpha1.ReasonLeaving, after: time.Nanosecond,
				message: "The deadline passed: the cluster is being removed while waiting for the agent.",
				leave: record(func(l *v1alpha1.LeaveStatus) {
					l.Forced, l.ForcedAt, l.Waiting = true, new(metav1.NewTime(epoch.Add(deadline))), "agent"
				}),
			},
		},
		{
			name:   "the leave was forced long after the deadline and the namespace terminates",
			reason: "forced gates get NamespaceTimeout, also after the deadline was shortened to the past",
			o: observedLeaving(func(o *HubObserved) {
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
			name:   "a forced leave whose namespace terminates for NamespaceTimeout",
			reason: "a finalizer that is never removed blocks a leave for NamespaceTimeout at most",
			o: observedLeaving(func(o *HubObserved) {
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
			name:   "the leave is forced",
			reason: "the gates are forced before the namespace is deleted, also if they were never called",
			o: observedLeaving(func(o *HubObserved) {
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
			name:   "the leave is forced and the namespace terminates",
			reason: "gates are forced until the namespace is removed, since their finalizers block it",
			o: observedLeaving(func(o *HubObserved) {
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
			name: "all objects of the deleted member are removed", reason: "the finalizer is removed last",
			o: observedLeaving(func(o *HubObserved) { o.Namespace, o.Access, o.Membership, o.Gates = Absent, false, nil, nil }),
			want: want{
				phase: v1alpha1.PhaseLeft, actions: []HubAction{WriteTombstone, RemoveFinalizer}, reason: v1alpha1.ReasonLeft,
				message: "The cluster has left. Set spec.state to Join to let the cluster join again, or delete this " +
					"MemberCluster.",
				leave: record(func(*v1alpha1.LeaveStatus) {}),
			},
		},
		{
			name:   "all objects are removed and the leave can still be canceled",
			reason: "otherwise a paused leader could write the tombstone after the leave was canceled",
			o: observedLeaving(func(o *HubObserved) {
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
			name:   "Join is desired again while the leave waits for the namespace",
			reason: "a leave that waits for the namespace is not canceled",
			o: observedLeaving(func(o *HubObserved) {
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
			name:   "all objects are removed and the MemberCluster is kept",
			reason: "the claim is released before the end is recorded; otherwise it would block a join",
			o: observedLeaving(func(o *HubObserved) {
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
			name:   "the member leaves a second time",
			reason: "the record of the former leave does not apply to this one, whose agent has not confirmed",
			o: observedLeaving(func(o *HubObserved) {
				o.Leave.Ended, o.Leave.Forced, o.Now = true, true,
					epoch.Add(time.Hour)
			}),
			want: want{
				phase: v1alpha1.PhaseLeaving, reason: v1alpha1.ReasonLeaving, message: "The cluster is leaving.",
				after: time.Nanosecond,
				leave: &v1alpha1.LeaveStatus{StartedAt: metav1.NewTime(epoch.Add(time.Hour)),
					Deadline: metav1.NewTime(epoch.Add(time.Hour + deadline))},
			},
		},
		{
			name: "the member left by force and the claim is released", reason: "the forced end and its reason stay recorded",
			o: observedLeaving(func(o *HubObserved) {
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
			name: "the end of a forced leave is recorded", reason: "the gates are not forced again",
			o: observedLeaving(func(o *HubObserved) {
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
			name:   "the leave is canceled before the clean-up",
			reason: "nothing is irrevocable before the agent is requested to clean up",
			o: observedLeaving(func(o *HubObserved) {
				o.Deletion.Requested, o.Gates, o.Membership.State = false, nil, v1alpha1.StateLeave
			}),
			want: want{
				phase: v1alpha1.PhaseJoined, actions: []HubAction{WriteMembership}, reason: v1alpha1.ReasonAgentJoined,
				message: "The agent has confirmed that it has joined.",
			},
		},
		{
			name:   "the leave is canceled after the agent was requested to clean up",
			reason: "the agent may have stopped, so the member leaves before it joins again",
			o: observedLeaving(func(o *HubObserved) {
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

func TestNextHub_Final(t *testing.T) {
	for _, test := range []struct {
		name   string
		reason string
		o      HubObserved
		want   bool
	}{
		{"a joined member", "the step has no action", observedJoined(func(*HubObserved) {}), false},
		{"a member whose acceptance was withdrawn",
			"access can be granted again", observedJoined(func(o *HubObserved) { o.Spec.Accepted = new(false) }),
			false},
		{"a member whose claim was cleared",
			"its agent may assume that it is deregistered", observedJoined(func(o *HubObserved) { o.Spec.Claimed = false }),
			true},
		{"a leaving member with a closed gate",
			"the leave can be canceled", observedLeaving(func(o *HubObserved) { o.Gates.Waiting = "works" }),
			false},
		{"a leaving member with a closed gate that is not accepted",
			"the revocation of access does not wait for current reads",
			observedLeaving(func(o *HubObserved) { o.Spec.Accepted, o.Gates.Waiting = nil, "works" }), false},
		{"a leaving member that is clean", "without access, a member that is not clean could not report it",
			observedLeaving(func(o *HubObserved) { o.Membership.Report = ReportedClean }), true},
		{"a leaving member with access in a terminating namespace",
			"access is revoked", observedLeaving(func(o *HubObserved) { o.Namespace = Terminating }),
			true},
		{"a leaving member after its deadline", "a leave that is recorded as forced waits for nothing",
			observedLeaving(func(o *HubObserved) { o.Now = epoch.Add(deadline) }), true},
		{"a forced leave whose namespace terminates", "current reads on each reconcile would be polling",
			observedLeaving(func(o *HubObserved) {
				o.Namespace, o.Access, o.Membership, o.Leave.Forced = Terminating, false, nil, true
			}), false},
		{"a deleted member without objects", "objects that remain after this step are never removed",
			observedLeaving(func(o *HubObserved) { o.Namespace, o.Access, o.Membership = Absent, false, nil }), true},
		{"a kept MemberCluster without objects",
			"objects that remain after this step are never removed", observedLeaving(func(o *HubObserved) {
				o.Deletion.Requested, o.Spec.Desired = false, v1alpha1.StateLeave
				o.Namespace, o.Access, o.Membership = Absent, false, nil
			}), true},
		{"a kept MemberCluster without objects and claim", "the record of the end is the last action",
			observedLeaving(func(o *HubObserved) {
				o.Deletion.Requested, o.Spec.Desired, o.Spec.Claimed = false, v1alpha1.StateLeave, false
				o.Namespace, o.Access, o.Membership = Absent, false, nil
			}), true},
		{"a kept MemberCluster without a recorded leave",
			"the namespace may have been created just before", observedLeaving(func(o *HubObserved) {
				o.Deletion.Requested, o.Spec.Desired, o.Spec.Claimed = false, v1alpha1.StateLeave, false
				o.Namespace, o.Access, o.Membership = Absent, false, nil
				o.Leave, o.Phase = nil, v1alpha1.PhaseAccepted
			}), true},
		{"a member in phase Left without a recorded leave",
			"a member without pending work needs no current reads", observedLeaving(func(o *HubObserved) {
				o.Deletion.Requested, o.Spec.Desired, o.Spec.Claimed = false, v1alpha1.StateLeave, false
				o.Namespace, o.Access, o.Membership = Absent, false, nil
				o.Leave, o.Phase = nil, v1alpha1.PhaseLeft
			}), false},
		{"a member that leaves a second time",
			"a stale cache of a deleted namespace must not start another leave again and again",
			observedLeaving(func(o *HubObserved) {
				o.Leave.Ended = true
			}), true},
		{"a member whose leave ended long ago",
			"a member without pending work needs no current reads", observedLeaving(func(o *HubObserved) {
				o.Deletion.Requested, o.Spec.Desired, o.Spec.Claimed = false, v1alpha1.StateLeave, false
				o.Namespace, o.Access, o.Membership = Absent, false, nil
				o.Leave.Ended, o.Leave.Forced = true, true
			}), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if step := NextHub(test.o); step.Final != test.want {
				t.Errorf("%s: want Final %v, got %v: %+v", test.reason, test.want, step.Final, step)
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

func TestHubStep_WithError(t *testing.T) {
	const ready = v1alpha1.ConditionReadyToJoin
	for _, test := range []struct {
		name   string
		reason string
		o      HubObserved
		want   metav1.Condition
	}{
		{"a joined member", "an object that the agent needs may be missing", observedJoined(func(*HubObserved) {}),
			no(ready, v1alpha1.ReasonPreparing, "Failure.")},
		{"a leaving member", "the reason is the leave, and the message also has the error",
			observedLeaving(func(*HubObserved) {}), no(ready, v1alpha1.ReasonLeaving, "The cluster is leaving. Failure.")},
		{"a denied member",
			"the reason is the acceptance, and the message also has the error",
			observedJoined(func(o *HubObserved) { o.Spec.Accepted = new(false) }),
			no(ready, v1alpha1.ReasonNotAccepted, "The cluster is not accepted. Failure.")},
	} {
		t.Run(test.name, func(t *testing.T) {
			step := NextHub(test.o)
			failing := step.WithError("Failure.")
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
		name      string
		reason    string
		o         HubObserved
		requested v1alpha1.CredentialType
		want      string
	}{
		{"a joined member", "the renewal is permitted", observedJoined(func(*HubObserved) {}), token, ""},
		{"a member that is not accepted",
			"a certificate cannot be revoked", observedJoined(func(o *HubObserved) { o.Spec.Accepted = nil }),
			token,
			"The cluster is not accepted: an administrator must set spec.accepted of its MemberCluster to true."},
		{"a leaving member with access",
			"a clean-up may take longer than the lifetime of a credential", observedLeaving(func(*HubObserved) {}), token, ""},
		{"a leaving member without access",
			"the agent has nothing more to confirm", observedLeaving(func(o *HubObserved) { o.Access = false }),
			token, "The cluster is leaving."},
		{"a forced leave",
			"the hub does not wait for the agent", observedLeaving(func(o *HubObserved) { o.Leave.Forced = true }), token,
			"The cluster is leaving."},
		{"a request for another credential type",
			"the subject of the access depends on the type", observedJoined(func(*HubObserved) {}), certificate,
			"The agent joined with a credential of another type: let the cluster leave and join again to change it."},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := RefuseRenewal(test.o, token, test.requested); got != test.want {
				t.Errorf("%s: want %q, got %q", test.reason, test.want, got)
			}
		})
	}
}
