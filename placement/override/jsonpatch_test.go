package override

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// patched applies a JSON patch to a document, without restrictions on the fields.
func patched(t require.TestingT, document, patch string) (map[string]any, error) {
	var content map[string]any
	require.NoError(t, utiljson.Unmarshal([]byte(document), &content), document)
	var spec []v1alpha1.JSONPatchOperation
	require.NoError(t, utiljson.Unmarshal([]byte(patch), &spec), patch)
	e := &edit{cluster: &scheduler.Cluster{}, room: workv1alpha1.MaxManifestBytes}
	for i := range spec {
		if spec[i].Value == nil {
			spec[i].Value = &runtime.RawExtension{Raw: []byte("null")}
		}
		op, err := compileOperation(&spec[i], field.NewPath("op"))
		if err == nil {
			err = e.do(content, &op)
		}
		if err != nil {
			return nil, err
		}
	}
	return content, nil
}

// TestJSONPatch checks the examples of RFC 6902, appendix A, and of RFC 6901, and other cases that implementations get
// wrong.
func TestJSONPatch(t *testing.T) {
	for _, test := range []struct {
		reason, document, patch, want string
		err                           error
	}{
		{"A.1 adding a member", `{"foo":"bar"}`, `[{"op":"add","path":"/baz","value":"qux"}]`,
			`{"baz":"qux","foo":"bar"}`, nil},
		{"A.2 adding an item", `{"foo":["bar","baz"]}`, `[{"op":"add","path":"/foo/1","value":"qux"}]`,
			`{"foo":["bar","qux","baz"]}`, nil},
		{"A.3 removing a member", `{"baz":"qux","foo":"bar"}`, `[{"op":"remove","path":"/baz"}]`, `{"foo":"bar"}`, nil},
		{"A.4 removing an item", `{"foo":["bar","qux","baz"]}`, `[{"op":"remove","path":"/foo/1"}]`,
			`{"foo":["bar","baz"]}`, nil},
		{"A.5 replacing a value", `{"baz":"qux","foo":"bar"}`, `[{"op":"replace","path":"/baz","value":"boo"}]`,
			`{"baz":"boo","foo":"bar"}`, nil},
		{"A.6 moving a value", `{"foo":{"bar":"baz","waldo":"fred"},"qux":{"corge":"grault"}}`,
			`[{"op":"move","from":"/foo/waldo","path":"/qux/thud"}]`,
			`{"foo":{"bar":"baz"},"qux":{"corge":"grault","thud":"fred"}}`, nil},
		{"A.7 moving an item", `{"foo":["all","grass","cows","eat"]}`, `[{"op":"move","from":"/foo/1","path":"/foo/3"}]`,
			`{"foo":["all","cows","eat","grass"]}`, nil},
		{"A.8 testing values", `{"baz":"qux","foo":["a",2,"c"]}`,
			`[{"op":"test","path":"/baz","value":"qux"},{"op":"test","path":"/foo/1","value":2}]`,
			`{"baz":"qux","foo":["a",2,"c"]}`, nil},
		{"A.9 testing another value", `{"baz":"qux"}`, `[{"op":"test","path":"/baz","value":"bar"}]`, ``, ErrTestFailed},
		{"A.10 adding a nested member", `{"foo":"bar"}`, `[{"op":"add","path":"/child","value":{"grandchild":{}}}]`,
			`{"child":{"grandchild":{}},"foo":"bar"}`, nil},
		{"A.12 adding to a missing member", `{"foo":"bar"}`, `[{"op":"add","path":"/baz/bat","value":"qux"}]`, ``,
			ErrNoPath},
		{"A.14 escaped names", `{"/":9,"~1":10}`,
			`[{"op":"test","path":"/~01","value":10},{"op":"test","path":"/~1","value":9}]`, `{"/":9,"~1":10}`, nil},
		{"A.15 a number is not equal to a string",
			`{"~1":10}`, `[{"op":"test","path":"/~01","value":"10"}]`, ``, ErrTestFailed},
		{"A.16 adding a list to a list", `{"foo":["bar"]}`, `[{"op":"add","path":"/foo/-","value":["abc","def"]}]`,
			`{"foo":["bar",["abc","def"]]}`, nil},
		{"adding an existing member replaces the value",
			`{"foo":1}`, `[{"op":"add","path":"/foo","value":2}]`, `{"foo":2}`, nil},
		{"an empty member name", `{"":{"a":1}}`, `[{"op":"replace","path":"//a","value":2}]`, `{"":{"a":2}}`, nil},
		{"adding at the end by index", `{"a":[1]}`, `[{"op":"add","path":"/a/1","value":2}]`, `{"a":[1,2]}`, nil},
		{"adding behind the end", `{"a":[1]}`, `[{"op":"add","path":"/a/2","value":2}]`, ``, ErrNoPath},
		{"replacing a missing member", `{"a":{}}`, `[{"op":"replace","path":"/a/b","value":2}]`, ``, ErrNoPath},
		{"replacing a missing item", `{"a":[]}`, `[{"op":"replace","path":"/a/0","value":2}]`, ``, ErrNoPath},
		{"an item is replaced, not inserted", `{"a":[1,2]}`, `[{"op":"replace","path":"/a/0","value":3}]`,
			`{"a":[3,2]}`, nil},
		{"removing the item -", `{"a":[1]}`, `[{"op":"remove","path":"/a/-"}]`, ``, ErrNoPath},
		{"a negative index", `{"a":[1]}`, `[{"op":"remove","path":"/a/-1"}]`, ``, ErrNoPath},
		{"an index with a leading zero", `{"a":[1,2]}`, `[{"op":"remove","path":"/a/01"}]`, ``, ErrNoPath},
		{"an index with a plus sign", `{"a":[1,2]}`, `[{"op":"remove","path":"/a/+1"}]`, ``, ErrNoPath},
		{"an index that exceeds int64", `{"a":[1,2]}`, `[{"op":"remove","path":"/a/99999999999999999999"}]`, ``, ErrNoPath},
		{"numbers are equal by value", `{"a":1,"b":1.5,"c":[{"d":2}]}`,
			`[{"op":"test","path":"/a","value":1.0},{"op":"test","path":"/b","value":1.50},{"op":"test","path":"/c",` +
				`"value":[{"d":2e0}]}]`, `{"a":1,"b":1.5,"c":[{"d":2}]}`, nil},
		{"a fraction is not equal to its whole part",
			`{"a":1}`, `[{"op":"test","path":"/a","value":1.5}]`, ``, ErrTestFailed},
		{"large numbers are compared exactly",
			`{"a":9007199254740993}`, `[{"op":"test","path":"/a","value":9007199254740992.0}]`, ``, ErrTestFailed},
		{"a map without one of the fields is different",
			`{"a":{"b":1}}`, `[{"op":"test","path":"/a","value":{"b":1,"c":2}}]`, ``,
			ErrTestFailed},
		{"a map with another field is different",
			`{"a":{"b":1,"c":2}}`, `[{"op":"test","path":"/a","value":{"b":1}}]`, ``, ErrTestFailed},
		{"a list in another order is different",
			`{"a":[1,2]}`, `[{"op":"test","path":"/a","value":[2,1]}]`, ``, ErrTestFailed},
		{"false is not 0", `{"a":false}`, `[{"op":"test","path":"/a","value":0}]`, ``, ErrTestFailed},
		{"a copy is independent of its source", `{"a":{"b":1}}`,
			`[{"op":"copy","from":"/a","path":"/c"},{"op":"replace","path":"/c/b","value":2}]`,
			`{"a":{"b":1},"c":{"b":2}}`, nil},
		{"moving an item to its own index", `{"a":[1,2]}`, `[{"op":"move","from":"/a/0","path":"/a/0"}]`, `{"a":[1,2]}`, nil},
		{"a move removes the item before adding it",
			`{"a":[1,2]}`, `[{"op":"move","from":"/a/0","path":"/a/2"}]`, ``, ErrNoPath},
	} {
		got, err := patched(t, test.document, test.patch)
		if !errors.Is(err, test.err) {
			t.Errorf("%s: want %v, got %v", test.reason, test.err, err)
			continue
		}
		if err != nil {
			continue
		}
		text, err := json.Marshal(got)
		require.NoError(t, err)
		if diff := cmp.Diff(test.want, string(text)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.reason, diff)
		}
	}
}

// FuzzJSONPatch checks that the package and the library accept the same patches, with the same result.
func FuzzJSONPatch(f *testing.F) {
	const document = `{"a":{"b":[1,{"c":null},"x"],"":{}},"d":1.5,"e":[],"~/":true,"0":{"0":"y"}}`
	for _, patch := range []string{
		`[{"op":"add","path":"/a/b/-","value":{"c":1}},{"op":"move","from":"/a/b/0","path":"/e/0"}]`,
		`[{"op":"copy","from":"/a","path":"/a/b/0"},{"op":"remove","path":"/~0~1"}]`,
		`[{"op":"replace","path":"/0/0","value":[]},{"op":"test","path":"/d","value":1.50}]`,
		`[{"op":"test","path":"","value":{}},{"op":"add","path":"/e/1","value":1}]`,
	} {
		f.Add(document, patch)
	}
	f.Fuzz(func(t *testing.T, document, patch string) {
		var content map[string]any
		var spec []v1alpha1.JSONPatchOperation
		if utiljson.Unmarshal([]byte(document), &content) != nil || content == nil ||
			utiljson.Unmarshal([]byte(patch), &spec) != nil {
			return
		}
		for i := range spec {
			list := v1alpha1.Overrides{Rules: []v1alpha1.OverrideRule{{JSONPatch: spec[i : i+1]}}}
			if len(list.Validate(nil)) > 0 {
				return
			}
		}
		got, err := patched(t, document, patch)
		if names(spec, func(name string) bool { return name == "" }) {
			return // the library treats an empty name as the whole document
		}
		if errors.Is(err, errNotJSON) || errors.Is(err, ErrSyntax) || errors.Is(err, ErrNoValue) ||
			errors.Is(err, ErrTooDeep) {
			return
		}
		text, marshalErr := json.Marshal(spec)
		require.NoError(t, marshalErr)
		decoded, decodeErr := jsonpatch.DecodePatch(text)
		require.NoError(t, decodeErr)
		options := jsonpatch.NewApplyOptions()
		options.SupportNegativeIndices = false
		canonical, marshalErr := json.Marshal(content)
		require.NoError(t, marshalErr)
		theirs, theirErr := decoded.ApplyWithOptions(canonical, options)
		if (err == nil) != (theirErr == nil) && !differs(spec) {
			t.Errorf("%s of %s: got the error %v, and the library returns %v", patch, document, err, theirErr)
		}
		if err != nil || theirErr != nil {
			return
		}
		var want map[string]any
		require.NoError(t, utiljson.Unmarshal(theirs, &want))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s of %s (-theirs +ours):\n%s", patch, document, diff)
		}
	})
}

// differs reports whether the library is known to differ: it accepts indices such as 01, and compares numbers by their
// digits.
func differs(patch []v1alpha1.JSONPatchOperation) bool {
	return slices.ContainsFunc(patch, func(op v1alpha1.JSONPatchOperation) bool {
		return op.Op == v1alpha1.JSONPatchTest
	}) ||
		names(patch, func(name string) bool {
			i, err := strconv.Atoi(name)
			return err == nil && strconv.Itoa(i) != name || errors.Is(err, strconv.ErrRange)
		})
}

// names reports whether a name in the pointers of a patch satisfies a condition.
func names(patch []v1alpha1.JSONPatchOperation, matches func(string) bool) bool {
	return slices.ContainsFunc(patch, func(op v1alpha1.JSONPatchOperation) bool {
		return slices.ContainsFunc(split(op.Path), matches) || slices.ContainsFunc(split(op.From), matches)
	})
}

// FuzzMergePatch compares merge patches with those of the library, and with the table of RFC 7386 for targets that are
// maps.
func FuzzMergePatch(f *testing.F) {
	for _, seed := range [][2]string{
		{`{"a":"b"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`},
		{`{"a":["b"]}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`},
		{`{"e":null}`, `{"a":1}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, document, patch string) {
		var target, changes map[string]any
		if utiljson.Unmarshal([]byte(document), &target) != nil || target == nil ||
			utiljson.Unmarshal([]byte(patch), &changes) != nil || changes == nil {
			return
		}
		original, err := json.Marshal(target)
		require.NoError(t, err)
		modification, err := json.Marshal(changes)
		require.NoError(t, err)
		theirs, err := jsonpatch.MergePatch(original, modification)
		require.NoError(t, err)
		var want any
		require.NoError(t, utiljson.Unmarshal(theirs, &want))
		if diff := cmp.Diff(want, merge(target, changes)); diff != "" {
			t.Errorf("%s of %s (-theirs +ours):\n%s", patch, document, diff)
		}
	})
}
