package placement_test

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/apiserver"
	"github.com/muster-sdk/muster/placement"
	"github.com/muster-sdk/muster/scheduler"
)

// recordedFleet is a Fleet that records the reports of a source.
type recordedFleet struct {
	mu       sync.Mutex
	clusters map[string]*scheduler.Cluster
	synced   bool
}

func (f *recordedFleet) Set(cluster *scheduler.Cluster) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.clusters[cluster.Name] = cluster
}

func (f *recordedFleet) Remove(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.clusters, name)
}

func (f *recordedFleet) Synced() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.synced = true
}

// state returns the names of the clusters. A missing cluster has a question mark.
func (f *recordedFleet) state() (names []string, synced bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(f.clusters)) {
		if f.clusters[name].Absent {
			name += "?"
		}
		names = append(names, name)
	}
	return names, f.synced
}

// clustersInSecrets returns a ClusterSource in ten lines: one cluster for each Secret with a label.
func clustersInSecrets(c cache.Cache) placement.ClusterSource {
	return placement.Objects(c, &corev1.Secret{}, func(secret *corev1.Secret) *scheduler.Cluster {
		name := secret.Labels["cluster"]
		if name == "" {
			return nil
		}
		return &scheduler.Cluster{Name: name, Labels: secret.Labels, Joined: true, Healthy: true}
	})
}

// TestObjects checks that each object is a cluster, and that only an observed deletion removes one.
func TestObjects(t *testing.T) {
	server, err := apiserver.New(apiserver.Options{})
	require.NoError(t, err)
	t.Cleanup(server.Close)
	scheme := mustertest.Scheme()
	c := mustertest.Client(t, server.Admin(), scheme)
	secret := func(name, cluster string, finalizers ...string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, Labels: map[string]string{"cluster": cluster}, Finalizers: finalizers,
		}}
	}
	first := secret("one", "east", "example.com/cluster")
	for _, object := range []client.Object{first, secret("two", "west"), secret("three", "")} {
		require.NoError(t, c.Create(t.Context(), object))
	}
	informers, err := cache.New(server.Admin(), cache.Options{Scheme: scheme})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	fleet := &recordedFleet{clusters: map[string]*scheduler.Cluster{}}
	var running sync.WaitGroup
	running.Go(func() { _ = informers.Start(ctx) })
	ended := make(chan error, 1)
	running.Go(func() { ended <- clustersInSecrets(informers).Run(ctx, fleet) })
	t.Cleanup(func() { stop(); running.Wait() })
	expect := func(reason string, want ...string) {
		t.Helper()
		mustertest.Holds(t, 30*time.Second, reason, func() bool {
			names, synced := fleet.state()
			return synced && slices.Equal(names, want)
		})
	}
	expect("an object without a cluster is left out", "east", "west")

	require.NoError(t, c.Create(t.Context(), secret("four", "north")))
	expect("a new object is a cluster", "east", "north", "west")
	require.NoError(t, c.Delete(t.Context(), secret("two", "west")))
	expect("an object that vanishes is missing", "east", "north", "west?")
	four := secret("four", "")
	require.NoError(t, c.Update(t.Context(), four))
	expect("an object that is not a cluster any more is missing", "east", "north?", "west?")
	four.Labels["cluster"] = "south"
	require.NoError(t, c.Update(t.Context(), four))
	expect("an object can become another cluster", "east", "north?", "south", "west?")
	four.Labels["cluster"] = "north"
	require.NoError(t, c.Update(t.Context(), four))
	expect("the former cluster is missing then", "east", "north", "south?", "west?")
	five := secret("five", "center")
	require.NoError(t, c.Create(t.Context(), five))
	expect("another object is a cluster", "center", "east", "north", "south?", "west?")
	five.Labels["cluster"] = "north"
	require.NoError(t, c.Update(t.Context(), five))
	expect("an object takes the name of another one", "center?", "east", "north", "south?", "west?")
	four.Labels["cluster"] = "center"
	require.NoError(t, c.Update(t.Context(), four))
	expect("the objects have exchanged their names", "center", "east", "north", "south?", "west?")

	require.NoError(t, c.Delete(t.Context(), first))
	expect("a deletion that waits for a finalizer changes nothing", "center", "east", "north", "south?", "west?")
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(first), first))
	first.Finalizers = nil
	require.NoError(t, c.Update(t.Context(), first))
	expect("an observed deletion removes the cluster", "center", "north", "south?", "west?")

	stop()
	require.NoError(t, <-ended)
}
