package localplane

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func TestEmbeddedSource_IsCurrent(t *testing.T) {
	module := filepath.Join("..", "..", "internal", "controlplane")
	if _, err := os.Stat(module); errors.Is(err, fs.ErrNotExist) {
		t.Skip("the zip of the module does not contain internal/controlplane")
	}
	source, err := embeddedSource()
	require.NoError(t, err)
	got, want := map[string]string{}, map[string]string{}
	entries, err := os.ReadDir(module)
	require.NoError(t, err)
	for _, entry := range entries {
		if name := entry.Name(); strings.HasPrefix(name, "go.") || strings.HasSuffix(name, ".go") && !strings.HasSuffix(name,
			"_test.go") {
			data, err := os.ReadFile(filepath.Join(module, name))
			require.NoError(t, err)
			want[name] = string(data)
		}
	}
	entries, err = fs.ReadDir(source, ".")
	require.NoError(t, err)
	for _, entry := range entries {
		data, err := fs.ReadFile(source, entry.Name())
		require.NoError(t, err)
		got[entry.Name()] = string(data)
	}
	const remedy = "run go generate ./... and commit the result"
	require.ElementsMatch(t, slices.Collect(maps.Keys(want)), slices.Collect(maps.Keys(got)), remedy)
	for name, data := range want {
		if data != got[name] { // require.Equal would print both files.
			t.Errorf("%s differs from its copy: %s", name, remedy)
		}
	}
}

func TestBuildKey_ChangesWithEveryFile(t *testing.T) {
	source := fstest.MapFS{}
	seen := map[string]string{}
	for _, change := range []struct{ name, data string }{
		{"go.mod", "a"},
		{"go.sum", "a"},
		{"main.go", "a"},
		{"faults.go", "a"},
		{"go.mod", "b"},
		{"go.sum", "b"},
		{"main.go", "b"},
		{"faults.go", "b"},
	} {
		source[change.name] = &fstest.MapFile{Data: []byte(change.data)}
		key, err := buildKey(source)
		require.NoError(t, err)
		require.NotContains(t, seen, key, "%s is %q", change.name, change.data)
		seen[key] = change.name
		again, err := buildKey(source)
		require.NoError(t, err)
		require.Equal(t, key, again)
	}
}

func TestKubernetesVersion_MatchesTheModule(t *testing.T) {
	source, err := embeddedSource()
	require.NoError(t, err)
	mod, err := fs.ReadFile(source, "go.mod")
	require.NoError(t, err)
	require.Contains(t, string(mod), "\tk8s.io/kubernetes "+kubernetesVersion+"\n")
}
