package revision

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/placement/bundle"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// object returns an object that contains a text.
func object(t require.TestingT, name, text string) bundle.Object {
	quoted, err := json.Marshal(text)
	require.NoError(t, err)
	o, err := bundle.Parse(
		fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"k":%s}}`, name, quoted))
	require.NoError(t, err)
	return o
}

// contentOf parses a Content in the form of a WorkSet, and adds two objects.
func contentOf(t require.TestingT, spec string) *Content {
	c := &Content{Objects: []bundle.Object{object(t, "a", "<1>"), object(t, "b", "2")}}
	var s settings
	require.NoError(t, yaml.UnmarshalStrict([]byte(spec), &s))
	c.Overrides, c.Replicas, c.Work = s.Overrides, s.Replicas, s.Work
	return c
}

// everything sets a value in each field.
const everything = `
overrides:
  expandManifests: true
  rules:
  - {clusters: [{names: [paris], labelSelector: {matchLabels: {tier: ""}}}], objects: [{group: ""}, {}],
    mergePatch: {data: {empty: {}, gone: null, num: 1.0, z: -0.0, s: "<"}}}
  - {jsonPatch: [{op: add, path: /data/x, value: {}}, {op: test, path: /data/y, value: ""}, {op: remove,
    path: /data/z}]}
replicas: {strategy: StaticWeight, weights: [{clusters: {names: [paris]}, weight: 0}, {clusters: {cel: ["true"]},
  weight: 3}]}
work:
  apply: {mode: CreateOnly, keepConflicts: true}
  manifestOptions: [{select: {group: ""}, wave: 0, readiness: {cel: "true"}, feedback: [{name: a, jsonPath: .b}]}]
  waves: {waitForReadiness: true, timeoutSeconds: 60}
  delete: {action: Orphan, propagation: Background}
  executor: {namespace: shop, name: robot}
`

// TestHash_EqualsEarlierReleases checks that the hash equals that of earlier releases: otherwise an upgrade would roll
// out all WorkSets of a hub.
func TestHash_EqualsEarlierReleases(t *testing.T) {
	for _, test := range []struct{ reason, spec, want string }{
		{"objects alone", `{}`, "fdf2e1d008a452facb5d0eb02c27e8465946bdb6e84ea43299b51193d5cbbceb"},
		{"all fields", everything, "b039db08ec99d688ed171c661ed7ea8afe11ac8bb26c076ea8cb39425e72ddc0"},
	} {
		require.Equal(t, test.want, contentOf(t, test.spec).Hash().String(), test.reason)
	}
}

func TestHash(t *testing.T) {
	for _, test := range []struct {
		reason, one, other string
		same               bool
	}{
		{"no overrides", `{}`, `overrides: {}`, true},
		{"empty overrides", `{}`, `overrides: {rules: [], expandManifests: false}`, true},
		{"no division", `{}`, `replicas: {strategy: ""}`, true},
		{"empty weights and objects", `replicas: {strategy: StaticWeight}`,
			`replicas: {strategy: StaticWeight, weights: [], objects: []}`, true},
		{"defaults of the API", `{}`, `work: {apply: {mode: ServerSideApply, takeover: Never, drift: Correct}, ` +
			`waves: {timeoutSeconds: 600}, delete: {action: Delete, propagation: Foreground}}`, true},
		{"the notation of a patch", `overrides: {rules: [{mergePatch: {a: 1.0, b: "<"}}]}`,
			`overrides: {rules: [{mergePatch: {b: "\u003c", a: 1}}]}`, true},
		{"a null patch", `overrides: {rules: [{delete: true, mergePatch: null}]}`,
			`overrides: {rules: [{delete: true}]}`, true},
		{"a value that is not the default", `{}`, `work: {apply: {mode: CreateOnly}}`, false},
		{"the default of one field is not that of another", `{}`,
			`work: {manifestOptions: [{select: {name: a}, mode: ServerSideApply}]}`, false},
		{"the core group and any group", `overrides: {rules: [{objects: [{group: "", name: a}], delete: true}]}`,
			`overrides: {rules: [{objects: [{name: a}], delete: true}]}`, false},
		{"wave 0 and the kind's wave", `work: {manifestOptions: [{select: {name: a}, wave: 0}]}`,
			`work: {manifestOptions: [{select: {name: a}}]}`, false},
		{"an empty map in a patch", `overrides: {rules: [{mergePatch: {a: {}}}]}`, `overrides: {rules: [{mergePatch: {}}]}`,
			false},
		{"a null in a patch", `overrides: {rules: [{mergePatch: {a: null}}]}`,
			`overrides: {rules: [{mergePatch: {}}]}`, false},
		{"an empty patch", `overrides: {rules: [{delete: true, mergePatch: {}}]}`,
			`overrides: {rules: [{delete: true}]}`, false},
		{"an empty label value", `overrides: {rules: [{clusters: [{labelSelector: {matchLabels: {a: ""}}}]}]}`,
			`overrides: {rules: [{clusters: [{labelSelector: {}}]}]}`, false},
		{"another empty rule", `overrides: {rules: [{}]}`, `overrides: {rules: [{}, {}]}`, false},
		{"the order of rules", `overrides: {rules: [{mergePatch: {a: 1}}, {mergePatch: {a: 2}}]}`,
			`overrides: {rules: [{mergePatch: {a: 2}}, {mergePatch: {a: 1}}]}`, false},
		{"the executor", `{}`, `work: {executor: {namespace: a, name: b}}`, false},
	} {
		require.Equal(t, test.same, contentOf(t, test.one).Hash() == contentOf(t, test.other).Hash(), test.reason)
	}
	full := contentOf(t, everything)
	before, err := json.Marshal(full)
	require.NoError(t, err)
	hash := full.Hash()
	after, err := json.Marshal(full)
	require.NoError(t, err)
	require.Equal(t, string(before), string(after), "Hash must not change the content")
	full.Objects = full.Objects[:1]
	require.NotEqual(t, hash, full.Hash(), "a content without one object")
	require.NotEqual(t, (&Content{}).Hash(), full.Hash())
}

// TestHash_Defaults checks that each default of the CustomResourceDefinition for a field of a Content results in the
// same revision.
func TestHash_Defaults(t *testing.T) {
	definition := &apiextensionsv1.CustomResourceDefinition{}
	require.NoError(t, yaml.Unmarshal(readFile(t, "../../crds/placement.muster.dev_worksets.yaml"), definition))
	spec := definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties
	found := 0
	var walk func(schema *apiextensionsv1.JSONSchemaProps, within func(any) any)
	walk = func(schema *apiextensionsv1.JSONSchemaProps, within func(any) any) {
		for name := range schema.Properties {
			child := schema.Properties[name]
			path := func(value any) any { return within(map[string]any{name: value}) }
			if child.Default != nil {
				found++
				text, err := json.Marshal(path(json.RawMessage(child.Default.Raw)))
				require.NoError(t, err)
				require.Equal(t, contentOf(t, `{}`).Hash(), contentOf(t, string(text)).Hash(),
					"%s is a default: add it to defaults", text)
			}
			walk(&child, path)
		}
		if schema.Items != nil {
			var defaults []string
			walkDefaults(schema.Items.Schema, &defaults)
			require.Empty(t, defaults, "defaults does not support a default in a list")
		}
	}
	for _, name := range []string{"overrides", "replicas", "work"} {
		schema := spec[name]
		walk(&schema, func(value any) any { return map[string]any{name: value} })
	}
	require.Equal(t, 9, found, "work.apply, work.waves, work.delete and six fields in them")
	require.Len(t, defaults(&v1alpha1.WorkTemplate{}), 6)
}

func walkDefaults(schema *apiextensionsv1.JSONSchemaProps, found *[]string) {
	for name, child := range schema.Properties {
		if child.Default != nil {
			*found = append(*found, name)
		}
		walkDefaults(&child, found)
	}
	if schema.Items != nil {
		walkDefaults(schema.Items.Schema, found)
	}
}

func TestHashDoesNotDependOnOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawContent(t)
		other := *c
		other.Objects = rapid.Permutation(c.Objects).Draw(t, "order")
		require.Equal(t, c.Hash(), other.Hash())
		if len(c.Objects) > 0 {
			other.Objects = slices.Concat(other.Objects, other.Objects[:1])
			require.NotEqual(t, c.Hash(), other.Hash(), "a repeated object must change the hash")
		}
	})
}

func workSetNamed(namespace, name string) *v1alpha1.WorkSet {
	return &v1alpha1.WorkSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

var namespaced = regexp.MustCompile("-[0-9a-f]{12}(-[0-9]{1,4})?$")

func TestName(t *testing.T) {
	h := contentOf(t, everything).Hash()
	require.Equal(t, "web-"+h.String()[:12], Name(workSetNamed("apps", "web"), h))
	require.Equal(t, "web-"+h.String()[:13], Name(workSetNamed("", "web"), h))
	seen := map[string]bool{}
	for length := 1; length <= validation.DNS1123SubdomainMaxLength; length++ {
		for _, namespace := range []string{"apps", ""} {
			workSet := workSetNamed(namespace, strings.Repeat("a.", length)[:length-1]+"b")
			name := Name(workSet, h)
			require.Empty(t, validation.IsDNS1123Subdomain(name))
			require.Empty(t, validation.IsDNS1123Subdomain(place{9999, 9999}.objectName(name)))
			require.False(t, seen[name])
			seen[name] = true
			require.True(t, isName(workSet, name))
			require.False(t, isName(workSet, place{1, 2}.objectName(name)))
			// A WorkSet and a ClusterWorkSet never have a revision, or a part of one, of the same name.
			require.Equal(t, namespace != "", namespaced.MatchString(name), name)
			require.Equal(t, namespace != "", namespaced.MatchString(place{1, 2}.objectName(name)), name)
		}
	}
	for _, name := range []string{"", "web", "web-", "web-5F6D8C9B7A12", "web-5f6d8c9b7a1", "web-5f6d8c9b7a12a",
		"web/5f6d8c9b7a12", "../5f6d8c9b7a12", "db-5f6d8c9b7a12"} {
		require.False(t, isName(workSetNamed("apps", "web"), name), name)
	}
}

// drawContent returns a random content that a WorkSet may have.
func drawContent(t *rapid.T) *Content {
	c := &Content{}
	for i := range rapid.IntRange(0, 12).Draw(t, "objects") {
		c.Objects = append(c.Objects, object(t, fmt.Sprintf("o%d", i), rapid.String().Draw(t, "text")))
	}
	patches := rapid.SampledFrom([]string{`{}`, `{"a":null}`, `{"a":{},"b":[-0.0,1.50,1e3,12345678901234567890]}`,
		`"<&>\u2028"`, `[]`, `0`, `-0.0`, `null`})
	texts := rapid.SampledFrom([]string{"", "a", "<"})
	if rapid.Bool().Draw(t, "overrides") {
		c.Overrides = &v1alpha1.Overrides{ExpandManifests: rapid.Bool().Draw(t, "expand")}
		for range rapid.IntRange(0, 3).Draw(t, "rules") {
			rule := v1alpha1.OverrideRule{Delete: rapid.Bool().Draw(t, "delete")}
			if rapid.Bool().Draw(t, "merges") {
				rule.MergePatch = raw(patches.Draw(t, "merge"))
			}
			if rapid.Bool().Draw(t, "patches") {
				rule.JSONPatch = []v1alpha1.JSONPatchOperation{{Op: "add", Path: texts.Draw(t, "path"),
					Value: raw(patches.Draw(t, "value"))}, {}}
			}
			if rapid.Bool().Draw(t, "selects") {
				rule.Objects = []v1alpha1.ObjectSelector{{Group: new(texts.Draw(t, "group")), Name: texts.Draw(t, "name")}, {}}
				rule.Clusters = []v1alpha1.ClusterSelector{
					{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{
						texts.Draw(t, "label"): texts.Draw(t, "of")}}}, {LabelSelector: &metav1.LabelSelector{}}}
			}
			c.Overrides.Rules = append(c.Overrides.Rules, rule)
		}
	}
	if rapid.Bool().Draw(t, "replicas") {
		c.Replicas = &v1alpha1.ReplicaDivision{
			Strategy: rapid.SampledFrom([]v1alpha1.DivisionStrategy{"", v1alpha1.DivisionStaticWeight}).Draw(t, "strategy"),
			Weights:  make([]v1alpha1.ClusterWeight, rapid.IntRange(0, 2).Draw(t, "weights")),
		}
	}
	c.Work.Apply.Mode = rapid.SampledFrom([]workv1alpha1.ApplyMode{"", workv1alpha1.ServerSideApply,
		workv1alpha1.CreateOnly}).Draw(t, "mode")
	c.Work.Waves.TimeoutSeconds = rapid.SampledFrom([]int32{0, 600, 60}).Draw(t, "timeout")
	if rapid.Bool().Draw(t, "executor") {
		c.Work.Executor = &workv1alpha1.Executor{Name: texts.Draw(t, "executor's name")}
	}
	for range rapid.IntRange(0, 2).Draw(t, "options") {
		c.Work.ManifestOptions = append(c.Work.ManifestOptions, workv1alpha1.ManifestOption{
			Wave: new(rapid.Int32Range(0, 1).Draw(t, "wave")), IgnoredFields: []string{texts.Draw(t, "ignored")}})
	}
	return c
}

// BenchmarkHash measures the hash. The time is that of sorting hashes: 1,000 objects with 1 KiB and with 64 KiB of
// text take the same time.
func BenchmarkHash(b *testing.B) {
	for _, size := range []int{1 << 10, 64 << 10} {
		b.Run(fmt.Sprintf("1000x%dKiB", size>>10), func(b *testing.B) {
			c := contentOf(b, everything)
			for i := range 998 {
				c.Objects = append(c.Objects, object(b, fmt.Sprintf("o%d", i), strings.Repeat("x", size)))
			}
			b.ReportAllocs()
			for b.Loop() {
				c.Hash()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(c.Objects)), "ns/object")
		})
	}
}
