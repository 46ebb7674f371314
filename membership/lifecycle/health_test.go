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
			name: "not in", reason: "no heartbeats are expected of it",
			o:    HealthObserved{NotJoined: "The cluster has left.", Heartbeat: HeartbeatHeard, Agent: &notReady},
			want: healthy(unknown, v1alpha1.ReasonNotJoined, "The cluster has left."),
		},
		{
			name: "not in, and no reason given", reason: "a condition always says something",
			o:    HealthObserved{},
			want: healthy(unknown, v1alpha1.ReasonNotJoined, "The cluster has not joined."),
		},
		{
			name: "heard", reason: "silence about its cluster is no complaint",
			o:    HealthObserved{Joined: true, Heartbeat: HeartbeatHeard, Agent: &metav1.Condition{Status: unknown}},
			want: healthy(yes, v1alpha1.ReasonHeartbeating, "Heartbeats arrive."),
		},
		{
			name: "heard, cluster not ready", reason: "the agent's words say what is wrong",
			o:    HealthObserved{Joined: true, Heartbeat: HeartbeatHeard, Agent: &notReady},
			want: notReady,
		},
		{
			name: "heard, cluster not ready without a word", reason: "a condition always says something",
			o:    HealthObserved{Joined: true, Heartbeat: HeartbeatHeard, Agent: &metav1.Condition{Status: no}},
			want: healthy(no, v1alpha1.ReasonClusterNotReady, "The agent reports that its cluster is not ready."),
		},
		{
			name: "lost", reason: "what the agent said before says nothing about now; the message stays the same while it lasts",
			o: HealthObserved{Joined: true, Heartbeat: HeartbeatLost, Heard: epoch, Since: epoch.Add(195 * time.Second),
				Grace: 195 * time.Second, Agent: &notReady},
			want: healthy(unknown, v1alpha1.ReasonHeartbeatLost, "No heartbeat since 2026-01-01T00:00:00Z (grace 3m15s)."),
		},
		{
			name: "never heard", reason: "it joined and fell silent before its first heartbeat, or while the hub was away",
			o:    HealthObserved{Joined: true, Heartbeat: HeartbeatLost, Grace: 195 * time.Second},
			want: healthy(unknown, v1alpha1.ReasonHeartbeatLost, "No heartbeat since the hub started to observe (grace 3m15s)."),
		},
		{
			name: "lost with most others", reason: "the message says why nothing happens",
			o: HealthObserved{Joined: true, Heartbeat: HeartbeatLost, Heard: epoch, Grace: time.Minute,
				Suspended: epoch.Add(time.Second)},
			want: healthy(unknown, v1alpha1.ReasonHeartbeatLost, "No heartbeat since 2026-01-01T00:00:00Z (grace 1m0s). "+
				"Taints and failover are withheld: so many members have been silent or not ready since 2026-01-01T00:00:01Z that "+
				"the hub itself may be the cause. Check the network of the hub."),
		},
		{
			name: "not ready with most others", reason: "the message of the agent comes first",
			o: HealthObserved{Joined: true, Heartbeat: HeartbeatHeard,
				Agent: &metav1.Condition{Status: no, Message: "The API server is not ready"}, Suspended: epoch},
			want: healthy(no, v1alpha1.ReasonClusterNotReady, "The API server is not ready. Taints and failover are withheld: "+
				"so many members have been silent or not ready since 2026-01-01T00:00:00Z that the hub itself may be the cause. "+
				"Check the network of the hub."),
		},
		{
			name: "lost after an outage", reason: "the member has a fresh grace",
			o: HealthObserved{Joined: true, Heartbeat: HeartbeatLost, Heard: epoch, Grace: time.Minute,
				SuspendedUntil: epoch.Add(time.Hour)},
			want: healthy(unknown, v1alpha1.ReasonHeartbeatLost, "No heartbeat since 2026-01-01T00:00:00Z (grace 1m0s). "+
				"Taints and failover are withheld until 2026-01-01T01:00:00Z, after an outage."),
		},
		{
			name: "unsteady", reason: "a member that flaps does not flap here",
			o: HealthObserved{Joined: true, Heartbeat: HeartbeatUnsteady, Since: epoch, Hold: time.Minute},
			want: healthy(unknown, v1alpha1.ReasonHeartbeatUnsteady,
				"Heartbeats arrive again after repeated interruptions. The member becomes healthy when heartbeats have arrived "+
					"for 1m0s since 2026-01-01T00:00:00Z."),
		},
		{
			name: "hub restarted", reason: "the hub was away and not the member, so what was known stands",
			o:    HealthObserved{Joined: true, Heartbeat: HeartbeatAwaited, Recorded: &notReady},
			want: notReady,
		},
		{
			name: "just joined", reason: "that it was not in is no longer so",
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
	users := v1alpha1.Taint{Key: "example.com/maintenance", Effect: corev1.TaintEffectNoSchedule}
	more := v1alpha1.Taint{Key: membership.TaintNotReady + "-yet", Effect: corev1.TaintEffectNoExecute}
	is := func(status metav1.ConditionStatus, reason string, ago time.Duration) metav1.Condition {
		return metav1.Condition{Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(epoch.Add(-ago))}
	}
	lost := func(ago time.Duration) metav1.Condition {
		return is(metav1.ConditionUnknown, v1alpha1.ReasonHeartbeatLost, ago)
	}
	failing := func(ago time.Duration) metav1.Condition {
		return is(metav1.ConditionFalse, v1alpha1.ReasonClusterNotReady, ago)
	}
	fine := func(ago time.Duration) metav1.Condition {
		return is(metav1.ConditionTrue, v1alpha1.ReasonHeartbeating, ago)
	}
	for _, test := range []struct {
		name   string
		reason string
		o      TaintsObserved
		want   []v1alpha1.Taint
		after  time.Duration
	}{
		{
			name: "lost", reason: "the grace was time enough",
			o:    TaintsObserved{In: true, Healthy: lost(0), Taints: []v1alpha1.Taint{users}},
			want: []v1alpha1.Taint{users, taint(membership.TaintUnreachable, &now)},
		},
		{
			name: "still lost", reason: "toleration seconds count from when it was put on",
			o:    TaintsObserved{In: true, Healthy: lost(time.Hour), Taints: []v1alpha1.Taint{unreachable, users}},
			want: []v1alpha1.Taint{unreachable, users},
		},
		{
			name: "unsteady", reason: "it is as good as lost",
			o: TaintsObserved{In: true, Healthy: is(metav1.ConditionUnknown, v1alpha1.ReasonHeartbeatUnsteady, 0),
				Taints: []v1alpha1.Taint{unreachable}},
			want: []v1alpha1.Taint{unreachable},
		},
		{
			name: "lost, suspended", reason: "the hub suspects itself",
			o:    TaintsObserved{In: true, Healthy: lost(time.Hour), Suspended: true, Taints: []v1alpha1.Taint{users}},
			want: []v1alpha1.Taint{users},
		},
		{
			name: "was lost before, suspended", reason: "those that are there stay",
			o:    TaintsObserved{In: true, Healthy: lost(time.Hour), Suspended: true, Taints: []v1alpha1.Taint{unreachable}},
			want: []v1alpha1.Taint{unreachable},
		},
		{
			name: "awaited", reason: "a hub that restarts changes nothing",
			o: TaintsObserved{In: true, Healthy: is(metav1.ConditionUnknown, v1alpha1.ReasonHeartbeatAwaited, time.Hour),
				Taints: []v1alpha1.Taint{notReady}},
			want: []v1alpha1.Taint{notReady},
		},
		{
			name: "just not ready", reason: "an API server may restart",
			o:    TaintsObserved{In: true, Healthy: failing(20 * time.Second), Taints: []v1alpha1.Taint{users}},
			want: []v1alpha1.Taint{users}, after: 10 * time.Second,
		},
		{
			name: "not ready", reason: "30 s are enough",
			o:    TaintsObserved{In: true, Healthy: failing(30 * time.Second), Taints: []v1alpha1.Taint{users}},
			want: []v1alpha1.Taint{users, taint(membership.TaintNotReady, &now)},
		},
		{
			name: "heard again, and just not ready", reason: "until the one is due the other stays, so that it does not flap " +
				"in between",
			o:    TaintsObserved{In: true, Healthy: failing(0), Taints: []v1alpha1.Taint{unreachable}},
			want: []v1alpha1.Taint{unreachable}, after: 30 * time.Second,
		},
		{
			name: "heard again, and not ready", reason: "one takes the place of the other",
			o:    TaintsObserved{In: true, Healthy: failing(time.Minute), Taints: []v1alpha1.Taint{unreachable, users}},
			want: []v1alpha1.Taint{users, taint(membership.TaintNotReady, &now)},
		},
		{
			name: "just well again", reason: "it has to hold",
			o:    TaintsObserved{In: true, Healthy: fine(3 * time.Second), Taints: []v1alpha1.Taint{unreachable}},
			want: []v1alpha1.Taint{unreachable}, after: 7 * time.Second,
		},
		{
			name: "well again", reason: "10 s are enough, and the hub's suspicion of itself keeps nothing on",
			o: TaintsObserved{In: true, Healthy: fine(10 * time.Second), Suspended: true,
				Taints: []v1alpha1.Taint{users, unreachable, more}},
			want: []v1alpha1.Taint{users, more},
		},
		{
			name: "leaving", reason: "it is unschedulable anyway, and what it holds goes by the leave",
			o:    TaintsObserved{Healthy: lost(time.Hour), Taints: []v1alpha1.Taint{unreachable, users}},
			want: []v1alpha1.Taint{users},
		},
		{
			name: "clock set back", reason: "it waits no longer than the hysteresis",
			o:    TaintsObserved{In: true, Healthy: failing(-time.Hour)},
			want: []v1alpha1.Taint{}, after: 30 * time.Second,
		},
		{
			name: "put on by hand, without a time or otherwise", reason: "toleration seconds need a time to count from, and " +
				"there is one taint of the hub's at most",
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
				t.Errorf("%s: want to look again after %s, got %s (-want +got):\n%s", test.reason, test.after, after, diff)
			}
		})
	}
}

// TestTaintsAlways checks, for all observations, that taints of users stay unchanged, that there is at most one taint
// of the hub, and that a repeated decision changes nothing.
func TestTaintsAlways(t *testing.T) {
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
			t.Fatalf("it changes its argument")
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
			t.Fatalf("users' taints change: %s", diff)
		}
		if len(hubs) > 1 ||
			len(hubs) > 0 && (!o.In || hubs[0].TimeAdded == nil || hubs[0].Effect != corev1.TaintEffectNoExecute) {
			t.Fatalf("the hub's taints are %+v", hubs)
		}
		if len(hubs) > 0 && o.Suspended &&
			!slices.ContainsFunc(had, func(t v1alpha1.Taint) bool { return t.Key == hubs[0].Key }) {
			t.Fatalf("one is put on while the hub suspects itself")
		}
		if after < 0 || after > NotReadyAfter {
			t.Fatalf("after %s", after)
		}
		o.Taints = got
		again, _ := Taints(o)
		if diff := cmp.Diff(got, again); diff != "" {
			t.Fatalf("to ask again changes them: %s", diff)
		}
		if !o.Healthy.LastTransitionTime.After(o.Now) {
			o.Now = o.Now.Add(after)
			if _, more := Taints(o); after > 0 && more > 0 {
				t.Fatalf("it waits again, for %s", more)
			}
		}
	})
}
