package install

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/memberleave"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// observe reads the state of a member. The MemberCluster is nil if it was deleted.
func (r *Runner) observe(ctx context.Context, from client.Reader, m *member, of *v1alpha1.MemberCluster) (observed,
	*v1alpha1.MemberCluster, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	cluster := &v1alpha1.MemberCluster{}
	err := client.IgnoreNotFound(from.Get(ctx, client.ObjectKeyFromObject(of), cluster))
	if err != nil {
		return observed{}, nil, fmt.Errorf("get MemberCluster %s: %w", of.Name, err)
	}
	if cluster.UID != of.UID || cluster.Spec.JoinMode != v1alpha1.JoinInstall {
		return observed{}, nil, nil
	}
	leave := cluster.Status.Leave
	o := observed{
		Now:         r.Clock.Now(),
		Accepted:    cluster.Spec.Accepted != nil && *cluster.Spec.Accepted,
		Joined:      meta.IsStatusConditionTrue(cluster.Status.Conditions, v1alpha1.ConditionJoined),
		Unreachable: meta.IsStatusConditionFalse(cluster.Status.Conditions, v1alpha1.ConditionReachable),
		Permitted:   r.rollout.permitted(cluster.UID),
		Leave:       leaveSeen{Requested: memberleave.Requested(cluster), Forced: leave != nil && leave.Forced},
		Install:     installSeen{Touched: mayHaveObjects(cluster), Shown: reasonOf(cluster), Last: cluster.Status.Install},
		Desired:     desired{Hash: r.hash, RequestedAt: requestedAt(cluster)},
		Heartbeat: heartbeatSeen{
			Arrives: heartbeatArrives(cluster), Period: time.Duration(cluster.Spec.HeartbeatPeriodSeconds) * time.Second,
		},
		Timeouts: timeouts{Token: r.TokenTTL, Healthy: r.HealthyWithin},
	}
	if healthy := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionHealthy); healthy != nil {
		o.Heartbeat.Lost = healthy.Reason == v1alpha1.ReasonHeartbeatLost
	}
	if end := cluster.Status.CredentialExpirationTime; end != nil {
		o.CredentialEnd = end.Time
	}
	r.mu.Lock()
	o.Leave.GaveUp = m.gaveUp
	r.mu.Unlock()
	if o.Leave.Requested && o.Install.Touched {
		if o.Leave.AgentIn, err = r.agentIn(ctx, cluster.Status.Namespace, cluster.UID, cluster.Spec.Claim); err != nil {
			return o, nil, err
		}
	}
	if !m.noToken {
		if o.Token, err = r.observeToken(ctx, cluster); err != nil {
			return o, nil, err
		}
		m.noToken = o.Token == nil
	}
	return o, cluster, nil
}

// agentIn reports whether the agent of a member has joined and has not confirmed yet that the member is clean.
func (r *Runner) agentIn(ctx context.Context, namespace string, uid types.UID, claim string) (bool, error) {
	if namespace == "" {
		return false, nil
	}
	self := &v1alpha1.Membership{}
	key := client.ObjectKey{Namespace: namespace, Name: membership.MembershipName}
	if err := r.live.Get(ctx, key, self); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("get Membership %s: %w", key, err)
	}
	joined := meta.FindStatusCondition(self.Status.Conditions, v1alpha1.ConditionJoined)
	heard := joined != nil && self.Spec.MemberUID == uid && self.Status.Claim == claim
	return heard && joined.Reason != v1alpha1.ReasonCleanedUp, nil
}

// mayHaveObjects reports whether objects may have been created on a member.
func mayHaveObjects(cluster *v1alpha1.MemberCluster) bool {
	if cluster.Status.Install != nil {
		return true
	}
	reason := reasonOf(cluster)
	return reason == v1alpha1.ReasonInstalling || reason == v1alpha1.ReasonInstallFailed
}

// reasonOf returns the reason of the condition Installed; empty: there is no condition.
func reasonOf(cluster *v1alpha1.MemberCluster) string {
	if installed := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionInstalled); installed != nil {
		return installed.Reason
	}
	return ""
}

// requestedAt returns the value of the annotation, limited to the size of the status field.
func requestedAt(cluster *v1alpha1.MemberCluster) string {
	const room = 256
	value := cluster.Annotations[membership.InstallRequestAnnotation]
	if len(value) > room {
		return strings.ToValidUTF8(value[:room], "")
	}
	return value
}

// hasCondition reports whether a member has the condition already.
func hasCondition(cluster *v1alpha1.MemberCluster, want *metav1.Condition) bool {
	if want == nil {
		return true
	}
	is := meta.FindStatusCondition(cluster.Status.Conditions, want.Type)
	return is != nil && is.Status == want.Status && is.Reason == want.Reason && is.Message == want.Message
}
