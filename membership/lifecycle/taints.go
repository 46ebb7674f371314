package lifecycle

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// How long the condition Healthy has to hold before taints follow it. Unreachable has no such time, since the grace of the
// heartbeat is one: the member was silent for three periods and more.
const (
	// NotReadyAfter is for how long a member has to be not ready: the 30 s by which Karmada damps the readiness
	// of its clusters (--cluster-failure-threshold).
	NotReadyAfter = 30 * time.Second
	// HealthyAfter is for how long it has to be healthy for its taints to go. It is shorter, because a member that
	// flaps is held unsteady by the heartbeat, or not ready by its agent, before it counts as healthy.
	HealthyAfter = 10 * time.Second
)

// TaintsObserved is what the taints of a member follow from.
type TaintsObserved struct {
	Now time.Time
	// Taints is spec.taints of the MemberCluster, users' and hub's.
	Taints []v1alpha1.Taint
	// In is true when the member has joined and is not leaving.
	In bool
	// Healthy is the condition as recorded, with when its status last changed.
	Healthy metav1.Condition
	// HeldBack is true while the hub suspects itself rather than its members, has done so a short time ago, or has
	// not heard the member since it started: no taint is added then, and those that are there stay.
	HeldBack bool
}

// Taints decides the taints of a member, and when to look again although nothing has happened (zero: never).
//
// The hub's own are [membership.TaintUnreachable], while heartbeats are lost, and [membership.TaintNotReady], while the
// agent finds its cluster not ready, both NoExecute, and never both. All others are the users' own: they, and the
// order of all, stay as they are. The argument is not changed.
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
		want = "" // once is enough
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

// wanted is the key of the one taint of the hub's that shall be there; empty: none.
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
			return there, 0 // too early to tell
		}
		follows = membership.TaintUnreachable
	}
	switch held := max(0, o.Now.Sub(o.Healthy.LastTransitionTime.Time)); {
	case follows == there:
		return there, 0
	case held < hysteresis:
		return there, hysteresis - held
	case follows != "" && o.HeldBack:
		return there, 0 // the end of that is something that happens
	default:
		return follows, 0
	}
}

func present(taints []v1alpha1.Taint) string {
	i := slices.IndexFunc(taints, func(t v1alpha1.Taint) bool { return ours(t) && t.Effect == corev1.TaintEffectNoExecute })
	if i < 0 {
		return ""
	}
	return taints[i].Key
}

func ours(taint v1alpha1.Taint) bool {
	return taint.Key == membership.TaintUnreachable || taint.Key == membership.TaintNotReady
}

func added(now time.Time) *metav1.Time {
	t := metav1.NewTime(now).Rfc3339Copy() // as it will be read back
	return &t
}
