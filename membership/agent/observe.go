package agent

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// see takes over the latest observation of the Membership.
func (a *agent) see() {
	if a.follower == nil {
		return
	}
	if s := a.follower.take(); s != nil {
		a.saw(*s)
	}
	if a.follower == nil || a.membership == nil || a.membership.Spec.Hub == nil {
		return
	}
	if mark := a.follower.marked(); mark != "" && !older(mark, a.revision) {
		a.revision = mark
	}
}

// saw stores a new observation of the hub.
func (a *agent) saw(s sighting) {
	if s.lagging && s.membership != nil && a.membership != nil &&
		older(s.membership.ResourceVersion, a.membership.ResourceVersion) {
		return
	}
	if a.sight != s.sight && (!shutOut(a.sight) || !shutOut(s.sight)) {
		a.sightSince = a.Clock.Now()
	}
	a.noteRevision(s)
	a.sight, a.membership, a.replaced = s.sight, s.membership, nil
	if s.sight == lifecycle.HubReplaced {
		a.membership, a.replaced = nil, s.membership
	}
	a.updateGuard()
	a.answered(s.sight != lifecycle.HubUnreachable, a.Clock.Now())
	if s.sight != lifecycle.HubSeen {
		a.unfollow()
		return
	}
	a.requests.forget()
	a.connection.beater.SetPeriod(period(s.membership))
	if asked := a.record.Renewal; renewalState(asked, s.membership) == lifecycle.RenewalRefused {
		a.refuse(asked.ID, s.membership.Spec.Renewal.Refused)
	}
}

// shutOut reports whether the hub responds and refuses the agent.
func shutOut(sight lifecycle.HubSight) bool {
	return sight == lifecycle.HubRefused || sight == lifecycle.HubGone || sight == lifecycle.HubOther
}

// told reports whether the result of a heartbeat, which uses another connection, contradicts the last observation.
func (a *agent) told(outcome error) bool {
	refused := unwelcome(outcome)
	switch {
	case a.sight == lifecycle.HubSeen, a.sight == lifecycle.HubUnreachable && refused:
		return refused // withdrawn RBAC permissions do not end an open watch
	case a.sight == lifecycle.HubRefused, a.sight == lifecycle.HubUnreachable:
		return outcome == nil
	default: // a Lease can exist without a Membership
		return false
	}
}

// unwelcome reports whether the result of a heartbeat is a refusal of the hub.
func unwelcome(outcome error) bool {
	return refusal(outcome) || apierrors.IsNotFound(outcome)
}

func older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

func period(m *v1alpha1.Membership) time.Duration {
	return time.Duration(m.Spec.HeartbeatPeriodSeconds) * time.Second
}

// observe collects everything that the decision depends on.
func (a *agent) observe() lifecycle.AgentObserved {
	o := lifecycle.AgentObserved{
		Now: a.Clock.Now(), Record: a.record.flags(), JoinRequest: a.requests.sight, JoinRequestSince: a.requests.since,
		Hub: a.sight, HubSince: a.sightSince, Beating: a.connection != nil && a.connection.beating(), Member: a.cleaned,
		MemberAt:   a.cleanedAt,
		Reregister: a.reregister,
	}
	if m := a.membership; m != nil {
		o.Membership = lifecycle.MembershipSeen{
			State: m.Spec.State, Rejoin: m.Spec.Rejoin, Clean: m.Spec.Clean, Report: reported(m.Status, a.claim.Fingerprint()),
		}
		if a.requiredEpoch() > 0 || a.rolledBack {
			o.Membership.Clean = false // the Membership may be older than a later request of a user
		}
		o.PolicySaved = a.record.Leave != nil && *a.record.Leave == m.Spec.Leave &&
			(m.Spec.Hub == nil || a.record.hubID() != "")
		o.Renewal = renewalState(a.record.Renewal, m)
	}
	if a.record.Member != nil {
		o.RenewAt = a.record.Member.Credential.renewAt(a.claim.Fingerprint())
		if a.refused.id != "" {
			o.RenewAt = askAgainAt(a.refused.at, a.record.Member.Credential.Lifetime)
		}
		o.RenewAt = due(o.RenewAt, o.Now)
	}
	if o.Renewal == lifecycle.RenewalAsked {
		a.asked = o.Now
	}
	return o
}
