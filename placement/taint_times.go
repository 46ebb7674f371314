package placement

import (
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/muster-sdk/muster/scheduler"
)

// taintTimes contains the times at which taints without timeAdded, such as those of users, were first observed.
// Tolerations with seconds count from this time, as Kubernetes counts for pods. The times are not written to the API:
// with server-side apply a user cannot remove a taint in which another client has written a field.
type taintTimes struct {
	clock clock.PassiveClock

	mu    sync.Mutex
	taken map[string][]corev1.Taint // by cluster: the taints without timeAdded, with the observed time
}

func newTaintTimes(c clock.PassiveClock) *taintTimes {
	return &taintTimes{clock: c, taken: map[string][]corev1.Taint{}}
}

// withTimes returns the cluster with timeAdded in each NoExecute taint. It does not modify its argument.
func (d *taintTimes) withTimes(cluster *scheduler.Cluster) *scheduler.Cluster {
	d.mu.Lock()
	defer d.mu.Unlock()
	taints, taken := withTimeAdded(cluster.Taints, d.taken[cluster.Name], d.clock.Now())
	if len(taken) == 0 {
		delete(d.taken, cluster.Name)
		return cluster
	}
	d.taken[cluster.Name] = taken
	with := *cluster
	with.Taints = taints
	return &with
}

func (d *taintTimes) remove(cluster string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.taken, cluster)
}

// withTimeAdded returns the taints with timeAdded in each NoExecute taint, and those among them that had no timeAdded.
// A taint that is in before keeps its time.
func withTimeAdded(taints, before []corev1.Taint, now time.Time) (all, taken []corev1.Taint) {
	all = taints
	for i := range taints {
		taint := taints[i]
		if taint.Effect != corev1.TaintEffectNoExecute || taint.TimeAdded != nil {
			continue
		}
		since := slices.IndexFunc(before, func(b corev1.Taint) bool { return b.MatchTaint(&taint) && b.Value == taint.Value })
		if since >= 0 {
			taint.TimeAdded = before[since].TimeAdded
		} else {
			taint.TimeAdded = new(metav1.NewTime(now))
		}
		if len(taken) == 0 {
			all = slices.Clone(taints)
		}
		all[i] = taint
		taken = append(taken, taint)
	}
	return all, taken
}
