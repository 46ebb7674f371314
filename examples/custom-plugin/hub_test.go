package main

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/assembly"
	"github.com/muster-sdk/muster/membership/agent"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/fleet"
	"github.com/muster-sdk/muster/mustertest/localplane"
	"github.com/muster-sdk/muster/placement"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	tenancyv1alpha1 "github.com/muster-sdk/muster/tenancy/v1alpha1"
)

// TestHub_PluginChoosesMembers checks that a complete hub decides a Placement with the plugin. The members have joined,
// and their agents report the property that the plugin reads.
func TestHub_PluginChoosesMembers(t *testing.T) {
	decider, err := newScheduler()
	require.NoError(t, err)
	plane := mustertest.StartPlane(t, localplane.Options{})
	hub := fleet.StartHub(t, plane.Config(), fleet.HubOptions{
		Assembly: assembly.HubOptions{Placement: placement.Options{Decider: decider}},
	})
	names, grams := []string{"north", "inland", "south"}, []string{"28", "710", "174"}
	hub.JoinHollow(len(names), fleet.HollowOptions{Configure: func(i int, o *agent.Options) {
		o.Name = names[i]
		o.Collectors = []agent.PropertyCollector{agent.CollectorFunc("carbon",
			func(context.Context) ([]membershipv1alpha1.Property, error) {
				return []membershipv1alpha1.Property{{Name: intensity, Value: grams[i]}}, nil
			})}
	}})

	c := hub.Client()
	require.NoError(t, c.Create(t.Context(), &tenancyv1alpha1.ClusterSetBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "global"},
		Spec:       tenancyv1alpha1.ClusterSetBindingSpec{ClusterSetName: "global"},
	}))
	for name, policy := range map[string]v1alpha1.PlacementPolicy{
		"cleanest": {Type: v1alpha1.PickN, NumberOfClusters: new(int32(1))},
		"clean":    {Type: v1alpha1.PickAll},
	} {
		require.NoError(t, c.Create(t.Context(), &v1alpha1.Placement{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: v1alpha1.PlacementSpec{Policy: policy},
		}))
	}
	for name, want := range map[string]string{"cleanest": "north", "clean": "north south"} {
		mustertest.Holds(t, time.Minute, "Placement "+name+" has chosen "+want, func() bool {
			return chosen(t.Context(), t, c, name) == want
		})
	}
}
