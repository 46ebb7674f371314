package install

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

const (
	// soakPeriods is for how many heartbeats an agent is watched: one that does not beat is known to be silent by then.
	soakPeriods = 4
	// lookInterval is how often the hub looks whether what was installed runs; where that has failed it is lookRarely.
	lookInterval = 10 * time.Second
	lookRarely   = time.Minute
	// lookTimeout bounds one look.
	lookTimeout = 30 * time.Second
)

// running is what an installer has seen on a member.
type running struct{ Missing string }

// settling: the agent was installed anew, and has not been seen to be healthy since.
func (o observed) settling() bool {
	return o.Shown == v1alpha1.ReasonAgentStarting || o.Shown == v1alpha1.ReasonAgentNotHealthy
}

// mayBegin reports whether an agent that is in the fleet may be installed anew now for the sake of what is to be installed: when it is its turn, and on
// when it has begun.
func (o observed) mayBegin() bool {
	return !o.Joined || o.Turn || o.begun() && !o.Unreachable
}

// afterwards is what is shown when an agent has been installed. One that was there before, and gets something else, has to show that it is healthy; but
// for one that was without a credential, which says nothing about what it gets.
func afterwards(o observed) *metav1.Condition {
	if !o.Joined || o.Installed == nil || o.Installed.Hash == o.Hash && !o.settling() || recoveryAfter(o) != nil {
		return installed()
	}
	return condition(v1alpha1.ReasonAgentStarting, fmt.Sprintf("The agent was installed anew. It is watched for %s, and until what was installed runs.", o.soak()))
}

func (o observed) soak() time.Duration { return soakPeriods * o.Period }

// settle decides about an agent that was installed anew, whether it is healthy: what is installed runs, and it is heard after so many periods that it would
// be known if it did not beat. One that is not in time has failed, and is healthy when it is later.
func settle(o observed) step {
	var from time.Time
	if at := o.Installed.InstalledAt; at != nil {
		from = at.Time
	}
	soaked := from.Add(o.soak())
	deadline := later(from.Add(o.HealthyWithin), soaked)
	hasFailed := o.Shown == v1alpha1.ReasonAgentNotHealthy
	switch {
	case o.Now.Before(soaked):
		return step{Action: idle, After: soaked.Sub(o.Now)}
	case o.Heard && o.Runs == nil:
		return step{Action: look}
	case o.Heard && o.Runs.Missing == "":
		return step{Action: idle, Condition: installed()}
	case hasFailed && o.Heard:
		return step{Action: idle, After: lookRarely}
	case hasFailed:
		return step{Action: idle}
	case !o.Now.Before(deadline):
		return step{Action: idle, Condition: notHealthy(o), After: lookRarely}
	case o.Heard:
		return step{Action: idle, After: min(lookInterval, deadline.Sub(o.Now))}
	default:
		return step{Action: idle, After: deadline.Sub(o.Now)}
	}
}

func notHealthy(o observed) *metav1.Condition {
	why := "its heartbeat is not heard"
	if o.Heard {
		why = o.Runs.Missing
	}
	return condition(v1alpha1.ReasonAgentNotHealthy, fmt.Sprintf("The agent was installed anew and is not healthy since: %s. While it is not, no other agent "+
		"is installed anew for the same reason. Mend it on the member, or start the hub with what works, which is then installed here first.", why))
}

// waitsForTurn is shown on all that wait, and is the same for as long as they do: nothing has to be written when it changes why.
func waitsForTurn() *metav1.Condition {
	return condition(v1alpha1.ReasonInstallWaiting, fmt.Sprintf("The agent is to be installed anew and waits for its turn: one is first, then a few at a "+
		"time, and none while one has failed. Look for members whose condition Installed has the reason %s or %s, and do what it says there. "+
		"To have it installed now, give the annotation %s of this MemberCluster a new value.",
		v1alpha1.ReasonInstallFailed, v1alpha1.ReasonAgentNotHealthy, membership.InstallRequestAnnotation))
}
