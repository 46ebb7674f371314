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

// timeout is how long a cluster may take to be ready, with its image to be pulled.
const timeout = 10 * time.Minute

// engine is the first container engine that answers. The error says of each why it does not.
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

// clusters starts clusters, and returns the files that lead to them. They are deleted when the test is over, whatever
// has become of it. Clusters that MUSTER_E2E_KUBECONFIGS names are taken instead, and stay.
func clusters(t *testing.T, names ...string) []string {
	t.Helper()
	if there := filepath.SplitList(os.Getenv("MUSTER_E2E_KUBECONFIGS")); len(there) > 0 {
		if len(there) != len(names) {
			t.Fatalf("MUSTER_E2E_KUBECONFIGS has %d files, and not one for each of %q", len(there), names)
		}
		return there
	}
	provider, err := engine()
	if err != nil {
		if os.Getenv("MUSTER_E2E") == "required" {
			t.Fatalf("MUSTER_E2E is required, and no container engine answers:\n%v", err)
		}
		t.Skipf("SKIPPED, nothing was tried on kind: no container engine answers:\n%v", err)
	}
	folder := t.TempDir()
	files := make([]string, len(names))
	var group errgroup.Group
	for i, name := range names {
		// Two runs on one machine do not meet, and what a run that was killed has left behind can be told by its name.
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
