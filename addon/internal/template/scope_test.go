package template

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestClusterScoped_MatchesKubernetes compares the list with the source of Kubernetes, which has the clients of its
// kinds and their scopes.
func TestClusterScoped_MatchesKubernetes(t *testing.T) {
	var (
		group  = regexp.MustCompile(`(?m)^const GroupName = "(.*)"$`)
		client = regexp.MustCompile(`(?m)^(// \+genclient\n(?:(?://.*)?\n)*)type (\w+) struct`)
	)
	found := map[schema.GroupKind]bool{}
	for module, below := range map[string]string{"k8s.io/api": "", "k8s.io/apiextensions-apiserver": "pkg/apis"} {
		dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
		require.NoError(t, err)
		files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), below, "*", "v*", "types.go"))
		require.NoError(t, err)
		for _, file := range files {
			register, err := os.ReadFile(filepath.Join(filepath.Dir(file), "register.go"))
			require.NoError(t, err)
			named := group.FindSubmatch(register)
			require.NotNil(t, named, file)
			types, err := os.ReadFile(file)
			require.NoError(t, err)
			for _, m := range client.FindAllSubmatch(types, -1) {
				kind := schema.GroupKind{Group: string(named[1]), Kind: string(m[2])}
				markers := string(m[1])
				if strings.Contains(markers, "genclient:onlyVerbs=create\n") || strings.Contains(markers, "genclient:noVerbs\n") {
					continue // a kind that is not stored, such as TokenReview
				}
				found[kind] = true
				require.Equal(t, strings.Contains(markers, "+genclient:nonNamespaced"), clusterScoped.Has(kind), kind.String())
			}
		}
	}
	require.Greater(t, len(found), 60, "want more than 60 kinds in the source")
	for _, kind := range clusterScoped.UnsortedList() {
		elsewhere := []string{"APIService"} // of kube-aggregator
		require.True(t, found[kind] || slices.Contains(elsewhere, kind.Kind), kind.String())
	}
}
