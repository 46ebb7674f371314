package v1alpha1_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/work/v1alpha1"
)

func of(manifests ...string) v1alpha1.WorkSpec {
	spec := v1alpha1.WorkSpec{Manifests: []v1alpha1.Manifest{}}
	for _, text := range manifests {
		spec.Manifests = append(spec.Manifests, v1alpha1.Manifest{RawExtension: runtime.RawExtension{Raw: []byte(text)}})
	}
	return spec
}

// thing returns a manifest with additional fields.
func thing(more string) string {
	return `{"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, ` + more + `}`
}

func secret(more string) string {
	return `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, ` + more + `}`
}

func nested(depth int) string {
	return thing(`"spec": ` + strings.Repeat(`{"a":`, depth-2) + "[]" + strings.Repeat("}", depth-2))
}

func TestDecode(t *testing.T) {
	for _, test := range []struct{ reason, manifest, want string }{
		{"numbers are not changed", thing(`"spec": {"whole": 9223372036854775807, "half": 0.5, "point": 1.0}`),
			thing(`"spec": {"whole": 9223372036854775807, "half": 0.5, "point": 1.0}`)},
		{"status is dropped", thing(`"status": {"ready": true}, "spec": {"status": "mine"}`),
			thing(`"spec": {"status": "mine"}`)},
		{
			"metadata of the API server is dropped",
			`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "b", "uid": "u",
				  "resourceVersion": "1", "generation": 2, "selfLink": "/",
				"creationTimestamp": "2026-01-01T00:00:00Z", "deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 0,
				"managedFields": [{"manager": "m", "operation": "Apply", "fieldsType": "FieldsV1"}], "labels": {
				  "uid": "kept"}, "annotations": {"c": "d"}, "finalizers": ["e/f"]}}`,
			`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "b", "labels": {"uid": "kept"}, ` +
				`"annotations": {"c": "d"}, "finalizers": ["e/f"]}}`,
		},
		{"null is dropped at any depth", thing(`"spec": {"a": null, "b": {"c": null}, "d": [{"e": null}]}`),
			thing(`"spec": {"b": {}, "d": [{}]}`)},
		{"null items of a list are kept", thing(`"spec": [null, 1]`), thing(`"spec": [null, 1]`)},
		{"stringData becomes data", secret(`"stringData": {"b": "text"}`), secret(`"data": {"b": "dGV4dA=="}`)},
		{"stringData takes precedence over data",
			secret(`"data": {"a": "YQ==", "b": "Yg=="}, "stringData": {"b": "text"}`),
			secret(`"data": {"a": "YQ==", "b": "dGV4dA=="}`)},
		{"empty stringData creates no data", secret(`"stringData": {}`),
			`{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}`},
		{"null stringData creates no data", secret(`"stringData": null, "data": null`),
			`{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}`},
		{"stringData of another kind is not changed", thing(`"stringData": {"b": "text"}`),
			thing(`"stringData": {"b": "text"}`)},
		{"stringData of a Secret of another group is not changed",
			`{"apiVersion": "example.com/v1", "kind": "Secret", "metadata": {"name": "a"}, ` +
				`"stringData": {"b": "c"}}`, `{"apiVersion": "example.com/v1", "kind": "Secret", "metadata": {"name": "a"}, ` +
				`"stringData": {"b": "c"}}`},
		{"maximum depth", nested(v1alpha1.MaxManifestDepth), nested(v1alpha1.MaxManifestDepth)},
		{"brackets in a string do not increase the depth", thing(`"a": "` + strings.Repeat(`\"[{\\`, 200) + `"`),
			thing(`"a": "` + strings.Repeat(`\"[{\\`, 200) + `"`)},
		{"items of a kind that is not a list",
			`{"apiVersion": "example.com/v1", "kind": "Basket", "metadata": {"name": "a"}, "items": ["b"]}`,
			`{"apiVersion": "example.com/v1", "kind": "Basket", "metadata": {"name": "a"}, "items": ["b"]}`},
		{"kind that ends in List without items",
			`{"apiVersion": "example.com/v1", "kind": "AllowList", "metadata": {"name": "a"}}`,
			`{"apiVersion": "example.com/v1", "kind": "AllowList", "metadata": {"name": "a"}}`},
		{"empty ownerReferences", thing(`"metadata": {"name": "a", "ownerReferences": []}`),
			thing(`"metadata": {"name": "a", "ownerReferences": []}`)},
	} {
		spec := of(test.manifest)
		got, errs := spec.Decode()
		if len(errs) > 0 || got[0].Object == nil {
			t.Errorf("%s: got %v", test.reason, errs)
			continue
		}
		if diff := cmp.Diff(decoded(t, test.want), got[0].Object.Object); diff != "" {
			t.Errorf("%s (-want +got)\n%s", test.reason, diff)
		}
	}
}

func TestDecode_Invalid(t *testing.T) {
	for _, test := range []struct{ reason, manifest, field, want string }{
		{"empty manifest", ``, "", "must be a JSON object"},
		{"null", `null`, "", "must be a JSON object"},
		{"string", `"a"`, "", "must be a JSON object"},
		{"list of objects", `[{}]`, "", "must be a JSON object"},
		{"incomplete object", `{"apiVersion": "v1"`, "", "must be a JSON object"},
		{"two objects", `{}{}`, "", "must be a JSON object"},
		{"exceeds the maximum depth", nested(v1alpha1.MaxManifestDepth + 1), "", "nested more than 100 deep"},
		{"deep enough for a stack overflow", strings.Repeat("[", 1<<19), "", "nested more than 100 deep"},
		{"apiVersion with two slashes", `{"apiVersion": "apps/v1/v2", "kind": "Thing", "metadata": {"name": "a"}}`,
			".apiVersion",
			"must be the group and version of an API"},
		{"group with a capital letter", `{"apiVersion": "Apps/v1", "kind": "Thing", "metadata": {"name": "a"}}`,
			".apiVersion",
			"must be the group and version of an API"},
		{"version is a number", `{"apiVersion": "apps/1", "kind": "Thing", "metadata": {"name": "a"}}`, ".apiVersion",
			"must be the group and version of an API"},
		{"group without a version", `{"apiVersion": "apps/", "kind": "Thing", "metadata": {"name": "a"}}`, ".apiVersion",
			"must be the group and version of an API"},
		{"apiVersion is not a string", `{"apiVersion": 1, "kind": "Thing", "metadata": {"name": "a"}}`, ".apiVersion",
			"write the group and version"},
		{"kind is not a string", `{"apiVersion": "v1", "kind": {}, "metadata": {"name": "a"}}`, ".kind",
			"write the kind of the object"},
		{"name is not a string", `{"apiVersion": "v1", "kind": "Thing", "metadata": {"name": 5}}`, ".metadata",
			"ObjectMeta.name of type string"},
		{"metadata is a list", `{"apiVersion": "v1", "kind": "Thing", "metadata": []}`, ".metadata",
			"cannot unmarshal array"},
		{"name is ..", `{"apiVersion": "v1", "kind": "Thing", "metadata": {"name": ".."}}`,
			".metadata.name", "may not be '..'"},
		{"annotation key with a space", thing(`"metadata": {"name": "a", "annotations": {"two words": ""}}`),
			".metadata.annotations", "two words"},
		{"finalizer with a space", thing(`"metadata": {"name": "a", "finalizers": ["two words"]}`),
			".metadata.finalizers", "two words"},
		{
			"ownerReference", thing(`"metadata": {"name": "a", "ownerReferences": [{"apiVersion": "v1", "kind": ` +
				`"Node", "name": "n", "uid": "u"}]}`),
			".metadata.ownerReferences", "its UID, which is another one on each cluster: remove it",
		},
		{"empty ownerReference is reported once", thing(`"metadata": {"name": "a", "ownerReferences": [{}]}`),
			".metadata.ownerReferences", "remove it"},
		{"kind List with items", `{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1"}]}`, ".items",
			"put its items into spec.manifests"},
		{"kind ConfigMapList without items", `{"apiVersion": "v1", "kind": "ConfigMapList", "metadata": {}, "items": []}`,
			".items", "put its items into spec.manifests"},
		{"stringData with a number", secret(`"stringData": {"a": 1}`), ".stringData[a]", "must be a map of strings"},
		{"stringData is a list", secret(`"stringData": ["a"]`), ".stringData", "must be a map of strings"},
		{"data is a string", secret(`"stringData": {"a": "b"}, "data": "c"`), ".data",
			"must be a map of strings in base64"},
	} {
		spec := of(`{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "beside"}}`, test.manifest)
		got, errs := spec.Decode()
		at := "spec.manifests[1]" + test.field
		if len(errs) != 1 || errs[0].Field != at || !strings.Contains(errs[0].Error(), test.want) {
			t.Errorf("%s: want one error of %s with %q, got %v", test.reason, at, test.want, errs)
			continue
		}
		if got[0].Object == nil || len(got[0].Errors) > 0 {
			t.Errorf("%s: the valid manifest is refused: %v", test.reason, got[0].Errors)
		}
		if diff := cmp.Diff(errs, got[1].Errors); got[1].Object != nil || diff != "" {
			t.Errorf("%s: want the errors and no object, got %v\n%s", test.reason, got[1].Object, diff)
		}
	}
}

func TestDecode_Duplicates(t *testing.T) {
	const (
		first  = `{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"}}`
		older  = `{"apiVersion": "apps/v1beta1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"}}`
		broken = `{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop", ` +
			`"generateName": "web-"}}`
		another  = `{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "other"}}`
		nameless = `{"apiVersion": "apps/v1", "kind": "Deployment"}`
	)
	for _, test := range []struct {
		reason    string
		manifests []string
		want      map[int]int // the index in the error of each refused manifest
	}{
		{"each manifest names the other one", []string{first, another, first}, map[int]int{0: 2, 2: 0}},
		{"another version is the same object", []string{first, older}, map[int]int{0: 1, 1: 0}},
		{"three manifests of one object", []string{another, first, older, first}, map[int]int{1: 2, 2: 1, 3: 1}},
		{"one of the manifests has another error", []string{first, broken}, map[int]int{0: 1, 1: 0}},
		{"another namespace is another object", []string{first, another}, nil},
		{"manifests without a name have no duplicates", []string{nameless, nameless}, nil},
	} {
		spec := of(test.manifests...)
		got, _ := spec.Decode()
		for i := range got {
			var reported []string
			for _, err := range got[i].Errors {
				if err.Type == field.ErrorTypeDuplicate {
					reported = append(reported, err.Error())
				}
			}
			var want []string
			if other, found := test.want[i]; found {
				want = []string{fmt.Sprintf(`spec.manifests[%d]: Duplicate value: "apps/Deployment shop/web": the manifest has `+
					`the object of spec.manifests[%d] as well: remove one of them`, i, other)}
			}
			if diff := cmp.Diff(want, reported); diff != "" {
				t.Errorf("%s: manifest %d (-want +got)\n%s", test.reason, i, diff)
			}
			if want != nil && got[i].Object != nil {
				t.Errorf("%s: manifest %d is not refused", test.reason, i)
			}
		}
	}
}

// TestDecode_IdentifiersOfInvalidManifests checks the identifiers of rejected manifests, which the status of a Work
// contains.
func TestDecode_IdentifiersOfInvalidManifests(t *testing.T) {
	spec := of(
		`{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"}}`,
		`{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "other", "labels": 5}}`,
		`{"kind": "Deployment", "metadata": {}}`,
		`[]`,
	)
	decoded, _ := spec.Decode()
	var got []v1alpha1.ResourceIdentifier
	for _, d := range decoded {
		got = append(got, d.ResourceIdentifier)
	}
	want := []v1alpha1.ResourceIdentifier{
		{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "shop", Name: "web"},
		{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "other", Name: "web"},
		{Kind: "Deployment"},
		{},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestDecode_Limits(t *testing.T) {
	long := func(bytes int) string {
		empty := thing(`"a": ""`)
		return thing(`"a": "` + strings.Repeat("x", bytes-len(empty)) + `"`)
	}
	half := v1alpha1.MaxManifestBytes / 2
	largest := of(long(half), strings.Replace(long(half), `"name": "a"`, `"name": "b"`, 1))
	decoded, errs := largest.Decode()
	require.Empty(t, errs, "manifests of the maximum length")
	require.Len(t, decoded, 2)

	larger := of(long(half), long(half+1))
	decoded, errs = larger.Decode()
	require.Nil(t, decoded)
	require.Len(t, errs, 1)
	require.Equal(t, "spec.manifests: Too long: must have at most 786432 bytes as JSON, got 786433: split the Work into "+
		"several", errs[0].Error())

	many := v1alpha1.WorkSpec{Manifests: make([]v1alpha1.Manifest, v1alpha1.MaxManifests+1)}
	decoded, errs = many.Decode()
	require.Nil(t, decoded)
	require.Len(t, errs, 1, "one error for too many manifests")
	require.Equal(t, "spec.manifests: Too many: 1001: must have at most 1000 items", errs[0].Error())

	none := of()
	decoded, errs = none.Decode()
	require.Empty(t, errs)
	require.NotNil(t, decoded, "an empty list of manifests is not nil")
}

// TestDecode_TypedObjects checks manifests with typed objects, as in Works that are built in Go.
func TestDecode_TypedObjects(t *testing.T) {
	typed := func(object runtime.Object) v1alpha1.WorkSpec {
		return v1alpha1.WorkSpec{Manifests: []v1alpha1.Manifest{{RawExtension: runtime.RawExtension{Object: object}}}}
	}
	config := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"b": "c"}}
	spec := typed(config)
	got, errs := spec.Decode()
	require.Empty(t, errs)
	want := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"},
		"data": map[string]any{"b": "c"}}
	if diff := cmp.Diff(want, got[0].Object.Object); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}

	config.TypeMeta = metav1.TypeMeta{}
	_, errs = spec.Decode()
	require.Len(t, errs, 2, "the type is unknown without TypeMeta")
	require.Equal(t, "spec.manifests[0].apiVersion", errs[0].Field)
	require.Equal(t, "spec.manifests[0].kind", errs[1].Field)
}

// TestDecode_ErrorsContainNoSecrets checks that errors contain no confidential values, because conditions, Events and
// logs contain the errors.
func TestDecode_ErrorsContainNoSecrets(t *testing.T) {
	const hidden = "hunter2"
	for _, manifest := range []string{
		`["` + hidden + `"]`,
		`{"` + hidden + `"`,
		secret(`"stringData": {"a": ["` + hidden + `"]}`),
		secret(`"stringData": "` + hidden + `"`),
		secret(`"stringData": {"a": "b"}, "data": "` + hidden + `"`),
		strings.Replace(nested(200), "[]", `"`+hidden+`"`, 1),
		`{"apiVersion": "v1", "kind": "Secret", "data": {"a": "` + hidden + `"}}`,
		`{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "annotations": ["` + hidden +
			`"]}, "data": {"a": "` + hidden + `"}}`,
	} {
		spec := of(manifest)
		_, errs := spec.Decode()
		if text := errs.ToAggregate().Error(); strings.Contains(text, hidden) {
			t.Errorf("%s: %s", manifest, text)
		}
	}
}

// TestDecode_DoesNotModifyTheSpec checks that Decode does not modify the spec, which may be shared with a cache.
func TestDecode_DoesNotModifyTheSpec(t *testing.T) {
	spec := of(secret(`"stringData": {"a": "b"}, "status": {}`), "{}")
	before := spec.DeepCopy()
	decoded, _ := spec.Decode()
	decoded[0].Object.SetName("changed")
	spec.Validate()
	if diff := cmp.Diff(*before, spec); diff != "" {
		t.Errorf("(-before +after)\n%s", diff)
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		"", "null", "{}", nested(5), secret(`"stringData": {"a": "b"}`), thing(`"a": null, "status": 1`),
		`{"apiVersion":"v1","kind":"List","items":[]}`, `{"metadata":{"name":"a","ownerReferences":[{}]}}`,
		`{"a":"\ud800"}`, strings.Repeat(`{"a":`, 200),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		spec := of(text)
		got, errs := spec.Decode()
		if len(got) != 1 || (got[0].Object == nil) != (len(errs) > 0) {
			t.Fatalf("want an object or errors, got %v, %v", got, errs)
		}
		if len(errs) > 0 {
			return
		}
		// The decoded object is a manifest of the same object, and a second Decode does not change it.
		once, err := json.Marshal(got[0].Object.Object)
		require.NoError(t, err)
		second := of(string(once))
		again, errs := second.Decode()
		require.Empty(t, errs)
		require.Equal(t, got[0].ResourceIdentifier, again[0].ResourceIdentifier)
		twice, err := json.Marshal(again[0].Object.Object) // as text: 1.0 has become 1, and so an int64
		require.NoError(t, err)
		require.Equal(t, string(once), string(twice))
	})
}

// TestStoredBytes checks that StoredBytes returns the length of the output of encoding/json, which escapes as the API
// server does.
func TestStoredBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.SampledFrom([]rune("ab<>&\u2028\u2029\u2030é\"\\\n"))).Draw(t, "text")
		var plain bytes.Buffer
		encoder := json.NewEncoder(&plain)
		encoder.SetEscapeHTML(false)
		require.NoError(t, encoder.Encode(map[string]string{text: text}))
		stored, err := json.Marshal(map[string]string{text: text})
		require.NoError(t, err)
		require.Equal(t, len(stored), v1alpha1.StoredBytes(bytes.TrimSpace(plain.Bytes())))
	})
}

func TestValidate_LimitIncludesEscapes(t *testing.T) {
	page := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"page","namespace":"shop"},`+
		`"data":{"html":%q}}`, strings.Repeat("<", v1alpha1.MaxManifestBytes/4))
	spec := v1alpha1.WorkSpec{Manifests: []v1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: page}}}}
	require.ErrorContains(t, spec.Validate().ToAggregate(), "spec.manifests")
}

// TestDecode_Exported checks the detection of manifests that were read from a cluster.
func TestDecode_Exported(t *testing.T) {
	for metadata, want := range map[string]bool{
		`{}`:                          false,
		`{"creationTimestamp": null}`: false,
		`{"generation": 3, "labels": {"uid": "x"}}`:    false,
		`{"resourceVersion": ""}`:                      false,
		`{"creationTimestamp":"2026-01-01T00:00:00Z"}`: true,
		`{"resourceVersion": "5"}`:                     true,
		`{"uid": "x"}`:                                 true,
		`{"selfLink": "/x"}`:                           true,
	} {
		text := `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", ` + metadata[1:] + `}`
		text = strings.ReplaceAll(text, `"a", }`, `"a"}`)
		spec := v1alpha1.WorkSpec{Manifests: make([]v1alpha1.Manifest, 1)}
		spec.Manifests[0].Raw = []byte(text)
		decoded, errs := spec.Decode()
		require.Empty(t, errs, metadata)
		require.Equal(t, want, decoded[0].Exported, metadata)
	}
}
