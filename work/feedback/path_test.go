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
		{"a text is itself, without quotes", ".status.phase", text, "Open"},
		{"braces are what kubectl has", "{.status.phase}", text, "Open"},
		{"the dot may be left out", "status.phase", text, "Open"},
		{"also within braces, with room", " { status.phase } ", text, "Open"},
		{"as in JSONPath elsewhere", "$.status.phase", text, "Open"},
		{"keys in brackets", "['status']['phase']", text, "Open"},
		{"a dot in a key is escaped, as with kubectl", `.metadata.annotations.example\.com/note`, text, "hello"},
		{"a whole number", ".status.replicas", number, "3"},
		{"a number", ".status.load", number, "1.5"},
		{"a boolean", ".status.primary", boolean, "true"},
		{"an empty text is there", ".status.empty", text, ""},
		{"people read it", ".status['markup','empty']", structure, `["<b>",""]`},
		{"a map, sorted", ".status.sections", structure, `{"a":2,"m":3,"z":1}`},
		{"a list", ".status.hosts[0].zones", structure, `["v","w"]`},
		{"several", ".status.hosts[*].name", structure, `["one","two","three"]`},
		{"the values of a map never change their order", ".status.sections.*", structure, "[2,3,1]"},
		{"all of a list", ".status.hosts.*.port", structure, "[80,443,8080]"},
		{"one of several is itself", ".status.hosts[*].weight", number, "1.5"},

		{"null is no value", ".status.nothing", "", ""},
		{"nor is what is not there", ".status.state.of.affairs", "", ""},
		{"nor is a field of a text", ".status.phase.name", "", ""},
		{"nor is what is beyond a list", ".status.hosts[3].name", "", ""},
		{"nor is what is before it", ".status.hosts[-4].name", "", ""},
		{"nor is an item of no list", ".status.sections[0]", "", ""},
		{"nor is what a filter leaves of no list", ".status.phase[?(@.a)]", "", ""},

		{"the last", ".status.hosts[-1].name", text, "three"},
		{"from", ".status.hosts[1:].name", structure, `["two","three"]`},
		{"to", ".status.hosts[:-1].name", structure, `["one","two"]`},
		{"to beyond", ".status.hosts[-9:9].name", structure, `["one","two","three"]`},
		{"from beyond", ".status.hosts[9:].name", "", ""},
		{"every other", ".status.hosts[::2].name", structure, `["one","three"]`},
		{"a huge step", ".status.hosts[::9223372036854775807].name", text, "one"},
		{"a huge step from further on", ".status.hosts[1::9223372036854775807].name", text, "two"},
		{"a huge index", ".status.hosts[9223372036854775807].name", "", ""},
		{"a union", ".status['phase','replicas']", structure, `["Open",3]`},
		{"a union of places", ".status.hosts[0,2].name", structure, `["one","three"]`},

		{"a filter by a text", `.status.hosts[?(@.name=="two")].port`, number, "443"},
		{"single quotes", `.status.hosts[?(@.name=='two')].port`, number, "443"},
		{"not", `.status.hosts[?(@.name!="two")].port`, structure, "[80,8080]"},
		{"less", `.status.hosts[?(@.port<443)].name`, text, "one"},
		{"at most", `.status.hosts[?(@.port<=443)].name`, structure, `["one","two"]`},
		{"more", `.status.hosts[?(@.port>443.5)].name`, text, "three"},
		{"more than itself is nothing", `.status.hosts[?(@.port>443)].name`, text, "three"},
		{"false is not a text", `.status.hosts[?(@.up!="false")].name`, structure, `["one","two"]`},
		{"at least", `.status.hosts[?(@.port>=443)].name`, structure, `["two","three"]`},
		{"a number that is not whole", `.status.hosts[?(@.weight>1)].name`, text, "one"},
		{"two numbers that are not whole", `.status.hosts[?(@.weight==1.5)].name`, text, "one"},
		{"a boolean", `.status.hosts[?(@.up==true)].name`, text, "one"},
		{"what is not there passes no comparison", `.status.hosts[?(@.up!=true)].name`, text, "two"},
		{"what is of another type is not equal", `.status.hosts[?(@.port!="80")].name`, structure, `["one","two","three"]`},
		{"nor less, nor more", `.status.hosts[?(@.port<"99")].name`, "", ""},
		{"it exists", `.status.hosts[?(@.zones)].name`, structure, `["one","two"]`},
		{"two fields of one", `.status.hosts[?(@.port==@.port)].name`, structure, `["one","two","three"]`},
		{"room in a filter", `.status.hosts[?( @.zones[0] == "z" )].name`, text, "two"},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			o := object(t, shop)
			before := o.DeepCopy()
			for range 3 { // not by chance
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
	require.Equal(t, "\uFFFD", got.Value, "or it would come back from the hub as another value")
	require.Equal(t, "{ .a }", compiled(t, " {\n.a }").String())
}

func TestCompileErrors(t *testing.T) {
	tests := []struct{ reason, path, want string }{
		{"nothing leads nowhere", "", "must have a field name after each dot"},
		{"braces around nothing", "{}", "must have a field name after each dot"},
		{"all of an object is too much", "$", "must name a field"},
		{"a dot too many", ".status.", "must have a field name after each dot"},
		{"all of an object would be looked at", "..phase", "recursive descent (..) is not supported"},
		{"also further on", ".status..phase", "recursive descent (..) is not supported"},
		{"also in a filter", ".status.hosts[?(@..a)]", "recursive descent (..) is not supported"},
		{"also in a union", ".status['a..b','c']", "recursive descent (..) is not supported"},
		{"a program is no path", "{range .items[*]}{.name}{end}", "must be a single path"},
		{"nor is half of one", "{range .items}", "Identifier: range is not supported in a path"},
		{"nor are two", "{.a}{.b}", "must be a single path"},
		{"nor is text", `{.a}text`, "unrecognized character"},
		{"nor is a number", `$5`, "is not supported in a path"},
		{"a filter that compares nothing", `.a[?(@.b=!1)]`, `filter operator "=!" is not supported`},
		{"a filter is no end", `.a[?(@.b==1`, "unterminated filter"},
		{"a filter in a filter is beyond kubectl's parser", `.a[?(@.b[?(@.c=="d")])]`, "unterminated filter"},
		{"a list is no end", `.a[0`, "unterminated array"},
		{"a slice that stands still", `.a[::0]`, "must be greater than 0"},
		{"a slice that goes back", `.a[::-1]`, "must be greater than 0"},
		{"an index that is none", `.a[b]`, "invalid array index b"},
		{"too long", strings.Repeat(".a", 257), "must have at most 512 characters, got 514"},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			_, err := feedback.Compile(test.path)
			require.ErrorContains(t, err, test.want)
		})
	}
}

func TestSecrets(t *testing.T) {
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
		{"its name is no secret", ".metadata.name", "a"},
		{"nor are its labels", ".metadata.labels.app", "web"},
		{"nor is its type", ".type", "Opaque"},
		{"its data is", ".data.password", ""},
		{"in brackets, too", "['data']['password']", ""},
		{"by any name", ".*", ""},
		{"by any name of any name", ".*.password", ""},
		{"in a union", "['type','data']", ""},
		{"the keys are already telling", ".data", ""},
		{"what is written is what will be read", ".stringData.password", ""},
		{"annotations have copies", ".metadata.annotations", ""},
		{"one has all of it", `.metadata.annotations.kubectl\.kubernetes\.io/last-applied-configuration`, ""},
		{"metadata has annotations", ".metadata", ""},
		{"any metadata", ".metadata.*", ""},
		{"some metadata", ".metadata['name','annotations']", ""},
		{"managed fields have the keys", ".metadata.managedFields", ""},
		{"what nobody thought of is none of the safe ones", ".spec", ""},
		{"a filter answers questions about the data", `['data'][?(@.password>"h")]`, ""},
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
	require.Equal(t, "false", got.Value, "a ConfigMap is no Secret")
}

// TestLimits checks that a path or an object that exceeds a limit is an error, and that the error is returned
// quickly.
func TestLimits(t *testing.T) {
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
		{"as long as may be", ".fits", ""},
		{"longer", ".long", ".long: the value has 1025 bytes, more than the limit of 1024 bytes"},
		{"long as JSON", ".few", "more than the limit of 1024"},
		{"many", ".few[*].name", ".few[*].name: the first 189 of 20000 values have more than the limit of " +
			"1024 bytes"},
		{"two that are too long together", ".quotes[*]",
			"the first 2 of 2 values have more than the limit of 1024 bytes"},
		{"the same large value a thousand times", "['few'" + strings.Repeat(",'few'", 60) + "]",
			"the first 1 of 61 values have more than"},
		{"more than may be looked at", ".items[*].name", "the evaluation visits more than 100000 values"},
		{"a filter of a long list fits", `.few[?(@.name=="19999")].name`, ""},
		{"a filter that looks at too much", `.items[?(@.name=="x")]`, "the evaluation visits more than 100000 values"},
		{"a union of unions is 2 to the 100", "deep" + strings.Repeat("[0,0]", 100),
			"the evaluation visits more than 100000 values"},
		{"a filter compares one with one", `['few','pair'][?(@['name','name']=="a")]`,
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
