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
- {apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: NS-p}, spec: {matchConstraints: {resourceRules: [{apiGroups: [none.example.com], apiVersions: ["*"], operations: ["*"], resources: ["*"]}]},
    variables: [], validations: [{expression: "true"}]}, status: {observedGeneration: 3}}
- {apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: NS-p}, spec: {policyName: NS-p, validationActions: [Deny], matchResources: {namespaceSelector: {}}}}
`},
	"storage": {"a claim and a volume that controllers bind", `
- {apiVersion: v1, kind: PersistentVolume, metadata: {name: NS-v, annotations: {pv.kubernetes.io/bound-by-controller: "yes"}}, spec: {capacity: {storage: 1024Mi}, accessModes: [ReadWriteOnce], storageClassName: "",
    persistentVolumeReclaimPolicy: Retain, hostPath: {path: /tmp/NS}, claimRef: {apiVersion: v1, kind: PersistentVolumeClaim, namespace: NS, name: a}}, status: {phase: Bound}}
- {apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a, namespace: NS}, spec: {accessModes: [ReadWriteOnce], storageClassName: "", volumeName: NS-v, resources: {requests: {storage: "1073741824"}}}}
- {apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: NS-c}, provisioner: none, parameters: {}, mountOptions: [], allowedTopologies: [{matchLabelExpressions: [{key: zone, values: [a]}]}]}
`},
	"pods": {"pods, to which admission adds volumes and tolerations", `
- {apiVersion: v1, kind: ServiceAccount, metadata: {name: a, namespace: NS}, automountServiceAccountToken: true, imagePullSecrets: []}
- {apiVersion: v1, kind: Pod, metadata: {name: a, namespace: NS, creationTimestamp: null}, spec: {nodeSelector: {none: "true"}, priority: 0, tolerations: [], volumes: [], initContainers: [{name: i, image: i, restartPolicy: Always}],
    containers: [{name: c, image: i, resources: {}, env: [], args: [], ports: [{containerPort: 53, protocol: UDP, name: dns}, {containerPort: 53, name: dns-tcp}]}]}, status: {}}
- {apiVersion: v1, kind: ReplicationController, metadata: {name: a, namespace: NS}, spec: {replicas: 0, selector: {a: b}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}
- {apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: a, namespace: NS, annotations: {deployment.kubernetes.io/desired-replicas: "2"}}, spec: {replicas: 0, selector: {matchLabels: {c: d}}, template: {metadata: {labels: {c: d}}, spec: {containers: [{name: c, image: i}]}}}}
- {apiVersion: v1, kind: PodTemplate, metadata: {name: a, namespace: NS}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}
`},
	"services": {"services with defaults, and objects that controllers derive from them", `
- {apiVersion: v1, kind: Service, metadata: {name: headless, namespace: NS}, spec: {clusterIP: None, clusterIPs: [None], selector: {}, ports: []}}
- {apiVersion: v1, kind: Service, metadata: {name: named, namespace: NS}, spec: {type: ExternalName, externalName: example.com, ports: [{port: 80, targetPort: 80}]}}
- {apiVersion: v1, kind: Service, metadata: {name: both, namespace: NS}, spec: {type: NodePort, sessionAffinity: ClientIP, externalTrafficPolicy: Local, ports: [{name: a, port: 53, protocol: UDP}, {name: b, port: 53, protocol: TCP}]}, status: {loadBalancer: {}}}
- {apiVersion: v1, kind: Endpoints, metadata: {name: named, namespace: NS}, subsets: [{addresses: [{ip: 192.0.2.1}], ports: [{port: 80}]}]}
- {apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: own, namespace: NS}, addressType: IPv4, endpoints: [{addresses: [192.0.2.1], conditions: {}}], ports: [{port: 80}]}
- {apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a, namespace: NS}, spec: {defaultBackend: {service: {name: both, port: {number: 53}}}, tls: [{}], rules: [{}]}, status: {loadBalancer: {}}}
- {apiVersion: networking.k8s.io/v1, kind: IngressClass, metadata: {name: NS-i}, spec: {controller: example.com/none, parameters: {kind: X, name: x}}}
`},
	"limits": {"quantities, empty maps and what a whole cluster shares", `
- {apiVersion: v1, kind: LimitRange, metadata: {name: a, namespace: NS}, spec: {limits: [{type: Container, default: {cpu: "0.5", memory: 1024Mi}, defaultRequest: {cpu: 0.1}, max: {}}]}}
- {apiVersion: v1, kind: Namespace, metadata: {name: NS-n, labels: {kubernetes.io/metadata.name: NS-n}, annotations: {}}, spec: {finalizers: [kubernetes]}, status: {phase: Active}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: NS, labels: {}, annotations: {}, finalizers: []}, data: {}, binaryData: {}}
- {apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: NS-p}, value: 5, globalDefault: false, description: ""}
- {apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: a, namespace: NS}, spec: {leaseDurationSeconds: 15, renewTime: "2026-01-01T00:00:00.000000Z"}}
- {apiVersion: flowcontrol.apiserver.k8s.io/v1, kind: FlowSchema, metadata: {name: NS-f}, spec: {priorityLevelConfiguration: {name: global-default}, rules: [{subjects: [{kind: User, user: {name: none}}], resourceRules: [{apiGroups: [""], resources: [pods], verbs: [get], namespaces: ["*"]}]}]}}
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

// TestAwkward_Schemas has custom resources whose schema defaults, prunes, converts or merges in a way of its own.
func TestAwkward_Schemas(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	group := w.namespace + ".example.org"
	objects := w.objects(strings.ReplaceAll(`
- {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: odds.GROUP}, spec: {group: GROUP, scope: Namespaced, names: {plural: odds, kind: Odd}, versions: [{name: v1, served: true, storage: true,
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, default: {}, properties: {
      port: {x-kubernetes-int-or-string: true}, ratio: {type: number}, big: {type: integer, format: int64}, size: {type: string, default: small},
      open: {type: object, x-kubernetes-preserve-unknown-fields: true}, maybe: {type: string, nullable: true},
      set: {type: array, x-kubernetes-list-type: set, items: {type: string}}, whole: {type: object, x-kubernetes-map-type: atomic, additionalProperties: {type: string}},
      items: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name, port], items: {type: object, required: [name], properties: {name: {type: string}, port: {type: integer, default: 80}, note: {type: string}}}},
      inner: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}}}}}}}]}}
- {apiVersion: GROUP/v1, kind: Odd, metadata: {name: full, namespace: NS}, spec: {port: "80", ratio: 1.0, big: 9007199254740993, open: {a: [1, {b: null}], c: {}}, maybe: null, set: [b, a], whole: {},
    items: [{name: x}, {name: x, port: 81, note: ""}], inner: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: v}}}}
- {apiVersion: GROUP/v1, kind: Odd, metadata: {name: empty, namespace: NS}}
- {apiVersion: GROUP/v1, kind: Odd, metadata: {name: pruned, namespace: NS}, spec: {size: large, set: [], items: []}}
`, "GROUP", group))
	t.Cleanup(func() { _ = w.admin.Delete(noContext{t}.Context(), objects[0].Manifest.DeepCopy()) })
	w.rests(objects)
}

// TestAwkward_Quota has an object that the cluster does not admit at this time: the message says why, and it is not sent on
// each reconcile.
func TestAwkward_Quota(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.clocked()
	w.create("{apiVersion: v1, kind: ResourceQuota, metadata: {name: none, namespace: NS}, spec: {hard: {services: '0'}}}")
	service := w.object("{apiVersion: v1, kind: Service, metadata: {name: s, namespace: NS}, spec: {ports: [{port: 80}]}}")
	change := w.one(service)
	require.Equal(t, v1alpha1.ReasonForbidden, change.Reason, change.Message)
	require.Contains(t, change.Message, "quota")
	require.Positive(t, w.one(service).RetryAfter)
	w.counted.take()
	for range 5 {
		require.Equal(t, apply.Failed, w.one(service).Action)
	}
	_, writes := w.counted.take()
	require.Zero(t, writes)
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
			w.clocked() // on a busy machine the pause after a rejection would pass meanwhile
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
