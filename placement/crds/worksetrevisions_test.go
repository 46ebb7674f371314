package crds_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/crdinstall/crdtest"
	"github.com/muster-sdk/muster/placement/v1alpha1"
)

func revision(name, content string) *v1alpha1.WorkSetRevision {
	return &v1alpha1.WorkSetRevision{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Number: 3,
		Spec: v1alpha1.WorkSetRevisionSpec{
			WorkSet: "web", Revision: "web-5f6d8c9b7a12", Hash: strings.Repeat("5f6d8c9b7a12", 6)[:64], Part: "1/2", Objects: 7,
			Content: runtime.RawExtension{Raw: []byte(content)},
		},
	}
}

func createdRevision(t *testing.T, c client.Client, name, content string) *v1alpha1.WorkSetRevision {
	t.Helper()
	r := revision(name, content)
	require.NoError(t, c.Create(t.Context(), r))
	t.Cleanup(func() { _ = c.Delete(context.Background(), r) })
	return r
}

// TestWorkSetRevisionRules checks that the API server rejects revisions that no release writes.
func TestWorkSetRevisionRules(t *testing.T) {
	c := installed(t)
	require.NoError(t, c.Create(t.Context(), revision("right", `{}`), client.DryRunAll))
	for _, test := range []struct {
		reason string
		change func(*v1alpha1.WorkSetRevision)
		field  string // empty: the revision is valid
	}{
		{"number 0", func(r *v1alpha1.WorkSetRevision) { r.Number = 0 }, "number"},
		{"number 1", func(r *v1alpha1.WorkSetRevision) { r.Number = 1 }, ""},
		{"an empty WorkSet", func(r *v1alpha1.WorkSetRevision) { r.Spec.WorkSet = "" }, "spec.workSet"},
		{"a name of a WorkSet that is too long", func(r *v1alpha1.WorkSetRevision) { r.Spec.WorkSet = as(254) },
			"spec.workSet"},
		{"the longest name of a WorkSet", func(r *v1alpha1.WorkSetRevision) { r.Spec.WorkSet = as(253) }, ""},
		{"an empty name of a revision", func(r *v1alpha1.WorkSetRevision) { r.Spec.Revision = "" }, "spec.revision"},
		{"a name of a revision that is too long", func(r *v1alpha1.WorkSetRevision) { r.Spec.Revision = as(254) },
			"spec.revision"},
		{"a hash that is too short", func(r *v1alpha1.WorkSetRevision) { r.Spec.Hash = r.Spec.Hash[:12] }, "spec.hash"},
		{"a hash with upper-case letters", func(r *v1alpha1.WorkSetRevision) {
			r.Spec.Hash = strings.ToUpper(r.Spec.Hash)
		}, "spec.hash"},
		{"0 objects", func(r *v1alpha1.WorkSetRevision) { r.Spec.Objects = 0 }, ""},
		{"a negative number of objects", func(r *v1alpha1.WorkSetRevision) { r.Spec.Objects = -1 }, "spec.objects"},
		{"part 1/1", func(r *v1alpha1.WorkSetRevision) { r.Spec.Part = "1/1" }, ""},
		{"part 9999/9999", func(r *v1alpha1.WorkSetRevision) { r.Spec.Part = "9999/9999" }, ""},
		{"more than 9999 parts", func(r *v1alpha1.WorkSetRevision) { r.Spec.Part = "1/10000" }, "spec.part"},
		{"a part after the last one", func(r *v1alpha1.WorkSetRevision) { r.Spec.Part = "10/9" }, "spec.part"},
		{"part 0", func(r *v1alpha1.WorkSetRevision) { r.Spec.Part = "0/1" }, "spec.part"},
		{"a part without the number of parts", func(r *v1alpha1.WorkSetRevision) { r.Spec.Part = "1" }, "spec.part"},
		{"a part that is not a number", func(r *v1alpha1.WorkSetRevision) { r.Spec.Part = "one/two" }, "spec.part"},
		{"no content", func(r *v1alpha1.WorkSetRevision) { r.Spec.Content.Raw = nil }, "spec.content"},
	} {
		r := revision("wrong", `{}`)
		test.change(r)
		switch err := c.Create(t.Context(), r, client.DryRunAll); {
		case test.field == "":
			require.NoError(t, err, test.reason)
		case !apierrors.IsInvalid(err):
			t.Errorf("%s: want the API server to reject the object, got %v", test.reason, err)
		default:
			if got := crdtest.Complaints(t, err); len(got) != 1 || got[0].Field != test.field {
				t.Errorf("%s: want one error of %s, got %+v", test.reason, test.field, got)
			}
		}
	}
}

// stored returns a text as the API server stores and returns it: fields are sorted, and <, > and & are escaped.
func stored(t *testing.T, text string) string {
	t.Helper()
	var value any
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	require.NoError(t, decoder.Decode(&value))
	out, err := json.Marshal(value)
	require.NoError(t, err)
	return string(out)
}

// TestWorkSetRevision_ContentIsPreserved checks that the content of a revision does not change: no field is pruned,
// defaulted or converted.
func TestWorkSetRevision_ContentIsPreserved(t *testing.T) {
	c := installed(t)
	for i, content := range []string{
		`{"z":1,"a":{"é":"<b> & \u2028 \u0000 \ud83d\ude00","":null,"empty":{},"none":[]}}`,
		`{"int":9007199254740993,"least":-9223372036854775808,"float":1.5,"small":1e-9,"large":1.7976931348623157e+308}`,
		`{"objects":[{"kind":"Secret","apiVersion":"v1","metadata":{"name":"a","creationTimestamp":null,` +
			`"managedFields":[{}],"uid":"1","unknown":{}},"data":{"k":"dg=="},"status":{}}]}`,
		`{"x-kubernetes-preserve-unknown-fields":false,"$ref":"a","metadata":"text","kind":1}`,
		`{"deep":` + strings.Repeat(`{"a":[`, 60) + `null` + strings.Repeat(`]}`, 60) + `}`,
	} {
		r := createdRevision(t, c, fmt.Sprintf("content-%d", i), content)
		for range 2 {
			require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(r), r))
			if diff := cmp.Diff(stored(t, content), string(r.Spec.Content.Raw)); diff != "" {
				t.Errorf("content %d (-want +got)\n%s", i, diff)
			}
			// The API server decodes and encodes the content again for this patch.
			require.NoError(t, c.Patch(t.Context(), r,
				client.RawPatch(types.MergePatchType, []byte(`{"number":4,"metadata":{"labels":{"a":"b"}}}`))))
		}
	}
}

// TestWorkSetRevisionIsImmutable checks that no kind of patch can change the spec, and that the number can be changed.
// For the rules of the API server, two objects are equal if they have the same number of fields with different names
// that the schema does not know.
func TestWorkSetRevisionIsImmutable(t *testing.T) {
	c := installed(t)
	const content = `{"a":{"k":"v"},"b":[{"x":1,"y":2}],"c":null,"d":[1,2]}`
	r := createdRevision(t, c, "immutable", content)
	for _, change := range []string{
		`{"a":{"k":"w"}}`, `{"a":{"k":null,"l":"v"}}`, `{"a":null,"e":{"k":"v"}}`, `{"a":null}`, `{"e":1}`,
		`{"b":[{"x":1,"z":2}]}`, `{"b":[{"y":1,"x":2}]}`, `{"b":[]}`, `{"d":[2,1]}`, `{"d":[1,2.5]}`, `{"d":"text"}`,
		`null`, `[]`, `"text"`, `{"a":null,"b":null,"c":null,"d":null}`,
	} {
		err := c.Patch(t.Context(), r.DeepCopy(),
			client.RawPatch(types.MergePatchType, []byte(`{"spec":{"content":`+change+`}}`)))
		require.True(t, apierrors.IsInvalid(err), "%s: %v", change, err)
	}
	for _, change := range []string{
		`"workSet":"db"`, `"revision":"web-000000000000"`, `"hash":"` + strings.Repeat("0", 64) + `"`, `"part":"2/2"`,
		`"objects":8`,
	} {
		err := c.Patch(t.Context(), r.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{`+change+`}}`)))
		if !apierrors.IsInvalid(err) {
			t.Errorf("%s: want the API server to reject the object, got %v", change, err)
		} else if got := crdtest.Complaints(t, err); len(got) != 1 || got[0].Field != "spec" ||
			!strings.Contains(got[0].Message, "a revision cannot be changed") {
			t.Errorf("%s: want one error of spec, got %+v", change, got)
		}
	}
	for _, test := range []struct {
		kind  types.PatchType
		patch string
	}{
		{types.JSONPatchType, `[{"op":"move","from":"/spec/content/a","path":"/spec/content/e"}]`},
		{types.JSONPatchType, `[{"op":"remove","path":"/spec/content"}]`},
		{types.JSONPatchType, `[{"op":"remove","path":"/spec"}]`},
	} {
		err := c.Patch(t.Context(), r.DeepCopy(), client.RawPatch(test.kind, []byte(test.patch)))
		require.True(t, apierrors.IsInvalid(err), "%s: %v", test.patch, err)
	}
	require.NoError(t, c.Patch(t.Context(), r, client.RawPatch(types.MergePatchType, []byte(`{"number":9}`))))
	require.Equal(t, int64(9), r.Number)
	require.True(t, bytes.Equal([]byte(content), r.Spec.Content.Raw))
}

func TestColumnsOfWorkSetRevision(t *testing.T) {
	c := installed(t)
	createdRevision(t, c, "columns", `{}`)
	order, cells := crdtest.Columns(t, plane.ForTest(t).Config(),
		"/apis/placement.muster.dev/v1alpha1/namespaces/default/worksetrevisions/columns")
	if diff := cmp.Diff([]string{"Name", "WorkSet", "Number", "Objects", "Part", "Age"}, order); diff != "" {
		t.Errorf("order of the columns (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{"Name": "columns", "WorkSet": "web", "Number": 3.0, "Objects": 7.0, "Part": "1/2"},
		cells); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
