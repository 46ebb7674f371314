package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	boundedtext "github.com/muster-sdk/muster/internal/bounded"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/internal/panics"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// cleanMember runs the cleaners up to the first that is not done, and reports the remaining objects to the hub, if
// possible.
func (a *agent) cleanMember(ctx context.Context) error {
	if a.cleanup.at.IsZero() {
		a.lookAtBootstrap(ctx)
	}
	if err := a.confirmClean(ctx); err != nil {
		return err
	}
	remaining := clean(ctx, a.Cleaners, a.state.record.member())
	if ctx.Err() != nil {
		return ctx.Err()
	}
	a.cleanup.at = a.Clock.Now()
	if len(remaining) == 0 {
		a.cleanup.result = lifecycle.MemberClean
		return nil
	}
	a.cleanup.result = lifecycle.MemberDirty
	a.Log.V(1).Info("The member is being cleaned up", "remaining", remaining)
	if a.hub.state != lifecycle.HubSeen || a.state.record.Deregistered {
		return nil
	}
	return a.write(ctx, report{claim: a.state.claim.Fingerprint(), joined: cleaningCondition,
		remaining: shortRemaining(remaining)})
}

// shortRemaining returns the entries for a Membership, within its limits. If there are too many entries, the last one
// contains the number of the omitted ones.
func shortRemaining(all []string) []string {
	var short []string
	for i, entry := range all {
		if i == maxRemaining-1 && len(all) > maxRemaining {
			return append(short, fmt.Sprintf("and %d more", len(all)-i))
		}
		short = append(short, boundedtext.Text(entry, maxRemainingEntry))
	}
	return short
}

// confirmClean reads the reason for the clean-up again. An agent that was paused must not clean up a member that
// another agent has taken over.
func (a *agent) confirmClean(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if a.state.record.Deregistered {
		data, err := a.Store.Load(ctx)
		if err != nil {
			return fmt.Errorf("read the record before the clean-up: %w", err)
		}
		latest, err := parseRecord(data)
		if err != nil {
			return fmt.Errorf("read the record before the clean-up: %w", err)
		}
		if !latest.Deregistered || !bytes.Equal(latest.ClaimKey, a.state.record.ClaimKey) {
			a.state.loaded = false
			return errors.New("the record was changed since the agent decided to clean up")
		}
		return nil
	}
	list, err := a.connection.hub.listMembership(ctx)
	if err != nil {
		return fmt.Errorf("read the Membership before the clean-up: %w", err)
	}
	s := hubStateOf(list, nil, a.connection.member)
	if s.state != lifecycle.HubSeen || s.membership.Spec.State != v1alpha1.StateLeave || !s.membership.Spec.Clean {
		a.setObservation(s)
		return errors.New("the Membership was changed since the agent decided to clean up")
	}
	return nil
}

// lookAtBootstrap reads the bootstrap credential when the clean-up begins. The agent deletes this content when the
// member has left, and keeps later content for the next join.
func (a *agent) lookAtBootstrap(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if _, err := a.Bootstrap.Load(ctx); err != nil {
		a.Log.V(1).Info("Cannot read the bootstrap credential", "error", err.Error())
	}
}

// The limits of the agent's reports. Those of a Membership are not lower. The hub shows 256 bytes of an entry.
const (
	maxRemaining      = 20
	maxRemainingEntry = 512
)

// clean calls the cleaners in order and returns the remaining objects of the first one that is not done.
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

// guarded calls code of the product with a timeout. It returns a panic as an error.
func guarded(ctx context.Context, timeout time.Duration, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return panics.Recovered(func() error { return call(ctx) })
}
