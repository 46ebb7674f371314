package v1alpha1_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

func TestValidateOverrides(t *testing.T) {
	nested := func(n int) string { return strings.Repeat("{a: ", n) + "1" + strings.Repeat("}", n) }
	list := func(n int, item string) string { return "[" + strings.Repeat(item+", ", n-1) + item + "]" }
	for _, test := range []struct {
		reason, rule string
		want         []string // fields and parts of their messages, in pairs
	}{
		{"a rule without patches and delete", `{}`, []string{"rules[0]", "requires jsonPatch, mergePatch or delete"}},
		{"an empty JSON patch", `{jsonPatch: []}`, []string{"rules[0]", "requires jsonPatch, mergePatch or delete"}},
		{"an empty merge patch is valid", `{mergePatch: {}}`, nil},
		{"delete without objects", `{delete: true}`,
			[]string{"rules[0].objects", "objects is required with delete"}},
		{"delete with a merge patch", `{delete: true, objects: [{name: a}], mergePatch: {}}`,
			[]string{"rules[0].delete", "patches must not be set with delete"}},
		{"an empty cluster selector", `{clusters: [{}], mergePatch: {}}`,
			[]string{"rules[0].clusters[0]", "an empty selector"}},
		{"a cluster selector with an empty label selector",
			`{clusters: [{labelSelector: {matchLabels: {}}}], mergePatch: {}}`,
			[]string{"rules[0].clusters[0]", "an empty selector"}},
		{"an invalid cluster name", `{clusters: [{names: [East]}], mergePatch: {}}`,
			[]string{"rules[0].clusters[0].names[0]", "DNS label"}},
		{"a duplicate cluster name", `{clusters: [{names: [a, a]}], mergePatch: {}}`,
			[]string{"rules[0].clusters[0].names[1]", "Duplicate"}},
		{"an invalid label", `{clusters: [{cel: ["true"]}, {labelSelector: {matchLabels: {"a b": c}}}], mergePatch: {}}`,
			[]string{"rules[0].clusters[1].labelSelector.matchLabels", "name part"}},
		{"an empty expression", `{clusters: [{names: [a], cel: [""]}], mergePatch: {}}`,
			[]string{"rules[0].clusters[0].cel[0]", "must not be empty"}},
		{"too many cluster selectors", `{clusters: ` + list(17, "{cel: ['true']}") + `, mergePatch: {}}`,
			[]string{"rules[0].clusters", "at most 16"}},
		{"an empty object selector", `{objects: [{}], mergePatch: {}}`, []string{"rules[0].objects[0]", "at least 1"}},
		{"an object selector with the core group", `{objects: [{group: ""}], mergePatch: {}}`, nil},
		{"too many object selectors", `{objects: ` + list(17, "{kind: A}") + `, mergePatch: {}}`,
			[]string{"rules[0].objects", "at most 16"}},
		{"group, kind, namespace and name that are too long", `{objects: [{group: ` + strings.Repeat("a",
			254) + `, kind: ` + strings.Repeat("a", 64) +
			`, namespace: ` + strings.Repeat("a", 64) + `, name: ` + strings.Repeat("a", 254) + `}], mergePatch: {}}`,
			[]string{"rules[0].objects[0].kind", "", "rules[0].objects[0].namespace", "", "rules[0].objects[0].name", "",
				"rules[0].objects[0].group", ""}},
		{"too many operations", `{jsonPatch: ` + list(65, "{op: remove, path: /a}") + `}`,
			[]string{"rules[0].jsonPatch", "at most 64"}},
		{"an unknown patch operation", `{jsonPatch: [{op: merge, path: /a}]}`,
			[]string{"rules[0].jsonPatch[0].op", "Unsupported value"}},
		{"a path that is not a JSON pointer", `{jsonPatch: [{op: remove, path: .spec.a}]}`,
			[]string{"rules[0].jsonPatch[0].path", "JSON pointer"}},
		{"a path with an invalid escape", `{jsonPatch: [{op: remove, path: /a~2}]}`,
			[]string{"rules[0].jsonPatch[0].path", "JSON pointer"}},
		{"a path that is too long", `{jsonPatch: [{op: remove, path: /` + strings.Repeat("a", 1024) + `}]}`,
			[]string{"rules[0].jsonPatch[0].path", "may not be more than 1024"}},
		{"add without a value", `{jsonPatch: [{op: add, path: /a}]}`,
			[]string{"rules[0].jsonPatch[0].value", "value is required"}},
		{"add with the value null", `{jsonPatch: [{op: add, path: /a, value: null}]}`,
			[]string{"rules[0].jsonPatch[0].value", "value is required"}},
		{"remove with a value", `{jsonPatch: [{op: remove, path: /a, value: 1}]}`,
			[]string{"rules[0].jsonPatch[0].value", "must not be set with another op"}},
		{"copy without from", `{jsonPatch: [{op: copy, path: /a}]}`,
			[]string{"rules[0].jsonPatch[0].from", "from is required"}},
		{"add with from", `{jsonPatch: [{op: add, path: /a, from: /b, value: 1}]}`,
			[]string{"rules[0].jsonPatch[0].from", "must not be set with another op"}},
		{"a move of a field into itself", `{jsonPatch: [{op: move, path: /a/b, from: /a}]}`,
			[]string{"rules[0].jsonPatch[0].path", "into itself"}},
		{"a copy of a field into itself",
			`{jsonPatch: [{op: copy, path: /a/b, from: /a}, {op: move, path: /ab, from: /a}]}`, nil},
		{"a value that is nested too deep", `{jsonPatch: [{op: add, path: /a, value: ` + nested(65) + `}]}`,
			[]string{"rules[0].jsonPatch[0].value", "more than 64 levels deep"}},
		{"a value of the maximum depth", `{jsonPatch: [{op: add, path: /a, value: ` + nested(64) + `}]}`, nil},
		{"a merge patch that is nested too deep", `{mergePatch: ` + nested(65) + `}`,
			[]string{"rules[0].mergePatch", "more than 64 levels deep"}},
		{"a merge patch that is a list", `{mergePatch: [a]}`, []string{"rules[0].mergePatch", "must be a JSON object"}},
		{"a merge patch of identifying fields",
			`{mergePatch: {apiVersion: v2, kind: null, status: {a: 1}, metadata: {name: a, ` +
				`namespace: null, generateName: a, ownerReferences: [], labels: {a: b}}}}`,
			[]string{"rules[0].mergePatch.apiVersion", "", "rules[0].mergePatch.kind", "", "rules[0].mergePatch.status", "",
				"rules[0].mergePatch.metadata.name", "", "rules[0].mergePatch.metadata.namespace", "",
				"rules[0].mergePatch.metadata.generateName", "", "rules[0].mergePatch.metadata.ownerReferences", ""}},
		{"a merge patch that removes metadata", `{mergePatch: {metadata: null}}`,
			[]string{"rules[0].mergePatch.metadata", "contains the name"}},
		{"a merge patch with metadata as a list", `{mergePatch: {metadata: [a]}}`,
			[]string{"rules[0].mergePatch.metadata", "contains the name"}},
		{"names that are similar to identifying fields", `{mergePatch: {kinds: 1, Status: 1, metadata: {nameOf: a}}, ` +
			`jsonPatch: [{op: remove, path: /kinds}, {op: remove, path: /spec/status}, {op: remove, path: /metadata/names}, ` +
			`{op: remove, path: /metadata/labels/name}]}`, nil},
		{"test and copy of identifying fields", `{jsonPatch: [{op: test, path: "", value: {}}, {op: test, ` +
			`path: /metadata/name, value: a}, {op: copy, from: /metadata/name, path: /metadata/labels/of}]}`, nil},
	} {
		o := v1alpha1.Overrides{}
		require.NoError(t, yaml.UnmarshalStrict([]byte(`{rules: [`+test.rule+`]}`), &o), test.reason)
		before := o.DeepCopy()
		var got, want []string
		errs := o.Validate(nil)
		for i, err := range errs {
			got = append(got, err.Field)
			if 2*i+1 < len(test.want) && strings.Contains(err.Error(), test.want[2*i+1]) {
				continue
			}
			t.Errorf("%s: want errors %q, got %v", test.reason, test.want, err)
		}
		for pair := range slices.Chunk(test.want, 2) {
			want = append(want, pair[0])
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.reason, diff)
		}
		require.Equal(t, before, &o, "%s: Validate must not change the overrides", test.reason)
	}
}

// TestValidateOverrides_IdentifyingFields tests that no notation of a path changes the fields that identify an object.
func TestValidateOverrides_IdentifyingFields(t *testing.T) {
	for _, path := range []string{"", "/apiVersion", "/kind", "/status", "/status/a", "/metadata", "/metadata/name",
		"/metadata/namespace", "/metadata/generateName", "/metadata/ownerReferences", "/metadata/ownerReferences/0",
		"/kind/\n", "/kind/"} {
		for _, op := range []v1alpha1.JSONPatchOperation{
			{Op: v1alpha1.JSONPatchAdd, Path: path, Value: &runtime.RawExtension{Raw: []byte("1")}},
			{Op: v1alpha1.JSONPatchReplace, Path: path, Value: &runtime.RawExtension{Raw: []byte("1")}},
			{Op: v1alpha1.JSONPatchRemove, Path: path},
			{Op: v1alpha1.JSONPatchCopy, From: "/x", Path: path},
			{Op: v1alpha1.JSONPatchMove, From: "/x", Path: path},
			{Op: v1alpha1.JSONPatchMove, From: path, Path: "/x"},
		} {
			o := v1alpha1.Overrides{Rules: []v1alpha1.OverrideRule{{JSONPatch: []v1alpha1.JSONPatchOperation{op}}}}
			if len(o.Validate(nil)) == 0 {
				t.Errorf("%s from %q to %q: want an error", op.Op, op.From, op.Path)
			}
		}
	}
}

func TestValidateOverrides_TotalSize(t *testing.T) {
	rule := v1alpha1.OverrideRule{
		MergePatch: &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"x":"%0*d"}`, v1alpha1.MaxOverrideBytes/2, 0)}}
	one := v1alpha1.Overrides{Rules: []v1alpha1.OverrideRule{rule}}
	require.Empty(t, one.Validate(nil))
	two := v1alpha1.Overrides{Rules: []v1alpha1.OverrideRule{rule, rule}}
	require.ErrorContains(t, two.Validate(field.NewPath("spec", "overrides")).ToAggregate(),
		"spec.overrides.rules: Too long")
	many := v1alpha1.Overrides{Rules: make([]v1alpha1.OverrideRule, v1alpha1.MaxOverrideRules+1)}
	require.ErrorContains(t, many.Validate(nil).ToAggregate(), "must have at most 64 items")
	names := make([]string, 1001)
	for i := range names {
		names[i] = fmt.Sprintf("c%d", i)
	}
	tooManyNames := v1alpha1.Overrides{Rules: []v1alpha1.OverrideRule{{
		Clusters:   []v1alpha1.ClusterSelector{{Names: names}},
		MergePatch: &runtime.RawExtension{Raw: []byte("{}")},
	}}}
	require.ErrorContains(t, tooManyNames.Validate(nil).ToAggregate(), "rules[0].clusters[0].names: Too many")
	for reason, raw := range map[string]string{"invalid JSON": "{", "an empty text": "", "null": "null"} {
		o := v1alpha1.Overrides{Rules: []v1alpha1.OverrideRule{{MergePatch: &runtime.RawExtension{Raw: []byte(raw)}}}}
		require.NotEmpty(t, o.Validate(nil), reason)
	}
}
