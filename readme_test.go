package muster_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	addonv1alpha1 "github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// The program in the README is one that compiles, and no longer than it says.
func TestReadmeCompiles(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(readme), "```go\n")
	require.True(t, found, "README.md has no Go program")
	program, _, found := strings.Cut(rest, "```")
	require.True(t, found, "the Go program in README.md has no end")
	require.LessOrEqual(t, strings.Count(program, "\n")-strings.Count(program, "\n\n"), 32, "the README promises thirty lines")

	source := filepath.Join(t.TempDir(), "main.go")
	require.NoError(t, os.WriteFile(source, []byte(program), 0o600))
	// As if it stood in this module, so that it compiles against this very tree.
	root, err := os.Getwd()
	require.NoError(t, err)
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root, "internal", "readme", "main.go"): source}})
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "overlay.json")
	require.NoError(t, os.WriteFile(file, overlay, 0o600))

	command := exec.CommandContext(t.Context(), "go", "build", "-o", os.DevNull, "-overlay", file, "./internal/readme")
	output, err := command.CombinedOutput()
	require.NoError(t, err, string(output))
}

// What the README has of Placements, WorkSets and Addons is what their types know, and valid.
func TestReadmeYAML(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(readme), "```yaml\n")
	require.True(t, found, "README.md has no YAML")
	text, rest, found := strings.Cut(rest, "```")
	require.True(t, found, "the YAML in README.md has no end")
	placement, set := &v1alpha1.Placement{}, &v1alpha1.WorkSet{}
	where, what, found := strings.Cut(text, "\n---\n")
	require.True(t, found, "a Placement, and a WorkSet after it")
	require.NoError(t, yaml.UnmarshalStrict([]byte(where), placement))
	require.NoError(t, yaml.UnmarshalStrict([]byte(what), set))
	require.Empty(t, placement.Spec.Policy.Validate(nil))
	require.Empty(t, placement.Spec.Failover.Validate(nil))
	require.Empty(t, set.Spec.Validate())

	_, rest, found = strings.Cut(rest, "```yaml\n")
	require.True(t, found, "README.md has no Addon")
	addon := &addonv1alpha1.Addon{}
	text, _, _ = strings.Cut(rest, "```")
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), addon))
	require.Empty(t, addon.Spec.Validate())
}

// TestTestingDocument checks that the test in docs/testing.md is the one in examples/regions, which compiles and passes.
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
