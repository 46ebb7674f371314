package regions_test

import (
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/examples/regions"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/fleet"
	"github.com/muster-sdk/muster/mustertest/localplane"
)

func TestRegions(t *testing.T) {
	plane := mustertest.StartPlane(t, localplane.Options{})
	hub := fleet.StartHub(t, plane.Config(),
		fleet.HubOptions{Setups: []func(manager.Manager) error{regions.SetupWithManager}})
	hub.JoinHollow(3, fleet.HollowOptions{Configure: func(i int, o *agent.Options) {
		o.Name = []string{"paris", "berlin", "boston"}[i]
		o.Labels = map[string]string{regions.Label: []string{"europe", "europe", "america"}[i]}
	}})
	expect := func(what string, want map[string]string) {
		mustertest.Holds(t, time.Minute, what, func() bool {
			var got corev1.ConfigMap
			return hub.Client().Get(t.Context(), regions.Key, &got) == nil && maps.Equal(got.Data, want)
		})
	}
	expect("three members are counted", map[string]string{"europe": "2", "america": "1"})

	var berlin v1alpha1.MemberCluster
	berlin.Name = "berlin"
	require.NoError(t, hub.Client().Delete(t.Context(), &berlin))
	expect("a member that leaves is not counted", map[string]string{"europe": "1", "america": "1"})
}
