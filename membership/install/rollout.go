package install

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// rollout tells members when it is their turn. All that it knows is what the cache shows, and whom it has told: that counts until it shows, so that
// a cache that lags lets nobody in besides.
type rollout struct {
	hash       string
	concurrent int
	call       func(types.UID) // what is called for a member whose turn it is

	mu      sync.Mutex
	seats   map[types.UID]*seat
	waiting int
}

// see takes down how far a member is, and whose turn it is after that. Where nobody waits it costs nothing.
func (r *rollout) see(cluster *v1alpha1.MemberCluster) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.move(r.seat(cluster), standingOf(cluster, r.hash))
}

// forget takes a member out that is gone.
func (r *rollout) forget(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.seats[uid]; s != nil {
		r.move(s, apart)
		delete(r.seats, uid)
	}
}

// run takes down that a member can be worked on, or not any more.
func (r *rollout) run(cluster *v1alpha1.MemberCluster, running bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if running || r.seats[cluster.UID] != nil { // it may be gone by the time that nobody works on it
		r.seat(cluster).Running = running
		r.next()
	}
}

// turn reports whether it is the turn of a member.
func (r *rollout) turn(uid types.UID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.seats[uid]
	return s != nil && s.Granted
}

// seat is the one of a member, for whoever holds the lock, as are all below.
func (r *rollout) seat(cluster *v1alpha1.MemberCluster) *seat {
	s := r.seats[cluster.UID]
	if s == nil {
		if r.seats == nil {
			r.seats = map[types.UID]*seat{}
		}
		s = &seat{UID: cluster.UID, Name: cluster.Name}
		r.seats[cluster.UID] = s
	}
	return s
}

func (r *rollout) move(s *seat, to standing) {
	if s.Standing == to {
		return
	}
	if s.Standing.waits() {
		r.waiting--
	}
	s.Standing = to
	if to.waits() {
		r.waiting++
	} else {
		s.Granted = false
	}
	r.next()
}

func (r *rollout) next() {
	if r.waiting == 0 {
		return
	}
	all := make([]seat, 0, len(r.seats))
	for _, each := range r.seats {
		all = append(all, *each)
	}
	for _, uid := range turns(all, r.concurrent) {
		r.seats[uid].Granted = true
		r.call(uid)
	}
}

// look asks the installer whether what is installed runs; that it cannot be asked is a reason why nobody knows.
func (r *Runner) look(ctx context.Context, target Target) *running {
	checker, can := r.Installer.(Checker)
	if !can {
		return &running{}
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	missing, err := checker.Missing(ctx, Target{Cluster: target.Cluster.DeepCopy(), Config: target.Config})
	if err != nil {
		missing = "the hub cannot see how it fares: " + err.Error()
	}
	return &running{Missing: missing}
}
