package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/utils/clock"

	"github.com/muster-sdk/muster/membership/lifecycle"
)

// pruneProbeAge is how long the result of a namespace probe is used. The namespace controller of Kubernetes starts to
// delete the content of a namespace five seconds after the namespace was deleted, so a result of this age never
// permits the deletion of an object that this controller has deleted.
const pruneProbeAge = 2 * time.Second

// pruneProbe is the name of a Lease that is never created.
const pruneProbe = "namespace-probe"

// pruneGuard decides whether objects that are missing or being deleted on the hub may be deleted on the member. The
// agent updates it. It may be used concurrently.
type pruneGuard struct {
	clock clock.PassiveClock

	mu     sync.Mutex
	now    guardState
	probed time.Time // when the hub was last observed to permit deletions
}

// guardState is the observation of the hub that the guard uses.
type guardState struct {
	why      string // why nothing may be deleted; empty: deletion is possible
	hub      *connection
	revision string // the highest resource version; empty: unknown
	restored int64  // see restoredEpoch
}

// MayPrune returns nil if a user requested the absence or the deletion of an object in the member's namespace on the
// hub. Otherwise the error is the reason: the hub was restored and has not confirmed that it is consistent, the
// Membership cannot be observed, or the namespace is being deleted. It makes at most two requests to the hub in two
// seconds, and needs no permission beyond those of every agent. It may be called concurrently.
func (g *pruneGuard) MayPrune(ctx context.Context) error {
	g.mu.Lock()
	now, fresh := g.now, g.clock.Since(g.probed).Abs() < pruneProbeAge
	g.mu.Unlock()
	switch {
	case now.why != "":
		return fmt.Errorf("nothing is deleted on the member: %s", now.why)
	case now.hub == nil:
		return fmt.Errorf("nothing is deleted on the member: the agent is not connected to the hub")
	case fresh:
		return nil
	}
	began := g.clock.Now()
	if err := errors.Join(probeNamespace(ctx, now.hub.leases), probeStore(ctx, now.hub.hub, now.revision)); err != nil {
		return fmt.Errorf("nothing is deleted on the member: %w", err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.now.hub == now.hub {
		g.probed = began
	}
	return nil
}

// Restored returns the epoch that the agent required when it last observed that the hub was restored; zero: never. It
// may be called concurrently.
func (g *pruneGuard) Restored() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.now.restored
}

// probeStore checks that the store of the hub is not older than the known resource version. The agent observes a
// restore only with its next heartbeat, and the caller may have read from the hub since the restore.
func probeStore(ctx context.Context, hub *hubAPI, known string) error {
	list, err := hub.listMembership(ctx)
	if err != nil {
		return err
	}
	if older(list.ResourceVersion, known) {
		return fmt.Errorf("the hub was restored to an earlier state (resource version %s, and %s before)",
			list.ResourceVersion, known)
	}
	return nil
}

// probeNamespace checks with a dry run whether an object could be created in the member's namespace, which is
// impossible while the namespace is being deleted.
func probeNamespace(ctx context.Context, leases coordinationv1client.LeaseInterface) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	probe := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: pruneProbe}}
	_, err := leases.Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	switch {
	case err == nil, apierrors.IsAlreadyExists(err):
		return nil
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return fmt.Errorf("the member's namespace on the hub is being deleted: %w", err)
	default:
		return fmt.Errorf("probe the member's namespace on the hub: %w", err)
	}
}

// set replaces the state of the guard.
func (g *pruneGuard) set(now guardState) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if now.why != "" || g.now.hub != now.hub {
		g.probed = time.Time{}
	}
	g.now = now
}

// updateGuard copies the agent's observations to the guard.
func (a *agent) updateGuard() {
	if a.companions == nil || a.companions.guard == nil {
		return // an agent without a main loop
	}
	a.companions.guard.set(guardState{
		why: a.hub.pruneBlocked(a.state.record.requiredEpoch()), hub: a.connection, revision: a.hub.revision,
		restored: a.state.record.restoredEpoch(),
	})
}

// pruneBlocked returns the reason why nothing may be deleted on the member, without a request to the hub; empty: there
// is none.
func (h *hubObservation) pruneBlocked(requiredEpoch int64) string {
	switch {
	case h.state != lifecycle.HubSeen || h.membership == nil:
		return "the agent cannot observe its Membership on the hub"
	case h.membership.DeletionTimestamp != nil:
		return "the Membership on the hub is being deleted"
	case h.rolledBack || requiredEpoch > 0:
		return fmt.Sprintf("the hub was restored to an earlier state, and has not confirmed that it is consistent (epoch "+
			"%d or later)", requiredEpoch)
	default:
		return ""
	}
}

// requiredEpoch returns the epoch that the agent waits for; zero: it waits for none.
func (r record) requiredEpoch() int64 {
	if r.Hub == nil {
		return 0
	}
	return r.Hub.Required
}

// knownEpoch returns the highest epoch that the Membership has contained.
func (r record) knownEpoch() int64 {
	if r.Hub == nil {
		return 0
	}
	return r.Hub.Epoch
}

// hubState returns the state of the hub for the record, at an epoch.
func (a *agent) hubState(epoch int64) *hubState {
	return &hubState{Epoch: epoch, Revision: a.hub.revision, Restored: a.state.record.restoredEpoch()}
}

// restoredState returns the state for the record of a restored hub whose Membership contains the epoch shown. It
// requires an epoch that is higher than each earlier one, also if the agent still waits for the hub to confirm an
// earlier restore. This distinguishes Works that were applied between the two restores from later ones.
func (a *agent) restoredState(shown int64) *hubState {
	r, next := a.state.record, a.hubState(shown)
	next.Required = max(r.knownEpoch(), shown, r.requiredEpoch(), r.restoredEpoch()) + 1
	next.Restored = next.Required
	return next
}

// restoredEpoch returns the epoch that the agent required when it last observed that the hub was restored; zero:
// never.
func (r record) restoredEpoch() int64 {
	if r.Hub == nil {
		return 0
	}
	return r.Hub.Restored
}

// noteRevision records the state of the hub in a list or a watch. A list that is older than a previous observation
// shows that the hub was restored, and so does a Membership with a lower epoch. Hubs without an epoch could never
// confirm that they are consistent, so the agent does not wait for them.
func (h *hubObservation) noteRevision(s sighting, r record) {
	m := s.membership
	if s.state != lifecycle.HubSeen || m == nil {
		return
	}
	if m.Spec.Hub == nil {
		h.rolledBack = false // what a heartbeat has shown
		return
	}
	known := h.revision
	if known == "" && r.Hub != nil {
		known = r.Hub.Revision
	}
	back := s.revision != "" && older(s.revision, known) || m.Spec.Hub.Epoch < r.knownEpoch() && !s.lagging
	switch {
	case back: // also while the agent waits for the hub: each restore is recorded
		h.listedBack = h.listedBack || !h.rolledBack
		h.rolledBack = true
		h.revision = s.revision
	case s.revision != "":
		h.revision = s.revision
	}
}

// rereadRestored disconnects from the hub after a list has shown a restore and the restore is recorded. Caches of
// companions are from before the restore, and the next heartbeat would show the same restore once more.
func (a *agent) rereadRestored() {
	if a.hub.listedBack && !a.hub.rolledBack {
		a.disconnect()
	}
}

// countRestore records a restore of the hub, whose Membership contains the epoch shown.
func (a *agent) countRestore(ctx context.Context, shown int64) error {
	next := a.restoredState(shown)
	if err := a.save(ctx, func(r *record) { r.Hub = next }); err != nil {
		return err
	}
	a.hub.rolledBack = false
	note := fmt.Sprintf("The hub was restored to an earlier state: nothing is deleted on the member until the hub "+
		"confirms epoch %d.", next.Required)
	a.Log.Info("The hub was restored to an earlier state", "epoch", shown, "waitsFor", next.Required)
	// +event:message=that nothing is deleted on the member until the hub has confirmed an epoch
	a.reports.events.warn("HubRestored", note)
	return nil
}

// settleEpoch records that the hub was restored, or that it has confirmed that it is consistent.
func (a *agent) settleEpoch(ctx context.Context) error {
	if a.hub.state != lifecycle.HubSeen || a.hub.membership == nil || a.hub.membership.Spec.Hub == nil ||
		a.state.record.Member == nil {
		return nil
	}
	shown := a.hub.membership.Spec.Hub.Epoch
	switch required := a.state.record.requiredEpoch(); {
	case a.hub.rolledBack:
		if err := a.countRestore(ctx, shown); err != nil {
			return err
		}
		return a.write(ctx, a.report())
	case required > 0 && shown >= required:
		if err := a.save(ctx, func(r *record) { r.Hub = a.hubState(shown) }); err != nil {
			return err
		}
		a.Log.Info("The hub has confirmed that it is consistent", "epoch", shown)
		a.reports.events.normal("HubConsistent", fmt.Sprintf("The hub has confirmed that it is consistent at epoch %d.",
			shown))
		return nil
	case required > 0 && a.hub.membership.Status.RequiredHubEpoch != required:
		return a.write(ctx, a.report())
	case required == 0 && shown > a.state.record.knownEpoch() && a.state.record.Leave != nil:
		// SavePolicy records the first epoch
		return a.save(ctx, func(r *record) { r.Hub = a.hubState(shown) })
	default:
		return nil
	}
}
