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

// dates remembers when taints were first seen that do not say when they were put on, as those of people do not.
// Tolerations with seconds count from then, as Kubernetes has them count for pods. It is not written anywhere: a
// field of a user's taint that another client wrote would keep the user from removing the taint by server-side apply.
type taintTimes struct {
	clock clock.PassiveClock

	mu    sync.Mutex
	taken map[string][]corev1.Taint // by cluster: its taints that had no date, with one
}

func newTaintTimes(c clock.PassiveClock) *taintTimes {
	return &taintTimes{clock: c, taken: map[string][]corev1.Taint{}}
}

// put returns the cluster with a date on each of its taints by which something is moved away. The cluster itself stays as it is.
func (d *taintTimes) withTimes(cluster *scheduler.Cluster) *scheduler.Cluster {
	d.mu.Lock()
	defer d.mu.Unlock()
	taints, taken := dated(cluster.Taints, d.taken[cluster.Name], d.clock.Now())
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

// dated returns the taints with a date on each that has the effect NoExecute, and those among them that had none. One that had none before
// has the date that it was given then.
func dated(taints, before []corev1.Taint, now time.Time) (all, taken []corev1.Taint) {
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
