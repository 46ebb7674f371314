package lifecycle

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/internal/bounded"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// HealthObserved is what the hub knows of how a member fares.
type HealthObserved struct {
	Joined    bool
	NotJoined string // why not, in a sentence

	Heartbeat HeartbeatState
	Heard     time.Time     // the last heartbeat that the hub observed; zero: none since it began to listen
	Since     time.Time     // when Heartbeat became what it is
	Grace     time.Duration // how long the member may stay silent
	Hold      time.Duration // for how long an unsteady one has to be heard, from Since on
	HeldBack  time.Time     // since when the hub suspects itself, and withholds taints; zero: it does not
	HeldUntil time.Time     // until when the hub withholds taints after an outage; zero: it does not

	// Recorded is the condition Healthy as the hub last wrote it; nil: never.
	Recorded *metav1.Condition
	// Agent is what the member's agent says of its cluster, its own condition Healthy; nil: nothing.
	Agent *metav1.Condition
}

// HeartbeatState is what is heard of a member.
type HeartbeatState int

// The states of a heartbeat.
const (
	HeartbeatAwaited  HeartbeatState = iota // the hub began to listen too short a time ago
	HeartbeatHeard                          // heartbeats arrive
	HeartbeatLost                           // none for the grace
	HeartbeatUnsteady                       // they arrive again, and have stopped too often of late to be trusted
)

// Health decides the condition Healthy of a MemberCluster, without its times. The heartbeat comes first: what an agent
// said before it fell silent says nothing about now. The message stays the same for as long as nothing changes.
func Health(o HealthObserved) metav1.Condition {
	out := health(o)
	out.Message = Sentence(out.Message)
	return out
}

func health(o HealthObserved) metav1.Condition {
	const healthy = v1alpha1.ConditionHealthy
	unknown := func(reason, message string) metav1.Condition {
		return condition(healthy, metav1.ConditionUnknown, reason, message)
	}
	switch {
	case !o.Joined && o.NotJoined != "":
		return unknown(v1alpha1.ReasonNotJoined, o.NotJoined)
	case !o.Joined:
		return unknown(v1alpha1.ReasonNotJoined, "The cluster is not in the fleet.")
	case o.Heartbeat == HeartbeatLost && o.Heard.IsZero():
		return unknown(v1alpha1.ReasonHeartbeatLost, fmt.Sprintf("No heartbeat since the hub began to listen (grace %s).", o.Grace)+o.heldBack())
	case o.Heartbeat == HeartbeatLost:
		return unknown(v1alpha1.ReasonHeartbeatLost, fmt.Sprintf("No heartbeat since %s (grace %s).", stamp(o.Heard), o.Grace)+o.heldBack())
	case o.Heartbeat == HeartbeatUnsteady:
		return unknown(v1alpha1.ReasonHeartbeatUnsteady, fmt.Sprintf(
			"Heartbeats arrive again, but have stopped repeatedly; they have to hold for %s from %s on.", o.Hold, stamp(o.Since))+o.heldBack())
	case o.Heartbeat == HeartbeatHeard && o.Agent != nil && o.Agent.Status == metav1.ConditionFalse:
		message := o.Agent.Message
		if message == "" {
			message = "The agent finds its cluster not ready."
		}
		if withheld := o.heldBack(); withheld != "" {
			message = strings.TrimRight(bounded.Text(message, sentenceLimit-len(withheld)-1), ".") + "." + withheld
		}
		return no(healthy, v1alpha1.ReasonClusterNotReady, message)
	case o.Heartbeat == HeartbeatHeard:
		return yes(healthy, v1alpha1.ReasonHeartbeating, "Heartbeats arrive.")
	case o.Recorded != nil && o.Recorded.Reason != v1alpha1.ReasonNotJoined:
		// The hub was away, not the member: what was known stands until there is something to know.
		return condition(healthy, o.Recorded.Status, o.Recorded.Reason, o.Recorded.Message)
	default:
		return unknown(v1alpha1.ReasonHeartbeatAwaited, "Waiting for the first heartbeat.")
	}
}

func (o *HealthObserved) heldBack() string {
	// Not how many are affected: that changes with every heartbeat of any member, and would be written into each.
	switch {
	case !o.HeldBack.IsZero():
		return fmt.Sprintf(" Taints and failover are withheld: so many members have been silent or not ready "+
			"since %s that the hub suspects itself. Check the network of the hub.", stamp(o.HeldBack))
	case !o.HeldUntil.IsZero():
		return fmt.Sprintf(" Taints and failover are withheld until %s, because the hub suspected itself before.",
			stamp(o.HeldUntil))
	default:
		return ""
	}
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
