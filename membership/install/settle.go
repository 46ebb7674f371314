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
	// lookInterval is the interval between two calls of the Checker; after a failure it is lookRarely.
	lookInterval = 10 * time.Second
	lookRarely   = time.Minute
	// lookTimeout is the timeout of a call of the Checker.
	lookTimeout = 30 * time.Second
)

// running is the result of a Checker.
type running struct{ Missing string }

// mayBegin reports whether the agent of a joined member may be installed again now because of another revision: with a
// rollout permit, or if the attempt has begun.
func (o observed) mayBegin() bool {
	return !o.Joined || o.Turn || o.Install.begun() && !o.Unreachable
}

// afterwards returns the condition after an installation. An agent that existed before, and gets another revision,
// must become healthy first, unless it had no valid credential, in which case its health is independent of the
// revision.
func afterwards(o observed) *metav1.Condition {
	if !o.Joined || o.Install.Last == nil || !o.outdated() && !o.Install.settling() || recoveryAfter(o) != nil {
		return installed()
	}
	return condition(v1alpha1.ReasonAgentStarting, fmt.Sprintf("The agent was installed again. Its health is observed "+
		"for %s, and until the installed objects run.", o.Heartbeat.soak()))
}

// settle decides whether an agent that was installed again is healthy: the installed workloads run, and its heartbeats
// have arrived for enough periods that missing ones would be known. An agent that is not healthy in time has failed,
// and may become healthy later.
func settle(o observed) step {
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
		return step{Action: look}
	case o.Heartbeat.Arrives && o.Install.Runs.Missing == "":
		return step{Action: idle, Condition: installed()}
	case hasFailed && o.Heartbeat.Arrives:
		return step{Action: idle, After: lookRarely}
	case hasFailed:
		return step{Action: idle}
	case !o.Now.Before(deadline):
		return step{Action: idle, Condition: notHealthy(o), After: lookRarely}
	case o.Heartbeat.Arrives:
		return step{Action: idle, After: min(lookInterval, deadline.Sub(o.Now))}
	default:
		return step{Action: idle, After: deadline.Sub(o.Now)}
	}
}

func notHealthy(o observed) *metav1.Condition {
	why := "no heartbeat arrives"
	if o.Heartbeat.Arrives {
		why = o.Install.Runs.Missing
	}
	return condition(v1alpha1.ReasonAgentNotHealthy, fmt.Sprintf("The agent was installed again and is not healthy "+
		"since: %s. While it is not, no other agent "+
		"is installed again for the same reason. Repair the agent on the member, or start the hub with a working revision, "+
		"which is then installed here first.", why))
}

// waitsForTurn returns the condition of all waiting members. It is the same for all reasons, so that it is written
// only once.
func waitsForTurn() *metav1.Condition {
	return condition(v1alpha1.ReasonInstallWaiting, fmt.Sprintf("The agent must be installed again and waits for a "+
		"rollout permit: first one agent, then a few at a "+
		"time, and none while one has failed. Find members whose condition Installed has the reason %s or %s, and follow "+
		"its message. "+
		"To have it installed now, give the annotation %s of this MemberCluster a new value.",
		v1alpha1.ReasonInstallFailed, v1alpha1.ReasonAgentNotHealthy, membership.InstallRequestAnnotation))
}
