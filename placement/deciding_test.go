package placement_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/muster-sdk/muster/internal/localplane"
	"github.com/muster-sdk/muster/placement"
	"github.com/muster-sdk/muster/placement/crds"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

var plane = localplane.Shared{Options: localplane.Options{Name: "placement"}}

func TestMain(m *testing.M) { os.Exit(localplane.Run(m, &plane)) }

// source is a ClusterSource that tests drive.
type source struct{ fleet chan placement.Fleet }

func (s source) Run(ctx context.Context, fleet placement.Fleet) error {
	s.fleet <- fleet
	<-ctx.Done()
	return nil
}

func cluster(name, region string) *scheduler.Cluster {
	return &scheduler.Cluster{Name: name, Labels: map[string]string{"region": region}, Joined: true, Healthy: true}
}

func TestDeciding(t *testing.T) {
	config := plane.ForTest(t).Config()
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	c, err := client.New(config, client.Options{Scheme: scheme})
	require.NoError(t, err)
	require.NoError(t, crds.Install(t.Context(), c))
	mgr, err := manager.New(config, manager.Options{Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}})
	require.NoError(t, err)
	s := source{make(chan placement.Fleet, 1)}
	require.NoError(t, placement.SetupWithManager(mgr, placement.Options{Clusters: s}))
	done := make(chan error, 1)
	go func() { done <- mgr.Start(t.Context()) }()
	t.Cleanup(func() { require.NoError(t, <-done) })
	fleet := <-s.fleet
	for i := range 150 {
		fleet.Set(cluster(fmt.Sprintf("eu-%03d", i), "eu"))
	}
	fleet.Set(cluster("us-1", "us"))
	fleet.Synced()

	three := int32(3)
	pl := &v1alpha1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: v1alpha1.PlacementSpec{
		Policy: v1alpha1.PlacementPolicy{Type: v1alpha1.PickN, NumberOfClusters: &three},
	}}
	require.NoError(t, c.Create(t.Context(), pl))
	chosen := func(name string) []string {
		var list v1alpha1.PlacementDecisionList
		require.NoError(t, c.List(t.Context(), &list, client.MatchingLabels{v1alpha1.PlacementLabel: name}))
		var names []string
		for _, item := range list.Items {
			for _, d := range item.Decisions {
				names = append(names, d.ClusterName)
			}
		}
		return names
	}
	require.Eventually(t, func() bool { return len(chosen("web")) == 3 }, 10*time.Second, 20*time.Millisecond)
	first := chosen("web")
	t.Log(first)
	lost := cluster(first[1], "eu")
	lost.Healthy = false
	lost.Joined = false
	fleet.Set(lost)
	require.Eventually(t, func() bool { return !slices.Contains(chosen("web"), first[1]) && len(chosen("web")) == 3 }, 10*time.Second, 20*time.Millisecond)
	t.Log(chosen("web"))

	all := &v1alpha1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "all"}}
	require.NoError(t, c.Create(t.Context(), all))
	require.Eventually(t, func() bool { return len(chosen("all")) == 150 }, 10*time.Second, 20*time.Millisecond)
	fleet.Set(cluster("asia-1", "asia"))
	require.Eventually(t, func() bool { return slices.Contains(chosen("all"), "asia-1") }, 10*time.Second, 20*time.Millisecond)
	require.Eventually(t, func() bool {
		require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(all), all))
		return all.Status.SelectedClusters == 151
	}, 10*time.Second, 20*time.Millisecond)
	t.Logf("%+v", all.Status)
	condition := meta.FindStatusCondition(all.Status.Conditions, v1alpha1.ConditionScheduled)
	require.NotNil(t, condition)
	t.Log(condition.Message)
}
