package crds_test

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/work/v1alpha1"
)

// TestConflictsAreFieldPaths checks that the paths in messages of an API server are valid in ignoredFields of a Work,
// and select the same fields.
func TestConflictsAreFieldPaths(t *testing.T) {
	c := installed(t)
	service := func(text string) *unstructured.Unstructured {
		object := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal([]byte("{apiVersion: v1, kind: Service, "+text+"}"), &object.Object))
		return object
	}
	first := service(
		`metadata: {name: conflicts, namespace: default, annotations: {example.com/note: a}, labels: {tier: a}},
		spec: {type: NodePort, externalIPs: [192.0.2.1], ports: [{name: http, port: 80, targetPort: 8080},
		{name: dns, port: 53, protocol: UDP, targetPort: 1053}]}`)
	second := service(
		`metadata: {name: conflicts, namespace: default, annotations: {example.com/note: b}, labels: {tier: b}},
		spec: {externalIPs: [192.0.2.2], ports: [{name: http, port: 80, targetPort: 8081},
		{name: dns, port: 53, protocol: UDP, targetPort: 1054}]}`)
	t.Cleanup(func() { _ = c.Delete(context.Background(), first) })
	apply := func(object *unstructured.Unstructured, owner string) error {
		return c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object.DeepCopy()), client.FieldOwner(owner))
	}
	require.NoError(t, apply(first, "first"))
	err := apply(second, "second")
	require.True(t, apierrors.IsConflict(err), err)

	var status *apierrors.StatusError
	require.ErrorAs(t, err, &status)
	var got [][3]any
	for _, cause := range status.ErrStatus.Details.Causes {
		path, err := v1alpha1.ParseFieldPath(cause.Field)
		require.NoError(t, err)
		value, found := path.Get(second.Object)
		require.True(t, found, "%s in %v", path, second.Object)
		got = append(got, [3]any{cause.Field, path.String(), value})
	}
	slices.SortFunc(got, func(a, b [3]any) int { return slices.Compare([]string{a[0].(string)}, []string{b[0].(string)}) })
	want := [][3]any{
		{`.metadata.annotations.example.com/note`, `.metadata.annotations["example.com/note"]`, "b"},
		{`.metadata.labels.tier`, `.metadata.labels.tier`, "b"},
		{`.spec.externalIPs`, `.spec.externalIPs`, []any{"192.0.2.2"}},
		{`.spec.ports[port=53,protocol="UDP"].targetPort`, `.spec.ports[port=53,protocol="UDP"].targetPort`, 1054.0},
		{`.spec.ports[port=80,protocol="TCP"].targetPort`, `.spec.ports[port=80,protocol="TCP"].targetPort`, 8081.0},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
