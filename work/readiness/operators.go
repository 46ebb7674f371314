package readiness

import "k8s.io/apimachinery/pkg/runtime/schema"

// Words that several operators share.
var (
	readyCondition = customRule{conditions: []string{"Ready"}}
	noStatus       = customRule{noStatus: true}
)

func words(of ...string) []string { return of }

// phase is the rule of kinds with status.phase.
func phase(ready, failed []string) customRule {
	return customRule{field: words("phase"), ready: ready, failed: failed}
}

// phaseOfRun is that of kinds which end.
func phaseOfRun(ready, failed []string) customRule {
	rule := phase(ready, failed)
	rule.ends = true
	return rule
}

// operatorKinds are the kinds of the most used operators, by group. Each group names where its status is documented.
var operatorKinds = map[string]map[string]customRule{
	// https://cert-manager.io/docs/reference/api-docs/
	"cert-manager.io": {
		"Certificate": readyCondition, "Issuer": readyCondition, "ClusterIssuer": readyCondition,
		"CertificateRequest": {conditions: []string{"Ready"}, failing: []string{"Denied", "InvalidRequest"}},
	},
	// https://cert-manager.io/docs/trust/trust-manager/api-reference/
	"trust.cert-manager.io": {"Bundle": {conditions: []string{"Synced"}}},
	// https://fluxcd.io/flux/components/
	"kustomize.toolkit.fluxcd.io": {"Kustomization": {conditions: []string{"Ready"}, failing: []string{"Stalled"}}},
	"helm.toolkit.fluxcd.io":      {"HelmRelease": {conditions: []string{"Ready"}, failing: []string{"Stalled"}}},
	"source.toolkit.fluxcd.io": {
		"GitRepository": readyCondition, "OCIRepository": readyCondition, "Bucket": readyCondition, "HelmChart": readyCondition,
	},
	// Application: https://argo-cd.readthedocs.io/en/stable/operator-manual/health/#argocd-app evaluates
	// status.health.status. The section "Health Checks" of the same page lists the values, from the most to the least
	// healthy. A suspended Application waits on purpose, so it is ready.
	// Rollout: https://argo-rollouts.readthedocs.io/en/stable/features/specification/
	// Workflow: https://argo-workflows.readthedocs.io/en/latest/fields/#workflowstatus
	// AnalysisRun: the type AnalysisPhase and its method Completed in
	// https://github.com/argoproj/argo-rollouts/blob/master/pkg/apis/rollouts/v1alpha1/analysis_types.go
	"argoproj.io": {
		"Application": {field: []string{"health", "status"}, ready: []string{"Healthy", "Suspended"}, failed: []string{"Degraded"}},
		"Rollout": {
			field: words("phase"), ready: words("Healthy"), failed: words("Degraded", "Error", "Failed"), failing: words("InvalidSpec"),
		},
		"Workflow":    phaseOfRun(words("Succeeded"), words("Failed", "Error")),
		"AnalysisRun": phaseOfRun(words("Successful"), words("Failed", "Error", "Inconclusive")),
	},
	// https://external-secrets.io/latest/api/spec/
	"external-secrets.io": {
		"ExternalSecret": readyCondition, "ClusterExternalSecret": readyCondition, "SecretStore": readyCondition,
		"ClusterSecretStore": readyCondition, "PushSecret": readyCondition,
	},
	// https://github.com/bitnami-labs/sealed-secrets
	"bitnami.com": {"SealedSecret": {conditions: []string{"Synced"}}},
	// https://prometheus-operator.dev/docs/api-reference/api/
	"monitoring.coreos.com": {
		"Prometheus": {conditions: []string{"Reconciled", "Available"}}, "Alertmanager": {conditions: []string{"Reconciled", "Available"}},
		"ThanosRuler": {conditions: []string{"Reconciled", "Available"}}, "PrometheusAgent": {conditions: []string{"Reconciled", "Available"}},
		"ServiceMonitor": noStatus, "PodMonitor": noStatus, "Probe": noStatus, "PrometheusRule": noStatus,
	},
	// https://gateway-api.sigs.k8s.io/reference/spec/
	"gateway.networking.k8s.io": {
		"GatewayClass": {conditions: []string{"Accepted"}}, "Gateway": {conditions: []string{"Accepted", "Programmed"}},
		"ReferenceGrant": noStatus,
	},
	// https://keda.sh/docs/latest/reference/scaledobject-spec/
	"keda.sh": {"ScaledObject": readyCondition, "ScaledJob": readyCondition, "TriggerAuthentication": noStatus},
	// https://knative.dev/docs/serving/reference/serving-api/
	"serving.knative.dev": {"Service": readyCondition, "Configuration": readyCondition, "Route": readyCondition, "Revision": readyCondition},
	// https://docs.crossplane.io/latest/packages/
	"pkg.crossplane.io": {
		"Provider": {conditions: []string{"Installed", "Healthy"}}, "Function": {conditions: []string{"Installed", "Healthy"}},
		"Configuration": {conditions: []string{"Installed", "Healthy"}},
	},
	// https://cloudnative-pg.io/documentation/current/cloudnative-pg.v1/
	"postgresql.cnpg.io": {"Cluster": readyCondition, "Backup": phaseOfRun(words("completed"), words("failed"))},
	// https://strimzi.io/docs/operators/latest/configuring
	"kafka.strimzi.io": {
		"Kafka": readyCondition, "KafkaTopic": readyCondition, "KafkaUser": readyCondition, "KafkaConnect": readyCondition,
		"KafkaConnector": readyCondition, "KafkaNodePool": noStatus,
	},
	// https://www.elastic.co/docs/reference/cloud-on-k8s
	"elasticsearch.k8s.elastic.co": {"Elasticsearch": {
		// While it starts or moves data, its health says nothing about the end of that.
		field: words("phase"), ready: words("Ready"), failed: words("Invalid"),
		also: &customRule{field: words("health"), ready: words("green", "yellow"), failed: words("red")},
	}},
	"kibana.k8s.elastic.co": {"Kibana": {field: []string{"health"}, ready: []string{"green"}, failed: []string{"red"}}},
	// https://rook.io/docs/rook/latest/CRDs/specification/
	"ceph.rook.io": {
		"CephCluster":     phase(words("Ready"), words("Failure", "Error")),
		"CephBlockPool":   phase(words("Ready"), words("Failure")),
		"CephFilesystem":  phase(words("Ready"), words("Failure")),
		"CephObjectStore": phase(words("Ready", "Connected"), words("Failure")),
	},
	// https://cluster-api.sigs.k8s.io/reference/api/crd-reference
	"cluster.x-k8s.io": {
		"Cluster":           phase(words("Provisioned"), words("Failed")),
		"Machine":           phase(words("Running"), words("Failed")),
		"MachineDeployment": phase(words("Running"), words("Failed")),
	},
	// https://velero.io/docs/main/api-types/
	"velero.io": {
		"Backup":                phaseOfRun(words("Completed"), words("Failed", "PartiallyFailed", "FailedValidation")),
		"Restore":               phaseOfRun(words("Completed"), words("Failed", "PartiallyFailed", "FailedValidation")),
		"BackupStorageLocation": phase(words("Available"), words("Unavailable")),
		"Schedule":              phase(words("Enabled"), words("FailedValidation")),
	},
	// https://tekton.dev/docs/pipelines/pipelineruns/#monitoring-execution-status
	"tekton.dev": {
		"PipelineRun": {succeeds: "Succeeded", ends: true}, "TaskRun": {succeeds: "Succeeded", ends: true},
		"Pipeline": noStatus, "Task": noStatus,
	},
	// https://olm.operatorframework.io/docs/concepts/crds/
	"operators.coreos.com": {
		"ClusterServiceVersion": phase(words("Succeeded"), words("Failed")),
		"InstallPlan":           phase(words("Complete"), words("Failed")),
		"Subscription":          {field: []string{"state"}, ready: []string{"AtLatestKnown"}, failed: []string{"UpgradeFailed"}, failing: words("CatalogSourcesUnhealthy", "InstallPlanFailed", "ResolutionFailed")},
	},
	// https://kubernetes.io/docs/concepts/storage/volume-snapshots/
	"snapshot.storage.k8s.io": {"VolumeSnapshot": {field: []string{"readyToUse"}, ready: []string{"true"}}, "VolumeSnapshotClass": noStatus},
	// https://kubevirt.io/api-reference/
	"kubevirt.io": {
		"VirtualMachine":         readyCondition,
		"VirtualMachineInstance": phase(words("Running", "Succeeded"), words("Failed")),
	},
	// https://kyverno.io/docs/crds/
	"kyverno.io": {"ClusterPolicy": readyCondition, "Policy": readyCondition},
	// https://open-policy-agent.github.io/gatekeeper/website/docs/constrainttemplates
	"templates.gatekeeper.sh": {"ConstraintTemplate": {field: []string{"created"}, ready: []string{"true"}}},
	// https://www.rabbitmq.com/kubernetes/operator/using-operator
	"rabbitmq.com": {"RabbitmqCluster": {conditions: []string{"AllReplicasReady", "ClusterAvailable"}}},
	// https://github.com/mongodb/mongodb-kubernetes
	"mongodbcommunity.mongodb.com": {"MongoDBCommunity": phase(words("Running"), words("Failed"))},
	// https://jobset.sigs.k8s.io/docs/reference/jobset.v1alpha2/ and
	// https://kueue.sigs.k8s.io/docs/reference/kueue.v1beta1/
	"jobset.x-k8s.io": {"JobSet": {succeeds: "Completed", failing: []string{"Failed"}, ends: true}},
	"kueue.x-k8s.io":  {"ClusterQueue": {conditions: []string{"Active"}}, "LocalQueue": {conditions: []string{"Active"}}},
	// https://docs.ray.io/en/latest/cluster/kubernetes/references.html
	"ray.io": {"RayCluster": {field: []string{"state"}, ready: []string{"ready", "suspended"}, failed: []string{"failed"}}},
	// https://www.kubeflow.org/docs/components/spark-operator/user-guide/working-with-sparkapplication/
	"sparkoperator.k8s.io": {"SparkApplication": {
		field: []string{"applicationState", "state"}, ready: []string{"COMPLETED"}, failed: []string{"FAILED", "SUBMISSION_FAILED"}, ends: true,
	}},
	// https://istio.io/latest/docs/reference/config/
	"networking.istio.io": {"VirtualService": noStatus, "DestinationRule": noStatus, "Gateway": noStatus, "ServiceEntry": noStatus, "Sidecar": noStatus},
	"security.istio.io":   {"AuthorizationPolicy": noStatus, "PeerAuthentication": noStatus, "RequestAuthentication": noStatus},
	// https://doc.traefik.io/traefik/reference/routing-configuration/kubernetes/crd/
	"traefik.io": {"IngressRoute": noStatus, "Middleware": noStatus, "TLSOption": noStatus},
}

// routes are the kinds of routes of the Gateway API.
var routes = map[string]bool{"HTTPRoute": true, "GRPCRoute": true, "TLSRoute": true, "TCPRoute": true, "UDPRoute": true}

// knownCustom returns what is known of a kind of custom resources; nil: nothing.
func knownCustom(kind schema.GroupKind) Func {
	if kind.Group == "gateway.networking.k8s.io" && routes[kind.Kind] {
		return route
	}
	if rule, known := operatorKinds[kind.Group][kind.Kind]; known {
		return ruleFunc(rule)
	}
	return nil
}
