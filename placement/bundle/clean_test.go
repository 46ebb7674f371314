package bundle

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// cleaned contains objects with the fields that Clean removes and those that it must keep. TestClean_EveryRowIsTested
// checks that each name of each row occurs here.
var cleaned = []struct{ reason, object, want string }{
	{
		"metadata that the API server writes is removed",
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop, uid: 1, resourceVersion: "2", generation: 3,
		  selfLink: /api,
		  creationTimestamp: "2026-01-01T00:00:00Z", deletionTimestamp: "2026-01-01T00:00:00Z",
		    deletionGracePeriodSeconds: 30, generateName: a-,
		  managedFields: [{manager: kubectl}], ownerReferences: [{kind: Deployment, name: web, uid: 4}],
		    finalizers: [example.com/hub],
		  labels: {app: web, work.muster.dev/applied: "true"},
		  annotations: {note: kept, kubectl.kubernetes.io/last-applied-configuration: "{}"}}, data: {uid: kept, status: kept},
		    status: {phase: Active}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop, labels: {app: web}, ` +
			`annotations: {note: kept}}, data: {uid: kept, status: kept}}`,
	},
	{
		"maps that become empty are removed, and maps that were empty stay",
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {}, ` +
			`annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}"}}, data: {}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {}}, data: {}}`,
	},
	{
		"a Secret with a controlling owner is distributed, without the owner",
		`{apiVersion: v1, kind: Secret, type: kubernetes.io/tls, metadata: {name: a, ownerReferences: [{kind: Certificate, ` +
			`name: a, controller: true}]}, data: {tls.key: AA==}}`,
		`{apiVersion: v1, kind: Secret, type: kubernetes.io/tls, metadata: {name: a}, data: {tls.key: AA==}}`,
	},
	{
		"the finalizer kubernetes of a Namespace is removed",
		`{apiVersion: v1, kind: Namespace, metadata: {name: shop}, spec: {finalizers: [kubernetes]}}`,
		`{apiVersion: v1, kind: Namespace, metadata: {name: shop}}`,
	},
	{
		"the addresses and node ports of a Service are removed",
		`{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: LoadBalancer, clusterIP: 10.0.0.1,
		  clusterIPs: [10.0.0.1], healthCheckNodePort: 30001,
		  ports: [{port: 80, nodePort: 30080}, {port: 443, nodePort: 30443}], selector: {app: web}}}`,
		`{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: LoadBalancer, ports: [{port: 80}, {port: 443}], ` +
			`selector: {app: web}}}`,
	},
	{
		"a headless Service stays headless",
		`{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {clusterIP: None, clusterIPs: [None]}}`,
		`{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {clusterIP: None, clusterIPs: [None]}}`,
	},
	{
		"a Service of another API group is not changed",
		`{apiVersion: serving.knative.dev/v1, kind: Service, metadata: {name: a}, spec: {clusterIP: 10.0.0.1}}`,
		`{apiVersion: serving.knative.dev/v1, kind: Service, metadata: {name: a}, spec: {clusterIP: 10.0.0.1}}`,
	},
	{
		"the generated selector and labels of a Job are removed",
		`{apiVersion: batch/v1, kind: Job, metadata: {name: a, labels: {controller-uid: 1, job-name: a,
		  batch.kubernetes.io/controller-uid: 1, batch.kubernetes.io/job-name: a, app: web}},
		  spec: {completions: 1, selector: {matchLabels: {controller-uid: 1, job-name: a,
		    batch.kubernetes.io/controller-uid: 1, batch.kubernetes.io/job-name: a}},
		  template: {metadata: {labels: {controller-uid: 1, job-name: a, batch.kubernetes.io/controller-uid: 1,
		    batch.kubernetes.io/job-name: a, app: web}}}}}`,
		`{apiVersion: batch/v1, kind: Job, metadata: {name: a, labels: {app: web}}, spec: {completions: 1, ` +
			`template: {metadata: {labels: {app: web}}}}}`,
	},
	{
		"a manual selector of a Job stays",
		`{apiVersion: batch/v1, kind: Job, metadata: {name: a, labels: {job-name: b}}, spec: {manualSelector: true, ` +
			`selector: {matchLabels: {job-name: b}}, template: {metadata: {labels: {job-name: b}}}}}`,
		`{apiVersion: batch/v1, kind: Job, metadata: {name: a, labels: {job-name: b}}, spec: {manualSelector: true, ` +
			`selector: {matchLabels: {job-name: b}}, template: {metadata: {labels: {job-name: b}}}}}`,
	},
	{
		"the binding of a PersistentVolumeClaim is removed",
		`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a,
		  annotations: {pv.kubernetes.io/bind-completed: "yes", pv.kubernetes.io/bound-by-controller: "yes",
		  volume.kubernetes.io/selected-node: hub-1, volume.kubernetes.io/storage-provisioner: p,
		    volume.beta.kubernetes.io/storage-provisioner: p}},
		  spec: {volumeName: pvc-1, storageClassName: fast}}`,
		`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, spec: {storageClassName: fast}}`,
	},
	{
		"a volume name that a user chose stays",
		`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a, annotations: {pv.kubernetes.io/bind-completed: ` +
			`"yes"}}, spec: {volumeName: nfs}}`,
		`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, spec: {volumeName: nfs}}`,
	},
	{
		"the claimRef of a PersistentVolume loses its UID and resourceVersion",
		`{apiVersion: v1, kind: PersistentVolume, metadata: {name: a}, spec: {claimRef: {namespace: shop, name: a, uid: 1, ` +
			`resourceVersion: "2"}}}`,
		`{apiVersion: v1, kind: PersistentVolume, metadata: {name: a}, spec: {claimRef: {namespace: shop, name: a}}}`,
	},
	{
		"the node and the priority of a Pod without a controller are removed",
		`{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {nodeName: hub-1, priority: 0, priorityClassName: low}}`,
		`{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {priorityClassName: low}}`,
	},
	{
		"the token Secrets of a ServiceAccount are removed, and other Secrets stay",
		`{apiVersion: v1, kind: ServiceAccount, metadata: {name: web}, secrets: [{name: web-token-x7k2p}, {name: mine}], ` +
			`imagePullSecrets: [{name: pull}]}`,
		`{apiVersion: v1, kind: ServiceAccount, metadata: {name: web}, secrets: [{name: mine}], ` +
			`imagePullSecrets: [{name: pull}]}`,
	},
	{
		"a ServiceAccount with token Secrets only loses the field secrets",
		`{apiVersion: v1, kind: ServiceAccount, metadata: {name: web}, secrets: [{name: web-token-x7k2p}]}`,
		`{apiVersion: v1, kind: ServiceAccount, metadata: {name: web}}`,
	},
	{
		"the revision annotation of a Deployment is removed",
		`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, annotations: {deployment.kubernetes.io/revision: ` +
			`"3"}}, spec: {replicas: 2}}`,
		`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replicas: 2}}`,
	},
	{
		"the template generation of a DaemonSet is removed",
		`{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: a, ` +
			`annotations: {deprecated.daemonset.template.generation: "3"}}}`,
		`{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: a}}`,
	},
	{
		"Endpoints without a controller are distributed",
		`{apiVersion: v1, kind: Endpoints, metadata: {name: a}, subsets: []}`,
		`{apiVersion: v1, kind: Endpoints, metadata: {name: a}, subsets: []}`,
	},
	{
		"an EndpointSlice of a custom controller is distributed",
		`{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: a, ` +
			`labels: {endpointslice.kubernetes.io/managed-by: example.com}}}`,
		`{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: a, ` +
			`labels: {endpointslice.kubernetes.io/managed-by: example.com}}}`,
	},
	{
		"fields of the wrong type stay, for the member's API server to refuse",
		`{apiVersion: v1, kind: Service, metadata: {name: a, labels: 5, annotations: [x]}, spec: [a], secrets: 7}`,
		`{apiVersion: v1, kind: Service, metadata: {name: a, labels: 5, annotations: [x]}, spec: [a], secrets: 7}`,
	},
	{
		"a custom kind Event with a field items is distributed",
		`{apiVersion: example.com/v1, kind: Event, metadata: {name: a}, items: [a]}`,
		`{apiVersion: example.com/v1, kind: Event, metadata: {name: a}, items: [a]}`,
	},
}

// refused contains the objects that Clean refuses, with a part of the reason.
var refused = []struct{ reason, object, want string }{
	{"a list", `{apiVersion: v1, kind: ConfigMapList, items: []}`, "a list is not an object"},
	{"an object of muster", `{apiVersion: placement.muster.dev/v1alpha1, kind: Placement, metadata: {name: a}}`,
		"objects of muster belong to the hub"},
	{"a ServiceAccount token",
		`{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {name: a}}`,
		"access to the hub"},
	{"a bootstrap token", `{apiVersion: v1, kind: Secret, type: bootstrap.kubernetes.io/token, metadata: {name: a}}`,
		"join the hub"},
	{"an Event", `{apiVersion: v1, kind: Event, metadata: {name: a}}`,
		"an object on the hub"},
	{"an Event of events.k8s.io", `{apiVersion: events.k8s.io/v1, kind: Event, metadata: {name: a}}`,
		"an object on the hub"},
	{"a Lease", `{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: a}}`, "renews the object"},
	{"a LeaseCandidate", `{apiVersion: coordination.k8s.io/v1alpha2, kind: LeaseCandidate, metadata: {name: a}}`,
		"renews the object"},
	{"Endpoints of the endpoint controller", `{apiVersion: v1, kind: Endpoints, metadata: {name: a, ` +
		`labels: {endpoints.kubernetes.io/managed-by: endpoint-controller}}}`, "from its own Pods"},
	{"Endpoints before Kubernetes 1.33", `{apiVersion: v1, kind: Endpoints, metadata: {name: a, ` +
		`annotations: {endpoints.kubernetes.io/last-change-trigger-time: now}}}`, "from its own Pods"},
	{"Endpoints of a leader election", `{apiVersion: v1, kind: Endpoints, metadata: {name: a, ` +
		`annotations: {control-plane.alpha.kubernetes.io/leader: me}}}`, "from its own Pods"},
	{"an EndpointSlice", `{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: a, ` +
		`labels: {endpointslice.kubernetes.io/managed-by: endpointslice-controller.k8s.io}}}`, "from its own Pods"},
	{"a ReplicaSet's Pod", `{apiVersion: v1, kind: Pod, metadata: {name: a, ownerReferences: [{kind: ReplicaSet, ` +
		`name: a, controller: true}]}}`, "the owner creates the object"},
	{"a ReplicationController with a controlling owner",
		`{apiVersion: v1, kind: ReplicationController, metadata: {name: a, ` +
			`ownerReferences: [{kind: DeploymentConfig, name: a, controller: true}]}}`, "the owner creates the object"},
	{"a Deployment's ReplicaSet", `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: a, ` +
		`ownerReferences: [{kind: Deployment, name: a, controller: true}]}}`, "the owner creates the object"},
	{"a ControllerRevision", `{apiVersion: apps/v1, kind: ControllerRevision, metadata: {name: a, ` +
		`ownerReferences: [{kind: DaemonSet, name: a, controller: true}]}}`, "the owner creates the object"},
	{"a CronJob's Job", `{apiVersion: batch/v1, kind: Job, metadata: {name: a, ownerReferences: [{kind: CronJob, ` +
		`name: a, controller: true}]}}`, "the owner creates the object"},
	{"a Node", `{apiVersion: v1, kind: Node, metadata: {name: a}}`, reasonPerCluster},
	{"a ComponentStatus", `{apiVersion: v1, kind: ComponentStatus, metadata: {name: a}}`, reasonPerCluster},
	{"a CSINode", `{apiVersion: storage.k8s.io/v1, kind: CSINode, metadata: {name: a}}`, reasonPerCluster},
	{"a CSIStorageCapacity", `{apiVersion: storage.k8s.io/v1, kind: CSIStorageCapacity, metadata: {name: a}}`,
		reasonPerCluster},
	{"a VolumeAttachment", `{apiVersion: storage.k8s.io/v1, kind: VolumeAttachment, metadata: {name: a}}`,
		reasonPerCluster},
	{"a CertificateSigningRequest",
		`{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, metadata: {name: a}}`,
		"a certificate of the hub"},
	{"PodMetrics", `{apiVersion: metrics.k8s.io/v1beta1, kind: PodMetrics, metadata: {name: a}}`,
		"those of the hub"},
	{"NodeMetrics", `{apiVersion: metrics.k8s.io/v1beta1, kind: NodeMetrics, metadata: {name: a}}`, "those of the hub"},
	{"the default namespace", `{apiVersion: v1, kind: Namespace, metadata: {name: default}}`, reasonPerCluster},
	{"kube-system", `{apiVersion: v1, kind: Namespace, metadata: {name: kube-system}}`, reasonPerCluster},
	{"kube-public", `{apiVersion: v1, kind: Namespace, metadata: {name: kube-public}}`, reasonPerCluster},
	{"kube-node-lease", `{apiVersion: v1, kind: Namespace, metadata: {name: kube-node-lease}}`, reasonPerCluster},
	{"the default ServiceAccount", `{apiVersion: v1, kind: ServiceAccount, metadata: {name: default, namespace: shop}}`,
		"every namespace has its own"},
	{"the hub's CA", `{apiVersion: v1, kind: ConfigMap, metadata: {name: kube-root-ca.crt, namespace: shop}}`,
		"its cluster's CA"},
	{"another CA of the hub",
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: openshift-service-ca.crt, namespace: shop}}`, "its cluster's CA"},
}

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	raw, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err, text)
	var content map[string]any
	require.NoError(t, yaml.Unmarshal(raw, &content))
	o.Object = numbers(content).(map[string]any)
	return o
}

// numbers converts numbers to int64, as the client of an API server decodes them.
func numbers(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name := range value {
			value[name] = numbers(value[name])
		}
	case []any:
		for i := range value {
			value[i] = numbers(value[i])
		}
	case float64:
		return int64(value)
	}
	return value
}

// cleanMismatches returns the objects that Clean does not convert as expected.
func cleanMismatches(t *testing.T) (wrong []string) {
	t.Helper()
	for _, test := range cleaned {
		before := object(t, test.object)
		got, err := Clean(before)
		if err != nil {
			wrong = append(wrong, fmt.Sprintf("%s: %v", test.reason, err))
			continue
		}
		want, err := Of(object(t, test.want).Object)
		require.NoError(t, err)
		if diff := cmp.Diff(string(want.JSON), string(got.JSON)); diff != "" {
			wrong = append(wrong, fmt.Sprintf("%s (-want +got):\n%s", test.reason, diff))
		}
		if diff := cmp.Diff(object(t, test.object), before); diff != "" {
			wrong = append(wrong, fmt.Sprintf("%s: the object was changed (-before +after):\n%s", test.reason, diff))
		}
	}
	return wrong
}

func refusalMismatches(t *testing.T) (wrong []string) {
	t.Helper()
	for _, test := range refused {
		_, err := Clean(object(t, test.object))
		refusal, isRefusal := errors.AsType[*RefusedError](err)
		if !isRefusal || !strings.Contains(refusal.Error(), "cannot be distributed: ") ||
			!strings.Contains(refusal.Reason, test.want) {
			wrong = append(wrong, fmt.Sprintf("%s: want a refusal with %q, got %v", test.reason, test.want, err))
		}
	}
	return wrong
}

func TestClean(t *testing.T) {
	for _, w := range append(cleanMismatches(t), refusalMismatches(t)...) {
		t.Error(w)
	}
}

// TestClean_EveryRowIsTested checks that each name of each row is needed: without it, one of the tests above fails.
func TestClean_EveryRowIsTested(t *testing.T) {
	for i := range removals {
		row := removals[i]
		require.NotEmpty(t, row.reason)
		for j, name := range row.names {
			removals[i].names = slices.Delete(slices.Clone(row.names), j, j+1)
			if len(cleanMismatches(t)) == 0 {
				t.Errorf("no test case has %s.%s of %v", row.in, name, row.kinds.kinds)
			}
			removals[i] = row
		}
		if row.unless != nil {
			removals[i].unless = nil
			if len(cleanMismatches(t)) == 0 {
				t.Errorf("no test case has %s.%v of %v that must stay", row.in, row.names, row.kinds.kinds)
			}
			removals[i] = row
		}
	}
	for i := range refusals {
		row := refusals[i]
		require.NotEmpty(t, row.reason)
		for j, kind := range row.kinds.kinds {
			refusals[i].kinds.kinds = slices.Replace(slices.Clone(row.kinds.kinds), j, j+1, "-")
			if len(refusalMismatches(t)) == 0 {
				t.Errorf("no test case has %s", kind)
			}
			refusals[i] = row
		}
		refusals[i].when = func(*unstructured.Unstructured) bool { return false }
		if len(refusalMismatches(t)) == 0 {
			t.Errorf("no test case is refused because %s", row.reason)
		}
		refusals[i] = row
	}
}

func TestCleanInvalid(t *testing.T) {
	for reason, text := range map[string]string{
		"no name":      `{apiVersion: v1, kind: ConfigMap, metadata: {}}`,
		"no kind":      `{apiVersion: v1, metadata: {name: a}}`,
		"empty object": `{}`,
	} {
		if _, err := Clean(object(t, text)); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: want %v, got %v", reason, ErrInvalid, err)
		}
	}
}
