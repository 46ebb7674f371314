package install

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// observed is what is known of a member whose agent the hub installs.
type observed struct {
	Now time.Time

	Accepted bool
	Joined   bool
	// Leaving: on its way out, or out.
	Leaving bool
	// Forced: it is removed without its agent's word.
	Forced bool
	// AgentIn: its agent has joined, and has not confirmed yet that the member is clean.
	AgentIn bool

	// Touched: something may have been put on the member.
	Touched bool
	// Shown is the reason that the condition Installed is shown for; empty: it is not shown.
	Shown string
	// GaveUp: what is there cannot be removed.
	GaveUp bool
	// Installed is what was installed last; nil: nothing was.
	Installed *v1alpha1.InstallStatus
	// Hash and RequestedAt are what is to be installed.
	Hash        string
	RequestedAt string
	// Token that an agent was given; nil: there is none.
	Token *tokenSeen
	// TokenTTL is how long another one would be good for.
	TokenTTL time.Duration

	// Silent: its heartbeat is lost.
	Silent bool
	// CredentialEnd is when the agent is left without a credential; zero: never, or nobody knows.
	CredentialEnd time.Time
	// Unreachable: the hub has found that it does not get there.
	Unreachable bool

	// Turn: it is to be installed anew now, where what is to be installed is another.
	Turn bool
	// Heard: its heartbeat is.
	Heard bool
	// Period of its heartbeat.
	Period time.Duration
	// HealthyWithin is how long it has after it was installed anew.
	HealthyWithin time.Duration
	// Runs is what the installer sees on the member; nil: it has not looked.
	Runs *running
}

// begun: an attempt to install has not come to its end, or has failed.
func (o observed) begun() bool {
	return o.Shown == v1alpha1.ReasonInstalling || o.Shown == v1alpha1.ReasonInstallFailed
}

// requested: somebody asks for it to be installed anew.
func requested(o observed) bool {
	return o.Installed != nil && o.RequestedAt != "" && o.RequestedAt != o.Installed.RequestedAt
}

// tokenSeen is the JoinToken of a member.
type tokenSeen struct {
	Ends time.Time
	Used bool // the agent came in with it
}

// action is what the hub does about a member. Each may be repeated.
type action string

// The actions.
const (
	// idle does nothing.
	idle action = "Idle"
	// install makes a JoinToken and has the agent installed.
	install action = "Install"
	// uninstall has removed what was installed, and discards the token.
	uninstall action = "Uninstall"
	// discard deletes the JoinToken.
	discard action = "Discard"
	// look asks the installer what runs, to decide anew.
	look action = "Look"
)

// step is what follows.
type step struct {
	Action action
	// Condition that is to be shown before the action; nil: as it is.
	Condition *metav1.Condition
	// After is when to look again although nothing has happened. Zero: never.
	After time.Duration
	// Then is shown when the agent is installed, and Recovery is on record.
	Then     *metav1.Condition
	Recovery *v1alpha1.InstallRecovery
}

// next decides what to do about a member. It is pure.
func next(o observed) step {
	switch {
	case o.Leaving:
		return nextLeaving(o)
	case !o.Accepted:
		return nextNotAccepted(o)
	}
	if why := due(o); why != "" {
		s := step{Action: install, Then: afterwards(o), Recovery: recoveryAfter(o)}
		if o.Shown != v1alpha1.ReasonInstallFailed { // which is shown until an attempt succeeds
			s.Condition = condition(v1alpha1.ReasonInstalling, why)
		}
		return s
	}
	s := standby(o)
	switch {
	case s.Action == look, o.Token == nil:
	case o.Joined && o.Token.Used, !o.Now.Before(o.Token.Ends):
		s.Action = discard
	default:
		s.After = sooner(s.After, o.Token.Ends.Sub(o.Now))
	}
	return s
}

// standby is about a member where nothing is to be installed now.
func standby(o observed) step {
	recovery := recoveryOf(o)
	s := step{Action: idle, After: recovery.After}
	switch {
	case o.Installed.Hash != o.Hash && o.begun(): // it goes on when the hub gets there
	case o.Installed.Hash != o.Hash:
		s.Condition = waitsForTurn()
	case recovery.GivenUp:
		s.Condition = notReturned()
	case o.settling():
		s = settle(o)
		s.After = sooner(s.After, recovery.After)
	case o.Shown != v1alpha1.ReasonInstalled:
		s.Condition = installed()
	}
	return s
}

// due says why an agent is to be installed now; empty: it is not.
func due(o observed) string {
	switch {
	case o.Installed == nil:
		return "The agent is being installed."
	case requested(o):
		return fmt.Sprintf("The agent is being installed anew, as was requested at %s.", o.RequestedAt)
	case o.Installed.Hash != o.Hash && o.mayBegin():
		return "The agent is being installed anew: the hub's address, its certificate authority or the revision of what is installed has changed."
	case !o.Joined && (o.Token == nil || !o.Now.Before(o.Token.Ends)):
		return "The agent is being installed anew: it has not joined, and the credential that it was given has ended."
	case recoveryOf(o).Due:
		return fmt.Sprintf("The agent is being installed anew: it is silent, and its credential ended at %s, so that it cannot come back without another one.",
			o.CredentialEnd.UTC().Format(time.RFC3339))
	case o.begun() && o.Installed.Hash == o.Hash:
		return "The agent is being installed anew: the last attempt did not come to its end."
	default:
		return ""
	}
}

// sooner is the earlier of two times to look again, of which zero is never.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// nextNotAccepted is about a member that nobody lets in: nothing is put there, and nothing that is there is taken away.
func nextNotAccepted(o observed) step {
	s := step{Action: idle}
	if !o.Touched {
		s.Condition = condition(v1alpha1.ReasonNotAccepted, "The agent is installed when the cluster is accepted: set spec.accepted to true.")
	}
	if o.Token != nil {
		s.Action = discard
	}
	return s
}

// nextLeaving is about a member that leaves. While its agent has still something to clean up it must not be removed, and where it was never
// heard it may have it when it comes back.
func nextLeaving(o observed) step {
	switch {
	case o.Touched && !o.AgentIn && !o.Forced && !o.GaveUp:
		return step{Action: uninstall}
	case o.AgentIn && !o.Forced && o.Token != nil && !o.Token.Used && o.Now.Before(o.Token.Ends):
		return step{Action: idle, After: o.Token.Ends.Sub(o.Now)} // it may be at the door just now, to come back and clean up
	case o.Token != nil:
		return step{Action: discard}
	default:
		return step{Action: idle}
	}
}

// installed is shown where all is as it is to be.
func installed() *metav1.Condition {
	return condition(v1alpha1.ReasonInstalled, "The agent is installed. The hub need not reach the member until it is to be installed anew.")
}

// condition is Installed, for a reason.
func condition(reason, message string) *metav1.Condition {
	status := metav1.ConditionFalse
	if reason == v1alpha1.ReasonInstalled {
		status = metav1.ConditionTrue
	}
	return &metav1.Condition{Type: v1alpha1.ConditionInstalled, Status: status, Reason: reason, Message: message}
}

// hashOf tells what is installed, and what agents reach the hub by, from all else.
func hashOf(hub registration.Bootstrap, installer Installer) string {
	revision := ""
	if reviser, ok := installer.(Reviser); ok {
		revision = reviser.Revision()
	}
	sum := sha256.New()
	for _, part := range []string{hub.Server, string(hub.CA), revision} {
		_, _ = fmt.Fprintf(sum, "%d:%s", len(part), part) // it never fails
	}
	return hex.EncodeToString(sum.Sum(nil))
}
