package crds_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/crdinstall/crdtest"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// Objects as an API server returns them after it has stored them.

func create(t *testing.T, c client.Client, object client.Object) {
	t.Helper()
	require.NoError(t, c.Create(t.Context(), object))
	t.Cleanup(func() { _ = c.Delete(context.Background(), object) })
}

func TestStorage_ManifestsAreNotChanged(t *testing.T) {
	c := installed(t)
	for _, test := range []struct{ reason, manifest, want string }{
		{
			"fields of an unknown kind, of any type",
			`{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a"},"spec":{"b":[1,"2",true,{"c":{}}],"d":{}},` +
				`"other":"e"}`,
			`{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a"},"other":"e","spec":{"b":[1,"2",true,` +
				`{"c":{}}],"d":{}}}`,
		},
		{
			"large integers keep all digits, and 1.0 becomes 1",
			`{"apiVersion":"v1","kind":"Thing","metadata":{"name":"a"},"spec":{"large":9223372036854775807,` +
				`"odd":9007199254740993,"negative":-1,"half":0.5,"point":1.0}}`,
			`{"apiVersion":"v1","kind":"Thing","metadata":{"name":"a"},"spec":{"half":0.5,"large":9223372036854775807,` +
				`"negative":-1,"odd":9007199254740993,"point":1}}`,
		},
		{
			"null is stored",
			`{"apiVersion":"v1","kind":"Thing","metadata":{"name":"a"},"spec":{"b":null,"c":[null]}}`,
			`{"apiVersion":"v1","kind":"Thing","metadata":{"name":"a"},"spec":{"b":null,"c":[null]}}`,
		},
		{
			"unknown fields of metadata are dropped",
			`{"apiVersion":"v1","kind":"Thing","metadata":{"name":"a","clusterName":"b","labels":{"c":"d"},` +
				`"annotations":{"e":"f"},"finalizers":["g/h"]}}`,
			`{"apiVersion":"v1","kind":"Thing","metadata":{"annotations":{"e":"f"},"finalizers":["g/h"],"labels":{"c":"d"},` +
				`"name":"a"}}`,
		},
	} {
		work := named("kept", of(test.manifest))
		require.NoError(t, c.Create(t.Context(), work, client.DryRunAll), test.reason)
		if diff := cmp.Diff(test.want, string(work.Spec.Manifests[0].Raw)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", test.reason, diff)
		}
	}
}

// TestValidation_MetadataOfWrongType checks metadata that the API server cannot decode, so its error has no list of
// causes; the error names the field nevertheless.
func TestValidation_MetadataOfWrongType(t *testing.T) {
	c := installed(t)
	spec := of(`{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a", "labels": {"replicas": 1}}}`)
	const want = "spec.manifests[0].metadata"
	err := c.Create(t.Context(), named("types", spec), client.DryRunAll)
	require.True(t, apierrors.IsBadRequest(err), err)
	require.ErrorContains(t, err, want)
	check(t, "Validate", refused{field: want, want: "ObjectMeta.labels of type string"}, validated(spec))
}

func TestValidation_FieldOwnerIsImmutable(t *testing.T) {
	c := installed(t)
	for _, test := range []struct{ reason, before, after string }{
		{"one field owner to another", "a", "b"},
		{"field owner to the default", "a", ""},
		{"default to a field owner", "", "a"},
	} {
		work := named("owner", with(func(s *v1alpha1.WorkSpec) { s.Apply.FieldOwner = test.before }))
		require.NoError(t, c.Create(t.Context(), work))
		work.Spec.Apply.FieldOwner = test.after
		err := c.Update(t.Context(), work)
		if !apierrors.IsInvalid(err) {
			t.Errorf("%s: API server: want an invalid error, got %v", test.reason, err)
		} else {
			check(t, test.reason, refused{field: "spec.apply.fieldOwner", want: "delete the Work with delete.action Orphan"},
				crdtest.Complaints(t, err))
		}
		work.Spec.Apply = v1alpha1.ApplyPolicy{Mode: v1alpha1.CreateOnly, FieldOwner: test.before}
		require.NoError(t, c.Update(t.Context(), work), "other fields of the policy may change")
		require.NoError(t, c.Delete(t.Context(), work))
	}
}

// TestStorage_LargestWork checks a Work with the maximum of all limits, so that no status is lost because of the
// length of its Work.
func TestStorage_LargestWork(t *testing.T) {
	c := installed(t)
	spec := of()
	const manifests, empty = 900, `{"apiVersion":"v1","data":{"a":""},"kind":"ConfigMap","metadata":{"name":"c000"}}`
	for i := range manifests {
		value := strings.Repeat("x", v1alpha1.MaxManifestBytes/manifests-len(empty))
		spec.Manifests = append(spec.Manifests, manifest(fmt.Sprintf(
			`{"apiVersion":"v1","data":{"a":"%s"},"kind":"ConfigMap","metadata":{"name":"c%03d"}}`, value, i)))
	}
	for i := 0; length(t, spec.ManifestOptions) < v1alpha1.MaxOptionBytes-2100; i++ {
		spec.ManifestOptions = append(spec.ManifestOptions, v1alpha1.ManifestOption{
			Select:    v1alpha1.ManifestSelector{Name: fmt.Sprintf("c%03d", i)},
			Readiness: &v1alpha1.ReadinessRule{CEL: strings.Repeat("!", 1996) + "true"},
		})
	}
	require.Empty(t, spec.Validate())
	work := named("largest", spec)
	create(t, c, work)

	work.Status = v1alpha1.WorkStatus{}
	for i := range manifests {
		work.Status.Manifests = append(work.Status.Manifests, v1alpha1.ManifestStatus{
			Ordinal: int32(i),
			ResourceIdentifier: v1alpha1.ResourceIdentifier{Version: "v1", Kind: "ConfigMap", Resource: "configmaps",
				Name: fmt.Sprintf("c%03d", i)},
			Conditions: []metav1.Condition{condition(v1alpha1.ConditionApplied, metav1.ConditionTrue),
				condition(v1alpha1.ConditionAvailable, metav1.ConditionTrue)},
		})
	}
	for i, rest := 0, v1alpha1.MaxStatusBytes-length(t, work.Status); rest > 0; i++ {
		n := min(rest, 1024)
		work.Status.Manifests[i].Conditions[0].Message = strings.Repeat("x", n)
		rest -= n
	}
	require.Equal(t, v1alpha1.MaxStatusBytes, length(t, work.Status))
	require.NoError(t, c.Status().Update(t.Context(), work))

	// Another client that writes the Work gets an entry in managedFields.
	work.Labels = map[string]string{"a": "b"}
	require.NoError(t, c.Update(t.Context(), work, client.FieldOwner("another")))
	require.Len(t, work.Status.Manifests, manifests)
	t.Logf("%d bytes; the limit of etcd is 1572864", length(t, work))
}

func condition(of string, status metav1.ConditionStatus) metav1.Condition {
	return metav1.Condition{Type: of, Status: status, Reason: "Because", LastTransitionTime: metav1.Now()}
}

func length(t *testing.T, value any) int {
	t.Helper()
	text, err := json.Marshal(value)
	require.NoError(t, err)
	return len(text)
}

// TestColumns checks the columns of kubectl get, as the API server returns them.
func TestColumns(t *testing.T) {
	c := installed(t)
	work := named("columns", configMaps(1))
	create(t, c, work)
	work.Status = v1alpha1.WorkStatus{Ready: "0/1", Message: "ConfigMap shop/c0 is in the way",
		Conditions: []metav1.Condition{
			condition(v1alpha1.ConditionApplied, metav1.ConditionFalse), condition(v1alpha1.ConditionAvailable,
				metav1.ConditionUnknown),
		}}
	require.NoError(t, c.Status().Update(t.Context(), work))
	applied := &v1alpha1.AppliedWork{
		ObjectMeta: metav1.ObjectMeta{Name: "columns"},
		Spec: v1alpha1.AppliedWorkSpec{Work: v1alpha1.WorkReference{Hub: "hub", Namespace: "member-east", Name: "web",
			UID: "u"}, FieldOwner: "muster-work-u"},
		Status: v1alpha1.AppliedWorkStatus{Conditions: []metav1.Condition{condition(v1alpha1.ConditionOrphaned,
			metav1.ConditionTrue)}},
	}
	applied.Status.Conditions[0].Message = "m"
	create(t, c, applied)

	for _, test := range []struct {
		path  string
		order []string
		cells map[string]any
	}{
		{
			"namespaces/default/works/columns",
			[]string{"Name", "Applied", "Available", "Ready", "Message", "Age"},
			map[string]any{"Name": "columns", "Applied": "False", "Available": "Unknown", "Ready": "0/1",
				"Message": "ConfigMap shop/c0 is in the way"},
		},
		{
			"appliedworks/columns",
			[]string{"Name", "Hub", "Namespace", "Work", "Orphaned", "Message", "Age"},
			map[string]any{"Name": "columns", "Hub": "hub", "Namespace": "member-east", "Work": "web", "Orphaned": "True",
				"Message": "m"},
		},
	} {
		order, cells := crdtest.Columns(t, plane.ForTest(t).Config(), "/apis/work.muster.dev/v1alpha1/"+test.path)
		if diff := cmp.Diff(test.cells, cells); diff != "" {
			t.Errorf("%s (-want +got)\n%s", test.path, diff)
		}
		if diff := cmp.Diff(test.order, order); diff != "" {
			t.Errorf("%s: order of the columns (-want +got)\n%s", test.path, diff)
		}
	}
}

// TestScopesAndStatus checks kubectl get muster, and an inventory that is written with its object.
func TestScopesAndStatus(t *testing.T) {
	c := installed(t)
	for name, scope := range map[string]apiextensionsv1.ResourceScope{
		"works.work.muster.dev":        apiextensionsv1.NamespaceScoped,
		"appliedworks.work.muster.dev": apiextensionsv1.ClusterScoped,
	} {
		var definition apiextensionsv1.CustomResourceDefinition
		require.NoError(t, c.Get(t.Context(), client.ObjectKey{Name: name}, &definition))
		require.Equal(t, scope, definition.Spec.Scope, name)
		require.Equal(t, []string{"muster"}, definition.Status.AcceptedNames.Categories, name)
	}

	applied := &v1alpha1.AppliedWork{
		ObjectMeta: metav1.ObjectMeta{Name: "inventory"},
		Spec: v1alpha1.AppliedWorkSpec{Work: v1alpha1.WorkReference{Hub: "hub", Namespace: "member-east", Name: "web",
			UID: "u"}, FieldOwner: "muster-work-u"},
		Status: v1alpha1.AppliedWorkStatus{Resources: []v1alpha1.AppliedResource{{
			ResourceIdentifier: v1alpha1.ResourceIdentifier{Version: "v1", Kind: "Namespace", Name: "shop"},
		}}},
	}
	want := applied.Status
	create(t, c, applied)
	if diff := cmp.Diff(want, applied.Status); diff != "" {
		t.Errorf("AppliedWork created with a status (-want +got)\n%s", diff)
	}
}
