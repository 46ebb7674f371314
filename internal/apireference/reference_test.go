package apireference

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/internal/testkit"
)

var update = flag.Bool("update", false, "write docs/api.md")

const header = `# API reference

The kinds of muster and all of their fields. ` + "`kubectl explain KIND.FIELD`" + ` shows the same. This list is
generated from the CustomResourceDefinitions: run ` + "`go test ./internal/apireference -update`" + ` after a change.
Fields of other APIs, such as label selectors, are not expanded.
`

// TestReference_MatchesDefinitions checks that docs/api.md describes the current definitions.
func TestReference_MatchesDefinitions(t *testing.T) {
	root := filepath.Join("..", "..")
	got := header + reference(definitions(t, root))
	file := filepath.Join(root, "docs", "api.md")
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), got, "run go test ./internal/apireference -update")
	require.Greater(t, strings.Count(got, "\n## "), 15, "a heading for each kind")
}

// definitions returns the definitions of all groups, by group and kind.
func definitions(t *testing.T, root string) (out []apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "*", "crds", "*.yaml"))
	require.NoError(t, err)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		var definition apiextensionsv1.CustomResourceDefinition
		require.NoError(t, yaml.Unmarshal(data, &definition), file)
		if definition.Kind == "CustomResourceDefinition" {
			out = append(out, definition)
		}
	}
	slices.SortFunc(out, func(a, b apiextensionsv1.CustomResourceDefinition) int {
		return cmp.Or(cmp.Compare(a.Spec.Group, b.Spec.Group), cmp.Compare(a.Spec.Names.Kind, b.Spec.Names.Kind))
	})
	return out
}

func reference(definitions []apiextensionsv1.CustomResourceDefinition) string {
	var out strings.Builder
	out.WriteString("\n| kind | group | scope | short names |\n|---|---|---|---|\n")
	for _, d := range definitions {
		names := d.Spec.Names
		fmt.Fprintf(&out, "| [%s](#%s) | `%s` | %s | %s |\n", names.Kind, strings.ToLower(names.Kind), d.Spec.Group,
			d.Spec.Scope, strings.Join(names.ShortNames, ", "))
	}
	for _, d := range definitions {
		version := d.Spec.Versions[0]
		schema := version.Schema.OpenAPIV3Schema
		fmt.Fprintf(&out, "\n## %s\n\n%s\n\n| field | type | meaning |\n|---|---|---|\n",
			d.Spec.Names.Kind, testkit.Paragraph(fmt.Sprintf("`%s/%s`. %s", d.Spec.Group, version.Name,
				text(schema.Description))))
		fields(&out, "", schema)
	}
	return out.String()
}

// fields writes a row for each field below a path.
func fields(out *strings.Builder, path string, schema *apiextensionsv1.JSONSchemaProps) {
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		field := schema.Properties[name]
		if path == "" && slices.Contains([]string{"apiVersion", "kind", "metadata"}, name) {
			continue
		}
		at := path + name
		meaning := text(field.Description)
		if slices.Contains(schema.Required, name) {
			meaning = "Required. " + meaning
		}
		if field.Default != nil && string(field.Default.Raw) != "{}" && !strings.Contains(meaning, "Default: ") {
			meaning += fmt.Sprintf(" Default in the API: `%s`.", field.Default.Raw)
		}
		fmt.Fprintf(out, "| `%s` | %s | %s |\n", at, typeOf(&field), strings.TrimSpace(meaning))
		expand(out, at, &field)
	}
}

// expand writes the fields of an object, or of the items of a list or map, unless another API defines them.
func expand(out *strings.Builder, path string, schema *apiextensionsv1.JSONSchemaProps) {
	switch {
	case foreign(schema):
	case schema.Type == "array" && schema.Items != nil && schema.Items.Schema != nil:
		expand(out, path+"[]", schema.Items.Schema)
	case schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil:
		expand(out, path+"{}", schema.AdditionalProperties.Schema)
	default:
		fields(out, path+".", schema)
	}
}

// foreign reports whether a field has a type of Kubernetes.
func foreign(schema *apiextensionsv1.JSONSchemaProps) bool {
	if schema.Items != nil && schema.Items.Schema != nil {
		return foreign(schema.Items.Schema)
	}
	has := func(names ...string) bool {
		return !slices.ContainsFunc(names, func(name string) bool { _, ok := schema.Properties[name]; return !ok })
	}
	return has("matchExpressions", "matchLabels") || has("lastTransitionTime", "reason", "message")
}

func typeOf(schema *apiextensionsv1.JSONSchemaProps) string {
	switch {
	case schema.XIntOrString:
		return "integer or string"
	case schema.Type == "array" && schema.Items != nil && schema.Items.Schema != nil:
		return "list of " + typeOf(schema.Items.Schema)
	case schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil:
		return "map of " + typeOf(schema.AdditionalProperties.Schema)
	case len(schema.Enum) > 0:
		var values []string
		for _, value := range schema.Enum {
			var text string
			if json.Unmarshal(value.Raw, &text) == nil {
				values = append(values, "`"+text+"`")
			}
		}
		return strings.Join(values, ", ")
	case schema.Format != "" && schema.Type == "string":
		return schema.Format
	default:
		return cmp.Or(schema.Type, "any")
	}
}

// text returns a description as the text of a cell.
func text(description string) string {
	description = strings.Join(strings.Fields(description), " ")
	return strings.NewReplacer("|", "\\|", "<", "&lt;").Replace(description)
}
