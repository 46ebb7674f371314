package hub

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/membership/heartbeat"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// health sets the condition Healthy of a MemberCluster and the taints that follow from it. It returns the time until
// the next reconcile.
func (r *members) health(o memberObserved, step lifecycle.HubStep) time.Duration {
	cluster := o.cluster
	heard := step.Phase == v1alpha1.PhaseJoined || step.Phase == v1alpha1.PhaseLeaving && o.membership != nil
	if heard {
		r.heartbeats.Track(cluster.Name, time.Duration(cluster.Spec.HeartbeatPeriodSeconds)*time.Second)
	} else {
		r.heartbeats.Untrack(cluster.Name)
	}
	agent := agentHealth(o.membership)
	r.heartbeats.SetPush(cluster.Name, cluster.Spec.JoinMode == v1alpha1.JoinPush)
	r.heartbeats.Report(cluster.Name, agent == nil || agent.Status != metav1.ConditionFalse)
	health, _ := r.heartbeats.Health(cluster.Name)
	observed := lifecycle.HealthObserved{
		Joined:    heard,
		Heartbeat: heartbeats[health.State],
		Heard:     health.LastHeard, Since: health.Since, Grace: health.Grace, Hold: health.Hold,
		Recorded: meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionHealthy),
		Agent:    agent,
	}
	if outage, suspected := r.heartbeats.Outage(); suspected && health.Suspended {
		observed.Suspended = outage.Since
	} else if health.Suspended {
		observed.SuspendedUntil = health.SuspendedUntil
	}
	r.set(cluster, lifecycle.Health(observed))

	taints, again := lifecycle.Taints(lifecycle.TaintsObserved{
		Now: o.lifecycle.Now, Taints: cluster.Spec.Taints,
		In:      step.Phase == v1alpha1.PhaseJoined,
		Healthy: *meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionHealthy),
		// The condition that was recorded before the hub started may be outdated.
		Suspended: health.Suspended || health.State == heartbeat.Awaited,
	})
	cluster.Spec.Taints = taints
	return again
}

// heartbeats maps the states of package heartbeat to those of package lifecycle.
var heartbeats = map[heartbeat.State]lifecycle.HeartbeatState{
	heartbeat.Awaited:  lifecycle.HeartbeatAwaited,
	heartbeat.Healthy:  lifecycle.HeartbeatHeard,
	heartbeat.Lost:     lifecycle.HeartbeatLost,
	heartbeat.Unsteady: lifecycle.HeartbeatUnsteady,
}

// agentHealth returns the condition Healthy that the membership agent reports; nil: none.
func agentHealth(self *v1alpha1.Membership) *metav1.Condition {
	if self == nil {
		return nil
	}
	for _, agent := range self.Status.Agents {
		if agent.Type == v1alpha1.MembershipAgent {
			return meta.FindStatusCondition(agent.Conditions, v1alpha1.ConditionHealthy)
		}
	}
	return nil
}

// setLastHeartbeat sets the time of the last heartbeat of the membership agent. A change of this time alone causes no
// write.
func (r *members) setLastHeartbeat(cluster *v1alpha1.MemberCluster) {
	health, tracked := r.heartbeats.Health(cluster.Name)
	for i := range cluster.Status.Agents {
		agent := &cluster.Status.Agents[i]
		if tracked && agent.Type == v1alpha1.MembershipAgent && !health.LastHeard.IsZero() {
			heard := metav1.NewMicroTime(health.LastHeard.Truncate(time.Microsecond))
			agent.LastHeartbeat = &heard
		}
	}
}
