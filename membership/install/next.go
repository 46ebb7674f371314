package install

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/internal/requeue"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// observed is the observed state of a member whose agent the hub installs.
type observed struct {
	Now time.Time

	Accepted bool
	Joined   bool
	// Unreachable: the hub cannot reach the member.
	Unreachable bool
	// Permitted: the member has a rollout permit.
	Permitted bool

	Leave   leaveSeen
	Install installSeen
	Desired desired
	// Token of the agent; nil: none.
	Token *tokenSeen
	// CredentialEnd is when the agent's credential expires; zero: never, or unknown.
	CredentialEnd time.Time
	Heartbeat     heartbeatSeen
	Timeouts      timeouts
}

// leaveSeen is the observed state of a member's leave.
type leaveSeen struct {
	// Requested: the member is leaving or has left.
	Requested bool
	// Forced: the leave is forced, without the agent's confirmation.
	Forced bool
	// AgentIn: its agent has joined, and has not confirmed yet that the member is clean.
	AgentIn bool
	// GaveUp: the installed objects cannot be removed.
	GaveUp bool
}

// installSeen is the observed state of the installation on a member.
type installSeen struct {
	// Touched: objects may have been created on the member.
	Touched bool
	// Shown is the current reason of the condition Installed; empty: there is no condition.
	Shown string
	// Last is the state of the last installation; nil: none.
	Last *v1alpha1.InstallStatus
	// Runs is the result of the Checker; nil: it was not called.
	Runs *running
}

// begun reports whether an attempt to install is incomplete, or has failed.
func (i installSeen) begun() bool {
	return i.Shown == v1alpha1.ReasonInstalling || i.Shown == v1alpha1.ReasonInstallFailed
}

// awaitsHealth reports whether the agent was installed again, and has not been healthy since.
func (i installSeen) awaitsHealth() bool {
	return i.Shown == v1alpha1.ReasonAgentStarting || i.Shown == v1alpha1.ReasonAgentNotHealthy
}

// desired contains the desired values of an InstallStatus.
type desired struct {
	Hash        string
	RequestedAt string
}

// heartbeatSeen is the observed state of a member's heartbeat.
type heartbeatSeen struct {
	// Arrives: the hub receives it.
	Arrives bool
	// Lost: it has not arrived for its grace period.
	Lost bool
	// Period between two heartbeats.
	Period time.Duration
}

// soak returns how long the heartbeat is observed after an installation.
func (h heartbeatSeen) soak() time.Duration { return soakPeriods * h.Period }

// timeouts limit an installation.
type timeouts struct {
	// Token is the lifetime of a new token.
	Token time.Duration
	// Healthy is the timeout for becoming healthy after an installation.
	Healthy time.Duration
}

// outdated reports whether the desired revision differs from the one that was installed last. A last installation must
// exist.
func (o observed) outdated() bool { return o.Install.Last.Hash != o.Desired.Hash }

// requested reports whether a user requests another installation.
func requested(o observed) bool {
	return o.Install.Last != nil && o.Desired.RequestedAt != "" && o.Desired.RequestedAt != o.Install.Last.RequestedAt
}

// tokenSeen is the observed state of a member's JoinToken.
type tokenSeen struct {
	Ends time.Time
	Used bool // the agent has used it
}

// action is an action of the hub for a member. Every action may be repeated.
type action string

// The actions.
const (
	// idle does nothing.
	idle action = "Idle"
	// install creates a JoinToken and installs the agent.
	install action = "Install"
	// uninstall removes the installed objects, and deletes the token.
	uninstall action = "Uninstall"
	// discard deletes the JoinToken.
	discard action = "Discard"
	// check calls the Checker, to decide again with the result.
	check action = "Look"
)

// step is the next step for a member.
type step struct {
	Action action
	// Condition is reported before the action; nil: unchanged.
	Condition *metav1.Condition
	// After is the time until the next decision if no observation changes. Zero: never.
	After time.Duration
	// Then is reported after the agent was installed, and Recovery is recorded with it.
	Then     *metav1.Condition
	Recovery *v1alpha1.InstallRecovery
}

// next decides the next step for a member. It performs no I/O.
func next(o observed) step {
	switch {
	case o.Leave.Requested:
		return nextLeaving(o)
	case !o.Accepted:
		return nextNotAccepted(o)
	}
	if why := due(o); why != "" {
		s := step{Action: install, Then: afterwards(o), Recovery: recoveryAfter(o)}
		if o.Install.Shown != v1alpha1.ReasonInstallFailed { // the failure is shown until an attempt succeeds
			s.Condition = condition(v1alpha1.ReasonInstalling, why)
		}
		return s
	}
	s := standby(o)
	switch {
	case s.Action == check, o.Token == nil:
	case o.Joined && o.Token.Used, !o.Now.Before(o.Token.Ends):
		s.Action = discard
	default:
		s.After = requeue.Sooner(s.After, o.Token.Ends.Sub(o.Now))
	}
	return s
}

// standby decides for a member where nothing must be installed now.
func standby(o observed) step {
	recovery := recoveryOf(o)
	s := step{Action: idle, After: recovery.After}
	switch {
	case o.outdated() && o.Install.begun(): // the attempt continues when the hub reaches the member
	case o.outdated():
		s.Condition = permitPending()
	case recovery.GivenUp:
		s.Condition = recoveryExhausted()
	case o.Install.awaitsHealth():
		s = evaluateHealth(o)
		s.After = requeue.Sooner(s.After, recovery.After)
	case o.Install.Shown != v1alpha1.ReasonInstalled:
		s.Condition = installed()
	}
	return s
}

// due returns the reason why an agent must be installed now; empty: there is none.
func due(o observed) string {
	switch {
	case o.Install.Last == nil:
		return "The agent is being installed."
	case requested(o):
		return fmt.Sprintf("The agent is being installed again, as requested at %s.", o.Desired.RequestedAt)
	case o.outdated() && o.mayBegin():
		return "The agent is being installed again: the hub's address, its certificate authority or the revision of what " +
			"is installed has changed."
	case !o.Joined && (o.Token == nil || !o.Now.Before(o.Token.Ends)):
		return "The agent is being installed again: it has not joined, and its bootstrap credential has expired."
	case recoveryOf(o).Due:
		return fmt.Sprintf("The agent is being installed again: its heartbeat is lost, and its credential expired at %s, "+
			"so the agent needs a new credential to connect.",
			o.CredentialEnd.UTC().Format(time.RFC3339))
	case o.Install.begun() && !o.outdated():
		return "The agent is being installed again: the last attempt is incomplete."
	default:
		return ""
	}
}

// nextNotAccepted handles a member that is not accepted: nothing is installed, and nothing is removed.
func nextNotAccepted(o observed) step {
	s := step{Action: idle}
	if !o.Install.Touched {
		s.Condition = condition(v1alpha1.ReasonNotAccepted,
			"The agent is installed when the cluster is accepted: set spec.accepted to true.")
	}
	if o.Token != nil {
		s.Action = discard
	}
	return s
}

// nextLeaving decides for a member that leaves. The installation must not be removed while the agent has objects to
// clean up, also if it is disconnected.
func nextLeaving(o observed) step {
	switch {
	case o.Install.Touched && !o.Leave.AgentIn && !o.Leave.Forced && !o.Leave.GaveUp:
		return step{Action: uninstall}
	case o.Leave.AgentIn && !o.Leave.Forced && o.Token != nil && !o.Token.Used && o.Now.Before(o.Token.Ends):
		return step{Action: idle, After: o.Token.Ends.Sub(o.Now)} // the agent may be about to join again, to clean up
	case o.Token != nil:
		return step{Action: discard}
	default:
		return step{Action: idle}
	}
}

// installed returns the condition for the desired state.
func installed() *metav1.Condition {
	return condition(v1alpha1.ReasonInstalled, "The agent is installed. The hub does not need to reach the member until "+
		"the agent must be installed again.")
}

// condition returns the condition Installed with a reason.
func condition(reason, message string) *metav1.Condition {
	status := metav1.ConditionFalse
	if reason == v1alpha1.ReasonInstalled {
		status = metav1.ConditionTrue
	}
	return &metav1.Condition{Type: v1alpha1.ConditionInstalled, Status: status, Reason: reason, Message: message}
}

// hashOf returns a hash of the revision, and of the address and certificate authority of the hub.
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
