package push

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/fleet"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// TestAgentOptions checks that the runner sets its own options, and that all other options are those of the product.
func TestAgentOptions(t *testing.T) {
	var phases []lifecycle.AgentPhase
	r := &Runner{hub: &rest.Config{Host: "https://hub.new", TLSClientConfig: rest.TLSClientConfig{CAData: []byte("new")}}}
	r.options.Agent = func(member fleet.Connected) agent.Options {
		member.Config.Host = "https://changed" // the callback may change its copy
		return agent.Options{
			Name: "another", ClusterID: "another", Labels: map[string]string{"a": "b"}, Version: "v1",
			HubConfig: func(config *rest.Config) { config.UserAgent = "product" },
			OnPhase:   func(step lifecycle.AgentStep) { phases = append(phases, step.Phase) },
		}
	}
	m := r.member(fleet.Connected{
		Cluster: &v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "east", UID: "uid"}},
		Config:  &rest.Config{Host: "https://east"},
	})
	left := 0
	o := m.agentOptions("id", func() { left++ })
	require.Equal(t, "east", o.Name)
	require.Equal(t, "id", o.ClusterID)
	require.Nil(t, o.Labels)
	require.Equal(t, "v1", o.Version)
	require.Equal(t, "https://east", o.Member.Host)

	stored := &rest.Config{Host: "https://hub.old", TLSClientConfig: rest.TLSClientConfig{CAData: []byte("old")}}
	o.HubConfig(stored)
	require.Equal(t, "https://hub.new", stored.Host, "an agent that joined at a former address of the hub "+
		"uses the new one")
	require.Equal(t, "new", string(stored.CAData))
	require.Equal(t, "product", stored.UserAgent)

	o.OnPhase(lifecycle.AgentStep{Phase: lifecycle.Leaving})
	require.Zero(t, left)
	bootstrap, err := o.Bootstrap.Load(t.Context())
	require.NoError(t, err, "a leaving agent must not create a JoinToken")
	require.Nil(t, bootstrap)
	o.OnPhase(lifecycle.AgentStep{Phase: lifecycle.Left})
	require.Equal(t, 1, left)
	require.Equal(t, []lifecycle.AgentPhase{lifecycle.Leaving, lifecycle.Left}, phases)
}

// cached and stored are a cache and a client that have one MemberCluster, or none.
type (
	cached struct {
		cache.Cache
		cluster *v1alpha1.MemberCluster
	}
	stored struct {
		client.Client
		cluster *v1alpha1.MemberCluster
	}
)

func (c cached) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	return get(c.cluster, into)
}

func (s stored) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	return get(s.cluster, into)
}

func get(cluster *v1alpha1.MemberCluster, into client.Object) error {
	if cluster == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "memberclusters"}, "east")
	}
	cluster.DeepCopyInto(into.(*v1alpha1.MemberCluster))
	return nil
}

func TestRunner_Cluster(t *testing.T) {
	of := func(uid types.UID) *v1alpha1.MemberCluster {
		return &v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "east", UID: uid}}
	}
	for _, test := range []struct {
		reason         string
		cached, stored *v1alpha1.MemberCluster
		found          bool
	}{
		{"the cache has the MemberCluster", of("uid"), nil, true},
		{"the cache does not have the MemberCluster yet", nil, of("uid"), true},
		{"the cache still has the previous MemberCluster", of("before"), of("uid"), true},
		{"the MemberCluster was created again", of("after"), of("after"), false},
		{"the MemberCluster is deleted", nil, nil, false},
	} {
		r := &Runner{clusters: cached{cluster: test.cached}, client: stored{cluster: test.stored}}
		cluster, err := r.cluster(t.Context(), "east", "uid")
		require.NoError(t, err, test.reason)
		require.Equal(t, test.found, cluster != nil, test.reason)
	}
}
