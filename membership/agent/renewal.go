package agent

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// refusalPause is the minimum time between two renewal requests after a refusal.
const refusalPause = time.Minute

// renewalState returns the state of the renewal, from the record and the Membership. A recorded request that has not
// reached the hub is RenewalNone.
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

// askAgainAt returns the time of the next renewal request after a refusal.
func askAgainAt(refusedAt time.Time, lifetime time.Duration) time.Time {
	return refusedAt.Add(max(lifetime/10, refusalPause))
}

// requestRenewal sends the recorded request, or a new one if there is none or it was refused.
func (a *agent) requestRenewal(ctx context.Context) error {
	if asked := a.state.record.Renewal; asked == nil || asked.ID == a.renewal.refused.id {
		request, private, err := a.Method.Request(a.state.claim, nil)
		if err != nil {
			return err
		}
		now, proving := a.Clock.Now(), a.state.record
		if proving.Keys, err = nextKeys(proving.Keys, now); err != nil {
			return err
		}
		later, err := proving.laterKeys()
		if err != nil {
			return err
		}
		signed := v1alpha1.Renewal{ID: string(uuid.NewUUID()), Request: request}
		if err := registration.SignRenewal(&signed, proving.Member.UID, a.state.claim, later...); err != nil {
			return err
		}
		next := &renewalRequest{ID: signed.ID, Credential: request, Signature: signed.Signature, Keys: signed.Keys,
			Private: private, MadeAt: now}
		if err := a.save(ctx, func(r *record) { r.Keys, r.Renewal = proving.Keys, next }); err != nil {
			return err
		}
	}
	return a.write(ctx, a.report())
}

// adoptRenewal records the next credential before it is used. A credential that cannot be opened is handled like a
// refusal.
func (a *agent) adoptRenewal(ctx context.Context) error {
	asked, answer := a.state.record.Renewal, *a.hub.membership.Spec.Renewal.Credential
	material, err := a.Method.Open(a.state.claim, asked.Private, answer)
	if err != nil {
		a.refuse(asked.ID, "The issued credential cannot be used: "+err.Error())
		return a.save(ctx, func(r *record) { r.Renewal = nil })
	}
	member := *a.state.record.Member
	member.Credential = issued(material, answer, latest(asked.MadeAt, a.renewal.observed), a.Clock.Now())
	if err := a.save(ctx, func(r *record) { r.Member, r.Renewal = &member, nil }); err != nil {
		return err
	}
	a.renewal.observed, a.renewal.refused = time.Time{}, refusedRenewal{}
	a.Log.Info("The agent's credential was renewed", "expires", member.Credential.expires())
	return a.connection.swap(member.Credential, a.state.claim)
}

// refuse records that a renewal was refused, and the reason.
func (a *agent) refuse(id, why string) {
	if a.renewal.refused.id == id {
		return
	}
	a.renewal.refused = refusedRenewal{id: id, why: why, at: a.Clock.Now()}
	a.Log.Info("The hub refuses to renew the agent's credential", "why", why, "expires",
		a.state.record.Member.Credential.expires())
	a.reports.events.warn("RenewalRefused", "The hub refuses to renew the agent's credential: "+why)
}
