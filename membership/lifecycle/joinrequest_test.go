package lifecycle

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

func TestNextJoinRequest(t *testing.T) {
	const (
		pending, blocked, issued = v1alpha1.AnswerPending, v1alpha1.AnswerHeld, v1alpha1.AnswerIssued
		denied, deregistered     = v1alpha1.AnswerDenied, v1alpha1.AnswerDeregistered
	)
	// member returns the member east with a claim, accepted and prepared.
	member := func(claim string, change func(*MemberSeen)) *MemberSeen {
		m := &MemberSeen{
			Name: "east", UID: "uid", ClusterID: "id", Claim: claim, Accepted: new(true), Credential: v1alpha1.CredentialToken,
			Desired: v1alpha1.StateJoin, Prepared: claim != "", Identified: true,
		}
		change(m)
		return m
	}
	unchanged := func(*MemberSeen) {}
	request := func(change func(*JoinRequestObserved)) JoinRequestObserved {
		o := JoinRequestObserved{
			ClusterID: "id",
			Name:      "east",
			Agent:     RequesterSeen{Claim: "mine"},
			Type:      v1alpha1.CredentialToken,
			Acceptor:  AcceptorSeen{Acceptance: membership.Acceptance{Decision: membership.Hold}},
		}
		change(&o)
		return o
	}
	type want struct {
		answer  v1alpha1.JoinAnswer
		reason  string
		actions []JoinRequestAction
		member  bool
		message string
	}
	const deregisteredMessage = "The member left on request: its MemberCluster was deleted, or its spec.state was set " +
		"to Leave."
	const unknownMessage = "The agent is registered as member uid, which does not exist on this hub, and no request to " +
		"remove that member is recorded. Nothing changes on the cluster. Set spec.accepted of MemberCluster east to true " +
		"to adopt the cluster."
	tombstones := func(uid types.UID, kept bool) []Tombstone {
		return []Tombstone{{MemberUID: uid, ClusterID: "id", Claim: "mine", Decided: true, Kept: kept}}
	}
	for _, test := range []struct {
		name   string
		reason string
		o      JoinRequestObserved
		want   want
	}{
		{
			name: "the request is invalid", reason: "an invalid request stays invalid",
			o:    request(func(o *JoinRequestObserved) { o.Invalid = "spec.signature: is not one" }),
			want: want{answer: denied, reason: v1alpha1.ReasonInvalidRequest, message: "spec.signature: is not one"},
		},
		{
			name: "the token is refused", reason: "the token decides which clusters may request to join",
			o:    request(func(o *JoinRequestObserved) { o.Token.Refused = "spec.token: has expired" }),
			want: want{answer: denied, reason: v1alpha1.ReasonTokenRefused, message: "spec.token: has expired"},
		},
		{
			name: "the token expired after the cluster was accepted", reason: "a claimed and accepted member needs no token",
			o: request(func(o *JoinRequestObserved) {
				o.Token.Refused, o.Members.ByID = "spec.token: has expired", member("mine", unchanged)
			}),
			want: want{answer: pending, reason: v1alpha1.ReasonIssuing, actions: []JoinRequestAction{IssueCredential},
				member:  true,
				message: "The credential is being issued."},
		},
		{
			name: "the token expired before a decision", reason: "without the token, the request waits for an administrator",
			o: request(func(o *JoinRequestObserved) {
				o.Token.Refused, o.Acceptor.Decision, o.Members.ByID = "spec.token: has expired", membership.Accept,
					member("mine", func(m *MemberSeen) { m.Accepted = nil })
			}),
			want: want{
				answer: blocked, reason: v1alpha1.ReasonWaitingForAcceptance, member: true,
				message: "Waiting for an administrator to set spec.accepted of MemberCluster east to true.",
			},
		},
		{
			name:   "the token expired and the member was removed",
			reason: "the agent of a removed member must be notified, with any credential",
			o: request(func(o *JoinRequestObserved) {
				o.Token.Refused, o.Agent.MemberUID, o.Tombstones = "spec.token: has expired", "uid", tombstones("uid", false)
			}),
			want: want{answer: deregistered, reason: v1alpha1.ReasonDeregistered, message: deregisteredMessage},
		},
		{
			name:   "the hub has no MemberCluster for the cluster",
			reason: "the hub creates a MemberCluster that an administrator can accept",
			o:      request(func(*JoinRequestObserved) {}),
			want: want{
				answer: blocked, reason: v1alpha1.ReasonWaitingForAcceptance, actions: []JoinRequestAction{CreateMember},
				message: "Waiting for an administrator to set spec.accepted of MemberCluster east to true.",
			},
		},
		{
			name: "the Acceptor accepts the cluster", reason: "an accepted cluster does not wait for an administrator",
			o: request(func(o *JoinRequestObserved) { o.Acceptor.Decision = membership.Accept }),
			want: want{
				answer: pending, reason: v1alpha1.ReasonPreparing, actions: []JoinRequestAction{CreateMember, AcceptMember},
				message: "The hub is preparing for the cluster.",
			},
		},
		{
			name: "the Acceptor denies the cluster", reason: "nothing is created for a denied cluster",
			o: request(func(o *JoinRequestObserved) {
				o.Acceptor.Acceptance = membership.Acceptance{Decision: membership.Deny, Reason: "Not from there."}
			}),
			want: want{answer: denied, reason: v1alpha1.ReasonDenied, message: "Not from there."},
		},
		{
			name:   "the Acceptor fails for a new cluster",
			reason: "nothing is created before a decision, and the message has the error",
			o:      request(func(o *JoinRequestObserved) { o.Acceptor.Error = "call the Acceptor: no route" }),
			want: want{
				answer: pending, reason: v1alpha1.ReasonPolicyFailed,
				message: "The hub's policy failed and is retried: call the Acceptor: no route",
			},
		},
		{
			name:   "the Acceptor fails for an undecided member without a claim",
			reason: "the member is not bound before a decision",
			o: request(func(o *JoinRequestObserved) {
				o.Acceptor.Error, o.Members.ByID = "no route", member("", func(m *MemberSeen) { m.Accepted = nil })
			}),
			want: want{
				answer: pending, reason: v1alpha1.ReasonPolicyFailed, member: true,
				message: "The hub's policy failed and is retried: no route",
			},
		},
		{
			name:   "the Acceptor fails for an undecided member with this claim",
			reason: "the Acceptor is called again until it or an administrator decides",
			o: request(func(o *JoinRequestObserved) {
				o.Acceptor.Error, o.Members.ByID = "no route", member("mine", func(m *MemberSeen) { m.Accepted = nil })
			}),
			want: want{
				answer: pending, reason: v1alpha1.ReasonPolicyFailed, member: true,
				message: "The hub's policy failed and is retried: no route",
			},
		},
		{
			name:   "the Acceptor fails for a MemberCluster without a cluster ID",
			reason: "only the Acceptor could assign the name to this cluster",
			o: request(func(o *JoinRequestObserved) {
				o.Acceptor.Error, o.Members.ByName = "no route", member("", func(m *MemberSeen) { m.ClusterID = "" })
			}),
			want: want{
				answer: pending, reason: v1alpha1.ReasonPolicyFailed, member: true,
				message: "The hub's policy failed and is retried: no route",
			},
		},
		{
			name: "the Acceptor fails for an accepted member", reason: "an accepted member does not wait for the Acceptor",
			o: request(func(o *JoinRequestObserved) {
				o.Acceptor.Error, o.Members.ByID = "no route", member("mine", unchanged)
			}),
			want: want{answer: pending, reason: v1alpha1.ReasonIssuing, actions: []JoinRequestAction{IssueCredential},
				member:  true,
				message: "The credential is being issued."},
		},
		{
			name: "the name belongs to another cluster", reason: "a name is never reassigned",
			o: request(func(o *JoinRequestObserved) {
				o.Members.ByName = member("other", func(m *MemberSeen) { m.ClusterID = "another" })
			}),
			want: want{
				answer: blocked, reason: v1alpha1.ReasonNameTaken, member: true,
				message: "The name east belongs to another cluster (another): start the agent with another name, or delete " +
					"MemberCluster east.",
			},
		},
		{
			name:   "a MemberCluster of the name is accepted without a cluster ID",
			reason: "otherwise any user with a token could use the name for any cluster",
			o: request(func(o *JoinRequestObserved) {
				o.Members.ByName = member("", func(m *MemberSeen) { m.ClusterID = "" })
			}),
			want: want{
				answer: blocked, reason: v1alpha1.ReasonNameReserved, member: true,
				message: "MemberCluster east is accepted without a cluster ID: set its spec.clusterID to id to accept this " +
					"cluster.",
			},
		},
		{
			name: "two MemberClusters have the cluster ID", reason: "the hub cannot decide which of them is meant",
			o: request(func(o *JoinRequestObserved) {
				o.Members.ByID, o.Members.Others = member("", unchanged), []string{"west"}
			}),
			want: want{
				answer: blocked, reason: v1alpha1.ReasonClusterIDTaken, member: true,
				message: "Cluster ID id belongs to MemberCluster east and also to west: delete all but one of them.",
			},
		},
		{
			name:   "the first agent of an accepted MemberCluster without a claim",
			reason: "a MemberCluster without a claim is bound to the first agent of its cluster",
			o:      request(func(o *JoinRequestObserved) { o.Members.ByID = member("", unchanged) }),
			want: want{answer: pending, reason: v1alpha1.ReasonPreparing, actions: []JoinRequestAction{BindMember}, member: true,
				message: "The hub is preparing for the cluster."},
		},
		{
			name:   "another agent has the claim",
			reason: "the request is blocked, the message has the next step, and the other agent stays",
			o:      request(func(o *JoinRequestObserved) { o.Members.ByID = member("other", unchanged) }),
			want: want{
				answer: blocked, reason: v1alpha1.ReasonClusterIDTaken, member: true,
				message: "Cluster ID id belongs to member east, which another agent has claimed. To let this agent take over, " +
					"set spec.claim of MemberCluster east to mine.",
			},
		},
		{
			name:   "another agent has the claim of a registered agent's member",
			reason: "the claim of another agent is no request to clean up this member",
			o: request(func(o *JoinRequestObserved) {
				o.Members.ByID, o.Agent.MemberUID = member("other", unchanged), "uid"
			}),
			want: want{
				answer: blocked, reason: v1alpha1.ReasonClusterIDTaken, member: true,
				message: "Cluster ID id belongs to member east, which another agent has claimed. To let this agent take over, " +
					"set spec.claim of MemberCluster east to mine.",
			},
		},
		{
			name: "the member is claimed and prepared", reason: "a credential is issued when the Membership exists",
			o: request(func(o *JoinRequestObserved) { o.Members.ByID = member("mine", unchanged) }),
			want: want{answer: pending, reason: v1alpha1.ReasonIssuing, actions: []JoinRequestAction{IssueCredential},
				member:  true,
				message: "The credential is being issued."},
		},
		{
			name:   "the member is denied after the credential was issued",
			reason: "withdrawn acceptance replaces an earlier answer",
			o: request(func(o *JoinRequestObserved) {
				o.Status.Answer, o.Members.ByID = issued, member("mine", func(m *MemberSeen) { m.Accepted = new(false) })
			}),
			want: want{answer: denied, reason: v1alpha1.ReasonDenied, member: true, message: "The cluster is denied, or its " +
				"acceptance was withdrawn."},
		},
		{
			name:   "spec.identity is not set for an existing credential",
			reason: "only an administrator knows the subject of the agent's credential",
			o: request(func(o *JoinRequestObserved) {
				o.Type, o.Members.ByID = v1alpha1.CredentialIdentity,
					member("mine", func(m *MemberSeen) { m.Credential, m.Identified = v1alpha1.CredentialIdentity, false })
			}),
			want: want{
				answer: blocked, reason: v1alpha1.ReasonIdentityMissing, member: true,
				message: "The agent has its own credential: set spec.identity of MemberCluster east to the subject that the " +
					"agent authenticates as.",
			},
		},
		{
			name:   "the agent has the claim and requests another credential type",
			reason: "the former agent has access until the recorded type changes",
			o: request(func(o *JoinRequestObserved) {
				o.Type, o.Members.ByID = v1alpha1.CredentialCertificate, member("mine", unchanged)
			}),
			want: want{
				answer: pending, reason: v1alpha1.ReasonPreparing, actions: []JoinRequestAction{BindMember}, member: true,
				message: "The hub is preparing for the cluster.",
			},
		},
		{
			name:   "the agent has the claim and no credential type is recorded",
			reason: "without a recorded type there is no access",
			o: request(func(o *JoinRequestObserved) {
				o.Members.ByID = member("mine", func(m *MemberSeen) { m.Credential = "" })
			}),
			want: want{
				answer: pending, reason: v1alpha1.ReasonPreparing, actions: []JoinRequestAction{BindMember}, member: true,
				message: "The hub is preparing for the cluster.",
			},
		},
		{
			name:   "the member is leaving and its agent requests another credential type",
			reason: "a leaving member gets no new access",
			o: request(func(o *JoinRequestObserved) {
				o.Agent.MemberUID, o.Type = "uid", v1alpha1.CredentialCertificate
				o.Members.ByID = member("mine", func(m *MemberSeen) { m.Leaving = true })
			}),
			want: want{
				answer: blocked, reason: v1alpha1.ReasonStateLeave, member: true,
				message: "MemberCluster east is leaving or has left: set its spec.state to Join to let the cluster join again.",
			},
		},
		{
			name:   "the issued credential has another type than the recorded one",
			reason: "the agent may read the issued credential, and sends a new request if it does not work",
			o: request(func(o *JoinRequestObserved) {
				o.Status.Answer, o.Type, o.Members.ByID = issued, v1alpha1.CredentialCertificate, member("mine", unchanged)
			}),
			want: want{answer: issued, reason: v1alpha1.ReasonIssued, member: true, message: "The credential is in the status."},
		},
		{
			name: "the member has left", reason: "an administrator may let the member join again",
			o: request(func(o *JoinRequestObserved) {
				o.Members.ByID = member("", func(m *MemberSeen) { m.Desired = v1alpha1.StateLeave })
			}),
			want: want{
				answer: blocked, reason: v1alpha1.ReasonStateLeave, member: true,
				message: "MemberCluster east is leaving or has left: set its spec.state to Join to let the cluster join again.",
			},
		},
		{
			name: "the member is leaving and the agent was never registered", reason: "a cluster does not join only to leave",
			o: request(func(o *JoinRequestObserved) {
				o.Members.ByID = member("mine", func(m *MemberSeen) { m.Leaving = true })
			}),
			want: want{
				answer: blocked, reason: v1alpha1.ReasonStateLeave, member: true,
				message: "MemberCluster east is leaving or has left: set its spec.state to Join to let the cluster join again.",
			},
		},
		{
			name:   "the member is leaving and its registered agent has no credential",
			reason: "the agent must confirm that the member is clean; otherwise the leave is forced",
			o: request(func(o *JoinRequestObserved) {
				o.Agent.MemberUID, o.Members.ByID = "uid", member("mine", func(m *MemberSeen) { m.Leaving = true })
			}),
			want: want{answer: pending, reason: v1alpha1.ReasonIssuing, actions: []JoinRequestAction{IssueCredential},
				member:  true,
				message: "The credential is being issued."},
		},
		{
			name: "the member is leaving and is not accepted", reason: "the Acceptor does not accept a leaving member",
			o: request(func(o *JoinRequestObserved) {
				o.Agent.MemberUID, o.Acceptor.Decision = "uid", membership.Accept
				o.Members.ByID = member("mine", func(m *MemberSeen) { m.Deleting, m.Accepted = true, nil })
			}),
			want: want{
				answer: blocked, reason: v1alpha1.ReasonStateLeave, member: true,
				message: "MemberCluster east is leaving or has left: set its spec.state to Join to let the cluster join again.",
			},
		},
		{
			name: "the MemberCluster was deleted", reason: "an agent that was offline is notified",
			o:    request(func(o *JoinRequestObserved) { o.Agent.MemberUID, o.Tombstones = "uid", tombstones("uid", false) }),
			want: want{answer: deregistered, reason: v1alpha1.ReasonDeregistered, message: deregisteredMessage},
		},
		{
			name:   "the MemberCluster was deleted and created again",
			reason: "the recorded removal applies, whatever was created since",
			o: request(func(o *JoinRequestObserved) {
				o.Agent.MemberUID, o.Members.ByID, o.Tombstones = "before", member("", unchanged), tombstones("before", false)
			}),
			want: want{answer: deregistered, reason: v1alpha1.ReasonDeregistered, message: deregisteredMessage},
		},
		{
			name:   "the member left without its agent and the MemberCluster was kept",
			reason: "the claim was released, so the objects on the member are of an earlier membership",
			o: request(func(o *JoinRequestObserved) {
				o.Agent.MemberUID, o.Members.ByID, o.Tombstones = "uid", member("", unchanged), tombstones("uid", true)
			}),
			want: want{answer: deregistered, reason: v1alpha1.ReasonDeregistered, member: true, message: deregisteredMessage},
		},
		{
			name:   "the MemberCluster was deleted after the answer",
			reason: "an old request must not create a deleted member again",
			o: request(func(o *JoinRequestObserved) {
				o.Status.Answer, o.Status.Bound = issued, "uid"
				o.Acceptor.Decision, o.Tombstones = membership.Accept, tombstones("uid", false)
			}),
			want: want{answer: deregistered, reason: v1alpha1.ReasonDeregistered, message: deregisteredMessage},
		},
		{
			name:   "the member left after the answer",
			reason: "an old request must not claim the member before the agent's next key",
			o: request(func(o *JoinRequestObserved) {
				o.Status.Answer, o.Status.Bound, o.Members.ByID, o.Tombstones = issued, "uid", member("", unchanged),
					tombstones("uid", true)
			}),
			want: want{answer: deregistered, reason: v1alpha1.ReasonDeregistered, member: true, message: deregisteredMessage},
		},
		{
			name:   "the MemberCluster was deleted while the agent waited to rejoin",
			reason: "deleting the MemberCluster of a member that left is final",
			o: request(func(o *JoinRequestObserved) {
				o.Status.Answer, o.Status.Reason = blocked, v1alpha1.ReasonStateLeave
				o.Acceptor.Decision, o.Tombstones = membership.Accept, tombstones("uid", false)
			}),
			want: want{answer: deregistered, reason: v1alpha1.ReasonDeregistered, message: deregisteredMessage},
		},
		{
			name:   "the MemberCluster is missing without a tombstone",
			reason: "without a tombstone, no user has removed the MemberCluster",
			o:      request(func(o *JoinRequestObserved) { o.Agent.MemberUID = "uid" }),
			want: want{answer: blocked, reason: v1alpha1.ReasonUnknownMember, actions: []JoinRequestAction{CreateMember},
				message: unknownMessage},
		},
		{
			name:   "the MemberCluster is missing without a tombstone and the Acceptor accepts",
			reason: "a user may have removed the member, and its tombstone may have expired",
			o:      request(func(o *JoinRequestObserved) { o.Agent.MemberUID, o.Acceptor.Decision = "uid", membership.Accept }),
			want: want{answer: blocked, reason: v1alpha1.ReasonUnknownMember, actions: []JoinRequestAction{CreateMember},
				message: unknownMessage},
		},
		{
			name:   "the MemberCluster is missing and the token permits readoption",
			reason: "the token is an administrator's decision on exactly this cluster",
			o: request(func(o *JoinRequestObserved) {
				o.Agent.MemberUID, o.Token.Readopt, o.Acceptor.Decision = "uid", true, membership.Accept
			}),
			want: want{answer: pending, reason: v1alpha1.ReasonPreparing, actions: []JoinRequestAction{CreateMember,
				AcceptMember},
				message: "The hub is preparing for the cluster."},
		},
		{
			name:   "the member is missing and its new MemberCluster is undecided",
			reason: "the reason shows why the request is blocked",
			o: request(func(o *JoinRequestObserved) {
				o.Agent.MemberUID, o.Acceptor.Decision, o.Members.ByID = "uid", membership.Hold,
					member("mine", func(m *MemberSeen) { m.UID, m.Accepted = "new", nil })
			}),
			want: want{answer: blocked, reason: v1alpha1.ReasonUnknownMember, member: true, message: unknownMessage},
		},
		{
			name:   "the MemberCluster created for the request was deleted",
			reason: "the administrator rejected the new MemberCluster, but did not remove the member itself",
			o: request(func(o *JoinRequestObserved) {
				o.Agent.MemberUID, o.Status.Bound, o.Tombstones = "uid", "new",
					[]Tombstone{{MemberUID: "new", ClusterID: "id", Claim: "mine"}}
			}),
			want: want{
				answer: blocked, reason: v1alpha1.ReasonUnknownMember,
				message: "The MemberCluster that was created for this request was deleted. Create MemberCluster east with " +
					"spec.clusterID id and spec.accepted true to adopt the cluster.",
			},
		},
		{
			name:   "the member was removed while another agent had the claim",
			reason: "the MemberCluster was removed by a user and is not created again",
			o: request(func(o *JoinRequestObserved) {
				o.Agent.MemberUID, o.Tombstones = "uid",
					[]Tombstone{{MemberUID: "uid", ClusterID: "id", Claim: "theirs", Decided: true}}
			}),
			want: want{
				answer: blocked, reason: v1alpha1.ReasonUnknownMember,
				message: "The MemberCluster that was created for this request was deleted. Create MemberCluster east with " +
					"spec.clusterID id " +
					"and spec.accepted true to adopt the cluster.",
			},
		},
		{
			name: "the MemberCluster was restored with another UID", reason: "the claim and the cluster ID identify the member",
			o: request(func(o *JoinRequestObserved) {
				o.Agent.MemberUID, o.Members.ByID = "before", member("mine", unchanged)
			}),
			want: want{answer: pending, reason: v1alpha1.ReasonIssuing, actions: []JoinRequestAction{IssueCredential},
				member:  true,
				message: "The credential is being issued."},
		},
		{
			name:   "the MemberCluster was removed and restored with another UID",
			reason: "the MemberCluster with the claim is newer than the tombstone",
			o: request(func(o *JoinRequestObserved) {
				o.Agent.MemberUID, o.Members.ByID, o.Tombstones = "before", member("mine", unchanged), tombstones("before", false)
			}),
			want: want{answer: pending, reason: v1alpha1.ReasonIssuing, actions: []JoinRequestAction{IssueCredential},
				member:  true,
				message: "The credential is being issued."},
		},
		{
			name:   "the MemberCluster was restored with another UID after the answer",
			reason: "the issued credential is for the former UID",
			o: request(func(o *JoinRequestObserved) {
				o.Status.Answer, o.Status.Bound, o.Agent.MemberUID = issued, "before", "before"
				o.Members.ByID = member("mine", unchanged)
			}),
			want: want{answer: pending, reason: v1alpha1.ReasonIssuing, actions: []JoinRequestAction{IssueCredential},
				member:  true,
				message: "The credential is being issued."},
		},
		{
			name: "the MemberCluster was restored without the cluster ID", reason: "the claim has precedence",
			o: request(func(o *JoinRequestObserved) {
				o.Agent.MemberUID = "before"
				o.Members.ByClaim = member("mine", func(m *MemberSeen) { m.ClusterID, m.Prepared = "", false })
			}),
			want: want{answer: pending, reason: v1alpha1.ReasonPreparing, actions: []JoinRequestAction{BindMember}, member: true,
				message: "The hub is preparing for the cluster."},
		},
		{
			name: "the MemberCluster was restored without the claim", reason: "the administrator has set the cluster ID",
			o: request(func(o *JoinRequestObserved) { o.Agent.MemberUID, o.Members.ByID = "before", member("", unchanged) }),
			want: want{answer: pending, reason: v1alpha1.ReasonPreparing, actions: []JoinRequestAction{BindMember}, member: true,
				message: "The hub is preparing for the cluster."},
		},
		{
			name: "the MemberCluster was restored without claim and cluster ID", reason: "the name alone is no proof",
			o: request(func(o *JoinRequestObserved) {
				o.Agent.MemberUID, o.Acceptor.Decision, o.Members.ByName = "before", membership.Accept,
					member("", func(m *MemberSeen) { m.ClusterID = "" })
			}),
			want: want{
				answer: blocked, reason: v1alpha1.ReasonNameReserved, member: true,
				message: "MemberCluster east is accepted without a cluster ID: set its spec.clusterID to id to accept this " +
					"cluster.",
			},
		},
		{
			name:   "the agent has the claim and another cluster ID",
			reason: "the Secrets of the agent may have been copied to another cluster",
			o: request(func(o *JoinRequestObserved) {
				o.Agent.MemberUID, o.Members.ByClaim = "uid", member("mine", func(m *MemberSeen) { m.ClusterID = "other" })
			}),
			want: want{
				answer: blocked, reason: v1alpha1.ReasonClusterIDChanged,
				message: "The claim of the agent belongs to MemberCluster east with cluster ID other, and the agent reports " +
					"cluster ID id: " +
					"restore the agent's cluster ID, or clear spec.claim of MemberCluster east.",
			},
		},
		{
			name:   "the claim was cleared and this agent has reported last",
			reason: "another agent may claim the member, and this agent keeps its objects",
			o: request(func(o *JoinRequestObserved) {
				o.Agent.MemberUID, o.Members.ByID = "uid", member("", func(m *MemberSeen) { m.Reported = "mine" })
			}),
			want: want{
				answer: blocked, reason: v1alpha1.ReasonClaimReleased, member: true,
				message: "The claim of MemberCluster east was cleared: set its spec.claim to mine to let this agent join again.",
			},
		},
		{
			name:   "the agent is a member of another hub",
			reason: "another hub never ends a membership, whatever its tombstones are",
			o: request(func(o *JoinRequestObserved) {
				o.HubID, o.Agent.HubID, o.Agent.MemberUID, o.Tombstones = "this", "that", "uid", tombstones("uid", false)
			}),
			want: want{
				answer: blocked, reason: v1alpha1.ReasonDifferentHub,
				message: "The agent is a member of hub that, and this is hub this: give the agent a join.yaml of its own hub or, " +
					"to move the member to this hub, a join.yaml whose moveFrom is that.",
			},
		},
		{
			name: "the agent does not report a hub ID", reason: "agents of earlier versions report none and continue to work",
			o: request(func(o *JoinRequestObserved) {
				o.HubID, o.Agent.MemberUID, o.Members.ByID = "this", "uid", member("mine", unchanged)
			}),
			want: want{answer: pending, reason: v1alpha1.ReasonIssuing, actions: []JoinRequestAction{IssueCredential},
				member:  true,
				message: "The credential is being issued."},
		},
		{
			name:   "the request was answered with Deregistered before",
			reason: "the agent may act on the answer at any time, so the answer stays",
			o: request(func(o *JoinRequestObserved) {
				o.Status.Answer, o.Agent.MemberUID, o.Members.ByID = deregistered, "uid", member("mine", unchanged)
			}),
			want: want{answer: deregistered, reason: v1alpha1.ReasonDeregistered, member: true, message: deregisteredMessage},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			step := NextJoinRequest(test.o)
			got := want{step.Answer, step.Reason, step.Actions, step.Member != nil, step.Message}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.reason, diff)
			}
		})
	}
}

func TestNextJoinRequest_Final(t *testing.T) {
	gone := JoinRequestObserved{ClusterID: "id", Name: "east", Agent: RequesterSeen{Claim: "mine", MemberUID: "gone"},
		Tombstones: []Tombstone{{MemberUID: "gone", ClusterID: "id", Claim: "mine"}}}
	for _, test := range []struct {
		name   string
		reason string
		o      JoinRequestObserved
		want   bool
	}{
		{"a new cluster", "the step creates a MemberCluster",
			JoinRequestObserved{ClusterID: "id", Name: "east", Agent: RequesterSeen{Claim: "mine"}}, true},
		{"a new cluster whose request was blocked before",
			"the step creates a MemberCluster, whatever the former answer was", JoinRequestObserved{
				ClusterID: "id", Name: "east", Agent: RequesterSeen{Claim: "mine"},
				Status: AnswerSeen{Answer: v1alpha1.AnswerHeld, Reason: v1alpha1.ReasonNameTaken},
			}, true},
		{"an invalid request",
			"the agent continues to send requests", JoinRequestObserved{Invalid: "name: must not be empty"}, false},
		{"the agent's member was removed", "the agent deletes its claim key", gone, true},
		{"a request that was answered with Deregistered before", "the agent may already have deleted its claim key",
			JoinRequestObserved{ClusterID: "id", Agent: RequesterSeen{Claim: "mine", MemberUID: "gone"},
				Status: AnswerSeen{Answer: v1alpha1.AnswerDeregistered}}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if step := NextJoinRequest(test.o); step.Final != test.want {
				t.Errorf("%s: want Final %v, got %v: %+v", test.reason, test.want, step.Final, step)
			}
		})
	}
}

// TestJoinRequest_ReplacedKeys checks that a request needs the current claim key, and when a missing key is reported.
func TestJoinRequest_ReplacedKeys(t *testing.T) {
	since := metav1.NewTime(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	known := v1alpha1.ClaimKeys{Claim: "mine", Current: "current", Since: since}
	reported, other := known, known
	reported.ReusedAt, other.Claim = &since, "other"
	report := []JoinRequestAction{ReportReuse}
	issue := []JoinRequestAction{IssueCredential}
	for _, test := range []struct {
		reason  string
		known   *v1alpha1.ClaimKeys
		keys    []string
		created time.Time
		answer  v1alpha1.JoinAnswer // the former answer
		change  func(*MemberSeen)
		want    []JoinRequestAction
		refused bool
	}{
		{reason: "the claim key is current until it is replaced", want: issue},
		{reason: "the agent has the current key", known: &known, keys: []string{"newest", "current"}, want: issue},
		{reason: "keys of another claim have no effect", known: &other, want: issue},
		{reason: "a copy has the claim key only", known: &known, created: since.Time, refused: true, want: report},
		{reason: "a copy has replaced keys", known: &known, keys: []string{"former"}, created: since.Time, refused: true,
			want: report},
		{reason: "the first report is kept", known: &reported, created: since.Time, refused: true},
		{reason: "the request is older than the key", known: &known, created: since.Add(-time.Second), refused: true},
		{reason: "a leaving member gives no credential to a copy", known: &known, created: since.Time, refused: true,
			change: func(m *MemberSeen) { m.Leaving = true }, want: report},
		{reason: "an answer stays", known: &known, answer: v1alpha1.AnswerIssued},
	} {
		member := &MemberSeen{Name: "east", UID: "uid", ClusterID: "id", Claim: "mine", Accepted: new(true),
			Credential: v1alpha1.CredentialToken, Desired: v1alpha1.StateJoin, Prepared: true,
			AgentSeen: AgentSeen{Keys: test.known}}
		if test.change != nil {
			test.change(member)
		}
		step := NextJoinRequest(JoinRequestObserved{ClusterID: "id", Name: "east",
			Agent: RequesterSeen{Claim: "mine", MemberUID: "uid", Keys: test.keys}, Type: v1alpha1.CredentialToken,
			Members: MembersSeen{ByClaim: member, ByID: member}, Status: AnswerSeen{Answer: test.answer},
			CreatedAt: test.created})
		if diff := cmp.Diff(test.want, step.Actions); diff != "" {
			t.Errorf("%s: %s", test.reason, diff)
		}
		if refused := step.Reason == v1alpha1.ReasonClaimKeyReplaced; refused != test.refused {
			t.Errorf("%s: %s: %s", test.reason, step.Reason, step.Message)
		}
	}
}
