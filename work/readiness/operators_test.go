package readiness_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/work/readiness"
)

// Statuses that several operators write.
const (
	isReady     = "conditions: [{type: Ready, status: 'True'}]"
	notReady    = "conditions: [{type: Ready, status: 'False', reason: Pending}]"
	readyFailed = "conditions: [{type: Ready, status: 'False', reason: ReconcileFailed}]"
	isAvailable = "conditions: [{type: Available, status: 'True'}, {type: Reconciled, status: 'True'}]"
	degraded    = "conditions: [{type: Available, status: Degraded}, {type: Reconciled, status: 'True'}]"
	admitted    = "{type: Admitted, status: 'True'}, {type: Available, status: 'True'}"
	// fullyApplied is the status of a binding of Karmada.
	fullyApplied = "conditions: [{type: FullyApplied, status: 'True'}]"
	isActive     = "conditions: [{type: Active, status: 'True'}]"
	isHealthy    = "conditions: [{type: Installed, status: 'True'}, {type: Healthy, status: 'True'}]"
	unhealthy    = "conditions: [{type: Installed, status: 'True'}, {type: Healthy, status: 'False', reason: " +
		"UnhealthyPackageRevision}]"
	routed = "parents: [{parentRef: {name: a}, conditions: [{type: Accepted, status: 'True'}, {type: ResolvedRefs, " +
		"status: 'True'}]}]"
	unrouted = "parents: [{parentRef: {name: a}, conditions: [{type: Accepted, status: 'True'}, {type: ResolvedRefs, " +
		"status: 'False', reason: BackendNotFound}]}]"
)

// operatorStatuses has for each kind with a rule a status that its operator writes when the object is ready, and
// other statuses with their results. "-" is an object without a status.
var operatorStatuses = map[string][]struct {
	status string
	want   readiness.Status
}{
	"cert-manager.io Certificate": {{isReady, yes}, {notReady, wait}},
	"cert-manager.io Issuer": {
		{isReady, yes},
		{"conditions: [{type: Ready, status: 'False', reason: ErrorConfig}]", no},
	},
	"cert-manager.io ClusterIssuer":      {{isReady, yes}, {notReady, wait}},
	"cert-manager.io CertificateRequest": {{isReady, yes}, {"conditions: [{type: Denied, status: 'True'}]", no}},
	"trust.cert-manager.io Bundle": {
		{"conditions: [{type: Synced, status: 'True'}]", yes},
		{"conditions: [{type: Synced, status: 'False', reason: SourceNotFound}]", wait},
	},

	"kustomize.toolkit.fluxcd.io Kustomization": {
		{isReady, yes},
		{readyFailed, no},
		{"conditions: [{type: Stalled, status: 'True'}]", no},
	},
	"helm.toolkit.fluxcd.io HelmRelease": {
		{isReady, yes},
		{"conditions: [{type: Ready, status: Unknown, reason: Progressing}]", wait},
	},
	"source.toolkit.fluxcd.io GitRepository": {{isReady, yes}, {readyFailed, no}},
	"source.toolkit.fluxcd.io OCIRepository": {{isReady, yes}, {notReady, wait}},
	"source.toolkit.fluxcd.io Bucket":        {{isReady, yes}, {notReady, wait}},
	"source.toolkit.fluxcd.io HelmChart":     {{isReady, yes}, {notReady, wait}},

	"argoproj.io Application": {
		{"health: {status: Healthy}", yes}, {"health: {status: Suspended}", yes}, {"health: {status: Progressing}", wait},
		{"health: {status: Missing}", wait}, {"health: {status: Unknown}", wait}, {"health: {status: Degraded}", no},
	},
	"argoproj.io Rollout": {
		{"phase: Healthy", yes},
		{"phase: Paused", wait},
		{"phase: Degraded", no},
		{"{phase: Healthy, conditions: [{type: InvalidSpec, status: 'True'}]}", no},
	},
	"argoproj.io Workflow": {{"phase: Succeeded", yes}, {"phase: Running", wait}, {"phase: Error", no}},
	"argoproj.io AnalysisRun": {
		{"phase: Successful", yes}, {"phase: Pending", wait}, {"phase: Running", wait},
		{"phase: Failed", no}, {"phase: Error", no}, {"phase: Inconclusive", no},
	},

	"external-secrets.io ExternalSecret": {
		{isReady, yes},
		{"conditions: [{type: Ready, status: 'False', reason: SecretSyncedError}]", no},
	},
	"external-secrets.io ClusterExternalSecret": {{isReady, yes}, {notReady, wait}},
	"external-secrets.io SecretStore": {
		{isReady, yes},
		{"conditions: [{type: Ready, status: 'False', reason: InvalidProviderConfig}]", no},
	},
	"external-secrets.io ClusterSecretStore": {{isReady, yes}, {notReady, wait}},
	"external-secrets.io PushSecret":         {{isReady, yes}, {notReady, wait}},
	"bitnami.com SealedSecret": {
		{"conditions: [{type: Synced, status: 'True'}]", yes},
		{"conditions: [{type: Synced, status: 'False'}]", wait},
	},

	"monitoring.coreos.com Prometheus":      {{isAvailable, yes}, {degraded, wait}},
	"monitoring.coreos.com Alertmanager":    {{isAvailable, yes}, {degraded, wait}},
	"monitoring.coreos.com ThanosRuler":     {{isAvailable, yes}, {degraded, wait}},
	"monitoring.coreos.com PrometheusAgent": {{isAvailable, yes}, {degraded, wait}},
	"monitoring.coreos.com ServiceMonitor":  {{"-", yes}},
	"monitoring.coreos.com PodMonitor":      {{"-", yes}},
	"monitoring.coreos.com Probe":           {{"-", yes}},
	"monitoring.coreos.com PrometheusRule":  {{"-", yes}},

	"gateway.networking.k8s.io GatewayClass": {
		{"conditions: [{type: Accepted, status: 'True'}]", yes},
		{"conditions: [{type: Accepted, status: Unknown}]", wait},
	},
	"gateway.networking.k8s.io Gateway": {
		{"conditions: [{type: Accepted, status: 'True'}, {type: Programmed, status: 'True'}]", yes},
		{"conditions: [{type: Accepted, status: 'True'}]", wait},
		{"{conditions: [{type: Accepted, status: 'True'}, {type: Programmed, status: 'True'}], listeners: [{name: a, " +
			"conditions: [{type: ResolvedRefs, status: 'False'}]}]}", no},
		{"conditions: [{type: Accepted, status: 'True'}, {type: Programmed, status: 'True'}, {type: ResolvedRefs, status: " +
			"'False'}]", no}},
	"gateway.networking.k8s.io ReferenceGrant": {{"-", yes}},
	"gateway.networking.k8s.io HTTPRoute": {
		{routed, yes},
		{unrouted, wait},
		{strings.Replace(routed, "[{type", "[{type: Programmed, status: 'False'}, {type", 1), wait},
	},
	"gateway.networking.k8s.io GRPCRoute": {{routed, yes}, {unrouted, wait}},
	"gateway.networking.k8s.io TLSRoute":  {{routed, yes}, {unrouted, wait}},
	"gateway.networking.k8s.io TCPRoute":  {{routed, yes}, {unrouted, wait}},
	"gateway.networking.k8s.io UDPRoute":  {{routed, yes}, {unrouted, wait}},

	"keda.sh ScaledObject": {
		{isReady, yes},
		{"conditions: [{type: Ready, status: 'False', reason: ScaledObjectCheckFailed}]", no},
		{"conditions: [{type: Ready, status: 'True'}, {type: Fallback, status: 'True'}]", no},
	},
	"keda.sh ScaledJob":             {{isReady, yes}, {notReady, wait}},
	"keda.sh TriggerAuthentication": {{"-", yes}},
	"serving.knative.dev Service": {
		{isReady, yes},
		{"conditions: [{type: Ready, status: 'False', reason: RevisionFailed}]", no},
	},
	"serving.knative.dev Configuration": {{isReady, yes}, {notReady, wait}},
	"serving.knative.dev Route":         {{isReady, yes}, {notReady, wait}},
	"serving.knative.dev Revision": {
		{isReady, yes},
		{"conditions: [{type: Ready, status: Unknown, reason: Deploying}]", wait},
	},
	"pkg.crossplane.io Provider":      {{isHealthy, yes}, {unhealthy, wait}},
	"pkg.crossplane.io Function":      {{isHealthy, yes}, {unhealthy, wait}},
	"pkg.crossplane.io Configuration": {{isHealthy, yes}, {unhealthy, wait}},

	"postgresql.cnpg.io Cluster": {
		{"{phase: Cluster in healthy state, " + isReady + "}", yes},
		{notReady, wait},
	},
	"postgresql.cnpg.io Backup": {
		{"phase: completed", yes},
		{"phase: running", wait},
		{"phase: failed", no},
	},
	"kafka.strimzi.io Kafka":          {{isReady, yes}, {notReady, wait}},
	"kafka.strimzi.io KafkaTopic":     {{isReady, yes}, {notReady, wait}},
	"kafka.strimzi.io KafkaUser":      {{isReady, yes}, {notReady, wait}},
	"kafka.strimzi.io KafkaConnect":   {{isReady, yes}, {notReady, wait}},
	"kafka.strimzi.io KafkaConnector": {{isReady, yes}, {notReady, wait}},
	"kafka.strimzi.io KafkaNodePool":  {{"-", yes}},
	"elasticsearch.k8s.elastic.co Elasticsearch": {
		{"{phase: Ready, health: green}", yes},
		{"{phase: Ready, health: red}", no},
		{"{phase: Ready, health: green, availableNodes: 2}\nspec: {nodeSets: [{count: 2}, {count: 1}]}", wait},
		{"{phase: Ready, health: green, availableNodes: 3}\nspec: {nodeSets: [{count: 2}, {count: 1}]}", yes},
		{"{phase: ApplyingChanges, health: red}", wait},
		{"{phase: Invalid, health: green}", no},
	},
	"kibana.k8s.elastic.co Kibana": {{"health: green", yes}, {"health: red", no}},
	"mongodbcommunity.mongodb.com MongoDBCommunity": {
		{"phase: Running", yes},
		{"phase: Pending", wait},
		{"phase: Failed", no},
	},
	"rabbitmq.com RabbitmqCluster": {
		{"conditions: [{type: AllReplicasReady, status: 'True'}, {type: ClusterAvailable, status: 'True'}]", yes},
		{"conditions: [{type: AllReplicasReady, status: 'False', reason: NotAllPodsReady}]", wait},
	},
	"ceph.rook.io CephCluster":     {{"phase: Ready", yes}, {"phase: Progressing", wait}, {"phase: Failure", no}},
	"ceph.rook.io CephBlockPool":   {{"phase: Ready", yes}, {"phase: Failure", no}},
	"ceph.rook.io CephFilesystem":  {{"phase: Ready", yes}, {"phase: Failure", no}},
	"ceph.rook.io CephObjectStore": {{"phase: Connected", yes}, {"phase: Failure", no}},

	"cluster.x-k8s.io Cluster": {
		{"phase: Provisioned", yes},
		{"phase: Provisioning", wait},
		{"phase: Failed", no},
		{"phase: Provisioned, conditions: [{type: Ready, status: 'False', reason: Unreachable}]", wait},
		{"phase: Provisioned, failureMessage: no quota", no},
	},
	"cluster.x-k8s.io Machine": {
		{"phase: Running", yes},
		{"phase: Provisioned", wait},
		{"phase: Failed", no},
	},
	"cluster.x-k8s.io MachineDeployment": {
		{"phase: Running", yes},
		{"phase: ScalingUp", wait},
		{"phase: Failed", no},
	},
	"velero.io Backup": {
		{"phase: Completed", yes},
		{"phase: InProgress", wait},
		{"phase: PartiallyFailed", no},
	},
	"velero.io Restore": {
		{"phase: Completed", yes},
		{"phase: InProgress", wait},
		{"phase: FailedValidation", no},
	},
	"velero.io BackupStorageLocation": {{"phase: Available", yes}, {"phase: Unavailable", no}},
	"velero.io Schedule":              {{"phase: Enabled", yes}, {"phase: FailedValidation", no}},

	"tekton.dev PipelineRun": {
		{"conditions: [{type: Succeeded, status: 'True'}]", yes},
		{"conditions: [{type: Succeeded, status: Unknown, reason: Running}]", wait},
		{"conditions: [{type: Succeeded, status: 'False'}]", no},
	},
	"tekton.dev TaskRun": {
		{"conditions: [{type: Succeeded, status: 'True'}]", yes},
		{"conditions: [{type: Succeeded, status: 'False'}]", no},
	},
	"tekton.dev Pipeline": {{"-", yes}},
	"tekton.dev Task":     {{"-", yes}},

	"operators.coreos.com ClusterServiceVersion": {
		{"phase: Succeeded", yes},
		{"phase: Installing", wait},
		{"phase: Failed", no},
	},
	"operators.coreos.com InstallPlan": {
		{"phase: Complete", yes},
		{"phase: RequiresApproval", wait},
		{"phase: Failed", no},
	},
	"operators.coreos.com Subscription": {
		{"state: AtLatestKnown", yes}, {"state: UpgradePending", wait}, {"state: UpgradeFailed", no},
		{"{state: AtLatestKnown, conditions: [{type: ResolutionFailed, status: 'True', reason: ConstraintsNotSatisfiable}]}",
			no},
	},
	"snapshot.storage.k8s.io VolumeSnapshot":      {{"readyToUse: true", yes}, {"readyToUse: false", wait}},
	"snapshot.storage.k8s.io VolumeSnapshotClass": {{"-", yes}},
	"kubevirt.io VirtualMachine":                  {{isReady, yes}, {notReady, wait}},
	"kubevirt.io VirtualMachineInstance": {
		{"phase: Running", yes},
		{"phase: Scheduling", wait},
		{"phase: Failed", no},
	},
	"kyverno.io ClusterPolicy":                   {{isReady, yes}, {notReady, wait}},
	"kyverno.io Policy":                          {{isReady, yes}, {notReady, wait}},
	"templates.gatekeeper.sh ConstraintTemplate": {{"created: true", yes}, {"created: false", wait}},
	"jobset.x-k8s.io JobSet": {
		{"conditions: [{type: Completed, status: 'True'}]", yes},
		{"restarts: 1", wait},
		{"conditions: [{type: Failed, status: 'True'}]", no},
	},
	"kueue.x-k8s.io ClusterQueue": {
		{isActive, yes},
		{"conditions: [{type: Active, status: 'False', reason: FlavorNotFound}]", wait},
	},
	"kueue.x-k8s.io LocalQueue": {
		{isActive, yes},
		{"conditions: [{type: Active, status: 'False', reason: ClusterQueueIsInactive}]", wait},
	},
	"ray.io RayCluster": {
		{"state: ready", yes},
		{"lastUpdateTime: x", wait},
		{"state: failed", no},
	},
	"sparkoperator.k8s.io SparkApplication": {
		{"applicationState: {state: COMPLETED}", yes},
		{"applicationState: {state: RUNNING}", wait},
		{"applicationState: {state: SUBMISSION_FAILED}", no},
	},

	"karpenter.sh NodeClaim": {
		{isReady, yes},
		{"conditions: [{type: Launched, status: 'True'}]", wait},
	},
	"karpenter.sh NodePool":                {{isReady, yes}, {notReady, wait}},
	"operator.knative.dev KnativeServing":  {{isReady, yes}, {notReady, wait}},
	"operator.knative.dev KnativeEventing": {{isReady, yes}, {notReady, wait}},
	"serving.kserve.io InferenceService": {
		{isReady, yes},
		{notReady, wait},
		{isReady + ", modelStatus: {transitionStatus: UpToDate}", yes},
		{isReady + ", modelStatus: {transitionStatus: InProgress}", wait},
		{isReady + ", modelStatus: {transitionStatus: BlockedByFailedLoad}", no},
	},
	"k8s.mariadb.com MariaDB": {{isReady, yes}, {"revision: 0", wait}},
	"k8s.mariadb.com Backup": {
		{"conditions: [{type: Complete, status: 'True'}]", yes},
		{"conditions: [{type: Complete, status: 'False'}]", wait},
		{"conditions: [{type: Complete, status: 'True', reason: JobFailed}]", no},
	},
	"k8s.mariadb.com SqlJob": {
		{"conditions: [{type: Complete, status: 'True', reason: JobComplete}]", yes},
		{"conditions: [{type: Complete, status: 'True', reason: JobFailed}]", no},
	},
	"grafana.integreatly.org GrafanaDatasource": {
		{"hash: x", yes},
		{"uid: ''", wait},
		{"hash: x, NoMatchingInstances: true", no},
		{"hash: x, conditions: [{type: DatasourceSynchronized, status: 'False', reason: ApplyFailed}]", no},
	},
	"k8s.keycloak.org Keycloak": {
		{isReady, yes},
		{"conditions: [{type: HasErrors, status: 'True'}]", no},
	},
	"k8s.keycloak.org KeycloakRealmImport": {
		{"conditions: [{type: Done, status: 'True'}]", yes},
		{"conditions: [{type: Started, status: 'True'}]", wait},
	},
	"onepassword.com OnePasswordItem": {{isReady, yes}, {readyFailed, no}},
	"grafana.integreatly.org Grafana": {
		{"{stage: complete, stageStatus: success}", yes}, {"{stage: deployment, stageStatus: success}", wait},
		{"{stage: ingress, stageStatus: failed}", no},
	},
	"grafana.integreatly.org GrafanaDashboard": {
		{"conditions: [{type: DashboardSynchronized, status: 'True'}]", yes},
		{"conditions: [{type: DashboardSynchronized, status: 'False', reason: ApplyFailed}]", no},
	},
	"grafana.integreatly.org GrafanaFolder": {
		{"conditions: [{type: FolderSynchronized, status: 'True'}]", yes},
		{"conditions: [{type: FolderSynchronized, status: 'False', reason: ApplyFailed}]", no},
	},
	"projectcontour.io HTTPProxy": {
		{"conditions: [{type: Valid, status: 'True'}]", yes},
		{"conditions: [{type: Valid, status: 'False', reason: ErrorPresent}]", no},
	},
	"projectcontour.io ExtensionService": {
		{"conditions: [{type: Valid, status: 'True'}]", yes},
		{"conditions: [{type: Valid, status: 'False', reason: ErrorPresent}]", no},
	},
	"flagger.app Canary": {
		{"phase: Initialized", yes},
		{"phase: Succeeded", yes},
		{"phase: Promoting", wait},
		{"phase: Failed", no},
	},
	"camel.apache.org Integration": {
		{"phase: Running", yes},
		{"phase: Building Kit", wait},
		{"phase: Error", no},
	},
	"minio.min.io Tenant": {
		{"currentState: Initialized", yes},
		{"currentState: Waiting for Pods to be ready", wait},
		{"currentState: Different versions across MinIO Pools", no},
	},
	"acid.zalan.do postgresql": {
		{"PostgresClusterStatus: Running", yes},
		{"PostgresClusterStatus: Updating", wait},
		{"PostgresClusterStatus: UpdateFailed", no},
	},
	"psmdb.percona.com PerconaServerMongoDB": {
		{"state: ready", yes},
		{"state: initializing", wait},
		{"state: error", no},
	},
	"pxc.percona.com PerconaXtraDBCluster": {
		{"state: ready", yes},
		{"state: paused", yes},
		{"state: stopping", wait},
		{"state: error", no},
	},
	"clickhouse.altinity.com ClickHouseInstallation": {
		{"status: Completed", yes},
		{"status: InProgress", wait},
		{"status: Failed", no},
	},
	"clickhouse-keeper.altinity.com ClickHouseKeeperInstallation": {
		{"status: Completed", yes},
		{"status: InProgress", wait},
		{"status: Aborted", no},
	},
	"flink.apache.org FlinkDeployment": {
		{"jobManagerDeploymentStatus: READY", yes},
		{"jobManagerDeploymentStatus: DEPLOYED_NOT_READY", wait},
		{"jobManagerDeploymentStatus: ERROR", no},
	},
	"kafka.banzaicloud.io KafkaCluster": {
		{"state: ClusterRunning", yes},
		{"state: ClusterRollingUpgrading", wait},
		{"state: ClusterRunning, cruiseControlTopicStatus: CruiseControlTopicNotReady", wait},
	},
	"operator.victoriametrics.com VMAgent": {
		{"updateStatus: operational", yes},
		{"updateStatus: expanding", wait},
		{"updateStatus: failed", no},
	},
	"operator.victoriametrics.com VMAlert": {
		{"updateStatus: operational", yes},
		{"updateStatus: failed", no},
	},
	"operator.victoriametrics.com VMAuth": {
		{"updateStatus: operational", yes},
		{"updateStatus: failed", no},
	},
	"operator.victoriametrics.com VMSingle": {
		{"updateStatus: operational", yes},
		{"updateStatus: failed", no},
	},
	"operator.victoriametrics.com VMCluster": {
		{"updateStatus: operational", yes},
		{"updateStatus: failed", no},
	},
	"operator.victoriametrics.com VMAlertmanager": {
		{"updateStatus: operational", yes},
		{"updateStatus: failed", no},
	},
	"beat.k8s.elastic.co Beat": {
		{"health: green", yes},
		{"health: yellow", wait},
		{"health: red", no},
	},
	"logstash.k8s.elastic.co Logstash": {
		{"health: green", yes},
		{"health: yellow", wait},
		{"health: red", no},
	},
	"agent.k8s.elastic.co Agent":   {{"health: green", yes}, {"health: red", no}},
	"apm.k8s.elastic.co ApmServer": {{"health: green", yes}, {"health: red", no}},
	"kiali.io Kiali": {
		{"conditions: [{type: Successful, status: 'True'}]", yes},
		{"conditions: [{type: Running, status: 'True'}]", wait},
		{"conditions: [{type: Failure, status: 'True'}]", no},
	},
	"jaegertracing.io Jaeger": {
		{"phase: Running", yes},
		{"version: x", wait},
		{"phase: Failed", no},
	},
	"operator.openshift.io IngressController": {
		{"conditions: [{type: Admitted, status: 'True'}, {type: Available, status: 'True'}]", yes},
		{"conditions: [{type: Admitted, status: 'True'}]", wait},
		{"conditions: [{type: Available, status: 'True'}, {type: Degraded, status: 'True'}]", no},
		{"conditions: [" + admitted + ", {type: Progressing, status: 'True'}]", wait},
		{"conditions: [" + admitted + ", {type: DeploymentReplicasAllAvailable, status: 'False'}]", wait},
	},
	"policy.open-cluster-management.io Policy": {
		{"compliant: Compliant", yes},
		{"compliant: Pending", wait},
		{"compliant: NonCompliant", no},
	},
	"policy.open-cluster-management.io ConfigurationPolicy": {
		{"compliant: Compliant", yes},
		{"compliant: NonCompliant", no},
	},
	"policy.open-cluster-management.io OperatorPolicy": {
		{"compliant: Compliant, conditions: [{type: Compliant, status: 'True'}]", yes},
		{"compliant: Compliant", wait},
		{"compliant: NonCompliant", no},
	},
	"policy.open-cluster-management.io CertificatePolicy": {
		{"compliant: Compliant", yes},
		{"compliant: NonCompliant", no},
	},
	"work.karmada.io ResourceBinding": {
		{"conditions: [{type: FullyApplied, status: 'True'}]", yes},
		{"aggregatedStatus: [{clusterName: a, applied: true, health: Unknown}], " + fullyApplied, yes},
		{"aggregatedStatus: [{clusterName: a, applied: false, health: Unknown}], " + fullyApplied, wait},
		{"aggregatedStatus: [{clusterName: a, health: Unhealthy}], " + fullyApplied, no},
		{"conditions: [{type: Scheduled, status: 'True'}, {type: FullyApplied, status: 'False', reason: FullyAppliedFailed}]",
			no},
	},
	"work.karmada.io ClusterResourceBinding": {
		{"conditions: [{type: FullyApplied, status: 'True'}]", yes},
		{"conditions: [{type: Scheduled, status: 'True'}]", wait},
	},
	"cdi.kubevirt.io DataVolume": {
		{"phase: Succeeded", yes},
		{"phase: ImportInProgress", wait},
		{"phase: Failed", no},
	},
	"objectbucket.io ObjectBucketClaim": {
		{"phase: Bound", yes},
		{"phase: Pending", wait},
		{"phase: Failed", no},
	},
	"networking.gke.io ManagedCertificate": {
		{"certificateStatus: Active", yes},
		{"certificateStatus: Provisioning", wait},
		{"certificateStatus: ProvisioningFailed", no},
	},
	"trident.netapp.io TridentBackendConfig": {
		{"lastOperationStatus: Success", yes},
		{"lastOperationStatus: Progressing", wait},
		{"lastOperationStatus: Failed", no},
	},
	"trident.netapp.io TridentOrchestrator": {
		{"status: Installed", yes},
		{"status: Installing", wait},
		{"status: Failed", no},
	},
	"datadoghq.com DatadogMetric": {
		{"conditions: [{type: Valid, status: 'True'}]", yes},
		{"conditions: [{type: Valid, status: 'False'}, {type: Error, status: 'True'}]", no},
	},
	"core.cnrm.cloud.google.com ConfigConnector":        {{"healthy: true", yes}, {"healthy: false", no}},
	"core.cnrm.cloud.google.com ConfigConnectorContext": {{"healthy: true", yes}, {"healthy: false", no}},
	"tower.ansible.com AnsibleJob": {
		{"ansibleJobResult: {status: successful}", yes},
		{"ansibleJobResult: {status: running}", wait},
		{"ansibleJobResult: {status: canceled}", no},
	},
	"argoproj.io Experiment": {
		{"phase: Successful", yes},
		{"phase: Running", wait},
		{"phase: Inconclusive", no},
	},
	"snapshot.storage.k8s.io VolumeSnapshotContent": {
		{"readyToUse: true", yes},
		{"readyToUse: false", wait},
	},
	"gateway.networking.k8s.io BackendTLSPolicy": {
		{"ancestors: [{ancestorRef: {name: a}, conditions: [{type: Accepted, status: 'True'}]}]", yes},
		{"ancestors: []", wait},
		{"ancestors: [{ancestorRef: {name: a}, conditions: [{type: Accepted, status: 'False', reason: Invalid}]}]", no},
		{"ancestors: [{ancestorRef: {name: a}, conditions: [{type: Accepted, status: 'True'}, {type: ResolvedRefs, status: " +
			"'False', reason: InvalidCACertificateRef}]}]", no},
	},
	"route.openshift.io Route": {
		{"ingress: [{conditions: [{type: Admitted, status: 'True'}]}]", yes},
		{"ingress: [{conditions: [{type: Admitted, status: Unknown}]}]", wait},
		{"ingress: [{conditions: [{type: Admitted, status: 'True'}]}, {conditions: [{type: Admitted, status: 'False', " +
			"reason: HostAlreadyClaimed}]}]", no},
	},

	"networking.istio.io VirtualService":      {{"-", yes}},
	"networking.istio.io DestinationRule":     {{"-", yes}},
	"networking.istio.io Gateway":             {{"-", yes}},
	"networking.istio.io ServiceEntry":        {{"-", yes}},
	"networking.istio.io Sidecar":             {{"-", yes}},
	"security.istio.io AuthorizationPolicy":   {{"-", yes}},
	"security.istio.io PeerAuthentication":    {{"-", yes}},
	"security.istio.io RequestAuthentication": {{"-", yes}},
	"traefik.io IngressRoute":                 {{"-", yes}},
	"traefik.io Middleware":                   {{"-", yes}},
	"traefik.io TLSOption":                    {{"-", yes}},
}

const yes, wait, no = readiness.Ready, readiness.Progressing, readiness.Failed

// TestOperatorKinds checks each rule with statuses as its operator writes them, and that each rule has a test. An
// object without a status is never ready, unless its kind has none.
func TestOperatorKinds(t *testing.T) {
	tested := maps.Clone(operatorStatuses)
	maps.Copy(tested, reportingStatuses)
	for name, statuses := range tested {
		group, kind, _ := strings.Cut(name, " ")
		head := group + "/v1 " + kind + "\n"
		for _, tc := range statuses {
			text := head + "status: {" + tc.status + "}"
			switch {
			case tc.status == "-":
				text = head
			case strings.HasPrefix(tc.status, "{"):
				text = head + "status: " + tc.status
			}
			got := readiness.Registry{}.Assess(object(t, text))
			require.Equal(t, tc.want, got.Status, "%s\n%s", text, got.Message)
		}
		if statuses[0].status != "-" {
			got := readiness.Registry{}.Assess(object(t, head))
			require.Equal(t, wait, got.Status, "%s without a status: %s", name, got.Message)
		}
	}
	for _, kind := range readiness.OperatorKinds() {
		require.Contains(t, tested, kind.Group+" "+kind.Kind, "a rule without a test")
	}
	require.Len(t, tested, len(readiness.OperatorKinds()), "a test without a rule")
}

// TestOperatorGroups checks the rules for whole groups.
func TestOperatorGroups(t *testing.T) {
	const managed, isSynced = "s3.aws.crossplane.io/v1 Bucket\n", "{type: Synced, status: 'True'}"
	for _, tc := range []struct {
		object string
		want   readiness.Status
	}{
		{managed, wait},
		{managed + "status: {conditions: [" + isSynced + "]}", wait},
		{managed + "status: {conditions: [" + isSynced + ", {type: Ready, status: 'True'}]}", yes},
		{managed + "status: {conditions: [{type: Synced, status: 'False', reason: ReconcileError}]}", no},
		{"aws.upbound.io/v1 ProviderConfig\n", yes},
		{"apiextensions.crossplane.io/v1 Composition\n", yes},
		{"pkg.crossplane.io/v1 ConfigurationRevision\nstatus: {conditions: [{type: RevisionHealthy, status: 'True'}]}", yes},
		{"s3.services.k8s.aws/v1 Bucket\nstatus: {ackResourceMetadata: {region: x}}", wait},
		{"s3.services.k8s.aws/v1 Bucket\nstatus: {conditions: [{type: ACK.ResourceSynced, status: 'True'}]}", yes},
		{"s3.services.k8s.aws/v1 Bucket\nstatus: {conditions: [{type: ACK.Terminal, status: 'True'}]}", no},
		{"sql.cnrm.cloud.google.com/v1 SQLInstance\nstatus: {conditions: [{type: Ready, status: 'True'}]}", yes},
		{"sql.cnrm.cloud.google.com/v1 SQLInstance\nstatus: {conditions: [{type: Ready, status: 'False', reason: " +
			"UpdateFailed}]}", no},
		{"gateway.solo.io/v1 VirtualService\n", wait},
		{"gateway.solo.io/v1 VirtualService\nstatus: {statuses: {a: {state: Accepted}, b: {state: Rejected, reason: x}}}",
			no},
		{"gateway.solo.io/v1 VirtualService\nstatus: {statuses: {a: {state: Accepted}}}", yes},
		{"gloo.solo.io/v1 Upstream\nstatus: {state: 1}", yes},
		{"gloo.solo.io/v1 Upstream\nstatus: {state: 3}", no},
		{"gloo.solo.io/v1 Upstream\nstatus: {state: 0}", wait},
	} {
		got := readiness.Registry{}.Assess(object(t, tc.object))
		require.Equal(t, tc.want, got.Status, "%s\n%s", tc.object, got.Message)
	}
}

// TestConventions checks statuses of kinds without a rule.
func TestConventions(t *testing.T) {
	for status, want := range map[string]readiness.Status{
		"{conditions: [{type: SpecError, status: 'True'}]}":                                                        no,
		"{conditions: [{type: ErrorOccurred, status: 'True'}]}":                                                    no,
		"{conditions: [{type: NoError, status: 'True'}]}":                                                          yes,
		"{conditions: [{type: Error, status: 'False', reason: NoErrors}]}":                                         yes,
		"{conditions: [{type: ReplicaFailure, status: 'False', reason: AsExpected}]}":                              yes,
		"{conditions: [{type: Deployed, status: 'False', reason: StatefulSetFailed}]}":                             no,
		"{conditions: [{type: Deployed, status: 'False', reason: Creating}]}":                                      wait,
		"{conditions: [{type: PodsHealthy, status: 'False', reason: NoPodsFound}]}":                                wait,
		"{conditions: [{type: Ready, status: 'True'}, {type: PodsHealthy, status: 'False', reason: NoPodsFound}]}": yes,
		"{conditions: [{type: UpgradeAvailable, status: 'False'}]}":                                                yes,
		"{conditions: []}": wait,
		"{conditions: [{type: Progressing, status: 'False', reason: ProgressDeadlineExceeded}]}": no,
		"{conditions: [{type: Complete, status: 'True', reason: JobFailed}]}":                    no,
		"{conditions: [{type: Complete, status: 'True', reason: JobComplete}]}":                  yes,
		"{conditions: [{type: UpgradeSucceeded, status: 'False', reason: Waiting}]}":             wait,
		"{failureMessage: no quota, ready: true}":                                                no,
		"{ready: false}": wait,
		"{ready: true}":  yes,
		"{ready: false, conditions: [{type: Ready, status: 'True'}]}":   yes,
		"{status: 'ERROR, no such secret'}":                             no,
		"{status: SUCCESS}":                                             yes,
		"{desiredNumberScheduled: 2, numberReady: 1}":                   wait,
		"{desiredNumberScheduled: 2, numberReady: 2}":                   yes,
		"{ancestors: []}":                                               wait,
		"{phase: ConfigError}":                                          no,
		"{phase: SyncFailed}":                                           no,
		"{phase: FailedOver}":                                           yes,
		"{health: Red}":                                                 no,
		"{status: IN_PROGRESS}":                                         wait,
		"{state: Pending, conditions: [{type: Ready, status: 'True'}]}": yes,
		"{state: Pending}":                                              wait,
		"{state: Running}":                                              yes,
		"{replicas: 3, readyReplicas: 2}":                               wait,
		"{replicas: 3, readyReplicas: 3}":                               yes,
		"{ancestors: [{ancestorRef: {name: a}, conditions: [{type: Accepted, status: 'False', reason: Conflicted}]}]}": wait,
		"{ancestors: [{ancestorRef: {name: a}}]}":                                                 yes,
		"{ancestors: [{ancestorRef: {name: a}, conditions: [{type: Accepted, status: 'True'}]}]}": yes,
	} {
		got := readiness.Registry{}.Assess(object(t, database+"status: "+status))
		require.Equal(t, want, got.Status, "%s\n%s", status, got.Message)
	}
}
