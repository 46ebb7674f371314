package agent

import (
	"time"

	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// refusalPause is the least time between two requests for renewal when the hub refused the first.
const refusalPause = time.Minute

// renewalState says where the renewal stands, by what was written down and what the Membership says. A request
// that was written down and has not reached the hub counts as none.
func renewalState(asked *renewalRequest, m *v1alpha1.Membership) lifecycle.RenewalState {
	if asked == nil || m == nil {
		return lifecycle.RenewalNone
	}
	answer := m.Spec.Renewal
	switch {
	case answer != nil && answer.ID == asked.ID && answer.Credential != nil:
		return lifecycle.RenewalAnswered
	case answer != nil && answer.ID == asked.ID && answer.Refused != "":
		return lifecycle.RenewalRefused
	case m.Status.Renewal != nil && m.Status.Renewal.ID == asked.ID:
		return lifecycle.RenewalAsked
	default:
		return lifecycle.RenewalNone
	}
}

// askAgainAt is when to ask again after a refusal: often enough to be heard in time, and not a storm.
func askAgainAt(refusedAt time.Time, lifetime time.Duration) time.Time {
	return refusedAt.Add(max(lifetime/10, refusalPause))
}
