package crds_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/placement/crds"
)

// TestClusterScoped_Schemas checks that a cluster-scoped kind has the fields and the rules of the namespaced kind, so
// that controllers can treat both alike.
func TestClusterScoped_Schemas(t *testing.T) {
	read := func(plural string) (definition apiextensionsv1.CustomResourceDefinition) {
		text, err := crds.Files.ReadFile("placement.muster.dev_" + plural + ".yaml")
		require.NoError(t, err)
		require.NoError(t, yaml.UnmarshalStrict(text, &definition))
		return definition
	}
	for namespaced, clusterScoped := range map[string]string{
		"placements": "clusterplacements", "worksets": "clusterworksets",
	} {
		a, b := read(namespaced), read(clusterScoped)
		require.Equal(t, apiextensionsv1.NamespaceScoped, a.Spec.Scope)
		require.Equal(t, apiextensionsv1.ClusterScoped, b.Spec.Scope)
		require.Equal(t, a.Spec.Versions[0].AdditionalPrinterColumns, b.Spec.Versions[0].AdditionalPrinterColumns)
		schemas := [2]*apiextensionsv1.JSONSchemaProps{
			a.Spec.Versions[0].Schema.OpenAPIV3Schema, b.Spec.Versions[0].Schema.OpenAPIV3Schema,
		}
		for _, s := range schemas {
			s.Description = ""
			for _, name := range []string{"spec", "status"} {
				property := s.Properties[name]
				property.Description = "" // It names the kind.
				s.Properties[name] = property
			}
		}
		if diff := cmp.Diff(schemas[0], schemas[1]); diff != "" {
			t.Errorf("%s and %s differ (-%[1]s +%[2]s):\n%s", namespaced, clusterScoped, diff)
		}
	}
}
