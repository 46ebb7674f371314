package install

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// Remaining implements the gate. The gate is closed from the time when the agent has confirmed that the member is
// clean, or from the start of the leave if it never joined, until the installed objects are removed, for a minute at
// most. If the hub cannot reach the member any more, the objects stay, and an Event reports this.
func (r *Runner) Remaining(ctx context.Context, leaving membership.Member) ([]string, error) {
	cluster := &v1alpha1.MemberCluster{}
	if err := r.live.Get(ctx, client.ObjectKey{Name: leaving.Name}, cluster); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if cluster.UID != leaving.UID || cluster.Spec.JoinMode != v1alpha1.JoinInstall || !mayHaveObjects(cluster) {
		return nil, nil
	}
	if _, removes := r.Installer.(Uninstaller); !removes {
		return nil, nil
	}
	in, err := r.agentIn(ctx, leaving.Namespace, leaving.UID, leaving.Claim)
	if err != nil || in {
		return nil, err // the agent leaves first
	}
	m := r.memberState(leaving.UID)
	if r.lost(m) {
		r.giveUp(cluster, m, fmt.Sprintf("The hub did not reach the member within %s.", uninstallTimeout))
		return nil, nil
	}
	m.notify()
	return []string{"the agent that was installed"}, nil
}

// lost reports whether the timeout for the removal of the installed objects has passed.
func (r *Runner) lost(m *member) bool {
	now := r.Clock.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if m.since.IsZero() {
		m.since = now
	}
	return m.gaveUp || now.Sub(m.since) >= uninstallTimeout
}
