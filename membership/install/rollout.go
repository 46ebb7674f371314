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
	entries map[types.UID]*memberEntry
	waiting int
}

// observe records the state of a member, and grants the next permits. If no member waits, it grants none and costs
// nothing.
func (r *rollout) observe(cluster *v1alpha1.MemberCluster) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.setProgress(r.entry(cluster), progressOf(cluster, r.hash))
}

// forget removes a deleted member.
func (r *rollout) forget(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.entries[uid]; s != nil {
		r.setProgress(s, excluded)
		delete(r.entries, uid)
	}
}

// run records whether the hub is connected to a member.
func (r *rollout) run(cluster *v1alpha1.MemberCluster, running bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if running || r.entries[cluster.UID] != nil { // the member may have been deleted before its run ended
		r.entry(cluster).Running = running
		r.grant()
	}
}

// permitted reports whether a member has a rollout permit.
func (r *rollout) permitted(uid types.UID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.entries[uid]
	return s != nil && s.Granted
}

// memberEntry returns the entry of a member. The caller must hold the lock, as for all functions below.
func (r *rollout) entry(cluster *v1alpha1.MemberCluster) *memberEntry {
	s := r.entries[cluster.UID]
	if s == nil {
		if r.entries == nil {
			r.entries = map[types.UID]*memberEntry{}
		}
		s = &memberEntry{UID: cluster.UID, Name: cluster.Name}
		r.entries[cluster.UID] = s
	}
	return s
}

func (r *rollout) setProgress(s *memberEntry, to progress) {
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
	r.grant()
}

func (r *rollout) grant() {
	if r.waiting == 0 {
		return
	}
	all := make([]memberEntry, 0, len(r.entries))
	for _, each := range r.entries {
		all = append(all, *each)
	}
	for _, uid := range grantPermits(all, r.concurrent) {
		r.entries[uid].Granted = true
		r.call(uid)
	}
}

// check calls the Checker. If the Checker fails, the result is that the state is unknown.
func (r *Runner) check(ctx context.Context, target Target) *running {
	checker, can := r.Installer.(Checker)
	if !can {
		return &running{}
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	missing, err := checker.Missing(ctx, Target{Cluster: target.Cluster.DeepCopy(), Config: target.Config})
	if err != nil {
		missing = "the hub cannot check the installed objects: " + err.Error()
	}
	return &running{Missing: missing}
}
