package progress

import (
	"cmp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/placement/rollout"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// Cluster is the observed state of one cluster.
type Cluster struct {
	Name string
	// Chosen is true if a Placement selects the cluster. Otherwise its Works are being removed, and the status lists the
	// cluster while it has Works.
	Chosen bool
	// Reachable is true if the cluster is a healthy member.
	Reachable bool
	// Revision is the revision that was last assigned to the cluster. Empty: none.
	Revision string
	// Current is true if all Works on the hub are up to date: their content is written, none is missing, and there are no
	// others.
	Current bool
	// Works are the existing Works, sorted by name. If an object is in two of them, the feedback of the first one is used.
	Works []Work
	// Hold is the reason why the cluster has no newer revision. Empty: it needs none, or is about to get it.
	Hold rollout.HoldReason
	// Waits is the message about what the writing of its Works waits for. Empty: nothing.
	Waits string
	// Problem is the message about why no revision can be assigned, such as a failed override. Empty: none. A cluster with
	// a Problem has failed; use Waits for a state that may end without a change.
	Problem string
	// Reason is the reason of the condition that reports the Problem. Empty: [v1alpha1.ReasonOverrideFailed].
	Reason string
	// Replicas is the number of replicas of the cluster, over all workloads. Nil: replicas are not divided.
	Replicas *int32
}

// Health returns the health of the cluster at its assigned revision; see the package's table.
func (c *Cluster) Health() rollout.Health {
	switch {
	case c.Problem != "":
		return rollout.Failed
	case !c.Reachable:
		return rollout.Unknown
	case !c.upToDate():
		return rollout.Progressing
	case !c.all(func(w *Work) bool { return !c.permanentlyDegraded(w) }):
		return rollout.Failed
	case c.all((*Work).healthy):
		return rollout.Succeeded
	}
	return rollout.Progressing
}

// State returns the state of the cluster, where revision is the one that it must have in the end.
func (c *Cluster) State(revision string) v1alpha1.ClusterState {
	if !c.Chosen {
		return v1alpha1.ClusterLeaving
	}
	return c.state(revision, c.Health())
}

func (c *Cluster) state(revision string, health rollout.Health) v1alpha1.ClusterState {
	there := c.Revision == revision
	switch {
	case health == rollout.Failed:
		return v1alpha1.ClusterFailed
	case health == rollout.Unknown:
		return v1alpha1.ClusterUnknown
	case there && health == rollout.Succeeded:
		return v1alpha1.ClusterAvailable
	case !there && c.Hold != "":
		return v1alpha1.ClusterPending
	}
	return v1alpha1.ClusterProgressing
}

// upToDate reports whether all Works on the hub are up to date, and the member has observed their current generations.
func (c *Cluster) upToDate() bool {
	return c.Revision != "" && c.Current && c.all((*Work).upToDate)
}

// applied reports whether the member had applied all of its assigned content at its last report.
func (c *Cluster) applied() bool {
	return c.Problem == "" && c.upToDate() && c.all(func(w *Work) bool { return w.Applied == metav1.ConditionTrue })
}

// lacks reports whether the cluster lacks content that it must have now, where revision is the one that it must have in
// the end. A cluster without a revision lacks all content, even if an update is blocked.
func (c *Cluster) lacks(revision string) bool {
	return c.Revision == "" || c.Revision != revision && c.Hold == "" || !c.applied()
}

// permanentlyDegraded reports whether a Work is Degraded, and another Work of the cluster cannot resolve this. Another
// Work may define the kind or give up the object, which the agent observes when it retries.
func (c *Cluster) permanentlyDegraded(w *Work) bool {
	if len(c.Works) > 1 && (w.Reason == workv1alpha1.ReasonUnknownKind || w.Reason == workv1alpha1.ReasonConflict) {
		return false
	}
	return w.Degraded == metav1.ConditionTrue
}

func (c *Cluster) all(is func(*Work) bool) bool {
	for i := range c.Works {
		if !is(&c.Works[i]) {
			return false
		}
	}
	return true
}

// worst returns the Work with the most severe state. Nil: there are no Works.
func (c *Cluster) worst() *Work {
	var worst *Work
	for i := range c.Works {
		w := &c.Works[i]
		if worst == nil || cmp.Or(cmp.Compare(c.rank(worst), c.rank(w)), strings.Compare(w.Message, worst.Message)) < 0 {
			worst = w
		}
	}
	return worst
}

// rank returns the severity of the state of a Work. A higher rank is worse.
func (c *Cluster) rank(w *Work) int {
	switch {
	case c.permanentlyDegraded(w):
		return 4
	case w.Degraded == metav1.ConditionTrue:
		return 3
	case w.Applied != metav1.ConditionTrue:
		return 2
	case w.Available != metav1.ConditionTrue:
		return 1
	}
	return 0
}
