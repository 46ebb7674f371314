package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/mustertest"
)

// TestParse checks that each invalid command line is an error that names the problem.
func TestParse(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{
		{nil, "name the clusters"},
		{[]string{"Hub"}, "lower-case"},
		{[]string{"kubeconfig"}, "no name for a cluster"},
		{[]string{"hub", "hub"}, "two clusters"},
		{[]string{"--nodes", "-1", "hub"}, "--nodes"},
	} {
		_, err := parse(test.args)
		require.ErrorContains(t, err, test.want, test.args)
	}
	f, err := parse([]string{"--dir", "there", "hub", "east"})
	require.NoError(t, err)
	require.Equal(t, flags{folder: "there", nodes: 1, names: []string{"hub", "east"}}, f)
}

// TestRun_KubeconfigOfEachCluster starts two clusters and reaches each by its context and by its own file.
func TestRun_KubeconfigOfEachCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("starts control planes")
	}
	f := flags{folder: filepath.Join(t.TempDir(), "clusters"), nodes: 1, names: []string{"hub", "east"}}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- run(ctx, f, io.Discard) }()
	all := filepath.Join(f.folder, "kubeconfig")
	mustertest.Holds(t, 20*time.Minute, "the clusters run", func() bool {
		select {
		case err := <-done:
			t.Fatalf("the program ended: %v", err)
		default:
		}
		_, err := os.Stat(all)
		return err == nil
	})
	servers := map[string]bool{}
	for _, name := range f.names {
		for _, file := range []string{all, filepath.Join(f.folder, name+".kubeconfig")} {
			rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: file}
			overrides := &clientcmd.ConfigOverrides{CurrentContext: name}
			config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig()
			require.NoError(t, err)
			servers[config.Host] = true
			var nodes corev1.NodeList
			require.NoError(t, mustertest.Client(t, config, mustertest.Scheme()).List(t.Context(), &nodes, client.Limit(2)))
			require.Len(t, nodes.Items, 1)
		}
	}
	require.Len(t, servers, 2)
	stop()
	require.NoError(t, <-done)
	require.NoDirExists(t, f.folder, "the folder is removed")
}
