package workset

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// fakeCache is a cache that reads from a client.
type fakeCache struct {
	cache.Cache
	client.Reader
}

func (c fakeCache) Get(ctx context.Context, key client.ObjectKey, into client.Object,
	options ...client.GetOption) error {
	return c.Reader.Get(ctx, key, into, options...)
}

func (c fakeCache) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	return c.Reader.List(ctx, into, options...)
}

// TestObserveClusters_UnknownNamespace checks that the WorkSet is reconciled when the namespace of a cluster becomes
// known, although a custom ClusterSource does not report that.
func TestObserveClusters_UnknownNamespace(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	placed := &v1alpha1.Placement{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "all", UID: "1"},
		Status:     v1alpha1.PlacementStatus{SelectedClusters: 2},
	}
	decided := &v1alpha1.PlacementDecision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "all-0", Labels: map[string]string{v1alpha1.PlacementLabel: "all"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(placed,
				v1alpha1.GroupVersion.WithKind("Placement"))},
		},
		Decisions: []v1alpha1.ClusterDecision{{ClusterName: "solo"}, {ClusterName: "absent"}},
	}
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(placed, decided).Build()
	set := &v1alpha1.WorkSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Spec:       v1alpha1.WorkSetSpec{Placements: []v1alpha1.PlacementReference{{Name: "all"}}},
	}
	namespace, changed := "", 0
	namespaceOf := func(cluster string) string {
		if cluster == "solo" {
			return namespace
		}
		return ""
	}
	c := &controller{
		Options: Options{Namespace: namespaceOf}, api: api{cache: fakeCache{Reader: reader}},
		works: newWorkCache(func(types.NamespacedName) {}), fleet: newFleet(namespaceOf, func(string) { changed++ }),
	}
	c.fleet.Set(&scheduler.Cluster{Name: "solo"})
	for _, step := range []struct {
		reason, namespace string
		polls             bool
		requeueAfter      time.Duration
		notifications     int
	}{
		{"the namespaces of MemberClusters are watched", "", false, 0, 0},
		{"the unknown namespace of a custom ClusterSource is polled", "", true, pollInterval, 0},
		{"a namespace that becomes known notifies the WorkSets", "member-solo", true, 0, 1},
		{"a known namespace does not notify again", "member-solo", true, 0, 0},
		{"another namespace notifies the WorkSets", "member-duo", true, 0, 1},
		{"a namespace that is not known any more is polled", "", true, pollInterval, 0},
	} {
		changed, namespace, c.pollsNamespaces = 0, step.namespace, step.polls
		l := &reconciliation{controller: c, set: set, state: newState(client.ObjectKeyFromObject(set))}
		require.NoError(t, l.observeClusters(t.Context()))
		require.Len(t, l.clusters, 2, step.reason)
		require.Equal(t, step.requeueAfter, l.after, step.reason)
		require.Equal(t, step.notifications, changed, step.reason)
		if namespace != "" {
			name, known := c.fleet.in(namespace)
			require.Equal(t, "solo", name, step.reason)
			require.True(t, known, step.reason)
		}
	}
}

// TestFleet_SetUnchanged checks that a cluster whose namespace is not known enqueues no WorkSets unless the cluster has
// changed, like a cluster with a namespace.
func TestFleet_SetUnchanged(t *testing.T) {
	namespace, changed := "", 0
	f := newFleet(func(string) string { return namespace }, func(string) { changed++ })
	set := func(namespaceNow string, labels map[string]string) int {
		namespace, changed = namespaceNow, 0
		f.Set(&scheduler.Cluster{Name: "east", Labels: labels})
		return changed
	}
	require.Equal(t, 1, set("", nil), "a new cluster")
	require.Zero(t, set("", nil), "an unchanged cluster without a namespace")
	require.Equal(t, 1, set("", map[string]string{"a": "b"}), "another label")
	require.Equal(t, 1, set("member-east", map[string]string{"a": "b"}), "the namespace is known now")
	require.Zero(t, set("member-east", map[string]string{"a": "b"}), "an unchanged cluster with a namespace")
	require.Equal(t, 1, set("", map[string]string{"a": "b"}), "the namespace is not known any more")
	require.Zero(t, set("", map[string]string{"a": "b"}), "an unchanged cluster whose namespace was known once")
}
