package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/examples/custom-plugin/carbon"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/apiserver"
	"github.com/muster-sdk/muster/placement"
	placementcrds "github.com/muster-sdk/muster/placement/crds"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// TestPlacement_DecidedByThePlugin checks that the placement controller decides a Placement with the profile that
// contains the plugin. The clusters are ConfigMaps.
func TestPlacement_DecidedByThePlugin(t *testing.T) {
	server, err := apiserver.New(apiserver.Options{})
	require.NoError(t, err)
	t.Cleanup(server.Close)
	scheme := mustertest.Scheme(v1alpha1.AddToScheme)
	c := mustertest.Client(t, server.Admin(), scheme, placementcrds.Install)
	for name, grams := range map[string]string{"north": "28", "inland": "710", "south": "174"} {
		require.NoError(t, c.Create(t.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", Name: name, Labels: map[string]string{"cluster": "true"},
				Annotations: map[string]string{intensity: grams},
			},
		}))
	}
	mustertest.StartManager(t, server.Admin(), manager.Options{Scheme: scheme}, func(mgr manager.Manager) error {
		s, err := newScheduler()
		if err != nil {
			return err
		}
		return placement.SetupWithManager(mgr, placement.Options{
			Decider: s,
			Clusters: placement.Objects(mgr.GetCache(), &corev1.ConfigMap{}, func(m *corev1.ConfigMap) *scheduler.Cluster {
				if m.Labels["cluster"] != "true" {
					return nil
				}
				return &scheduler.Cluster{Name: m.Name, Joined: true, Healthy: true, Properties: m.Annotations}
			}),
		})
	})

	shop := &v1alpha1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "shop"}}
	shop.Spec.Policy = v1alpha1.PlacementPolicy{Type: v1alpha1.PickN, NumberOfClusters: new(int32(1))}
	require.NoError(t, c.Create(t.Context(), shop))
	mustertest.Holds(t, time.Minute, "the plugin prefers the cluster with the lowest intensity", func() bool {
		return chosen(t.Context(), t, c, shop.Name) == "north"
	})

	all := &v1alpha1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "all"}}
	require.NoError(t, c.Create(t.Context(), all))
	mustertest.Holds(t, time.Minute, "the plugin excludes the cluster above the limit", func() bool {
		return chosen(t.Context(), t, c, all.Name) == "north south"
	})

	// The hub explains its decision on request, with the reasons of the plugin.
	explain := func(value string) {
		t.Helper()
		require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(all), all))
		before := all.DeepCopy()
		all.Annotations = map[string]string{v1alpha1.ExplainAnnotation: value}
		require.NoError(t, c.Patch(t.Context(), all, client.MergeFrom(before)))
	}
	explain("first")
	mustertest.Eventually(t, time.Minute, "the hub has explained the Placement", func() error {
		require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(all), all))
		if e := all.Status.Explanation; e == nil || e.Request != "first" {
			return fmt.Errorf("got explanation %+v", e)
		}
		return nil
	})
	got := all.Status.Explanation
	require.Equal(t, "2 of 3 clusters chosen; 1 "+got.Clusters[2].Reason, got.Message)
	require.Len(t, got.Clusters, 3)
	require.Equal(t, "north", got.Clusters[0].Name, "the best first")
	require.Equal(t, "Chosen", got.Clusters[1].Result)
	require.NotEmpty(t, got.Clusters[1].Score)
	require.Equal(t, v1alpha1.ClusterExplanation{
		Name: "inland", Result: "Rejected", Plugin: carbon.Name, Reason: got.Clusters[2].Reason,
	}, got.Clusters[2])
	require.Contains(t, got.Clusters[2].Reason, "400")
	explain("")
	mustertest.Eventually(t, time.Minute, "the explanation is removed", func() error {
		require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(all), all))
		if all.Status.Explanation != nil {
			return fmt.Errorf("got explanation %+v", all.Status.Explanation)
		}
		return nil
	})
}

// chosen returns the names of the clusters of a Placement, sorted.
func chosen(ctx context.Context, t *testing.T, c client.Client, placement string) (names string) {
	t.Helper()
	var decisions v1alpha1.PlacementDecisionList
	require.NoError(t, c.List(ctx, &decisions, client.MatchingLabels{v1alpha1.PlacementLabel: placement}))
	for _, slice := range decisions.Items {
		for _, decision := range slice.Decisions {
			if names != "" {
				names += " "
			}
			names += decision.ClusterName
		}
	}
	return names
}
