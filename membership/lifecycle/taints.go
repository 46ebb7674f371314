package lifecycle

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// How long the condition Healthy must be stable before taints follow it. TaintUnreachable has no such time, because
// the grace period of the heartbeat has the same effect: no heartbeat was observed for at least three periods.
const (
	// NotReadyAfter is how long a member must be not ready. 30 s is also how long Karmada delays changes of the readiness
	// of its clusters (--cluster-failure-threshold).
	NotReadyAfter = 30 * time.Second
	// HealthyAfter is how long a member must be healthy before its taints are removed. It is shorter, because a member
	// that flaps is unsteady by its heartbeat, or not ready by its agent, before it is healthy.
	HealthyAfter = 10 * time.Second
)

// TaintsObserved is the state that determines the taints of a member.
type TaintsObserved struct {
	Now time.Time
	// Taints is spec.taints of the MemberCluster: the users' taints and the hub's.
	Taints []v1alpha1.Taint
	// In is true if the member has joined and is not leaving.
	In bool
	// Healthy is the recorded condition, with the time of its last transition.
	Healthy metav1.Condition
	// Suspended is true while the outage guard withholds taints, shortly after that, and until the hub has observed a
	// heartbeat of the member since it started. No taint is added then, and existing ones stay.
	Suspended bool
}

// Taints decides the taints of a member, and returns the time until the next decision if no observation changes (zero:
// never).
//
// The hub's own taints are [membership.TaintUnreachable], while heartbeats are lost, and [membership.TaintNotReady],
// while the agent reports that its cluster is not ready. Both have the effect NoExecute, and a member never has both.
// All other taints are the users' own: they and the order of all taints stay unchanged. The argument is not changed.
func Taints(o TaintsObserved) ([]v1alpha1.Taint, time.Duration) {
	want, after := wanted(o)
	out := make([]v1alpha1.Taint, 0, len(o.Taints)+1)
	for _, taint := range o.Taints {
		if !ours(taint) {
			out = append(out, taint)
			continue
		}
		if taint.Key != want || taint.Effect != corev1.TaintEffectNoExecute {
			continue
		}
		want = "" // further copies are removed
		if taint.TimeAdded == nil {
			taint.TimeAdded = added(o.Now)
		}
		out = append(out, taint)
	}
	if want != "" {
		out = append(out, v1alpha1.Taint{Key: want, Effect: corev1.TaintEffectNoExecute, TimeAdded: added(o.Now)})
	}
	return out, after
}

// wanted returns the key of the hub's desired taint; empty: none.
func wanted(o TaintsObserved) (key string, after time.Duration) {
	if !o.In {
		return "", 0
	}
	there := present(o.Taints)
	var follows string
	var hysteresis time.Duration
	switch o.Healthy.Status {
	case metav1.ConditionTrue:
		hysteresis = HealthyAfter
	case metav1.ConditionFalse:
		follows, hysteresis = membership.TaintNotReady, NotReadyAfter
	default:
		if reason := o.Healthy.Reason; reason != v1alpha1.ReasonHeartbeatLost && reason != v1alpha1.ReasonHeartbeatUnsteady {
			return there, 0 // not decided yet
		}
		follows = membership.TaintUnreachable
	}
	switch blocked := max(0, o.Now.Sub(o.Healthy.LastTransitionTime.Time)); {
	case follows == there:
		return there, 0
	case blocked < hysteresis:
		return there, hysteresis - blocked
	case follows != "" && o.Suspended:
		return there, 0 // the end of the outage triggers a new decision
	default:
		return follows, 0
	}
}

func present(taints []v1alpha1.Taint) string {
	i := slices.IndexFunc(
		taints, func(t v1alpha1.Taint) bool { return ours(t) && t.Effect == corev1.TaintEffectNoExecute })
	if i < 0 {
		return ""
	}
	return taints[i].Key
}

func ours(taint v1alpha1.Taint) bool {
	return taint.Key == membership.TaintUnreachable || taint.Key == membership.TaintNotReady
}

func added(now time.Time) *metav1.Time {
	t := metav1.NewTime(now).Rfc3339Copy() // the precision of the API
	return &t
}
