package v1alpha1_test

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/work/v1alpha1"
)

var root v1alpha1.FieldPath

func TestParseFieldPath(t *testing.T) {
	containers := root.Field("spec").Field("containers")
	for _, test := range []struct {
		reason, text string
		want         v1alpha1.FieldPath
		printed      string // the result of String; empty: text
	}{
		{"fields", ".spec.replicas", root.Field("spec").Field("replicas"), ""},
		{"name with dots in quotes", `.data["game.properties"]`, root.Field("data").Field("game.properties"), ""},
		{"quotes that are not needed", `["spec"]["replicas"]`, root.Field("spec").Field("replicas"), ".spec.replicas"},
		{"empty name", `.data[""]`, root.Field("data").Field(""), ""},
		{"escaped characters", `.data["a\"\\\n]"]`, root.Field("data").Field("a\"\\\n]"), ""},
		{"annotation as the API server writes it", `.metadata.annotations.example.com/note`,
			root.Field("metadata").Field("annotations").Field("example.com/note"), `.metadata.annotations["example.com/note"]`},
		{"label of a template", `.spec.template.metadata.labels.app.kubernetes.io/name`,
			root.Field("spec").Field("template").Field("metadata").Field("labels").Field("app.kubernetes.io/name"),
			`.spec.template.metadata.labels["app.kubernetes.io/name"]`},
		{"field below an annotation in quotes", `.metadata.annotations["a"].b`,
			root.Field("metadata").Field("annotations").Field("a").Field("b"), ""},
		{"all annotations", ".metadata.annotations", root.Field("metadata").Field("annotations"), ""},
		{"annotations outside of metadata", ".spec.annotations.a.b",
			root.Field("spec").Field("annotations").Field("a").Field("b"), ""},
		{"item by its key", `.spec.containers[name="web"].image`,
			containers.Item(map[string]any{"name": "web"}).Field("image"), ""},
		{"item by two keys, which are sorted", `.spec.ports[protocol="TCP",containerPort=80]`,
			root.Field("spec").Field("ports").Item(map[string]any{"containerPort": 80, "protocol": "TCP"}),
			`.spec.ports[containerPort=80,protocol="TCP"]`},
		{"key that looks like an index", `.spec.containers[0="web"]`, containers.Item(map[string]any{"0": "web"}), ""},
		{"key that begins with an asterisk", `.spec.containers["*"="web"]`, containers.Item(map[string]any{"*": "web"}),
			""},
		{"key with a dot", `.spec.containers["a.b"=true]`,
			containers.Item(map[string]any{"a.b": true}), ""},
		{"bracket in a value", `.spec.containers[name="a]b,c=d"].image`,
			containers.Item(map[string]any{"name": "a]b,c=d"}).Field("image"), ""},
		{"item by a string", `.metadata.finalizers[="example.com/a"]`,
			root.Field("metadata").Field("finalizers").Value("example.com/a"), ""},
		{"item by a number", `.spec.ports[=8080]`, root.Field("spec").Field("ports").Value(8080), ""},
		{"numbers are normalized", `.spec.ports[=8080.0]`,
			root.Field("spec").Field("ports").Value(int32(8080)), `.spec.ports[=8080]`},
		{"item by a fraction", `.spec.ratios[=-0.5]`, root.Field("spec").Field("ratios").Value(-0.5), ""},
		{"item by a boolean", `.spec.flags[=false]`, root.Field("spec").Field("flags").Value(false), ""},
		{"indexes", ".spec.args[10][0]", root.Field("spec").Field("args").Index(10).Index(0), ""},
		{"non-ASCII letters", ".data.größe", root.Field("data").Field("größe"), ""},
	} {
		got, err := v1alpha1.ParseFieldPath(test.text)
		if err != nil || !got.Equal(test.want) {
			t.Errorf("%s: %s: want %s, got %s, %v", test.reason, test.text, test.want, got, err)
		}
		want := test.printed
		if want == "" {
			want = test.text
		}
		if got.String() != want {
			t.Errorf("%s: want String() %s, got %s", test.reason, want, got)
		}
	}
}

func TestParseFieldPath_Invalid(t *testing.T) {
	for _, test := range []struct{ reason, text, want string }{
		{"empty path", "", "is empty: it begins with a field, such as .spec"},
		{"path without the leading dot", "spec.replicas", `position 0: expected a field such as .spec`},
		{"two dots", ".spec..replicas", `position 6: expected the name of a field`},
		{"trailing dot", ".spec.", `position 6: expected the name of a field`},
		{"dot before a bracket", `.spec.[0]`, `position 6: expected the name of a field`},
		{"space", ".spec. replicas", `position 6: expected the name of a field`},
		{"unclosed bracket", ".spec[0", `position 7: expected "]"`},
		{"unclosed quote", `.spec["a`, `position 6: expected a string in double quotes`},
		{"opening bracket at the end", ".spec[", `position 6: expected an index such as 0, a key`},
		{"empty brackets", ".spec[]", `position 6: expected an index such as 0, a key`},
		{"negative index", ".spec[-1]", `position 8: expected "=" and a value behind the key`},
		{"index with a letter", ".spec[1a]", `position 6: expected an index such as 0`},
		{"index is too large", ".spec[99999999999]", `position 6: expected an index such as 0`},
		{"filter of JSONPath", ".spec.containers[?].image", `position 18: expected "=" and a value behind the key`},
		{"key without a value", ".spec[name]", `position 10: expected "=" and a value behind the key`},
		{"key with an unquoted value", ".spec[name=web]",
			`position 11: expected a string in double quotes, a number, true or false`},
		{"single quotes", ".spec[name='web']", `position 11: expected a string in double quotes, a number, true or false`},
		{"duplicate key", `.spec[a=1,a=2]`, `key "a" is there twice`},
		{"null as a value", ".spec[=null]", `position 7: expected a string in double quotes, a number, true or false`},
		{"unclosed value", ".spec[=1",
			`expected a string in double quotes, a number, true or false, and a closing bracket`},
		{"hexadecimal number", ".spec[=0x1p-2]", `position 7: expected a string`},
		{"number is too large", ".spec[=1e999]", `position 7: expected a string`},
		{"list as a value", ".spec[=[1]]", `position 7: expected a string`},
		{"name after a bracket", ".spec[0]replicas", `position 8: expected a field such as .spec`},
	} {
		path, err := v1alpha1.ParseFieldPath(test.text)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %s: want an error with %q, got %s, %v", test.reason, test.text, test.want, path, err)
		}
	}
}

func TestFieldPath_HasPrefix(t *testing.T) {
	metadata := root.Field("metadata")
	for _, test := range []struct {
		reason       string
		path, prefix v1alpha1.FieldPath
		want         bool
	}{
		{"prefix is the object", metadata, root, true},
		{"equal paths", metadata, metadata, true},
		{"path below the prefix", metadata.Field("name"), metadata, true},
		{"path above the prefix", metadata, metadata.Field("name"), false},
		{"path next to the prefix", metadata.Field("namespace"), metadata.Field("name"), false},
		{"field below an item by an equal key", metadata.Item(map[string]any{"k": 1}).Field("a"),
			metadata.Item(map[string]any{"k": 1.0}), true},
		{"different items", metadata.Item(map[string]any{"k": 1}), metadata.Item(map[string]any{"k": 2}), false},
		{"string is not equal to a number", metadata.Value("1"), metadata.Value(1), false},
		{"field is not equal to an index", metadata.Field("0"), metadata.Index(0), false},
		{"different indexes", metadata.Index(1), metadata.Index(0), false},
	} {
		if got := test.path.HasPrefix(test.prefix); got != test.want {
			t.Errorf("%s: %s in %s: want %t", test.reason, test.path, test.prefix, test.want)
		}
	}
}

// TestFieldPath_IsImmutable checks that two paths with the same parent do not overwrite each other.
func TestFieldPath_IsImmutable(t *testing.T) {
	parent := root.Field("a").Field("b").Field("c")
	first := parent.Field("d")
	second := parent.Field("e")
	if first.String() != ".a.b.c.d" || second.String() != ".a.b.c.e" {
		t.Errorf("got %s and %s", first, second)
	}
}

// TestFieldPath_UnsupportedValues checks that a path with a value other than a string, number or boolean matches
// nothing.
func TestFieldPath_UnsupportedValues(t *testing.T) {
	object := map[string]any{"list": []any{nil, math.NaN(), map[string]any{"k": nil}, []any{}}}
	for _, value := range []any{nil, math.NaN(), math.Inf(1), []any{}, map[string]any{}} {
		for _, path := range []v1alpha1.FieldPath{root.Field("list").Value(value),
			root.Field("list").Item(map[string]any{"k": value}), root.Field("list").Item(nil)} {
			if got, found := path.Get(object); found || !path.Equal(path) {
				t.Errorf("%s: got %v", path, got)
			}
		}
	}
}

func anyPath() *rapid.Generator[v1alpha1.FieldPath] {
	name := rapid.OneOf(rapid.SampledFrom([]string{"metadata", "annotations", "labels", "a.b/c", "0", "", "\xff", "a]",
		`"`, "*", "*a"}), rapid.String())
	value := rapid.OneOf(rapid.String().AsAny(), rapid.Int64().AsAny(), rapid.Float64().AsAny(), rapid.Bool().AsAny())
	return rapid.Custom(func(t *rapid.T) v1alpha1.FieldPath {
		var path v1alpha1.FieldPath
		for range rapid.IntRange(1, 6).Draw(t, "length") {
			switch rapid.IntRange(0, 4).Draw(t, "kind") {
			case 0:
				path = path.Index(int(rapid.Int32Range(0, math.MaxInt32).Draw(t, "index")))
			case 1:
				path = path.Value(value.Draw(t, "value"))
			case 2:
				path = path.Item(rapid.MapOfN(name, value, 1, 3).Draw(t, "keys"))
			default:
				path = path.Field(name.Draw(t, "name"))
			}
		}
		return path
	})
}

func TestParseFieldPath_ReadsString(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		path := anyPath().Draw(t, "path")
		got, err := v1alpha1.ParseFieldPath(path.String())
		if err != nil || !got.Equal(path) || got.String() != path.String() {
			t.Fatalf("%s: got %s, %v", path, got, err)
		}
	})
}

func FuzzParseFieldPath(f *testing.F) {
	for _, seed := range []string{
		"", ".", ".spec.replicas", `.metadata.annotations.example.com/note`, `.metadata.labels["a"].b`,
		`.a[name="web",port=80]["b.c"]`, `[=1e3][0][=-0.0]`, `.a["\xff\u00e9"]`, `[=9007199254740993.0]`,
		`.metadata.labels.a[0]`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		path, err := v1alpha1.ParseFieldPath(text)
		if err != nil {
			return
		}
		again, err := v1alpha1.ParseFieldPath(path.String())
		if err != nil || !again.Equal(path) || again.String() != path.String() {
			t.Fatalf("%q: String() is %s, parsed as %s, %v", text, path, again, err)
		}
		object := map[string]any{}
		if path.Set(object, "x") == nil {
			if got, found := path.Get(object); !found || got != "x" {
				t.Fatalf("%s: set to x, got %v in %v", path, got, object)
			}
			if !path.Remove(object) {
				t.Fatalf("%s: not removed from %v", path, object)
			}
		}
	})
}
