package readiness

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Rules that several operators share.
var (
	reports = customRule{reports: true}
	exists  = customRule{field: words("state"), ready: words("Exists"), failed: words("ConfigError")}

	// promoted is the rule of commit statuses with a phase for each environment.
	promoted = customRule{conditions: words("Ready"), entries: entryRule{
		list: "environments", name: "branch", field: "phase", ready: words("", "success"), failed: words("failure"),
	}}
	// backedUp is the rule of runs with a state.
	backedUp = customRule{field: words("state"), ready: words("Completed"), failed: words("Failed", "Error"), ends: true}
)

// reportingKinds are rules for further operators, by group and kind. Their controllers report a status as soon as
// they have observed the object, so an object without a status has just been created. Each group links to the
// documentation of its status.
var reportingKinds = map[string]map[string]customRule{
	// https://argo-cd.readthedocs.io/en/stable/operator-manual/applicationset/
	"argoproj.io": {"ApplicationSet": {
		conditions: words("ResourcesUpToDate"), failing: words("ErrorOccurred"),
		unless: exceptions{unfinished: words("RolloutProgressing")},
	}},
	// https://cluster-api.sigs.k8s.io/tasks/cluster-resource-set
	"addons.cluster.x-k8s.io": {"ClusterResourceSet": {conditions: words("ResourcesApplied")}},
	// https://cluster-api-aws.sigs.k8s.io/crd/
	"controlplane.cluster.x-k8s.io": {"AWSManagedControlPlane": {
		reports: true, unless: exceptions{
			errors: words("failureMessage"), unfinished: words("EKSControlPlaneCreating", "EKSControlPlaneUpdating"),
		},
	}},
	// https://openkruise.io/docs/user-manuals/cloneset, statefulset, daemonset and broadcastjob
	"apps.kruise.io": {
		"CloneSet": reports, "StatefulSet": reports, "DaemonSet": reports,
		"BroadcastJob": phaseOfRun(words("completed"), words("failed")),
	},
	// https://openkruise.io/rollouts/developer-manuals/go-client
	"rollouts.kruise.io": {"Rollout": phase(words("Healthy"), nil)},
	// https://cert-manager.io/docs/releases/upgrading/upgrading-0.10-0.11/ documents the group of earlier releases.
	"certmanager.k8s.io": {"Certificate": readyCondition, "Issuer": readyCondition, "ClusterIssuer": readyCondition},
	// https://github.com/mariadb-operator/mariadb-operator documents the group of its first releases.
	"mariadb.mmontes.io": {"MariaDB": readyCondition},
	// https://docs.netapp.com/us-en/astra-control-center/
	"astra.netapp.io": {
		"AppVault":    {field: words("state"), ready: words("available"), failed: words("failed", "error")},
		"Application": readyCondition,
		"Backup":      backedUp, "ExecHooksRun": backedUp, "ResourceBackup": backedUp, "ResticVolumeBackup": backedUp,
		"Snapshot": backedUp,
	},
	// https://github.com/3scale/3scale-operator/tree/master/doc
	"capabilities.3scale.net": {
		"Product": {conditions: words("Synced"), failing: words("Failed", "Invalid", "Orphan")},
		"Backend": {conditions: words("Synced"), failing: words("Failed", "Invalid")},
		"ProxyConfigPromote": {
			conditions: words("Ready"), failing: words("Failed"), unless: exceptions{unfinished: words("In-progress")},
		},
	},
	// https://github.com/coralogix/coralogix-operator
	"coralogix.com": {"Alert": reports, "RecordingRuleGroupSet": reports},
	// https://www.spinkube.dev/docs/reference/spin-app/
	"core.spinkube.dev": {"SpinApp": {reports: true, unless: exceptions{unfinished: words("Progressing")}}},
	// https://github.com/humio/humio-operator/tree/master/docs
	"core.humio.com": {
		"HumioCluster": {field: words("state"), ready: words("Running"), failed: words("ConfigError")},
		"HumioAction":  exists, "HumioAlert": exists, "HumioIngestToken": exists, "HumioParser": exists,
		"HumioRepository": exists, "HumioView": exists,
	},
	// https://github.com/keikoproj/iam-manager
	"iammanager.keikoproj.io": {"Iamrole": {field: words("state"), ready: words("Ready"), failed: words(
		"Error", "PolicyNotAllowed", "RolesMaxLimitReached", "RoleNameNotAvailable",
	)}},
	// https://github.com/external-secrets/kubernetes-external-secrets
	"kubernetes-client.io": {"ExternalSecret": reports},
	// https://keptn.sh/stable/docs/reference/api-reference/lifecycle/v1/ and .../metrics/v1/
	"lifecycle.keptn.sh": {"KeptnEvaluation": {
		field: words("overallStatus"), ready: words("Succeeded"), failed: words("Failed"), ends: true,
	}},
	"metrics.keptn.sh": {"KeptnMetric": {unless: exceptions{errors: words("errMsg"), required: words("value")}}},
	// https://nmstate.io/kubernetes-nmstate/user-guide/102-configuration
	"nmstate.io": {"NodeNetworkConfigurationPolicy": {conditions: words("Available"), failing: words("Degraded")}},
	// https://numaproj.github.io/numaplane/
	"numaplane.numaproj.io": {
		"ISBServiceRollout": reports, "MonoVertexRollout": reports, "NumaflowControllerRollout": reports,
		"PipelineRollout": reports,
	},
	// https://docs.confluent.io/operator/current/co-api.html
	"platform.confluent.io": {"Connector": {
		field: words("connectorState"), ready: words("RUNNING"), failed: words("FAILED"),
		unless: exceptions{errors: words("failedTasksCount")},
	}},
	// https://github.com/dogmatiq/proclaim
	"proclaim.dogmatiq.io": {"DNSSDServiceInstance": {
		unless: exceptions{notFalse: words("Adopted", "Advertised", "Discoverable")},
	}},
	// https://gitops-promoter.readthedocs.io/en/latest/crd-specs/
	"promoter.argoproj.io": {
		"ArgoCDCommitStatus": readyCondition, "ChangeTransferPolicy": readyCondition, "ClusterScmProvider": readyCondition,
		"CommitStatus": readyCondition, "GitRepository": readyCondition, "PullRequest": readyCondition,
		"ScmProvider": readyCondition, "PromotionStrategy": readyCondition,
		"GitCommitStatus": promoted, "TimedCommitStatus": promoted, "WebRequestCommitStatus": promoted,
	},
	// https://github.com/SAP/sap-btp-service-operator
	"services.cloud.sap.com": {"ServiceInstance": readyCondition, "ServiceBinding": readyCondition},
	// https://apache.github.io/solr-operator/docs/solr-cloud/
	"solr.apache.org": {"SolrCloud": reports},
}

// deploymentConfig evaluates a DeploymentConfig. It is ready when the latest replication controller is rolled out and
// available.
func deploymentConfig(object *unstructured.Unstructured) (Result, error) {
	rolled, available := condition(object, "Progressing"), condition(object, "Available")
	replicas, _ := integer(object, "status", "replicas")
	switch {
	case rolled.status == "False":
		return Result{Status: Failed, Message: "Progressing is False" + rolled.detail()}, nil
	case rolled.reason != "NewReplicationControllerAvailable":
		return Result{Status: Progressing, Message: "the latest version is not rolled out" + rolled.detail()}, nil
	case available.status != "True" && replicas > 0:
		return Result{Status: Progressing, Message: "the DeploymentConfig is not available" + available.detail()}, nil
	}
	return Result{Status: Ready, Message: "the latest version is rolled out"}, nil
}

// machineHealthCheck evaluates a MachineHealthCheck. It is ready when the number of healthy machines has reached the
// expected number.
func machineHealthCheck(object *unstructured.Unstructured) (Result, error) {
	expected, reported := integer(object, "status", "expectedMachines")
	healthy, _ := integer(object, "status", "currentHealthy")
	result := Result{Status: Progressing, Message: fmt.Sprintf("%d of %d machines are healthy", healthy, expected)}
	switch {
	case !reported:
		result.Message = "no controller has reported a status yet"
	case healthy >= expected:
		result.Status = Ready
	}
	return result, nil
}

// shoot evaluates a Shoot. It is ready when its last operation has succeeded and Gardener has labeled it healthy.
func shoot(object *unstructured.Unstructured) (Result, error) {
	state, label := text(object, "status", "lastOperation", "state"), object.GetLabels()["shoot.gardener.cloud/status"]
	message := fmt.Sprintf("the last operation is %q, and label shoot.gardener.cloud/status is %q", state, label)
	switch {
	case state == "Failed" || label == "unhealthy":
		return Result{Status: Failed, Message: message}, nil
	case state == "Succeeded" && label == "healthy":
		return Result{Status: Ready, Message: message}, nil
	}
	return Result{Status: Progressing, Message: message}, nil
}

// collector evaluates an OpenTelemetryCollector by its replicas, which are reported as in "1/3". A sidecar has none.
func collector(object *unstructured.Unstructured) (Result, error) {
	if text(object, "status", "version") == "" {
		return Result{Status: Progressing, Message: "no controller has reported a status yet"}, nil
	}
	ready, wanted, counted := strings.Cut(text(object, "status", "scale", "statusReplicas"), "/")
	have, err := strconv.Atoi(ready)
	want, wrong := strconv.Atoi(wanted)
	if counted && cmp.Or(err, wrong) == nil && have < want {
		return Result{Status: Progressing, Message: fmt.Sprintf("%d of %d replicas are ready", have, want)}, nil
	}
	return Result{Status: Ready, Message: "the collector is ready"}, nil
}

// elasticsearch evaluates the number of available nodes in addition to the phase and the health.
func elasticsearch(object *unstructured.Unstructured) (Result, error) {
	result := operatorKinds["elasticsearch.k8s.elastic.co"]["Elasticsearch"].assess(object)
	available, reported := integer(object, "status", "availableNodes")
	if result.Status != Ready || !reported {
		return result, nil
	}
	var wanted int64
	for _, entry := range list(object, "spec", "nodeSets") {
		set, _ := entry.(map[string]any)
		count, _, _ := unstructured.NestedInt64(set, "count")
		wanted += count
	}
	if available < wanted {
		return Result{Status: Progressing, Message: fmt.Sprintf("%d of %d nodes are available", available, wanted)}, nil
	}
	return result, nil
}
