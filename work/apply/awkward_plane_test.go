package apply_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/work/apply"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// awkward are manifests as they are found in bundles and exports, each of which could keep an agent busy.
var awkward = map[string]struct{ reason, objects string }{
	"defaults": {"everything that the API server defaults or normalizes", `
- {apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: NS}, spec: {replicas: 0, strategy: {rollingUpdate: {maxSurge: "25%", maxUnavailable: 0}}, selector: {matchLabels: {a: b}},
    template: {metadata: {labels: {a: b}, creationTimestamp: null}, spec: {securityContext: {}, containers: [{name: c, image: i, resources: {requests: {cpu: 1000m, memory: 1024Mi}, limits: {cpu: "0.5e1"}},
      ports: [{containerPort: 80}, {containerPort: 80, protocol: UDP}], env: [{name: A, value: ""}, {name: B, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}]}}}}
- {apiVersion: v1, kind: Service, metadata: {name: a, namespace: NS}, spec: {selector: {a: b}, ports: [{port: 53, name: tcp}, {port: 53, name: udp, protocol: UDP}]}}
- {apiVersion: v1, kind: Secret, metadata: {name: a, namespace: NS}, stringData: {password: x}}
- {apiVersion: v1, kind: ResourceQuota, metadata: {name: a, namespace: NS}, spec: {hard: {requests.cpu: "1000m", limits.memory: "1024Mi", pods: "0"}}}
`},
	"stateful": {"templates in templates", `
- {apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a, namespace: NS}, spec: {serviceName: a, replicas: 0, selector: {matchLabels: {a: b}}, volumeClaimTemplates: [
    {apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: d}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1024Mi}}}, status: {phase: Pending}}],
    template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i, volumeMounts: [{name: d, mountPath: /d}]}]}}}}
- {apiVersion: apps/v1, kind: DaemonSet, metadata: {name: a, namespace: NS, annotations: {deprecated.daemonset.template.generation: "4"}}, spec: {selector: {matchLabels: {a: b}},
    template: {metadata: {labels: {a: b}}, spec: {nodeSelector: {none: "true"}, containers: [{name: c, image: i}]}}}}
- {apiVersion: batch/v1, kind: Job, metadata: {name: a, namespace: NS}, spec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}
- {apiVersion: batch/v1, kind: CronJob, metadata: {name: a, namespace: NS}, spec: {suspend: true, schedule: "@yearly", jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}}}
`},
	"exported": {"what kubectl get -o yaml gives", `
- {apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: NS, creationTimestamp: "2020-01-01T00:00:00Z", generation: 7, selfLink: /x, annotations: {deployment.kubernetes.io/revision: "3"}},
    spec: {replicas: 0, progressDeadlineSeconds: 600, selector: {matchLabels: {a: b}}, template: {metadata: {creationTimestamp: null, labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}},
    status: {observedGeneration: 7, replicas: 1, conditions: [{type: Available, status: "True"}]}}
- {apiVersion: v1, kind: ServiceAccount, metadata: {name: a, namespace: NS}, secrets: [{name: a-token-x}]}
- {apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {name: a-token, namespace: NS, annotations: {kubernetes.io/service-account.name: a, kubernetes.io/service-account.uid: 0000}},
    data: {token: eA==, ca.crt: eA==, namespace: eA==}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: kube-root-ca.crt, namespace: NS, annotations: {kubernetes.io/description: x}}, data: {ca.crt: x}}
- {apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a, namespace: NS, annotations: {pv.kubernetes.io/bind-completed: "yes"}, finalizers: [kubernetes.io/pvc-protection]},
    spec: {accessModes: [ReadWriteOnce], storageClassName: none, resources: {requests: {storage: 1Gi}}}, status: {phase: Bound}}
`},
	"roles": {"aggregation, empty rules and subjects", `
- {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: NS-all, labels: {owned-by: NS}}, aggregationRule: {clusterRoleSelectors: [{matchLabels: {to: NS}}]}, rules: [{apiGroups: [x], resources: [y], verbs: [z]}]}
- {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: NS-some, labels: {to: NS}}, rules: [{apiGroups: [""], resources: [pods], verbs: [get]}, {nonResourceURLs: [/x], verbs: [get]}]}
- {apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: a, namespace: NS}, roleRef: {kind: ClusterRole, name: view, apiGroup: rbac.authorization.k8s.io}, subjects: [{kind: User, name: u}, {kind: ServiceAccount, name: s}]}
`},
	"policies": {"kinds with unions and nested lists", `
- {apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: a, namespace: NS}, spec: {podSelector: {}, egress: [{}], ingress: [{from: [{podSelector: {}}], ports: [{port: http}]}], policyTypes: [Egress, Ingress]}}
- {apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a, namespace: NS}, spec: {rules: [{host: a.example.com, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: a, port: {name: http}}}}]}}]}}
- {apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: a, namespace: NS}, spec: {maxUnavailable: "50%", selector: {matchExpressions: [{key: a, operator: Exists}]}}}
- {apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: a, namespace: NS}, spec: {minReplicas: 1, maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: none},
    metrics: [{type: Resource, resource: {name: memory, target: {type: Utilization, averageUtilization: 80}}}, {type: Resource, resource: {name: cpu, target: {type: AverageValue, averageValue: 1000m}}}]}}
- {apiVersion: autoscaling/v1, kind: HorizontalPodAutoscaler, metadata: {name: old, namespace: NS}, spec: {maxReplicas: 3, targetCPUUtilizationPercentage: 50, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: none}}}
`},
	"admission": {"webhooks with placeholders and defaults", `
- {apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: NS-m}, webhooks: [{name: a.example.com, admissionReviewVersions: [v1], sideEffects: None, failurePolicy: Ignore,
    clientConfig: {caBundle: "", service: {name: none, namespace: NS}}, rules: [{apiGroups: [none.example.com], apiVersions: [v1], operations: [CREATE], resources: [nones]}]}]}
- {apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: NS-v}, webhooks: [{name: a.example.com, admissionReviewVersions: [v1], sideEffects: None, failurePolicy: Ignore,
    namespaceSelector: {}, objectSelector: {}, clientConfig: {caBundle: Cg==, service: {name: none, namespace: NS, path: /x}}, rules: []}]}
`},
}

// TestAwkward has that each of them comes to rest, writes nothing from then on, and nothing after a restart.
func TestAwkward(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, tc := range awkward {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			objects := w.objects(tc.objects)
			t.Cleanup(func() {
				for _, object := range objects {
					if object.Manifest.GetNamespace() == "" {
						_ = w.admin.Delete(noContext{t}.Context(), object.Manifest.DeepCopy())
					}
				}
			})
			t.Log(tc.reason)
			w.rests(objects)
		})
	}
	t.Run("definition", func(t *testing.T) { // of the size of cert-manager's, with a resource in each of two versions
		t.Parallel()
		w := w.in(t)
		group := w.namespace + ".example.org"
		var fields []string
		for i := range 400 {
			fields = append(fields, fmt.Sprintf(`f%d: {type: object, description: "%s", properties: {a: {type: string, enum: [x, y]}, b: {type: array, items: {type: string}}}}`, i, long(500)))
		}
		schema := "{openAPIV3Schema: {type: object, properties: {status: {type: object}, spec: {type: object, properties: {" + strings.Join(fields, ", ") + "}}}}}"
		objects := w.objects(strings.NewReplacer("GROUP", group, "SCHEMA", schema).Replace(`
- {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: awkwards.GROUP, creationTimestamp: null}, spec: {group: GROUP, scope: Namespaced, preserveUnknownFields: false,
    names: {plural: awkwards, kind: Awkward, shortNames: [], categories: []}, conversion: {strategy: None}, versions: [
    {name: v1, served: true, storage: true, subresources: {status: {}}, schema: SCHEMA}, {name: v1beta1, served: true, storage: false, subresources: {status: {}}, schema: SCHEMA}]},
   status: {acceptedNames: {kind: "", plural: ""}, conditions: [], storedVersions: []}}
- {apiVersion: GROUP/v1, kind: Awkward, metadata: {name: new, namespace: NS}, spec: {f1: {a: x, b: []}, f2: {}}}
- {apiVersion: GROUP/v1beta1, kind: Awkward, metadata: {name: old, namespace: NS}, spec: {f1: {a: x, b: [z]}}}
`))
		t.Cleanup(func() { _ = w.admin.Delete(noContext{t}.Context(), objects[0].Manifest.DeepCopy()) })
		w.rests(objects)
	})
}

// TestAwkward_Explained has manifests that cannot come to rest as they are: nothing is written without end, and the
// message says what to do.
func TestAwkward_Explained(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, tc := range map[string]struct{ object, reason, message string }{
		"immutable": {"{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: NS}, immutable: true, stringData: {k: v}}", v1alpha1.ReasonRejected, "data"},
		"roleRef": {"{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: a, namespace: NS}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: k-v}}",
			v1alpha1.ReasonRejected, "cannot change roleRef"},
		"job": {"{apiVersion: batch/v1, kind: Job, metadata: {name: a, namespace: NS}, spec: {suspend: false, template: {spec: {restartPolicy: Never, containers: [{name: c, image: k-v}]}}}}",
			v1alpha1.ReasonRejected, "field is immutable"},
	} {
		t.Run(name, func(t *testing.T) {
			w := w.in(t)
			require.True(t, w.one(w.object(tc.object)).Done())
			changed := w.object(strings.NewReplacer("k: v", "k: w", "name: k-v", "name: k-w", "image: k-v", "image: k-w").Replace(tc.object))
			change := w.one(changed)
			require.Equal(t, tc.reason, change.Reason)
			require.Contains(t, change.Message, tc.message)
			w.counted.take()
			for range 5 {
				require.Equal(t, apply.Failed, w.one(changed).Action)
			}
			_, writes := w.counted.take()
			require.Zero(t, writes)
		})
	}
}
