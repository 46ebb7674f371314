package revision

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/placement/bundle"
	"github.com/muster-sdk/muster/placement/v1alpha1"
)

func readFile(t require.TestingT, name string) []byte {
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	return text
}

func raw(text string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(text)} }

func TestEncode_RoundTrip(t *testing.T) {
	divided := 0
	rapid.Check(t, func(t *rapid.T) {
		c := drawContent(t)
		limit := rapid.IntRange(1, 2000).Draw(t, "limit")
		parts, err := encode(c, limit)
		require.NoError(t, err)
		divided = max(divided, len(parts))
		for i := range parts {
			part := parts[i].Content.Raw
			d, err := read(part)
			require.NoError(t, err)
			size := len(d.Settings)
			for _, o := range d.Objects {
				size += len(o)
			}
			require.True(t, size <= limit || len(d.Objects) == 0 || len(d.Objects) == 1 && d.Settings == nil,
				"a part exceeds the limit")
			var value map[string]any
			require.NoError(t, utiljson.Unmarshal(part, &value))
			for _, of := range []any{value, runtime.RawExtension{Raw: part}} {
				again, err := json.Marshal(of)
				require.NoError(t, err)
				require.Equal(t, string(part), string(again),
					"the API server must not change the text")
			}
		}
		same := *c
		same.Objects = rapid.Permutation(c.Objects).Draw(t, "order")
		others, err := encode(&same, limit)
		require.NoError(t, err)
		require.Equal(t, parts, others, "the order of objects must not change the text")

		back, err := decode(parts)
		require.NoError(t, err)
		require.Equal(t, c.Hash(), back.Hash())
		want := c.sorted()
		require.Len(t, back.Objects, len(want))
		for i := range want {
			require.Equal(t, want[i], back.Objects[i])
		}
		for _, field := range []string{string(back.Work.Apply.Mode), string(back.Work.Apply.Drift),
			string(back.Work.Delete.Propagation)} {
			require.NotEmpty(t, field, "a default is missing")
		}
		if len(parts) > 1 {
			_, err = decode(parts[:len(parts)-1])
			require.ErrorIs(t, err, ErrCorrupt)
			slices.Reverse(parts)
			_, err = decode(parts)
			require.ErrorIs(t, err, ErrCorrupt)
		}
	})
	require.Greater(t, divided, 3, "no draw has several parts")
}

// TestFormat1 checks that each release can read the revisions of earlier ones.
func TestFormat1(t *testing.T) {
	want := contentOf(t, everything)
	parts, err := encode(want, 900)
	require.NoError(t, err)
	require.Len(t, parts, 2)
	var stored []v1alpha1.WorkSetRevisionSpec
	for i, name := range []string{"testdata/format1-1.json", "testdata/format1-2.json"} {
		text := readFile(t, name)
		now, err := json.Marshal(parts[i])
		require.NoError(t, err)
		require.Equal(t, strings.TrimSpace(string(text)), string(now))
		stored = append(stored, v1alpha1.WorkSetRevisionSpec{})
		require.NoError(t, json.Unmarshal(text, &stored[i]))
	}
	got, err := decode(stored)
	require.NoError(t, err)
	require.Equal(t, want.Hash(), got.Hash())
	require.JSONEq(t, `{"data":{"empty":{},"gone":null,"num":1,"s":"<","z":0}}`,
		string(got.Overrides.Rules[0].MergePatch.Raw))
}

func TestDecodeRefuses(t *testing.T) {
	parts, err := encode(contentOf(t, `work: {apply: {mode: CreateOnly}}`), 1<<20)
	require.NoError(t, err)
	require.Len(t, parts, 1)
	text, err := json.Marshal(parts[0])
	require.NoError(t, err)
	whole := string(text)
	for _, test := range []struct {
		reason, old, new string
		want             error
		text             string
	}{
		{"an object was changed", `"k":"2"`, `"k":"3"`, ErrCorrupt, ""},
		{"the settings were changed", `CreateOnly`, `Observe`, ErrCorrupt, ""},
		{"an invalid object", `"kind":"ConfigMap"`, `"kind":""`, ErrCorrupt, ""},
		{"another hash", `"hash":"`, `"hash":"0`, ErrCorrupt, ""},
		{"zero parts", `1/1`, `1/0`, ErrCorrupt, ""},
		{"a part is missing", `1/1`, `1/2`, ErrCorrupt, ""},
		{"the first part is missing", `1/1`, `2/2`, ErrCorrupt, ""},
		{"the content is an array", `"content":{`, `"content":[],"other":{`, ErrCorrupt, ""},
		{"the content is null", `"content":{`, `"content":null,"other":{`, ErrCorrupt, ""},
		{"a field of the wrong type", `"mode":"CreateOnly"`, `"mode":5`, ErrCorrupt, ""},
		{"a later format", `"format":1`, `"format":2,"more":true`, nil, "the revision has format 2, and this release " +
			"supports format 1 only"},
		{"no format", `"format":1,`, ``, nil, "the revision has format 0"},
		{"a field of a later release", `"work":{`, `"work":{"more":true,`, nil,
			"the revision has fields that this release does not support"},
		{"a field of a later release beside the format",
			`"format":1`, `"format":1,"more":true`, nil, "the revision has fields that this release does not " +
				"support"},
	} {
		changed := strings.Replace(whole, test.old, test.new, 1)
		require.NotEqual(t, whole, changed, test.reason)
		var spec v1alpha1.WorkSetRevisionSpec
		require.NoError(t, json.Unmarshal([]byte(changed), &spec), test.reason)
		c, err := decode([]v1alpha1.WorkSetRevisionSpec{spec})
		require.Nil(t, c, test.reason)
		if test.want != nil {
			require.ErrorIs(t, err, test.want, test.reason)
			continue
		}
		require.ErrorContains(t, err, test.text, test.reason)
		require.ErrorIs(t, err, ErrLater, test.reason)
		require.NotErrorIs(t, err, ErrCorrupt, "%s: a revision of a later release is not corrupt", test.reason)
	}
}

func TestEncodeRefuses(t *testing.T) {
	_, err := encode(
		&Content{Overrides: &v1alpha1.Overrides{Rules: []v1alpha1.OverrideRule{{MergePatch: raw("{secret")}}}}, 1000)
	require.EqualError(t, err, "overrides: rules: mergePatch: the content is not JSON")
	_, err = encode(&Content{Objects: []bundle.Object{{JSON: []byte("{")}}}, 1000)
	require.ErrorIs(t, err, bundle.ErrInvalid)
}

// FuzzDecode checks for any input that decode returns an error, or a content whose encoding is equivalent to the input.
func FuzzDecode(f *testing.F) {
	for _, spec := range []string{`{}`, everything} {
		parts, err := encode(contentOf(f, spec), 1<<20)
		require.NoError(f, err)
		f.Add(parts[0].Hash, parts[0].Content.Raw, []byte(nil))
	}
	parts, err := encode(contentOf(f, everything), 900)
	require.NoError(f, err)
	f.Add(parts[0].Hash, parts[0].Content.Raw, parts[1].Content.Raw)
	f.Add("", []byte(`{"format":1}`), []byte(`null`))
	f.Fuzz(func(t *testing.T, hash string, one, two []byte) {
		parts := []v1alpha1.WorkSetRevisionSpec{{Hash: hash, Part: "1/1", Content: *raw(string(one))}}
		if len(two) > 0 {
			parts[0].Part = "1/2"
			parts = append(parts, v1alpha1.WorkSetRevisionSpec{Hash: hash, Part: "2/2", Content: *raw(string(two))})
		}
		c, err := decode(parts)
		if err != nil {
			require.Nil(t, c)
			return
		}
		again, err := encode(c, 1<<20)
		require.NoError(t, err)
		back, err := decode(again)
		require.NoError(t, err)
		require.Equal(t, c.Hash(), back.Hash())
	})
}
