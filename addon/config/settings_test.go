package config_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/addon/config"
	"github.com/muster-sdk/muster/addon/v1alpha1"
)

func specs(t require.TestingT, texts ...string) []v1alpha1.AddonConfigSpec {
	out := make([]v1alpha1.AddonConfigSpec, len(texts))
	for i, text := range texts {
		require.NoError(t, yaml.UnmarshalStrict([]byte(text), &out[i]))
	}
	return out
}

func TestValues(t *testing.T) {
	for _, tc := range []struct {
		reason  string
		configs []string
		want    config.Settings
	}{
		{"no configurations", nil, config.Settings{}},
		{"an empty configuration", []string{`{}`}, config.Settings{}},
		{"the last install namespace applies", []string{`{installNamespace: a}`, `{installNamespace: b}`, `{}`},
			config.Settings{InstallNamespace: "b"}},
		{
			"variables are merged by name, and an empty value replaces an earlier one",
			[]string{`{variables: [{name: A, value: a}, {name: B, value: b}]}`, `{variables: [{name: B}, {name: C, value: c}]}`},
			config.Settings{Variables: map[string]string{"A": "a", "B": "", "C": "c"}},
		},
		{
			"a later node placement replaces all fields of an earlier one",
			[]string{`{nodePlacement: {nodeSelector: {a: b}, tolerations: [{key: x}]}}`,
				`{nodePlacement: {nodeSelector: {c: d}}}`, `{}`},
			config.Settings{NodePlacement: &v1alpha1.NodePlacement{NodeSelector: map[string]string{"c": "d"}}},
		},
		{"an empty node placement replaces an earlier one",
			[]string{`{nodePlacement: {nodeSelector: {a: b}}}`, `{nodePlacement: {}}`},
			config.Settings{NodePlacement: &v1alpha1.NodePlacement{}}},
		{
			"a later proxy replaces all fields of an earlier one",
			[]string{`{proxy: {http: "http://a", noProxy: x}}`, `{proxy: {https: "https://b"}}`},
			config.Settings{Proxy: &v1alpha1.Proxy{HTTPS: "https://b"}},
		},
		{"an empty proxy replaces an earlier one", []string{`{proxy: {http: "http://a"}}`, `{proxy: {}}`},
			config.Settings{Proxy: &v1alpha1.Proxy{}}},
		{
			"registries of later configurations come first",
			[]string{`{registries: [{source: a, mirror: m1}, {source: b, mirror: m2}]}`,
				`{registries: [{source: c, mirror: m3}, {source: a, mirror: m4}]}`},
			config.Settings{Registries: []v1alpha1.Registry{{Source: "c", Mirror: "m3"}, {Source: "a", Mirror: "m4"},
				{Source: "a", Mirror: "m1"}, {Source: "b", Mirror: "m2"}}},
		},
		{
			"resources of later configurations come last",
			[]string{`{resources: [{workload: "*/a", resources: {}}]}`, `{resources: [{workload: "*/b", resources: {}}]}`},
			config.Settings{Resources: []v1alpha1.ContainerResources{{Workload: "*/a"}, {Workload: "*/b"}}},
		},
		{
			"different fields of several configurations are combined",
			[]string{`{proxy: {http: "http://a"}, installNamespace: a}`, `{variables: [{name: A, value: a}]}`},
			config.Settings{InstallNamespace: "a", Proxy: &v1alpha1.Proxy{HTTP: "http://a"},
				Variables: map[string]string{"A": "a"}},
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			require.Empty(t, cmp.Diff(tc.want, config.Values(specs(t, tc.configs...))))
		})
	}
}

func TestValues_CopiesItsArguments(t *testing.T) {
	const text = `{nodePlacement: {nodeSelector: {a: b}}, proxy: {http: "http://a"}, registries: [{mirror: m}], ` +
		`resources: [{resources: {limits: {cpu: 1}}}], variables: [{name: A, value: a}]}`
	want := config.Values(specs(t, text))
	given := specs(t, text)
	got := config.Values(given)
	given[0].NodePlacement.NodeSelector["a"] = "other"
	given[0].Proxy.HTTP = "other"
	given[0].Registries[0].Mirror = "other"
	delete(given[0].Resources[0].Resources.Limits, "cpu")
	require.Empty(t, cmp.Diff(want, got))
}

const web = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 2
  template:
    metadata: {labels: {app: web}}
    spec:
      nodeSelector: {kubernetes.io/os: linux}
      tolerations: [{key: gpu, operator: Exists, tolerationSeconds: 30}]
      initContainers: [{name: init, image: "quay.io/example/init:1"}]
      containers:
      - {name: web, image: "quay.io/example/web@sha256:0f", env: [{name: A, value: a}],
        resources: {requests: {cpu: 10m}}}
      - {name: side, image: "nginx:1.27"}
      volumes: [{name: model, image: {reference: "quay.io/example/model:3"}}, {name: tmp, emptyDir: {}}]
`

func TestApply(t *testing.T) {
	for _, tc := range []struct {
		reason, settings, object, want string
	}{
		{"variables and an install namespace do not change a manifest",
			`{variables: [{name: A, value: a}], installNamespace: x}`, web, web},
		{
			"empty settings accept an invalid manifest",
			`{nodePlacement: {}, proxy: {}}`,
			`{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: a}}`,
			`{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: a}}`,
		},
		{
			"the node selector overrides the manifest, and a toleration is added once",
			`{nodePlacement: {nodeSelector: {zone: a, kubernetes.io/os: windows}, tolerations: [{key: infra, ` +
				`effect: NoSchedule}, {key: gpu, operator: Exists, tolerationSeconds: 30}, {key: infra, effect: NoSchedule}]}}`,
			`{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {nodeSelector: {kubernetes.io/os: linux, disk: ssd}, ` +
				`tolerations: [{key: gpu, operator: Exists, tolerationSeconds: 30}]}}`,
			`{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {nodeSelector: {kubernetes.io/os: windows, disk: ssd, ` +
				`zone: a}, tolerations: [{key: gpu, operator: Exists, tolerationSeconds: 30}, {key: infra, effect: NoSchedule}]}}`,
		},
		{
			"images of containers, init containers and volumes come from the mirror",
			`{registries: [{source: quay.io/example, mirror: mirror.local/example}, {source: docker.io, mirror: hub.local}]}`,
			`{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {initContainers: [{image: "quay.io/example/init:1"}], ` +
				`containers: [{image: nginx}, {name: none}], volumes: [{image: {reference: "quay.io/example/model:3"}}, ` +
				`{emptyDir: {}}]}}`,
			`{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {initContainers: [{image: ` +
				`"mirror.local/example/init:1"}], containers: [{image: hub.local/library/nginx}, {name: none}], ` +
				`volumes: [{image: {reference: "mirror.local/example/model:3"}}, {emptyDir: {}}]}}`,
		},
		{
			"proxy variables in both spellings are appended in all containers",
			`{proxy: {http: "http://p:1", https: "http://p:2", noProxy: ".svc,10.0.0.0/8"}}`,
			`{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {initContainers: [{name: i}], containers: [{name: c, ` +
				`env: [{name: A, value: a}]}]}}`,
			`{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {
				initContainers: [{name: i, env: [{name: HTTP_PROXY, value: "http://p:1"}, {name: http_proxy, value: "http://p:1"},
				  {name: HTTPS_PROXY, value: "http://p:2"}, {name: https_proxy, value: "http://p:2"}, {name: NO_PROXY,
				  value: ".svc,10.0.0.0/8"}, {name: no_proxy, value: ".svc,10.0.0.0/8"}]}],
				containers: [{name: c, env: [{name: A, value: a}, {name: HTTP_PROXY, value: "http://p:1"}, {name: http_proxy,
				  value: "http://p:1"}, {name: HTTPS_PROXY, value: "http://p:2"}, {name: https_proxy, value: "http://p:2"},
				  {name: NO_PROXY, value: ".svc,10.0.0.0/8"}, {name: no_proxy, value: ".svc,10.0.0.0/8"}]}]}}`,
		},
		{
			"proxy variables of a container are kept, and unset proxy fields are not added",
			`{proxy: {http: "http://p", noProxy: x}}`,
			`{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: c, env: [{name: http_proxy, ` +
				`value: own}]}, {name: d, env: [{name: NO_PROXY, valueFrom: {fieldRef: {fieldPath: status.hostIP}}}]}]}}`,
			`{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: c, env: [{name: http_proxy, ` +
				`value: own}, {name: NO_PROXY, value: x}, {name: no_proxy, value: x}]}, {name: d, env: [{name: NO_PROXY, ` +
				`valueFrom: {fieldRef: {fieldPath: status.hostIP}}}, {name: HTTP_PROXY, value: "http://p"}, {name: http_proxy, ` +
				`value: "http://p"}]}]}}`,
		},
		{
			"the last matching entry replaces resources, with canonical quantities",
			`{resources: [{resources: {requests: {cpu: 1}}}, {workload: "deployment/*", container: web, ` +
				`resources: {limits: {memory: 1024Mi}, requests: {cpu: 0.5}}}, {workload: Deployment/other, resources: {}}, ` +
				`{container: side, resources: {}}, {workload: "StatefulSet/web", resources: {}}]}`,
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {template: {spec: {initContainers: [{name: ` +
				`init}], containers: [{name: web, resources: {requests: {memory: 1Gi}, claims: [{name: gpu}]}}, {name: side, ` +
				`resources: {limits: {cpu: 2}}}]}}}}`,
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {template: {spec: {initContainers: [{name: ` +
				`init, resources: {requests: {cpu: "1"}}}], containers: [{name: web, resources: {limits: {memory: 1Gi}, ` +
				`requests: {cpu: 500m}}}, {name: side}]}}}}`,
		},
		{
			"resources for a workload name of any kind",
			`{resources: [{workload: "*/web", resources: {limits: {cpu: 1}}}]}`,
			`{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: a}]}}`,
			`{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: a, ` +
				`resources: {limits: {cpu: "1"}}}]}}`,
		},
		{
			"a Deployment of another API group is unchanged",
			`{proxy: {http: p}, registries: [{mirror: m}], nodePlacement: {nodeSelector: {a: b}}, ` +
				`resources: [{resources: {limits: {cpu: 1}}}]}`,
			`{apiVersion: example.com/v1, kind: Deployment, metadata: {name: a}, spec: {template: {spec: {containers: ` +
				`[{image: a}]}}}}`,
			`{apiVersion: example.com/v1, kind: Deployment, metadata: {name: a}, spec: {template: {spec: {containers: ` +
				`[{image: a}]}}}}`,
		},
		{
			"a workload with a null template is unchanged",
			`{nodePlacement: {nodeSelector: {a: b}}}`,
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {template: null}}`,
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {template: null}}`,
		},
		{
			"null fields are treated as missing",
			`{nodePlacement: {nodeSelector: {a: b}, tolerations: [{key: x}]}, proxy: {http: p}}`,
			`{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {nodeSelector: null, tolerations: null, ` +
				`initContainers: null, containers: [{env: null, image: null}]}}`,
			`{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {nodeSelector: {a: b}, tolerations: [{key: x}], ` +
				`initContainers: null, containers: [{env: [{name: HTTP_PROXY, value: p}, {name: http_proxy, value: p}], ` +
				`image: null}]}}`,
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			settings := config.Values(specs(t, tc.settings))
			given := object(t, tc.object)
			before := given.DeepCopy()
			got, err := settings.Apply([]*unstructured.Unstructured{given})
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(object(t, tc.want), got[0]))
			require.Empty(t, cmp.Diff(before, given), "Apply changed its arguments")
			again, err := settings.Apply(got)
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(got, again), "the second Apply changed the result")
		})
	}
}

// TestApply_KindsWithPods checks each kind that has pods, and the path of its pod spec.
func TestApply_KindsWithPods(t *testing.T) {
	settings := config.Values(specs(t, `{nodePlacement: {nodeSelector: {found: "yes"}}}`))
	for _, tc := range []struct{ kind, path string }{
		{"apiVersion: v1, kind: Pod", "spec: {%s}"},
		{"apiVersion: v1, kind: ReplicationController", "spec: {template: {spec: {%s}}}"},
		{"apiVersion: apps/v1, kind: Deployment", "spec: {template: {spec: {%s}}}"},
		{"apiVersion: apps/v1beta2, kind: DaemonSet", "spec: {template: {spec: {%s}}}"},
		{"apiVersion: apps/v1, kind: StatefulSet", "spec: {template: {spec: {%s}}}"},
		{"apiVersion: apps/v1, kind: ReplicaSet", "spec: {template: {spec: {%s}}}"},
		{"apiVersion: batch/v1, kind: Job", "spec: {template: {spec: {%s}}}"},
		{"apiVersion: batch/v1, kind: CronJob", "spec: {jobTemplate: {spec: {template: {spec: {%s}}}}}"},
	} {
		text := func(inner string) *unstructured.Unstructured {
			return object(t, "{"+tc.kind+", metadata: {name: a}, "+fmt.Sprintf(tc.path, inner)+"}")
		}
		got, err := settings.Apply([]*unstructured.Unstructured{text("")})
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(text(`nodeSelector: {found: "yes"}`), got[0]), tc.kind)
	}
}

func TestApply_Errors(t *testing.T) {
	const all = `{nodePlacement: {nodeSelector: {a: b}, tolerations: [{key: x}]}, proxy: {http: p}, ` +
		`registries: [{mirror: m}]}`
	for _, tc := range []struct{ reason, settings, pod, want string }{
		{"a workload without a kind", `{resources: [{workload: web, resources: {}}]}`, ``,
			`invalid configuration: resources of workload "web": a workload must be <kind>/<name>, and either part can be *`},
		{"a workload without a name", `{resources: [{workload: Deployment/, resources: {}}]}`, ``,
			`resources of workload "Deployment/"`},
		{"a workload with a namespace", `{resources: [{workload: Deployment/shop/web, resources: {}}]}`, ``,
			`resources of workload "Deployment/shop/web"`},
		{"a source with a scheme", `{registries: [{source: "https://quay.io", mirror: m}]}`, ``,
			`invalid configuration: registry "https://quay.io": must have the form of an image name, ` +
				`without a scheme or spaces`},
		{"a mirror with a scheme", `{registries: [{mirror: "https://m"}]}`, ``, `registry "https://m"`},
		{"a mirror with a space", `{registries: [{mirror: "m "}]}`, ``, `registry "m "`},
		{"a mirror of a slash", `{registries: [{source: quay.io, mirror: /}]}`, ``, `registry "quay.io" has no mirror`},
		{"spec is not a map", all, `[]`, "configure Pod broken: spec must be a map"},
		{"nodeSelector is not a map", all, `{nodeSelector: [a]}`, "spec.nodeSelector must be a map"},
		{"tolerations is not a list", all, `{tolerations: {}}`, "spec.tolerations must be a list"},
		{"containers is not a list", all, `{containers: {}}`, "spec.containers must be a list"},
		{"a container is not a map", all, `{initContainers: [{}, a]}`, "spec.initContainers[1] must be a map"},
		{"an image is not a string", all, `{containers: [{image: 1}]}`, "spec.containers[0].image must be a string"},
		{"env is not a list", all, `{containers: [{env: {A: a}}]}`, "spec.containers[0].env must be a list"},
		{"a variable is not a map", all, `{containers: [{env: [A]}]}`, "spec.containers[0].env[0] must be a map"},
		{"the image of a volume is not a map", all, `{volumes: [{image: a}]}`, "spec.volumes[0].image must be a map"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			settings := config.Values(specs(t, tc.settings))
			pods := []*unstructured.Unstructured{object(t, web)}
			if tc.pod != "" {
				pods = append(pods, object(t, `{apiVersion: v1, kind: Pod, metadata: {name: broken}, spec: `+tc.pod+`}`))
			}
			got, err := settings.Apply(pods)
			require.ErrorContains(t, err, tc.want)
			require.Nil(t, got)
			if tc.pod == "" {
				require.ErrorIs(t, err, config.ErrInvalid)
			} else {
				require.NotErrorIs(t, err, config.ErrInvalid)
			}
		})
	}
}

// TestSettings_ConcurrentApply checks with the race detector that concurrent calls do not change the settings.
func TestSettings_ConcurrentApply(t *testing.T) {
	settings := config.Values(specs(t,
		`{nodePlacement: {nodeSelector: {a: b}, tolerations: [{key: x}]}, proxy: {http: p}, registries: [{mirror: m}], `+
			`resources: [{resources: {limits: {cpu: 1, memory: 2Gi}}}]}`))
	given := []*unstructured.Unstructured{object(t, web)}
	want, err := settings.Apply(given)
	require.NoError(t, err)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20 {
				got, err := settings.Apply(given)
				if err != nil || !cmp.Equal(want, got) {
					t.Error(err, cmp.Diff(want, got))
				}
			}
		})
	}
	all.Wait()
}

func TestApplyProperties(t *testing.T) {
	optional := func(t *rapid.T, of ...string) string {
		return rapid.SampledFrom(append(of, "")).Draw(t, of[0])
	}
	images := rapid.SampledFrom([]string{"nginx", "nginx:1", "example/web@sha256:0f", "quay.io/example/web:1",
		"quay.io/example2/web", "quay.io:5000/web", "mirror.local/example/web", "localhost/a", "index.docker.io/library/a"})
	// No mirror is the beginning of a source: see the package's documentation.
	sources := rapid.SampledFrom([]string{"", "quay.io", "quay.io/example", "docker.io", "docker.io/library", "example",
		"mirror.local/example/web", "nginx"})
	mirrors := rapid.SampledFrom([]string{"mirror.local/x", "mirror.local/example/web/y", "quay.io/example/mirrored",
		"a.local:5000", "docker.io/mirrors/z", "quay.io/example"})
	changed := 0
	rapid.Check(t, func(t *rapid.T) {
		text := "{"
		text += optional(t, `nodePlacement: {nodeSelector: {a: b}, tolerations: [{key: x, operator: Exists}]},`,
			`nodePlacement: {},`)
		text += optional(t, `proxy: {http: p},`, `proxy: {https: q, noProxy: r},`)
		text += optional(t, `resources: [{workload: Deployment/web, resources: {limits: {cpu: 1500m}}}],`,
			`resources: [{container: c1, resources: {}}, {container: c0, resources: {requests: {memory: 1Gi}}}],`)
		spec := specs(t, text+"}")
		for range rapid.IntRange(0, 3).Draw(t, "registries") {
			spec[0].Registries = append(spec[0].Registries,
				v1alpha1.Registry{Source: sources.Draw(t, "source"), Mirror: mirrors.Draw(t, "mirror")})
		}
		given := object(t, web)
		containers := []any{}
		for i := range rapid.IntRange(0, 3).Draw(t, "containers") {
			containers = append(containers, map[string]any{"name": fmt.Sprintf("c%d", i), "image": images.Draw(t, "image")})
		}
		require.NoError(t, unstructured.SetNestedSlice(given.Object, containers, "spec", "template", "spec", "containers"))
		other := object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`)
		objects := []*unstructured.Unstructured{other, given}
		before := given.DeepCopy()

		settings := config.Values(spec)
		once, err := settings.Apply(objects)
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(before, given), "Apply changed its arguments")
		require.Same(t, other, once[0])
		if !cmp.Equal(once[1], given) {
			changed++
		}
		again, err := settings.Apply(objects)
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(once, again), "want equal results for equal arguments")
		twice, err := settings.Apply(once)
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(once, twice), "the second Apply changed the result")
	})
	require.Greater(t, changed, 5, "too few generated settings change the manifest")
}
