package e2e_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/kind/pkg/cluster"
)

// timeout is the time in which a cluster must become ready, including the pull of its image.
const timeout = 10 * time.Minute

// engine returns the first container engine that responds. The error contains the error of each engine.
func engine() (*cluster.Provider, error) {
	var errs []error
	for _, e := range []struct {
		name   string
		option cluster.ProviderOption
	}{
		{"docker", cluster.ProviderWithDocker()},
		{"podman", cluster.ProviderWithPodman()},
		{"nerdctl", cluster.ProviderWithNerdctl("nerdctl")},
	} {
		provider := cluster.NewProvider(e.option)
		_, err := provider.List()
		if err == nil {
			return provider, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", e.name, err))
	}
	return nil, errors.Join(errs...)
}

// clusters starts clusters, and returns the paths of their kubeconfigs. The clusters are deleted when the test ends,
// even if it fails. If MUSTER_E2E_KUBECONFIGS names kubeconfigs, the test uses their clusters instead and does not
// delete them.
func clusters(t *testing.T, names ...string) []string {
	t.Helper()
	if existing := filepath.SplitList(os.Getenv("MUSTER_E2E_KUBECONFIGS")); len(existing) > 0 {
		if len(existing) != len(names) {
			t.Fatalf("MUSTER_E2E_KUBECONFIGS: want one file for each of %q, got %d files", names, len(existing))
		}
		return existing
	}
	provider, err := engine()
	if err != nil {
		if os.Getenv("MUSTER_E2E") == "required" {
			t.Fatalf("MUSTER_E2E is required, and no container engine responds:\n%v", err)
		}
		t.Skipf("SKIPPED, no kind cluster was started: no container engine responds:\n%v", err)
	}
	folder := t.TempDir()
	files := make([]string, len(names))
	var group errgroup.Group
	for i, name := range names {
		// The process ID separates concurrent runs, and identifies clusters that a killed run has left behind.
		name = fmt.Sprintf("muster-e2e-%d-%s", os.Getpid(), name)
		files[i] = filepath.Join(folder, name)
		t.Cleanup(func() {
			if err := provider.Delete(name, files[i]); err != nil {
				t.Errorf("delete cluster %s: %v; kind delete cluster --name %s does the same", name, err, name)
			}
		})
		group.Go(func() error {
			t.Logf("Starting cluster %s.", name)
			options := []cluster.CreateOption{
				cluster.CreateWithKubeconfigPath(files[i]), cluster.CreateWithWaitForReady(timeout),
				cluster.CreateWithDisplayUsage(false), cluster.CreateWithDisplaySalutation(false),
			}
			if image := os.Getenv("MUSTER_E2E_IMAGE"); image != "" {
				options = append(options, cluster.CreateWithNodeImage(image))
			}
			if err := provider.Create(name, options...); err != nil {
				return fmt.Errorf("start cluster %s: %w", name, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	return files
}
