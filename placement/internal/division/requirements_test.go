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

// TestRequests compares the requirements with the results of SetDefaults_Pod and PodRequests.
func TestRequests(t *testing.T) {
	for _, test := range []struct{ reason, pod, want string }{
		{"containers run beside each other", `containers: [{resources: {requests: {cpu: 100m, memory: 1Gi}}}, ` +
			`{resources: {requests: {cpu: 200m, example.com/gpu: 1}}}]`, `{cpu: 300m, memory: 1Gi, example.com/gpu: 1}`},
		{"a container that says nothing needs nothing", `containers: [{}]`, `{}`},
		{"a request of 0 is one", `containers: [{resources: {requests: {cpu: 0}, limits: {cpu: 1}}}]`, `{cpu: 0}`},
		{"a limit alone is the request, by resource",
			`containers: [{resources: {requests: {cpu: 100m}, limits: {cpu: 1, memory: 1Gi}}}]`, `{cpu: 100m, memory: 1Gi}`},
		{"init containers run before, one after the other", `{containers: [{resources: {requests: {cpu: 100m, ` +
			`memory: 2Gi}}}], initContainers: [{resources: {requests: {cpu: 500m}}}, {resources: {limits: {cpu: 400m, ` +
			`memory: 1Gi}}}]}`, `{cpu: 500m, memory: 2Gi}`},
		{"what only an init container needs counts as well",
			`{containers: [{}], initContainers: [{resources: {requests: {example.com/gpu: 1}}}]}`, `{example.com/gpu: 1}`},
		{"a sidecar runs beside the containers", `{containers: [{resources: {requests: {cpu: 100m}}}], ` +
			`initContainers: [{restartPolicy: Always, resources: {requests: {cpu: 50m}}}]}`, `{cpu: 150m}`},
		{"and beside the init containers after it", `{containers: [{resources: {requests: {cpu: 100m}}}], initContainers: ` +
			`[{restartPolicy: Always, resources: {requests: {cpu: 50m}}}, {resources: {requests: {cpu: 200m}}}]}`,
			`{cpu: 250m}`},
		{"not beside those before it", `{containers: [{resources: {requests: {cpu: 100m}}}], initContainers: [{resources: ` +
			`{requests: {cpu: 200m}}}, {restartPolicy: Always, resources: {requests: {cpu: 50m}}}]}`, `{cpu: 200m}`},
		{"each init container with the sidecars before it",
			`{containers: [{resources: {requests: {cpu: 1}}}], initContainers: [
			{restartPolicy: Always, resources: {requests: {cpu: 1}}}, {resources: {requests: {cpu: 5}}}, {restartPolicy: Always,
			  resources: {requests: {cpu: 3}}}, {resources: {requests: {cpu: 1}}}]}`, `{cpu: 6}`},
		{"only Always makes a sidecar", `{containers: [{restartPolicy: Always, resources: {requests: {cpu: 100m}}}], ` +
			`initContainers: [{restartPolicy: OnFailure, resources: {requests: {cpu: 50m}}}]}`, `{cpu: 100m}`},
		{"the pod's requests count instead",
			`{containers: [{resources: {requests: {cpu: 100m, memory: 1Gi}}}], resources: {requests: {cpu: 1}}}`,
			`{cpu: 1, memory: 1Gi}`},
		{"and instead of the init containers'",
			`{containers: [{}], initContainers: [{resources: {requests: {cpu: 2}}}], resources: {requests: {cpu: 1}}}`,
			`{cpu: 1}`},
		{"a pod has requests of cpu, memory and huge pages alone",
			`{containers: [{resources: {requests: {example.com/gpu: 1}}}], resources: {requests: {example.com/gpu: 2, ` +
				`hugepages-2Mi: 4Mi}, limits: {example.com/fpga: 1}}}`, `{example.com/gpu: 1, hugepages-2Mi: 4Mi}`},
		{"the pod's limit is the request where no container has one",
			`{containers: [{resources: {requests: {cpu: 100m}}}], resources: {limits: {cpu: 2, memory: 1Gi}}}`,
			`{cpu: 100m, memory: 1Gi}`},
		{"of huge pages always",
			`{containers: [{resources: {limits: {hugepages-2Mi: 2Mi}}}], resources: {limits: {hugepages-2Mi: 8Mi}}}`,
			`{hugepages-2Mi: 8Mi}`},
		{"the pod's request comes before its limit",
			`{containers: [{}], resources: {requests: {cpu: 1, hugepages-2Mi: 2Mi}, limits: {cpu: 2, hugepages-2Mi: 2Mi}}}`,
			`{cpu: 1, hugepages-2Mi: 2Mi}`},
		{"overhead comes on top, of init containers too",
			`{containers: [{}], initContainers: [{resources: {requests: {cpu: 1}}}], overhead: {cpu: 250m, memory: 120Mi}}`,
			`{cpu: 1250m, memory: 120Mi}`},
		{"and of the pod's requests",
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
		{"no template: it is a pod nevertheless", of("apps/v1", "StatefulSet", "web", `{replicas: 3}`), onePod, false},
		{"none that can be read", of("apps/v1", "StatefulSet", "web",
			`{replicas: 3, template: {spec: {containers: [{resources: {requests: {cpu: lots}}}]}}}`), onePod, false},
		{"none with that case", of("apps/v1", "StatefulSet", "web", `{replicas: 3, template: {Spec: {containers: [{}]}}}`),
			onePod, false},
		{"another kind's template of pods", of("example.com/v1", "Rollout", "web", `{replicas: 3, template: `+pod+`}`),
			*read[corev1.ResourceList](t, `{cpu: 1, pods: 1}`), true},
		{"another kind's template of something else",
			of("example.com/v1", "Rollout", "web", `{replicas: 3, template: {spec: {size: 5}}}`), nil, false},
		{"a replica of another kind may be anything", of("example.com/v1", "Rollout", "web", `{replicas: 3}`), nil, false},
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

func TestWorkloadsLeaveOut(t *testing.T) {
	require.Empty(t, workloads(t, `{strategy: Duplicated}`, deployment("web", "3")), "nothing is divided")
	require.Empty(t, workloads(t, `{strategy: Aggregated}`, deployment("web", "-3"),
		of("apps/v1", "Deployment", "api", "text")), "nobody can tell where they fit")
	require.Empty(t, workloads(t, `{strategy: Aggregated}`, deployment("web", "3"), deployment("web", "3")),
		"nobody knows which is meant")

	objects := parse(t, deployment("web", "3"), deployment("api", "3"))
	clusters := members(t, objects, `{rules: [{objects: [{name: web}], delete: true}, {clusters: [{names: [b]}], `+
		`objects: [{name: api}], delete: true}]}`)
	clusters[0], clusters[2] = clusters[2], clusters[0]
	got := divided(t, `{strategy: Aggregated}`).Workloads(objects, clusters)
	require.Len(t, got, 1, "no cluster gets the other")
	require.Equal(t, bundle.Key{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "api"}, got[0].Key)
	require.Equal(t, []string{"a", "c"}, got[0].Clusters, "by name")
}

func TestCurrent(t *testing.T) {
	objects := parse(t, deployment("web", "3"), deployment("bad", "-1"), of("apps/v1", "StatefulSet", "db", "{}"),
		of("apps/v1", "DaemonSet", "log", "{replicas: 3}"), of("v1", "ConfigMap", "a", "text"))
	want := map[bundle.Key]int32{objects[0].Key(): 3, objects[2].Key(): 1}
	for _, strategy := range []string{"Duplicated", "Aggregated"} {
		require.Equal(t, want, divided(t, `{strategy: `+strategy+`}`).Current(objects))
	}
}
