package clusterid

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership/crds"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest/localplane"
)

// plane is the hub and the member.
var plane = localplane.Shared{Options: localplane.Options{Name: "clusterid"}}

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(localplane.Run(m, &plane))
}

func TestOf(t *testing.T) {
	config := plane.ForTest(t).Config()
	c, err := client.New(config, client.Options{})
	require.NoError(t, err)
	var namespace corev1.Namespace
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Name: metav1.NamespaceSystem}, &namespace))
	id, err := Of(t.Context(), config)
	require.NoError(t, err)
	require.Equal(t, string(namespace.UID), id)

	_, err = Of(t.Context(), plane.ForTest(t).User("nobody"))
	require.True(t, apierrors.IsForbidden(err), "want a Forbidden error, got %v", err)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Of(ended, config)
	require.ErrorIs(t, err, context.Canceled)
}

// hub is a plane with definitions, and counts requests.
func hub(t *testing.T) (client.Client, *atomic.Int64) {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	admin, err := client.New(plane.ForTest(t).Config(), client.Options{})
	require.NoError(t, err)
	require.NoError(t, crds.Install(t.Context(), admin))
	writes, config := &atomic.Int64{}, plane.ForTest(t).Config()
	config.QPS = -1
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			if request.Method != http.MethodGet {
				writes.Add(1)
			}
			return next.RoundTrip(request)
		})
	})
	c, err := client.New(config, client.Options{Scheme: scheme})
	require.NoError(t, err)
	return c, writes
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// newMember creates a MemberCluster, which is deleted at the end of the test.
func newMember(t *testing.T, c client.Client, name, id string) *v1alpha1.MemberCluster {
	t.Helper()
	cluster := &v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.MemberClusterSpec{ClusterID: id}}
	require.NoError(t, c.Create(t.Context(), cluster))
	t.Cleanup(func() { require.NoError(t, client.IgnoreNotFound(c.Delete(context.Background(), cluster))) })
	return cluster
}

func TestReserver_Reserve(t *testing.T) {
	c, writes := hub(t)
	for _, test := range []struct {
		name, reason string
		id           string                        // already in spec
		meanwhile    func(*v1alpha1.MemberCluster) // a concurrent change
		want, stored string                        // the error, and the resulting spec.clusterID
		writes       int64
	}{
		{name: "new", reason: "the cluster ID is not set", stored: "east", writes: 1},
		{name: "known", reason: "the cluster ID is set already", id: "east", stored: "east"},
		{
			name: "touched", reason: "a concurrent change of labels does not fail the reservation", stored: "east", writes: 1,
			meanwhile: func(cluster *v1alpha1.MemberCluster) {
				cluster = cluster.DeepCopy()
				cluster.Labels = map[string]string{"touched": "yes"}
				require.NoError(t, c.Update(t.Context(), cluster))
			},
		},
		{
			name: "named", reason: "the cluster ID was set concurrently", stored: "west", writes: 1,
			meanwhile: func(cluster *v1alpha1.MemberCluster) {
				cluster = cluster.DeepCopy()
				cluster.Spec.ClusterID = "west"
				require.NoError(t, c.Update(t.Context(), cluster))
			},
			want: "clusterID cannot change once it is set",
		},
		{
			name: "another", reason: "a MemberCluster that was created again may be another cluster", writes: 1,
			meanwhile: func(cluster *v1alpha1.MemberCluster) {
				require.NoError(t, c.Delete(t.Context(), cluster.DeepCopy()))
				newMember(t, c, cluster.Name, "")
			},
			want: "metadata.uid",
		},
		{
			name: "taken", reason: "a cluster has at most one member",
			meanwhile: func(*v1alpha1.MemberCluster) { newMember(t, c, "first", "east") },
			want:      "member taken needs cluster ID east, which MemberCluster first has already",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			cluster := newMember(t, c, test.name, test.id)
			if test.meanwhile != nil {
				test.meanwhile(cluster)
			}
			writes.Store(0)
			err := NewReserver(c, c).Reserve(t.Context(), cluster, "east")
			require.Equal(t, test.writes, writes.Load(), test.reason)
			stored := &v1alpha1.MemberCluster{}
			require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(cluster), stored))
			require.Equal(t, test.stored, stored.Spec.ClusterID, test.reason)
			if test.want != "" {
				require.ErrorContains(t, err, test.want, test.reason)
				return
			}
			require.NoError(t, err, test.reason)
			require.Equal(t, stored.ResourceVersion, cluster.ResourceVersion,
				"the MemberCluster has the stored resource version")
			require.Equal(t, "east", cluster.Spec.ClusterID)
		})
	}
}

// TestReserver_ConcurrentReservations checks that only one of several members with one cluster reserves its ID
// concurrently.
func TestReserver_ConcurrentReservations(t *testing.T) {
	c, _ := hub(t)
	reserver := NewReserver(c, c)
	var clusters []*v1alpha1.MemberCluster
	for i := range 8 {
		clusters = append(clusters, newMember(t, c, fmt.Sprintf("at-once-%d", i), ""))
	}
	var reserved atomic.Int64
	var reserving sync.WaitGroup
	for _, cluster := range clusters {
		reserving.Go(func() {
			if reserver.Reserve(t.Context(), cluster, "at-once") == nil {
				reserved.Add(1)
			}
		})
	}
	reserving.Wait()
	require.EqualValues(t, 1, reserved.Load())
}
