package readiness

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Rules that several operators share.
var (
	readyCondition = customRule{conditions: []string{"Ready"}}
	noStatus       = customRule{noStatus: true}
	vmStatus       = customRule{field: words("updateStatus"), ready: words("operational"), failed: words("failed")}
	elasticHealth  = customRule{field: words("health"), ready: words("green"), failed: words("red")}
	karmadaHealth  = entryRule{
		list: "aggregatedStatus", name: "clusterName", field: "health", notFalse: "applied",
		ready: words("", "Healthy", "Unknown"), failed: words("Unhealthy"),
	}
	compliant = customRule{field: words("compliant"), ready: words("Compliant"), failed: words("NonCompliant")}
)

func words(of ...string) []string { return of }

// phase returns the rule of kinds with status.phase.
func phase(ready, failed []string) customRule {
	return customRule{field: words("phase"), ready: ready, failed: failed}
}

// phaseOfRun returns the rule of kinds with status.phase whose objects run to completion.
func phaseOfRun(ready, failed []string) customRule {
	rule := phase(ready, failed)
	rule.ends = true
	return rule
}

// operatorKinds are the rules for the most used operators, by group and kind. Each group links to the documentation
// of its status.
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
		"GitRepository": readyCondition, "OCIRepository": readyCondition, "Bucket": readyCondition,
		"HelmChart": readyCondition,
	},
	// Application: https://argo-cd.readthedocs.io/en/stable/operator-manual/health/#argocd-app evaluates
	// status.health.status. The section "Health Checks" of the same page lists the values, from the most to the least
	// healthy. A suspended Application waits on purpose, so it is ready.
	// Rollout: https://argo-rollouts.readthedocs.io/en/stable/features/specification/
	// Workflow: https://argo-workflows.readthedocs.io/en/latest/fields/#workflowstatus
	// AnalysisRun: the type AnalysisPhase and its method Completed in
	// https://github.com/argoproj/argo-rollouts/blob/master/pkg/apis/rollouts/v1alpha1/analysis_types.go
	"argoproj.io": {
		"Application": {field: []string{"health", "status"}, ready: []string{"Healthy", "Suspended"},
			failed: []string{"Degraded"}},
		"Rollout": {
			field: words("phase"), ready: words("Healthy"), failed: words("Degraded", "Error", "Failed"),
			failing: words("InvalidSpec"),
		},
		"Workflow":    phaseOfRun(words("Succeeded"), words("Failed", "Error")),
		"AnalysisRun": phaseOfRun(words("Successful"), words("Failed", "Error", "Inconclusive")),
		"Experiment":  phaseOfRun(words("Successful"), words("Failed", "Error", "Inconclusive")),
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
		"Prometheus":      {conditions: []string{"Reconciled", "Available"}},
		"Alertmanager":    {conditions: []string{"Reconciled", "Available"}},
		"ThanosRuler":     {conditions: []string{"Reconciled", "Available"}},
		"PrometheusAgent": {conditions: []string{"Reconciled", "Available"}},
		"ServiceMonitor":  noStatus, "PodMonitor": noStatus, "Probe": noStatus, "PrometheusRule": noStatus,
	},
	// https://gateway-api.sigs.k8s.io/reference/spec/
	"gateway.networking.k8s.io": {
		"GatewayClass":   {conditions: []string{"Accepted"}},
		"ReferenceGrant": noStatus,
	},
	// https://keda.sh/docs/latest/reference/scaledobject-spec/
	"keda.sh": {
		"ScaledObject": {conditions: words("Ready"), failing: words("Fallback")},
		"ScaledJob":    readyCondition, "TriggerAuthentication": noStatus,
	},
	// https://knative.dev/docs/serving/reference/serving-api/
	"serving.knative.dev": {"Service": readyCondition, "Configuration": readyCondition, "Route": readyCondition,
		"Revision": readyCondition},
	// https://docs.crossplane.io/latest/packages/
	"pkg.crossplane.io": {
		"Provider":      {conditions: []string{"Installed", "Healthy"}},
		"Function":      {conditions: []string{"Installed", "Healthy"}},
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
		// While the cluster starts or moves data, its health does not show when that ends.
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
		"Cluster": {
			field: words("phase"), ready: words("Provisioned"), failed: words("Failed"),
			unless: exceptions{notFalse: words("Ready"), errors: words("failureMessage")},
		},
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
		"Subscription": {field: []string{"state"}, ready: []string{"AtLatestKnown"},
			failed: []string{"UpgradeFailed"}, failing: words("CatalogSourcesUnhealthy", "InstallPlanFailed",
				"ResolutionFailed")},
	},
	// https://kubernetes.io/docs/concepts/storage/volume-snapshots/
	"snapshot.storage.k8s.io": {"VolumeSnapshot": {field: []string{"readyToUse"}, ready: []string{"true"}},
		"VolumeSnapshotClass":   noStatus,
		"VolumeSnapshotContent": {field: words("readyToUse"), ready: words("true")}},
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
	"ray.io": {"RayCluster": {field: []string{"state"}, ready: []string{"ready", "suspended"},
		failed: []string{"failed"}}},
	// https://www.kubeflow.org/docs/components/spark-operator/user-guide/working-with-sparkapplication/
	"sparkoperator.k8s.io": {"SparkApplication": {
		field: []string{"applicationState", "state"}, ready: []string{"COMPLETED"}, failed: []string{"FAILED",
			"SUBMISSION_FAILED"}, ends: true,
	}},
	// https://karpenter.sh/docs/concepts/nodeclaims/
	"karpenter.sh": {"NodeClaim": readyCondition, "NodePool": readyCondition},
	// https://knative.dev/docs/install/operator/knative-with-operators/
	"operator.knative.dev": {"KnativeServing": readyCondition, "KnativeEventing": readyCondition},
	// https://kserve.github.io/website/docs/reference/crd-api
	"serving.kserve.io": {"InferenceService": {conditions: words("Ready"), also: &customRule{
		field: words("modelStatus", "transitionStatus"),
		ready: words("", "UpToDate"), failed: words("BlockedByFailedLoad", "InvalidSpec"),
	}}},
	// https://mariadb-operator.github.io/mariadb-operator/latest/api-reference/
	"k8s.mariadb.com": {
		"MariaDB": readyCondition, "Backup": {conditions: words("Complete"), ends: true},
		"SqlJob": {conditions: words("Complete"), ends: true},
	},
	// https://www.keycloak.org/operator/basic-deployment
	"k8s.keycloak.org": {
		"Keycloak":            {conditions: words("Ready"), failing: words("HasErrors")},
		"KeycloakRealmImport": {conditions: words("Done"), failing: words("HasErrors")},
	},
	// https://developer.1password.com/docs/k8s/operator/
	"onepassword.com": {"OnePasswordItem": readyCondition},
	// https://grafana.github.io/grafana-operator/docs/api/
	"grafana.integreatly.org": {
		"Grafana": {
			field: words("stageStatus"), ready: words("success"), failed: words("failed"),
			also: &customRule{field: words("stage"), ready: words("complete")},
		},
		"GrafanaDashboard": {conditions: words("DashboardSynchronized")},
		"GrafanaFolder":    {conditions: words("FolderSynchronized")},
		"GrafanaDatasource": {
			unless: exceptions{
				errors: words("NoMatchingInstances"), required: words("hash"), notFalse: words("DatasourceSynchronized"),
			},
		},
	},
	// https://projectcontour.io/docs/main/config/api/
	"projectcontour.io": {"HTTPProxy": {conditions: words("Valid")}, "ExtensionService": {conditions: words("Valid")}},
	// https://docs.flagger.app/usage/how-it-works#canary-status
	"flagger.app": {"Canary": phase(words("Initialized", "Succeeded"), words("Failed"))},
	// https://camel.apache.org/camel-k/latest/running/running.html
	"camel.apache.org": {"Integration": phase(words("Running"), words("Error"))},
	// https://github.com/minio/operator/blob/master/docs/tenant_crd.adoc
	"minio.min.io": {"Tenant": {field: words("currentState"), ready: words("Initialized"), failed: words(
		"Another MinIO Tenant already exists in the namespace", "Different versions across MinIO Pools",
		"Pool Decommissioning Not Allowed", "Statefulset not controlled by operator",
		"Tenant credentials are not set properly",
	)}},
	// https://postgres-operator.readthedocs.io/en/latest/administrator/
	"acid.zalan.do": {"postgresql": {
		field: words("PostgresClusterStatus"), ready: words("Running"),
		failed: words("CreateFailed", "UpdateFailed", "SyncFailed", "Invalid"),
	}},
	// https://docs.percona.com/percona-operator-for-mongodb/ and https://docs.percona.com/percona-operator-for-mysql/pxc/
	"psmdb.percona.com": {"PerconaServerMongoDB": {field: words("state"), ready: words("ready", "paused"),
		failed: words("error")}},
	"pxc.percona.com": {"PerconaXtraDBCluster": {field: words("state"), ready: words("ready", "paused"),
		failed: words("error")}},
	// https://github.com/Altinity/clickhouse-operator/tree/master/docs
	"clickhouse.altinity.com": {"ClickHouseInstallation": {
		field: words("status"), ready: words("Completed"), failed: words("Failed", "Aborted"),
	}},
	"clickhouse-keeper.altinity.com": {"ClickHouseKeeperInstallation": {
		field: words("status"), ready: words("Completed"), failed: words("Failed", "Aborted"),
	}},
	// https://nightlies.apache.org/flink/flink-kubernetes-operator-docs-main/docs/custom-resource/reference/
	"flink.apache.org": {"FlinkDeployment": {field: words("jobManagerDeploymentStatus"), ready: words("READY"),
		failed: words("ERROR")}},
	// https://github.com/banzaicloud/koperator
	"kafka.banzaicloud.io": {"KafkaCluster": {field: words("state"), ready: words("ClusterRunning"), also: &customRule{
		field: words("cruiseControlTopicStatus"), ready: words("", "CruiseControlTopicReady"),
	}}},
	// https://docs.victoriametrics.com/operator/api/
	"operator.victoriametrics.com": {
		"VMAgent": vmStatus, "VMAlert": vmStatus, "VMAuth": vmStatus, "VMSingle": vmStatus, "VMCluster": vmStatus,
		"VMAlertmanager": vmStatus,
	},
	// https://www.elastic.co/docs/reference/cloud-on-k8s
	"beat.k8s.elastic.co":     {"Beat": elasticHealth},
	"logstash.k8s.elastic.co": {"Logstash": elasticHealth},
	"agent.k8s.elastic.co":    {"Agent": elasticHealth},
	"apm.k8s.elastic.co":      {"ApmServer": elasticHealth},
	// https://kiali.io/docs/installation/installation-guide/ and https://www.jaegertracing.io/docs/1.76/operator/
	"kiali.io":         {"Kiali": {conditions: words("Successful"), failing: words("Failure")}},
	"jaegertracing.io": {"Jaeger": phase(words("Running"), words("Failed"))},
	// https://docs.openshift.com/container-platform/latest/rest_api/
	"operator.openshift.io": {"IngressController": {
		conditions: words("Admitted", "Available"), failing: words("Degraded"),
		unless: exceptions{unfinished: words("Progressing"), notFalse: words("DeploymentReplicasAllAvailable")},
	}},
	// https://open-cluster-management.io/docs/getting-started/integration/policy-controllers/
	"policy.open-cluster-management.io": {
		"Policy": compliant, "ConfigurationPolicy": compliant, "CertificatePolicy": compliant,
		"OperatorPolicy": {field: compliant.field, ready: compliant.ready, failed: compliant.failed,
			also: &customRule{conditions: words("Compliant")}},
	},
	// https://karmada.io/docs/reference/kubernetes-api/work-resources/resource-binding-v1alpha2
	"work.karmada.io": {
		"ResourceBinding":        {conditions: words("FullyApplied"), entries: karmadaHealth},
		"ClusterResourceBinding": {conditions: words("FullyApplied"), entries: karmadaHealth},
	},
	// https://github.com/kubevirt/containerized-data-importer/blob/main/doc/datavolumes.md
	"cdi.kubevirt.io": {"DataVolume": phase(words("Succeeded"), words("Failed"))},
	// https://github.com/kube-object-storage/lib-bucket-provisioner
	"objectbucket.io": {"ObjectBucketClaim": phase(words("Bound"), words("Failed"))},
	// https://cloud.google.com/kubernetes-engine/docs/how-to/managed-certs
	"networking.gke.io": {"ManagedCertificate": {
		field: words("certificateStatus"), ready: words("Active"), failed: words("ProvisioningFailed",
			"ProvisioningFailedPermanently", "RenewalFailed"),
	}},
	// https://docs.netapp.com/us-en/trident/trident-use/manage_tbc.html
	"trident.netapp.io": {
		"TridentBackendConfig": {field: words("lastOperationStatus"), ready: words("Success"), failed: words("Failed")},
		"TridentOrchestrator":  {field: words("status"), ready: words("Installed"), failed: words("Failed", "Error")},
	},
	// https://docs.datadoghq.com/containers/guide/cluster_agent_autoscaling_metrics/
	"datadoghq.com": {"DatadogMetric": {conditions: words("Valid"), failing: words("Error")}},
	// https://cloud.google.com/config-connector/docs/how-to/install-upgrade-uninstall
	"core.cnrm.cloud.google.com": {
		"ConfigConnector":        {field: words("healthy"), ready: words("true"), failed: words("false")},
		"ConfigConnectorContext": {field: words("healthy"), ready: words("true"), failed: words("false")},
	},
	// https://ansible.readthedocs.io/projects/awx-resource-operator/
	"tower.ansible.com": {"AnsibleJob": {
		field: words("ansibleJobResult", "status"), ready: words("successful"), failed: words("failed", "error", "canceled"),
		ends: true,
	}},
	// https://istio.io/latest/docs/reference/config/
	"networking.istio.io": {"VirtualService": noStatus, "DestinationRule": noStatus, "Gateway": noStatus,
		"ServiceEntry": noStatus, "Sidecar": noStatus},
	"security.istio.io": {"AuthorizationPolicy": noStatus, "PeerAuthentication": noStatus,
		"RequestAuthentication": noStatus},
	// https://doc.traefik.io/traefik/reference/routing-configuration/kubernetes/crd/
	"traefik.io": {"IngressRoute": noStatus, "Middleware": noStatus, "TLSOption": noStatus},
}

// kindFuncs are the kinds of operators that need more than a customRule.
var kindFuncs = map[schema.GroupKind]Func{
	// https://gateway-api.sigs.k8s.io/reference/spec/
	{Group: "gateway.networking.k8s.io", Kind: "Gateway"}:          gateway,
	{Group: "gateway.networking.k8s.io", Kind: "HTTPRoute"}:        route,
	{Group: "gateway.networking.k8s.io", Kind: "GRPCRoute"}:        route,
	{Group: "gateway.networking.k8s.io", Kind: "TLSRoute"}:         route,
	{Group: "gateway.networking.k8s.io", Kind: "TCPRoute"}:         route,
	{Group: "gateway.networking.k8s.io", Kind: "UDPRoute"}:         route,
	{Group: "gateway.networking.k8s.io", Kind: "BackendTLSPolicy"}: attachedPolicy,
	// https://cluster-api.sigs.k8s.io/tasks/automated-machine-management/healthchecking
	{Group: "cluster.x-k8s.io", Kind: "MachineHealthCheck"}: machineHealthCheck,
	// https://docs.openshift.com/container-platform/latest/applications/deployments/what-deployments-are.html
	{Group: "apps.openshift.io", Kind: "DeploymentConfig"}: deploymentConfig,
	// https://github.com/gardener/gardener/blob/master/docs/usage/shoot/shoot_status.md
	{Group: "core.gardener.cloud", Kind: "Shoot"}: shoot,
	// https://github.com/open-telemetry/opentelemetry-operator/blob/main/docs/api/opentelemetrycollectors.md
	{Group: "opentelemetry.io", Kind: "OpenTelemetryCollector"}: collector,
	// https://www.elastic.co/docs/reference/cloud-on-k8s
	{Group: "elasticsearch.k8s.elastic.co", Kind: "Elasticsearch"}: elasticsearch,
	// https://docs.openshift.com/container-platform/latest/rest_api/network_apis/route-route-openshift-io-v1.html
	{Group: "route.openshift.io", Kind: "Route"}: openShiftRoute,
}

// knownCustom returns the Func for a kind of custom resources; nil: there is none.
func knownCustom(kind schema.GroupKind) Func {
	if known := kindFuncs[kind]; known != nil {
		return known
	}
	for _, table := range []map[string]map[string]customRule{operatorKinds, reportingKinds} {
		if rule, known := table[kind.Group][kind.Kind]; known {
			return ruleFunc(rule)
		}
	}
	// https://docs.solo.io/gloo-edge/latest/reference/api/github.com/solo-io/solo-kit/api/v1/status.proto.sk/
	if kind.Group == "gloo.solo.io" || kind.Group == "gateway.solo.io" {
		return gloo
	}
	if strings.HasPrefix(kind.Kind, "ProviderConfig") || notManaged[kind.Group] {
		return nil
	}
	for suffix, rule := range operatorGroups {
		if strings.HasSuffix(kind.Group, suffix) {
			return ruleFunc(rule)
		}
	}
	return nil
}

// notManaged are the groups of Crossplane itself, whose kinds are not managed resources.
var notManaged = map[string]bool{
	"apiextensions.crossplane.io": true, "ops.crossplane.io": true, "pkg.crossplane.io": true,
	"protection.crossplane.io": true,
	"secrets.crossplane.io":    true, "stacks.crossplane.io": true,
}

// operatorGroups are rules for all kinds of the groups with a suffix. They are for operators that have a kind for
// each resource of a cloud.
var operatorGroups = map[string]customRule{
	// https://docs.crossplane.io/latest/managed-resources/managed-resources/#conditions
	".crossplane.io": {conditions: words("Synced", "Ready")}, ".upbound.io": {conditions: words("Synced", "Ready")},
	// https://aws-controllers-k8s.github.io/community/reference/
	".services.k8s.aws": {conditions: words("ACK.ResourceSynced"), failing: words("ACK.Terminal")},
	// https://cloud.google.com/config-connector/docs/how-to/monitoring-your-resources
	".cnrm.cloud.google.com": readyCondition,
}
