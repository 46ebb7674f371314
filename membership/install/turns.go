package install

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-sdk/muster/internal/memberleave"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// progress is the state of a member in the rollout.
type progress int

// The states. The waiting ones are in the order in which they get permits.
const (
	// apart: not part of the rollout, because nothing is installed yet, the agent has not joined, the member leaves, or
	// the hub cannot reach it.
	apart progress = iota
	// waitsBroken: waiting, and not healthy since an earlier revision was installed.
	waitsBroken
	// waitsHeard: waiting, with heartbeats.
	waitsHeard
	// waitsSilent: waiting, without heartbeats.
	waitsSilent
	// underWay: being installed, or installed and not known to be healthy.
	underWay
	// failed: the installation failed, or the agent has not been healthy since.
	failed
	// done: the revision is installed, with heartbeats.
	done
)

func (s progress) waits() bool { return s == waitsBroken || s == waitsHeard || s == waitsSilent }

// seat is the state of a member that determines whether it gets a rollout permit.
type seat struct {
	UID      types.UID
	Name     string
	Progress progress
	// Running: the hub is connected to the member, and could begin.
	Running bool
	// Granted: the member has a rollout permit that its status does not show yet.
	Granted bool
}

// progressOf returns the state of a member for the revision with a hash.
func progressOf(cluster *v1alpha1.MemberCluster, hash string) progress {
	status := cluster.Status
	leaving := memberleave.Requested(cluster)
	accepted := cluster.Spec.Accepted != nil && *cluster.Spec.Accepted
	joined := meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionJoined)
	if cluster.Spec.JoinMode != v1alpha1.JoinInstall || !accepted || leaving || !joined || status.Install == nil {
		return apart
	}
	shown, other := reasonOf(cluster), status.Install.Hash != hash
	away := meta.IsStatusConditionFalse(status.Conditions, v1alpha1.ConditionReachable)
	switch {
	case !other && shown == v1alpha1.ReasonAgentNotHealthy:
		return failed // also if that is why the hub does not reach the member
	case away:
		return apart
	case other && shown == v1alpha1.ReasonInstallFailed:
		return failed
	case other && shown == v1alpha1.ReasonInstalling, !other && shown == v1alpha1.ReasonAgentStarting:
		return underWay
	case other && (shown == v1alpha1.ReasonAgentStarting || shown == v1alpha1.ReasonAgentNotHealthy):
		return waitsBroken
	case other && heard(cluster):
		return waitsHeard
	case other:
		return waitsSilent
	case heard(cluster):
		return done
	default:
		return apart
	}
}

// heard reports whether heartbeats arrive, regardless of the agent's report about its cluster.
func heard(cluster *v1alpha1.MemberCluster) bool {
	healthy := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionHealthy)
	return healthy != nil && healthy.Status != metav1.ConditionUnknown
}

// turns decides which members get a rollout permit now, in addition to existing permits: a single one while no member
// is done, then up to the limit, and none while one has failed. It performs no I/O.
func turns(seats []seat, concurrent int) []types.UID {
	limit, busy := 1, 0
	var waiting []seat
	for _, each := range seats {
		switch {
		case each.Progress == failed:
			return nil
		case each.Progress == underWay, each.Progress.waits() && each.Granted:
			busy++
		case each.Progress == done:
			limit = concurrent
		case each.Progress.waits() && each.Running:
			waiting = append(waiting, each)
		}
	}
	slices.SortFunc(waiting, func(a, b seat) int {
		return cmp.Or(cmp.Compare(a.Progress, b.Progress), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	var out []types.UID
	for _, each := range waiting[:min(len(waiting), max(0, limit-busy))] {
		out = append(out, each.UID)
	}
	return out
}
