package agent

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/muster-sdk/muster/membership/internal/cause"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// readMembership reads the Membership and starts to watch it. The state of the hub is stored; the error is only for
// the log.
func (a *agent) readMembership(ctx context.Context) error {
	a.checkMove(ctx)
	if a.connection == nil {
		if moved, err := a.relocate(ctx); moved || err != nil { // the hub moved while the agent was not running
			return err
		}
		c, err := connect(*a.state.record.Member, a.state.claim, a.HubConfig, a.beats())
		if err != nil {
			a.setObservation(sighting{state: lifecycle.HubUnreachable})
			a.hub.failure = cause.Of(err)
			return err
		}
		c.limitWrites(a.hubWrites())
		a.connection = c
	}
	list, err := a.connection.hub.listMembership(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	a.found(ctx, list, err)
	if a.hub.state == lifecycle.HubUnreachable {
		if moved, lost := a.relocate(ctx); moved || lost != nil {
			return lost
		}
	}
	return err
}

// found stores the result of reading the Membership.
func (a *agent) found(ctx context.Context, list *v1alpha1.MembershipList, err error) {
	s := hubStateOf(list, err, a.connection.member)
	s.revision = revisionOf(list)
	a.setObservation(s)
	a.hub.failure = cause.Of(err)
	if a.hub.state == lifecycle.HubSeen {
		a.requests.disconnect() // not needed while the hub accepts the member's credential
		if a.hub.follower == nil {
			a.hub.follower = a.follow(ctx, list)
		}
	}
}

// revisionOf returns the resource version of a list; empty: there is no list.
func revisionOf(list *v1alpha1.MembershipList) string {
	if list == nil {
		return ""
	}
	return list.ResourceVersion
}

// unfollow ends the watch of the Membership.
func (a *agent) unfollow() {
	if a.hub.follower != nil {
		a.hub.follower.close()
		a.hub.follower = nil
	}
}

// disconnect closes all connections to the hub, and drops the observations.
func (a *agent) disconnect() {
	a.unfollow()
	a.stopCompanions()
	if a.connection != nil {
		a.connection.close()
	}
	a.requests.disconnect()
	a.connection, a.hub.state, a.hub.membership, a.hub.replaced = nil, lifecycle.HubNotAsked, nil, nil
	a.hub.listedBack = false
	a.updateGuard()
}

// rewound discards everything that was read from a hub whose store was restored to an earlier state. Watches that were
// opened before the restore send no event until the hub has reached their version again, so the next step reads
// everything again, and companions start with new caches.
func (a *agent) rewound() {
	a.Log.Info("The hub's store was restored to an earlier state; reading all objects again", "hub", a.hubServer())
	a.reports.events.warn("HubRestored",
		"The hub's store was restored to an earlier state. The agent reads all objects again.")
	// The Membership may have been observed last before the time of the backup, so that its list does not show the
	// restore. If the list shows it, the restore is still counted once: it is recorded after that list.
	if a.state.record.hubID() != "" {
		a.hub.rolledBack = true
	}
	a.disconnect()
}

// report returns the report about a joined member.
func (a *agent) report() report {
	m := &memberReport{
		agentVersion: a.Version, facts: a.observer.collection.facts(), health: a.observer.healthy(),
		refused:       a.renewal.refused.why,
		requiredEpoch: a.state.record.requiredEpoch(), orphans: a.companions.orphans.get(),
		policy: a.companions.policy.get(), companions: a.companions.health.report(a.companions.all),
	}
	if asked := a.state.record.Renewal; asked != nil {
		m.renewal = &v1alpha1.Renewal{ID: asked.ID, Request: asked.Credential, ClaimKey: a.state.claim.Public(),
			Signature: asked.Signature, Keys: asked.Keys}
	}
	return report{claim: a.state.claim.Fingerprint(), joined: joinedCondition, member: m}
}

// write writes the status if the report changes it. All writes of the status use this function.
func (a *agent) write(ctx context.Context, r report) error {
	const attempts = 3
	for attempt := 1; ; attempt++ {
		status, changed := r.applied(a.hub.membership.Status, a.Clock.Now())
		if !changed {
			a.hub.contest.wrote(r)
			return nil
		}
		next := a.hub.membership.DeepCopy()
		next.Status = status
		updated, err := a.connection.hub.updateStatus(ctx, next)
		switch {
		case err == nil:
			a.setObservation(sighting{state: lifecycle.HubSeen, membership: updated})
			a.hub.contest.wrote(r)
			return nil
		case !apierrors.IsConflict(err) || attempt == attempts:
			return fmt.Errorf("write the status of the Membership: %w", err)
		}
		// Another client has written the Membership; the watch may lag.
		if err := a.readMembership(ctx); err != nil {
			return err
		}
		if a.hub.state != lifecycle.HubSeen {
			return errors.New("write the status of the Membership: the Membership cannot be observed any more")
		}
	}
}
