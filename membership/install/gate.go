package install

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// Remaining is that of a gate which is shut only once the agent has confirmed that the member is clean, or where it was never there: until what was
// installed is removed, for a minute at most. It stays, and an Event says so, where the hub does not reach the member any more.
func (r *Runner) Remaining(ctx context.Context, leaving membership.Member) ([]string, error) {
	cluster := &v1alpha1.MemberCluster{}
	if err := r.live.Get(ctx, client.ObjectKey{Name: leaving.Name}, cluster); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if cluster.UID != leaving.UID || cluster.Spec.JoinMode != v1alpha1.JoinInstall || !touched(cluster) {
		return nil, nil
	}
	if _, removes := r.Installer.(Uninstaller); !removes {
		return nil, nil
	}
	in, err := r.agentIn(ctx, leaving.Namespace, leaving.UID, leaving.Claim)
	if err != nil || in {
		return nil, err // it goes first
	}
	m := r.know(leaving.UID)
	if r.lost(m) {
		r.giveUp(cluster, m, fmt.Sprintf("The hub did not get there within %s.", uninstallPatience))
		return nil, nil
	}
	m.kick()
	return []string{"the agent that was installed"}, nil
}

// lost reports whether a leave has waited long enough for what was installed on a member.
func (r *Runner) lost(m *member) bool {
	now := r.Clock.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if m.since.IsZero() {
		m.since = now
	}
	return m.gaveUp || now.Sub(m.since) >= uninstallPatience
}
