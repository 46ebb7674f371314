package readiness_test

import "github.com/muster-sdk/muster/work/readiness"

const (
	isSynced    = "conditions: [{type: Synced, status: 'True'}]"
	isExisting  = "state: Exists"
	noConfig    = "state: ConfigError"
	isFit       = "conditions: [{type: ChildResourcesHealthy, status: 'True'}]"
	available   = "{type: Available, status: 'True'}"
	unavailable = "{type: Available, status: 'False'}"
	rolledOut   = "{type: Progressing, status: 'True', reason: NewReplicationControllerAvailable}"
	timedOut    = "{type: Progressing, status: 'False', reason: ProgressDeadlineExceeded}"
	aFailed     = "environments: [{branch: a, phase: failure}]"
	unfit       = "conditions: [{type: ChildResourcesHealthy, status: 'False', reason: PipelineFailed}]"
)

// reportingStatuses are the operatorStatuses of the kinds whose controllers always report a status.
var reportingStatuses = map[string][]struct {
	status string
	want   readiness.Status
}{
	"argoproj.io ApplicationSet": {
		{"conditions: [{type: ResourcesUpToDate, status: 'True'}]", yes},
		{"conditions: [{type: ErrorOccurred, status: 'True'}]", no},
		{"conditions: [{type: ResourcesUpToDate, status: 'True'}, {type: RolloutProgressing, status: 'True'}]", wait},
	},
	"addons.cluster.x-k8s.io ClusterResourceSet": {
		{"conditions: [{type: ResourcesApplied, status: 'True'}]", yes},
		{"conditions: [{type: ResourcesApplied, status: 'False', reason: RemoteClusterClientFailed}]", no},
	},
	"controlplane.cluster.x-k8s.io AWSManagedControlPlane": {
		{isReady + ", ready: true", yes},
		{"ready: false", wait},
		{"ready: false, failureMessage: the cluster has failed", no},
		{"conditions: [{type: Ready, status: 'True'}, {type: EKSControlPlaneUpdating, status: 'True'}]", wait},
	},
	"cluster.x-k8s.io MachineHealthCheck": {
		{"expectedMachines: 3, currentHealthy: 3", yes},
		{"expectedMachines: 3, currentHealthy: 1", wait},
	},
	"apps.kruise.io CloneSet":    {{"replicas: 2, readyReplicas: 2", yes}, {"replicas: 2, readyReplicas: 1", wait}},
	"apps.kruise.io StatefulSet": {{"replicas: 2, readyReplicas: 2", yes}, {"replicas: 2, readyReplicas: 1", wait}},
	"apps.kruise.io DaemonSet": {
		{"desiredNumberScheduled: 1, numberReady: 1", yes},
		{"desiredNumberScheduled: 1, numberReady: 0", wait},
	},
	"apps.kruise.io BroadcastJob": {{"phase: completed", yes}, {"phase: running", wait}, {"phase: failed", no}},
	"rollouts.kruise.io Rollout":  {{"phase: Healthy", yes}, {"phase: Progressing", wait}, {"phase: Disabled", wait}},

	"certmanager.k8s.io Certificate":   {{isReady, yes}, {notReady, wait}},
	"certmanager.k8s.io Issuer":        {{isReady, yes}, {notReady, wait}},
	"certmanager.k8s.io ClusterIssuer": {{isReady, yes}, {notReady, wait}},
	"mariadb.mmontes.io MariaDB":       {{isReady, yes}, {"revision: 0", wait}},

	"astra.netapp.io AppVault":           {{"state: available", yes}, {"state: failed", no}},
	"astra.netapp.io Application":        {{isReady, yes}, {notReady, wait}},
	"astra.netapp.io Backup":             {{"state: Completed", yes}, {"state: Running", wait}, {"state: Failed", no}},
	"astra.netapp.io ExecHooksRun":       {{"state: Completed", yes}, {"state: Running", wait}, {"state: Failed", no}},
	"astra.netapp.io ResourceBackup":     {{"state: Completed", yes}, {"state: Running", wait}, {"state: Error", no}},
	"astra.netapp.io ResticVolumeBackup": {{"state: Completed", yes}, {"state: Running", wait}, {"state: Failed", no}},
	"astra.netapp.io Snapshot":           {{"state: Completed", yes}, {"state: Running", wait}, {"state: Failed", no}},

	"capabilities.3scale.net Product": {
		{isSynced, yes},
		{"conditions: [{type: Orphan, status: 'True'}]", no},
	},
	"capabilities.3scale.net Backend": {{isSynced, yes}, {"conditions: [{type: Invalid, status: 'True'}]", no}},
	"capabilities.3scale.net ProxyConfigPromote": {
		{isReady, yes},
		{"conditions: [{type: In-progress, status: 'True'}]", wait},
		{"conditions: [{type: Failed, status: 'True'}]", no},
	},

	"coralogix.com Alert":                 {{"id: x", yes}},
	"coralogix.com RecordingRuleGroupSet": {{"id: x", yes}},
	"core.spinkube.dev SpinApp": {
		{"conditions: [" + available + ", {type: Progressing, status: 'False', reason: NewReplicaSetAvailable}]", yes},
		{"conditions: [" + available + ", {type: Progressing, status: 'True'}]", wait},
		{"conditions: [" + available + ", " + timedOut + "]", no},
	},
	"core.humio.com HumioCluster":     {{"state: Running", yes}, {"state: Upgrading", wait}, {noConfig, no}},
	"core.humio.com HumioAction":      {{isExisting, yes}, {"state: Unknown", wait}, {noConfig, no}},
	"core.humio.com HumioAlert":       {{isExisting, yes}, {"state: NotFound", wait}, {noConfig, no}},
	"core.humio.com HumioIngestToken": {{isExisting, yes}, {noConfig, no}},
	"core.humio.com HumioParser":      {{isExisting, yes}, {noConfig, no}},
	"core.humio.com HumioRepository":  {{isExisting, yes}, {noConfig, no}},
	"core.humio.com HumioView":        {{isExisting, yes}, {noConfig, no}},
	"iammanager.keikoproj.io Iamrole": {{"state: Ready", yes}, {"state: RolesMaxLimitReached", no}},
	"kubernetes-client.io ExternalSecret": {
		{"status: SUCCESS", yes},
		{"status: 'ERROR, no such secret'", no},
	},
	"lifecycle.keptn.sh KeptnEvaluation": {
		{"overallStatus: Succeeded", yes},
		{"overallStatus: Progressing", wait},
		{"overallStatus: Failed", no},
	},
	"metrics.keptn.sh KeptnMetric": {{"value: '1'", yes}, {"lastUpdated: x", wait}, {"errMsg: no such host", no}},
	"nmstate.io NodeNetworkConfigurationPolicy": {
		{"conditions: [{type: Available, status: 'True'}, {type: Degraded, status: 'False'}]", yes},
		{"conditions: [{type: Available, status: Unknown, reason: ConfigurationProgressing}]", wait},
		{"conditions: [{type: Available, status: 'False'}, {type: Degraded, status: 'True'}]", no},
	},
	"numaplane.numaproj.io ISBServiceRollout":         {{isFit, yes}, {unfit, no}},
	"numaplane.numaproj.io MonoVertexRollout":         {{isFit, yes}, {unfit, no}},
	"numaplane.numaproj.io NumaflowControllerRollout": {{isFit, yes}, {unfit, no}},
	"numaplane.numaproj.io PipelineRollout": {
		{isFit, yes},
		{"conditions: [{type: ProgressiveUpgradeSucceeded, status: 'False', reason: Failed}]", no},
	},
	"platform.confluent.io Connector": {
		{"connectorState: RUNNING", yes},
		{"connectorState: UNASSIGNED", wait},
		{"connectorState: RUNNING, failedTasksCount: 1", no},
		{"connectorState: FAILED", no},
	},
	"proclaim.dogmatiq.io DNSSDServiceInstance": {
		{"conditions: [{type: Discoverable, status: 'True'}]", yes},
		{"conditions: [{type: Adopted, status: 'False', reason: InstanceIgnored}]", wait},
		{"conditions: [{type: Advertised, status: 'False', reason: AdvertiseError}]", no},
	},
	"promoter.argoproj.io ArgoCDCommitStatus":   {{isReady, yes}, {notReady, wait}},
	"promoter.argoproj.io ChangeTransferPolicy": {{isReady, yes}, {notReady, wait}},
	"promoter.argoproj.io ClusterScmProvider":   {{isReady, yes}, {notReady, wait}},
	"promoter.argoproj.io CommitStatus":         {{isReady, yes}, {notReady, wait}},
	"promoter.argoproj.io GitRepository":        {{isReady, yes}, {notReady, wait}},
	"promoter.argoproj.io PullRequest":          {{isReady, yes}, {notReady, wait}},
	"promoter.argoproj.io ScmProvider":          {{isReady, yes}, {notReady, wait}},
	"promoter.argoproj.io PromotionStrategy":    {{isReady, yes}, {notReady, wait}},
	"promoter.argoproj.io GitCommitStatus": {
		{isReady + ", environments: [{branch: a, phase: success}]", yes},
		{isReady + ", environments: [{branch: a, phase: pending}]", wait},
		{isReady + ", environments: [{branch: a, phase: success}, {branch: b, phase: failure}]", no},
	},
	"promoter.argoproj.io TimedCommitStatus":      {{isReady, yes}, {isReady + ", " + aFailed, no}},
	"promoter.argoproj.io WebRequestCommitStatus": {{isReady, yes}, {isReady + ", " + aFailed, no}},
	"services.cloud.sap.com ServiceInstance":      {{isReady, yes}, {notReady, wait}},
	"services.cloud.sap.com ServiceBinding":       {{isReady, yes}, {notReady, wait}},
	"solr.apache.org SolrCloud": {
		{"replicas: 3, readyReplicas: 3", yes},
		{"replicas: 3, readyReplicas: 2", wait},
	},

	"apps.openshift.io DeploymentConfig": {
		{"replicas: 1, conditions: [" + available + ", " + rolledOut + "]", yes},
		{"replicas: 0, conditions: [" + unavailable + ", " + rolledOut + "]", yes},
		{"replicas: 1, conditions: [" + unavailable + ", " + rolledOut + "]", wait},
		{"replicas: 1, conditions: [" + available + ", {type: Progressing, status: 'True', reason: Updated}]", wait},
		{"replicas: 1, conditions: [" + available + ", " + timedOut + "]", no},
	},
	"core.gardener.cloud Shoot": {
		{"{lastOperation: {state: Succeeded}}\nmetadata: {labels: {shoot.gardener.cloud/status: healthy}}", yes},
		{"{lastOperation: {state: Processing}}\nmetadata: {labels: {shoot.gardener.cloud/status: healthy}}", wait},
		{"{lastOperation: {state: Succeeded}}\nmetadata: {labels: {shoot.gardener.cloud/status: unhealthy}}", no},
		{"lastOperation: {state: Failed}", no},
	},
	"opentelemetry.io OpenTelemetryCollector": {
		{"version: 1.0.0, scale: {statusReplicas: 2/2}", yes},
		{"version: 1.0.0, scale: {statusReplicas: 1/2}", wait},
		{"version: 1.0.0", yes},
	},
}
