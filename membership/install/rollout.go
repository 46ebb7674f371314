package install

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// rollout grants rollout permits to members. Its state consists of the cache and of the permits that the cache does
// not show yet. Those permits count as used, so that a lagging cache causes no additional permits.
type rollout struct {
	hash       string
	concurrent int
	call       func(types.UID) // called for a member that gets a permit

	mu      sync.Mutex
	seats   map[types.UID]*seat
	waiting int
}

// see records the state of a member, and grants the next permits. If no member waits, it grants none and costs
// nothing.
func (r *rollout) see(cluster *v1alpha1.MemberCluster) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.move(r.seat(cluster), progressOf(cluster, r.hash))
}

// forget removes a deleted member.
func (r *rollout) forget(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.seats[uid]; s != nil {
		r.move(s, apart)
		delete(r.seats, uid)
	}
}

// run records whether the hub is connected to a member.
func (r *rollout) run(cluster *v1alpha1.MemberCluster, running bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if running || r.seats[cluster.UID] != nil { // the member may have been deleted before its run ended
		r.seat(cluster).Running = running
		r.next()
	}
}

// turn reports whether a member has a rollout permit.
func (r *rollout) turn(uid types.UID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.seats[uid]
	return s != nil && s.Granted
}

// seat returns the entry of a member. The caller must hold the lock, as for all functions below.
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

func (r *rollout) move(s *seat, to progress) {
	if s.Progress == to {
		return
	}
	if s.Progress.waits() {
		r.waiting--
	}
	s.Progress = to
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

// look calls the Checker. If the Checker fails, the result is that the state is unknown.
func (r *Runner) look(ctx context.Context, target Target) *running {
	checker, can := r.Installer.(Checker)
	if !can {
		return &running{}
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	missing, err := checker.Missing(ctx, Target{Cluster: target.Cluster.DeepCopy(), Config: target.Config})
	if err != nil {
		missing = "the hub cannot check the installed objects: " + err.Error()
	}
	return &running{Missing: missing}
}
