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

func TestTurns(t *testing.T) {
	fleet := func(standings ...progress) (out []memberEntry) {
		for i, each := range standings {
			out = append(out, memberEntry{UID: types.UID(fmt.Sprint(i)), Name: fmt.Sprint(i), Progress: each, Running: true})
		}
		return out
	}
	granted := fleet(waitsAlive, waitsAlive, done)
	granted[0].Granted = true
	unconnected := fleet(waitsAlive, waitsAlive)
	unconnected[0].Running = false
	for _, test := range []struct {
		reason string
		seats  []memberEntry
		want   []types.UID
	}{
		{"no members", nil, nil},
		{"the first goes alone", fleet(waitsAlive, waitsAlive, waitsAlive), []types.UID{"0"}},
		{"and has not shown yet that it is healthy", fleet(inProgress, waitsAlive, waitsAlive), nil},
		{"then so many at a time", fleet(done, waitsAlive, waitsAlive, waitsAlive), []types.UID{"1", "2"}},
		{"of which one is under way", fleet(done, inProgress, waitsAlive, waitsAlive), []types.UID{"2"}},
		{"or was told to be, and does not show it", granted, []types.UID{"1"}},
		{"more are in progress than the limit, because of requests",
			fleet(done, inProgress, inProgress, inProgress, waitsAlive), nil},
		{"one has failed: the rest waits", fleet(done, failed, waitsAlive), nil},
		{"what is broken comes first, and what is silent last", fleet(waitsSilent, waitsAlive, waitsUnhealthy),
			[]types.UID{"2"}},
		{"members outside of the rollout delay no others", fleet(excluded, waitsSilent), []types.UID{"1"}},
		{"the hub has no connection to it yet", unconnected, []types.UID{"1"}},
	} {
		require.Equal(t, test.want, grantPermits(test.seats, 2), test.reason)
	}
}

func TestProgressOf(t *testing.T) {
	is := func(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason}
	}
	const yes, no, unknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	member := func(hash, shown string, more ...metav1.Condition) *v1alpha1.MemberCluster {
		c := &v1alpha1.MemberCluster{Spec: v1alpha1.MemberClusterSpec{JoinMode: v1alpha1.JoinInstall, Accepted: new(true)}}
		c.Status.Install = &v1alpha1.InstallStatus{Hash: hash}
		c.Status.Conditions = append([]metav1.Condition{
			is(v1alpha1.ConditionJoined, yes, v1alpha1.ReasonAgentJoined), is(v1alpha1.ConditionInstalled, no, shown),
		}, more...)
		return c
	}
	with := func(c *v1alpha1.MemberCluster, change func(*v1alpha1.MemberCluster)) *v1alpha1.MemberCluster {
		change(c)
		return c
	}
	healthy, silent := is(v1alpha1.ConditionHealthy, yes, v1alpha1.ReasonHeartbeating),
		is(v1alpha1.ConditionHealthy, unknown, v1alpha1.ReasonHeartbeatLost)
	away := is(v1alpha1.ConditionReachable, no, v1alpha1.ReasonUnreachable)
	const installed, waiting = v1alpha1.ReasonInstalled, v1alpha1.ReasonInstallWaiting
	for _, test := range []struct {
		reason  string
		cluster *v1alpha1.MemberCluster
		want    progress
	}{
		{"it has it", member("new", installed, healthy), done},
		{"it has it, and its cluster is not ready, which is not the agent's fault",
			member("new", installed, is(v1alpha1.ConditionHealthy, no, v1alpha1.ReasonClusterNotReady)), done},
		{"it has it and proves nothing", member("new", installed, silent), excluded},
		{"it has not", member("old", installed, healthy), waitsAlive},
		{"and shows that it waits", member("old", waiting, healthy), waitsAlive},
		{"it is silent", member("old", waiting, silent), waitsSilent},
		{"an earlier revision broke it", member("old", v1alpha1.ReasonAgentNotHealthy, silent), waitsUnhealthy},
		{"or may have", member("old", v1alpha1.ReasonAgentStarting, healthy), waitsUnhealthy},
		{"it has begun", member("old", v1alpha1.ReasonInstalling, healthy), inProgress},
		{"it was installed", member("new", v1alpha1.ReasonAgentStarting, healthy), inProgress},
		{"it could not be installed", member("old", v1alpha1.ReasonInstallFailed, healthy), failed},
		{"it was installed, and is not healthy", member("new", v1alpha1.ReasonAgentNotHealthy, silent), failed},
		{"nor is it reached", member("new", v1alpha1.ReasonAgentNotHealthy, silent, away), failed},
		{"it is installed already, and a user requests it once more", member("new", v1alpha1.ReasonInstallFailed, healthy),
			done},
		{"it is not reached, and cannot begin", member("old", waiting, silent, away), excluded},
		{"it is not reached, which says nothing about what is installed",
			member("old", v1alpha1.ReasonInstallFailed, silent, away), excluded},
		{"it cannot be reached any more", member("old", v1alpha1.ReasonInstalling, silent, away),
			excluded},
		{"it was never installed",
			with(member("old", installed, healthy), func(c *v1alpha1.MemberCluster) { c.Status.Install = nil }), excluded},
		{"its agent has not come yet",
			with(member("old", installed, healthy), func(c *v1alpha1.MemberCluster) { c.Status.Conditions[0].Status = no }),
			excluded},
		{"it leaves", with(member("old", installed, healthy),
			func(c *v1alpha1.MemberCluster) { c.Spec.State = v1alpha1.StateLeave }), excluded},
		{"it is not let in", with(member("old", installed, healthy),
			func(c *v1alpha1.MemberCluster) { c.Spec.Accepted = nil }), excluded},
		{"its agent is not installed by the hub",
			with(member("old", installed, healthy), func(c *v1alpha1.MemberCluster) { c.Spec.JoinMode = v1alpha1.JoinPull }),
			excluded},
	} {
		require.Equal(t, test.want, progressOf(test.cluster, "new"), test.reason)
	}
}

// TestRolloutOfMany checks, for random events and restarts of the hub, that the limit is never exceeded, that the
// first agent is installed alone, that none starts while one has failed, and that the rollout completes when all
// agents become healthy.
func TestRolloutOfMany(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		concurrent := rapid.IntRange(1, 4).Draw(t, "concurrent")
		seats := make([]memberEntry, rapid.IntRange(1, 12).Draw(t, "members"))
		for i := range seats {
			progress := rapid.SampledFrom([]progress{waitsUnhealthy, waitsAlive, waitsAlive, waitsSilent, excluded}).Draw(t,
				"standing")
			seats[i] = memberEntry{UID: types.UID(fmt.Sprint(i)), Name: fmt.Sprint(i), Progress: progress,
				Running: rapid.Bool().Draw(t, "running")}
		}
		count := func(of func(memberEntry) bool) (n int) {
			for _, each := range seats {
				if of(each) {
					n++
				}
			}
			return n
		}
		busy := func(s memberEntry) bool { return s.Progress == inProgress || s.Granted }
		notify := func() {
			allowed := grantPermits(seats, concurrent)
			proven, broken := count(func(s memberEntry) bool { return s.Progress == done }) > 0,
				count(func(s memberEntry) bool { return s.Progress == failed }) > 0
			if len(allowed) > 0 && broken {
				t.Fatal("one has failed, and others go on")
			}
			for _, uid := range allowed {
				for i := range seats {
					if seats[i].UID == uid {
						if !seats[i].Progress.waits() || seats[i].Granted || !seats[i].Running {
							t.Fatalf("%+v is told to go", seats[i])
						}
						seats[i].Granted = true
					}
				}
			}
			if n := count(busy); n > concurrent || len(allowed) > 0 && !proven && n > 1 {
				t.Fatalf("%d are under way", n)
			}
		}
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			notify()
			s := &seats[rapid.IntRange(0, len(seats)-1).Draw(t, "member")]
			switch event := rapid.IntRange(0, 9).Draw(t, "event"); {
			case event == 0: // what begun is shown, what did not begin is not known any more
				for i := range seats {
					if seats[i].Granted && rapid.Bool().Draw(t, "begun") {
						seats[i].Progress = inProgress
					}
					seats[i].Granted = false
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
				s.Progress = inProgress // it was tried again
			}
		}
		for range 3 * len(seats) {
			for i := range seats {
				seats[i].Running = true
				switch s := &seats[i]; {
				case s.Granted, s.Progress == inProgress, s.Progress == failed:
					s.Progress, s.Granted = done, false
				}
			}
			notify()
		}
		if left := count(func(s memberEntry) bool { return s.Progress.waits() }); left > 0 {
			t.Fatalf("%d have never had their turn", left)
		}
	})
}
