package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	placementv1alpha1 "github.com/muster-sdk/muster/placement/v1alpha1"
)

// TestDrain_ClusterPlacement checks that a drain creates separate evictions for a ClusterPlacement and a Placement with
// the same name, and no eviction for a decision that a tenant wrote.
func TestDrain_ClusterPlacement(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, placementv1alpha1.AddToScheme(scheme))
	decision := func(namespace, kind, name string) client.Object {
		return &placementv1alpha1.PlacementDecision{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: kind,
				OwnerReferences: []metav1.OwnerReference{{
					APIVersion: placementv1alpha1.GroupVersion.String(), Kind: kind, Name: name, UID: "1", Controller: new(true),
				}},
			},
			Decisions: []placementv1alpha1.ClusterDecision{{ClusterName: "east"}},
		}
	}
	const clusterScope = placementv1alpha1.ClusterScopeNamespace
	hub := &hubClient{Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		decision(clusterScope, "ClusterPlacement", "web"), decision(clusterScope, "Placement", "web"),
		decision("tenant", "ClusterPlacement", "web"),
	).Build()}
	evictions, err := evictionsFor(t.Context(), hub, "east")
	require.NoError(t, err)
	require.Len(t, evictions, 2)
	require.NotEqual(t, evictions[0].Name, evictions[1].Name)
	for _, e := range evictions {
		require.Equal(t, clusterScope, e.Namespace)
		require.Equal(t, "east", e.Spec.Cluster)
	}
	require.Equal(t, []string{"clusterplacement/web", "web"},
		[]string{placementOf(evictions[0]), placementOf(evictions[1])})
}

// TestEvictionName checks that no two evictions of a drain have the same name.
func TestEvictionName(t *testing.T) {
	long := strings.Repeat("x", 253)
	names := map[string]bool{}
	specs := []placementv1alpha1.PlacementEvictionSpec{
		{Cluster: "a-b", Placement: "c"}, {Cluster: "a", Placement: "b-c"}, {Cluster: "a", ClusterPlacement: "b-c"},
		{Cluster: "a", Placement: long + "a"}, {Cluster: "a", Placement: long + "b"},
	}
	for _, spec := range specs {
		name := evictionName(spec)
		require.Equal(t, name, evictionName(spec), "a repeated drain continues")
		require.LessOrEqual(t, len(name), maxNameLength)
		names[name] = true
	}
	require.Len(t, names, len(specs))
}

// TestClusterScopedObjects checks that a request for an object without a namespace uses the cluster-scoped kind.
func TestClusterScopedObjects(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, placementv1alpha1.AddToScheme(scheme))
	hub := &hubClient{Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		&placementv1alpha1.ClusterWorkSet{ObjectMeta: metav1.ObjectMeta{Name: "web"},
			Spec: placementv1alpha1.WorkSetSpec{Revision: "first"}},
		&placementv1alpha1.ClusterPlacement{ObjectMeta: metav1.ObjectMeta{Name: "web"}},
		&placementv1alpha1.WorkSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
			Spec: placementv1alpha1.WorkSetSpec{Revision: "other"}},
	).Build()}
	key := client.ObjectKey{Name: "web"}
	require.NoError(t, changeWorkSet(t.Context(), hub, key, func(set *placementv1alpha1.WorkSet) error {
		set.Spec.Revision += "-changed"
		return nil
	}))
	set, err := getWorkSet(t.Context(), hub, key)
	require.NoError(t, err)
	require.Equal(t, "first-changed", set.Spec.Revision)
	set, err = getWorkSet(t.Context(), hub, client.ObjectKey{Namespace: "shop", Name: "web"})
	require.NoError(t, err)
	require.Equal(t, "other", set.Spec.Revision)
	_, err = getWorkSet(t.Context(), hub, client.ObjectKey{Name: "missing"})
	require.ErrorIs(t, err, errNotFoundHere)
	require.ErrorContains(t, err, "ClusterWorkSet missing")
	p := &placementv1alpha1.Placement{}
	require.NoError(t, hub.Get(t.Context(), key, placementObject(p)))
	require.Equal(t, "web", p.Name)
}
