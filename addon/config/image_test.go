package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/muster-sdk/muster/addon/config"
	"github.com/muster-sdk/muster/addon/v1alpha1"
)

func TestRegistries(t *testing.T) {
	type registries = []v1alpha1.Registry
	example := registries{{Source: "quay.io/example", Mirror: "mirror.local/e"}}
	quay := registries{{Source: "quay.io", Mirror: "mirror.local"}}
	hub := registries{{Source: "docker.io", Mirror: "mirror.local/hub"}}
	all := registries{{Mirror: "mirror.local/all"}}
	for _, tc := range []struct {
		reason      string
		registries  registries
		image, want string
	}{
		{"no registry, no change", nil, "quay.io/example/web:1", "quay.io/example/web:1"},
		{"below the source", example, "quay.io/example/web:1", "mirror.local/e/web:1"},
		{"without a tag", example, "quay.io/example/web", "mirror.local/e/web"},
		{"a digest", example, "quay.io/example/web@sha256:0f", "mirror.local/e/web@sha256:0f"},
		{"a tag and a digest", example, "quay.io/example/web:1@sha256:0f", "mirror.local/e/web:1@sha256:0f"},
		{"deeper", example, "quay.io/example/a/b/web:1", "mirror.local/e/a/b/web:1"},
		{"the source itself is an image", example, "quay.io/example:1", "mirror.local/e:1"},
		{"with its digest", example, "quay.io/example@sha256:0f", "mirror.local/e@sha256:0f"},
		{"and nothing more", example, "quay.io/example", "mirror.local/e"},
		{"names that begin alike are others", example, "quay.io/example2/web", "quay.io/example2/web"},
		{"so are hosts", quay, "quay.io.evil/web", "quay.io.evil/web"},
		{"a port is no tag", quay, "quay.io:5000/web:1", "quay.io:5000/web:1"},
		{"a port is part of a source", registries{{Source: "quay.io:5000", Mirror: "m"}}, "quay.io:5000/web:1", "m/web:1"},
		{"a source in the midst is none", example, "mirror2.local/quay.io/example/web", "mirror2.local/quay.io/example/web"},
		{"a source may be one image with its tag", registries{{Source: "quay.io/web:1", Mirror: "m/web:2"}},
			"quay.io/web:1", "m/web:2"},
		{"and not another tag", registries{{Source: "quay.io/web:1", Mirror: "m/web:2"}}, "quay.io/web:10", "quay.io/web:10"},
		{"a '/' at the end says nothing", registries{{Source: "quay.io/example/", Mirror: "m/"}}, "quay.io/example/web",
			"m/web"},
		{"the first that matches counts", append(append(registries{}, example...), quay...), "quay.io/example/web",
			"mirror.local/e/web"},
		{"and not the longest", append(append(registries{}, quay...), example...), "quay.io/example/web",
			"mirror.local/example/web"},

		{"a short name is an image of Docker Hub", hub, "nginx:1.27", "mirror.local/hub/library/nginx:1.27"},
		{"one with a user as well", hub, "bitnami/redis", "mirror.local/hub/bitnami/redis"},
		{"and the whole name", hub, "docker.io/bitnami/redis", "mirror.local/hub/bitnami/redis"},
		{"whose library may be left out", registries{{Source: "docker.io/library", Mirror: "m"}}, "nginx", "m/nginx"},
		{"its other name", hub, "index.docker.io/bitnami/redis", "mirror.local/hub/bitnami/redis"},
		{"a host with a dot is not Docker Hub", hub, "quay.io/web", "quay.io/web"},
		{"nor is one with a port", hub, "registry:5000/web", "registry:5000/web"},
		{"nor is localhost", hub, "localhost/web", "localhost/web"},
		{"a source may be short as well", registries{{Source: "bitnami", Mirror: "m/b"}}, "bitnami/redis:7", "m/b/redis:7"},
		{"one image", registries{{Source: "nginx", Mirror: "m/nginx"}}, "nginx:1", "m/nginx:1"},
		{"is not another", registries{{Source: "nginx", Mirror: "m/nginx"}}, "nginx-extra:1", "nginx-extra:1"},

		{"no source is that of all, whose paths stay", all, "quay.io/example/web:1", "mirror.local/all/example/web:1"},
		{"short names too", all, "nginx@sha256:0f", "mirror.local/all/library/nginx@sha256:0f"},
		{"and ports", all, "registry:5000/web", "mirror.local/all/web"},
		{"but for what comes before", append(append(registries{}, example...), all...), "quay.io/example/web",
			"mirror.local/e/web"},

		{"what comes from a mirror stays", all, "mirror.local/all/web", "mirror.local/all/web"},
		{"from any", append(append(registries{}, all...), example...), "mirror.local/e/web", "mirror.local/e/web"},
		{"a mirror within the source", registries{{Source: "quay.io", Mirror: "quay.io/mirrored"}}, "quay.io/mirrored/web",
			"quay.io/mirrored/web"},
		{"names that begin like a mirror are others", all, "mirror.local/all2/web", "mirror.local/all/all2/web"},
		{"to take a registry away from others, name it",
			append(registries{{Source: "quay.io/example", Mirror: "quay.io/example"}}, quay...), "quay.io/example/web",
			"quay.io/example/web"},
		{"the others stay", append(registries{{Source: "quay.io/example", Mirror: "quay.io/example"}}, quay...),
			"quay.io/web", "mirror.local/web"},
		{"a source that says more than a mirror counts",
			registries{{Source: "quay.io", Mirror: "m.local"}, {Source: "m.local/old", Mirror: "m.local/new"}},
			"m.local/old/web", "m.local/new/web"},
		{"a path can be cut", registries{{Source: "quay.io/example", Mirror: "quay.io"}}, "quay.io/example/web",
			"quay.io/web"},
		{"no image is none", all, "", ""},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			settings := config.Settings{Registries: tc.registries}
			pod := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod",
				"spec": map[string]any{"containers": []any{map[string]any{"image": tc.image}}}}}
			got, err := settings.Apply([]*unstructured.Unstructured{pod})
			require.NoError(t, err)
			containers, _, _ := unstructured.NestedSlice(got[0].Object, "spec", "containers")
			require.Equal(t, tc.want, containers[0].(map[string]any)["image"])
		})
	}
}
