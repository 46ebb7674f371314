package v1alpha1_test

import (
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/addon/v1alpha1"
)

// read decodes a text as the API server does, but without setting defaults.
func read[T any](text string) *T {
	object := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), object); err != nil {
		panic(err)
	}
	return object
}

// The add-on metrics is installed on the clusters of two Placements. The Placement canary is first in the list, so its
// settings apply to clusters that both Placements select. The clusters of canary get the next version of the template.
// A change is rolled out to a quarter of the other clusters at a time, and the rollout stops when two clusters failed.
func ExampleAddon() {
	addon := read[v1alpha1.Addon](`
apiVersion: addon.muster.dev/v1alpha1
kind: Addon
metadata:
  name: metrics
spec:
  displayName: Metrics
  description: Collects metrics of all pods.
  configs:
  - group: addon.muster.dev
    resource: addontemplates
    defaults:
    - name: metrics-v1
  - group: addon.muster.dev
    resource: addonconfigs
    defaults:
    - {namespace: fleet, name: everywhere}
  install:
    type: Placements
    placements:
    - namespace: fleet
      name: canary
      configs:
      - {group: addon.muster.dev, resource: addontemplates, name: metrics-v2}
    - namespace: fleet
      name: all
      rollout:
        type: Progressive
        maxConcurrency: 25%
        minSuccessSeconds: 300
        maxFailures: 1
  health:
    type: Lease
  removal:
    deadlineSeconds: 600
`)
	fmt.Println(
		addon.Name,
		"goes to",
		len(addon.Spec.Install.Placements),
		"placements, with",
		len(addon.Spec.Validate()),
		"mistakes",
	)
	// Output:
	// metrics goes to 2 placements, with 0 mistakes
}

// An add-on that consists of a name, a template and a MemberAddon for each of its members.
func ExampleAddonSpec() {
	spec := v1alpha1.AddonSpec{Configs: []v1alpha1.ConfigKind{{
		Group: v1alpha1.GroupName, Resource: "addontemplates", Defaults: []v1alpha1.ObjectName{{Name: "metrics-v1"}},
	}}}
	out, err := yaml.Marshal(spec)
	if err != nil {
		panic(err)
	}
	fmt.Print(string(out))
	// Output:
	// configs:
	// - defaults:
	//   - name: metrics-v1
	//   group: addon.muster.dev
	//   resource: addontemplates
}

// On one member, the add-on has another install namespace, and configurations that replace all others of their kind.
func ExampleMemberAddon() {
	member := read[v1alpha1.MemberAddon](`
apiVersion: addon.muster.dev/v1alpha1
kind: MemberAddon
metadata:
  name: metrics
  namespace: member-east
spec:
  installNamespace: observability
  configs:
  - {group: addon.muster.dev, resource: addonconfigs, namespace: fleet, name: everywhere}
  - {group: addon.muster.dev, resource: addonconfigs, namespace: fleet, name: east}
`)
	fmt.Println(member.Spec.InstallNamespace, len(member.Spec.Configs), len(member.Spec.Validate()))
	// Output:
	// observability 2 0
}

// An AddonConfig with variables for manifests, and with settings of Pods that the manifests do not contain.
func ExampleAddonConfig() {
	config := read[v1alpha1.AddonConfig](`
apiVersion: addon.muster.dev/v1alpha1
kind: AddonConfig
metadata:
  name: everywhere
  namespace: fleet
spec:
  variables:
  - {name: INTERVAL, value: 30s}
  nodePlacement:
    nodeSelector:
      node-role.kubernetes.io/infra: ""
    tolerations:
    - {key: node-role.kubernetes.io/infra, operator: Exists}
  registries:
  - {source: quay.io/example, mirror: mirror.example.com/example}
  proxy:
    https: http://proxy.example.com:3128
    noProxy: .svc,.cluster.local,10.0.0.0/8
  resources:
  - workload: Deployment/collector
    container: collector
    resources:
      requests: {cpu: 100m, memory: 128Mi}
      limits: {memory: 256Mi}
`)
	fmt.Println(len(config.Spec.Variables), config.Spec.Proxy.NoProxy, len(config.Spec.Validate()))
	// Output:
	// 1 .svc,.cluster.local,10.0.0.0/8 0
}

// An add-on without code. It has an agent that reads its settings on the hub with its own credential, a readiness rule,
// and a Job that cleans up before the add-on is removed.
func ExampleAddonTemplate() {
	template := read[v1alpha1.AddonTemplate](`
apiVersion: addon.muster.dev/v1alpha1
kind: AddonTemplate
metadata:
  name: metrics-v1
spec:
  version: v1.2.3
  manifests:
  - apiVersion: v1
    kind: ServiceAccount
    metadata:
      name: collector
  - apiVersion: apps/v1
    kind: Deployment
    metadata:
      name: collector
    spec:
      selector:
        matchLabels: {app: collector}
      template:
        metadata:
          labels: {app: collector, cluster: "${CLUSTER_NAME}"}
        spec:
          serviceAccountName: collector
          containers:
          - name: collector
            image: quay.io/example/collector:v1.2.3
            args: ["--cluster=${CLUSTER_NAME}", "--interval=${INTERVAL}", "--hub=/hub/kubeconfig"]
            volumeMounts:
            - {name: hub, mountPath: /hub}
          volumes:
          - name: hub
            secret: {secretName: metrics-hub-kubeconfig}
  - apiVersion: batch/v1
    kind: Job
    metadata:
      name: collector-cleanup
      annotations:
        addon.muster.dev/pre-delete: "true"
    spec:
      template:
        spec:
          restartPolicy: Never
          containers:
          - {name: cleanup, image: "quay.io/example/collector:v1.2.3", args: [cleanup]}
  manifestOptions:
  - select: {kind: Deployment, name: collector}
    readiness:
      cel: object.status.availableReplicas > 0
    feedback:
    - {name: replicas, jsonPath: .status.availableReplicas}
  registration:
    rules:
    - {apiGroups: [""], resources: [configmaps], resourceNames: [metrics-settings], verbs: [get, watch]}
`)
	fmt.Println(len(template.Spec.Manifests), "manifests, and", len(template.Spec.Validate()), "mistakes")
	// Output:
	// 3 manifests, and 0 mistakes
}

// Validate checks a spec that was not read from an API server, and finds errors that the API server does not find.
func ExampleAddonTemplateSpec_Validate() {
	spec := read[v1alpha1.AddonTemplateSpec](`
manifests:
- apiVersion: v1
  kind: Pod
  metadata:
    name: cleanup
    annotations:
      addon.muster.dev/pre-delete: "true"
  spec:
    containers:
    - {name: cleanup, image: busybox, command: [sh, -c, "rm -r ${DATA:-/data}"]}
`)
	for _, err := range spec.Validate() {
		fmt.Println(err)
	}
	// Output:
	// spec.manifests[0].spec.containers[0].command[2]: Invalid value: a variable is ${NAME}, of letters, digits and '_', not beginning with a digit; as text ${ is $${
	// spec.manifests[0].spec.restartPolicy: Invalid value: "": an object that runs before the removal must come to an end, and this would always start again: set it to Never or OnFailure
}

// The add-on must support the configs of a placement.
func ExampleAddonSpec_Validate() {
	spec := read[v1alpha1.AddonSpec](`
configs:
- {group: addon.muster.dev, resource: addonconfigs}
install:
  type: Placements
  placements:
  - namespace: fleet
    name: all
    configs:
    - {resource: configmaps, namespace: fleet, name: settings}
    rollout: {onFailure: RollBack}
health: {leaseDurationSeconds: 60}
`)
	for _, err := range spec.Validate() {
		fmt.Println(err)
	}
	// Output:
	// spec.install.placements[0].rollout.onFailure: Forbidden: the rollout of an add-on cannot be rolled back, because earlier configurations are not kept: use Halt, and change the configuration back
	// spec.install.placements[0].configs[0]: Invalid value: "configmaps": the kinds of all configs must be among spec.configs: add the kind there, or remove the config
	// spec.health.leaseDurationSeconds: Forbidden: leaseDurationSeconds may only be set with type Lease: remove it, or set the type to Lease
}
