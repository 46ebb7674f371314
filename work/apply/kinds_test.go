package apply_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/muster-sdk/muster/work/apply"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// everyKind has each kind of list and default that the API server handles differently.
const everyKind = `
- {apiVersion: v1, kind: ServiceAccount, metadata: {name: sa, namespace: NS}, imagePullSecrets: [{name: pull}]}
- {apiVersion: v1, kind: Secret, metadata: {name: secret, namespace: NS, creationTimestamp: null}, data: {a: Yg==}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: empty, namespace: NS, annotations: {}, labels: {}}, data: {},
   binaryData: {a: Yg==}, immutable: false}
- {apiVersion: v1, kind: ResourceQuota, metadata: {name: quota, namespace: NS},
   spec: {hard: {cpu: 100000m, memory: 1024Mi, pods: "10"}}}
- {apiVersion: v1, kind: LimitRange, metadata: {name: limits, namespace: NS},
   spec: {limits: [{type: Container, default: {cpu: 1000m}}]}}
- {apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: claim, namespace: NS},
   spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1024Mi}}}}
- {apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: deny, namespace: NS},
   spec: {podSelector: {}, policyTypes: [Ingress]}}
- {apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: budget, namespace: NS},
   spec: {minAvailable: 1, selector: {matchLabels: {a: b}}}}
- {apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: role, namespace: NS},
   rules: [{apiGroups: [""], resources: [pods], verbs: [get, list]}]}
- {apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: binding, namespace: NS},
   roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: role}, subjects: [{kind: ServiceAccount, name: sa,
     namespace: NS}]}
- {apiVersion: v1, kind: Service, metadata: {name: web, namespace: NS},
   spec: {selector: {a: b}, ports: [{name: tcp, port: 80, targetPort: http}, {name: udp, port: 80, protocol: UDP}]}}
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: web, namespace: NS, finalizers: [example.com/a, example.com/b]}
  spec:
    replicas: 0
    selector: {matchLabels: {a: b}}
    template:
      metadata: {labels: {a: b}}
      spec:
        containers:
        - name: web
          image: nginx
          args: [a, a]
          ports: [{containerPort: 80}, {containerPort: 80, protocol: UDP}, {containerPort: 81, name: x}]
          env: [{name: A, value: ""}, {name: B, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
          envFrom: [{configMapRef: {name: empty}}]
          resources: {limits: {cpu: 1000m, memory: 1024Mi}, requests: {cpu: 0.5}}
          volumeMounts: [{name: tmp, mountPath: /tmp}]
          securityContext: {capabilities: {drop: [ALL]}}
          livenessProbe: {httpGet: {path: /, port: 80}}
        initContainers: [{name: init, image: x}]
        tolerations: [{key: a, operator: Exists}, {key: a, operator: Exists, effect: NoSchedule}]
        hostAliases: [{ip: 10.0.0.1, hostnames: [x]}]
        topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule,
          labelSelector: {matchLabels: {a: b}}}]
        imagePullSecrets: [{name: pull}]
        volumes: [{name: tmp, emptyDir: {}}, {name: p, projected: {sources: [{configMap: {name: empty}}]}}]
        affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: [{matchExpressions: [{key: a, operator: In, values: [b]}]}]}}}
- {apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db, namespace: NS}, spec: {replicas: 0, serviceName: db,
   selector: {matchLabels: {a: c}}, template: {metadata: {labels: {a: c}}, spec: {containers: [{name: db, image: x}]}},
    volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce],
      resources: {requests: {storage: 1Gi}}}}]}}
- {apiVersion: batch/v1, kind: Job, metadata: {name: job, namespace: NS},
   spec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: job, image: x}]}}}}
- {apiVersion: batch/v1, kind: CronJob, metadata: {name: cron, namespace: NS}, spec: {schedule: "@daily",
   jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: job, image: x}]}}}}}}
- {apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: NS},
   webhooks: [{name: a.example.com, admissionReviewVersions: [v1], sideEffects: None, failurePolicy: Ignore,
     matchPolicy: Equivalent,
    clientConfig: {url: "https://localhost:1/x"}, namespaceSelector: {matchLabels: {no: ne}}, rules: [{apiGroups: [""],
      apiVersions: [v1], operations: [CREATE], resources: [pods]}]}]}
- ` + hpa

func (f *fixture) every() []apply.Object {
	f.T.Helper()
	objects := f.objects(everyKind)
	definition, resource := f.custom("every", "Cluster")
	return append(objects, definition, resource)
}

func TestKinds_UnchangedObjectsAreNotWritten(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	objects := f.every()
	for _, change := range f.apply(objects...) {
		require.Equal(t, apply.Created, change.Action, "%s: %s %v", change.Object, change.Message, change.Err)
	}
	for range 2 {
		f.restart()
		f.counted.take()
		for _, change := range f.apply(objects...) {
			require.Equal(t, apply.Unchanged, change.Action, change.Object)
		}
		_, writes := f.counted.take()
		require.Zero(t, writes, "a new engine finds in the metadata that no object has changed")
	}
	f.patch(f.objects(everyKind)[11].Manifest, "{metadata: {finalizers: null}}")
	require.Equal(t, apply.Configured, f.apply(objects...)[11].Action, "a set list is covered item by item")
	f.patch(f.objects(everyKind)[11].Manifest, "{metadata: {finalizers: null}}")
	f.inventory = apply.Stale(f.inventory, nil)
	require.Len(t, f.inventory, len(objects))
}

func TestApply_NamespaceDefinitionAndObjectsInOnePass(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	definition, resource := f.custom("together", "Namespaced")
	inner := f.Namespace + "-inner"
	resource.Manifest.SetNamespace(inner)
	config := f.configMap("a", "{k: v}")
	config.Manifest.SetNamespace(inner)
	objects := []apply.Object{resource, config, definition,
		f.object("{apiVersion: v1, kind: Namespace, metadata: {name: " + inner + "}}")}
	for _, change := range f.apply(objects...) {
		require.Equal(t, apply.Created, change.Action, "%s: %s", change.Object, change.Message)
		require.NotEmpty(t, change.Object.Resource)
	}
	for _, change := range f.apply(objects...) {
		require.Equal(t, apply.Unchanged, change.Action)
	}
}

func TestApply_DefinitionIsNotEstablished(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	definition, _ := f.custom("taken", "Namespaced")
	f.one(definition)
	second := apply.Object{Manifest: definition.Manifest.DeepCopy()}
	spec := second.Manifest.Object["spec"].(map[string]any)
	second.Manifest.SetName("others." + spec["group"].(string))
	spec["names"] = map[string]any{"kind": "Thing", "plural": "others", "singular": "other", "listKind": "OtherList"}
	spec["versions"].([]any)[0].(map[string]any)["name"] = "v2"
	resource := f.object("{apiVersion: " + spec["group"].(string) +
		"/v2, kind: Thing, metadata: {name: x, namespace: NS}}")
	f.engine = apply.New(f.Client, apply.Options{EstablishTimeout: time.Second})
	changes := f.apply(second, resource)
	require.Equal(t, apply.Failed, changes[0].Action)
	require.Contains(t, changes[0].Message, `not established within 1s: NamesAccepted: "Thing" is already in use`)
	require.Equal(t, v1alpha1.ReasonUnknownKind, changes[1].Reason)
}

func TestApply_InvalidObjectsDoNotBlockOthers(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	_, unknown := f.custom("unknown", "Namespaced")
	ending := f.Namespace + "-ending"
	f.create("{apiVersion: v1, kind: Namespace, metadata: {name: " + ending + "}}")
	f.create("{apiVersion: v1, kind: ConfigMap, metadata: {name: hold, namespace: " + ending +
		", finalizers: [example.com/hold]}}")
	hold := f.object("{apiVersion: v1, kind: ConfigMap, metadata: {name: hold, namespace: " + ending + "}}").Manifest
	require.NoError(t, f.Client.Delete(t.Context(), &corev1.Namespace{ObjectMeta: objectMeta(ending)}))
	t.Cleanup(func() { f.T = noContext{f.T}; f.patch(hold, "{metadata: {finalizers: null}}") })

	job := `{apiVersion: batch/v1, kind: Job, metadata: {name: job, namespace: NS}, spec: {suspend: true, template: ` +
		`{spec: {restartPolicy: Never, containers: [{name: job, image: IMAGE}]}}}}`
	f.one(f.object(replace(job, "IMAGE", "a")))
	bad := []struct {
		reason, text string
		want         string
		action       apply.Action
		message      string
	}{
		{"unknown kind", string(mustJSON(t, unknown)), v1alpha1.ReasonUnknownKind, apply.Failed,
			"does not serve kind Thing"},
		{"missing metadata.namespace", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}", v1alpha1.ReasonInvalid,
			apply.Failed,
			"metadata.namespace: is required"},
		{"missing metadata.name", "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: NS}}", v1alpha1.ReasonInvalid,
			apply.Failed,
			"metadata.name: is required"},
		{"label that is not a string",
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: a1, namespace: NS, labels: {a: true}}}", v1alpha1.ReasonInvalid,
			apply.Failed, "put quotes"},
		{"resourceVersion of another cluster",
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: a2, namespace: NS, resourceVersion: \"5\"}}",
			v1alpha1.ReasonInvalid, apply.Failed, "metadata.resourceVersion"},
		{"namespace does not exist", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: nowhere}}",
			v1alpha1.ReasonFailed, apply.Failed, "Check that namespace nowhere exists"},
		{"namespace is being deleted", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: " + ending + "}}",
			v1alpha1.ReasonTerminating, apply.Skipped, "is being deleted"},
		{"field that is not in the schema",
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: a3, namespace: NS}, dat: {}}", v1alpha1.ReasonRejected,
			apply.Failed, ".dat: field not declared in schema"},
		{"immutable field", replace(job, "IMAGE", "b"), v1alpha1.ReasonRejected, apply.Failed, "field is immutable"},
		{"message does not quote values of a Secret",
			"{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: NS}, data: {password: 12345}}",
			v1alpha1.ReasonRejected, apply.Failed, "invalid values in .data.password"},
		{"Secret value that is not base64", "{apiVersion: v1, kind: Secret, metadata: {name: b, namespace: NS}, data: " +
			"{password: '!hidden!'}}", v1alpha1.ReasonRejected, apply.Failed, "base64"},
		{"invalid name", "{apiVersion: v1, kind: ConfigMap, metadata: {name: A_B, namespace: NS}}",
			v1alpha1.ReasonRejected, apply.Failed, "RFC 1123"},
		{"annotations exceed the limit",
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: a4, namespace: NS, annotations: {big: " + long(262144) + "}}}",
			v1alpha1.ReasonRejected, apply.Failed, "may not be more than"},
	}
	objects := []apply.Object{f.configMap("good", "{k: v}")}
	for _, tc := range bad {
		objects = append(objects, f.object(tc.text))
	}
	changes := f.apply(objects...)
	require.Equal(t, apply.Created, changes[0].Action)
	for i, tc := range bad {
		change := changes[i+1]
		require.Equal(t, []any{tc.action, tc.want}, []any{change.Action, change.Reason}, "%s: %s", tc.reason, change.Message)
		require.Contains(t, change.Message, tc.message, tc.reason)
		require.NotContains(t, change.Message, "12345")
		require.False(t, change.Done())
	}
}

func TestApply_MutatingAdmission(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.create(`{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingAdmissionPolicy, metadata: {name: NS},
    spec: {failurePolicy: Fail, reinvocationPolicy: Never,
      matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE],
        resources: [configmaps]}]},
  matchConditions: [{name: ours,
    expression: "object.metadata.namespace == 'NS' && object.metadata.name.startsWith('mutated')"}],
  mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: "Object{data: {'k': 'mutated'}}"}}]}}`)
	f.create(`{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingAdmissionPolicyBinding, metadata: {name: NS}, ` +
		`spec: {policyName: NS}}`)
	probe := f.configMap("mutated-probe", "{k: v}")
	require.Eventually(t, func() bool { // until the policy is effective
		require.NoError(t, f.Client.Create(t.Context(), probe.Manifest.DeepCopy()))
		value := f.get(probe.Manifest).Object["data"].(map[string]any)["k"]
		require.NoError(t, f.Client.Delete(t.Context(), probe.Manifest.DeepCopy()))
		return value == "mutated"
	}, deadline, 50*time.Millisecond)
	object := f.configMap("mutated", "{k: v, l: w}")
	require.Equal(t, apply.Created, f.one(object).Action)
	for range 3 {
		f.counted.take()
		require.Equal(t, apply.Unchanged, f.one(object).Action)
		_, writes := f.counted.take()
		require.Zero(t, writes, "fields that admission has changed are not written again")
	}
	version := f.get(object.Manifest).GetResourceVersion()
	f.restart()
	require.Equal(t, apply.Unchanged, f.one(object).Action, "after a restart one write is made, which changes nothing")
	require.Equal(t, version, f.get(object.Manifest).GetResourceVersion())
	f.patch(object.Manifest, "{data: {l: edited}}")
	require.Equal(t, apply.Configured, f.one(object).Action, "an edit is still detected")
}

func TestApply_ManifestVersionChanges(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.one(f.object(`{apiVersion: autoscaling/v1, kind: HorizontalPodAutoscaler, metadata: {name: web, namespace: NS}, ` +
		`spec: {minReplicas: 1, maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, ` +
		`targetCPUUtilizationPercentage: 50}}`))
	require.Equal(t, apply.Configured, f.one(f.object(hpa)).Action)
	require.Equal(t, apply.Unchanged, f.one(f.object(hpa)).Action)
	require.Len(t, f.inventory, 1)
	require.Equal(t, "v2", f.inventory[0].Version)
}

func TestApply_FieldsThatTheAPIServerDrops(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	object := f.object("{apiVersion: v1, kind: Service, metadata: {name: s, namespace: NS}, spec: {ports: [{port: " +
		"80}]}, status: {loadBalancer: {}}}")
	require.Equal(t, apply.Created, f.one(object).Action)
	version := f.get(object.Manifest).GetResourceVersion()
	f.counted.take()
	require.Equal(t, apply.Unchanged, f.one(object).Action)
	f.requireRequests(t, 1, 0, "fields that the API server drops are not sent again")
	f.restart()
	require.Equal(t, apply.Unchanged, f.one(object).Action)
	require.Equal(t, version, f.get(object.Manifest).GetResourceVersion(),
		"after a restart one write is made, which changes nothing")
}
