package agent

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/muster-sdk/muster/membership/heartbeat"
	"github.com/muster-sdk/muster/membership/internal/agentstate"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// addressObservation is the agent's observation of the address of its hub, besides the address in its record.
type addressObservation struct {
	silent time.Time // since when the hub has not responded; zero: it responds
	looked time.Time // when the bootstrap source was last read for an address; zero: not since the start
	unused string    // why the agent does not use another known address

	reregister bool      // the bootstrap credential requires that the agent registers again
	checked    time.Time // when the bootstrap source was last read for a move; zero: not since the start
}

// moveInterval is the interval at which the agent checks whether an administrator requests a move. Each check reads a
// Secret in the agent's own cluster.
const moveInterval = 30 * time.Second

// checkMove checks whether the bootstrap credential requests a move to another hub, and removes a credential that the
// member does not need.
func (a *agent) checkMove(ctx context.Context) {
	now := a.Clock.Now()
	if a.state.record.Member == nil || !a.hub.address.checked.IsZero() && now.Sub(a.hub.address.checked) < moveInterval {
		return
	}
	a.hub.address.checked = now
	limited, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	bootstrap, err := a.Bootstrap.Load(limited)
	if err != nil {
		a.Log.V(1).Info("Cannot read the bootstrap credential", "error", err.Error())
		return
	}
	if bootstrap != nil && bootstrap.Token != "" && a.reports.shown.Phase == lifecycle.Joined &&
		agentstate.Fingerprint(bootstrap) != a.requests.removal.fingerprint {
		a.removeBootstrap(ctx) // again, or one that was written since
	}
	switch {
	case a.state.record.moves(bootstrap):
		a.hub.address.reregister = true
	case bootstrap == nil || a.state.record.foreign(bootstrap) || a.state.record.Member.at(bootstrap.Server, bootstrap.CA):
		a.hub.address.reregister = false
	}
}

// rebuilt reports whether the bootstrap credential belongs to the agent's own hub, at an address where the agent's
// credential is not valid: the hub was lost, and rebuilt there with the same identity.
func (a *agent) rebuilt(bootstrap *registration.Bootstrap, there lifecycle.HubState) bool {
	return bootstrap != nil && bootstrap.HubID != "" && bootstrap.HubID == a.state.record.hubID() &&
		(there == lifecycle.HubRefused || there == lifecycle.HubGone)
}

// answered records whether the hub responds.
func (w *addressObservation) answered(is bool, now time.Time) {
	switch {
	case is && !w.silent.IsZero():
		w.silent, w.unused = time.Time{}, ""
	case is:
	case w.silent.IsZero():
		w.silent = now
	}
}

// relocate checks whether the hub has moved, if the check is due, and uses the new address. It reports whether the hub
// has moved.
func (a *agent) relocate(ctx context.Context) (moved bool, err error) {
	observed := lifecycle.AddressObserved{Now: a.Clock.Now(), Silent: a.hub.address.silent, Looked: a.hub.address.looked}
	var bootstrap *registration.Bootstrap
	var there *connection
	var list *v1alpha1.MembershipList
	defer func() {
		if there != nil && there != a.connection {
			there.close()
		}
	}()
	for {
		action, why := lifecycle.NextAddress(observed)
		switch action {
		case lifecycle.LookForAddress:
			bootstrap = a.lookForAddress(ctx)
			a.hub.address.looked = observed.Now
			observed.Looked, observed.Other = observed.Now, bootstrap != nil
			if bootstrap == nil {
				a.hub.address.unused = ""
			}
		case lifecycle.TryAddress:
			there, list, observed.There = a.tryAddress(ctx, bootstrap)
		case lifecycle.TakeAddress:
			return true, a.takeAddress(ctx, there, list)
		default:
			if a.rebuilt(bootstrap, observed.There) {
				a.hub.address.reregister = true
				return false, nil
			}
			if why != "" {
				a.keepAddress(bootstrap.Server, why)
			}
			return false, nil
		}
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
	}
}

// lookForAddress returns the bootstrap credential if it contains another address than the record. It returns nil if
// there is no credential, or if it cannot be read.
func (a *agent) lookForAddress(ctx context.Context) *registration.Bootstrap {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	bootstrap, err := a.Bootstrap.Load(ctx)
	if err != nil {
		a.Log.V(1).Info("Cannot read the bootstrap credential", "error", err.Error())
		return nil
	}
	if bootstrap == nil || a.state.record.foreign(bootstrap) || a.state.record.Member.at(bootstrap.Server, bootstrap.CA) {
		return nil
	}
	return bootstrap
}

// tryAddress reads the Membership at another address, over separate connections.
func (a *agent) tryAddress(ctx context.Context, bootstrap *registration.Bootstrap) (*connection,
	*v1alpha1.MembershipList, lifecycle.HubState) {
	member := *a.state.record.Member
	member.Server, member.CA = bootstrap.Server, bytes.Clone(bootstrap.CA)
	there, err := connect(member, a.state.claim, a.HubConfig, a.beats())
	if err != nil {
		a.Log.V(1).Info("Cannot use the other address of the hub", "server", member.Server, "error", err.Error())
		return nil, nil, lifecycle.HubUnreachable
	}
	there.limitWrites(a.hubWrites())
	list, err := there.hub.listMembership(ctx)
	state := hubStateOf(list, err, member).state
	if state == lifecycle.HubSeen && list.Items[0].Spec.MemberName != member.Name {
		state = lifecycle.HubOther
	}
	if err != nil {
		a.Log.V(1).Info("Cannot read the Membership at the other address of the hub", "server", member.Server, "error",
			err.Error())
	}
	return there, list, state
}

// takeAddress records the address before it is used, and switches all connections to it.
func (a *agent) takeAddress(ctx context.Context, there *connection, list *v1alpha1.MembershipList) error {
	before, next := a.state.record.Member.Server, *a.state.record.Member
	next.Server, next.CA = there.member.Server, there.member.CA
	if err := a.save(ctx, func(r *record) { r.Member = &next }); err != nil {
		return err
	}
	if a.connection == nil {
		a.connection = there
	} else if err := a.goTo(next); err != nil {
		return err
	}
	a.requests.disconnect()
	a.hub.address.unused, a.reports.heartbeatError = "", ""
	note := fmt.Sprintf("The hub has moved from %s to %s.", before, next.Server)
	a.Log.Info(note)
	// +event:message=The hub has moved from … to ….
	a.reports.events.normal("HubMoved", note)
	a.found(ctx, list, nil)
	return nil
}

// goTo switches the connection to the address of the member. It stops the heartbeat, whose next retry could take up to
// a period: the next step starts it again at once.
func (a *agent) goTo(member registered) error {
	if err := a.connection.move(member.Server, member.CA); err != nil {
		return err
	}
	if a.connection.beating() {
		a.connection.stopBeat()
	}
	return nil
}

// keepAddress records the reason why another address is not used, and reports the reason if it has changed.
func (a *agent) keepAddress(server, why string) {
	why = fmt.Sprintf("the bootstrap credential contains the address %s, but %s", server, why)
	if why == a.hub.address.unused {
		return
	}
	a.hub.address.unused = why
	a.Log.Info("The agent keeps the address of its hub", "why", why)
	a.reports.events.warn("HubNotMoved", "The agent keeps the address of its hub: "+why+".")
}

// handleHeartbeat handles the result of a heartbeat, and checks whether the hub has moved. It reports whether the
// result of this check has changed.
func (a *agent) handleHeartbeat(ctx context.Context, status heartbeat.Status) bool {
	a.hub.address.answered(status.LastError == nil || isRefusal(status.LastError), a.Clock.Now())
	astray, reregister := a.hub.address.unused, a.hub.address.reregister
	a.checkMove(ctx)
	moved, err := a.relocate(ctx)
	return moved || err != nil || a.hub.address.unused != astray || a.hub.address.reregister != reregister
}
