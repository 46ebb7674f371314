package agent

import (
	"context"
	"fmt"
	"time"

	"github.com/muster-sdk/muster/membership/registration"
)

// load reads the record when it is not known, or may not be what was saved.
func (a *agent) load(ctx context.Context) error {
	if a.loaded {
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
	// A clock that has been set back since must not make a credential look younger than it can be.
	if now := a.Clock.Now(); r.Member != nil && r.Member.Credential.Since.After(now) {
		m := *r.Member
		m.Credential.Since, r.Member = now, &m
	}
	if a.connection != nil && !r.isOf(a.connection.member) {
		// Somebody has deleted the record, or put another there: what it does not say must not go on.
		a.log.Info("The agent's record is not that of the member that it speaks for.", "member", a.connection.member.Name)
		a.clear()
	}
	if c := a.connection; c != nil && !r.Member.at(c.member.Server, c.member.CA) {
		if err := a.goTo(*r.Member); err != nil { // it was saved, and nobody told
			return err
		}
	}
	a.record, a.claim, a.loaded = r, claim, true
	if a.connection != nil && !r.Member.Credential.same(a.connection.member.Credential.material()) {
		return a.connection.swap(r.Member.Credential, a.claim) // the same
	}
	return nil
}

// save writes down what change makes of the record. After an error nobody knows what was written, so the record
// is read again before anything else is done.
func (a *agent) save(ctx context.Context, change func(*record)) error {
	next := a.record
	change(&next)
	data, err := next.marshal()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	a.loaded = false
	if err := a.Store.Save(ctx, data); err != nil {
		return err
	}
	a.record, a.loaded = next, true
	return nil
}

// forgetRecord leaves the agent as if it had just been installed.
func (a *agent) forgetRecord(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if err := a.Store.Delete(ctx); err != nil {
		return err // what is in memory says to try again, whatever became of it
	}
	a.clear()
	a.record = record{}
	return nil
}

// startOver leaves nothing of the claim that the agent had.
func (a *agent) startOver(ctx context.Context) error {
	if err := a.save(ctx, func(r *record) { *r = record{Kept: r.Kept || r.Member != nil, Turn: r.Turn, Stay: r.Stay} }); err != nil {
		return err
	}
	a.clear()
	return nil
}

// clear drops all that an agent knows beside its record.
func (a *agent) clear() {
	a.disconnect()
	a.door.forget()
	a.revision, a.rolledBack = "", false
	a.claim, a.refused, a.asked, a.cleanedAt = nil, refusedRenewal{}, time.Time{}, time.Time{}
}
