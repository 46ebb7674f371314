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

func TestFieldPath_Get(t *testing.T) {
	for _, test := range []struct {
		reason, path string
		want         any
		found        bool
	}{
		{"field", ".a.b", int64(1), true},
		{"null is a value", ".a.c", nil, true},
		{"missing field", ".a.x", nil, false},
		{"field of a number", ".a.b.c", nil, false},
		{"field of null", ".a.c.d", nil, false},
		{"name with a dot", `.a["d.e"]`, "f", true},
		{"annotation as the API server writes it", ".metadata.annotations.example.com/note", "n", true},
		{"item by its keys", `.ports[port=53,protocol="UDP"].protocol`, "UDP", true},
		{"missing protocol equals TCP", `.ports[port=80,protocol="TCP"].port`, int64(80), true},
		{"missing protocol is not UDP", `.ports[port=80,protocol="UDP"].port`, nil, false},
		{"item with one different key", `.ports[port=54,protocol="UDP"]`, nil, false},
		{"item by a key that no item has", `.ports[name="web"]`, nil, false},
		{"item by a string", `.set[="x"]`, "x", true},
		{"item by a number", `.set[=1.0]`, int64(1), true},
		{"item by a fraction", `.set[=1.5]`, 1.5, true},
		{"item by a boolean", `.set[=true]`, true, true},
		{"item by a value of another type", `.set[="1"]`, nil, false},
		{"index of a nested list", ".lists[0][1]", int64(2), true},
		{"index after the end of a list", ".lists[2]", nil, false},
		{"field of a list", ".lists.a", nil, false},
		{"index of a map", ".a[0]", nil, false},
		{"item of a map by a value", `.a[="b"]`, nil, false},
	} {
		got, found := parsed(t, test.path).Get(decoded(t, object))
		if diff := cmp.Diff(test.want, got); diff != "" || found != test.found {
			t.Errorf("%s: %s: want %t, got %t (-want +got)\n%s", test.reason, test.path, test.found, found, diff)
		}
	}
	whole := decoded(t, object)
	if got, found := root.Get(whole); !found || !cmp.Equal(got, any(whole)) {
		t.Errorf("the empty path: want the object, got %v", got)
	}
}

func TestFieldPath_Set(t *testing.T) {
	for _, test := range []struct {
		reason, object, path string
		value                any
		want                 string
		refused              string
	}{
		{"existing field", `{"a": 1}`, ".a", int64(2), `{"a": 2}`, ""},
		{"new field", `{}`, ".a", int64(2), `{"a": 2}`, ""},
		{"missing maps of the path are created", `{}`, ".a.b.c", int64(2), `{"a": {"b": {"c": 2}}}`, ""},
		{"null is replaced by a map", `{"a": null}`, ".a.b", int64(2), `{"a": {"b": 2}}`, ""},
		{"item by index", `{"l": [1, 2]}`, ".l[1]", int64(3), `{"l": [1, 3]}`, ""},
		{"field of an item", `{"l": [{"k": "a"}, {"k": "b"}]}`, `.l[k="b"].v`, int64(3),
			`{"l": [{"k": "a"}, {"k": "b", "v": 3}]}`, ""},
		{"whole item", `{"l": [{"k": "a", "v": 1}]}`, `.l[k="a"]`, map[string]any{"k": "a"}, `{"l": [{"k": "a"}]}`, ""},
		{"new item", `{"l": [{"k": "a"}]}`, `.l[k="b"]`, map[string]any{"k": "b"}, `{"l": [{"k": "a"}, {"k": "b"}]}`, ""},
		{"first item of a missing list", `{}`, `.l[k="b"]`, map[string]any{"k": "b"}, `{"l": [{"k": "b"}]}`, ""},
		{"new item of a set", `{"l": ["a"]}`, `.l[="b"]`, "b", `{"l": ["a", "b"]}`, ""},
		{"existing item of a set", `{"l": ["a"]}`, `.l[="a"]`, "a", `{"l": ["a"]}`, ""},
		{"item with another key", `{"l": [{"k": "a"}]}`, `.l[k="a"]`, map[string]any{"k": "b"}, "",
			`.l[k="a"]: the value is not the item that the path names`},
		{"item of a set with another value", `{"l": ["a"]}`, `.l[="a"]`, "b", "",
			`.l[="a"]: the value is not the item that the path names`},
		{"index after the end of a list", `{"l": [1]}`, ".l[1]", int64(2), "", ".l[1]: there is no such item"},
		{"index of a missing list", `{}`, ".l[0]", int64(2), "", ".l[0]: there is no such item"},
		{"field of a missing item", `{"l": []}`, `.l[k="a"].v`, int64(2), "", `.l[k="a"]: there is no such item`},
		{"field of a string", `{"a": {"b": "c"}}`, ".a.b.c.d", int64(2), "", ".a.b.c: its parent is no map"},
		{"field of a list", `{"a": []}`, ".a.b", int64(2), "", ".a.b: its parent is no map"},
		{"index of a map", `{"a": {}}`, ".a[0]", int64(2), "", ".a[0]: its parent is no list"},
		{"an error creates no maps of the path", `{}`, ".a.b[0]", int64(2), "", ".a.b[0]: there is no such item"},
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

func TestFieldPath_Remove(t *testing.T) {
	for _, test := range []struct{ reason, object, path, want string }{
		{"field", `{"a": 1, "b": 2}`, ".a", `{"b": 2}`},
		{"field with value null", `{"a": null}`, ".a", `{}`},
		{"empty parent stays", `{"a": {"b": 1}}`, ".a.b", `{"a": {}}`},
		{"item by index", `{"l": [1, 2, 3]}`, ".l[1]", `{"l": [1, 3]}`},
		{"last item", `{"l": ["a"]}`, `.l[="a"]`, `{"l": []}`},
		{"all items with the key", `{"l": [{"k": "a"}, {"k": "b"}, {"k": "a"}]}`, `.l[k="a"]`,
			`{"l": [{"k": "b"}]}`},
		{"item of a nested list", `{"l": [[1, 2], [3]]}`, ".l[0][0]", `{"l": [[2], [3]]}`},
		{"field of an item", `{"l": [{"k": "a", "v": 1}]}`, `.l[k="a"].v`, `{"l": [{"k": "a"}]}`},
		{"missing field", `{"a": 1}`, ".b", ""},
		{"missing parent", `{"a": 1}`, ".b.c", ""},
		{"missing item", `{"l": []}`, ".l[0]", ""},
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
		t.Errorf("Remove of the whole object: want false")
	}
}

// TestFieldPath_RemoveDoesNotModifySharedList checks that Remove does not write to a list that another object shares,
// for example after a shallow copy.
func TestFieldPath_RemoveDoesNotModifySharedList(t *testing.T) {
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

func TestFieldPath_GetSetRemove(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		object := anyObject().Draw(t, "object")
		walk(nil, object, func(path v1alpha1.FieldPath, intoMap bool) {
			value, found := path.Get(object)
			if !found {
				t.Fatalf("%s: not found in %v", path, object)
			}

			same := runtime.DeepCopyJSON(object)
			if err := path.Set(same, value); err != nil || !cmp.Equal(object, same) {
				t.Fatalf("%s: set of the existing value: want no change: %v\n%s", path, err, cmp.Diff(object, same))
			}

			without := runtime.DeepCopyJSON(object)
			if !path.Remove(without) {
				t.Fatalf("%s: not removed from %v", path, object)
			}
			if cmp.Equal(object, without) {
				t.Fatalf("%s: removed from %v without a change", path, object)
			}
			if intoMap { // an item would be appended to its list, or not at all
				again := runtime.DeepCopyJSON(without)
				if err := path.Set(again, value); err != nil || !cmp.Equal(object, again) {
					t.Fatalf("%s: removed and set again: want no change: %v\n%s", path, err, cmp.Diff(object, again))
				}
			}

			changed := runtime.DeepCopyJSON(object)
			if err := path.Set(changed, map[string]any{"k": "new"}); err == nil {
				got, _ := path.Get(changed)
				if diff := cmp.Diff(any(map[string]any{"k": "new"}), got); diff != "" {
					t.Fatalf("%s: value after Set (-want +got)\n%s", path, diff)
				}
			} else if !cmp.Equal(object, changed) {
				t.Fatalf("%s: Set failed and changed the object:\n%s", path, cmp.Diff(object, changed))
			}
		})
	})
}

func TestFieldPath_SetThenGet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		path, object := anyPath().Draw(t, "path"), anyObject().Draw(t, "object")
		before := runtime.DeepCopyJSON(object)
		if err := path.Set(object, "set"); err != nil {
			if !cmp.Equal(before, object) {
				t.Fatalf("%s: Set failed and changed the object:\n%s", path, cmp.Diff(before, object))
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

func TestFieldPath_Expand(t *testing.T) {
	web := decoded(t, `{"spec": {"containers": [{"name": "a", "env": [{"name": "X"}, {"name": "Y"}]}, {"name": "b"}], `+
		`"args": ["x", {}], "labels": {"k.l": 1}}}`)
	other := decoded(t, `{"spec": {"containers": [{"name": "c"}, {"name": "a"}]}}`)
	for _, test := range []struct {
		reason, path string
		want         []string
	}{
		{"path without [*]", ".spec.replicas", []string{".spec.replicas"}},
		{"items of both objects, without duplicates", ".spec.containers[*].image",
			[]string{`.spec.containers[name="a"].image`,
				`.spec.containers[name="b"].image`, `.spec.containers[name="c"].image`}},
		{"items of items", ".spec.containers[*].env[*].value", []string{`.spec.containers[name="a"].env[name="X"].value`,
			`.spec.containers[name="a"].env[name="Y"].value`}},
		{"items without a name", ".spec.args[*]", []string{".spec.args[0]", ".spec.args[1]"}},
		{"fields of a map", ".spec.labels[*]", []string{`.spec.labels["k.l"]`}},
		{"missing list", ".spec.none[*].x", nil},
	} {
		var got []string
		for _, path := range parsed(t, test.path).Expand(web, other) {
			got = append(got, path.String())
		}
		require.Equal(t, test.want, got, test.reason)
	}
	require.Equal(t, ".spec.containers[*].image", parsed(t, ".spec.containers[*].image").String())
}
