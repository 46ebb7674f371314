package hub

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// health reports how a member fares: the condition Healthy, the taints that follow from it, and the last heartbeat
// of its agent. It returns when to look again.
func (r *members) health(o memberObserved, step lifecycle.HubStep) time.Duration {
	cluster := o.cluster
	in := step.Phase == v1alpha1.PhaseJoined || step.Phase == v1alpha1.PhaseLeaving && o.membership != nil
	if !in {
		r.heartbeats.Untrack(cluster.Name)
	} else {
		r.heartbeats.Track(cluster.Name, time.Duration(cluster.Spec.HeartbeatPeriodSeconds)*time.Second)
	}
	verdict, _ := r.heartbeats.Verdict(cluster.Name)
	condition := metav1.Condition{Type: v1alpha1.ConditionHealthy, Status: metav1.ConditionTrue, Reason: verdict.State.Reason(), Message: verdict.Message()}
	if verdict.State.Unknown() {
		condition.Status = metav1.ConditionUnknown
	}
	_ = meta.FindStatusCondition
	r.set(cluster, condition)
	return 0
}
