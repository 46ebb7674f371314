package deploy_test

import (
	"encoding/json"
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/muster-sdk/muster/deploy"
	"github.com/muster-sdk/muster/membership"
)

// TestCustomize_Namespace covers all manifests: no object refers to the former namespace, and the namespace of join
// tokens stays.
func TestCustomize_Namespace(t *testing.T) {
	hub, err := deploy.Hub(deploy.HubComponents()...)
	require.NoError(t, err)
	singleton, err := deploy.Objects("singleton")
	require.NoError(t, err)
	hosting, err := deploy.Objects("hosted/hosting")
	require.NoError(t, err)
	for name, objects := range map[string][]*unstructured.Unstructured{"hub": hub, "singleton": singleton,
		"hosting": hosting} {
		t.Run(name, func(t *testing.T) {
			before, err := json.Marshal(objects)
			require.NoError(t, err)
			require.Contains(t, string(before), `"muster-system"`, "the manifests contain the former namespace")
			program := deploy.Customization{Image: "registry.example.com/program:v2", Namespace: "fleet"}
			got, err := deploy.Customize(objects, program)
			require.NoError(t, err)
			require.Len(t, got, len(objects))
			after, err := json.Marshal(got)
			require.NoError(t, err)
			require.NotContains(t, string(after), `"muster-system"`)
			require.Equal(t, strings.Count(string(before), `"muster-system"`), strings.Count(string(after), `"fleet"`))
			const other = "muster-registration"
			require.Equal(t, strings.Count(string(before), other), strings.Count(string(after), other))
			require.Contains(t, string(after), `"image":"registry.example.com/program:v2"`)
			same, err := json.Marshal(objects)
			require.NoError(t, err)
			require.Equal(t, string(before), string(same), "the objects of the caller do not change")
		})
	}
}

func TestHubComponents_AreTheFolders(t *testing.T) {
	entries, err := fs.ReadDir(deploy.Files, "hub/components")
	require.NoError(t, err)
	var folders []string
	for _, entry := range entries {
		folders = append(folders, entry.Name())
	}
	require.Equal(t, folders, deploy.HubComponents())
}

func TestCustomize_Arguments(t *testing.T) {
	objects, err := deploy.Objects("singleton")
	require.NoError(t, err)
	objects, err = deploy.Customize(objects, deploy.Customization{Image: "agent", Arguments: []string{"--name=east"}})
	require.NoError(t, err)
	for _, object := range objects {
		if object.GetKind() == "Deployment" {
			containers, _, err := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
			require.NoError(t, err)
			want := []any{"--works", "--health-probe-bind-address=:8081", "--name=east"}
			require.Equal(t, want, containers[0].(map[string]any)["args"])
			require.Equal(t, "muster-system", object.GetNamespace())
		}
	}
}

func TestCustomize_Invalid(t *testing.T) {
	for name, test := range map[string]struct {
		customization deploy.Customization
		field         string
	}{
		"no image":            {deploy.Customization{}, "Image"},
		"image with a space":  {deploy.Customization{Image: "a b"}, "Image"},
		"namespace in a path": {deploy.Customization{Image: "a", Namespace: "../x"}, "Namespace"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := deploy.Customize(nil, test.customization)
			var invalid *membership.InvalidError
			require.ErrorAs(t, err, &invalid)
			require.Equal(t, test.field, invalid.Field)
		})
	}
	two := &unstructured.Unstructured{Object: map[string]any{"kind": "Deployment",
		"metadata": map[string]any{"name": "two"}}}
	containers := []any{map[string]any{}, map[string]any{}}
	require.NoError(t, unstructured.SetNestedSlice(two.Object, containers, "spec", "template", "spec", "containers"))
	_, err := deploy.Customize([]*unstructured.Unstructured{two}, deploy.Customization{Image: "a"})
	require.EqualError(t, err, "set the image of Deployment two: want one container, got 2")
}
