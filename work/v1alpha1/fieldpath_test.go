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
		printed      string // unless it is text
	}{
		{"fields", ".spec.replicas", root.Field("spec").Field("replicas"), ""},
		{"a name with dots is in quotes", `.data["game.properties"]`, root.Field("data").Field("game.properties"), ""},
		{"quotes that are not needed", `["spec"]["replicas"]`, root.Field("spec").Field("replicas"), ".spec.replicas"},
		{"no name is a name, too", `.data[""]`, root.Field("data").Field(""), ""},
		{"what Go escapes", `.data["a\"\\\n]"]`, root.Field("data").Field("a\"\\\n]"), ""},
		{"an annotation as the API server writes it", `.metadata.annotations.example.com/note`,
			root.Field("metadata").Field("annotations").Field("example.com/note"), `.metadata.annotations["example.com/note"]`},
		{"a label of a template", `.spec.template.metadata.labels.app.kubernetes.io/name`,
			root.Field("spec").Field("template").Field("metadata").Field("labels").Field("app.kubernetes.io/name"),
			`.spec.template.metadata.labels["app.kubernetes.io/name"]`},
		{"an annotation is text: what has fields below it is read by itself", `.metadata.annotations["a"].b`,
			root.Field("metadata").Field("annotations").Field("a").Field("b"), ""},
		{"all annotations", ".metadata.annotations", root.Field("metadata").Field("annotations"), ""},
		{"other annotations are like other fields", ".spec.annotations.a.b",
			root.Field("spec").Field("annotations").Field("a").Field("b"), ""},
		{"an item by its key", `.spec.containers[name="web"].image`,
			containers.Item(map[string]any{"name": "web"}).Field("image"), ""},
		{"an item by two keys, in order", `.spec.ports[protocol="TCP",containerPort=80]`,
			root.Field("spec").Field("ports").Item(map[string]any{"containerPort": 80, "protocol": "TCP"}),
			`.spec.ports[containerPort=80,protocol="TCP"]`},
		{"a key that looks like an index", `.spec.containers[0="web"]`, containers.Item(map[string]any{"0": "web"}), ""},
		{"a key that begins with an asterisk", `.spec.containers["*"="web"]`, containers.Item(map[string]any{"*": "web"}),
			""},
		{"a key with other than plain characters", `.spec.containers["a.b"=true]`,
			containers.Item(map[string]any{"a.b": true}), ""},
		{"a bracket in a value", `.spec.containers[name="a]b,c=d"].image`,
			containers.Item(map[string]any{"name": "a]b,c=d"}).Field("image"), ""},
		{"a plain item", `.metadata.finalizers[="example.com/a"]`,
			root.Field("metadata").Field("finalizers").Value("example.com/a"), ""},
		{"a number", `.spec.ports[=8080]`, root.Field("spec").Field("ports").Value(8080), ""},
		{"a number is the same however it is written", `.spec.ports[=8080.0]`,
			root.Field("spec").Field("ports").Value(int32(8080)), `.spec.ports[=8080]`},
		{"a number with a fraction", `.spec.ratios[=-0.5]`, root.Field("spec").Field("ratios").Value(-0.5), ""},
		{"a truth", `.spec.flags[=false]`, root.Field("spec").Field("flags").Value(false), ""},
		{"an index", ".spec.args[10][0]", root.Field("spec").Field("args").Index(10).Index(0), ""},
		{"other letters than those of English", ".data.größe", root.Field("data").Field("größe"), ""},
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
			t.Errorf("%s: want it written %s, got %s", test.reason, want, got)
		}
	}
}

func TestParseFieldPathRefuses(t *testing.T) {
	for _, test := range []struct{ reason, text, want string }{
		{"nothing", "", "is empty: it begins with a field, such as .spec"},
		{"a path begins with a dot", "spec.replicas", `position 0: expected a field such as .spec`},
		{"a dot too many", ".spec..replicas", `position 6: expected the name of a field`},
		{"a dot at the end", ".spec.", `position 6: expected the name of a field`},
		{"a dot before a bracket", `.spec.[0]`, `position 6: expected the name of a field`},
		{"a space", ".spec. replicas", `position 6: expected the name of a field`},
		{"a bracket that is not closed", ".spec[0", `position 7: expected "]"`},
		{"a quote that is not closed", `.spec["a`, `position 6: expected a string in double quotes`},
		{"a bracket at the end", ".spec[", `position 6: expected an index such as 0, a key`},
		{"a bracket without anything", ".spec[]", `position 6: expected an index such as 0, a key`},
		{"an index that is none", ".spec[-1]", `position 8: expected "=" and a value behind the key`},
		{"an index with a letter", ".spec[1a]", `position 6: expected an index such as 0`},
		{"an index that no list has", ".spec[99999999999]", `position 6: expected an index such as 0`},
		{"a filter, as JSONPath has it", ".spec.containers[?].image", `position 18: expected "=" and a value behind the key`},
		{"a key without a value", ".spec[name]", `position 10: expected "=" and a value behind the key`},
		{"a key without quotes around its value", ".spec[name=web]",
			`position 11: expected a string in double quotes, a number, true or false`},
		{"single quotes", ".spec[name='web']", `position 11: expected a string in double quotes, a number, true or false`},
		{"a key twice", `.spec[a=1,a=2]`, `key "a" is there twice`},
		{"nothing is null", ".spec[=null]", `position 7: expected a string in double quotes, a number, true or false`},
		{"a value that is not closed", ".spec[=1",
			`expected a string in double quotes, a number, true or false, and a closing bracket`},
		{"a number that is none", ".spec[=0x1p-2]", `position 7: expected a string`},
		{"a number without bounds", ".spec[=1e999]", `position 7: expected a string`},
		{"a list as a value", ".spec[=[1]]", `position 7: expected a string`},
		{"something after the bracket", ".spec[0]replicas", `position 8: expected a field such as .spec`},
	} {
		path, err := v1alpha1.ParseFieldPath(test.text)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %s: want an error that says %q, got %s, %v", test.reason, test.text, test.want, path, err)
		}
	}
}

func TestFieldPathPrefixes(t *testing.T) {
	metadata := root.Field("metadata")
	for _, test := range []struct {
		reason       string
		path, prefix v1alpha1.FieldPath
		want         bool
	}{
		{"everything is in the object", metadata, root, true},
		{"a path leads to what it leads to", metadata, metadata, true},
		{"below", metadata.Field("name"), metadata, true},
		{"above", metadata, metadata.Field("name"), false},
		{"beside", metadata.Field("namespace"), metadata.Field("name"), false},
		{"an item by its key, and what it has", metadata.Item(map[string]any{"k": 1}).Field("a"),
			metadata.Item(map[string]any{"k": 1.0}), true},
		{"another item", metadata.Item(map[string]any{"k": 1}), metadata.Item(map[string]any{"k": 2}), false},
		{"a text is no number", metadata.Value("1"), metadata.Value(1), false},
		{"a field is no index", metadata.Field("0"), metadata.Index(0), false},
		{"another index", metadata.Index(1), metadata.Index(0), false},
	} {
		if got := test.path.HasPrefix(test.prefix); got != test.want {
			t.Errorf("%s: %s in %s: want %t", test.reason, test.path, test.prefix, test.want)
		}
	}
}

// TestFieldPathsAreNeverChanged checks that two paths with the same parent do not overwrite each other.
func TestFieldPathsAreNeverChanged(t *testing.T) {
	parent := root.Field("a").Field("b").Field("c")
	first := parent.Field("d")
	second := parent.Field("e")
	if first.String() != ".a.b.c.d" || second.String() != ".a.b.c.e" {
		t.Errorf("got %s and %s", first, second)
	}
}

// TestFieldPathOfOtherValues checks that a path with a value other than a string, number or boolean matches nothing.
func TestFieldPathOfOtherValues(t *testing.T) {
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

func TestFieldPathsAreReadAsTheyAreWritten(t *testing.T) {
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
			t.Fatalf("%q is written %s, which is read as %s, %v", text, path, again, err)
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
