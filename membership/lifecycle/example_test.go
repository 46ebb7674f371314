package lifecycle_test

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// A member is deleted while one of its Works still exists, and nothing changes until its deadline.
func ExampleNextHub() {
	start := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	accepted := true
	observed := lifecycle.HubObserved{
		Now: start,
		Spec: lifecycle.SpecSeen{
			Desired: v1alpha1.StateJoin, Accepted: &accepted, Claimed: true, Deadline: 15 * time.Minute,
		},
		Deletion: lifecycle.DeletionSeen{Requested: true}, Finalizer: true, Namespace: lifecycle.Present, Access: true,
		Membership: &lifecycle.MembershipSeen{State: v1alpha1.StateJoin, Rejoin: true, Report: lifecycle.ReportedJoined},
	}
	show := func() {
		step := lifecycle.NextHub(observed)
		observed.Leave = step.Leave // the controller writes it into the status
		fmt.Println(step.Phase, step.Actions)
		for _, condition := range step.Conditions {
			if condition.Type == v1alpha1.ConditionJoined {
				fmt.Println("   ", condition.Message)
			}
		}
	}
	show()
	show()
	observed.Gates = &lifecycle.GatesSeen{Waiting: "works", Remaining: []string{"work/guestbook"}}
	show()
	observed.Now = start.Add(15 * time.Minute)
	show()
	show()
	// Output:
	// Leaving []
	//     The cluster is leaving.
	// Leaving [AskGates]
	// Leaving [WriteMembership]
	//     Waiting until 2026-01-01T12:15:00Z for works (work/guestbook).
	// Leaving []
	//     The deadline passed: the cluster is being removed while waiting for works (work/guestbook).
	// Leaving [RevokeAccess ForceGates DeleteNamespace]
	//     The deadline passed: the cluster is being removed while waiting for works (work/guestbook).
}

// An agent whose access is refused requests the reason before it takes any other action.
func ExampleNextAgent() {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	observed := lifecycle.AgentObserved{
		Now:      now,
		Record:   lifecycle.Record{Registered: true},
		Hub:      lifecycle.HubRefused,
		HubSince: now,
	}
	step := lifecycle.NextAgent(observed)
	fmt.Println(step.Phase, step.Actions)
	observed.Now = now.Add(lifecycle.ShutOutTimeout)
	for _, answer := range []lifecycle.JoinRequestState{lifecycle.JoinRequestNotAsked, lifecycle.JoinRequestDenied,
		lifecycle.JoinRequestDeregistered} {
		observed.JoinRequest = answer
		step := lifecycle.NextAgent(observed)
		fmt.Println(step.Phase, step.Actions)
	}
	// Output:
	// Joining [ReadMembership]
	// Rejected [MakeRequest CheckJoinRequest ReadMembership]
	// Rejected [CheckJoinRequest ReadMembership]
	// Leaving [RecordDeregistered]
}

// A cluster requests to join with an ID that another agent has claimed already.
func ExampleNextJoinRequest() {
	step := lifecycle.NextJoinRequest(lifecycle.JoinRequestObserved{
		ClusterID: "4f1c", Name: "east", Agent: lifecycle.RequesterSeen{Claim: "b2"},
		Acceptor: lifecycle.AcceptorSeen{Acceptance: membership.Acceptance{Decision: membership.Accept}},
		Members:  lifecycle.MembersSeen{ByID: &lifecycle.MemberSeen{Name: "east", ClusterID: "4f1c", Claim: "a1"}},
	})
	fmt.Println(step.Answer, step.Reason)
	fmt.Println(step.Message)
	// Output:
	// Held ClusterIDTaken
	// Cluster ID 4f1c belongs to member east, which another agent has claimed. To let this agent take over, set spec.claim of MemberCluster east to b2.
}

// The heartbeats of a member stop: its condition changes, and a taint follows the condition.
func ExampleTaints() {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	healthy := lifecycle.Health(lifecycle.HealthObserved{
		Joined: true, Heartbeat: lifecycle.HeartbeatLost, Heard: now.Add(-195 * time.Second), Grace: 195 * time.Second,
	})
	healthy.LastTransitionTime = metav1.NewTime(now)
	fmt.Println(healthy.Status, healthy.Message)
	taints, _ := lifecycle.Taints(lifecycle.TaintsObserved{Now: now, In: true, Healthy: healthy})
	fmt.Println(taints[0].Key, taints[0].Effect)
	// Output:
	// Unknown No heartbeat since 2026-01-01T11:56:45Z (grace 3m15s).
	// membership.muster.dev/unreachable NoExecute
}
