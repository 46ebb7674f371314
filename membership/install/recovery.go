package install

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

const (
	// maxRecoveries is how often an agent that does not come back is installed again by itself.
	maxRecoveries = 6
	// maxRecoveryPause is the longest time between two of these, unless the TokenTTL is longer. The first is as long as that, and each is twice the one before.
	maxRecoveryPause = 24 * time.Hour
)

// recovery is what is to be done for an agent whose credential ends while it is not heard.
type recovery struct {
	Due     bool
	GivenUp bool          // it has been done often enough
	After   time.Duration // when it may be due; zero: nobody knows
}

// recoveryOf decides whether an agent is to be installed again since it cannot come back by itself. One that is heard has a credential that works,
// whatever is on record; and a member that the hub does not reach is left alone until it does.
func recoveryOf(o observed) recovery {
	if !o.Joined || !o.Silent || o.CredentialEnd.IsZero() || o.Installed == nil {
		return recovery{}
	}
	due := o.CredentialEnd
	attempts := attemptsOf(o)
	if attempts > 0 && o.Installed.InstalledAt != nil {
		due = later(due, o.Installed.InstalledAt.Add(recoveryPause(o.TokenTTL, attempts)))
	}
	if o.Token != nil {
		due = later(due, o.Token.Ends) // what it was given last may still let it in
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

// recoveryAfter is what is on record once an agent is installed; nil: it was not for the sake of a credential. A request starts to count anew.
func recoveryAfter(o observed) *v1alpha1.InstallRecovery {
	if !o.Joined || !o.Silent || o.CredentialEnd.IsZero() || o.Now.Before(o.CredentialEnd) {
		return nil
	}
	attempts := attemptsOf(o)
	if requested(o) {
		attempts = 0
	}
	return &v1alpha1.InstallRecovery{CredentialExpirationTime: metav1.NewTime(o.CredentialEnd), Attempts: min(attempts, maxRecoveries) + 1}
}

// attemptsOf is how often an agent was installed for the sake of the credential that it had last.
func attemptsOf(o observed) int32 {
	if o.Installed == nil || o.Installed.Recovery == nil || !o.Installed.Recovery.CredentialExpirationTime.Time.Equal(o.CredentialEnd) {
		return 0
	}
	return o.Installed.Recovery.Attempts
}

func recoveryPause(tokenTTL time.Duration, attempts int32) time.Duration {
	pause, most := tokenTTL, max(maxRecoveryPause, tokenTTL)
	for range min(attempts, maxRecoveries) - 1 {
		pause = min(2*pause, most)
	}
	return pause
}

// notReturned is shown when an agent was installed often enough.
func notReturned() *metav1.Condition {
	return condition(v1alpha1.ReasonAgentNotReturned, fmt.Sprintf("The agent's credential has ended, and it has not come back although it was installed "+
		"anew %d times. Find out on the member why it does not run, or does not reach the hub, and then give the annotation %s of this MemberCluster "+
		"a new value, to have it installed once more.", maxRecoveries, membership.InstallRequestAnnotation))
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
