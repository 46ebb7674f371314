package install

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

const (
	// soakPeriods is how many heartbeat periods an agent is observed: after this time missing heartbeats are known.
	soakPeriods = 4
	// checkInterval is the interval between two calls of the Checker; after a failure it is checkIntervalAfterFailure.
	checkInterval             = 10 * time.Second
	checkIntervalAfterFailure = time.Minute
	// checkTimeout is the timeout of a call of the Checker.
	checkTimeout = 30 * time.Second
)

// running is the result of a Checker.
type running struct{ Missing string }

// mayBegin reports whether the agent of a joined member may be installed again now because of another revision: with a
// rollout permit, or if the attempt has begun.
func (o observed) mayBegin() bool {
	return !o.Joined || o.Permitted || o.Install.begun() && !o.Unreachable
}

// afterwards returns the condition after an installation. An agent that existed before, and gets another revision,
// must become healthy first, unless it had no valid credential, in which case its health is independent of the
// revision.
func afterwards(o observed) *metav1.Condition {
	if !o.Joined || o.Install.Last == nil || !o.outdated() && !o.Install.awaitsHealth() || recoveryAfter(o) != nil {
		return installed()
	}
	return condition(v1alpha1.ReasonAgentStarting, fmt.Sprintf("The agent was installed again. The hub observes its "+
		"health for %s, and until the installed objects run.", o.Heartbeat.soak()))
}

// evaluateHealth decides whether an agent that was installed again is healthy: the installed workloads run, and its
// heartbeats have arrived for enough periods that missing ones would be known. An agent that is not healthy in time has
// failed, and may become healthy later.
func evaluateHealth(o observed) step {
	var from time.Time
	if at := o.Install.Last.InstalledAt; at != nil {
		from = at.Time
	}
	soaked := from.Add(o.Heartbeat.soak())
	deadline := later(from.Add(o.Timeouts.Healthy), soaked)
	hasFailed := o.Install.Shown == v1alpha1.ReasonAgentNotHealthy
	switch {
	case o.Now.Before(soaked):
		return step{Action: idle, After: soaked.Sub(o.Now)}
	case o.Heartbeat.Arrives && o.Install.Runs == nil:
		return step{Action: check}
	case o.Heartbeat.Arrives && o.Install.Runs.Missing == "":
		return step{Action: idle, Condition: installed()}
	case hasFailed && o.Heartbeat.Arrives:
		return step{Action: idle, After: checkIntervalAfterFailure}
	case hasFailed:
		return step{Action: idle}
	case !o.Now.Before(deadline):
		return step{Action: idle, Condition: notHealthy(o), After: checkIntervalAfterFailure}
	case o.Heartbeat.Arrives:
		return step{Action: idle, After: min(checkInterval, deadline.Sub(o.Now))}
	default:
		return step{Action: idle, After: deadline.Sub(o.Now)}
	}
}

func notHealthy(o observed) *metav1.Condition {
	why := "no heartbeat arrives"
	if o.Heartbeat.Arrives {
		why = o.Install.Runs.Missing
	}
	return condition(v1alpha1.ReasonAgentNotHealthy, fmt.Sprintf("The agent was installed again and is not healthy: %s. "+
		"The rollout continues when this agent is healthy. Repair the agent on the member, or start the hub with a working "+
		"revision, which is installed on this member first.", why))
}

// permitPending returns the condition of all waiting members. It is the same for all reasons, so that it is written
// only once.
func permitPending() *metav1.Condition {
	return condition(v1alpha1.ReasonInstallWaiting, fmt.Sprintf("The agent must be installed again and waits for a "+
		"rollout permit. The hub installs one agent first, then a few at a time, and none while one has failed. Find "+
		"members whose condition Installed has the reason %s or %s, and follow its message. To install the agent now, set "+
		"the annotation %s of this MemberCluster to a new value.",
		v1alpha1.ReasonInstallFailed, v1alpha1.ReasonAgentNotHealthy, membership.InstallRequestAnnotation))
}
