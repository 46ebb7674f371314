package lifecycle

import (
	"strings"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// transition is a change of phase. The model test visits every joint state, and checks that the observed changes are
// exactly the declared ones.
type transition struct{ from, to, when string }

// transitions are the changes from several phases to one, for one reason.
type transitions struct {
	from []string
	to   string
	when string
}

const (
	outside = "[*]" // Mermaid's name for the start and the end

	hubPending  = string(v1alpha1.PhasePending)
	hubAccepted = string(v1alpha1.PhaseAccepted)
	hubJoining  = string(v1alpha1.PhaseJoining)
	hubJoined   = string(v1alpha1.PhaseJoined)
	hubLeaving  = string(v1alpha1.PhaseLeaving)
	hubLeft     = string(v1alpha1.PhaseLeft)
	hubDenied   = string(v1alpha1.PhaseDenied)

	agentUnregistered = string(Unregistered)
	agentRegistering  = string(Registering)
	agentJoining      = string(Joining)
	agentJoined       = string(Joined)
	agentLeaving      = string(Leaving)
	agentLeft         = string(Left)
	agentRejected     = string(Rejected)
)

// hubTransitions begins with the path of every member. A phase that lasts less than one reconcile of the hub may be
// skipped.
var hubTransitions = []transitions{
	{[]string{outside}, hubPending, "created"},
	{[]string{outside}, hubAccepted, "created and accepted"},
	{[]string{outside, hubPending, hubDenied}, hubJoining, "accepted, and an agent has requested to join"},
	{[]string{hubPending, hubDenied}, hubAccepted, "accepted"},
	{[]string{hubAccepted}, hubJoining, "an agent requests to join"},
	{[]string{hubJoining}, hubJoined, "the agent confirms"},
	{[]string{hubPending, hubDenied}, hubJoined, "accepted again"},
	{[]string{hubAccepted, hubJoining, hubJoined, hubDenied}, hubPending, "spec.accepted unset"},
	{[]string{hubAccepted, hubJoining, hubJoined, hubPending}, hubDenied, "denied"},
	{[]string{hubPending, hubDenied, hubAccepted, hubJoining, hubJoined}, hubLeaving, "deleted or state Leave"},
	{
		[]string{hubPending, hubDenied, hubAccepted, hubJoining},
		hubLeft,
		"deleted or state Leave, and no objects exist on the hub",
	},
	{[]string{hubLeaving}, hubLeft, "confirmed or forced, and removed from the hub"},
	{[]string{hubLeaving}, hubPending, "canceled, and not accepted"},
	{[]string{hubLeaving}, hubDenied, "canceled, and denied"},
	{[]string{hubLeaving}, hubAccepted, "canceled"},
	{[]string{hubLeaving}, hubJoining, "canceled"},
	{[]string{hubLeaving}, hubJoined, "canceled"},
	{[]string{hubLeft}, hubPending, "state Join, and not accepted"},
	{[]string{hubLeft}, hubDenied, "state Join, and denied"},
	{[]string{hubLeft}, hubAccepted, "state Join"},
	{[]string{hubLeft}, hubLeaving, "objects exist on the hub again"},
	{[]string{hubLeft}, outside, "deleted"},
	{[]string{hubPending, hubDenied, hubAccepted}, outside, "deleted, and no objects existed on the hub"},
}

// HubDiagram returns the state machine of the hub as a Mermaid diagram.
func HubDiagram() string { return diagram(hubTransitions) }

// AgentDiagram returns the state machine of the agent as a Mermaid diagram.
func AgentDiagram() string { return diagram(agentTransitions) }

// agentTransitions omits restarts: after a restart an agent continues from its record, and assumes that state which it
// cannot observe is unchanged.
var agentTransitions = []transitions{
	{[]string{outside}, agentUnregistered, "installed"},
	{[]string{agentUnregistered}, agentRegistering, "has created a JoinRequest"},
	{[]string{agentRegistering}, agentJoining, "has a credential"},
	{[]string{agentJoining}, agentJoined, "has reported to the hub"},
	{[]string{agentRegistering}, agentRejected, "denied, or its bootstrap credential is refused"},
	{[]string{agentRejected}, agentRegistering, "no longer denied"},
	{[]string{agentRegistering}, agentUnregistered, "the hub has dropped the JoinRequest"},
	{[]string{agentRegistering}, agentLeft, "the awaited MemberCluster was deleted"},
	{[]string{agentJoining, agentJoined}, agentRejected, "refused for a while, and requests the reason " +
		"with a JoinRequest"},
	{[]string{agentRejected}, agentJoining, "has a new credential, or access again"},
	{[]string{agentRejected}, agentJoined, "has access again"},
	{[]string{agentRejected}, agentLeaving, "deregistered, or has access again to leave"},
	{[]string{agentJoining, agentJoined}, agentLeaving, "leave requested"},
	{[]string{agentJoined}, agentJoining, "must report to the hub again"},
	{[]string{agentLeaving}, agentJoined, "canceled, or the hub cannot be reached or refuses the agent"},
	{[]string{agentLeaving}, agentJoining, "canceled, or the hub cannot be reached or refuses the agent"},
	{[]string{agentLeaving}, agentLeft, "clean, and recorded or deregistered by the hub"},
	{[]string{agentJoining, agentJoined}, agentLeft, "observes that the hub has recorded the clean state"},
	{[]string{agentLeft}, agentJoining, "the hub cannot be reached or refuses the agent"},
	{[]string{agentLeft}, agentJoined, "the hub cannot be reached or refuses the agent"},
	{[]string{agentLeft}, agentUnregistered, "requests to join a kept MemberCluster again"},
}

func flatten(table []transitions) (out []transition) {
	for _, row := range table {
		for _, from := range row.from {
			out = append(out, transition{from, row.to, row.when})
		}
	}
	return out
}

func diagram(table []transitions) string {
	var out strings.Builder
	out.WriteString("stateDiagram-v2\n")
	for _, t := range flatten(table) {
		out.WriteString("    " + t.from + " --> " + t.to + ": " + t.when + "\n")
	}
	return out.String()
}
