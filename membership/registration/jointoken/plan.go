package jointoken

import (
	"fmt"
	"slices"
	"time"

	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

const (
	// answerGrace is how long after the end of a token the credentials that were copied from it can still
	// fetch answers. It is also the shortest life that API servers give, so that a credential of a token
	// that is about to end is issued, too.
	answerGrace = 10 * time.Minute

	defaultLifetime = 24 * time.Hour
	// Longer is for ever: dates need a year of four digits, and durations end at 292 years.
	maxTTL = 100 * 365 * 24 * time.Hour
)

// action is what to do about the credential of a JoinToken. Each may be repeated.
type action string

// The actions.
const (
	// keep leaves everything as it is.
	keep action = "Keep"
	// issue puts a new credential into the Secret, and makes what is missing for it.
	issue action = "Issue"
	// complete writes the chart values for the credential that is in the Secret, and nothing else.
	complete action = "Complete"
	// withdraw takes the credential out of the Secret; copies of it go on working.
	withdraw action = "Withdraw"
	// remove withdraws it and ends every copy.
	remove action = "Remove"
)

// existing is what is known of the credential that is on the hub for a JoinToken.
type existing struct {
	// Usable is true when an agent can join with the Secret as it is, and it says what would be written now.
	Usable bool
	// Incomplete is true if the chart values in the Secret are missing, or are not those of the credential.
	Incomplete bool
	// IssuedAt is when it was issued, by the clock that also tells plan the time.
	IssuedAt time.Time
	// Lifetime that the API server gave it.
	Lifetime time.Duration
	// Adopted is true when it is an administrator's own, which is not renewed and ends at Expires. Zero: never.
	Adopted bool
	Expires time.Time
	// Problem says why there can be none, and what would help. Empty: nothing is in the way.
	Problem string
}

// step is what follows for a JoinToken.
type step struct {
	Action action
	// Reason and Message are those of its condition Ready, which is True when the reason is ReasonReady.
	Reason, Message string
	// Lifetime to ask for, if the action is issue.
	Lifetime time.Duration
	// End of the token. Zero: never.
	End time.Time
	// UsedUp is since when no use is left, to be remembered in the status. Zero: some are.
	UsedUp time.Time
	// Again is when to look again: at once after issue, because the API server may grant less than it was
	// asked for. Zero: not before something changes.
	Again time.Time
}

// plan decides what to do about a JoinToken at a time. It is pure.
func plan(token *v1alpha1.JoinToken, credential existing, now time.Time) step {
	end := endOf(token)
	if !end.IsZero() && !now.Before(end) {
		return ended(end, now, step{End: end, Reason: v1alpha1.ReasonExpired, Message: fmt.Sprintf(
			"ended at %s: create another JoinToken, or raise spec.ttlSeconds", end.UTC().Format(time.RFC3339))})
	}
	if usedUp(token) {
		since := usedUpSince(token, now)
		return ended(since, now, step{End: end, UsedUp: since, Reason: v1alpha1.ReasonUsedUp, Message: fmt.Sprintf(
			"All %d uses are gone: create another JoinToken, or raise spec.maxUses", token.Status.Uses)})
	}
	if err := registration.CheckLabels("spec.labels", token.Spec.Labels); err != nil {
		return step{Action: withdraw, Reason: v1alpha1.ReasonInvalidLabel, Message: err.Error(), End: end, Again: end}
	}
	if credential.Problem != "" {
		return step{Action: remove, Reason: v1alpha1.ReasonBootstrapTokenUnusable, Message: credential.Problem, End: end,
			Again: end}
	}
	step := step{Action: keep, Reason: v1alpha1.ReasonReady, End: end, Message: fmt.Sprintf(
		"give an agent the key %s of Secret %s/%s", registration.BootstrapKey, token.Namespace, token.Name)}
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

// End returns when a token expires. Zero: never. JoinRequests that were made with it and wait for a decision end then.
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

// usedUpSince returns when that was first seen.
func usedUpSince(token *v1alpha1.JoinToken, now time.Time) time.Time {
	if seen := token.Status.UsedUpTime; seen != nil {
		return seen.Time
	}
	return now
}

// renewal returns when a credential is to be replaced: at half of its life, be it the one that it was issued with or
// the one that it would be issued with now. One that lasts as long as it may is left, and one that is not the hub's
// until it ends, which may be never (zero).
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

// counted reports whether a cluster came in with a token, as far as the token remembers.
func counted(token *v1alpha1.JoinToken, clusterID string) bool {
	return slices.Contains(token.Status.UsedBy, clusterID)
}
