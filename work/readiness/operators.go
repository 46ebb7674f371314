package readiness

import "k8s.io/apimachinery/pkg/runtime/schema"

// Words that several operators share.
var (
	readyCondition = customRule{conditions: []string{"Ready"}}
	noStatus       = customRule{noStatus: true}
)

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
	// https://argo-cd.readthedocs.io/en/stable/operator-manual/health/ and https://argo-rollouts.readthedocs.io/en/stable/features/specification/
	"argoproj.io": {
		"Application": {field: []string{"health", "status"}, ready: []string{"Healthy", "Suspended"}, failed: []string{"Degraded", "Missing"}},
		"Rollout":     {field: []string{"phase"}, ready: []string{"Healthy"}, failed: []string{"Degraded", "Error", "Failed"}},
		"Workflow":    {field: []string{"phase"}, ready: []string{"Succeeded"}, failed: []string{"Failed", "Error"}, ends: true},
		"AnalysisRun": {field: []string{"phase"}, ready: []string{"Successful"}, failed: []string{"Failed", "Error"}, ends: true},
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
	"postgresql.cnpg.io": {"Cluster": readyCondition, "Backup": {field: []string{"phase"}, ready: []string{"completed"}, failed: []string{"failed"}, ends: true}},
	// https://strimzi.io/docs/operators/latest/configuring
	"kafka.strimzi.io": {
		"Kafka": readyCondition, "KafkaTopic": readyCondition, "KafkaUser": readyCondition, "KafkaConnect": readyCondition,
		"KafkaConnector": readyCondition, "KafkaNodePool": noStatus,
	},
	// https://www.elastic.co/docs/reference/cloud-on-k8s
	"elasticsearch.k8s.elastic.co": {"Elasticsearch": {field: []string{"health"}, ready: []string{"green", "yellow"}, failed: []string{"red"}}},
	"kibana.k8s.elastic.co":        {"Kibana": {field: []string{"health"}, ready: []string{"green"}, failed: []string{"red"}}},
	// https://rook.io/docs/rook/latest/CRDs/specification/
	"ceph.rook.io": {
		"CephCluster":     {field: []string{"phase"}, ready: []string{"Ready"}, failed: []string{"Failure", "Error"}},
		"CephBlockPool":   {field: []string{"phase"}, ready: []string{"Ready"}, failed: []string{"Failure"}},
		"CephFilesystem":  {field: []string{"phase"}, ready: []string{"Ready"}, failed: []string{"Failure"}},
		"CephObjectStore": {field: []string{"phase"}, ready: []string{"Ready", "Connected"}, failed: []string{"Failure"}},
	},
	// https://cluster-api.sigs.k8s.io/reference/api/crd-reference
	"cluster.x-k8s.io": {
		"Cluster":           {field: []string{"phase"}, ready: []string{"Provisioned"}, failed: []string{"Failed"}},
		"Machine":           {field: []string{"phase"}, ready: []string{"Running"}, failed: []string{"Failed"}},
		"MachineDeployment": {field: []string{"phase"}, ready: []string{"Running"}, failed: []string{"Failed"}},
	},
	// https://velero.io/docs/main/api-types/
	"velero.io": {
		"Backup":                {field: []string{"phase"}, ready: []string{"Completed"}, failed: []string{"Failed", "PartiallyFailed", "FailedValidation"}, ends: true},
		"Restore":               {field: []string{"phase"}, ready: []string{"Completed"}, failed: []string{"Failed", "PartiallyFailed", "FailedValidation"}, ends: true},
		"BackupStorageLocation": {field: []string{"phase"}, ready: []string{"Available"}, failed: []string{"Unavailable"}},
		"Schedule":              {field: []string{"phase"}, ready: []string{"Enabled"}, failed: []string{"FailedValidation"}},
	},
	// https://tekton.dev/docs/pipelines/pipelineruns/#monitoring-execution-status
	"tekton.dev": {
		"PipelineRun": {succeeds: "Succeeded", ends: true}, "TaskRun": {succeeds: "Succeeded", ends: true},
		"Pipeline": noStatus, "Task": noStatus,
	},
	// https://olm.operatorframework.io/docs/concepts/crds/
	"operators.coreos.com": {
		"ClusterServiceVersion": {field: []string{"phase"}, ready: []string{"Succeeded"}, failed: []string{"Failed"}},
		"InstallPlan":           {field: []string{"phase"}, ready: []string{"Complete"}, failed: []string{"Failed"}},
		"Subscription":          {field: []string{"state"}, ready: []string{"AtLatestKnown"}, failed: []string{"UpgradeFailed"}},
	},
	// https://kubernetes.io/docs/concepts/storage/volume-snapshots/
	"snapshot.storage.k8s.io": {"VolumeSnapshot": {field: []string{"readyToUse"}, ready: []string{"true"}}, "VolumeSnapshotClass": noStatus},
	// https://kubevirt.io/api-reference/
	"kubevirt.io": {
		"VirtualMachine":         readyCondition,
		"VirtualMachineInstance": {field: []string{"phase"}, ready: []string{"Running", "Succeeded"}, failed: []string{"Failed"}},
	},
	// https://kyverno.io/docs/crds/
	"kyverno.io": {"ClusterPolicy": readyCondition, "Policy": readyCondition},
	// https://open-policy-agent.github.io/gatekeeper/website/docs/constrainttemplates
	"templates.gatekeeper.sh": {"ConstraintTemplate": {field: []string{"created"}, ready: []string{"true"}}},
	// https://www.rabbitmq.com/kubernetes/operator/using-operator
	"rabbitmq.com": {"RabbitmqCluster": {conditions: []string{"AllReplicasReady", "ClusterAvailable"}}},
	// https://github.com/mongodb/mongodb-kubernetes
	"mongodbcommunity.mongodb.com": {"MongoDBCommunity": {field: []string{"phase"}, ready: []string{"Running"}, failed: []string{"Failed"}}},
	// https://jobset.sigs.k8s.io/docs/reference/jobset.v1alpha2/ and https://kueue.sigs.k8s.io/docs/reference/kueue.v1beta1/
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
