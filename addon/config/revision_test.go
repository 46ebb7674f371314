package config_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/addon/config"
	"github.com/muster-sdk/muster/addon/v1alpha1"
)

func object(t require.TestingT, text string) *unstructured.Unstructured {
	out := &unstructured.Unstructured{}
	json, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	require.NoError(t, out.UnmarshalJSON(json))
	return out
}

func TestHash(t *testing.T) {
	const with = `{apiVersion: addon.muster.dev/v1alpha1, kind: AddonConfig, metadata: {name: a}, ` +
		`spec: {proxy: {http: "http://p", noProxy: a}}}`
	const without = `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: "1", b: "2"}}`
	for _, tc := range []struct {
		reason, a, b string
		same         bool
	}{
		{"metadata does not change the hash", with,
			`{apiVersion: addon.muster.dev/v1alpha1, kind: AddonConfig, metadata: {name: b, labels: {a: b}, generation: 7, ` +
				`resourceVersion: "9"}, spec: {proxy: {http: "http://p", noProxy: a}}}`, true},
		{"the status does not change the hash", with,
			`{apiVersion: addon.muster.dev/v1alpha1, kind: AddonConfig, metadata: {name: a}, spec: {proxy: {http: "http://p", ` +
				`noProxy: a}}, status: {seen: true}}`, true},
		{"the order of fields does not change the hash", with,
			`{spec: {proxy: {noProxy: a, http: "http://p"}}, metadata: {name: a}, kind: AddonConfig, ` +
				`apiVersion: addon.muster.dev/v1alpha1}`, true},
		{"the API version does not change the hash", with,
			`{apiVersion: addon.muster.dev/v1, kind: AddonConfig, metadata: {name: a}, spec: {proxy: {http: "http://p", ` +
				`noProxy: a}}}`, true},
		{"a value of the spec changes the hash", with,
			`{apiVersion: addon.muster.dev/v1alpha1, kind: AddonConfig, metadata: {name: a}, spec: {proxy: {http: "http://q", ` +
				`noProxy: a}}}`, false},
		{"the order of a list changes the hash", `{apiVersion: v1, kind: X, spec: {a: [1, 2]}}`,
			`{apiVersion: v1, kind: X, spec: {a: [2, 1]}}`, false},
		{"a number and a string of its digits are different",
			`{apiVersion: v1, kind: X, spec: {a: 1}}`, `{apiVersion: v1, kind: X, spec: {a: "1"}}`,
			false},
		{"1 and 1.0 are equal", `{apiVersion: v1, kind: X, spec: {a: 1}}`,
			`{apiVersion: v1, kind: X, spec: {a: 1.0}}`, true},
		{"without a spec, the data changes the hash", without,
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: "1", b: "3"}}`, false},
		{"without a spec, metadata and the order of data do not change the hash", without,
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, uid: u}, data: {b: "2", a: "1"}}`, true},
		{"without a spec, the API version and the status do not change the hash",
			`{apiVersion: example.com/v1, kind: X, limit: 1}`,
			`{apiVersion: example.com/v2, kind: X, limit: 1, status: {seen: true}}`, true},
		{"without a spec, an additional field changes the hash", without,
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: "1", b: "2"}, immutable: true}`, false},
		{"the type of a Secret changes the hash", `{apiVersion: v1, kind: Secret, data: {a: AA==}}`,
			`{apiVersion: v1, kind: Secret, data: {a: AA==}, type: Opaque}`, false},
		{"a null spec is equal to a missing spec",
			`{apiVersion: v1, kind: X, spec: null}`, `{apiVersion: v1, kind: X}`, true},
		{"with a spec, other fields do not change the hash", `{apiVersion: v1, kind: X, spec: {}}`,
			`{apiVersion: v1, kind: X, spec: {}, data: {a: b}}`, true},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			a, b := object(t, tc.a), object(t, tc.b)
			before := a.DeepCopy()
			require.Equal(t, tc.same, config.Hash(a) == config.Hash(b))
			require.Equal(t, before, a)
			require.Len(t, config.Hash(a), 64)
		})
	}
}

// TestHash_StableAcrossReleases checks that hashes do not change: a hash that changed with a release would roll out
// every add-on of every hub.
func TestHash_StableAcrossReleases(t *testing.T) {
	require.Equal(t, "33aafd9bf306cd30011aa5fce8154c5a",
		config.Hash(object(t,
			`{apiVersion: addon.muster.dev/v1alpha1, kind: AddonConfig, metadata: {name: a}, spec: {variables: [{name: A, `+
				`value: <b>}]}}`))[:32])
	require.Equal(t, "metrics-13a6371f3f23", config.Revision(content()))
}

func TestHash_IndependentOfOrder(t *testing.T) {
	values := rapid.MapOf(rapid.StringN(0, 4, 8), rapid.StringN(0, 4, 8))
	rapid.Check(t, func(t *rapid.T) {
		data := values.Draw(t, "data")
		inner := func() map[string]any {
			out := map[string]any{}
			for k, v := range data {
				out[k] = v
			}
			return out
		}
		field := rapid.SampledFrom([]string{"spec", "data"}).Draw(t, "field")
		a := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "X", field: inner()}}
		b := a.DeepCopy()
		b.Object[field] = inner()
		b.SetLabels(data)
		b.SetName(rapid.String().Draw(t, "name"))
		require.Equal(t, config.Hash(a), config.Hash(b))
		b.Object[field].(map[string]any)["one more"] = "x"
		if _, exists := data["one more"]; !exists {
			require.NotEqual(t, config.Hash(a), config.Hash(b))
		}
	})
}

func TestResolve(t *testing.T) {
	existing := map[v1alpha1.ConfigReference]*unstructured.Unstructured{
		ref("configmaps fleet/a"): object(t, `{apiVersion: v1, kind: ConfigMap, data: {a: "1"}}`),
		ref("configmaps fleet/b"): object(t, `{apiVersion: v1, kind: ConfigMap, data: {b: "1"}}`),
	}
	hashOf := func(r v1alpha1.ConfigReference) string {
		if existing[r] == nil {
			return ""
		}
		return config.Hash(existing[r])
	}
	references := []config.Reference{
		{ref("configmaps fleet/b"), v1alpha1.FromDefault},
		{ref("configmaps fleet/gone"), v1alpha1.FromPlacement},
		{ref("configmaps fleet/a"), v1alpha1.FromMember},
	}
	last := []v1alpha1.ConfigStatus{
		{ConfigReference: ref("configmaps fleet/a"), DesiredHash: "old", AppliedHash: "older", From: v1alpha1.FromDefault},
		{ConfigReference: ref("configmaps fleet/gone"), AppliedHash: "had"},
		{ConfigReference: ref("configmaps fleet/other"), AppliedHash: "other"},
	}
	got, problems := config.Resolve(references, last, hashOf)
	require.Empty(t, cmp.Diff([]v1alpha1.ConfigStatus{
		{ConfigReference: ref("configmaps fleet/b"), DesiredHash: config.Hash(existing[ref("configmaps fleet/b")]),
			From: v1alpha1.FromDefault},
		{ConfigReference: ref("configmaps fleet/gone"), AppliedHash: "had", From: v1alpha1.FromPlacement},
		{ConfigReference: ref("configmaps fleet/a"), DesiredHash: config.Hash(existing[ref("configmaps fleet/a")]),
			AppliedHash: "older", From: v1alpha1.FromMember},
	}, got), "want the applied hash of the last status and the current source")
	require.Equal(t, []config.Problem{{references[1], v1alpha1.ReasonConfigNotFound}}, problems)

	again, _ := config.Resolve(references, got, hashOf)
	require.Equal(t, got, again)
}

// content returns the content of the add-on metrics.
func content(change ...func(*config.Content)) config.Content {
	c := config.Content{Addon: "metrics", Version: "1.2.0", InstallNamespace: "muster-addons",
		Configs: []v1alpha1.ConfigStatus{
			{ConfigReference: ref("addonconfigs.addon.muster.dev fleet/base"), DesiredHash: "aa", From: v1alpha1.FromDefault},
			{ConfigReference: ref("addonconfigs.addon.muster.dev fleet/edge"), DesiredHash: "bb", From: v1alpha1.FromDefault},
			{ConfigReference: ref("configmaps fleet/rules"), DesiredHash: "cc", From: v1alpha1.FromMember},
		}}
	for _, f := range change {
		f(&c)
	}
	return c
}

func TestRevision(t *testing.T) {
	same := config.Revision(content())
	for _, tc := range []struct {
		reason string
		change func(*config.Content)
		same   bool
	}{
		{"no change", func(*config.Content) {}, true},
		{"the applied hash of a configuration does not change the revision",
			func(c *config.Content) { c.Configs[0].AppliedHash = "aa" }, true},
		{"the source of a configuration does not change the revision",
			func(c *config.Content) { c.Configs[0].From = v1alpha1.FromMember }, true},
		{"the order of kinds does not change the revision",
			func(c *config.Content) { c.Configs = []v1alpha1.ConfigStatus{c.Configs[2], c.Configs[0], c.Configs[1]} }, true},
		{"the order within a kind",
			func(c *config.Content) { c.Configs[0], c.Configs[1] = c.Configs[1], c.Configs[0] }, false},
		{"the desired hash of a configuration", func(c *config.Content) { c.Configs[2].DesiredHash = "dd" }, false},
		{"a missing configuration", func(c *config.Content) { c.Configs[2].DesiredHash = "" }, false},
		{"the name of a configuration", func(c *config.Content) { c.Configs[2].Name = "others" }, false},
		{"the namespace of a configuration", func(c *config.Content) { c.Configs[2].Namespace = "other" }, false},
		{"one configuration less", func(c *config.Content) { c.Configs = c.Configs[:2] }, false},
		{"no configurations", func(c *config.Content) { c.Configs = nil }, false},
		{"the version", func(c *config.Content) { c.Version = "1.2.1" }, false},
		{"the install namespace", func(c *config.Content) { c.InstallNamespace = "monitoring" }, false},
		{"the hosting member",
			func(c *config.Content) { c.HostingMember = "east" }, false},
		{"the name of the add-on", func(c *config.Content) { c.Addon = "metric" }, false},
		{"the boundary between two fields",
			func(c *config.Content) { c.Version, c.InstallNamespace = "1.2.0m", "uster-addons" }, false},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			changed := content(tc.change)
			got := config.Revision(changed)
			require.Equal(t, tc.same, got == same)
			require.Empty(t, validation.IsValidLabelValue(got))
		})
	}
	none := content(func(c *config.Content) { c.Configs = []v1alpha1.ConfigStatus{} })
	require.Equal(t, config.Revision(content(func(c *config.Content) { c.Configs = nil })), config.Revision(none),
		"want equal revisions for a nil list and an empty list")
	many := func(first, second string) string {
		var c config.Content
		for i := range 40 {
			name := first
			if i%2 == 1 {
				name = second
			}
			c.Configs = append(c.Configs,
				v1alpha1.ConfigStatus{ConfigReference: ref("configmaps " + name), DesiredHash: strconv.Itoa(i)},
				v1alpha1.ConfigStatus{ConfigReference: ref("secrets a")})
		}
		slices.SortFunc(c.Configs,
			func(a, b v1alpha1.ConfigStatus) int { return strings.Compare(a.DesiredHash, b.DesiredHash) })
		mixed := config.Revision(c)
		slices.SortStableFunc(c.Configs,
			func(a, b v1alpha1.ConfigStatus) int { return strings.Compare(a.Resource, b.Resource) })
		require.Equal(t, mixed, config.Revision(c), "want a revision that does not depend on the order of kinds")
		return mixed
	}
	require.NotEqual(t, many("a", "b"), many("b", "a"))
	given := content()
	config.Revision(given)
	require.Equal(t, content(), given)
}
