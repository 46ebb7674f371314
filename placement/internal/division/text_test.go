package division

import (
	"testing"

	"github.com/stretchr/testify/require"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/muster-sdk/muster/placement/bundle"
)

// FuzzWith compares the insertion of a number into a text with decoding, setting and encoding.
func FuzzWith(f *testing.F) {
	for _, spec := range []string{
		`{"replicas":3}`, `{}`, `null`, `{"replicas":null,"a":1}`, `{"replica":1,"replicas":"many","replicasX":2}`,
		`{"Replicas":1,"template":{"replicas":5}}`,
		`{"a":"<&>\u2028\ud800\"\\","\"":1,"\u2028":2,"z":[1.50,1e30,-0,18446744073709551616]}`, `{"\u2028":2}`, `[]`,
		`"text"`,
	} {
		f.Add(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a","annotations":{"spec":"<b>"}},`+
			`"status":{},"spec":`+spec+`}`, int32(5))
	}
	f.Add(`{"apiVersion":"v1","kind":"A","metadata":{"name":"a"}}`, int32(0))
	f.Fuzz(func(t *testing.T, object string, n int32) {
		o, err := bundle.Parse([]byte(object))
		if err != nil {
			return
		}
		n = max(n, 0)
		var content map[string]any
		require.NoError(t, utiljson.Unmarshal(o.JSON, &content))
		spec, isMap := content["spec"].(map[string]any)
		parsed, err := parseReplicas(&o)
		if content["spec"] != nil && !isMap {
			require.Error(t, err)
			return
		}
		require.NoError(t, err)
		if spec == nil {
			spec = map[string]any{}
			content["spec"] = spec
		}
		before := string(o.JSON)
		for _, n := range []int32{n, n / 2, n} {
			spec["replicas"] = int64(n)
			want, err := bundle.Of(content)
			require.NoError(t, err)
			got := parsed.with(n)
			require.Equal(t, string(want.JSON), string(got.JSON))
			require.Equal(t, want, got)
			again, err := parseReplicas(&got)
			require.NoError(t, err)
			require.True(t, again.hasNumber(n))
			read, err := again.replicas()
			require.NoError(t, err)
			require.Equal(t, n, read)
		}
		require.Equal(t, before, string(o.JSON))
	})
}

// TestWith_SharesEqualTexts checks that with returns the same text without a copy for the existing number and for
// repeated calls.
func TestWith_SharesEqualTexts(t *testing.T) {
	o, err := bundle.Parse(
		[]byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"},"spec":{"replicas":3}}`))
	require.NoError(t, err)
	parsed, err := parseReplicas(&o)
	require.NoError(t, err)
	same, other, again := parsed.with(3), parsed.with(4), parsed.with(4)
	require.Same(t, &o.JSON[0], &same.JSON[0])
	require.Same(t, &other.JSON[0], &again.JSON[0])
	same = parsed.with(3)
	require.Same(t, &o.JSON[0], &same.JSON[0], "after a call with another number")
}
