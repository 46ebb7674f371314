// Package crdtest contains helpers for the tests of all definitions. Columns returns the output of kubectl get for an
// object. Rules returns the validation rules of a definition, so that a test can check that it violates each of them.
package crdtest

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Columns returns the output of kubectl get -o wide for the object at a path of the API server, without its age: the
// names of the columns in their order, and the cells by column.
func Columns(t *testing.T, config *rest.Config, path string) (order []string, cells map[string]any) {
	t.Helper()
	config = rest.CopyConfig(config)
	config.GroupVersion, config.NegotiatedSerializer = &schema.GroupVersion{}, clientgoscheme.Codecs
	c, err := rest.UnversionedRESTClientFor(config)
	require.NoError(t, err)
	data, err := c.Get().AbsPath(path).SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(
		t.Context())
	require.NoError(t, err)
	var table metav1.Table
	require.NoError(t, json.Unmarshal(data, &table))
	require.Len(t, table.Rows, 1)
	cells = map[string]any{}
	for i, column := range table.ColumnDefinitions {
		cells[column.Name] = table.Rows[0].Cells[i]
		order = append(order, column.Name)
	}
	delete(cells, "Age")
	return order, cells
}

// Rule is a validation rule of a definition: the type of the cause in the API server's response, the field without
// indexes, and a part of the message.
type Rule struct{ Kind, Field, Message string }

// Rules returns all rules of a definition for a spec, except for required fields, types and transition rules. Fields of
// a map's values are listed under the key cpu.
func Rules(t *testing.T, c client.Client, definition string) []Rule {
	t.Helper()
	var d apiextensionsv1.CustomResourceDefinition
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Name: definition}, &d))
	return rulesOf("spec", d.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"])
}

func rulesOf(path string, s apiextensionsv1.JSONSchemaProps) (rules []Rule) {
	for _, rule := range []struct {
		is            bool
		kind, message string
	}{
		{s.Enum != nil, "FieldValueNotSupported", "supported values"},
		{s.MaxItems != nil, "FieldValueTooMany", ""},
		{s.MaxProperties != nil, "FieldValueTooMany", ""},
		{s.MaxLength != nil, "FieldValueTooLong", ""},
		{s.Pattern != "", "FieldValueInvalid", "should match"},
		{s.MinLength != nil, "FieldValueInvalid", "chars long"},
		{s.Minimum != nil, "FieldValueInvalid", "greater than"},
		{s.Maximum != nil, "FieldValueInvalid", "less than"},
		{s.MinItems != nil, "FieldValueInvalid", "at least"},
		{s.MinProperties != nil, "FieldValueInvalid", "at least"},
	} {
		if rule.is {
			rules = append(rules, Rule{rule.kind, path, rule.message})
		}
	}
	for _, rule := range s.XValidations {
		kind := apiextensionsv1.FieldValueInvalid
		if rule.Reason != nil {
			kind = *rule.Reason
		}
		if !strings.Contains(rule.Rule, "oldSelf") {
			rules = append(rules, Rule{string(kind), path + rule.FieldPath, rule.Message})
		}
	}
	if s.XListType != nil && *s.XListType != "atomic" {
		rules = append(rules, Rule{"FieldValueDuplicate", path + "[]", ""})
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		rules = append(rules, rulesOf(path+"."+name, s.Properties[name])...)
	}
	if s.Items != nil {
		rules = append(rules, rulesOf(path+"[]", *s.Items.Schema)...)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		rules = append(rules, rulesOf(path+".cpu", *s.AdditionalProperties.Schema)...)
	}
	return rules
}
