package clusterprofile

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/yaml"
)

func TestServedAs(t *testing.T) {
	const good = `{metadata: {uid: "1"}, spec: {versions: [{name: v1alpha2, served: true}, {name: v1alpha1, served: true,
	  schema: {a: 1}}]},
		status: {conditions: [{type: NamesAccepted, status: "True"}, {type: Established, status: "True"}]}}`
	for _, test := range []struct {
		reason, definition string
		want               types.UID
	}{
		{"served", good, "1"},
		{"the version is no longer served", strings.Replace(good, "v1alpha1, served: true", "v1alpha1, served: false",
			1), ""},
		{"the version does not exist", strings.Replace(good, "v1alpha1", "v1", 1), ""},
		{"the definition is not established",
			strings.Replace(good, `Established, status: "True"`, `Established, status: "False"`, 1), ""},
		{"the definition has no conditions",
			`{metadata: {uid: "1"}, spec: {versions: [{name: v1alpha1, served: true}]}, status: {conditions: null}}`, ""},
		{"the definition is being deleted",
			strings.Replace(good, `uid: "1"`, `uid: "1", deletionTimestamp: "2026-03-01T12:00:00Z"`, 1), ""},
		{"an invalid definition", `{metadata: {uid: "1"}, spec: 5, status: 6}`, ""},
	} {
		object := map[string]any{}
		require.NoError(t, yaml.Unmarshal([]byte(test.definition), &object), test.reason)
		slimmed, err := removeSchemas(&unstructured.Unstructured{Object: object})
		require.NoError(t, err)
		store := toolscache.NewStore(func(any) (string, error) { return "one", nil })
		require.Empty(t, servedAs(store), test.reason)
		require.NoError(t, store.Add(slimmed))
		require.Equal(t, test.want, servedAs(store), test.reason)
		require.NotContains(t, toYAML(t, slimmed), "schema", "schemas must not be cached")
	}
}
