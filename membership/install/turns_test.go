package install

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

func TestGrantPermits(t *testing.T) {
	fleet := func(progresses ...progress) (out []memberEntry) {
		for i, each := range progresses {
			out = append(out, memberEntry{UID: types.UID(fmt.Sprint(i)), Name: fmt.Sprint(i), Progress: each, Running: true})
		}
		return out
	}
	granted := fleet(waitsAlive, waitsAlive, done)
	granted[0].Granted = true
	unconnected := fleet(waitsAlive, waitsAlive)
	unconnected[0].Running = false
	for _, test := range []struct {
		reason  string
		members []memberEntry
		want    []types.UID
	}{
		{"no members", nil, nil},
		{"the first member is updated alone", fleet(waitsAlive, waitsAlive, waitsAlive), []types.UID{"0"}},
		{"no permit while the first member is in progress", fleet(inProgress, waitsAlive, waitsAlive), nil},
		{"two permits after the first member is done",
			fleet(done, waitsAlive, waitsAlive, waitsAlive), []types.UID{"1", "2"}},
		{"one permit while one member is in progress", fleet(done, inProgress, waitsAlive, waitsAlive), []types.UID{"2"}},
		{"one permit while one member has a permit", granted, []types.UID{"1"}},
		{"no permit while more members than the limit are in progress",
			fleet(done, inProgress, inProgress, inProgress, waitsAlive), nil},
		{"no permit while one member has failed", fleet(done, failed, waitsAlive), nil},
		{"unhealthy members are first", fleet(waitsSilent, waitsAlive, waitsUnhealthy),
			[]types.UID{"2"}},
		{"members outside of the rollout delay no others", fleet(excluded, waitsSilent), []types.UID{"1"}},
		{"a member without a connection is skipped", unconnected, []types.UID{"1"}},
	} {
		require.Equal(t, test.want, grantPermits(test.members, 2), test.reason)
	}
}

func TestProgressOf(t *testing.T) {
	conditionOf := func(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason}
	}
	const yes, no, unknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	member := func(hash, shown string, more ...metav1.Condition) *v1alpha1.MemberCluster {
		c := &v1alpha1.MemberCluster{Spec: v1alpha1.MemberClusterSpec{JoinMode: v1alpha1.JoinInstall, Accepted: new(true)}}
		c.Status.Install = &v1alpha1.InstallStatus{Hash: hash}
		c.Status.Conditions = append([]metav1.Condition{
			conditionOf(v1alpha1.ConditionJoined, yes, v1alpha1.ReasonAgentJoined),
			conditionOf(v1alpha1.ConditionInstalled, no, shown),
		}, more...)
		return c
	}
	with := func(c *v1alpha1.MemberCluster, change func(*v1alpha1.MemberCluster)) *v1alpha1.MemberCluster {
		change(c)
		return c
	}
	healthy, silent := conditionOf(v1alpha1.ConditionHealthy, yes, v1alpha1.ReasonHeartbeating),
		conditionOf(v1alpha1.ConditionHealthy, unknown, v1alpha1.ReasonHeartbeatLost)
	unreachable := conditionOf(v1alpha1.ConditionReachable, no, v1alpha1.ReasonUnreachable)
	const installed, waiting = v1alpha1.ReasonInstalled, v1alpha1.ReasonInstallWaiting
	for _, test := range []struct {
		reason  string
		cluster *v1alpha1.MemberCluster
		want    progress
	}{
		{"the current revision on a healthy member", member("new", installed, healthy), done},
		{"the current revision on a member whose cluster is not ready",
			member("new", installed, conditionOf(v1alpha1.ConditionHealthy, no, v1alpha1.ReasonClusterNotReady)), done},
		{"the current revision on a member without heartbeats", member("new", installed, silent), excluded},
		{"an earlier revision on a healthy member", member("old", installed, healthy), waitsAlive},
		{"a healthy member that shows that it waits", member("old", waiting, healthy), waitsAlive},
		{"a waiting member without heartbeats", member("old", waiting, silent), waitsSilent},
		{"an earlier revision is not healthy", member("old", v1alpha1.ReasonAgentNotHealthy, silent), waitsUnhealthy},
		{"an earlier revision is starting", member("old", v1alpha1.ReasonAgentStarting, healthy), waitsUnhealthy},
		{"the installation has begun", member("old", v1alpha1.ReasonInstalling, healthy), inProgress},
		{"the current revision is starting", member("new", v1alpha1.ReasonAgentStarting, healthy), inProgress},
		{"the installation failed", member("old", v1alpha1.ReasonInstallFailed, healthy), failed},
		{"the current revision is not healthy", member("new", v1alpha1.ReasonAgentNotHealthy, silent), failed},
		{"the current revision is not healthy on an unreachable member",
			member("new", v1alpha1.ReasonAgentNotHealthy, silent, unreachable), failed},
		{"a failed second installation of the current revision", member("new", v1alpha1.ReasonInstallFailed, healthy),
			done},
		{"a waiting member that is unreachable", member("old", waiting, silent, unreachable), excluded},
		{"a failed installation on an unreachable member",
			member("old", v1alpha1.ReasonInstallFailed, silent, unreachable), excluded},
		{"an installation in progress on an unreachable member",
			member("old", v1alpha1.ReasonInstalling, silent, unreachable),
			excluded},
		{"a member without an installation",
			with(member("old", installed, healthy), func(c *v1alpha1.MemberCluster) { c.Status.Install = nil }), excluded},
		{"a member whose agent has not joined",
			with(member("old", installed, healthy), func(c *v1alpha1.MemberCluster) { c.Status.Conditions[0].Status = no }),
			excluded},
		{"a leaving member", with(member("old", installed, healthy),
			func(c *v1alpha1.MemberCluster) { c.Spec.State = v1alpha1.StateLeave }), excluded},
		{"a member that is not accepted", with(member("old", installed, healthy),
			func(c *v1alpha1.MemberCluster) { c.Spec.Accepted = nil }), excluded},
		{"a member with another join mode",
			with(member("old", installed, healthy), func(c *v1alpha1.MemberCluster) { c.Spec.JoinMode = v1alpha1.JoinPull }),
			excluded},
	} {
		require.Equal(t, test.want, progressOf(test.cluster, "new"), test.reason)
	}
}

// TestGrantPermits_Simulation checks, for random events and restarts of the hub, that the limit is never exceeded,
// that the first agent is installed alone, that none starts while one has failed, and that the rollout completes when
// all agents become healthy.
func TestGrantPermits_Simulation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		concurrent := rapid.IntRange(1, 4).Draw(t, "concurrent")
		members := make([]memberEntry, rapid.IntRange(1, 12).Draw(t, "members"))
		for i := range members {
			progress := rapid.SampledFrom([]progress{waitsUnhealthy, waitsAlive, waitsAlive, waitsSilent, excluded}).Draw(t,
				"progress")
			members[i] = memberEntry{UID: types.UID(fmt.Sprint(i)), Name: fmt.Sprint(i), Progress: progress,
				Running: rapid.Bool().Draw(t, "running")}
		}
		count := func(of func(memberEntry) bool) (n int) {
			for _, each := range members {
				if of(each) {
					n++
				}
			}
			return n
		}
		busy := func(s memberEntry) bool { return s.Progress == inProgress || s.Granted }
		permit := func() {
			allowed := grantPermits(members, concurrent)
			anyDone, anyFailed := count(func(s memberEntry) bool { return s.Progress == done }) > 0,
				count(func(s memberEntry) bool { return s.Progress == failed }) > 0
			if len(allowed) > 0 && anyFailed {
				t.Fatal("a permit is granted while a member has failed")
			}
			for _, uid := range allowed {
				for i := range members {
					if members[i].UID == uid {
						if !members[i].Progress.waits() || members[i].Granted || !members[i].Running {
							t.Fatalf("a permit is granted to %+v", members[i])
						}
						members[i].Granted = true
					}
				}
			}
			if n := count(busy); n > concurrent || len(allowed) > 0 && !anyDone && n > 1 {
				t.Fatalf("%d members are in progress", n)
			}
		}
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			permit()
			s := &members[rapid.IntRange(0, len(members)-1).Draw(t, "member")]
			switch event := rapid.IntRange(0, 9).Draw(t, "event"); {
			case event == 0: // the hub restarts: installations in progress are shown, other permits are lost
				for i := range members {
					if members[i].Granted && rapid.Bool().Draw(t, "begun") {
						members[i].Progress = inProgress
					}
					members[i].Granted = false
				}
			case event == 1:
				s.Running = !s.Running
			case event == 2 && s.Progress.waits() && !s.Granted:
				s.Progress = excluded
			case event == 3 && s.Progress == excluded:
				s.Progress = waitsAlive
			case s.Granted:
				s.Progress, s.Granted = inProgress, false
			case s.Progress == inProgress && event > 7:
				s.Progress = failed
			case s.Progress == inProgress:
				s.Progress = done
			case s.Progress == failed && count(busy) < concurrent && event > 7:
				s.Progress = inProgress // the installation is retried
			}
		}
		for range 3 * len(members) {
			for i := range members {
				members[i].Running = true
				switch s := &members[i]; {
				case s.Granted, s.Progress == inProgress, s.Progress == failed:
					s.Progress, s.Granted = done, false
				}
			}
			permit()
		}
		if left := count(func(s memberEntry) bool { return s.Progress.waits() }); left > 0 {
			t.Fatalf("%d members never got a permit", left)
		}
	})
}
