package lifecycle

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

func TestHealth(t *testing.T) {
	healthy := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: v1alpha1.ConditionHealthy, Status: status, Reason: reason, Message: message}
	}
	const yes, no, unknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	notReady := healthy(no, v1alpha1.ReasonClusterNotReady, "The member's API server is not ready: timeout.")
	for _, test := range []struct {
		name   string
		reason string
		o      HealthObserved
		want   metav1.Condition
	}{
		{
			name: "a member that has left", reason: "no heartbeats are expected",
			o:    HealthObserved{NotJoined: "The cluster has left.", Heartbeat: HeartbeatHeard, Agent: &notReady},
			want: healthy(unknown, v1alpha1.ReasonNotJoined, "The cluster has left."),
		},
		{
			name: "a member that has not joined, without a reason", reason: "a condition always has a message",
			o:    HealthObserved{},
			want: healthy(unknown, v1alpha1.ReasonNotJoined, "The cluster has not joined."),
		},
		{
			name: "heartbeats arrive and the agent reports Unknown", reason: "an unknown state of the cluster is not a failure",
			o:    HealthObserved{Joined: true, Heartbeat: HeartbeatHeard, Agent: &metav1.Condition{Status: unknown}},
			want: healthy(yes, v1alpha1.ReasonHeartbeating, "Heartbeats arrive."),
		},
		{
			name: "heartbeats arrive and the cluster is not ready", reason: "the message of the agent is shown",
			o:    HealthObserved{Joined: true, Heartbeat: HeartbeatHeard, Agent: &notReady},
			want: notReady,
		},
		{
			name:   "heartbeats arrive and the cluster is not ready, without a message",
			reason: "a condition always has a message",
			o:      HealthObserved{Joined: true, Heartbeat: HeartbeatHeard, Agent: &metav1.Condition{Status: no}},
			want:   healthy(no, v1alpha1.ReasonClusterNotReady, "The agent reports that its cluster is not ready."),
		},
		{
			name:   "heartbeats are lost",
			reason: "the last report of the agent is outdated, and the message does not change over time",
			o: HealthObserved{Joined: true, Heartbeat: HeartbeatLost, Heard: epoch, Since: epoch.Add(195 * time.Second),
				Grace: 195 * time.Second, Agent: &notReady},
			want: healthy(unknown, v1alpha1.ReasonHeartbeatLost, "No heartbeat since 2026-01-01T00:00:00Z (grace 3m15s)."),
		},
		{
			name:   "heartbeats are lost and none was observed",
			reason: "the agent stopped before its first heartbeat or while the hub was down",
			o:      HealthObserved{Joined: true, Heartbeat: HeartbeatLost, Grace: 195 * time.Second},
			want: healthy(unknown, v1alpha1.ReasonHeartbeatLost,
				"No heartbeat since the hub started to observe (grace 3m15s)."),
		},
		{
			name: "heartbeats are lost during an outage of most members", reason: "the message explains why there is no taint",
			o: HealthObserved{Joined: true, Heartbeat: HeartbeatLost, Heard: epoch, Grace: time.Minute,
				Suspended: epoch.Add(time.Second)},
			want: healthy(unknown, v1alpha1.ReasonHeartbeatLost, "No heartbeat since 2026-01-01T00:00:00Z (grace 1m0s). "+
				"Taints and failover are withheld: so many members have been silent or not ready since 2026-01-01T00:00:01Z that "+
				"the hub itself may be the cause. Check the network of the hub."),
		},
		{
			name: "the cluster is not ready during an outage of most members", reason: "the message of the agent comes first",
			o: HealthObserved{Joined: true, Heartbeat: HeartbeatHeard,
				Agent: &metav1.Condition{Status: no, Message: "The API server is not ready"}, Suspended: epoch},
			want: healthy(no, v1alpha1.ReasonClusterNotReady, "The API server is not ready. Taints and failover are withheld: "+
				"so many members have been silent or not ready since 2026-01-01T00:00:00Z that the hub itself may be the cause. "+
				"Check the network of the hub."),
		},
		{
			name: "heartbeats are lost after an outage", reason: "the member has a new grace period",
			o: HealthObserved{Joined: true, Heartbeat: HeartbeatLost, Heard: epoch, Grace: time.Minute,
				SuspendedUntil: epoch.Add(time.Hour)},
			want: healthy(unknown, v1alpha1.ReasonHeartbeatLost, "No heartbeat since 2026-01-01T00:00:00Z (grace 1m0s). "+
				"Taints and failover are withheld until 2026-01-01T01:00:00Z, after an outage."),
		},
		{
			name: "heartbeats are unsteady", reason: "a flapping member does not become healthy immediately",
			o: HealthObserved{Joined: true, Heartbeat: HeartbeatUnsteady, Since: epoch, Hold: time.Minute},
			want: healthy(unknown, v1alpha1.ReasonHeartbeatUnsteady,
				"Heartbeats arrive again after repeated interruptions. The member becomes healthy when heartbeats have arrived "+
					"for 1m0s since 2026-01-01T00:00:00Z."),
		},
		{
			name: "the hub has restarted", reason: "the recorded condition stays until heartbeats are observed",
			o:    HealthObserved{Joined: true, Heartbeat: HeartbeatAwaited, Recorded: &notReady},
			want: notReady,
		},
		{
			name: "the member has just joined", reason: "the recorded reason NotJoined does not apply any more",
			o: HealthObserved{Joined: true, Heartbeat: HeartbeatAwaited,
				Recorded: &metav1.Condition{Status: unknown, Reason: v1alpha1.ReasonNotJoined}},
			want: healthy(unknown, v1alpha1.ReasonHeartbeatAwaited, "Waiting for the first heartbeat."),
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Health(test.o)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.reason, diff)
			}
		})
	}
}

func TestTaints(t *testing.T) {
	before := metav1.NewTime(epoch.Add(-time.Hour))
	now := metav1.NewTime(epoch)
	taint := func(key string, added *metav1.Time) v1alpha1.Taint {
		return v1alpha1.Taint{Key: key, Effect: corev1.TaintEffectNoExecute, TimeAdded: added}
	}
	unreachable, notReady := taint(membership.TaintUnreachable, &before), taint(membership.TaintNotReady, &before)
	userTaint := v1alpha1.Taint{Key: "example.com/maintenance", Effect: corev1.TaintEffectNoSchedule}
	similar := v1alpha1.Taint{Key: membership.TaintNotReady + "-yet", Effect: corev1.TaintEffectNoExecute}
	healthy := func(status metav1.ConditionStatus, reason string, ago time.Duration) metav1.Condition {
		return metav1.Condition{Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(epoch.Add(-ago))}
	}
	lost := func(ago time.Duration) metav1.Condition {
		return healthy(metav1.ConditionUnknown, v1alpha1.ReasonHeartbeatLost, ago)
	}
	failing := func(ago time.Duration) metav1.Condition {
		return healthy(metav1.ConditionFalse, v1alpha1.ReasonClusterNotReady, ago)
	}
	ready := func(ago time.Duration) metav1.Condition {
		return healthy(metav1.ConditionTrue, v1alpha1.ReasonHeartbeating, ago)
	}
	for _, test := range []struct {
		name   string
		reason string
		o      TaintsObserved
		want   []v1alpha1.Taint
		after  time.Duration
	}{
		{
			name: "heartbeats are lost", reason: "the taint is added immediately, since the grace period has passed",
			o:    TaintsObserved{In: true, Healthy: lost(0), Taints: []v1alpha1.Taint{userTaint}},
			want: []v1alpha1.Taint{userTaint, taint(membership.TaintUnreachable, &now)},
		},
		{
			name: "heartbeats are still lost", reason: "the taint keeps its time, which toleration seconds refer to",
			o:    TaintsObserved{In: true, Healthy: lost(time.Hour), Taints: []v1alpha1.Taint{unreachable, userTaint}},
			want: []v1alpha1.Taint{unreachable, userTaint},
		},
		{
			name: "heartbeats are unsteady", reason: "unsteady heartbeats keep the taint",
			o: TaintsObserved{In: true, Healthy: healthy(metav1.ConditionUnknown, v1alpha1.ReasonHeartbeatUnsteady, 0),
				Taints: []v1alpha1.Taint{unreachable}},
			want: []v1alpha1.Taint{unreachable},
		},
		{
			name: "heartbeats are lost while taints are suspended", reason: "the hub itself may be the cause",
			o:    TaintsObserved{In: true, Healthy: lost(time.Hour), Suspended: true, Taints: []v1alpha1.Taint{userTaint}},
			want: []v1alpha1.Taint{userTaint},
		},
		{
			name: "heartbeats were lost before taints were suspended", reason: "existing taints stay",
			o:    TaintsObserved{In: true, Healthy: lost(time.Hour), Suspended: true, Taints: []v1alpha1.Taint{unreachable}},
			want: []v1alpha1.Taint{unreachable},
		},
		{
			name: "the hub has restarted and awaits heartbeats", reason: "a restart of the hub changes no taint",
			o: TaintsObserved{In: true, Healthy: healthy(metav1.ConditionUnknown, v1alpha1.ReasonHeartbeatAwaited, time.Hour),
				Taints: []v1alpha1.Taint{notReady}},
			want: []v1alpha1.Taint{notReady},
		},
		{
			name: "the cluster has not been ready for 20 seconds", reason: "a restart of the API server adds no taint",
			o:    TaintsObserved{In: true, Healthy: failing(20 * time.Second), Taints: []v1alpha1.Taint{userTaint}},
			want: []v1alpha1.Taint{userTaint}, after: 10 * time.Second,
		},
		{
			name: "the cluster has not been ready for 30 seconds", reason: "the taint is added after 30 seconds",
			o:    TaintsObserved{In: true, Healthy: failing(30 * time.Second), Taints: []v1alpha1.Taint{userTaint}},
			want: []v1alpha1.Taint{userTaint, taint(membership.TaintNotReady, &now)},
		},
		{
			name:   "heartbeats arrive again and the cluster has just become not ready",
			reason: "the unreachable taint stays until the not-ready taint is due",
			o:      TaintsObserved{In: true, Healthy: failing(0), Taints: []v1alpha1.Taint{unreachable}},
			want:   []v1alpha1.Taint{unreachable}, after: 30 * time.Second,
		},
		{
			name:   "heartbeats arrive again and the cluster has not been ready for a minute",
			reason: "the not-ready taint replaces the unreachable taint",
			o:      TaintsObserved{In: true, Healthy: failing(time.Minute), Taints: []v1alpha1.Taint{unreachable, userTaint}},
			want:   []v1alpha1.Taint{userTaint, taint(membership.TaintNotReady, &now)},
		},
		{
			name: "the member has been healthy for 3 seconds", reason: "the member must be healthy for 10 seconds",
			o:    TaintsObserved{In: true, Healthy: ready(3 * time.Second), Taints: []v1alpha1.Taint{unreachable}},
			want: []v1alpha1.Taint{unreachable}, after: 7 * time.Second,
		},
		{
			name: "the member has been healthy for 10 seconds", reason: "the taint is removed, also while taints are suspended",
			o: TaintsObserved{In: true, Healthy: ready(10 * time.Second), Suspended: true,
				Taints: []v1alpha1.Taint{userTaint, unreachable, similar}},
			want: []v1alpha1.Taint{userTaint, similar},
		},
		{
			name: "the member is leaving", reason: "a leaving member is unschedulable, and the leave removes its objects",
			o:    TaintsObserved{Healthy: lost(time.Hour), Taints: []v1alpha1.Taint{unreachable, userTaint}},
			want: []v1alpha1.Taint{userTaint},
		},
		{
			name: "the clock was set back", reason: "the wait is at most 30 seconds",
			o:    TaintsObserved{In: true, Healthy: failing(-time.Hour)},
			want: []v1alpha1.Taint{}, after: 30 * time.Second,
		},
		{
			name:   "a user added taints of the hub without a time or with another effect",
			reason: "the result has one taint of the hub, with a time",
			o: TaintsObserved{In: true, Healthy: lost(0), Taints: []v1alpha1.Taint{
				taint(membership.TaintUnreachable, nil), {Key: membership.TaintNotReady, Effect: corev1.TaintEffectNoSchedule},
				unreachable,
			}},
			want: []v1alpha1.Taint{taint(membership.TaintUnreachable, &now)},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.o.Now = epoch
			got, after := Taints(test.o)
			if diff := cmp.Diff(test.want, got); diff != "" || after != test.after {
				t.Errorf("%s: want requeue after %s, got %s (-want +got):\n%s", test.reason, test.after, after, diff)
			}
		})
	}
}

// TestTaints_Properties checks, for all observations, that taints of users stay unchanged, that there is at most one
// taint of the hub, and that a repeated decision changes nothing.
func TestTaints_Properties(t *testing.T) {
	keys := []string{
		membership.TaintUnreachable,
		membership.TaintNotReady,
		"membership.muster.dev/other",
		"example.com/a",
		"b",
	}
	effects := []corev1.TaintEffect{
		corev1.TaintEffectNoExecute,
		corev1.TaintEffectNoSchedule,
		corev1.TaintEffectPreferNoSchedule,
	}
	reasons := []string{
		v1alpha1.ReasonHeartbeatLost,
		v1alpha1.ReasonHeartbeatUnsteady,
		v1alpha1.ReasonHeartbeatAwaited,
		v1alpha1.ReasonNotJoined,
		v1alpha1.ReasonHeartbeating,
	}
	rapid.Check(t, func(t *rapid.T) {
		o := TaintsObserved{
			Now: anyTime(t, "now"), In: rapid.Bool().Draw(t, "in"), Suspended: rapid.Bool().Draw(t, "suspended"),
			Healthy: metav1.Condition{
				Status: rapid.SampledFrom([]metav1.ConditionStatus{"", "True", "False", "Unknown"}).Draw(t, "status"),
				Reason: rapid.SampledFrom(reasons).Draw(t, "reason"), LastTransitionTime: metav1.NewTime(anyTime(t, "since")),
			},
		}
		for i := range rapid.IntRange(0, 6).Draw(t, "taints") {
			taint := v1alpha1.Taint{
				Key:    rapid.SampledFrom(keys).Draw(t, "key"),
				Effect: rapid.SampledFrom(effects).Draw(t, "effect"),
				Value:  string(rune('a' + i)),
			}
			if rapid.Bool().Draw(t, "dated") {
				taint.TimeAdded = &metav1.Time{Time: anyTime(t, "added")}
			}
			o.Taints = append(o.Taints, taint)
		}
		before := slices.Clone(o.Taints)
		got, after := Taints(o)
		if !cmp.Equal(before, o.Taints) {
			t.Fatalf("Taints changes its argument")
		}
		split := func(taints []v1alpha1.Taint) (users, hubs []v1alpha1.Taint) {
			for _, taint := range taints {
				if ours(taint) {
					hubs = append(hubs, taint)
				} else {
					users = append(users, taint)
				}
			}
			return users, hubs
		}
		wantUsers, had := split(o.Taints)
		users, hubs := split(got)
		if diff := cmp.Diff(wantUsers, users); diff != "" {
			t.Fatalf("taints of users change (-want +got):\n%s", diff)
		}
		if len(hubs) > 1 ||
			len(hubs) > 0 && (!o.In || hubs[0].TimeAdded == nil || hubs[0].Effect != corev1.TaintEffectNoExecute) {
			t.Fatalf("invalid taints of the hub: %+v", hubs)
		}
		if len(hubs) > 0 && o.Suspended &&
			!slices.ContainsFunc(had, func(t v1alpha1.Taint) bool { return t.Key == hubs[0].Key }) {
			t.Fatalf("a taint is added while taints are suspended")
		}
		if after < 0 || after > NotReadyAfter {
			t.Fatalf("invalid requeue after %s", after)
		}
		o.Taints = got
		again, _ := Taints(o)
		if diff := cmp.Diff(got, again); diff != "" {
			t.Fatalf("a repeated decision changes the taints (-first +second):\n%s", diff)
		}
		if !o.Healthy.LastTransitionTime.After(o.Now) {
			o.Now = o.Now.Add(after)
			if _, more := Taints(o); after > 0 && more > 0 {
				t.Fatalf("no decision after the requeue: want no further wait, got %s", more)
			}
		}
	})
}
