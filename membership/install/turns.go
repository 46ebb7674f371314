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
	// excluded: not part of the rollout, because nothing is installed yet, the agent has not joined, the member leaves, or
	// the hub cannot reach it.
	excluded progress = iota
	// waitsUnhealthy: waiting, and not healthy since an earlier revision was installed.
	waitsUnhealthy
	// waitsAlive: waiting, with heartbeats.
	waitsAlive
	// waitsSilent: waiting, without heartbeats.
	waitsSilent
	// inProgress: being installed, or installed and not known to be healthy.
	inProgress
	// failed: the installation failed, or the agent has not been healthy since.
	failed
	// done: the revision is installed, with heartbeats.
	done
)

func (s progress) waits() bool { return s == waitsUnhealthy || s == waitsAlive || s == waitsSilent }

// memberEntry is the state of a member that determines whether it gets a rollout permit.
type memberEntry struct {
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
		return excluded
	}
	shown, other := reasonOf(cluster), status.Install.Hash != hash
	away := meta.IsStatusConditionFalse(status.Conditions, v1alpha1.ConditionReachable)
	switch {
	case !other && shown == v1alpha1.ReasonAgentNotHealthy:
		return failed // also if that is why the hub does not reach the member
	case away:
		return excluded
	case other && shown == v1alpha1.ReasonInstallFailed:
		return failed
	case other && shown == v1alpha1.ReasonInstalling, !other && shown == v1alpha1.ReasonAgentStarting:
		return inProgress
	case other && (shown == v1alpha1.ReasonAgentStarting || shown == v1alpha1.ReasonAgentNotHealthy):
		return waitsUnhealthy
	case other && heartbeatArrives(cluster):
		return waitsAlive
	case other:
		return waitsSilent
	case heartbeatArrives(cluster):
		return done
	default:
		return excluded
	}
}

// heartbeatArrives reports whether heartbeats arrive, regardless of the agent's report about its cluster.
func heartbeatArrives(cluster *v1alpha1.MemberCluster) bool {
	healthy := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionHealthy)
	return healthy != nil && healthy.Status != metav1.ConditionUnknown
}

// grantPermits decides which members get a rollout permit now, in addition to existing permits: a single one while no
// member is done, then up to the limit, and none while one has failed. It performs no I/O.
func grantPermits(seats []memberEntry, concurrent int) []types.UID {
	limit, busy := 1, 0
	var waiting []memberEntry
	for _, each := range seats {
		switch {
		case each.Progress == failed:
			return nil
		case each.Progress == inProgress, each.Progress.waits() && each.Granted:
			busy++
		case each.Progress == done:
			limit = concurrent
		case each.Progress.waits() && each.Running:
			waiting = append(waiting, each)
		}
	}
	slices.SortFunc(waiting, func(a, b memberEntry) int {
		return cmp.Or(cmp.Compare(a.Progress, b.Progress), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	var out []types.UID
	for _, each := range waiting[:min(len(waiting), max(0, limit-busy))] {
		out = append(out, each.UID)
	}
	return out
}
