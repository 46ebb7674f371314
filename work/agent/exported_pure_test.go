package agent

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/muster-sdk/muster/work/apply"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// TestExported_WithoutClusterFields checks which fields are removed from an exported manifest. A removed field that the
// cluster has allocated is ignored, so an object that was applied with the field keeps it.
func TestExported_WithoutClusterFields(t *testing.T) {
	object := func(kind string, spec map[string]any) apply.Object {
		return apply.Object{Manifest: &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": "a", "namespace": "b"}, "spec": spec,
		}}}
	}
	service := object("Service", map[string]any{
		"clusterIP": "10.0.0.1", "clusterIPs": []any{"10.0.0.1"}, "type": "ClusterIP",
	})
	cleaned, warning := withoutCluster(service)
	require.Contains(t, warning, ".spec.clusterIP, .spec.clusterIPs")
	require.Equal(t, map[string]any{"type": "ClusterIP"}, cleaned.Manifest.Object["spec"])
	ignored := []v1alpha1.FieldPath{pathTo("spec", "clusterIP"), pathTo("spec", "clusterIPs")}
	require.Equal(t, ignored, cleaned.IgnoredFields)
	require.Len(t, service.Manifest.Object["spec"], 3, "the manifest of the Work is not changed")
	require.Empty(t, service.IgnoredFields)

	claim, warning := withoutCluster(object("PersistentVolumeClaim", map[string]any{"volumeName": "v"}))
	require.Contains(t, warning, ".spec.volumeName")
	require.Equal(t, []v1alpha1.FieldPath{pathTo("spec", "volumeName")}, claim.IgnoredFields)

	headless := object("Service", map[string]any{"clusterIP": "None"})
	kept, warning := withoutCluster(headless)
	require.Empty(t, warning)
	require.Equal(t, headless, kept)

	web := object("Service", map[string]any{"type": "ClusterIP"})
	web.Manifest.SetAnnotations(map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "x"})
	kept, warning = withoutCluster(web)
	require.Empty(t, warning, "the annotation of kubectl apply is removed without a warning")
	require.Empty(t, kept.Manifest.GetAnnotations())

	root := object("ConfigMap", nil)
	root.Manifest.SetName("kube-root-ca.crt")
	kept, warning = withoutCluster(root)
	require.Empty(t, warning, "the engine reports the error of this ConfigMap")
	require.Equal(t, root, kept)
}
