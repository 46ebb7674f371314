package feedback_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/work/feedback"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	out := &unstructured.Unstructured{}
	require.NoError(t, out.UnmarshalJSON(data))
	return out
}

func compiled(t testing.TB, path string) *feedback.Path {
	t.Helper()
	out, err := feedback.Compile(path)
	require.NoError(t, err)
	return out
}

const shop = `
apiVersion: example.com/v1
kind: Shop
metadata: {name: a, annotations: {example.com/note: hello}}
status:
  phase: Open
  replicas: 3
  load: 1.5
  primary: true
  nothing: null
  empty: ""
  markup: <b>
  sections: {z: 1, a: 2, m: 3}
  hosts:
  - {name: one, port: 80, up: true, zones: [v, w], weight: 1.5}
  - {name: two, port: 443, up: false, zones: [z]}
  - {name: three, port: 8080}
`

func TestValue(t *testing.T) {
	const text, number, boolean, structure = v1alpha1.FeedbackString, v1alpha1.FeedbackNumber, v1alpha1.FeedbackBoolean,
		v1alpha1.FeedbackJSON
	tests := []struct {
		reason, path string
		kind         v1alpha1.FeedbackType // empty: no value
		value        string
	}{
		{"string without quotes", ".status.phase", text, "Open"},
		{"path in braces", "{.status.phase}", text, "Open"},
		{"path without the leading dot", "status.phase", text, "Open"},
		{"path in braces with spaces", " { status.phase } ", text, "Open"},
		{"path with the root operator", "$.status.phase", text, "Open"},
		{"keys in brackets", "['status']['phase']", text, "Open"},
		{"escaped dot in a key", `.metadata.annotations.example\.com/note`, text, "hello"},
		{"integer", ".status.replicas", number, "3"},
		{"fraction", ".status.load", number, "1.5"},
		{"boolean", ".status.primary", boolean, "true"},
		{"empty string is a value", ".status.empty", text, ""},
		{"JSON without escapes of HTML", ".status['markup','empty']", structure, `["<b>",""]`},
		{"map with sorted keys", ".status.sections", structure, `{"a":2,"m":3,"z":1}`},
		{"list", ".status.hosts[0].zones", structure, `["v","w"]`},
		{"several values", ".status.hosts[*].name", structure, `["one","two","three"]`},
		{"values of a map are in the order of the keys", ".status.sections.*", structure, "[2,3,1]"},
		{"wildcard on a list", ".status.hosts.*.port", structure, "[80,443,8080]"},
		{"wildcard with a single value", ".status.hosts[*].weight", number, "1.5"},

		{"null is not a value", ".status.nothing", "", ""},
		{"missing field", ".status.state.of.affairs", "", ""},
		{"field of a string", ".status.phase.name", "", ""},
		{"index after the end of a list", ".status.hosts[3].name", "", ""},
		{"negative index before the start of a list", ".status.hosts[-4].name", "", ""},
		{"index of a map", ".status.sections[0]", "", ""},
		{"filter of a string", ".status.phase[?(@.a)]", "", ""},

		{"last item", ".status.hosts[-1].name", text, "three"},
		{"slice with a start", ".status.hosts[1:].name", structure, `["two","three"]`},
		{"slice with an end", ".status.hosts[:-1].name", structure, `["one","two"]`},
		{"slice beyond both ends", ".status.hosts[-9:9].name", structure, `["one","two","three"]`},
		{"slice after the end", ".status.hosts[9:].name", "", ""},
		{"slice with a step", ".status.hosts[::2].name", structure, `["one","three"]`},
		{"slice with a huge step", ".status.hosts[::9223372036854775807].name", text, "one"},
		{"slice with a start and a huge step", ".status.hosts[1::9223372036854775807].name", text, "two"},
		{"huge index", ".status.hosts[9223372036854775807].name", "", ""},
		{"union of fields", ".status['phase','replicas']", structure, `["Open",3]`},
		{"union of indexes", ".status.hosts[0,2].name", structure, `["one","three"]`},

		{"filter by a string", `.status.hosts[?(@.name=="two")].port`, number, "443"},
		{"filter with single quotes", `.status.hosts[?(@.name=='two')].port`, number, "443"},
		{"filter with !=", `.status.hosts[?(@.name!="two")].port`, structure, "[80,8080]"},
		{"filter with <", `.status.hosts[?(@.port<443)].name`, text, "one"},
		{"filter with <=", `.status.hosts[?(@.port<=443)].name`, structure, `["one","two"]`},
		{"filter with > a fraction", `.status.hosts[?(@.port>443.5)].name`, text, "three"},
		{"filter with > excludes the equal value", `.status.hosts[?(@.port>443)].name`, text, "three"},
		{"boolean is not equal to a string", `.status.hosts[?(@.up!="false")].name`, structure, `["one","two"]`},
		{"filter with >=", `.status.hosts[?(@.port>=443)].name`, structure, `["two","three"]`},
		{"filter by a fraction and an integer", `.status.hosts[?(@.weight>1)].name`, text, "one"},
		{"filter by equal fractions", `.status.hosts[?(@.weight==1.5)].name`, text, "one"},
		{"filter by a boolean", `.status.hosts[?(@.up==true)].name`, text, "one"},
		{"missing field matches no comparison", `.status.hosts[?(@.up!=true)].name`, text, "two"},
		{"values of different types are not equal", `.status.hosts[?(@.port!="80")].name`, structure,
			`["one","two","three"]`},
		{"values of different types have no order", `.status.hosts[?(@.port<"99")].name`, "", ""},
		{"filter by existence", `.status.hosts[?(@.zones)].name`, structure, `["one","two"]`},
		{"filter that compares two fields", `.status.hosts[?(@.port==@.port)].name`, structure, `["one","two","three"]`},
		{"filter with spaces", `.status.hosts[?( @.zones[0] == "z" )].name`, text, "two"},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			o := object(t, shop)
			before := o.DeepCopy()
			for range 3 { // the result is deterministic
				got, ok, err := compiled(t, test.path).Value(o)
				require.NoError(t, err)
				require.Equal(t, test.kind != "", ok)
				require.Empty(t, cmp.Diff(v1alpha1.FeedbackValue{Type: test.kind, Value: test.value}, got), "(-want +got)")
			}
			require.Empty(t, cmp.Diff(before, o), "(-before +after)")
		})
	}
	_, ok, err := compiled(t, ".a").Value(nil)
	require.NoError(t, err)
	require.False(t, ok)
	got, _, err := compiled(t, ".a").Value(&unstructured.Unstructured{Object: map[string]any{"a": "\xff"}})
	require.NoError(t, err)
	require.Equal(t, "\uFFFD", got.Value, "invalid UTF-8 is replaced")
	require.Equal(t, "{ .a }", compiled(t, " {\n.a }").String())
}

func TestCompileErrors(t *testing.T) {
	tests := []struct{ reason, path, want string }{
		{"empty path", "", "must have a field name after each dot"},
		{"empty braces", "{}", "must have a field name after each dot"},
		{"root only", "$", "must name a field"},
		{"trailing dot", ".status.", "must have a field name after each dot"},
		{"recursive descent", "..phase", "recursive descent (..) is not supported"},
		{"recursive descent after a field", ".status..phase", "recursive descent (..) is not supported"},
		{"recursive descent in a filter", ".status.hosts[?(@..a)]", "recursive descent (..) is not supported"},
		{"recursive descent in a union", ".status['a..b','c']", "recursive descent (..) is not supported"},
		{"range template", "{range .items[*]}{.name}{end}", "must be a single path"},
		{"incomplete range template", "{range .items}", "Identifier: range is not supported in a path"},
		{"two paths", "{.a}{.b}", "must be a single path"},
		{"text after a path", `{.a}text`, "unrecognized character"},
		{"root operator with a number", `$5`, "is not supported in a path"},
		{"unknown filter operator", `.a[?(@.b=!1)]`, `filter operator "=!" is not supported`},
		{"unterminated filter", `.a[?(@.b==1`, "unterminated filter"},
		{"nested filter", `.a[?(@.b[?(@.c=="d")])]`, "unterminated filter"},
		{"unterminated index", `.a[0`, "unterminated array"},
		{"slice with step 0", `.a[::0]`, "must be greater than 0"},
		{"slice with a negative step", `.a[::-1]`, "must be greater than 0"},
		{"invalid index", `.a[b]`, "invalid array index b"},
		{"path is too long", strings.Repeat(".a", 257), "must have at most 512 characters, got 514"},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			_, err := feedback.Compile(test.path)
			require.ErrorContains(t, err, test.want)
		})
	}
}

func TestValue_Secrets(t *testing.T) {
	secret := object(t, `
apiVersion: v1
kind: Secret
type: Opaque
immutable: true
metadata: {name: a, labels: {app: web}, annotations: {kubectl.kubernetes.io/last-applied-configuration: hunter2},
  managedFields: [{fieldsV1: {"f:password": {}}}]}
data: {password: hunter2}
stringData: {password: hunter2}
`)
	tests := []struct{ reason, path, want string }{
		{"name is readable", ".metadata.name", "a"},
		{"labels are readable", ".metadata.labels.app", "web"},
		{"type is readable", ".type", "Opaque"},
		{"data", ".data.password", ""},
		{"data in brackets", "['data']['password']", ""},
		{"wildcard", ".*", ""},
		{"wildcard and key", ".*.password", ""},
		{"union with data", "['type','data']", ""},
		{"map of data", ".data", ""},
		{"stringData", ".stringData.password", ""},
		{"annotations", ".metadata.annotations", ""},
		{"annotation of kubectl apply", `.metadata.annotations.kubectl\.kubernetes\.io/last-applied-configuration`, ""},
		{"metadata", ".metadata", ""},
		{"wildcard on metadata", ".metadata.*", ""},
		{"union with annotations", ".metadata['name','annotations']", ""},
		{"managedFields", ".metadata.managedFields", ""},
		{"unknown field", ".spec", ""},
		{"filter on data", `['data'][?(@.password>"h")]`, ""},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			for _, version := range []string{"v1", "example.com/v1"} {
				secret.SetAPIVersion(version)
				got, ok, err := compiled(t, test.path).Value(secret)
				require.Equal(t, test.want, got.Value)
				require.Equal(t, test.want != "", ok)
				if test.want == "" {
					require.ErrorIs(t, err, feedback.ErrSecret)
					require.NotContains(t, err.Error(), "hunter2")
				} else {
					require.NoError(t, err)
				}
			}
		})
	}
	got, _, err := compiled(t, ".data.password").Value(object(t,
		"{apiVersion: v1, kind: ConfigMap, data: {password: no}}"))
	require.NoError(t, err)
	require.Equal(t, "false", got.Value, "the data of a ConfigMap is readable")
}

// TestValue_Limits checks that a path or an object that exceeds a limit is an error, and that the error is returned
// quickly.
func TestValue_Limits(t *testing.T) {
	items := make([]any, 60_000)
	for i := range items {
		items[i] = map[string]any{"name": fmt.Sprint(i)}
	}
	var deep any = "x"
	for range 5000 {
		deep = []any{deep, deep}[:1]
	}
	o := &unstructured.Unstructured{Object: map[string]any{
		"items": items, "deep": deep, "few": items[:20000], "pair": []any{"a", "b"},
		"fits": strings.Repeat("x", 1024), "long": strings.Repeat("x", 1025), "quotes": []any{strings.Repeat(`"`, 510),
			strings.Repeat(`"`, 1024)},
	}}
	tests := []struct{ reason, path, want string }{
		{"value of the maximum length", ".fits", ""},
		{"value is too long", ".long", ".long: the value has 1025 bytes, more than the limit of 1024 bytes"},
		{"list is too long as JSON", ".few", "more than the limit of 1024"},
		{"many values are too long together", ".few[*].name",
			".few[*].name: the first 189 of 20000 values have more than the limit of " +
				"1024 bytes"},
		{"two values are too long together", ".quotes[*]",
			"the first 2 of 2 values have more than the limit of 1024 bytes"},
		{"union that repeats a large value", "['few'" + strings.Repeat(",'few'", 60) + "]",
			"the first 1 of 61 values have more than"},
		{"too many visited values", ".items[*].name", "the evaluation visits more than 100000 values"},
		{"filter of a long list within the limit", `.few[?(@.name=="19999")].name`, ""},
		{"filter exceeds the visit limit", `.items[?(@.name=="x")]`, "the evaluation visits more than 100000 values"},
		{"nested unions exceed the visit limit", "deep" + strings.Repeat("[0,0]", 100),
			"the evaluation visits more than 100000 values"},
		{"filter with several values on one side", `['few','pair'][?(@['name','name']=="a")]`,
			"each side of a filter must select a single value"},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			value, ok, err := compiled(t, test.path).Value(o)
			require.Equal(t, test.want == "", ok)
			if ok {
				require.NoError(t, err)
				require.LessOrEqual(t, len(value.Value), feedback.MaxValueBytes)
				return
			}
			require.ErrorContains(t, err, test.want)
			require.Less(t, len(err.Error()), 1024)
			require.Empty(t, value)
		})
	}
}
