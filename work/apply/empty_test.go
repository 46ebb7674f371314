package apply_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/work/apply"
)

// TestEmptyLists has that empty lists and maps in a manifest are no drift, after a restart either.
func TestEmptyLists(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	objects := w.objects(`
- {apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: NS, finalizers: [], annotations: {}},
   spec: {replicas: 0, selector: {matchLabels: {a: b}, matchExpressions: []},
    template: {metadata: {labels: {a: b}, annotations: {}}, spec: {volumes: [], initContainers: [],
      imagePullSecrets: [], tolerations: [], nodeSelector: {}, affinity: {}, securityContext: {},
      containers: [{name: c, image: i, env: [], envFrom: [], ports: [], volumeMounts: [], args: [], command: [],
        resources: {limits: {}, requests: {}}, securityContext: {}}]}}}}
- {apiVersion: v1, kind: Service, metadata: {name: a, namespace: NS}, spec: {clusterIP: None, ports: [], selector: {},
   externalIPs: [], loadBalancerSourceRanges: []}, status: {loadBalancer: {}}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: NS}, data: {}, binaryData: {}}
- {apiVersion: v1, kind: Secret, metadata: {name: a, namespace: NS}, data: {}, stringData: {}}
- {apiVersion: v1, kind: ServiceAccount, metadata: {name: a, namespace: NS}, secrets: [], imagePullSecrets: []}
- {apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: a, namespace: NS}, rules: []}
- {apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: a, namespace: NS}, subjects: [],
   roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: a}}
- {apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: a, namespace: NS},
   spec: {podSelector: {}, ingress: [], egress: [], policyTypes: [Ingress]}}
- {apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a, namespace: NS}, spec: {tls: [], rules: [],
   defaultBackend: {service: {name: a, port: {number: 80}}}}}
- {apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: a, namespace: NS},
   spec: {minAvailable: 1, selector: {}}}
- {apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: NS-none},
   webhooks: []}
- {apiVersion: batch/v1, kind: CronJob, metadata: {name: a, namespace: NS}, spec: {suspend: true, schedule: "0 0 1 1 *",
   jobTemplate: {metadata: {labels: {}},
     spec: {template: {spec: {restartPolicy: Never, volumes: [], containers: [{name: c, image: i, env: []}]}}}}}}
- {apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: a, namespace: NS},
   spec: {maxReplicas: 2, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: none}, metrics: []}}
- {apiVersion: v1, kind: LimitRange, metadata: {name: a, namespace: NS}, spec: {limits: []}}
- {apiVersion: v1, kind: ResourceQuota, metadata: {name: a, namespace: NS}, spec: {hard: {}, scopes: []}}
- {apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a, namespace: NS, annotations: {}},
   spec: {accessModes: [ReadWriteOnce], storageClassName: "", selector: {},
     resources: {limits: {}, requests: {storage: 1Mi}}}}
`)
	t.Cleanup(func() {
		_ = w.admin.Delete(noContext{t}.Context(), objects[10].Manifest.DeepCopy())
	})
	w.rests(objects)
	for _, object := range objects[:1] {
		w.patch(object.Manifest, "{spec: {paused: true, replicas: 1}}")
		change := w.one(object)
		require.Equal(t, apply.Configured, change.Action, "what is not empty is healed as ever")
	}
}
