package hub

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"

	"github.com/muster-sdk/muster/internal/definition"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// deletions determines whether a MemberCluster is deleted together with its definition. It may be used concurrently.
type deletions struct {
	discovery discovery.DiscoveryInterface

	mu    sync.Mutex
	since map[string]deletionSeen // by the member's name
}

type deletionSeen struct {
	uid types.UID
	at  time.Time
}

// observe determines whether a MemberCluster is deleted together with its definition. The hub concludes that it is not
// only when the definition has been served since [lifecycle.ConfirmDeletion] after it first observed the deletion.
func (d *deletions) observe(ctx context.Context, cluster *v1alpha1.MemberCluster, o *lifecycle.HubObserved) error {
	since := d.first(cluster, o.Now)
	state, err := definition.Of(ctx, d.discovery, v1alpha1.GroupVersion.WithResource("memberclusters"))
	if err != nil {
		return err
	}
	// Absent contradicts the MemberCluster that was just read: the definition is removed or installed at this moment.
	o.Deletion.WithDefinition = state == definition.Terminating
	o.Deletion.Unconfirmed = state == definition.Absent ||
		state == definition.Served && o.Now.Before(since.Add(lifecycle.ConfirmDeletion))
	return nil
}

// first returns the time at which the deletion of a MemberCluster was first observed. If this is the first time, it
// records now.
func (d *deletions) first(cluster *v1alpha1.MemberCluster, now time.Time) time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	if seen, known := d.since[cluster.Name]; known && seen.uid == cluster.UID {
		return seen.at
	}
	if d.since == nil {
		d.since = map[string]deletionSeen{}
	}
	d.since[cluster.Name] = deletionSeen{cluster.UID, now}
	return now
}

func (d *deletions) forget(member string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.since, member)
}
