package apiserver_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/mustertest/apiserver"
)

func TestApply_ListMapsConflictsAndForce(t *testing.T) {
	s := start(t, apiserver.Options{})
	widgets := installWidgetDefinition(t, s)
	ctx := t.Context()
	apply := func(manager, spec string, force bool) error {
		_, err := widgets.Patch(ctx, "w", types.ApplyPatchType,
			[]byte(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"},"spec":`+spec+`}`),
			metav1.PatchOptions{FieldManager: manager, Force: &force})
		return err
	}
	require.NoError(t, apply("one", `{"color":"red","parts":[{"id":"1","n":1},{"id":"2"}]}`, false))
	require.NoError(t, apply("two", `{"parts":[{"id":"3","n":3}]}`, false))
	err := apply("two", `{"color":"blue","parts":[{"id":"3"}]}`, false)
	require.True(t, apierrors.IsConflict(err), "%v", err)
	require.ErrorContains(t, err, `Apply failed with 1 conflict: conflict with "one": .spec.color`)
	require.NoError(t, apply("two", `{"color":"blue","parts":[{"id":"3"}]}`, true))
	got, err := widgets.Get(ctx, "w", metav1.GetOptions{})
	require.NoError(t, err)
	spec, _ := got.Object["spec"].(map[string]any)
	require.Equal(t, "blue", spec["color"])
	require.Len(t, spec["parts"], 3)
	require.NoError(t, apply("one", `{"parts":[{"id":"1"}]}`, false))
	got, err = widgets.Get(ctx, "w", metav1.GetOptions{})
	require.NoError(t, err)
	spec, _ = got.Object["spec"].(map[string]any)
	require.Len(t, spec["parts"], 2)
}

// installWidgetDefinition creates the CustomResourceDefinition of widgets and returns a client for widgets.
func installWidgetDefinition(t testing.TB, s *apiserver.Server) dynamic.ResourceInterface {
	t.Helper()
	c := dynamic.NewForConfigOrDie(s.Admin())
	body, err := yaml.YAMLToJSON([]byte(widgetCRD))
	require.NoError(t, err)
	_, err = c.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
		Resource: "customresourcedefinitions"}).
		Patch(t.Context(), "widgets.example.com", types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: "test"})
	require.NoError(t, err)
	s.Settle()
	return c.Resource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}).
		Namespace("default")
}
