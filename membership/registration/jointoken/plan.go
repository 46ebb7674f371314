package jointoken

import (
	"fmt"
	"slices"
	"time"

	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

const (
	// answerGrace is how long after the end of a token copies of its credentials can still read answers. It is also the
	// minimum lifetime of tokens of API servers, so that a credential can also be issued for a token that is about to
	// end.
	answerGrace = 10 * time.Minute

	defaultLifetime = 24 * time.Hour
	// Longer TTLs mean never: dates need a year of four digits, and durations are limited to 292 years.
	maxTTL = 100 * 365 * 24 * time.Hour
)

// action is an action for the credential of a JoinToken. Every action may be repeated.
type action string

// The actions.
const (
	// keep changes nothing.
	keep action = "Keep"
	// issue writes a new credential into the Secret, and creates the objects that it needs.
	issue action = "Issue"
	// complete writes only the chart values for the credential in the Secret.
	complete action = "Complete"
	// withdraw removes the credential from the Secret. Copies of it continue to work.
	withdraw action = "Withdraw"
	// remove withdraws the credential and invalidates every copy.
	remove action = "Remove"
)

// existing describes the existing credential of a JoinToken.
type existing struct {
	// Usable is true if an agent can join with the Secret, and the Secret has the content that would be written now.
	Usable bool
	// Incomplete is true if the chart values in the Secret are missing, or are not those of the credential.
	Incomplete bool
	// IssuedAt is the time at which it was issued, by the same clock as the time that is passed to plan.
	IssuedAt time.Time
	// Lifetime that the API server granted.
	Lifetime time.Duration
	// Adopted is true if an administrator created the credential. It is not renewed and ends at Expires. Zero: never.
	Adopted bool
	Expires time.Time
	// Problem is the reason why there can be no credential, and the next step. Empty: there is no problem.
	Problem string
}

// step is the next step for a JoinToken.
type step struct {
	Action action
	// Reason and Message of the condition Ready, which is True if the reason is ReasonReady.
	Reason, Message string
	// Lifetime to request, if the action is issue.
	Lifetime time.Duration
	// End of the token. Zero: never.
	End time.Time
	// UsedUp is the time since which no use is left, to be recorded in the status. Zero: uses are left.
	UsedUp time.Time
	// Again is the time of the next reconcile: immediately after issue, because the API server may grant a shorter
	// lifetime than requested. Zero: when an object changes.
	Again time.Time
}

// plan decides the next step for a JoinToken at a time. It performs no I/O.
func plan(token *v1alpha1.JoinToken, credential existing, now time.Time) step {
	end := endOf(token)
	if !end.IsZero() && !now.Before(end) {
		return ended(end, now, step{End: end, Reason: v1alpha1.ReasonExpired, Message: fmt.Sprintf(
			"The JoinToken expired at %s: create another JoinToken, or raise spec.ttlSeconds.", end.UTC().Format(time.RFC3339))})
	}
	if usedUp(token) {
		since := usedUpSince(token, now)
		return ended(since, now, step{End: end, UsedUp: since, Reason: v1alpha1.ReasonUsedUp, Message: fmt.Sprintf(
			"The JoinToken is used up, with %d uses: create another JoinToken, or raise spec.maxUses.", token.Status.Uses)})
	}
	if err := registration.CheckLabels("spec.labels", token.Spec.Labels); err != nil {
		return step{Action: withdraw, Reason: v1alpha1.ReasonInvalidLabel, Message: err.Error(), End: end, Again: end}
	}
	if credential.Problem != "" {
		return step{Action: remove, Reason: v1alpha1.ReasonBootstrapTokenUnusable, Message: credential.Problem + ".",
			End: end, Again: end}
	}
	step := step{Action: keep, Reason: v1alpha1.ReasonReady, End: end, Message: fmt.Sprintf(
		"Give an agent the key %s of Secret %s/%s.", registration.BootstrapKey, token.Namespace, token.Name)}
	due := renewal(token, credential, end)
	old := !credential.Adopted && (!now.Before(due) || credential.IssuedAt.After(now))
	if !credential.Usable || old {
		step.Action, step.Lifetime, step.Again = issue, lifetime(token, end, now), now
		return step
	}
	if credential.Incomplete {
		step.Action = complete
	}
	step.Again = due
	if !end.IsZero() && (due.IsZero() || end.Before(due)) {
		step.Again = end
	}
	return step
}

func ended(at, now time.Time, step step) step {
	if gone := at.Add(answerGrace); now.Before(gone) {
		step.Action, step.Again = withdraw, gone
	} else {
		step.Action = remove
	}
	return step
}

// End returns the time at which a token expires. Zero: never. JoinRequests that were made with the token and wait for
// a decision end then.
func End(token *v1alpha1.JoinToken) time.Time { return endOf(token) }

func endOf(token *v1alpha1.JoinToken) time.Time {
	ttl := token.Spec.TTLSeconds
	if ttl == nil || *ttl <= 0 || *ttl > int64(maxTTL/time.Second) {
		return time.Time{}
	}
	return token.CreationTimestamp.Add(time.Duration(*ttl) * time.Second)
}

func usedUp(token *v1alpha1.JoinToken) bool {
	return token.Spec.MaxUses != nil && token.Status.Uses >= *token.Spec.MaxUses
}

// usedUpSince returns the time at which the hub first observed that the token is used up.
func usedUpSince(token *v1alpha1.JoinToken, now time.Time) time.Time {
	if seen := token.Status.UsedUpTime; seen != nil {
		return seen.Time
	}
	return now
}

// renewal returns the time at which a credential must be replaced: at half of its lifetime or, if that is shorter, of
// the lifetime that it would be issued with now. A credential with the maximum lifetime is kept, and an adopted one is
// kept until it expires, which may be never (zero).
func renewal(token *v1alpha1.JoinToken, credential existing, end time.Time) time.Time {
	if credential.Adopted {
		return credential.Expires
	}
	if last := end.Add(answerGrace); !end.IsZero() && !credential.IssuedAt.Add(credential.Lifetime).Before(last) {
		return last
	}
	return credential.IssuedAt.Add(min(credential.Lifetime, wanted(token)) / 2)
}

func wanted(token *v1alpha1.JoinToken) time.Duration {
	if token.Spec.CredentialTTLSeconds == 0 {
		return defaultLifetime
	}
	return time.Duration(token.Spec.CredentialTTLSeconds) * time.Second
}

func lifetime(token *v1alpha1.JoinToken, end, now time.Time) time.Duration {
	life := wanted(token)
	if !end.IsZero() {
		life = min(life, end.Add(answerGrace).Sub(now))
	}
	return (life + time.Second - 1).Truncate(time.Second) // Rounded up: see renewal.
}

// counted reports whether a cluster is recorded as admitted with a token.
func counted(token *v1alpha1.JoinToken, clusterID string) bool {
	return slices.Contains(token.Status.UsedBy, clusterID)
}
