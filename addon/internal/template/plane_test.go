package template_test

import (
	"os"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/muster-sdk/muster/addon/crds"
	"github.com/muster-sdk/muster/addon/internal/template"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/mustertest/localplane"
)

var plane = localplane.Shared{Options: localplane.Options{Name: "template"}}

func TestMain(m *testing.M) {
	ctrllog.SetLogger(logr.Discard())
	os.Exit(localplane.Run(m, &plane))
}

// TestRender_AcceptedByAPIServer checks that an API server accepts the objects of a template that it has stored, each
// in the expected namespace.
func TestRender_AcceptedByAPIServer(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	c, err := client.New(plane.ForTest(t).Config(), client.Options{Scheme: scheme})
	require.NoError(t, err)
	require.NoError(t, crds.Install(t.Context(), c))

	stored := &v1alpha1.AddonTemplate{Spec: *spec(t, logs)}
	stored.Name = "logs"
	require.NoError(t, c.Create(t.Context(), stored))
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(stored), stored))
	out, err := template.Render(&stored.Spec,
		input(t, `{variables: [{name: REGION, value: eu}], nodePlacement: {nodeSelector: {pool: infra}, `+
			`tolerations: [{key: infra, effect: NoSchedule}]}, proxy: {http: "http://proxy:3128"}}`))
	require.NoError(t, err)
	for _, o := range append(out.Objects, out.Hooks...) {
		created := o.DeepCopy()
		require.NoError(t, c.Create(t.Context(), created), "%s %s", o.GetKind(), o.GetName())
		require.Equal(t, o.GetNamespace(), created.GetNamespace())
	}
	deployment := &unstructured.Unstructured{}
	deployment.SetAPIVersion("apps/v1")
	deployment.SetKind("Deployment")
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Namespace: "logging", Name: "collector-eu"}, deployment))
	selector, _, _ := unstructured.NestedStringMap(deployment.Object, "spec", "template", "spec", "nodeSelector")
	require.Equal(t, map[string]string{"pool": "infra"}, selector)
}
