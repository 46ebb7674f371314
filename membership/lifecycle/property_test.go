package lifecycle

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// The fixed sets of v1alpha1.
var (
	hubConditions = map[string][]string{
		v1alpha1.ConditionAccepted: {
			v1alpha1.ReasonAccepted,
			v1alpha1.ReasonNotDecided,
			v1alpha1.ReasonDenied,
			v1alpha1.ReasonPolicyFailed,
		},
		v1alpha1.ConditionReadyToJoin: {
			v1alpha1.ReasonPrepared,
			v1alpha1.ReasonPreparing,
			v1alpha1.ReasonNotAccepted,
			v1alpha1.ReasonLeaving,
			v1alpha1.ReasonLeft,
			v1alpha1.ReasonLeaveForced,
		},
		v1alpha1.ConditionJoined: {
			v1alpha1.ReasonAgentJoined, v1alpha1.ReasonWaitingForAgent, v1alpha1.ReasonPreparing, v1alpha1.ReasonNotAccepted,
			v1alpha1.ReasonLeaving, v1alpha1.ReasonLeft, v1alpha1.ReasonLeaveForced,
		},
	}
	joinRequestReasons = []string{
		v1alpha1.ReasonWaitingForAcceptance,
		v1alpha1.ReasonClaimKeyReplaced,
		v1alpha1.ReasonClusterIDTaken,
		v1alpha1.ReasonNameTaken,
		v1alpha1.ReasonNameReserved,
		v1alpha1.ReasonStateLeave,
		v1alpha1.ReasonInvalidRequest,
		v1alpha1.ReasonTokenRefused, v1alpha1.ReasonTokenEnded,
		v1alpha1.ReasonDeregistered,
		v1alpha1.ReasonIdentityMissing,
		v1alpha1.ReasonIssuing,
		v1alpha1.ReasonIssued,
		v1alpha1.ReasonPreparing,
		v1alpha1.ReasonDenied,
		v1alpha1.ReasonDifferentHub,
		v1alpha1.ReasonUnknownMember,
		v1alpha1.ReasonClaimReleased,
		v1alpha1.ReasonClusterIDChanged,
	}
	acceptances = []*bool{nil, new(true), new(false)}
	states      = []v1alpha1.DesiredState{"", v1alpha1.StateJoin, v1alpha1.StateLeave}
)

func anyTime(t *rapid.T, name string) time.Time {
	return epoch.Add(time.Duration(rapid.IntRange(-3600, 3600).Draw(t, name)) * time.Second)
}

func anyMembership(t *rapid.T) MembershipSeen {
	return MembershipSeen{
		State:  rapid.SampledFrom(states).Draw(t, "membership state"),
		Rejoin: rapid.Bool().Draw(t, "rejoin"), Clean: rapid.Bool().Draw(t, "clean"),
		Report: AgentReport(rapid.IntRange(0, 2).Draw(t, "report")),
	}
}

func anyHub(t *rapid.T) HubObserved {
	o := HubObserved{
		Now:      anyTime(t, "now"),
		Deletion: DeletionSeen{Requested: rapid.Bool().Draw(t, "deleting")},
		Spec: SpecSeen{
			Desired:  rapid.SampledFrom(states).Draw(t, "desired"),
			Accepted: rapid.SampledFrom(acceptances).Draw(t, "accepted"),
			JoinMode: rapid.SampledFrom([]v1alpha1.JoinMode{v1alpha1.JoinPull, v1alpha1.JoinPush, v1alpha1.JoinInstall}).Draw(
				t,
				"mode",
			),
			Claimed:  rapid.Bool().Draw(t, "claimed"),
			Deadline: time.Duration(rapid.IntRange(0, 3600).Draw(t, "deadline")) * time.Second,
		},
		Finalizer: rapid.Bool().Draw(t, "finalizer"),
		Namespace: Presence(rapid.IntRange(0, 2).Draw(t, "namespace")),
		Access:    rapid.Bool().Draw(t, "access"),
		Acceptor: AcceptorSeen{Acceptance: membership.Acceptance{
			Decision: rapid.SampledFrom([]membership.Decision{"", membership.Accept, membership.Hold, membership.Deny}).Draw(
				t,
				"decision",
			),
		}, Error: rapid.SampledFrom([]string{"", "no route"}).Draw(t, "acceptor error")},
	}
	if o.Deletion.Requested {
		o.Deletion.WithDefinition = rapid.Bool().Draw(t, "with definition")
		o.Deletion.Unconfirmed = rapid.Bool().Draw(t, "unconfirmed")
	}
	if rapid.Bool().Draw(t, "has leave") {
		o.Leave = &v1alpha1.LeaveStatus{
			StartedAt: metav1.NewTime(anyTime(t, "started")), Deadline: metav1.NewTime(anyTime(t, "recorded deadline")),
			Waiting: rapid.SampledFrom([]string{"", "agent", "works", "namespace"}).Draw(t, "waiting"),
			Forced:  rapid.Bool().Draw(t, "forced"), Ended: rapid.Bool().Draw(t, "ended"),
		}
		if o.Leave.Forced && rapid.Bool().Draw(t, "has forced time") {
			o.Leave.ForcedAt = new(
				metav1.NewTime(o.Now.Add(-time.Duration(rapid.IntRange(0, 120).Draw(t, "forced for")) * time.Second)))
		}
	}
	if rapid.Bool().Draw(t, "has Membership") {
		o.Membership = new(anyMembership(t))
	}
	if rapid.Bool().Draw(t, "gates asked") {
		o.Gates = &GatesSeen{
			Waiting:   rapid.SampledFrom([]string{"", "works"}).Draw(t, "gate"),
			Remaining: rapid.SliceOfN(rapid.Just("x"), 0, 30).Draw(t, "remaining"),
		}
	}
	return o
}

// TestNextHub_Properties checks, for all observations, that phases and reasons are those of the API, and that a
// recorded leave never goes back.
func TestNextHub_Properties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := anyHub(t)
		before := o.Leave.DeepCopy()
		step := NextHub(o)
		if again := NextHub(o); !cmp.Equal(step, again) || !cmp.Equal(before, o.Leave) {
			t.Fatalf("NextHub is not deterministic or changes its argument")
		}
		if step.After < 0 {
			t.Fatalf("invalid requeue after %s", step.After)
		}
		if (o.Deletion.WithDefinition || o.Deletion.Unconfirmed) && o.DependsOnDefinition() {
			harmless := len(step.Actions) == 0 ||
				!o.Deletion.Unconfirmed && slices.Equal(step.Actions, []HubAction{RemoveFinalizer})
			if !harmless || len(step.Conditions) > 0 || step.Phase != o.Phase || !cmp.Equal(step.Leave, o.Leave) {
				t.Fatalf("a deletion that no user requested changes the member: %+v", step)
			}
			return
		}
		callsGates := slices.Contains(step.Actions, AskGates)
		if callsGates != (len(step.Conditions) == 0) || callsGates && o.Gates != nil {
			t.Fatalf("want conditions in every step except the first call of the gates, got %+v", step)
		}
		for _, c := range step.Conditions {
			if !slices.Contains(hubConditions[c.Type], c.Reason) {
				t.Fatalf("condition %s: unknown reason %q", c.Type, c.Reason)
			}
			if c.Message == "" {
				t.Fatalf("condition %s: no message", c.Type)
			}
		}
		is, was := step.Leave, thisLeave(o)
		if force, remove := slices.Index(step.Actions, ForceGates), slices.Index(
			step.Actions,
			DeleteNamespace,
		); is != nil && is.Forced && remove >= 0 &&
			(force < 0 || force > remove) {
			t.Fatalf("the namespace is deleted before the gates are forced: %v", step.Actions)
		}
		if was != nil && is != nil && was.Ended && !is.Ended && is.Waiting == waitingForNamespace &&
			is.StartedAt.Equal(new(metav1.NewTime(o.Now))) {
			was = nil // another leave, which is recorded before its tombstone
		}
		switch {
		case is == nil:
			if was != nil && (o.Deletion.Requested || o.Spec.Desired == v1alpha1.StateLeave) {
				t.Fatalf("the record of a leave in progress is removed")
			}
		case was != nil && (was.Forced && !is.Forced || was.Ended && !is.Ended && len(step.Actions) == 0 ||
			!is.StartedAt.Equal(&was.StartedAt)):
			t.Fatalf("the record of a leave goes back from %+v to %+v", was, is)
		case was != nil && was.Forced && !is.ForcedAt.Equal(was.ForcedAt) || is.Forced && (was == nil || !was.Forced) &&
			!is.ForcedAt.Equal(new(metav1.NewTime(o.Now))):
			t.Fatalf("the record has a wrong ForcedAt: from %+v to %+v", was, is)
		case step.Phase == v1alpha1.PhaseLeft && o.Namespace == Terminating && was != nil && !was.Ended &&
			was.ForcedAt != nil && o.Now.Before(was.ForcedAt.Add(NamespaceTimeout)):
			t.Fatalf("gates that were forced at %s do not get NamespaceTimeout", was.ForcedAt)
		case is.Forced && (was == nil || !was.Forced) && len(without(step.Actions, RevokeAccess)) > 0:
			t.Fatalf("a leave is forced before the record is written: %v", step.Actions)
		}
		if step.Leave != nil && len(step.Leave.Remaining) > 20 {
			t.Fatalf("the record has more than the 20 entries that the API accepts")
		}
	})
}

func anyMember(t *rapid.T, name string) *MemberSeen {
	if rapid.Bool().Draw(t, "no "+name) {
		return nil
	}
	return &MemberSeen{
		Name:      name,
		UID:       rapid.SampledFrom([]types.UID{"uid", "other"}).Draw(t, name+" uid"),
		ClusterID: rapid.SampledFrom([]string{"", "id", "other"}).Draw(t, name+" id"),
		Claim:     rapid.SampledFrom([]string{"", "mine", "other"}).Draw(t, name+" claim"),
		Accepted:  rapid.SampledFrom(acceptances).Draw(t, name+" accepted"),
		Credential: rapid.SampledFrom(
			[]v1alpha1.CredentialType{"", v1alpha1.CredentialToken, v1alpha1.CredentialIdentity}).Draw(
			t,
			name+" credential",
		),
		Deleting:   rapid.Bool().Draw(t, name+" deleting"),
		Desired:    rapid.SampledFrom(states).Draw(t, name+" desired"),
		Leaving:    rapid.Bool().Draw(t, name+" leaving"),
		Prepared:   rapid.Bool().Draw(t, name+" prepared"),
		Identified: rapid.Bool().Draw(t, name+" identified"),
		AgentSeen: AgentSeen{Keys: rapid.SampledFrom([]*v1alpha1.ClaimKeys{
			nil, {Claim: "mine", Current: "later"}, {Claim: "mine", Current: "unknown"}, {Claim: "other", Current: "theirs"},
		}).Draw(t, name+" keys")},
	}
}

func anyTombstone(t *rapid.T) Tombstone {
	return Tombstone{
		MemberUID: rapid.SampledFrom([]types.UID{"uid", "gone"}).Draw(
			t,
			"UID",
		),
		ClusterID: rapid.SampledFrom([]string{"id", "other"}).Draw(t, "cluster ID"),
		Claim: rapid.SampledFrom([]string{"", "mine", "other"}).Draw(
			t,
			"claim",
		),
		Decided: rapid.Bool().Draw(t, "decided"),
		Kept:    rapid.Bool().Draw(t, "kept"),
	}
}

// TestNextJoinRequest_Properties checks, for all observations, that NextJoinRequest issues credentials only to accepted
// clusters, revokes no claim, and does not withdraw the answer that a member is deregistered.
func TestNextJoinRequest_Properties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		uid := rapid.SampledFrom([]types.UID{"", "uid", "gone"})
		o := JoinRequestObserved{
			Status: AnswerSeen{
				Answer: rapid.SampledFrom(answers).Draw(t, "answer"),
				Reason: rapid.SampledFrom(append(joinRequestReasons, "")).Draw(t, "reason"),
				Bound:  uid.Draw(t, "bound"),
			},
			Invalid: rapid.SampledFrom([]string{"", "invalid"}).Draw(t, "invalid"),
			Token: TokenSeen{
				Refused: rapid.SampledFrom([]string{"", "refused"}).Draw(t, "token"),
				Ended:   rapid.SampledFrom([]string{"", "ended"}).Draw(t, "token ended"),
			},
			Acceptor: AcceptorSeen{Acceptance: membership.Acceptance{
				Decision: rapid.SampledFrom([]membership.Decision{"", membership.Accept, membership.Hold, membership.Deny}).Draw(
					t,
					"decision",
				),
			}},
			ClusterID: "id",
			Name:      "east",
			Type: rapid.SampledFrom([]v1alpha1.CredentialType{"", v1alpha1.CredentialToken, v1alpha1.CredentialIdentity}).Draw(
				t,
				"type",
			),
			Agent: RequesterSeen{
				Claim:     "mine",
				Keys:      rapid.SampledFrom([][]string{nil, {"later"}, {"newest", "later"}}).Draw(t, "keys"),
				MemberUID: uid.Draw(t, "member UID"),
				HubID:     rapid.SampledFrom([]string{"", "this", "other"}).Draw(t, "hub"),
			},
			HubID:      "this",
			Tombstones: rapid.SliceOfN(rapid.Custom(anyTombstone), 0, 2).Draw(t, "tombstones"),
			Members:    MembersSeen{ByID: anyMember(t, "east"), ByName: anyMember(t, "named")},
		}
		if o.Members.ByID != nil && rapid.Bool().Draw(t, "two") {
			o.Members.Others = []string{"west"}
		}
		step := NextJoinRequest(o)
		if !slices.Contains(joinRequestReasons, step.Reason) || !slices.Contains(answers[1:], step.Answer) ||
			step.Message == "" {
			t.Fatalf("invalid reason, answer or message: %+v", step)
		}
		if o.Status.Answer == v1alpha1.AnswerDeregistered && step.Answer != v1alpha1.AnswerDeregistered {
			t.Fatalf("the answer Deregistered is withdrawn")
		}
		if step.Answer == v1alpha1.AnswerDeregistered && o.Status.Answer != step.Answer &&
			(len(o.Tombstones) == 0 || o.Agent.HubID == "other") {
			t.Fatalf("the answer is Deregistered without a tombstone, or for a member of another hub: %+v", o)
		}
		for _, action := range step.Actions {
			m := step.Member
			switch action {
			case CreateMember:
				if o.Members.ByID != nil || o.Members.ByName != nil {
					t.Fatalf("CreateMember of an existing MemberCluster: %+v", o)
				}
				if o.memberUID() != "" && !o.Token.Readopt && slices.Contains(step.Actions, AcceptMember) {
					t.Fatalf("a cluster is accepted that a user may have removed: %+v", o)
				}
			case BindMember:
				if m == nil || m.Claim != "" && m.Claim != o.Agent.Claim || m.Deleting {
					t.Fatalf("BindMember replaces another claim or binds a deleted member: %+v", m)
				}
			case AcceptMember:
				if o.Agent.MemberUID != "" && (m == nil || m.UID != o.Agent.MemberUID) && !o.Token.Readopt {
					t.Fatalf("a cluster is accepted that a user may have removed: %+v", o)
				}
				if o.Acceptor.Decision != membership.Accept || m != nil && m.Accepted != nil {
					t.Fatalf("AcceptMember without the Acceptor or against an administrator: %+v", m)
				}
			case IssueCredential:
				if m == nil || !accepted(m) || m.Claim != o.Agent.Claim || m.Credential != o.Type || !m.Prepared {
					t.Fatalf("IssueCredential for a member that is not accepted, claimed and prepared: %+v", m)
				}
				if k := m.Keys; k != nil && k.Claim == o.Agent.Claim && !slices.Contains(o.Agent.Keys, k.Current) {
					t.Fatalf("IssueCredential for replaced keys %v, current key %s", o.Agent.Keys, k.Current)
				}
			case ReportReuse:
				if k := m.Keys; k.Claim != o.Agent.Claim || slices.Contains(o.Agent.Keys, k.Current) ||
					step.Answer != v1alpha1.AnswerHeld {
					t.Fatalf("ReportReuse of keys %v, current key %s: %+v", o.Agent.Keys, k.Current, step)
				}
			}
		}
	})
}

// TestNextAgent_Properties checks, for all observations, that an agent has a next step, cleans up only a member that
// was deregistered or must leave, and never loops without a pause.
func TestNextAgent_Properties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := AgentObserved{
			Now:              anyTime(t, "now"),
			JoinRequestSince: anyTime(t, "JoinRequest since"),
			HubSince:         anyTime(t, "hub since"),
			MemberAt:         anyTime(t, "member at"),
			Record: Record{
				Claim:        rapid.Bool().Draw(t, "claim"),
				Registered:   rapid.Bool().Draw(t, "registered"),
				Deregistered: rapid.Bool().Draw(t, "deregistered"),
				Kept:         rapid.Bool().Draw(t, "kept"),
				Out:          rapid.Bool().Draw(t, "out"),
			},
			JoinRequest: JoinRequestState(rapid.IntRange(-1, int(JoinRequestIssued)+1).Draw(t, "JoinRequest")),
			Hub:         HubState(rapid.IntRange(-1, int(HubSeen)+1).Draw(t, "hub")),
			Membership:  anyMembership(t),
			PolicySaved: rapid.Bool().Draw(t, "policy"),
			Beating:     rapid.Bool().Draw(t, "beating"),
			Member:      MemberState(rapid.IntRange(-1, 4).Draw(t, "member")),
			Renewal:     RenewalState(rapid.IntRange(-1, 5).Draw(t, "renewal")),
		}
		if rapid.Bool().Draw(t, "renews") {
			o.RenewAt = anyTime(t, "renew at")
		}
		step := NextAgent(o)
		if step.Phase == "" || step.Message == "" || step.After < 0 {
			t.Fatalf("invalid phase, message or requeue: %+v", step)
		}
		if len(step.Actions) == 0 && step.After < joinRequestPoll {
			t.Fatalf("no actions and a requeue after %s", step.After)
		}
		// The interval depends on the ages of the observations. TestNextAgent checks its values.
		polls := slices.Contains(step.Actions, CheckJoinRequest) || slices.Contains(step.Actions, ReadMembership)
		if polls && step.After != 0 && (step.After < joinRequestPoll || step.After > BlockedPoll) {
			t.Fatalf("invalid interval of requests to the hub: %s", step.After)
		}
		refused := o.Record.Registered && !o.Record.Deregistered && !o.Record.Out && (o.Hub == HubRefused || o.Hub == HubGone)
		if refused && o.Now.Before(o.HubSince.Add(ShutOutTimeout)) &&
			!slices.Equal(step.Actions, []AgentAction{ReadMembership}) {
			t.Fatalf("actions before ShutOutTimeout: %v", step.Actions)
		}
		notified := o.Hub == HubSeen && o.Membership.State == v1alpha1.StateLeave && o.Membership.Clean
		if slices.Contains(step.Actions, CleanMember) && !o.Record.Deregistered && !notified {
			t.Fatalf("CleanMember for a member that must not leave")
		}
		if slices.Contains(step.Actions, RecordDeregistered) && o.JoinRequest != JoinRequestDeregistered &&
			o.JoinRequest != JoinRequestDeregisteredKept {
			t.Fatalf("RecordDeregistered without the answer of the hub")
		}
		ends := slices.Contains(step.Actions, RecordOut) || slices.Contains(step.Actions, StartOver)
		if ends && o.Record.Deregistered && o.Member != MemberClean {
			t.Fatalf("the membership ends before the member is clean")
		}
		if slices.Contains(step.Actions, ReportClean) && o.Member != MemberClean {
			t.Fatalf("ReportClean before the member is clean")
		}
	})
}
