package agent

import (
	"context"
	"fmt"
	"time"

	"github.com/muster-sdk/muster/membership/registration"
)

// load reads the record if it was not read yet, or may differ from the saved one.
func (a *agent) load(ctx context.Context) error {
	if a.state.loaded {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	data, err := a.Store.Load(ctx)
	if err != nil {
		return err
	}
	r, err := parseRecord(data)
	if err != nil {
		return err
	}
	var claim *registration.ClaimKey
	if len(r.ClaimKey) > 0 {
		if claim, err = registration.ParseClaimKey(r.ClaimKey); err != nil {
			return fmt.Errorf("%w: %w", errRecord, err)
		}
	}
	// If the clock was set back, a credential must not appear younger than possible.
	if now := a.Clock.Now(); r.Member != nil && r.Member.Credential.Since.After(now) {
		m := *r.Member
		m.Credential.Since, r.Member = now, &m
	}
	if a.connection != nil && !r.isOf(a.connection.member) {
		// The record was deleted or replaced by another client: continue only with what it contains.
		a.Log.Info("The agent's record belongs to another member, or was deleted", "member", a.connection.member.Name)
		a.clear()
	}
	if c := a.connection; c != nil && !r.Member.at(c.member.Server, c.member.CA) {
		if err := a.goTo(*r.Member); err != nil { // the address was saved, and not used yet
			return err
		}
	}
	a.state.record, a.state.claim, a.state.loaded = r, claim, true
	if a.connection != nil && !r.Member.Credential.same(a.connection.member.Credential.material()) {
		return a.connection.swap(r.Member.Credential, a.state.claim) // the same
	}
	return nil
}

// save applies a change to the record and saves it. After an error the saved content is unknown, so the agent reads
// the record again before the next step.
func (a *agent) save(ctx context.Context, change func(*record)) error {
	next := a.state.record
	change(&next)
	data, err := next.marshal()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	a.state.loaded = false
	if err := a.Store.Save(ctx, data); err != nil {
		return err
	}
	a.state.record, a.state.loaded = next, true
	return nil
}

// forgetRecord resets the agent to the state after its installation.
func (a *agent) forgetRecord(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if err := a.Store.Delete(ctx); err != nil {
		return err // the record in memory makes the agent retry
	}
	a.clear()
	a.state.record = record{}
	return nil
}

// startOver drops the claim and everything that belongs to it.
func (a *agent) startOver(ctx context.Context) error {
	if err := a.save(ctx, func(r *record) {
		*r = record{removalProgress: removalProgress{Kept: r.Kept || r.Member != nil}, hubTurn: r.hubTurn}
	}); err != nil {
		return err
	}
	a.clear()
	return nil
}

// clear drops all state except the record.
func (a *agent) clear() {
	a.disconnect()
	a.requests.forget()
	a.hub.revision, a.hub.rolledBack = "", false
	a.state.claim, a.renewal.refused, a.renewal.observed, a.cleanup.at = nil, refusedRenewal{}, time.Time{}, time.Time{}
}
