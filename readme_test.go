package muster_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	addonv1alpha1 "github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/assembly"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/localplane"
	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// TestReadmeHub builds the program in README.md, runs it on a control plane, and creates the Placement, the WorkSet and
// the Addon of README.md there.
func TestReadmeHub(t *testing.T) {
	plane := localplane.ForTest(t, localplane.Options{Name: "readme"})
	scheme := runtime.NewScheme()
	require.NoError(t, assembly.AddToScheme(scheme))
	c, err := client.New(plane.Config(), client.Options{Scheme: scheme})
	require.NoError(t, err)
	for _, namespace := range []string{"muster-system", "apps", "platform"} {
		require.NoError(t, c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	}

	var output bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	hub := exec.CommandContext(ctx, build(t))
	hub.Env = append(os.Environ(), "KUBECONFIG="+plane.Kubeconfig())
	hub.Stdout, hub.Stderr = &output, &output
	require.NoError(t, hub.Start())
	exited := make(chan error, 1)
	go func() { exited <- hub.Wait() }()
	t.Cleanup(func() {
		cancel()
		<-exited //nolint:errcheck // It was killed.
		if t.Failed() {
			t.Log(output.String())
		}
	})

	placement, set, addon := objects(t)
	created := map[client.Object]bool{}
	mustertest.Eventually(t, 2*time.Minute, "the hub acts on all objects", func() error {
		select {
		case err := <-exited:
			exited <- err
			t.Fatalf("the hub ended: %v", err)
		default:
		}
		for _, object := range []client.Object{placement, set, addon} {
			if !created[object] {
				if err := c.Create(t.Context(), object); err != nil {
					return err // The definitions are not served yet.
				}
				created[object] = true
			}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
				return err
			}
		}
		for kind, observed := range map[string]int64{
			"Placement": placement.Status.ObservedGeneration, "WorkSet": set.Status.ObservedGeneration,
			"Addon": addon.Status.ObservedGeneration,
		} {
			if observed == 0 {
				return fmt.Errorf("no controller has observed the %s", kind)
			}
		}
		return nil
	})
}

// build compiles the program in README.md against this module, and returns the path of the binary.
func build(t *testing.T) string {
	t.Helper()
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(readme), "```go\n")
	require.True(t, found, "README.md has no Go program")
	program, _, found := strings.Cut(rest, "```")
	require.True(t, found, "the Go program in README.md has no end")
	require.LessOrEqual(t, strings.Count(program, "\n")-strings.Count(program, "\n\n"), 32,
		"the README promises thirty lines")

	// The ports of the program may be in use here.
	program = strings.Replace(program, `":8081"`, `"127.0.0.1:0", Metrics: metricsserver.Options{BindAddress: "0"}`, 1)
	program = strings.Replace(program, "import (",
		"import (\n\tmetricsserver \"sigs.k8s.io/controller-runtime/pkg/metrics/server\"", 1)
	source := filepath.Join(t.TempDir(), "main.go")
	require.NoError(t, os.WriteFile(source, []byte(program), 0o600))
	root, err := os.Getwd()
	require.NoError(t, err)
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root, "internal", "readme",
		"main.go"): source}})
	require.NoError(t, err)
	file, binary := filepath.Join(t.TempDir(), "overlay.json"), filepath.Join(t.TempDir(), "hub")
	require.NoError(t, os.WriteFile(file, overlay, 0o600))

	output, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "-overlay", file,
		"./internal/readme").CombinedOutput()
	require.NoError(t, err, string(output))
	return binary
}

// The fields of the objects in README.md exist, and their values are valid.
func TestReadmeYAML(t *testing.T) {
	placement, set, addon := objects(t)
	require.Empty(t, placement.Spec.Policy.Validate(nil))
	require.Empty(t, placement.Spec.Failover.Validate(nil))
	require.Empty(t, set.Spec.Validate())
	require.Empty(t, addon.Spec.Validate())
}

// objects returns the Placement, the WorkSet and the Addon in README.md.
func objects(t *testing.T) (*v1alpha1.Placement, *v1alpha1.WorkSet, *addonv1alpha1.Addon) {
	t.Helper()
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(readme), "```yaml\n")
	require.True(t, found, "README.md has no YAML")
	text, rest, found := strings.Cut(rest, "```")
	require.True(t, found, "the YAML in README.md has no end")
	placement, set, addon := &v1alpha1.Placement{}, &v1alpha1.WorkSet{}, &addonv1alpha1.Addon{}
	where, what, found := strings.Cut(text, "\n---\n")
	require.True(t, found, "README.md has no WorkSet after the Placement")
	require.NoError(t, yaml.UnmarshalStrict([]byte(where), placement))
	require.NoError(t, yaml.UnmarshalStrict([]byte(what), set))
	_, rest, found = strings.Cut(rest, "```yaml\n")
	require.True(t, found, "README.md has no Addon")
	text, _, _ = strings.Cut(rest, "```")
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), addon))
	return placement, set, addon
}

// TestTestingDocument checks that the test in docs/testing.md is the one in examples/regions, which compiles and
// passes.
func TestTestingDocument(t *testing.T) {
	document, err := os.ReadFile(filepath.Join("docs", "testing.md"))
	require.NoError(t, err)
	test, err := os.ReadFile(filepath.Join("examples", "regions", "regions_test.go"))
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(document), "```go\n")
	require.True(t, found, "docs/testing.md contains no Go code")
	code, _, _ := strings.Cut(rest, "```")
	require.Contains(t, string(test), "\n"+code, "copy the test in examples/regions to docs/testing.md")
	require.LessOrEqual(t, strings.Count(string(test), "\n"), 40, "the test of a product is short")
}

// TestReadmePlugin checks that README.md and the how-to about placements show the code of examples/custom-plugin, which
// a test there runs on a complete hub.
func TestReadmePlugin(t *testing.T) {
	program, err := os.ReadFile(filepath.Join("examples", "custom-plugin", "main.go"))
	require.NoError(t, err)
	test, err := os.ReadFile(filepath.Join("examples", "custom-plugin", "hub_test.go"))
	require.NoError(t, err)
	const options = "assembly.HubOptions{Placement: placement.Options{Decider: decider}}"
	require.Contains(t, string(test), options)
	for _, name := range []string{"README.md", filepath.Join("docs", "howto", "placement.md")} {
		document, err := os.ReadFile(name)
		require.NoError(t, err)
		_, rest, found := strings.Cut(string(document), "```go\nfunc newScheduler")
		require.True(t, found, "%s does not show how to add a plugin", name)
		code, _, _ := strings.Cut("func newScheduler"+rest, "```")
		require.LessOrEqual(t, strings.Count(code, "\n"), 12, "%s promises a few lines", name)
		require.Contains(t, string(program), "\n"+code, "%s: copy newScheduler of examples/custom-plugin", name)
		require.Contains(t, string(document), options, name)
	}
}
