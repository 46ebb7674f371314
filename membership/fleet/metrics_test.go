package fleet_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/muster-sdk/muster/membership/fleet"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest/localplane"
)

// measured returns the values of a metric by its labels, and for a histogram the number of observations.
func measured(t testing.TB, name string) map[string]int {
	t.Helper()
	families, err := ctrlmetrics.Registry.Gather()
	require.NoError(t, err)
	values := map[string]int{}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			var labels []string
			for _, pair := range m.GetLabel() {
				labels = append(labels, pair.GetValue())
			}
			values[strings.Join(labels, " ")] = int(m.GetCounter().GetValue()+m.GetGauge().GetValue()) +
				int(m.GetHistogram().GetSampleCount())
		}
	}
	return values
}

// runners returns the numbers of members by state of one runner.
func runners(t testing.TB, name string) map[string]int {
	t.Helper()
	states := measured(t, "muster_fleet_runners")
	maps.DeleteFunc(states, func(labels string, _ int) bool { return !strings.HasPrefix(labels, name+" ") })
	return states
}

// TestMetrics checks the values of the metrics, and that the number of series does not depend on the number of
// members.
func TestMetrics(t *testing.T) {
	runner := newRecorder()
	runner.run = func(ctx context.Context, member fleet.Connected) error {
		if member.Cluster.Name == "metrics-broken" {
			return errors.New("broken")
		}
		<-ctx.Done()
		return nil
	}
	h := startHub(t, newMemory(t), fleet.Options{Runners: []fleet.Runner{runner}, ProbeTimeout: 400 * time.Millisecond})
	requireMembers := func(want map[string]int) {
		t.Helper()
		all := map[string]int{
			"Connecting": 0, "Reachable": 0, "Unreachable": 0, "Unauthorized": 0, "KubeConfigMissing": 0,
			"KubeConfigInvalid": 0, "OtherCluster": 0,
		}
		maps.Copy(all, want)
		h.Eventually("members are counted", func() error {
			got := measured(t, "muster_fleet_members")
			return orError(maps.Equal(all, got), "want %v, got %v", all, got)
		})
	}
	requireMembers(nil)
	f := newFake(t, uidA)
	proxy, err := localplane.NewProxy(f.URL)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, proxy.Close()) })
	stalled := f.data()
	stalled["server"] = "https://" + proxy.Addr()
	proxy.Stall()

	h.member("metrics-good", f.data())
	h.member("metrics-stalled", stalled)
	h.member("metrics-missing", nil)
	h.member("metrics-broken", f.data())
	requireMembers(map[string]int{"Reachable": 2, "Unreachable": 1, "KubeConfigMissing": 1})
	h.Eventually("the runner is counted by its current state", func() error {
		failed, got := measured(t, "muster_fleet_runner_failures_total")["recorder"], runners(t, "recorder")
		now := map[string]int{"recorder Running": 2, "recorder Failing": 1, "recorder Overdue": 0}
		return orError(failed >= 2 && maps.Equal(now, got), "%v after %d failures", got, failed)
	})
	require.Zero(t, measured(t, "muster_fleet_runner_failures_total")["live cluster"])
	probes := measured(t, "muster_fleet_probe_duration_seconds")
	require.Positive(t, probes[v1alpha1.ReasonReachable])
	require.Positive(t, probes[v1alpha1.ReasonUnreachable])
	require.Len(t, probes, 2)

	proxy.Heal()
	requireMembers(map[string]int{"Reachable": 3, "KubeConfigMissing": 1})
	f.token.Store("another")
	requireMembers(map[string]int{"Unauthorized": 3, "KubeConfigMissing": 1})
	h.change("metrics-good", func(m *v1alpha1.MemberCluster) { m.Spec.KubeConfigSecretRef = nil })
	require.NoError(t, h.Client.Delete(t.Context(), h.get("metrics-stalled")))
	requireMembers(map[string]int{"Unauthorized": 1, "KubeConfigMissing": 1})

	problems, err := testutil.GatherAndLint(ctrlmetrics.Registry,
		"muster_fleet_members", "muster_fleet_probe_duration_seconds", "muster_fleet_runners",
		"muster_fleet_runner_failures_total")
	require.NoError(t, err)
	require.Empty(t, problems)
	h.stop()
	require.Empty(t, measured(t, "muster_fleet_members"), "a stopped fleet has no metrics")
}
