package hub

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// consistency increases the hub's epoch when an agent has observed that the hub was restored, and determines when the
// caches of the hub contain the state of the API server since then. It does nothing until an agent requires it. It may
// be used concurrently.
//
// The caches of placements, WorkSets and add-ons need no such comparison. If the store was restored while this process
// ran, the process ends ([storeversion.Monitor]), and all controllers of its manager start again with new caches.
type consistency struct {
	identity *hubIdentity
	cache    client.Reader
	reader   client.Reader // without a cache
	clock    clock.PassiveClock
	stale    func() // is called when a cache does not follow the API server; see staleAfter

	mu      sync.Mutex
	waiting map[types.UID]epochTime // Memberships whose agents wait for an epoch
	last    comparison
	at      int64                 // the last required epoch
	pending map[cached]difference // objects that differed in every comparison since began; nil: not started
	began   time.Time
	// confirmed is the last epoch at which the hub was consistent, by comparisons that began at a time.
	confirmed epochTime
}

// epochTime is an epoch, and a time that belongs to it.
type epochTime struct {
	epoch int64
	since time.Time
}

// cached is an object in one of the hub's caches.
type cached struct {
	kind string
	key  client.ObjectKey
}

// comparison is when a comparison of the caches ended, and how long it took.
type comparison struct {
	ended time.Time
	took  time.Duration
}

// difference is the version of an object in the cache that differs from that of the API server.
type difference struct {
	version string // in the cache; empty: the cache does not contain the object
	since   time.Time
}

// staleAfter is how long a cache may contain the same version of an object while the API server has another one. If
// the store was restored to an earlier state, and later writes have passed its former version, watches continue
// without an error, so the caches never contain the restored objects. Caches that lost their connection connect again
// within a minute.
const staleAfter = 3 * time.Minute

// consistencyInterval is the minimum interval between two comparisons of the caches with the API server. If
// comparisons take long, the interval is longer, so that the hub spends at most a tenth of its time on them.
const consistencyInterval = time.Second

// maxEpochStep limits how far an agent can increase the epoch of the hub.
const maxEpochStep = 1_000_000

// reach returns the epoch, at least required, at which the hub is consistent. Until then the error is an
// [membership.ErrPending] or the failure. Only comparisons that began after the agent began to wait are used: an
// earlier comparison may have been before another restore.
func (c *consistency) reach(ctx context.Context, agent types.UID, required int64) (int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock.Now()
	waits := c.waiting[agent]
	if waits.epoch != required {
		waits = epochTime{epoch: required, since: now}
		if c.waiting == nil {
			c.waiting = map[types.UID]epochTime{}
		}
		c.waiting[agent] = waits
	}
	if c.confirmed.epoch >= required && !c.confirmed.since.Before(waits.since) {
		delete(c.waiting, agent)
		return c.confirmed.epoch, nil
	}
	if now.Sub(c.last.ended).Abs() < max(consistencyInterval, 9*c.last.took) {
		return 0, membership.ErrPending
	}
	defer func() { c.last.ended = c.clock.Now(); c.last.took = c.last.ended.Sub(now) }()
	is, err := c.identity.get(ctx)
	if err != nil {
		return 0, err
	}
	if required-is.Epoch > maxEpochStep {
		return 0, fmt.Errorf("an agent waits for epoch %d of the hub, and the hub is at epoch %d: the report of the agent "+
			"is invalid", required, is.Epoch)
	}
	if c.at < required {
		before := is.Epoch
		if is, err = c.identity.raise(ctx, max(required, before+1)); err != nil {
			return 0, err
		}
		logf.FromContext(ctx).Info("An agent reports that the hub was restored to an earlier state", "epoch", is.Epoch,
			"before", before)
		c.at, c.pending = is.Epoch, nil
	}
	if len(c.pending) == 0 { // the last comparison is complete, or there was none
		c.pending, c.began = nil, now
	}
	if err := c.compare(ctx, now); err != nil {
		return 0, err
	}
	if len(c.pending) > 0 {
		for object, different := range c.pending {
			if now.Sub(different.since) >= staleAfter {
				logf.FromContext(ctx).Info("The caches of the hub do not follow the API server, because it was restored",
					"kind", object.kind, "object", object.key, "cached", different.version, "since", different.since)
				c.stale()
				break
			}
		}
		return 0, membership.ErrPending
	}
	if c.confirmed.epoch != c.at {
		logf.FromContext(ctx).Info("The hub is consistent", "epoch", c.at)
	}
	c.confirmed = epochTime{epoch: c.at, since: c.began}
	if c.confirmed.since.Before(waits.since) {
		return 0, membership.ErrPending // the next comparison begins after the member has begun to wait
	}
	delete(c.waiting, agent)
	return c.confirmed.epoch, nil
}

// identityIn returns the hub identity that a Membership must contain. The argument is nil if the Membership does not
// exist yet. The hub confirms an epoch only to a member whose agent waits for it, and writes nothing before. The error
// confirming is the reason why the hub does not confirm the required epoch yet.
func (c *consistency) identityIn(ctx context.Context, self *v1alpha1.Membership) (shown *v1alpha1.HubIdentity,
	confirming, err error) {
	id, err := c.identity.id(ctx)
	if err != nil {
		return nil, nil, err
	}
	shown = &v1alpha1.HubIdentity{ID: id}
	if self == nil {
		return shown, nil, nil
	}
	if before := self.Spec.Hub; before != nil && before.ID == id {
		shown.Epoch = before.Epoch
	}
	if required := self.Status.RequiredHubEpoch; required > shown.Epoch {
		var epoch int64
		if epoch, confirming = c.reach(ctx, self.UID, required); confirming == nil {
			shown.Epoch = epoch
		}
	}
	return shown, confirming, nil
}

// compare removes objects from pending that are equal in the caches and on the API server. Each object must be equal
// once, so ongoing changes have no effect.
func (c *consistency) compare(ctx context.Context, now time.Time) error {
	first := c.pending == nil
	pending := map[cached]difference{}
	for _, list := range []client.ObjectList{
		&v1alpha1.MemberClusterList{}, &v1alpha1.MembershipList{}, &v1alpha1.JoinRequestList{}, &corev1.NamespaceList{},
		&rbacv1.RoleBindingList{},
	} {
		kind := reflect.TypeOf(list).Elem().Name()
		shown, err := versions(ctx, c.cache, list.DeepCopyObject().(client.ObjectList))
		if err != nil {
			return fmt.Errorf("read the cache of %s: %w", kind, err)
		}
		var options []client.ListOption
		switch list.(type) {
		case *corev1.NamespaceList, *rbacv1.RoleBindingList:
			options = append(options, client.HasLabels{membership.MemberLabel}) // as in the cache
		}
		actual, err := versions(ctx, c.reader, list, options...)
		if err != nil {
			return fmt.Errorf("list all of %s: %w", kind, err)
		}
		differ := func(key client.ObjectKey) {
			object, different := cached{kind, key}, difference{version: shown[key], since: now}
			before, differed := c.pending[object]
			if differed && before.version == different.version {
				different.since = before.since
			}
			if first || differed {
				pending[object] = different
			}
		}
		for key, version := range actual {
			if shown[key] != version {
				differ(key)
			}
		}
		for key := range shown {
			if _, exists := actual[key]; !exists {
				differ(key)
			}
		}
	}
	c.pending = pending
	return nil
}

// versions returns the UID and the resource version of each object, as one string.
func versions(ctx context.Context, from client.Reader, list client.ObjectList,
	options ...client.ListOption) (map[client.ObjectKey]string, error) {
	if err := from.List(ctx, list, options...); err != nil {
		return nil, err
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return nil, err
	}
	out := make(map[client.ObjectKey]string, len(items))
	for _, item := range items {
		object := item.(client.Object)
		out[client.ObjectKeyFromObject(object)] = string(object.GetUID()) + "/" + object.GetResourceVersion()
	}
	return out, nil
}
