package bounded_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// TestStatus_ReportsOfAgentsAreBounded checks that the CRDs limit each list, map and string in the status of the kinds
// that the role of agents may write.
func TestStatus_ReportsOfAgentsAreBounded(t *testing.T) {
	found := map[string][]string{}
	for _, kind := range []string{
		"membership/crds/membership.muster.dev_memberships.yaml", "work/crds/work.muster.dev_works.yaml",
	} {
		content, err := os.ReadFile(filepath.Join("..", "..", kind))
		require.NoError(t, err)
		var crd apiextensionsv1.CustomResourceDefinition
		require.NoError(t, yaml.UnmarshalStrict(content, &crd))
		for _, version := range crd.Spec.Versions {
			status := version.Schema.OpenAPIV3Schema.Properties["status"]
			require.NotEmpty(t, status.Properties, "%s %s has no status", crd.Spec.Names.Kind, version.Name)
			found[crd.Spec.Names.Kind] = append(found[crd.Spec.Names.Kind], unbounded(t, "status", status)...)
		}
	}
	require.Len(t, found, 2)
	for kind, fields := range found {
		require.Empty(t, fields, "%s: fields without a limit", kind)
	}
}

// unbounded returns the paths of the maps and strings in a schema without a limit. A list without one fails the test.
func unbounded(t *testing.T, path string, s apiextensionsv1.JSONSchemaProps) []string {
	t.Helper()
	var out []string
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		out = append(out, unbounded(t, path+"."+name, s.Properties[name])...)
	}
	if s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields {
		t.Errorf("%s keeps unknown fields, which have no limit", path)
	}
	switch {
	case s.Type == "array":
		if s.MaxItems == nil {
			t.Errorf("%s: a list needs maxItems", path)
		}
		out = append(out, unbounded(t, path+"[]", *s.Items.Schema)...)
	case s.AdditionalProperties != nil:
		if s.MaxProperties == nil {
			out = append(out, path)
		}
		out = append(out, unbounded(t, path+"{}", *s.AdditionalProperties.Schema)...)
	case s.Type == "string" && s.MaxLength == nil && len(s.Enum) == 0 && s.Format != "date-time":
		out = append(out, path)
	}
	return out
}
