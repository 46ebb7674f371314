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
		{"metadata is not what it says", with,
			`{apiVersion: addon.muster.dev/v1alpha1, kind: AddonConfig, metadata: {name: b, labels: {a: b}, generation: 7, ` +
				`resourceVersion: "9"}, spec: {proxy: {http: "http://p", noProxy: a}}}`, true},
		{"nor is the status", with,
			`{apiVersion: addon.muster.dev/v1alpha1, kind: AddonConfig, metadata: {name: a}, spec: {proxy: {http: "http://p", ` +
				`noProxy: a}}, status: {seen: true}}`, true},
		{"fields have no order", with,
			`{spec: {proxy: {noProxy: a, http: "http://p"}}, metadata: {name: a}, kind: AddonConfig, ` +
				`apiVersion: addon.muster.dev/v1alpha1}`, true},
		{"a version of the API that has the same fields says the same", with,
			`{apiVersion: addon.muster.dev/v1, kind: AddonConfig, metadata: {name: a}, spec: {proxy: {http: "http://p", ` +
				`noProxy: a}}}`, true},
		{"a value", with,
			`{apiVersion: addon.muster.dev/v1alpha1, kind: AddonConfig, metadata: {name: a}, spec: {proxy: {http: "http://q", ` +
				`noProxy: a}}}`, false},
		{"the order of a list", `{apiVersion: v1, kind: X, spec: {a: [1, 2]}}`,
			`{apiVersion: v1, kind: X, spec: {a: [2, 1]}}`, false},
		{"a number and its digits", `{apiVersion: v1, kind: X, spec: {a: 1}}`, `{apiVersion: v1, kind: X, spec: {a: "1"}}`,
			false},
		{"two ways to write a number", `{apiVersion: v1, kind: X, spec: {a: 1}}`,
			`{apiVersion: v1, kind: X, spec: {a: 1.0}}`, true},
		{"without a spec the data counts", without,
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: "1", b: "3"}}`, false},
		{"and so does all else, in no order", without,
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, uid: u}, data: {b: "2", a: "1"}}`, true},
		{"but for the version of the API and the status", `{apiVersion: example.com/v1, kind: X, limit: 1}`,
			`{apiVersion: example.com/v2, kind: X, limit: 1, status: {seen: true}}`, true},
		{"another field", without,
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: "1", b: "2"}, immutable: true}`, false},
		{"the type of a Secret", `{apiVersion: v1, kind: Secret, data: {a: AA==}}`,
			`{apiVersion: v1, kind: Secret, data: {a: AA==}, type: Opaque}`, false},
		{"a spec that is null is none", `{apiVersion: v1, kind: X, spec: null}`, `{apiVersion: v1, kind: X}`, true},
		{"beside a spec nothing counts", `{apiVersion: v1, kind: X, spec: {}}`,
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

// TestHashesLast checks that hashes do not change: a hash that changed with a release would roll out every add-on of
// every hub.
func TestHashesLast(t *testing.T) {
	require.Equal(t, "33aafd9bf306cd30011aa5fce8154c5a",
		config.Hash(object(t,
			`{apiVersion: addon.muster.dev/v1alpha1, kind: AddonConfig, metadata: {name: a}, spec: {variables: [{name: A, `+
				`value: <b>}]}}`))[:32])
	require.Equal(t, "metrics-13a6371f3f23", config.Revision(content()))
}

func TestHashDoesNotDependOnOrder(t *testing.T) {
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
		where := rapid.SampledFrom([]string{"spec", "data"}).Draw(t, "where")
		a := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "X", where: inner()}}
		b := a.DeepCopy()
		b.Object[where] = inner()
		b.SetLabels(data)
		b.SetName(rapid.String().Draw(t, "name"))
		require.Equal(t, config.Hash(a), config.Hash(b))
		b.Object[where].(map[string]any)["one more"] = "x"
		if _, had := data["one more"]; !had {
			require.NotEqual(t, config.Hash(a), config.Hash(b))
		}
	})
}

func TestResolve(t *testing.T) {
	there := map[v1alpha1.ConfigReference]*unstructured.Unstructured{
		ref("configmaps fleet/a"): object(t, `{apiVersion: v1, kind: ConfigMap, data: {a: "1"}}`),
		ref("configmaps fleet/b"): object(t, `{apiVersion: v1, kind: ConfigMap, data: {b: "1"}}`),
	}
	hashOf := func(r v1alpha1.ConfigReference) string {
		if there[r] == nil {
			return ""
		}
		return config.Hash(there[r])
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
		{ConfigReference: ref("configmaps fleet/b"), DesiredHash: config.Hash(there[ref("configmaps fleet/b")]),
			From: v1alpha1.FromDefault},
		{ConfigReference: ref("configmaps fleet/gone"), AppliedHash: "had", From: v1alpha1.FromPlacement},
		{ConfigReference: ref("configmaps fleet/a"), DesiredHash: config.Hash(there[ref("configmaps fleet/a")]),
			AppliedHash: "older", From: v1alpha1.FromMember},
	}, got), "the member keeps its hash until the assignment; the source is the current one")
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
		{"nothing", func(*config.Content) {}, true},
		{"what is applied is not what is wanted", func(c *config.Content) { c.Configs[0].AppliedHash = "aa" }, true},
		{"the source makes no difference on the member",
			func(c *config.Content) { c.Configs[0].From = v1alpha1.FromMember }, true},
		{"kinds that are declared in another order are the same kinds",
			func(c *config.Content) { c.Configs = []v1alpha1.ConfigStatus{c.Configs[2], c.Configs[0], c.Configs[1]} }, true},
		{"of one kind the order says what goes before what",
			func(c *config.Content) { c.Configs[0], c.Configs[1] = c.Configs[1], c.Configs[0] }, false},
		{"what a configuration says", func(c *config.Content) { c.Configs[2].DesiredHash = "dd" }, false},
		{"a configuration that is missing", func(c *config.Content) { c.Configs[2].DesiredHash = "" }, false},
		{"an agent may use the name of a configuration", func(c *config.Content) { c.Configs[2].Name = "others" }, false},
		{"and its namespace", func(c *config.Content) { c.Configs[2].Namespace = "other" }, false},
		{"one less", func(c *config.Content) { c.Configs = c.Configs[:2] }, false},
		{"none", func(c *config.Content) { c.Configs = nil }, false},
		{"another version of the agent", func(c *config.Content) { c.Version = "1.2.1" }, false},
		{"another namespace on the member", func(c *config.Content) { c.InstallNamespace = "monitoring" }, false},
		{"another member that runs the agent: it moves by the rollout",
			func(c *config.Content) { c.HostingMember = "east" }, false},
		{"another add-on", func(c *config.Content) { c.Addon = "metric" }, false},
		{"what ends one field does not begin the next",
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
		"nil is the same as none")
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
		require.Equal(t, mixed, config.Revision(c), "however many there are")
		return mixed
	}
	require.NotEqual(t, many("a", "b"), many("b", "a"))
	given := content()
	config.Revision(given)
	require.Equal(t, content(), given)
}
