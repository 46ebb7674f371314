package v1alpha1_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/work/v1alpha1"
)

func decoded(t require.TestingT, text string) map[string]any {
	var object map[string]any
	require.NoError(t, utiljson.Unmarshal([]byte(text), &object), text)
	return object
}

func parsed(t require.TestingT, text string) v1alpha1.FieldPath {
	path, err := v1alpha1.ParseFieldPath(text)
	require.NoError(t, err)
	return path
}

const object = `{
	"a": {"b": 1, "c": null, "d.e": "f"},
	"ports": [{"port": 80}, {"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}],
	"set": ["x", 1, 1.5, true],
	"lists": [[1, 2], [3]],
	"metadata": {"annotations": {"example.com/note": "n"}}
}`

func TestGet(t *testing.T) {
	for _, test := range []struct {
		reason, path string
		want         any
		found        bool
	}{
		{"a field", ".a.b", int64(1), true},
		{"null is a value", ".a.c", nil, true},
		{"no such field", ".a.x", nil, false},
		{"nothing is below a value", ".a.b.c", nil, false},
		{"nothing is below null", ".a.c.d", nil, false},
		{"a name with a dot", `.a["d.e"]`, "f", true},
		{"an annotation as the API server writes it", ".metadata.annotations.example.com/note", "n", true},
		{"an item by its keys", `.ports[port=53,protocol="UDP"].protocol`, "UDP", true},
		{"TCP that is not said is TCP", `.ports[port=80,protocol="TCP"].port`, int64(80), true},
		{"TCP that is not said is not UDP", `.ports[port=80,protocol="UDP"].port`, nil, false},
		{"one of the keys is not enough", `.ports[port=54,protocol="UDP"]`, nil, false},
		{"an item by a key that it does not have", `.ports[name="web"]`, nil, false},
		{"a text", `.set[="x"]`, "x", true},
		{"a number", `.set[=1.0]`, int64(1), true},
		{"a fraction", `.set[=1.5]`, 1.5, true},
		{"a truth", `.set[=true]`, true, true},
		{"no such value", `.set[="1"]`, nil, false},
		{"an index of an index", ".lists[0][1]", int64(2), true},
		{"the end of a list", ".lists[2]", nil, false},
		{"a list has no fields", ".lists.a", nil, false},
		{"a map has no items", ".a[0]", nil, false},
		{"a map has no values", `.a[="b"]`, nil, false},
	} {
		got, found := parsed(t, test.path).Get(decoded(t, object))
		if diff := cmp.Diff(test.want, got); diff != "" || found != test.found {
			t.Errorf("%s: %s: want %t, got %t (-want +got)\n%s", test.reason, test.path, test.found, found, diff)
		}
	}
	whole := decoded(t, object)
	if got, found := root.Get(whole); !found || !cmp.Equal(got, any(whole)) {
		t.Errorf("the empty path is the object, got %v", got)
	}
}

func TestSet(t *testing.T) {
	for _, test := range []struct {
		reason, object, path string
		value                any
		want                 string
		refused              string
	}{
		{"a field", `{"a": 1}`, ".a", int64(2), `{"a": 2}`, ""},
		{"a new field", `{}`, ".a", int64(2), `{"a": 2}`, ""},
		{"maps on the way are made", `{}`, ".a.b.c", int64(2), `{"a": {"b": {"c": 2}}}`, ""},
		{"null is as good as missing", `{"a": null}`, ".a.b", int64(2), `{"a": {"b": 2}}`, ""},
		{"an item", `{"l": [1, 2]}`, ".l[1]", int64(3), `{"l": [1, 3]}`, ""},
		{"within an item", `{"l": [{"k": "a"}, {"k": "b"}]}`, `.l[k="b"].v`, int64(3),
			`{"l": [{"k": "a"}, {"k": "b", "v": 3}]}`, ""},
		{"a whole item", `{"l": [{"k": "a", "v": 1}]}`, `.l[k="a"]`, map[string]any{"k": "a"}, `{"l": [{"k": "a"}]}`, ""},
		{"a new item", `{"l": [{"k": "a"}]}`, `.l[k="b"]`, map[string]any{"k": "b"}, `{"l": [{"k": "a"}, {"k": "b"}]}`, ""},
		{"the first item", `{}`, `.l[k="b"]`, map[string]any{"k": "b"}, `{"l": [{"k": "b"}]}`, ""},
		{"a new plain item", `{"l": ["a"]}`, `.l[="b"]`, "b", `{"l": ["a", "b"]}`, ""},
		{"a plain item that is there", `{"l": ["a"]}`, `.l[="a"]`, "a", `{"l": ["a"]}`, ""},
		{"an item must stay the one that it is", `{"l": [{"k": "a"}]}`, `.l[k="a"]`, map[string]any{"k": "b"}, "",
			`.l[k="a"]: the value is not the item that the path names`},
		{"a plain item, too", `{"l": ["a"]}`, `.l[="a"]`, "b", "", `.l[="a"]: the value is not the item that the path names`},
		{"a list is not made longer by index", `{"l": [1]}`, ".l[1]", int64(2), "", ".l[1]: there is no such item"},
		{"nor begun", `{}`, ".l[0]", int64(2), "", ".l[0]: there is no such item"},
		{"what an item is cannot be guessed", `{"l": []}`, `.l[k="a"].v`, int64(2), "", `.l[k="a"]: there is no such item`},
		{"a value has no fields", `{"a": {"b": "c"}}`, ".a.b.c.d", int64(2), "", ".a.b.c: its parent is no map"},
		{"a list has no fields", `{"a": []}`, ".a.b", int64(2), "", ".a.b: its parent is no map"},
		{"a map has no items", `{"a": {}}`, ".a[0]", int64(2), "", ".a[0]: its parent is no list"},
		{"a mistake at the end leaves nothing on the way", `{}`, ".a.b[0]", int64(2), "", ".a.b[0]: there is no such item"},
	} {
		got := decoded(t, test.object)
		err := parsed(t, test.path).Set(got, test.value)
		if test.want == "" {
			test.want = test.object
		}
		if test.refused == "" && err != nil || test.refused != "" && (err == nil || err.Error() != test.refused) {
			t.Errorf("%s: want error %q, got %v", test.reason, test.refused, err)
		}
		if diff := cmp.Diff(decoded(t, test.want), got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", test.reason, diff)
		}
	}
	if err := root.Set(map[string]any{}, "a"); err == nil || !strings.Contains(err.Error(),
		"the whole object cannot be set") {
		t.Errorf("the whole object: got %v", err)
	}
}

func TestRemove(t *testing.T) {
	for _, test := range []struct{ reason, object, path, want string }{
		{"a field", `{"a": 1, "b": 2}`, ".a", `{"b": 2}`},
		{"null is there", `{"a": null}`, ".a", `{}`},
		{"what becomes empty stays", `{"a": {"b": 1}}`, ".a.b", `{"a": {}}`},
		{"an item", `{"l": [1, 2, 3]}`, ".l[1]", `{"l": [1, 3]}`},
		{"the last item", `{"l": ["a"]}`, `.l[="a"]`, `{"l": []}`},
		{"an item by its key, and what only looks like it", `{"l": [{"k": "a"}, {"k": "b"}, {"k": "a"}]}`, `.l[k="a"]`,
			`{"l": [{"k": "b"}]}`},
		{"an item of an item", `{"l": [[1, 2], [3]]}`, ".l[0][0]", `{"l": [[2], [3]]}`},
		{"a field of an item", `{"l": [{"k": "a", "v": 1}]}`, `.l[k="a"].v`, `{"l": [{"k": "a"}]}`},
		{"nothing", `{"a": 1}`, ".b", ""},
		{"nothing on the way", `{"a": 1}`, ".b.c", ""},
		{"no such item", `{"l": []}`, ".l[0]", ""},
	} {
		got := decoded(t, test.object)
		removed := parsed(t, test.path).Remove(got)
		if removed != (test.want != "") {
			t.Errorf("%s: got %t", test.reason, removed)
		}
		if test.want == "" {
			test.want = test.object
		}
		if diff := cmp.Diff(decoded(t, test.want), got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", test.reason, diff)
		}
	}
	if root.Remove(map[string]any{"a": 1}) {
		t.Errorf("the whole object is not removed")
	}
}

// TestRemoveLeavesTheOldListAlone checks that Remove does not write to a list that another object shares, for example
// after a shallow copy.
func TestRemoveLeavesTheOldListAlone(t *testing.T) {
	shared := []any{"a", "b", "c"}
	parsed(t, ".l[0]").Remove(map[string]any{"l": shared})
	if diff := cmp.Diff([]any{"a", "b", "c"}, shared); diff != "" {
		t.Errorf("(-before +after)\n%s", diff)
	}
}

// walk calls visit with every path of every value in an object: an item is visited by index and by its keys. intoMap is
// true if the last element of the path is a field of a map.
func walk(path v1alpha1.FieldPath, value any, visit func(path v1alpha1.FieldPath, intoMap bool)) {
	switch value := value.(type) {
	case map[string]any:
		for name, child := range value {
			visit(path.Field(name), true)
			walk(path.Field(name), child, visit)
		}
	case []any:
		for i, child := range value {
			visit(path.Index(i), false)
			walk(path.Index(i), child, visit)
			if fields, isMap := child.(map[string]any); isMap {
				if key, isNumber := fields["k"].(int64); isNumber {
					visit(path.Item(map[string]any{"k": key}), false)
				}
			}
		}
	}
}

func anyObject() *rapid.Generator[map[string]any] {
	var value func(depth int) *rapid.Generator[any]
	names := rapid.SampledFrom([]string{"a", "b.c", "metadata", "labels", "k"})
	value = func(depth int) *rapid.Generator[any] {
		plain := rapid.OneOf(rapid.Int64Range(-2, 2).AsAny(), rapid.SampledFrom([]string{"x", "y"}).AsAny(),
			rapid.Bool().AsAny())
		if depth == 0 {
			return plain
		}
		return rapid.OneOf(plain,
			rapid.MapOfN(names, value(depth-1), 0, 3).AsAny(),
			rapid.SliceOfN(value(depth-1), 0, 3).AsAny(),
			rapid.SliceOfN(rapid.Map(rapid.Int64Range(0, 3), func(k int64) any { return map[string]any{"k": k} }), 0, 3).AsAny())
	}
	return rapid.MapOfN(names, value(3), 1, 4)
}

func TestGetSetRemove(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		object := anyObject().Draw(t, "object")
		walk(nil, object, func(path v1alpha1.FieldPath, intoMap bool) {
			value, found := path.Get(object)
			if !found {
				t.Fatalf("%s: not found in %v", path, object)
			}

			same := runtime.DeepCopyJSON(object)
			if err := path.Set(same, value); err != nil || !cmp.Equal(object, same) {
				t.Fatalf("%s: setting what is there makes a difference: %v\n%s", path, err, cmp.Diff(object, same))
			}

			without := runtime.DeepCopyJSON(object)
			if !path.Remove(without) {
				t.Fatalf("%s: not removed from %v", path, object)
			}
			if cmp.Equal(object, without) {
				t.Fatalf("%s: removed from %v, which is as before", path, object)
			}
			if intoMap { // an item would come back at the end of its list, if at all
				again := runtime.DeepCopyJSON(without)
				if err := path.Set(again, value); err != nil || !cmp.Equal(object, again) {
					t.Fatalf("%s: removed and set again makes a difference: %v\n%s", path, err, cmp.Diff(object, again))
				}
			}

			changed := runtime.DeepCopyJSON(object)
			if err := path.Set(changed, map[string]any{"k": "new"}); err == nil {
				got, _ := path.Get(changed)
				if diff := cmp.Diff(any(map[string]any{"k": "new"}), got); diff != "" {
					t.Fatalf("%s: not what was set (-want +got)\n%s", path, diff)
				}
			} else if !cmp.Equal(object, changed) {
				t.Fatalf("%s: refused, and changed all the same:\n%s", path, cmp.Diff(object, changed))
			}
		})
	})
}

func TestSetIsFoundAnywhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		path, object := anyPath().Draw(t, "path"), anyObject().Draw(t, "object")
		before := runtime.DeepCopyJSON(object)
		if err := path.Set(object, "set"); err != nil {
			if !cmp.Equal(before, object) {
				t.Fatalf("%s: refused, and changed all the same:\n%s", path, cmp.Diff(before, object))
			}
			return
		}
		if got, found := path.Get(object); !found || got != "set" {
			t.Fatalf("%s: got %v", path, got)
		}
		if !path.Remove(object) {
			t.Fatalf("%s: not removed", path)
		}
	})
}

func TestExpand(t *testing.T) {
	web := decoded(t, `{"spec": {"containers": [{"name": "a", "env": [{"name": "X"}, {"name": "Y"}]}, {"name": "b"}], `+
		`"args": ["x", {}], "labels": {"k.l": 1}}}`)
	other := decoded(t, `{"spec": {"containers": [{"name": "c"}, {"name": "a"}]}}`)
	for _, test := range []struct {
		reason, path string
		want         []string
	}{
		{"a path without [*] is itself", ".spec.replicas", []string{".spec.replicas"}},
		{"items of both objects, each once", ".spec.containers[*].image", []string{`.spec.containers[name="a"].image`,
			`.spec.containers[name="b"].image`, `.spec.containers[name="c"].image`}},
		{"items of items", ".spec.containers[*].env[*].value", []string{`.spec.containers[name="a"].env[name="X"].value`,
			`.spec.containers[name="a"].env[name="Y"].value`}},
		{"items without a name", ".spec.args[*]", []string{".spec.args[0]", ".spec.args[1]"}},
		{"fields of a map", ".spec.labels[*]", []string{`.spec.labels["k.l"]`}},
		{"nothing there", ".spec.none[*].x", nil},
	} {
		var got []string
		for _, path := range parsed(t, test.path).Expand(web, other) {
			got = append(got, path.String())
		}
		require.Equal(t, test.want, got, test.reason)
	}
	require.Equal(t, ".spec.containers[*].image", parsed(t, ".spec.containers[*].image").String())
}
