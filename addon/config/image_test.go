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
		{"no registries", nil, "quay.io/example/web:1", "quay.io/example/web:1"},
		{"an image below the source", example, "quay.io/example/web:1", "mirror.local/e/web:1"},
		{"an image without a tag", example, "quay.io/example/web", "mirror.local/e/web"},
		{"an image with a digest", example, "quay.io/example/web@sha256:0f", "mirror.local/e/web@sha256:0f"},
		{"an image with a tag and a digest", example, "quay.io/example/web:1@sha256:0f", "mirror.local/e/web:1@sha256:0f"},
		{"an image several levels below the source", example, "quay.io/example/a/b/web:1", "mirror.local/e/a/b/web:1"},
		{"an image that is equal to the source, with a tag", example, "quay.io/example:1", "mirror.local/e:1"},
		{"an image that is equal to the source, with a digest",
			example, "quay.io/example@sha256:0f", "mirror.local/e@sha256:0f"},
		{"an image that is equal to the source", example, "quay.io/example", "mirror.local/e"},
		{"a source is not a prefix of a path element", example, "quay.io/example2/web", "quay.io/example2/web"},
		{"a source is not a prefix of a host", quay, "quay.io.evil/web", "quay.io.evil/web"},
		{"a port is not a tag", quay, "quay.io:5000/web:1", "quay.io:5000/web:1"},
		{"a port is part of a source", registries{{Source: "quay.io:5000", Mirror: "m"}}, "quay.io:5000/web:1", "m/web:1"},
		{"a source in the middle of an image does not match",
			example, "mirror2.local/quay.io/example/web", "mirror2.local/quay.io/example/web"},
		{"a source with a tag", registries{{Source: "quay.io/web:1", Mirror: "m/web:2"}},
			"quay.io/web:1", "m/web:2"},
		{"a source with a tag does not match a longer tag",
			registries{{Source: "quay.io/web:1", Mirror: "m/web:2"}}, "quay.io/web:10", "quay.io/web:10"},
		{"a trailing slash of the source is ignored",
			registries{{Source: "quay.io/example/", Mirror: "m/"}}, "quay.io/example/web",
			"m/web"},
		{"the first matching registry applies", append(append(registries{}, example...), quay...), "quay.io/example/web",
			"mirror.local/e/web"},
		{"the first matching registry applies, even if a later source is longer",
			append(append(registries{}, quay...), example...), "quay.io/example/web",
			"mirror.local/example/web"},

		{"a short name is an image of Docker Hub", hub, "nginx:1.27", "mirror.local/hub/library/nginx:1.27"},
		{"a name with a user is an image of Docker Hub", hub, "bitnami/redis", "mirror.local/hub/bitnami/redis"},
		{"the full name of an image of Docker Hub", hub, "docker.io/bitnami/redis", "mirror.local/hub/bitnami/redis"},
		{"a source with the path library matches a short name",
			registries{{Source: "docker.io/library", Mirror: "m"}}, "nginx", "m/nginx"},
		{"index.docker.io is Docker Hub", hub, "index.docker.io/bitnami/redis", "mirror.local/hub/bitnami/redis"},
		{"a host with a dot is not Docker Hub", hub, "quay.io/web", "quay.io/web"},
		{"a host with a port is not Docker Hub", hub, "registry:5000/web", "registry:5000/web"},
		{"localhost is not Docker Hub", hub, "localhost/web", "localhost/web"},
		{"a source without a host is on Docker Hub",
			registries{{Source: "bitnami", Mirror: "m/b"}}, "bitnami/redis:7", "m/b/redis:7"},
		{"a short image name as the source", registries{{Source: "nginx", Mirror: "m/nginx"}}, "nginx:1", "m/nginx:1"},
		{"a short image name as the source does not match a longer name",
			registries{{Source: "nginx", Mirror: "m/nginx"}}, "nginx-extra:1", "nginx-extra:1"},

		{"an empty source matches all registries and keeps paths",
			all, "quay.io/example/web:1", "mirror.local/all/example/web:1"},
		{"an empty source matches short names", all, "nginx@sha256:0f", "mirror.local/all/library/nginx@sha256:0f"},
		{"an empty source matches hosts with a port", all, "registry:5000/web", "mirror.local/all/web"},
		{"an earlier registry precedes an empty source",
			append(append(registries{}, example...), all...), "quay.io/example/web",
			"mirror.local/e/web"},

		{"an image of the mirror is unchanged", all, "mirror.local/all/web", "mirror.local/all/web"},
		{"an image of a later mirror is unchanged",
			append(append(registries{}, all...), example...), "mirror.local/e/web", "mirror.local/e/web"},
		{"a mirror within the source", registries{{Source: "quay.io", Mirror: "quay.io/mirrored"}}, "quay.io/mirrored/web",
			"quay.io/mirrored/web"},
		{"a mirror is not a prefix of a path element", all, "mirror.local/all2/web", "mirror.local/all/all2/web"},
		{"a source that is its own mirror is exempt from later registries",
			append(registries{{Source: "quay.io/example", Mirror: "quay.io/example"}}, quay...), "quay.io/example/web",
			"quay.io/example/web"},
		{"a source that is its own mirror does not exempt other images",
			append(registries{{Source: "quay.io/example", Mirror: "quay.io/example"}}, quay...),
			"quay.io/web", "mirror.local/web"},
		{"a source below another mirror matches images of that mirror",
			registries{{Source: "quay.io", Mirror: "m.local"}, {Source: "m.local/old", Mirror: "m.local/new"}},
			"m.local/old/web", "m.local/new/web"},
		{"a mirror that is shorter than its source",
			registries{{Source: "quay.io/example", Mirror: "quay.io"}}, "quay.io/example/web",
			"quay.io/web"},
		{"an empty image is unchanged", all, "", ""},
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
