package lifecycle

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/internal/bounded"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// HealthObserved is the hub's observation of the health of a member.
type HealthObserved struct {
	Joined    bool
	NotJoined string // message with the reason, if Joined is false

	Heartbeat      HeartbeatState
	Heard          time.Time     // the last heartbeat that the hub observed; zero: none since the hub started to observe
	Since          time.Time     // when Heartbeat became its current value
	Grace          time.Duration // grace period without heartbeats
	Hold           time.Duration // for how long heartbeats of an unsteady member must arrive, from Since on
	Suspended      time.Time     // since when the outage guard withholds taints; zero: it does not
	SuspendedUntil time.Time     // until when the hub withholds taints after an outage; zero: it does not

	// Recorded is the condition Healthy that the hub last wrote; nil: none.
	Recorded *metav1.Condition
	// Agent is the condition Healthy that the member's agent reported; nil: none.
	Agent *metav1.Condition
}

// HeartbeatState is the state of a member's heartbeats.
type HeartbeatState int

// The states of a heartbeat.
const (
	HeartbeatAwaited  HeartbeatState = iota // the hub started to observe too short a time ago
	HeartbeatHeard                          // heartbeats arrive
	HeartbeatLost                           // no heartbeat for the grace period
	HeartbeatUnsteady                       // heartbeats arrive again, but stopped too often recently
)

// Health decides the condition Healthy of a MemberCluster, without its times. The heartbeat has precedence, because
// the last report of an agent whose heartbeats have stopped may be outdated. The message stays the same as long as
// nothing changes.
func Health(o HealthObserved) metav1.Condition {
	out := health(o)
	out.Message = FormatMessage(out.Message)
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
		return unknown(v1alpha1.ReasonNotJoined, "The cluster has not joined.")
	case o.Heartbeat == HeartbeatLost && o.Heard.IsZero():
		return unknown(v1alpha1.ReasonHeartbeatLost,
			fmt.Sprintf("No heartbeat since the hub started to observe (grace %s).", o.Grace)+o.suspended())
	case o.Heartbeat == HeartbeatLost:
		return unknown(v1alpha1.ReasonHeartbeatLost,
			fmt.Sprintf("No heartbeat since %s (grace %s).", stamp(o.Heard), o.Grace)+o.suspended())
	case o.Heartbeat == HeartbeatUnsteady:
		return unknown(v1alpha1.ReasonHeartbeatUnsteady, fmt.Sprintf(
			"Heartbeats arrive again after repeated interruptions. The member becomes healthy when heartbeats have arrived "+
				"for %s since %s.", o.Hold, stamp(o.Since))+o.suspended())
	case o.Heartbeat == HeartbeatHeard && o.Agent != nil && o.Agent.Status == metav1.ConditionFalse:
		message := o.Agent.Message
		if message == "" {
			message = "The agent reports that its cluster is not ready."
		}
		if withheld := o.suspended(); withheld != "" {
			message = strings.TrimRight(bounded.Text(message, messageLimit-len(withheld)-1), ".") + "." + withheld
		}
		return no(healthy, v1alpha1.ReasonClusterNotReady, message)
	case o.Heartbeat == HeartbeatHeard:
		return yes(healthy, v1alpha1.ReasonHeartbeating, "Heartbeats arrive.")
	case o.Recorded != nil && o.Recorded.Reason != v1alpha1.ReasonNotJoined:
		// The outage affected the hub and not the member: the last known state stays until there is a newer observation.
		return condition(healthy, o.Recorded.Status, o.Recorded.Reason, o.Recorded.Message)
	default:
		return unknown(v1alpha1.ReasonHeartbeatAwaited, "Waiting for the first heartbeat.")
	}
}

func (o *HealthObserved) suspended() string {
	// The message does not contain the number of affected members: the number changes with every heartbeat of any member,
	// and each change would be a write of every condition.
	switch {
	case !o.Suspended.IsZero():
		return fmt.Sprintf(" Taints and failover are withheld: so many members have been silent or not ready "+
			"since %s that the hub itself may be the cause. Check the network of the hub.", stamp(o.Suspended))
	case !o.SuspendedUntil.IsZero():
		return fmt.Sprintf(" Taints and failover are withheld until %s, after an outage.",
			stamp(o.SuspendedUntil))
	default:
		return ""
	}
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
