package tainttoleration

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// Name is the name under which the plugin is registered.
const Name = "TaintToleration"

// New creates the plugin. It is a [scheduler.Factory] without arguments.
func New(args scheduler.Args, _ scheduler.Handle) (scheduler.Plugin, error) {
	return plugin{}, scheduler.DecodeArgs(args, &struct{}{})
}

type plugin struct{}

var (
	_ scheduler.PreFilterPlugin   = plugin{}
	_ scheduler.BatchFilterPlugin = plugin{}
	_ scheduler.PreScorePlugin    = plugin{}
	_ scheduler.BatchScorePlugin  = plugin{}
	_ scheduler.HintPlugin        = plugin{}
	_ scheduler.LocalPlugin       = plugin{}
	_ scheduler.StrictPlugin      = plugin{}
)

func (plugin) Name() string { return Name }

// Strict returns true, because users set taints.
func (plugin) Strict(*scheduler.Request) bool { return true }

func (plugin) PreFilter(_ context.Context, _ *scheduler.CycleState, request *scheduler.Request) *scheduler.Status {
	if request.Policy.Spec().Type == v1alpha1.PickFixed {
		return scheduler.NothingToDo()
	}
	return nil
}

// Filter rejects a cluster with a taint that is not tolerated. For a toleration that ends, it limits the validity of
// the decision.
func (plugin) Filter(_ context.Context, state *scheduler.CycleState, request *scheduler.Request,
	cluster *scheduler.Cluster) *scheduler.Status {
	if len(cluster.Taints) == 0 {
		return nil
	}
	slot, there := state.Snapshot().Slot(cluster.Name)
	bound := there && state.Bound().Has(slot)
	taint, until := untolerated(cluster.Taints, request.Policy.Spec().Tolerations, bound, request.Failover, request.Now)
	if taint == nil {
		if !until.IsZero() {
			state.Until(until)
		}
		return nil
	}
	if taint.Value == "" {
		return scheduler.Reject("has taint " + taint.Key)
	}
	return scheduler.Reject("has taint " + taint.Key + "=" + taint.Value)
}

func (p plugin) FilterAll(ctx context.Context, state *scheduler.CycleState, request *scheduler.Request,
	feasible scheduler.Set) *scheduler.Status {
	tainted := state.Snapshot().Where("tainttoleration:no", func(c *scheduler.Cluster) bool {
		return has(c, rejectsPlacements)
	})
	for slot := range tainted.All() {
		if feasible.Has(slot) && p.Filter(ctx, state, request, state.Snapshot().Cluster(slot)) != nil {
			feasible.Remove(slot)
		}
	}
	return nil
}

func rejectsPlacements(t *corev1.Taint) bool {
	return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
}

func isPreferNoSchedule(t *corev1.Taint) bool { return t.Effect == corev1.TaintEffectPreferNoSchedule }

func has(c *scheduler.Cluster, which func(*corev1.Taint) bool) bool {
	for i := range c.Taints {
		if which(&c.Taints[i]) {
			return true
		}
	}
	return false
}

// healthTaints are the keys of the taints by which the hub reports bad or unknown health of a member
// (membership.TaintUnreachable and membership.TaintNotReady).
var healthTaints = []string{"membership.muster.dev/unreachable", "membership.muster.dev/not-ready"}

// toleratesBound reports whether a bound cluster stays although the taint rejects new placements.
func toleratesBound(t *corev1.Taint, failover bool) bool {
	return t.Effect == corev1.TaintEffectNoSchedule || !failover && slices.Contains(healthTaints, t.Key)
}

// untolerated returns the first taint that rejects the cluster. If there is none, it returns when the tolerations end.
// Zero: never.
func untolerated(
	taints []corev1.Taint, tolerations []v1alpha1.Toleration, bound, failover bool, now time.Time,
) (taint *corev1.Taint, until time.Time) {
	for i := range taints {
		t := &taints[i]
		if !rejectsPlacements(t) || bound && toleratesBound(t, failover) {
			continue
		}
		end, tolerated := tolerates(tolerations, t, bound)
		if !tolerated || !end.IsZero() && !now.Before(end) {
			return t, time.Time{}
		}
		if until.IsZero() || !end.IsZero() && end.Before(until) {
			until = end
		}
	}
	return nil, until
}

// tolerates reports whether a taint is tolerated, and when the toleration ends. Zero: never.
func tolerates(tolerations []v1alpha1.Toleration, taint *corev1.Taint, bound bool) (until time.Time, tolerated bool) {
	for i := range tolerations {
		t := &tolerations[i]
		if !matches(t, taint) {
			continue
		}
		if t.TolerationSeconds == nil || taint.Effect != corev1.TaintEffectNoExecute {
			return time.Time{}, true
		}
		if !bound {
			continue
		}
		if taint.TimeAdded == nil {
			return time.Time{}, true
		}
		end := taint.TimeAdded.Add(time.Duration(max(*t.TolerationSeconds, 0)) * time.Second)
		if !tolerated || end.After(until) {
			until, tolerated = end, true
		}
	}
	return until, tolerated
}

func matches(t *v1alpha1.Toleration, taint *corev1.Taint) bool {
	switch {
	case t.Effect != "" && t.Effect != taint.Effect:
		return false
	case t.Key != "" && t.Key != taint.Key:
		return false
	case t.Operator == corev1.TolerationOpExists:
		return true
	default:
		return t.Key != "" && t.Value == taint.Value
	}
}

func (plugin) PreScore(_ context.Context, state *scheduler.CycleState, _ *scheduler.Request,
	_ scheduler.Set) *scheduler.Status {
	if preferNoScheduleClusters(state).Empty() {
		return scheduler.NothingToDo()
	}
	return nil
}

// preferNoScheduleClusters returns the set of the clusters with a taint of effect PreferNoSchedule.
func preferNoScheduleClusters(state *scheduler.CycleState) scheduler.Set {
	return state.Snapshot().Where("tainttoleration:prefer", func(c *scheduler.Cluster) bool {
		return has(c, isPreferNoSchedule)
	})
}

func (plugin) Score(_ context.Context, _ *scheduler.CycleState, request *scheduler.Request,
	cluster *scheduler.Cluster) (float64, *scheduler.Status) {
	count := 0
	for i := range cluster.Taints {
		if taint := &cluster.Taints[i]; isPreferNoSchedule(taint) {
			if _, tolerated := tolerates(request.Policy.Spec().Tolerations, taint, true); !tolerated {
				count++
			}
		}
	}
	return scheduler.MaxScore / float64(1+count), nil
}

func (p plugin) ScoreAll(ctx context.Context, state *scheduler.CycleState, request *scheduler.Request,
	feasible scheduler.Set, scores []float64) *scheduler.Status {
	for slot := range feasible.All() {
		scores[slot] = scheduler.MaxScore
	}
	for slot := range preferNoScheduleClusters(state).All() {
		if feasible.Has(slot) {
			scores[slot], _ = p.Score(ctx, state, request, state.Snapshot().Cluster(slot))
		}
	}
	return nil
}

// Local returns true as long as no cluster has a PreferNoSchedule taint. Time only affects bound clusters, through
// Until.
func (plugin) Local(state *scheduler.CycleState, _ *scheduler.Request) bool {
	return preferNoScheduleClusters(state).Empty()
}

// Hint reports whether the cluster has no taint that rejects the request, and had one before or is new.
func (plugin) Hint(request *scheduler.Request, event scheduler.Event) bool {
	return event.Became(func(c *scheduler.Cluster) bool {
		taint, _ := untolerated(c.Taints, request.Policy.Spec().Tolerations, false, false, request.Now)
		return taint == nil
	})
}
