package agent

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// takeObservation stores the latest observation of the follower.
func (a *agent) takeObservation() {
	if a.hub.follower == nil {
		return
	}
	if s := a.hub.follower.take(); s != nil {
		a.setObservation(*s)
	}
	if a.hub.follower == nil || a.hub.membership == nil || a.hub.membership.Spec.Hub == nil {
		return
	}
	if mark := a.hub.follower.marked(); mark != "" && !older(mark, a.hub.revision) {
		a.hub.revision = mark
	}
}

// setObservation stores a new observation of the hub.
func (a *agent) setObservation(s sighting) {
	if s.lagging && s.membership != nil && a.hub.membership != nil &&
		older(s.membership.ResourceVersion, a.hub.membership.ResourceVersion) {
		return
	}
	if a.hub.state != s.state && (!refused(a.hub.state) || !refused(s.state)) {
		a.hub.since = a.Clock.Now()
	}
	a.hub.noteRevision(s, a.state.record)
	a.hub.state, a.hub.membership, a.hub.replaced = s.state, s.membership, nil
	if s.state == lifecycle.HubReplaced {
		a.hub.membership, a.hub.replaced = nil, s.membership
	}
	a.updateGuard()
	a.hub.address.answered(s.state != lifecycle.HubUnreachable, a.Clock.Now())
	if s.state != lifecycle.HubSeen {
		a.unfollow()
		return
	}
	a.requests.forget()
	a.connection.beater.SetPeriod(period(s.membership))
	if asked := a.state.record.Renewal; renewalState(asked, s.membership) == lifecycle.RenewalRefused {
		a.refuse(asked.ID, s.membership.Spec.Renewal.Refused)
	}
}

// refused reports whether the hub responds, and refuses the agent.
func refused(state lifecycle.HubState) bool {
	return state == lifecycle.HubRefused || state == lifecycle.HubGone || state == lifecycle.HubOther
}

// contradicted reports whether the result of a heartbeat, which uses another connection, contradicts the last
// observation.
func (h *hubObservation) contradicted(outcome error) bool {
	refused := isRefusal(outcome)
	switch {
	case h.state == lifecycle.HubSeen, h.state == lifecycle.HubUnreachable && refused:
		return refused // withdrawn RBAC permissions do not end an open watch
	case h.state == lifecycle.HubRefused, h.state == lifecycle.HubUnreachable:
		return outcome == nil
	default: // a Lease can exist without a Membership
		return false
	}
}

// isRefusal reports whether the result of a heartbeat is a refusal by the hub.
func isRefusal(outcome error) bool {
	return refusal(outcome) || apierrors.IsNotFound(outcome)
}

func older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

func period(m *v1alpha1.Membership) time.Duration {
	return time.Duration(m.Spec.HeartbeatPeriodSeconds) * time.Second
}

// observe collects all input of lifecycle.NextAgent.
func (a *agent) observe() lifecycle.AgentObserved {
	o := lifecycle.AgentObserved{
		Now: a.Clock.Now(), Record: a.state.record.flags(), JoinRequest: a.requests.state, JoinRequestSince: a.requests.since,
		Hub: a.hub.state, HubSince: a.hub.since, Beating: a.connection != nil && a.connection.beating(),
		Member:     a.cleanup.result,
		MemberAt:   a.cleanup.at,
		Reregister: a.hub.address.reregister,
	}
	if m := a.hub.membership; m != nil {
		o.Membership = lifecycle.MembershipSeen{
			State: m.Spec.State, Rejoin: m.Spec.Rejoin, Clean: m.Spec.Clean, Report: reported(m.Status,
				a.state.claim.Fingerprint()),
		}
		if a.state.record.requiredEpoch() > 0 || a.hub.rolledBack {
			o.Membership.Clean = false // the Membership may be older than a later request of a user
		}
		o.PolicySaved = a.state.record.Leave != nil && *a.state.record.Leave == m.Spec.Leave &&
			(m.Spec.Hub == nil || a.state.record.hubID() != "")
		o.Renewal = renewalState(a.state.record.Renewal, m)
	}
	if a.state.record.Member != nil {
		o.RenewAt = a.state.record.Member.Credential.renewAt(a.state.claim.Fingerprint())
		if a.renewal.refused.id != "" {
			o.RenewAt = askAgainAt(a.renewal.refused.at, a.state.record.Member.Credential.Lifetime)
		}
		o.RenewAt = due(o.RenewAt, o.Now)
	}
	if o.Renewal == lifecycle.RenewalAsked {
		a.renewal.observed = o.Now
	}
	return o
}
