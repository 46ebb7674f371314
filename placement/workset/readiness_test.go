package workset

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-sdk/muster/scheduler"
)

func name(text string) types.NamespacedName {
	return types.NamespacedName{Namespace: "shop", Name: text}
}

func TestReadiness(t *testing.T) {
	r := NewReadiness()
	r.await(nil)
	var notified []string
	stop, err := r.Notify(t.Context(),
		func(placement types.NamespacedName) { notified = append(notified, placement.Name) })
	require.NoError(t, err)
	at := func(placement string, clusters ...string) availability {
		s := availability{placements: []types.NamespacedName{name(placement)}, ready: map[string]bool{}}
		for _, c := range clusters {
			s.ready[c] = true
		}
		return s
	}
	require.True(t, r.Ready(name("eu"), "east"), "no WorkSet refers to the Placement")
	r.set(name("web"), at("eu", "east"))
	require.Equal(t, []string{"eu"}, notified)
	require.True(t, r.Ready(name("eu"), "east"))
	require.False(t, r.Ready(name("eu"), "west"), "the WorkSet is not ready on the cluster")
	require.True(t, r.Ready(name("us"), "west"), "another placement")
	r.set(name("db"), at("eu"))
	require.False(t, r.Ready(name("eu"), "east"), "one of two WorkSets is not ready on the cluster")
	r.set(name("db"), at("us"))
	require.True(t, r.Ready(name("eu"), "east"))
	require.False(t, r.Ready(name("us"), "east"))
	require.ElementsMatch(t, []string{"eu", "eu", "eu", "us"}, notified,
		"the former Placement of the WorkSet is notified as well")
	r.set(name("db"), at("us"))
	require.Len(t, notified, 4, "unchanged readiness")
	r.set(name("db"), availability{})
	require.True(t, r.Ready(name("us"), "east"), "the WorkSet does not exist")
	require.Len(t, notified, 5)
	stop()
	r.set(name("web"), availability{})
	require.Len(t, notified, 5)
}

// TestReadiness_NotifyWaits checks that decisions use no unknown readiness, and do not wait for it without a limit.
func TestReadiness_NotifyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewReadiness()
		known := make(chan error, 1)
		go func() {
			_, err := r.Notify(t.Context(), func(types.NamespacedName) {})
			known <- err
		}()
		for _, step := range []func(){
			func() { r.reconciled(name("early")) },
			func() { r.await([]types.NamespacedName{name("a"), name("b")}) },
			func() { r.reconciled(name("a")) },
			func() { r.reconciled(name("a")) },
		} {
			step()
			synctest.Wait()
			require.Empty(t, known)
		}
		r.reconciled(name("b"))
		require.NoError(t, <-known)

		_, err := NewReadiness().Notify(t.Context(), func(types.NamespacedName) {})
		require.ErrorContains(t, err, "workset.Options.Readiness")
		ended, end := context.WithCancel(t.Context())
		end()
		_, err = NewReadiness().Notify(ended, func(types.NamespacedName) {})
		require.ErrorIs(t, err, context.Canceled)
	})
}

// TestReadiness_LeavingCluster checks that the Works of a leaving member, which its leave deletes, are not created
// again before the controller observes that the member is not chosen any more.
func TestReadiness_LeavingCluster(t *testing.T) {
	l := &reconciliation{state: newState(name("web"))}
	leaving := &target{name: "east", namespace: "member-east", assigned: assignment{revision: "web-1"},
		cluster: &scheduler.Cluster{Name: "east", Joined: true, Leaving: true}}
	require.False(t, leaving.writable())
	require.Equal(t, evaluation{waits: "The cluster is leaving the fleet."}, l.plan(leaving))
}
