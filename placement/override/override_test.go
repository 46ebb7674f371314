package override_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/placement/bundle"
	"github.com/muster-sdk/muster/placement/override"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

var east = &scheduler.Cluster{
	Name:       "east",
	Labels:     map[string]string{"region": "eu", "empty": ""},
	Properties: map[string]string{"example.com/cost": "5", "sly": `${muster.cluster.name}", "x": "`},
}

const (
	web = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}, spec: {replicas: 2, ` +
		`args: [a, b, c]}}`
	config = `{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: shop}, ` +
		`data: {where: "${muster.cluster.name}"}}`
)

func parse(t testing.TB, text string) bundle.Object {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err, text)
	o, err := bundle.Parse(raw)
	require.NoError(t, err, text)
	return o
}

func overrides(t testing.TB, text string) *v1alpha1.Overrides {
	t.Helper()
	o := &v1alpha1.Overrides{}
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), o), text)
	return o
}

func TestApply(t *testing.T) {
	for _, test := range []struct {
		reason, overrides string
		want              []string // of web and config, in this order
	}{
		{"no rules", `{}`, []string{web, config}},
		{
			"a rule for all clusters and objects", `{rules: [{mergePatch: {metadata: {labels: {a: b}}}}]}`,
			[]string{
				`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop, labels: {a: b}}, ` +
					`spec: {replicas: 2, args: [a, b, c]}}`,
				`{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: shop, labels: {a: b}}, ` +
					`data: {where: "${muster.cluster.name}"}}`,
			},
		},
		{
			"the later rule takes precedence", `{rules: [{objects: [{kind: Deployment}], mergePatch: {spec: {replicas: 3}}}, ` +
				`{objects: [{kind: Deployment}], jsonPatch: [{op: replace, path: /spec/replicas, value: 4}]}]}`,
			[]string{`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}, spec: {replicas: 4, ` +
				`args: [a, b, c]}}`, config},
		},
		{
			"a merge patch after a JSON patch of an earlier rule",
			`{rules: [{objects: [{kind: Deployment}], jsonPatch: [{op: replace, path: /spec/replicas, value: 4}]}, ` +
				`{objects: [{kind: Deployment}], mergePatch: {spec: {replicas: 3}}}]}`,
			[]string{`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}, spec: {replicas: 3, ` +
				`args: [a, b, c]}}`, config},
		},
		{
			"the JSON patch of a rule precedes its merge patch",
			`{rules: [{objects: [{kind: Deployment}], mergePatch: {spec: {replicas: ` +
				`3}}, jsonPatch: [{op: test, path: /spec/replicas, value: 2}]}]}`,
			[]string{`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}, spec: {replicas: 3, ` +
				`args: [a, b, c]}}`, config},
		},
		{
			"a merge patch removes null fields and replaces lists",
			`{rules: [{objects: [{kind: Deployment}], mergePatch: {spec: {replicas: null, ` +
				`gone: null, args: [x], new: {deep: 1, not: null}}}}]}`,
			[]string{`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}, spec: {args: [x], ` +
				`new: {deep: 1}}}`, config},
		},
		{
			"operations build on each other", `{rules: [{objects: [{kind: Deployment}], jsonPatch: [
				{op: move, from: /spec/args/0, path: /spec/args/-}, {op: remove, path: /spec/args/0}, {op: add, path: /spec/args/1,
				  value: d},
				{op: copy, from: /metadata/name, path: /spec/name}, {op: test, path: "", value: {apiVersion: apps/v1,
				  kind: Deployment, metadata: {name: web, namespace: shop}, spec: {replicas: 2.0, name: web, args: [c, d,
				  a]}}}]}]}`,
			[]string{`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}, spec: {replicas: 2, ` +
				`name: web, args: [c, d, a]}}`, config},
		},
		{"a rule for another cluster", `{rules: [{clusters: [{names: [west]}], mergePatch: {x: 1}}]}`, []string{web, config}},
		{
			"a cluster matches one of two selectors by name",
			`{rules: [{clusters: [{cel: ["false"]}, {names: [west, east]}], objects: [{kind: ConfigMap}], delete: true}]}`,
			[]string{web},
		},
		{
			"a cluster matches by labels and properties", `{rules: [{clusters: [{labelSelector: {matchLabels: {region: eu}}, ` +
				`cel: ["quantity(cluster.properties['example.com/cost']) < quantity('10')"]}], objects: [{kind: ConfigMap}], ` +
				`delete: true}]}`,
			[]string{web},
		},
		{"an empty label selector",
			`{rules: [{clusters: [{names: [east], labelSelector: {}}], objects: [{kind: ConfigMap}], delete: true}]}`,
			[]string{web}},
		{"no cluster selector matches", `{rules: [{clusters: [{labelSelector: {matchLabels: {region: us}}}, ` +
			`{cel: ["cluster.name == 'west'"]}], objects: [{kind: ConfigMap}], delete: true}]}`, []string{web, config}},
		{"the name of a cluster selector does not match", `{rules: [{clusters: [{names: [west], ` +
			`labelSelector: {matchLabels: {region: eu}}}], objects: [{kind: ConfigMap}], delete: true}]}`,
			[]string{web, config}},
		{"the labels of a cluster selector do not match",
			`{rules: [{clusters: [{names: [east], labelSelector: {matchLabels: {region: us}}}], ` +
				`objects: [{kind: ConfigMap}], delete: true}]}`, []string{web, config}},
		{"an expression of a cluster selector does not match",
			`{rules: [{clusters: [{names: [east], cel: ["true", "false"]}], objects: [{kind: ConfigMap}], delete: true}]}`,
			[]string{web, config}},
		{"an empty group is the core group", `{rules: [{objects: [{group: "", name: web}], delete: true}]}`, []string{web}},
		{"a selector without a group matches all groups",
			`{rules: [{objects: [{namespace: shop, name: web}], delete: true}]}`, nil},
		{"one of two object selectors matches", `{rules: [{objects: [{kind: Secret}, {group: apps}], delete: true}]}`,
			[]string{config}},
		{"one field of each object selector does not match",
			`{rules: [{objects: [{kind: Deployment, namespace: other}, {kind: ConfigMap, name: other}], delete: true}]}`,
			[]string{web, config}},
		{"patches of a deleted object are not applied",
			`{rules: [{objects: [{kind: ConfigMap}], jsonPatch: [{op: remove, path: /nothing}]}, ` +
				`{objects: [{kind: ConfigMap}], delete: true}, {objects: [{kind: ConfigMap}], mergePatch: {a: 1}}]}`,
			[]string{web}},
		{
			"variables are expanded in patches, but not in the manifest",
			`{rules: [{objects: [{kind: ConfigMap}], jsonPatch: [{op: add, path: /data/a, ` +
				`value: "${muster.cluster.labels[\"region\"]}"}], mergePatch: {data: {b: ` +
				`["${muster.cluster.properties['example.com/cost']}"], c: "${muster.cluster.labels['zone']:-none}"}}}]}`,
			[]string{web, `{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: shop}, ` +
				`data: {where: "${muster.cluster.name}", a: eu, b: ["5"], c: none}}`},
		},
		{"variables are expanded in manifests", `{expandManifests: true}`,
			[]string{web, `{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: shop}, data: {where: east}}`}},
		{
			"a rule applies to the expanded manifest",
			`{expandManifests: true, rules: [{objects: [{kind: ConfigMap}], jsonPatch: [{op: test, path: /data/where, ` +
				`value: "${muster.cluster.name}"}, {op: test, path: /data/where, value: east}]}]}`,
			[]string{web, `{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: shop}, data: {where: east}}`},
		},
		{
			"the value of a property is not parsed", `{expandManifests: true, ` +
				`rules: [{objects: [{kind: ConfigMap}], mergePatch: {data: {where: "${muster.cluster.properties['sly']}"}}}]}`,
			[]string{web, `{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: shop}, ` +
				`data: {where: "${muster.cluster.name}\", \"x\": \""}}`},
		},
		{
			"variables in field names are not expanded",
			`{rules: [{objects: [{kind: ConfigMap}], mergePatch: {data: {"${muster.cluster.nonsense}": a}}}]}`,
			[]string{web, `{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: shop}, ` +
				`data: {where: "${muster.cluster.name}", "${muster.cluster.nonsense}": a}}`},
		},
	} {
		result, err := override.Apply([]bundle.Object{parse(t, web), parse(t, config)}, overrides(t, test.overrides), east)
		require.NoError(t, err, test.reason)
		want := []string{}
		for _, text := range test.want {
			o := parse(t, text)
			want = append(want, string(o.JSON))
		}
		got := []string{}
		for _, o := range result.Objects {
			got = append(got, string(o.JSON))
			again, err := bundle.Parse(o.JSON)
			require.NoError(t, err)
			require.Equal(t, again, o, test.reason)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.reason, diff)
		}
		require.Len(t, result.Deleted, 2-len(want), test.reason)
	}
}

func TestApply_Result(t *testing.T) {
	result, err := override.Apply([]bundle.Object{parse(t, web), parse(t, config)}, overrides(t, `{rules: [
		{clusters: [{names: [west]}], mergePatch: {a: 1}},
		{objects: [{kind: Secret}], mergePatch: {a: 1}},
		{objects: [{kind: Deployment}], delete: true},
		{mergePatch: {data: {a: b}}}]}`), east)
	require.NoError(t, err)
	require.Equal(t, []int{2, 3}, result.Rules, "rules for another cluster or without a matching object are not listed")
	require.Equal(t, []workv1alpha1.ResourceIdentifier{{Group: "apps", Version: "v1", Kind: "Deployment",
		Namespace: "shop", Name: "web"}}, result.Deleted)
	require.Len(t, result.Objects, 1)
}

func TestApply_FailingRules(t *testing.T) {
	for _, test := range []struct {
		reason, overrides string
		want              error
		field             string
		text              string
	}{
		{"a failing test", `{rules: [{mergePatch: {a: 1}}, {objects: [{kind: Deployment}], jsonPatch: [{op: test, ` +
			`path: /spec/replicas, value: 2}, {op: test, path: /spec/replicas, value: 3}]}]}`, override.ErrTestFailed,
			"rules[1].jsonPatch[1].path", "apps/Deployment shop/web for cluster east"},
		{"replacing a missing field",
			`{rules: [{objects: [{kind: Deployment}], jsonPatch: [{op: replace, path: /spec/x, value: 2}]}]}`,
			override.ErrNoPath, "rules[0].jsonPatch[0].path", `"x"`},
		{"adding to a missing field",
			`{rules: [{objects: [{kind: Deployment}], jsonPatch: [{op: add, path: /a/b, value: 2}]}]}`,
			override.ErrNoPath, "rules[0].jsonPatch[0].path", `"a"`},
		{"removing a missing item",
			`{rules: [{objects: [{kind: Deployment}], jsonPatch: [{op: remove, path: /spec/args/3}]}]}`,
			override.ErrNoPath, "rules[0].jsonPatch[0].path", `"3"`},
		{"moving a missing field", `{rules: [{objects: [{kind: Deployment}], jsonPatch: [{op: move, from: /x, path: /y}]}]}`,
			override.ErrNoPath, "rules[0].jsonPatch[0].from", `"x"`},
		{"a field of a number",
			`{rules: [{objects: [{kind: Deployment}], jsonPatch: [{op: add, path: /spec/replicas/x, value: 1}]}]}`,
			override.ErrNoPath, "rules[0].jsonPatch[0].path", `"x"`},
		{"a label that the cluster does not have", `{rules: [{objects: [{kind: Deployment}], jsonPatch: [{op: add, ` +
			`path: /x, value: {a.b: ["", "${muster.cluster.labels['zone']}"]}}]}]}`, override.ErrNoValue,
			`rules[0].jsonPatch[0].value["a.b"][1]`, `muster.cluster.labels["zone"]`},
		{"a property that the cluster does not have",
			`{rules: [{objects: [{kind: Deployment}], mergePatch: {spec: {x: "${muster.cluster.properties['zone']}"}}}]}`,
			override.ErrNoValue, "rules[0].mergePatch.spec.x", `muster.cluster.properties["zone"]`},
	} {
		objects := []bundle.Object{parse(t, web), parse(t, config)}
		result, err := override.Apply(objects, overrides(t, test.overrides), east)
		var at *override.Error
		if !errors.Is(err, test.want) || !errors.As(err, &at) || at.Field != test.field ||
			!strings.Contains(err.Error(), test.text) {
			t.Errorf("%s: want %q at %s, with %q, got %v", test.reason, test.want, test.field, test.text, err)
		}
		require.Equal(t, override.Result{}, result, test.reason)
	}
}

// TestApply_FailingManifests checks that an error in a manifest names the manifest's field, and that the error
// names all objects that fail.
func TestApply_FailingManifests(t *testing.T) {
	other := `{apiVersion: v1, kind: ConfigMap, metadata: {name: other}, ` +
		`data: {"a.b": "${muster.cluster.labels['zone']}"}}`
	wrong := `{apiVersion: v1, kind: ConfigMap, metadata: {name: wrong}, data: {b: "${muster.cluster.region}", ` +
		`c: "${muster.}"}}`
	_, err := override.Apply([]bundle.Object{parse(t, other), parse(t, config), parse(t, wrong)},
		&v1alpha1.Overrides{ExpandManifests: true}, east)
	require.ErrorIs(t, err, override.ErrNoValue)
	require.ErrorIs(t, err, override.ErrSyntax)
	require.ErrorContains(t, err,
		`override ConfigMap other for cluster east: .data["a.b"]: muster.cluster.labels["zone"]: `)
	require.ErrorContains(t, err, `override ConfigMap wrong for cluster east: .data.b: ${muster.cluster.region`)
	for range 20 {
		_, again := override.Apply([]bundle.Object{parse(t, other), parse(t, config), parse(t, wrong)},
			&v1alpha1.Overrides{ExpandManifests: true}, east)
		require.EqualError(t, again, err.Error(), "the error must not depend on the order of a map")
	}
}

func TestNew_RefusesInvalidOverrides(t *testing.T) {
	for _, test := range []struct{ reason, overrides, want string }{
		{"overrides that Validate refuses", `{rules: [{}]}`, "rules[0]: Invalid value: a rule requires"},
		{"an invalid variable in a JSON patch",
			`{rules: [{jsonPatch: [{op: add, path: /a, value: {b: "${muster.cluster.labels[x]}"}}]}]}`,
			"rules[0].jsonPatch[0].value.b: ${muster.cluster.labels[x]: a variable must be"},
		{"an invalid variable in a merge patch", `{rules: [{mergePatch: {b: ["${muster.x}"]}}]}`,
			"rules[0].mergePatch.b[0]: ${muster.x: a variable must be"},
		{"a CEL expression that does not compile",
			`{rules: [{clusters: [{cel: ["true"]}, {cel: ["cluster.nme == 'a'"]}], mergePatch: {a: 1}}]}`,
			"rules[0].clusters[1].cel[0]: "},
		{"an invalid number", `{rules: [{mergePatch: {b: 1e999}}]}`, "rules[0].mergePatch"},
	} {
		text := test.overrides
		o := &v1alpha1.Overrides{}
		require.NoError(t, yaml.UnmarshalStrict([]byte(strings.Replace(text, "1e999", "1", 1)), o))
		if strings.Contains(text, "1e999") {
			o.Rules[0].MergePatch.Raw = []byte(`{"b":1e999}`)
		}
		if _, err := override.New(nil, o); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: want %q, got %v", test.reason, test.want, err)
		}
	}
	_, err := override.New(
		[]bundle.Object{parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: "a-${muster.cluster.name}"}}`)},
		&v1alpha1.Overrides{ExpandManifests: true})
	require.ErrorIs(t, err, override.ErrIdentity)
}
