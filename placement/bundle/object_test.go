package bundle

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

func TestParse(t *testing.T) {
	for _, test := range []struct{ reason, text, canonical string }{
		{"field order and whitespace do not change the object",
			`{"kind": "A", "apiVersion": "g/v1", "metadata": {"namespace": "n", "name": "a"}}`,
			`{"apiVersion":"g/v1","kind":"A","metadata":{"name":"a","namespace":"n"}}`},
		{"character escapes do not change the object",
			`{"apiVersion":"g/v1","kind":"A","metadata":{"name":"a","namespace":"n"},"x":"\u003c\u0024{"}`,
			`{"apiVersion":"g/v1","kind":"A","metadata":{"name":"a","namespace":"n"},"x":"<${"}`},
		{"the notation of a number does not change the object",
			`{"apiVersion":"g/v1","kind":"A","metadata":{"name":"a","namespace":"n"},"x":1.50}`,
			`{"apiVersion":"g/v1","kind":"A","metadata":{"name":"a","namespace":"n"},"x":1.5}`},
		{"minus zero is stored as zero",
			`{"apiVersion":"g/v1","kind":"A","metadata":{"name":"a","namespace":"n"},"x":[-0.0,{"y":-0.5,"z":-0e3},-0.0]}`,
			`{"apiVersion":"g/v1","kind":"A","metadata":{"name":"a","namespace":"n"},"x":[0,{"y":-0.5,"z":0},0]}`},
	} {
		got, err := Parse([]byte(test.text))
		require.NoError(t, err, test.reason)
		canonical, err := Parse([]byte(test.canonical))
		require.NoError(t, err, test.reason)
		if diff := cmp.Diff(canonical, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.reason, diff)
		}
		if string(got.JSON) != test.canonical {
			t.Errorf("%s: want the text %s, got %s", test.reason, test.canonical, got.JSON)
		}
		require.Equal(t, Key{Group: "g", Kind: "A", Namespace: "n", Name: "a"}, got.Key())
		require.Equal(t, "v1", got.Version)
	}
}

func TestParseRefuses(t *testing.T) {
	nested := func(n int) string {
		return `{"apiVersion":"v1","kind":"A","metadata":{"name":"a"},"x":` + strings.Repeat("[", n) +
			strings.Repeat("]", n) + `}`
	}
	for _, test := range []struct {
		reason, text string
		want         error
	}{
		{"invalid JSON", `{`, ErrInvalid},
		{"a JSON array", `[]`, ErrInvalid},
		{"null", `null`, ErrInvalid},
		{"no kind", `{"apiVersion":"v1","metadata":{"name":"a"}}`, ErrInvalid},
		{"field names are case-sensitive", `{"apiVersion":"v1","Kind":"A","metadata":{"name":"a"}}`, ErrInvalid},
		{"no apiVersion", `{"kind":"A","metadata":{"name":"a"}}`, ErrInvalid},
		{"apiVersion with two slashes", `{"apiVersion":"a/b/c","kind":"A","metadata":{"name":"a"}}`, ErrInvalid},
		{"a name that is not a string", `{"apiVersion":"v1","kind":"A","metadata":{"name":5}}`, ErrInvalid},
		{"the maximum nesting depth", nested(workv1alpha1.MaxManifestDepth - 1), nil},
		{"more than the maximum nesting depth", nested(workv1alpha1.MaxManifestDepth), ErrTooDeep},
		{"nesting that is too deep for recursion", nested(5_000_000), ErrTooDeep},
		{"brackets in a string are not nesting", `{"apiVersion":"v1","kind":"A","metadata":{"name":"a"},"x":"\"` +
			strings.Repeat("[", 200) + `"}`, nil},
	} {
		if _, err := Parse([]byte(test.text)); !errors.Is(err, test.want) {
			t.Errorf("%s: want %v, got %v", test.reason, test.want, err)
		}
	}
	_, err := Parse([]byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"namespace":"shop"},"data":{"k":"c2VjcmV0"}}`))
	require.ErrorContains(t, err, "Secret shop/")
	require.NotContains(t, err.Error(), "c2VjcmV0", "the error must not contain the content of a Secret")
}

// FuzzParse checks that a Work accepts the objects that Parse accepts, except for rules about single fields, and that
// the text of an Object is canonical.
func FuzzParse(f *testing.F) {
	f.Add(`{"apiVersion":"v1","kind":"A","metadata":{"name":"a"},"x":[1,2.5,"<",null,{"b":1e3}]}`)
	f.Add(`{"apiVersion":"apps/v1","kind":"A","metadata":{"name":"a"},"x":"\ud800"}`)
	f.Add(`{"apiVersion":"v1","kind":"A","metadata":{"name":"a"},"x":9223372036854775808}`)
	f.Add(`{"apiVersion":"v1","kind":"A","metadata":{"name":"a"},"x":-0.0}`)
	f.Fuzz(func(t *testing.T, text string) {
		o, err := Parse([]byte(text))
		if err != nil {
			return
		}
		again, err := Parse(o.JSON)
		require.NoError(t, err)
		require.Equal(t, string(o.JSON), string(again.JSON))
		require.Equal(t, o.Hash, again.Hash)
		spec := workv1alpha1.WorkSpec{Manifests: []workv1alpha1.Manifest{o.Manifest()}}
		if decoded, _ := spec.Decode(); len(decoded) == 1 {
			require.Equal(t, o.ResourceIdentifier, decoded[0].ResourceIdentifier)
		}
	})
}
