package agent

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// report is the agent's report to the hub. Nil parts do not change the status.
type report struct {
	claim     string // the fingerprint of the agent's key
	joined    metav1.Condition
	remaining []string
	member    *memberReport
}

// memberReport is the report about a member that is not leaving.
type memberReport struct {
	agentVersion string
	facts        facts
	health       health
	refused      string // why the hub did not renew the credential, in the hub's message
	renewal      *v1alpha1.Renewal
	// requiredEpoch is the epoch of the hub that the agent waits for; zero: it waits for none.
	requiredEpoch int64
	// orphans is the last report of orphaned objects; nil: none since the agent started.
	orphans *v1alpha1.OrphanSummary
	// policy returns the policy of the member in the status, given the one before. Nil: the policy in the status does not
	// change.
	policy func(before *v1alpha1.MemberPolicySummary) *v1alpha1.MemberPolicySummary
	// companions is the health of each companion of the agent.
	companions []companionReport
}

// setCondition sets a condition of a list.
type setCondition func(*[]metav1.Condition, metav1.Condition)

// The conditions for the agent's progress. Joined stays True during the clean-up, because the hub waits for the
// clean-up to end.
var (
	joinedCondition = metav1.Condition{Type: v1alpha1.ConditionJoined, Status: metav1.ConditionTrue,
		Reason: v1alpha1.ReasonAgentJoined, Message: "The agent has joined."}
	cleaningCondition = metav1.Condition{Type: v1alpha1.ConditionJoined, Status: metav1.ConditionTrue,
		Reason: v1alpha1.ReasonCleaningUp, Message: "The agent is cleaning up the member."}
	cleanedCondition = metav1.Condition{Type: v1alpha1.ConditionJoined, Status: metav1.ConditionFalse,
		Reason: v1alpha1.ReasonCleanedUp, Message: "The member has no objects of the hub any more."}
)

// reported returns the progress of the agent with this claim, according to the conditions in the status.
func reported(status v1alpha1.MembershipStatus, claim string) lifecycle.AgentReport {
	joined := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionJoined)
	switch {
	case joined == nil || status.Claim != claim:
		return lifecycle.ReportedNothing
	case joined.Status == metav1.ConditionTrue:
		return lifecycle.ReportedJoined
	case joined.Status == metav1.ConditionFalse && joined.Reason == v1alpha1.ReasonCleanedUp:
		return lifecycle.ReportedClean
	default:
		return lifecycle.ReportedNothing
	}
}

// applied returns the status with the report, and whether the report changes the status.
func (r report) applied(status v1alpha1.MembershipStatus, now time.Time) (v1alpha1.MembershipStatus, bool) {
	next := *status.DeepCopy()
	set := func(conditions *[]metav1.Condition, c metav1.Condition) {
		c.LastTransitionTime = metav1.NewTime(now)
		meta.SetStatusCondition(conditions, c)
	}
	next.Claim = r.claim
	set(&next.Conditions, r.joined)
	next.Remaining = r.remaining
	set(&agentStatus(&next, v1alpha1.MembershipAgent).Conditions, r.joined)
	if m := r.member; m != nil {
		set(&next.Conditions, m.facts.problems.condition())
		set(&next.Conditions, m.credentialCondition())
		if m.health.known {
			set(&agentStatus(&next, v1alpha1.MembershipAgent).Conditions, m.health.condition())
		}
		reportCompanions(&next, m.companions, set)
		if status.Claim != r.claim { // drop the report of another agent
			next.Version, next.Resources, next.Properties, next.APIs = v1alpha1.VersionInfo{}, v1alpha1.ResourceUsage{}, nil, nil
			next.Orphans, next.MemberPolicy = nil, nil
		}
		next.Version.Agent = m.agentVersion
		if m.facts.version != "" {
			next.Version.Kubernetes = m.facts.version
		}
		if m.facts.resources != nil {
			next.Resources = *m.facts.resources
		}
		next.Properties = m.facts.over(next.Properties)
		next.APIs = m.facts.apis.over(next.APIs)
		next.Orphans = reportedOrphans(next.Orphans, m.orphans)
		if m.policy != nil {
			next.MemberPolicy = m.policy(next.MemberPolicy)
		}
		next.Renewal = m.renewal
		next.RequiredHubEpoch = m.requiredEpoch
	}
	return next, !equality.Semantic.DeepEqual(status, next)
}

func (m *memberReport) credentialCondition() metav1.Condition {
	if m.refused != "" {
		return metav1.Condition{
			Type: v1alpha1.ConditionCredentialValid, Status: metav1.ConditionFalse,
			Reason: v1alpha1.ReasonRenewalRefused, Message: m.refused,
		}
	}
	return metav1.Condition{
		Type: v1alpha1.ConditionCredentialValid, Status: metav1.ConditionTrue,
		Reason: v1alpha1.ReasonIssued, Message: "The agent has a credential that works.",
	}
}

// agentStatus returns the entry of an agent, and creates it if it does not exist. Entries of other agents stay
// unchanged.
func agentStatus(status *v1alpha1.MembershipStatus, agent string) *v1alpha1.AgentStatus {
	i := slices.IndexFunc(status.Agents, func(a v1alpha1.AgentStatus) bool { return a.Type == agent })
	if i < 0 {
		i = len(status.Agents)
		status.Agents = append(status.Agents, v1alpha1.AgentStatus{Type: agent})
	}
	return &status.Agents[i]
}
