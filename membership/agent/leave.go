package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/internal/panics"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// cleanMember asks the cleaners up to the first that is not done, and tells the hub, if that is there, what is left.
func (a *agent) cleanMember(ctx context.Context) error {
	if a.cleanedAt.IsZero() {
		a.lookAtBootstrap(ctx)
	}
	if err := a.confirmClean(ctx); err != nil {
		return err
	}
	remaining := clean(ctx, a.Cleaners, a.record.member())
	if ctx.Err() != nil {
		return ctx.Err()
	}
	a.cleanedAt = a.Clock.Now()
	if len(remaining) == 0 {
		a.cleaned = lifecycle.MemberClean
		return nil
	}
	a.cleaned = lifecycle.MemberDirty
	a.log.V(1).Info("The member is being cleaned up.", "remaining", remaining)
	if a.sight != lifecycle.HubSeen || a.record.Deregistered {
		return nil
	}
	return a.write(ctx, report{claim: a.claim.Fingerprint(), joined: cleaningCondition, remaining: remaining[:min(len(remaining), maxRemaining)]})
}

// confirmClean reads again what the clean-up is based on. An agent that was paused since must not clean up what another one
// has been in charge of meanwhile.
func (a *agent) confirmClean(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if a.record.Deregistered {
		data, err := a.Store.Load(ctx)
		if err != nil {
			return fmt.Errorf("read the record before the clean-up: %w", err)
		}
		latest, err := parseRecord(data)
		if err != nil {
			return fmt.Errorf("read the record before the clean-up: %w", err)
		}
		if !latest.Deregistered || !bytes.Equal(latest.ClaimKey, a.record.ClaimKey) {
			a.loaded = false
			return errors.New("the record was changed since the agent decided to clean up")
		}
		return nil
	}
	list, err := a.connection.hub.listMembership(ctx)
	if err != nil {
		return fmt.Errorf("read the Membership before the clean-up: %w", err)
	}
	s := sightOf(list, nil, a.connection.member)
	if s.sight != lifecycle.HubSeen || s.membership.Spec.State != v1alpha1.StateLeave || !s.membership.Spec.Clean {
		a.saw(s)
		return errors.New("the Membership was changed since the agent decided to clean up")
	}
	return nil
}

// lookAtBootstrap has the source know what is there when the agent begins to clean up: that goes when the member is out,
// and what comes later is for the next to join.
func (a *agent) lookAtBootstrap(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if _, err := a.Bootstrap.Load(ctx); err != nil {
		a.log.V(1).Info("The bootstrap credential could not be read.", "error", err.Error())
	}
}

// maxRemaining is what a Membership holds.
const maxRemaining = 20

// clean returns what the first cleaner that is not done has to say.
func clean(ctx context.Context, cleaners []membership.LeaveGate, member membership.Member) []string {
	for _, cleaner := range cleaners {
		var name string
		var remaining []string
		err := guarded(ctx, requestTimeout, func(ctx context.Context) (err error) {
			name = cleaner.Name()
			remaining, err = cleaner.Remaining(ctx, member)
			return err
		})
		if err != nil {
			return append(remaining, fmt.Sprintf("%s: %v", name, err))
		}
		if len(remaining) > 0 {
			return remaining
		}
	}
	return nil
}

// guarded calls somebody else's code, which has a deadline and may panic without taking the agent along.
func guarded(ctx context.Context, timeout time.Duration, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return panics.Recovered(func() error { return call(ctx) })
}
