package division_test

import (
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/muster-sdk/muster/placement/bundle"
	"github.com/muster-sdk/muster/placement/internal/division"
	"github.com/muster-sdk/muster/scheduler"
)

func workloads(t testing.TB, spec string, texts ...string) []division.Workload {
	t.Helper()
	objects := parse(t, texts...)
	return divided(t, spec).Workloads(objects,
		[]division.Cluster{{Cluster: &scheduler.Cluster{Name: "a"}, Objects: objects}})
}

// TestWorkloads_Requests compares the requirements with the results of SetDefaults_Pod and PodRequests.
func TestWorkloads_Requests(t *testing.T) {
	for _, test := range []struct{ reason, pod, want string }{
		{"requests of containers are added", `containers: [{resources: {requests: {cpu: 100m, memory: 1Gi}}}, ` +
			`{resources: {requests: {cpu: 200m, example.com/gpu: 1}}}]`, `{cpu: 300m, memory: 1Gi, example.com/gpu: 1}`},
		{"a container without requests", `containers: [{}]`, `{}`},
		{"a request of 0 precedes the limit",
			`containers: [{resources: {requests: {cpu: 0}, limits: {cpu: 1}}}]`, `{cpu: 0}`},
		{"a limit without a request is the request of the resource",
			`containers: [{resources: {requests: {cpu: 100m}, limits: {cpu: 1, memory: 1Gi}}}]`, `{cpu: 100m, memory: 1Gi}`},
		{"the maximum of the init containers and the containers", `{containers: [{resources: {requests: {cpu: 100m, ` +
			`memory: 2Gi}}}], initContainers: [{resources: {requests: {cpu: 500m}}}, {resources: {limits: {cpu: 400m, ` +
			`memory: 1Gi}}}]}`, `{cpu: 500m, memory: 2Gi}`},
		{"a resource that only an init container requests",
			`{containers: [{}], initContainers: [{resources: {requests: {example.com/gpu: 1}}}]}`, `{example.com/gpu: 1}`},
		{"a sidecar is added to the containers", `{containers: [{resources: {requests: {cpu: 100m}}}], ` +
			`initContainers: [{restartPolicy: Always, resources: {requests: {cpu: 50m}}}]}`, `{cpu: 150m}`},
		{"a sidecar is added to the init containers after it",
			`{containers: [{resources: {requests: {cpu: 100m}}}], initContainers: ` +
				`[{restartPolicy: Always, resources: {requests: {cpu: 50m}}}, {resources: {requests: {cpu: 200m}}}]}`,
			`{cpu: 250m}`},
		{"a sidecar is not added to the init containers before it",
			`{containers: [{resources: {requests: {cpu: 100m}}}], initContainers: [{resources: ` +
				`{requests: {cpu: 200m}}}, {restartPolicy: Always, resources: {requests: {cpu: 50m}}}]}`, `{cpu: 200m}`},
		{"each init container includes the sidecars before it",
			`{containers: [{resources: {requests: {cpu: 1}}}], initContainers: [
			{restartPolicy: Always, resources: {requests: {cpu: 1}}}, {resources: {requests: {cpu: 5}}}, {restartPolicy: Always,
			  resources: {requests: {cpu: 3}}}, {resources: {requests: {cpu: 1}}}]}`, `{cpu: 6}`},
		{"only an init container with restartPolicy Always is a sidecar",
			`{containers: [{restartPolicy: Always, resources: {requests: {cpu: 100m}}}], ` +
				`initContainers: [{restartPolicy: OnFailure, resources: {requests: {cpu: 50m}}}]}`, `{cpu: 100m}`},
		{"requests of the Pod replace those of the containers",
			`{containers: [{resources: {requests: {cpu: 100m, memory: 1Gi}}}], resources: {requests: {cpu: 1}}}`,
			`{cpu: 1, memory: 1Gi}`},
		{"requests of the Pod replace those of the init containers",
			`{containers: [{}], initContainers: [{resources: {requests: {cpu: 2}}}], resources: {requests: {cpu: 1}}}`,
			`{cpu: 1}`},
		{"requests of the Pod have CPU, memory and huge pages only",
			`{containers: [{resources: {requests: {example.com/gpu: 1}}}], resources: {requests: {example.com/gpu: 2, ` +
				`hugepages-2Mi: 4Mi}, limits: {example.com/fpga: 1}}}`, `{example.com/gpu: 1, hugepages-2Mi: 4Mi}`},
		{"a limit of the Pod is the request if no container has one",
			`{containers: [{resources: {requests: {cpu: 100m}}}], resources: {limits: {cpu: 2, memory: 1Gi}}}`,
			`{cpu: 100m, memory: 1Gi}`},
		{"a limit of the Pod for huge pages is always the request",
			`{containers: [{resources: {limits: {hugepages-2Mi: 2Mi}}}], resources: {limits: {hugepages-2Mi: 8Mi}}}`,
			`{hugepages-2Mi: 8Mi}`},
		{"a request of the Pod precedes its limit",
			`{containers: [{}], resources: {requests: {cpu: 1, hugepages-2Mi: 2Mi}, limits: {cpu: 2, hugepages-2Mi: 2Mi}}}`,
			`{cpu: 1, hugepages-2Mi: 2Mi}`},
		{"overhead is added to the requests of init containers",
			`{containers: [{}], initContainers: [{resources: {requests: {cpu: 1}}}], overhead: {cpu: 250m, memory: 120Mi}}`,
			`{cpu: 1250m, memory: 120Mi}`},
		{"overhead is added to the requests of the Pod",
			`{containers: [{resources: {requests: {memory: 1Gi}}}], resources: {requests: {cpu: 1}}, overhead: {cpu: 250m}}`,
			`{cpu: 1250m, memory: 1Gi}`},
		{"numbers that do not fit into 64 bits", `containers: [{resources: {requests: {example.com/a: 9E, cpu: 1n}}}, ` +
			`{resources: {requests: {example.com/a: 9E, cpu: 1n}}}, {resources: {requests: {example.com/a: 9E}}}]`,
			`{example.com/a: 27E, cpu: 2n}`},
	} {
		got := workloads(t, `{strategy: DynamicWeight}`, of("apps/v1", "Deployment", "web", `{template: {spec: `+"{"+
			trim(test.pod)+"}"+`}}`))
		require.Len(t, got, 1, test.reason)
		want := *read[corev1.ResourceList](t, test.want)
		want[corev1.ResourcePods] = *read[corev1.ResourceList](t, "{pods: 1}").Pods()
		if diff := gocmp.Diff(want, got[0].Requirements.Requests); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.reason, diff)
		}
	}
}

// trim removes the braces of a non-empty map.
func trim(text string) string {
	if text[0] == '{' {
		return text[1 : len(text)-1]
	}
	return text
}

func TestWorkloads(t *testing.T) {
	const pod = `{spec: {nodeSelector: {a: b}, containers: [{name: a, resources: {requests: {cpu: 1}}}]}}`
	onePod := corev1.ResourceList{corev1.ResourcePods: *read[corev1.ResourceList](t, "{pods: 1}").Pods()}
	for _, test := range []struct {
		reason, object string
		requests       corev1.ResourceList
		pod            bool
	}{
		{"a template of pods", of("apps/v1", "StatefulSet", "web", `{replicas: 3, template: `+pod+`}`),
			*read[corev1.ResourceList](t, `{cpu: 1, pods: 1}`), true},
		{"a workload kind of Kubernetes without a template",
			of("apps/v1", "StatefulSet", "web", `{replicas: 3}`), onePod, false},
		{"a workload kind of Kubernetes with an invalid template", of("apps/v1", "StatefulSet", "web",
			`{replicas: 3, template: {spec: {containers: [{resources: {requests: {cpu: lots}}}]}}}`), onePod, false},
		{"a template with the wrong case of the field spec",
			of("apps/v1", "StatefulSet", "web", `{replicas: 3, template: {Spec: {containers: [{}]}}}`),
			onePod, false},
		{"another kind with a template of Pods", of("example.com/v1", "Rollout", "web", `{replicas: 3, template: `+pod+`}`),
			*read[corev1.ResourceList](t, `{cpu: 1, pods: 1}`), true},
		{"another kind with a template of other objects",
			of("example.com/v1", "Rollout", "web", `{replicas: 3, template: {spec: {size: 5}}}`), nil, false},
		{"another kind without a template", of("example.com/v1", "Rollout", "web", `{replicas: 3}`), nil, false},
	} {
		got := workloads(t, `{strategy: Aggregated, objects: [{name: web}]}`, test.object, deployment("other", "5"))
		require.Len(t, got, 1, test.reason)
		require.Equal(t, "web", got[0].Key.Name, test.reason)
		require.Equal(t, int32(3), got[0].Replicas, test.reason)
		require.Equal(t, []string{"a"}, got[0].Clusters, test.reason)
		require.Equal(t, "shop", got[0].Requirements.Namespace, test.reason)
		require.Equal(t, test.pod, got[0].Requirements.Pod != nil, test.reason)
		if diff := gocmp.Diff(test.requests, got[0].Requirements.Requests); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.reason, diff)
		}
	}
}

func TestWorkloads_Omitted(t *testing.T) {
	require.Empty(t, workloads(t, `{strategy: Duplicated}`, deployment("web", "3")), "Duplicated divides no object")
	require.Empty(t, workloads(t, `{strategy: Aggregated}`, deployment("web", "-3"),
		of("apps/v1", "Deployment", "api", "text")), "objects with invalid replicas")
	require.Empty(t, workloads(t, `{strategy: Aggregated}`, deployment("web", "3"), deployment("web", "3")),
		"an object occurs twice")

	objects := parse(t, deployment("web", "3"), deployment("api", "3"))
	clusters := members(t, objects, `{rules: [{objects: [{name: web}], delete: true}, {clusters: [{names: [b]}], `+
		`objects: [{name: api}], delete: true}]}`)
	clusters[0], clusters[2] = clusters[2], clusters[0]
	got := divided(t, `{strategy: Aggregated}`).Workloads(objects, clusters)
	require.Len(t, got, 1, "no cluster gets the Deployment web")
	require.Equal(t, bundle.Key{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "api"}, got[0].Key)
	require.Equal(t, []string{"a", "c"}, got[0].Clusters, "sorted by name")
}

func TestCurrent(t *testing.T) {
	objects := parse(t, deployment("web", "3"), deployment("bad", "-1"), of("apps/v1", "StatefulSet", "db", "{}"),
		of("apps/v1", "DaemonSet", "log", "{replicas: 3}"), of("v1", "ConfigMap", "a", "text"))
	want := map[bundle.Key]int32{objects[0].Key(): 3, objects[2].Key(): 1}
	for _, strategy := range []string{"Duplicated", "Aggregated"} {
		require.Equal(t, want, divided(t, `{strategy: `+strategy+`}`).Current(objects))
	}
}
