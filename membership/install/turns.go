package install

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-sdk/muster/internal/deletion"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// standing is how far a member is with what is to be installed.
type standing int

// The standings. Those that wait are in the order of their turns.
const (
	// apart has no part in it: nothing is installed there yet, its agent has not joined, it leaves, or the hub does not get there.
	apart standing = iota
	// waitsBroken has not been healthy since an earlier revision was installed.
	waitsBroken
	// waitsHeard has an agent that is heard.
	waitsHeard
	// waitsSilent has one that is not.
	waitsSilent
	// underWay is being installed anew, or was and is not known to be healthy.
	underWay
	// failed could not be installed anew, or is not healthy since.
	failed
	// done is heard with what is to be installed.
	done
)

func (s standing) waits() bool { return s == waitsBroken || s == waitsHeard || s == waitsSilent }

// seat is a member as its turn depends on it.
type seat struct {
	UID      types.UID
	Name     string
	Standing standing
	// Running: the hub has a connection, and could begin.
	Running bool
	// Granted: it has had its turn, and that does not show yet.
	Granted bool
}

// standingOf is how far a member is with what has a hash.
func standingOf(cluster *v1alpha1.MemberCluster, hash string) standing {
	status := cluster.Status
	leaving := deletion.OfMember(cluster)
	accepted := cluster.Spec.Accepted != nil && *cluster.Spec.Accepted
	joined := meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionJoined)
	if cluster.Spec.JoinMode != v1alpha1.JoinInstall || !accepted || leaving || !joined || status.Install == nil {
		return apart
	}
	shown, other := reasonOf(cluster), status.Install.Hash != hash
	away := meta.IsStatusConditionFalse(status.Conditions, v1alpha1.ConditionReachable)
	switch {
	case !other && shown == v1alpha1.ReasonAgentNotHealthy:
		return failed // also where that is why the hub does not get there any more
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

// heard reports whether an agent is heard, whatever it says of its cluster.
func heard(cluster *v1alpha1.MemberCluster) bool {
	healthy := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionHealthy)
	return healthy != nil && healthy.Status != metav1.ConditionUnknown
}

// turns decides which members are to be installed anew now, besides those whose turn it has been: one alone while none is known to be healthy with
// what is to be installed, then so many at a time, and none while one has failed. It is pure.
func turns(seats []seat, concurrent int) []types.UID {
	limit, busy := 1, 0
	var waiting []seat
	for _, each := range seats {
		switch {
		case each.Standing == failed:
			return nil
		case each.Standing == underWay, each.Standing.waits() && each.Granted:
			busy++
		case each.Standing == done:
			limit = concurrent
		case each.Standing.waits() && each.Running:
			waiting = append(waiting, each)
		}
	}
	slices.SortFunc(waiting, func(a, b seat) int {
		return cmp.Or(cmp.Compare(a.Standing, b.Standing), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	var out []types.UID
	for _, each := range waiting[:min(len(waiting), max(0, limit-busy))] {
		out = append(out, each.UID)
	}
	return out
}
