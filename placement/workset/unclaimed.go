package workset

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/muster-sdk/muster/internal/definition"
	"github.com/muster-sdk/muster/internal/deletion"
	"github.com/muster-sdk/muster/placement/internal/scope"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// cacheMisses counts how often Works of a WorkSet existed that is missing in the manager's cache, but not on the API
// server.
type cacheMisses struct {
	times int
	until time.Time // not read again before
}

// unclaimed reports the Works of a WorkSet that does not exist, and keeps them. They do not remain from a deletion on
// request, because the finalizer keeps a WorkSet until the deletion of its Works has begun. A WorkSet that is created
// with this name adopts them.
func (c *controller) unclaimed(ctx context.Context, s *state) (reconcile.Result, error) {
	works := 0
	for _, h := range c.works.of(s.key) {
		works += len(h.live())
	}
	if works == 0 {
		c.drop(s.key)
		return reconcile.Result{}, nil
	}
	if wait := s.missed.until.Sub(c.Clock.Now()); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	set, err := scope.ReadWorkSet(ctx, c.api.live, s.key)
	switch {
	case err == nil: // the cache lags, or does not contain the namespace, whose WorkSets another manager reconciles
		s.missed.times++
		wait := min(time.Second<<min(s.missed.times, 20), time.Hour)
		s.missed.until = c.Clock.Now().Add(wait)
		return reconcile.Result{RequeueAfter: wait}, nil
	case !apierrors.IsNotFound(err):
		return reconcile.Result{}, fmt.Errorf("read WorkSet %s: %w", s.key, err)
	}
	s.shared.mu.Lock()
	s.shared.wants = map[string]*want{}
	s.shared.mu.Unlock()
	s.latest = nil
	if c.recordUnclaimed(s.key, works) {
		set.Namespace, set.Name = s.key.Namespace, s.key.Name
		c.event(set, warning, "WorksUnclaimed", "%d Works refer to this WorkSet, which does not exist. The Works are kept. "+
			"Create the WorkSet to adopt them. To delete a Work with its objects, set its annotation %s to any value before "+
			"you delete it.", works,
			workv1alpha1.DeletionRequestedByAnnotation)
		c.log.Info("Keeping Works whose WorkSet does not exist", "workset", s.key, "works", works)
	}
	return reconcile.Result{}, nil
}

// recordUnclaimed records the number of Works without a WorkSet, and reports whether they must be announced: none were
// recorded before.
func (c *controller) recordUnclaimed(set types.NamespacedName, works int) (news bool) {
	c.sets.mu.Lock()
	defer c.sets.mu.Unlock()
	news = works > 0 && c.sets.unclaimedWorks[set] == 0
	if c.sets.unclaimedWorks[set] = works; works == 0 {
		delete(c.sets.unclaimedWorks, set)
	}
	total := 0
	for _, n := range c.sets.unclaimedWorks {
		total += n
	}
	c.metrics.unclaimed.Set(float64(total))
	return news
}

// endRequested reports whether a user requested the deletion of the WorkSet. If its CustomResourceDefinition is being
// removed, the controller removes the finalizer and keeps the Works. A request takes effect after it has been observed
// for a moment; until then wait is positive.
func (l *reconciliation) endRequested(ctx context.Context) (requested bool, wait time.Duration, _ error) {
	live, err := scope.ReadWorkSet(ctx, l.api.live, l.state.key)
	if err != nil && !apierrors.IsNotFound(err) {
		return false, 0, fmt.Errorf("read WorkSet %s: %w", l.state.key, err)
	}
	found := err == nil && live.UID == l.set.UID
	state, err := definition.Of(ctx, l.api.discovery, scope.WorkSetResource(l.state.key.Namespace))
	if err != nil {
		return false, 0, err
	}
	if found && state == definition.Absent {
		return false, definition.ConfirmAfter, nil // the definition is being installed or removed at this moment
	}
	var deleted time.Time
	if live.DeletionTimestamp != nil {
		deleted = live.DeletionTimestamp.Time
	}
	if !deletion.OfGenerator(found, deleted, state) {
		return false, 0, nil
	}
	if l.state.ending.IsZero() {
		l.state.ending = l.Clock.Now()
	}
	return true, max(0, l.state.ending.Add(definition.ConfirmAfter).Sub(l.Clock.Now())), nil
}

// confirmedFor is how long a confirmation to delete Works is valid. It is shorter than the time until another leader
// takes over, so a leader that was paused does not act on an old confirmation.
const confirmedFor = 10 * time.Second

// confirmLeaving reads the Placements and their decisions from the API server, and returns a function that reports
// whether a cluster is not selected. The earlier decision to delete can be old, and the leader may have been paused
// since.
func (l *reconciliation) confirmLeaving(ctx context.Context) (leaves func(cluster string) bool, _ error) {
	none := func(string) bool { return false }
	set, err := scope.ReadWorkSet(ctx, l.api.live, l.state.key)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read WorkSet %s: %w", l.state.key, err)
	}
	if apierrors.IsNotFound(err) || set.UID != l.set.UID || set.Generation != l.set.Generation ||
		set.DeletionTimestamp != nil {
		return none, nil
	}
	current := &reconciliation{controller: l.controller, set: set, state: l.state}
	chosen, certain, err := current.selectedBy(ctx, l.api.live)
	if err != nil || !certain {
		return none, err
	}
	names := make(map[string]bool, len(chosen))
	for _, c := range chosen {
		names[c.name] = true
	}
	return func(cluster string) bool { return !names[cluster] }, nil
}
