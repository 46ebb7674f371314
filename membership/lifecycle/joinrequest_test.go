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
		deny, forgot             = v1alpha1.AnswerDenied, v1alpha1.AnswerDeregistered
	)
	// of is the member east, accepted and prepared, which claim speaks for.
	of := func(claim string, change func(*MemberSeen)) *MemberSeen {
		m := &MemberSeen{
			Name: "east", UID: "uid", ClusterID: "id", Claim: claim, Accepted: new(true), Credential: v1alpha1.CredentialToken,
			Desired: v1alpha1.StateJoin, Prepared: claim != "", Identified: true,
		}
		change(m)
		return m
	}
	asIs := func(*MemberSeen) {}
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
		message string // where a person has to do something
	}
	const deregisteredMessage = "The member left on request: its MemberCluster was deleted, or its spec.state was set " +
		"to Leave."
	const unknownMessage = "The agent is registered as member uid, which does not exist on this hub, and no request to " +
		"remove that member is recorded. Nothing changes on the cluster. Set spec.accepted of MemberCluster east to true " +
		"to adopt the cluster."
	left := func(uid types.UID, kept bool) []Tombstone {
		return []Tombstone{{MemberUID: uid, ClusterID: "id", Claim: "mine", Decided: true, Kept: kept}}
	}
	for _, test := range []struct {
		name   string
		reason string
		o      JoinRequestObserved
		want   want
	}{
		{
			name: "invalid", reason: "what is wrong with itself can never get better",
			o:    request(func(o *JoinRequestObserved) { o.Invalid = "spec.signature: is not one" }),
			want: want{answer: deny, reason: v1alpha1.ReasonInvalidRequest, message: "spec.signature: is not one"},
		},
		{
			name: "token refused", reason: "the token says who may come in",
			o:    request(func(o *JoinRequestObserved) { o.Token.Refused = "spec.token: has expired" }),
			want: want{answer: deny, reason: v1alpha1.ReasonTokenRefused, message: "spec.token: has expired"},
		},
		{
			name: "token ended before the acceptance", reason: "the token has done its work when the claim is taken in",
			o: request(func(o *JoinRequestObserved) {
				o.Token.Refused, o.Members.ByID = "spec.token: has expired", of("mine", asIs)
			}),
			want: want{answer: pending, reason: v1alpha1.ReasonIssuing, actions: []JoinRequestAction{IssueCredential},
				member:  true,
				message: "The credential is being issued."},
		},
		{
			name: "token ended before a decision", reason: "what it would have let in by itself now waits for an " +
				"administrator",
			o: request(func(o *JoinRequestObserved) {
				o.Token.Refused, o.Acceptor.Decision, o.Members.ByID = "spec.token: has expired", membership.Accept,
					of("mine", func(m *MemberSeen) { m.Accepted = nil })
			}),
			want: want{
				answer: blocked, reason: v1alpha1.ReasonWaitingForAcceptance, member: true,
				message: "Waiting for an administrator to set spec.accepted of MemberCluster east to true.",
			},
		},
		{
			name: "token ended while away", reason: "an agent that lost its member is to learn that, whatever it asks with",
			o: request(func(o *JoinRequestObserved) {
				o.Token.Refused, o.Agent.MemberUID, o.Tombstones = "spec.token: has expired", "uid", left("uid", false)
			}),
			want: want{answer: forgot, reason: v1alpha1.ReasonDeregistered, message: deregisteredMessage},
		},
		{
			name: "not announced", reason: "it becomes a member that an administrator can accept",
			o: request(func(*JoinRequestObserved) {}),
			want: want{
				answer: blocked, reason: v1alpha1.ReasonWaitingForAcceptance, actions: []JoinRequestAction{CreateMember},
				message: "Waiting for an administrator to set spec.accepted of MemberCluster east to true.",
			},
		},
		{
			name: "accepted by policy", reason: "an Acceptor needs no administrator",
			o: request(func(o *JoinRequestObserved) { o.Acceptor.Decision = membership.Accept }),
			want: want{
				answer: pending, reason: v1alpha1.ReasonPreparing, actions: []JoinRequestAction{CreateMember, AcceptMember},
				message: "The hub is preparing for the cluster.",
			},
		},
		{
			name: "denied by policy", reason: "nothing is created for a denied cluster",
			o: request(func(o *JoinRequestObserved) {
				o.Acceptor.Acceptance = membership.Acceptance{Decision: membership.Deny, Reason: "Not from there."}
			}),
			want: want{answer: deny, reason: v1alpha1.ReasonDenied, message: "Not from there."},
		},
		{
			name: "the policy fails", reason: "nothing is created before a decision, and its owner reads why it " +
				"waits",
			o: request(func(o *JoinRequestObserved) { o.Acceptor.Error = "call the Acceptor: no route" }),
			want: want{
				answer: pending, reason: v1alpha1.ReasonPolicyFailed,
				message: "The hub's policy failed and is retried: call the Acceptor: no route",
			},
		},
		{
			name: "the policy fails, of a member that waits", reason: "a member is not bound before it is known whether to",
			o: request(func(o *JoinRequestObserved) {
				o.Acceptor.Error, o.Members.ByID = "no route", of("", func(m *MemberSeen) { m.Accepted = nil })
			}),
			want: want{
				answer: pending, reason: v1alpha1.ReasonPolicyFailed, member: true,
				message: "The hub's policy failed and is retried: no route",
			},
		},
		{
			name: "the policy fails, of its own member", reason: "it is asked again until it decides or an administrator does",
			o: request(func(o *JoinRequestObserved) {
				o.Acceptor.Error, o.Members.ByID = "no route", of("mine", func(m *MemberSeen) { m.Accepted = nil })
			}),
			want: want{
				answer: pending, reason: v1alpha1.ReasonPolicyFailed, member: true,
				message: "The hub's policy failed and is retried: no route",
			},
		},
		{
			name: "the policy fails, of a name accepted beforehand", reason: "only the policy could give that name to this " +
				"cluster",
			o: request(func(o *JoinRequestObserved) {
				o.Acceptor.Error, o.Members.ByName = "no route", of("", func(m *MemberSeen) { m.ClusterID = "" })
			}),
			want: want{
				answer: pending, reason: v1alpha1.ReasonPolicyFailed, member: true,
				message: "The hub's policy failed and is retried: no route",
			},
		},
		{
			name: "the policy fails, and need not be asked", reason: "what an administrator has decided does not wait for it",
			o: request(func(o *JoinRequestObserved) { o.Acceptor.Error, o.Members.ByID = "no route", of("mine", asIs) }),
			want: want{answer: pending, reason: v1alpha1.ReasonIssuing, actions: []JoinRequestAction{IssueCredential},
				member:  true,
				message: "The credential is being issued."},
		},
		{
			name: "name of another", reason: "a name is never taken over",
			o: request(func(o *JoinRequestObserved) {
				o.Members.ByName = of("other", func(m *MemberSeen) { m.ClusterID = "another" })
			}),
			want: want{
				answer: blocked, reason: v1alpha1.ReasonNameTaken, member: true,
				message: "The name east belongs to another cluster (another): start the agent with another name, or delete " +
					"MemberCluster east.",
			},
		},
		{
			name: "name accepted beforehand",
			reason: "any user with a token could take a name that is accepted without saying " +
				"for which cluster",
			o: request(func(o *JoinRequestObserved) { o.Members.ByName = of("", func(m *MemberSeen) { m.ClusterID = "" }) }),
			want: want{
				answer: blocked, reason: v1alpha1.ReasonNameReserved, member: true,
				message: "MemberCluster east is accepted without a cluster ID: set its spec.clusterID to id to accept this " +
					"cluster.",
			},
		},
		{
			name: "two of its ID", reason: "no choice would be right",
			o: request(func(o *JoinRequestObserved) { o.Members.ByID, o.Members.Others = of("", asIs), []string{"west"} }),
			want: want{
				answer: blocked, reason: v1alpha1.ReasonClusterIDTaken, member: true,
				message: "Cluster ID id belongs to MemberCluster east and also to west: delete all but one of them.",
			},
		},
		{
			name: "first to come", reason: "a member that waits for this cluster is bound to the first that speaks for it",
			o: request(func(o *JoinRequestObserved) { o.Members.ByID = of("", asIs) }),
			want: want{answer: pending, reason: v1alpha1.ReasonPreparing, actions: []JoinRequestAction{BindMember}, member: true,
				message: "The hub is preparing for the cluster."},
		},
		{
			name: "second to come", reason: "it is pending, with the way to take over, and evicts no agent",
			o: request(func(o *JoinRequestObserved) { o.Members.ByID = of("other", asIs) }),
			want: want{
				answer: blocked, reason: v1alpha1.ReasonClusterIDTaken, member: true,
				message: "Cluster ID id belongs to member east, which another agent has claimed. To let this agent take over, " +
					"set spec.claim of MemberCluster east to mine.",
			},
		},
		{
			name: "second to come, of a member", reason: "the claim of another agent does not request that this member is " +
				"cleaned",
			o: request(func(o *JoinRequestObserved) { o.Members.ByID, o.Agent.MemberUID = of("other", asIs), "uid" }),
			want: want{
				answer: blocked, reason: v1alpha1.ReasonClusterIDTaken, member: true,
				message: "Cluster ID id belongs to member east, which another agent has claimed. To let this agent take over, " +
					"set spec.claim of MemberCluster east to mine.",
			},
		},
		{
			name: "claimed and prepared", reason: "a credential is of use only when there is something to use it on",
			o: request(func(o *JoinRequestObserved) { o.Members.ByID = of("mine", asIs) }),
			want: want{answer: pending, reason: v1alpha1.ReasonIssuing, actions: []JoinRequestAction{IssueCredential},
				member:  true,
				message: "The credential is being issued."},
		},
		{
			name: "claimed and denied", reason: "withdrawn acceptance takes back an answer that was given",
			o: request(func(o *JoinRequestObserved) {
				o.Status.Answer, o.Members.ByID = issued, of("mine", func(m *MemberSeen) { m.Accepted = new(false) })
			}),
			want: want{answer: deny, reason: v1alpha1.ReasonDenied, member: true, message: "The cluster is denied, or its " +
				"acceptance was withdrawn."},
		},
		{
			name: "identity not named", reason: "the agent brings a credential that only an administrator knows",
			o: request(func(o *JoinRequestObserved) {
				o.Type, o.Members.ByID = v1alpha1.CredentialIdentity,
					of("mine", func(m *MemberSeen) { m.Credential, m.Identified = v1alpha1.CredentialIdentity, false })
			}),
			want: want{
				answer: blocked, reason: v1alpha1.ReasonIdentityMissing, member: true,
				message: "The agent has its own credential: set spec.identity of MemberCluster east to the subject that the " +
					"agent authenticates as.",
			},
		},
		{
			name: "given the claim, with another type", reason: "the access is still that of the agent before, which stays in " +
				"until the type on record is this one's",
			o: request(func(o *JoinRequestObserved) {
				o.Type, o.Members.ByID = v1alpha1.CredentialCertificate, of("mine", asIs)
			}),
			want: want{
				answer: pending, reason: v1alpha1.ReasonPreparing, actions: []JoinRequestAction{BindMember}, member: true,
				message: "The hub is preparing for the cluster.",
			},
		},
		{
			name: "given the claim beforehand", reason: "a type that is not recorded gives no access",
			o: request(func(o *JoinRequestObserved) { o.Members.ByID = of("mine", func(m *MemberSeen) { m.Credential = "" }) }),
			want: want{
				answer: pending, reason: v1alpha1.ReasonPreparing, actions: []JoinRequestAction{BindMember}, member: true,
				message: "The hub is preparing for the cluster.",
			},
		},
		{
			name: "it leaves, and asks for another type", reason: "a leaving member gets no new access",
			o: request(func(o *JoinRequestObserved) {
				o.Agent.MemberUID, o.Type = "uid", v1alpha1.CredentialCertificate
				o.Members.ByID = of("mine", func(m *MemberSeen) { m.Leaving = true })
			}),
			want: want{
				answer: blocked, reason: v1alpha1.ReasonStateLeave, member: true,
				message: "MemberCluster east is leaving or has left: set its spec.state to Join to let the cluster join again.",
			},
		},
		{
			name: "issued, and the type on record is another", reason: "what was issued is the agent's to read; it asks anew " +
				"when that does not work",
			o: request(func(o *JoinRequestObserved) {
				o.Status.Answer, o.Type, o.Members.ByID = issued, v1alpha1.CredentialCertificate, of("mine", asIs)
			}),
			want: want{answer: issued, reason: v1alpha1.ReasonIssued, member: true, message: "The credential is in the status."},
		},
		{
			name: "it has left", reason: "it may come back, when an administrator says so",
			o: request(func(o *JoinRequestObserved) {
				o.Members.ByID = of("", func(m *MemberSeen) { m.Desired = v1alpha1.StateLeave })
			}),
			want: want{
				answer: blocked, reason: v1alpha1.ReasonStateLeave, member: true,
				message: "MemberCluster east is leaving or has left: set its spec.state to Join to let the cluster join again.",
			},
		},
		{
			name: "it leaves and was never in", reason: "no cluster joins only to leave",
			o: request(func(o *JoinRequestObserved) { o.Members.ByID = of("mine", func(m *MemberSeen) { m.Leaving = true }) }),
			want: want{
				answer: blocked, reason: v1alpha1.ReasonStateLeave, member: true,
				message: "MemberCluster east is leaving or has left: set its spec.state to Join to let the cluster join again.",
			},
		},
		{
			name: "it leaves and lost its credential", reason: "the agent is to confirm that it is clean, or the leave ends " +
				"by force",
			o: request(func(o *JoinRequestObserved) {
				o.Agent.MemberUID, o.Members.ByID = "uid", of("mine", func(m *MemberSeen) { m.Leaving = true })
			}),
			want: want{answer: pending, reason: v1alpha1.ReasonIssuing, actions: []JoinRequestAction{IssueCredential},
				member:  true,
				message: "The credential is being issued."},
		},
		{
			name: "it leaves and is not accepted any more", reason: "no policy admits a leaving member again",
			o: request(func(o *JoinRequestObserved) {
				o.Agent.MemberUID, o.Acceptor.Decision = "uid", membership.Accept
				o.Members.ByID = of("mine", func(m *MemberSeen) { m.Deleting, m.Accepted = true, nil })
			}),
			want: want{
				answer: blocked, reason: v1alpha1.ReasonStateLeave, member: true,
				message: "MemberCluster east is leaving or has left: set its spec.state to Join to let the cluster join again.",
			},
		},
		{
			name: "deleted", reason: "an agent that was away finds out",
			o:    request(func(o *JoinRequestObserved) { o.Agent.MemberUID, o.Tombstones = "uid", left("uid", false) }),
			want: want{answer: forgot, reason: v1alpha1.ReasonDeregistered, message: deregisteredMessage},
		},
		{
			name: "deleted and created again", reason: "the request to remove the member is carried out, whatever was created " +
				"since",
			o: request(func(o *JoinRequestObserved) {
				o.Agent.MemberUID, o.Members.ByID, o.Tombstones = "before", of("", asIs), left("before", false)
			}),
			want: want{answer: forgot, reason: v1alpha1.ReasonDeregistered, message: deregisteredMessage},
		},
		{
			name: "left while away", reason: "the claim was released, so what the member holds is of a stay that is over",
			o: request(func(o *JoinRequestObserved) {
				o.Agent.MemberUID, o.Members.ByID, o.Tombstones = "uid", of("", asIs), left("uid", true)
			}),
			want: want{answer: forgot, reason: v1alpha1.ReasonDeregistered, member: true, message: deregisteredMessage},
		},
		{
			name: "answered, then deleted", reason: "an old request must not make a member anew that an administrator deleted",
			o: request(func(o *JoinRequestObserved) {
				o.Status.Answer, o.Status.Bound = issued, "uid"
				o.Acceptor.Decision, o.Tombstones = membership.Accept, left("uid", false)
			}),
			want: want{answer: forgot, reason: v1alpha1.ReasonDeregistered, message: deregisteredMessage},
		},
		{
			name: "answered, then left", reason: "an old request must not take the claim from the agent's next key",
			o: request(func(o *JoinRequestObserved) {
				o.Status.Answer, o.Status.Bound, o.Members.ByID, o.Tombstones = issued, "uid", of("", asIs), left("uid", true)
			}),
			want: want{answer: forgot, reason: v1alpha1.ReasonDeregistered, member: true, message: deregisteredMessage},
		},
		{
			name: "waited to come back, then deleted", reason: "deleting what has left is for good",
			o: request(func(o *JoinRequestObserved) {
				o.Status.Answer, o.Status.Reason = blocked, v1alpha1.ReasonStateLeave
				o.Acceptor.Decision, o.Tombstones = membership.Accept, left("uid", false)
			}),
			want: want{answer: forgot, reason: v1alpha1.ReasonDeregistered, message: deregisteredMessage},
		},
		{
			name: "lost", reason: "a MemberCluster that is missing without a record was not removed by a user",
			o: request(func(o *JoinRequestObserved) { o.Agent.MemberUID = "uid" }),
			want: want{answer: blocked, reason: v1alpha1.ReasonUnknownMember, actions: []JoinRequestAction{CreateMember},
				message: unknownMessage},
		},
		{
			name: "lost, and the policy accepts", reason: "a user may have removed the member, and the record may have expired",
			o: request(func(o *JoinRequestObserved) { o.Agent.MemberUID, o.Acceptor.Decision = "uid", membership.Accept }),
			want: want{answer: blocked, reason: v1alpha1.ReasonUnknownMember, actions: []JoinRequestAction{CreateMember},
				message: unknownMessage},
		},
		{
			name: "lost, with a token for this cluster", reason: "such a token is an administrator's decision on exactly this " +
				"cluster",
			o: request(func(o *JoinRequestObserved) {
				o.Agent.MemberUID, o.Token.Readopt, o.Acceptor.Decision = "uid", true, membership.Accept
			}),
			want: want{answer: pending, reason: v1alpha1.ReasonPreparing, actions: []JoinRequestAction{CreateMember,
				AcceptMember},
				message: "The hub is preparing for the cluster."},
		},
		{
			name: "lost, and waiting", reason: "kubectl get shows what the request waits for",
			o: request(func(o *JoinRequestObserved) {
				o.Agent.MemberUID, o.Acceptor.Decision, o.Members.ByID = "uid", membership.Hold,
					of("mine", func(m *MemberSeen) { m.UID, m.Accepted = "new", nil })
			}),
			want: want{answer: blocked, reason: v1alpha1.ReasonUnknownMember, member: true, message: unknownMessage},
		},
		{
			name: "lost, and the one created for it was deleted", reason: "an administrator does not want it, and did not " +
				"remove the member itself",
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
			name: "removed while another agent had the claim", reason: "the user removed the MemberCluster, so it is not " +
				"created again",
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
			name: "restored with another UID", reason: "the claim and the cluster ID identify the member",
			o: request(func(o *JoinRequestObserved) { o.Agent.MemberUID, o.Members.ByID = "before", of("mine", asIs) }),
			want: want{answer: pending, reason: v1alpha1.ReasonIssuing, actions: []JoinRequestAction{IssueCredential},
				member:  true,
				message: "The credential is being issued."},
		},
		{
			name: "removed, and restored with another UID", reason: "the MemberCluster with the claim is the later statement",
			o: request(func(o *JoinRequestObserved) {
				o.Agent.MemberUID, o.Members.ByID, o.Tombstones = "before", of("mine", asIs), left("before", false)
			}),
			want: want{answer: pending, reason: v1alpha1.ReasonIssuing, actions: []JoinRequestAction{IssueCredential},
				member:  true,
				message: "The credential is being issued."},
		},
		{
			name: "restored with another UID, after an answer", reason: "what was issued is a credential of the UID before",
			o: request(func(o *JoinRequestObserved) {
				o.Status.Answer, o.Status.Bound, o.Agent.MemberUID, o.Members.ByID = issued, "before", "before", of("mine", asIs)
			}),
			want: want{answer: pending, reason: v1alpha1.ReasonIssuing, actions: []JoinRequestAction{IssueCredential},
				member:  true,
				message: "The credential is being issued."},
		},
		{
			name: "restored without the cluster ID", reason: "the claim comes first",
			o: request(func(o *JoinRequestObserved) {
				o.Agent.MemberUID = "before"
				o.Members.ByClaim = of("mine", func(m *MemberSeen) { m.ClusterID, m.Prepared = "", false })
			}),
			want: want{answer: pending, reason: v1alpha1.ReasonPreparing, actions: []JoinRequestAction{BindMember}, member: true,
				message: "The hub is preparing for the cluster."},
		},
		{
			name: "restored without the claim", reason: "the administrator names the cluster that comes in",
			o: request(func(o *JoinRequestObserved) { o.Agent.MemberUID, o.Members.ByID = "before", of("", asIs) }),
			want: want{answer: pending, reason: v1alpha1.ReasonPreparing, actions: []JoinRequestAction{BindMember}, member: true,
				message: "The hub is preparing for the cluster."},
		},
		{
			name: "restored with its name alone", reason: "the name proves nothing",
			o: request(func(o *JoinRequestObserved) {
				o.Agent.MemberUID, o.Acceptor.Decision, o.Members.ByName = "before", membership.Accept,
					of("", func(m *MemberSeen) { m.ClusterID = "" })
			}),
			want: want{
				answer: blocked, reason: v1alpha1.ReasonNameReserved, member: true,
				message: "MemberCluster east is accepted without a cluster ID: set its spec.clusterID to id to accept this " +
					"cluster.",
			},
		},
		{
			name: "the claim with another cluster ID", reason: "the Secrets of an agent were copied to another cluster",
			o: request(func(o *JoinRequestObserved) {
				o.Agent.MemberUID, o.Members.ByClaim = "uid", of("mine", func(m *MemberSeen) { m.ClusterID = "other" })
			}),
			want: want{
				answer: blocked, reason: v1alpha1.ReasonClusterIDChanged,
				message: "The claim of the agent belongs to MemberCluster east with cluster ID other, and the agent reports " +
					"cluster ID id: " +
					"restore the agent's cluster ID, or clear spec.claim of MemberCluster east.",
			},
		},
		{
			name: "the claim was cleared", reason: "the next agent gets it, and the one that had it keeps everything",
			o: request(func(o *JoinRequestObserved) {
				o.Agent.MemberUID, o.Members.ByID = "uid", of("", func(m *MemberSeen) { m.Reported = "mine" })
			}),
			want: want{
				answer: blocked, reason: v1alpha1.ReasonClaimReleased, member: true,
				message: "The claim of MemberCluster east was cleared: set its spec.claim to mine to let this agent join again.",
			},
		},
		{
			name: "another hub", reason: "another hub never ends a membership, whatever it has on record",
			o: request(func(o *JoinRequestObserved) {
				o.HubID, o.Agent.HubID, o.Agent.MemberUID, o.Tombstones = "this", "that", "uid", left("uid", false)
			}),
			want: want{
				answer: blocked, reason: v1alpha1.ReasonDifferentHub,
				message: "The agent is a member of hub that, and this is hub this: give the agent a join.yaml of its own hub or, " +
					"to move the member to this hub, a join.yaml whose moveFrom is that.",
			},
		},
		{
			name: "the agent does not know its hub", reason: "agents of earlier versions keep what they had",
			o: request(func(o *JoinRequestObserved) {
				o.HubID, o.Agent.MemberUID, o.Members.ByID = "this", "uid", of("mine", asIs)
			}),
			want: want{answer: pending, reason: v1alpha1.ReasonIssuing, actions: []JoinRequestAction{IssueCredential},
				member:  true,
				message: "The credential is being issued."},
		},
		{
			name: "said once", reason: "the agent may act on it at any time, so it stays said",
			o: request(func(o *JoinRequestObserved) {
				o.Status.Answer, o.Agent.MemberUID, o.Members.ByID = forgot, "uid", of("mine", asIs)
			}),
			want: want{answer: forgot, reason: v1alpha1.ReasonDeregistered, member: true, message: deregisteredMessage},
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

func TestJoinRequestFinal(t *testing.T) {
	gone := JoinRequestObserved{ClusterID: "id", Name: "east", Agent: RequesterSeen{Claim: "mine", MemberUID: "gone"},
		Tombstones: []Tombstone{{MemberUID: "gone", ClusterID: "id", Claim: "mine"}}}
	for _, test := range []struct {
		name   string
		reason string
		o      JoinRequestObserved
		want   bool
	}{
		{"unknown", "it makes a member",
			JoinRequestObserved{ClusterID: "id", Name: "east", Agent: RequesterSeen{Claim: "mine"}}, true},
		{"unknown, and held before", "it makes a member, whatever the request waited for until now", JoinRequestObserved{
			ClusterID: "id", Name: "east", Agent: RequesterSeen{Claim: "mine"},
			Status: AnswerSeen{Answer: v1alpha1.AnswerHeld, Reason: v1alpha1.ReasonNameTaken},
		}, true},
		{"denied", "the agent goes on asking", JoinRequestObserved{Invalid: "name: must not be empty"}, false},
		{"deregistered", "the agent throws its claim away", gone, true},
		{"deregistered before", "it may have done so at any time",
			JoinRequestObserved{ClusterID: "id", Agent: RequesterSeen{Claim: "mine", MemberUID: "gone"},
				Status: AnswerSeen{Answer: v1alpha1.AnswerDeregistered}}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if step := NextJoinRequest(test.o); step.Final != test.want {
				t.Errorf("%s: final is %v, want %v: %+v", test.reason, step.Final, test.want, step)
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
		answer  v1alpha1.JoinAnswer // of before
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
