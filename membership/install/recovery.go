package install

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

const (
	// maxRecoveries is the maximum number of automatic installations of an agent that does not connect again.
	maxRecoveries = 6
	// maxRecoveryPause is the maximum pause between two of these, unless the TokenTTL is longer. The first pause is the
	// TokenTTL, and each further one is twice as long.
	maxRecoveryPause = 24 * time.Hour
)

// recovery is the decision for an agent whose credential has expired while its heartbeat was lost.
type recovery struct {
	Due     bool
	GivenUp bool          // the maximum number is reached
	After   time.Duration // time until it may be due; zero: unknown
}

// recoveryOf decides whether an agent must be installed again because it cannot connect with its credential. An agent
// with heartbeats has a valid credential, regardless of the recorded expiration. A member that the hub cannot reach
// waits until it can.
func recoveryOf(o observed) recovery {
	if !o.Joined || !o.Heartbeat.Lost || o.CredentialEnd.IsZero() || o.Install.Last == nil {
		return recovery{}
	}
	due := o.CredentialEnd
	attempts := attemptsOf(o)
	if attempts > 0 && o.Install.Last.InstalledAt != nil {
		due = later(due, o.Install.Last.InstalledAt.Add(recoveryPause(o.Timeouts.Token, attempts)))
	}
	if o.Token != nil {
		due = later(due, o.Token.Ends) // the agent may still join with the last token
	}
	switch {
	case o.Now.Before(due):
		return recovery{After: due.Sub(o.Now)}
	case attempts >= maxRecoveries:
		return recovery{GivenUp: true}
	default:
		return recovery{Due: !o.Unreachable}
	}
}

// recoveryAfter returns the recovery to record after an installation; nil: the expired credential was not the reason.
// A request of a user restarts the count.
func recoveryAfter(o observed) *v1alpha1.InstallRecovery {
	if !o.Joined || !o.Heartbeat.Lost || o.CredentialEnd.IsZero() || o.Now.Before(o.CredentialEnd) {
		return nil
	}
	attempts := attemptsOf(o)
	if requested(o) {
		attempts = 0
	}
	return &v1alpha1.InstallRecovery{CredentialExpirationTime: metav1.NewTime(o.CredentialEnd),
		Attempts: min(attempts, maxRecoveries) + 1}
}

// attemptsOf returns how often an agent was installed because of its last credential.
func attemptsOf(o observed) int32 {
	if o.Install.Last == nil || o.Install.Last.Recovery == nil ||
		!o.Install.Last.Recovery.CredentialExpirationTime.Time.Equal(o.CredentialEnd) {
		return 0
	}
	return o.Install.Last.Recovery.Attempts
}

func recoveryPause(tokenTTL time.Duration, attempts int32) time.Duration {
	pause, most := tokenTTL, max(maxRecoveryPause, tokenTTL)
	for range min(attempts, maxRecoveries) - 1 {
		pause = min(2*pause, most)
	}
	return pause
}

// recoveryExhausted returns the condition after the maximum number of installations.
func recoveryExhausted() *metav1.Condition {
	return condition(v1alpha1.ReasonAgentNotReturned, fmt.Sprintf("The agent's credential has expired, and the agent "+
		"has not connected although it was installed again %d times. Check on the member why the agent does not run or "+
		"does not reach the hub. Then set the annotation %s of this MemberCluster to a new value to install the agent again.",
		maxRecoveries, membership.InstallRequestAnnotation))
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
