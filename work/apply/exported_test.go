package apply_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/work/apply"
)

func TestExported(t *testing.T) {
	for _, tc := range []struct{ reason, object, want string }{
		{
			"fields that the API server, kubectl and muster write",
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: n, uid: u, resourceVersion: "1", generation: 2,
    creationTimestamp: "2020-01-01T00:00:00Z", managedFields: [{}],
  labels: {work.muster.dev/applied: "true", a: b}, annotations: {kubectl.kubernetes.io/last-applied-configuration: x,
    applied.work.muster.dev/0: y, note: kept}, finalizers: [example.com/f]}, data: {k: v}}`,
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: n, labels: {a: b}, annotations: {note: kept}, ` +
				`finalizers: [example.com/f]}, data: {k: v}}`,
		},
		{
			"Job: labels and selector of the controller",
			`{apiVersion: batch/v1, kind: Job, metadata: {name: a, labels: {controller-uid: u, batch.kubernetes.io/job-name: a,
    a: b}}, spec: {selector: {matchLabels: {controller-uid: u}},
  template: {metadata: {labels: {controller-uid: u, job-name: a, batch.kubernetes.io/controller-uid: u}},
    spec: {restartPolicy: Never}}}, status: {succeeded: 1}}`,
			`{apiVersion: batch/v1, kind: Job, metadata: {name: a, labels: {a: b}}, spec: {template: {metadata: {}, spec: ` +
				`{restartPolicy: Never}}}}`,
		},
		{
			"Job with a manual selector",
			`{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {manualSelector: true, selector: {matchLabels: {x: ` +
				`y}}}}`,
			`{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {manualSelector: true, selector: {matchLabels: {x: ` +
				`y}}}}`,
		},
		{
			"Service: cluster IP", `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {clusterIP: ` +
				`10.0.0.1, clusterIPs: [10.0.0.1], ports: [{port: 80}]}, status: {loadBalancer: {}}}`,
			`{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{port: 80}]}}`,
		},
		{
			"headless Service", `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {clusterIP: ` +
				`None, clusterIPs: [None]}}`,
			`{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {clusterIP: None, clusterIPs: [None]}}`,
		},
		{
			"PersistentVolumeClaim: volume name",
			`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a, annotations: {pv.kubernetes.io/bind-completed: ` +
				`"yes"}, finalizers: [kubernetes.io/pvc-protection]}, spec: {volumeName: pv, accessModes: [ReadWriteOnce]}}`,
			`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, spec: {accessModes: [ReadWriteOnce]}}`,
		},
		{
			"Deployment: revision",
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, annotations: {deployment.kubernetes.io/revision: ` +
				`"3"}}, spec: {replicas: 1}, status: {replicas: 1}}`,
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replicas: 1}}`,
		},
		{"token Secret", `{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {name: a}}`,
			""},
		{"root CA ConfigMap", `{apiVersion: v1, kind: ConfigMap, metadata: {name: kube-root-ca.crt}}`, ""},
		{"object of a controller", `{apiVersion: v1, kind: Pod, metadata: {name: a, ownerReferences: [{apiVersion: ` +
			`apps/v1, kind: ReplicaSet, name: r, uid: u, controller: true}]}}`, ""},
		{"Endpoints", `{apiVersion: v1, kind: Endpoints, metadata: {name: a}}`, ""},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			object := manifest(t, tc.object)
			before := object.DeepCopy()
			got, reason := apply.Exported(object)
			require.Equal(t, before, object, "the object is not changed")
			if tc.want == "" {
				require.Nil(t, got)
				require.NotEmpty(t, reason)
				return
			}
			require.Empty(t, reason)
			require.Empty(t, cmp.Diff(manifest(t, tc.want).Object, got.Object), "(-want +got)")
			again, _ := apply.Exported(got)
			require.Equal(t, got, again, "the result is not changed by a second call")
		})
	}
}
