package readiness_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/muster-sdk/muster/work/readiness"
)

func TestDefaults_TooEarly(t *testing.T) {
	const ready, progressing, failed = readiness.Ready, readiness.Progressing, readiness.Failed
	const (
		stateful = "apps/v1 StatefulSet\nmetadata: {generation: 1}\n"
		full     = "status: {observedGeneration: 1, replicas: 2, readyReplicas: 2, currentReplicas: 2, updatedReplicas: " +
			"2, availableReplicas: 1}"
		controller = "v1 ReplicationController\nmetadata: {generation: 1}\n"
		balancer   = "v1 Service\nspec: {type: LoadBalancer, clusterIP: 10.0.0.1}\n"
		definition = "apiextensions.k8s.io/v1 CustomResourceDefinition\n"
		rollout    = "argoproj.io/v1alpha1 Rollout\nmetadata: {generation: 2}\n"
		budget     = "policy/v1 PodDisruptionBudget\nmetadata: {generation: 1}\n"
		hpa        = "autoscaling/v2 HorizontalPodAutoscaler\n"
	)
	for _, tc := range []struct {
		reason, object string
		status         readiness.Status
		message        string
	}{
		{"StatefulSet: ready pods wait for minReadySeconds",
			stateful + "spec: {replicas: 2, minReadySeconds: 30}\n" + full, progressing, "1 of 2 replicas are available"},
		{"StatefulSet: ready pods without minReadySeconds", stateful + "spec: {replicas: 2}\n" + full, ready,
			"All replicas scheduled as expected. Replicas: 2"},
		{"OnDelete at zero replicas waits for terminating pods", stateful + "spec: {replicas: 0, updateStrategy: {type: " +
			"OnDelete}}\nstatus: {observedGeneration: 1, replicas: 2, readyReplicas: 2}", progressing,
			"surplus replicas that have not terminated: 2"},
		{"OnDelete at zero replicas waits for the controller",
			stateful + "spec: {replicas: 0, updateStrategy: {type: OnDelete}}", progressing,
			"waiting for the controller to observe the object"},
		{"OnDelete at zero replicas is ready", stateful + "spec: {replicas: 0, updateStrategy: {type: OnDelete}}\nstatus: " +
			"{observedGeneration: 1, replicas: 0}", ready, "0 of 0 replicas are ready"},

		{"ReplicationController without a status", controller + "spec: {replicas: 2}", progressing,
			"waiting for the controller to observe the object"},
		{"ReplicationController with starting pods",
			controller + "spec: {replicas: 2}\nstatus: {observedGeneration: 1, replicas: 2, readyReplicas: 1}", progressing,
			"1 of 2 replicas are ready"},
		{"ReplicationController waits for minReadySeconds", controller + "spec: {replicas: 2, minReadySeconds: " +
			"5}\nstatus: {observedGeneration: 1, replicas: 2, readyReplicas: 2, availableReplicas: 1}", progressing,
			"1 of 2 replicas are available"},
		{"ReplicationController is ready",
			controller + "spec: {replicas: 2}\nstatus: {observedGeneration: 1, replicas: 2, readyReplicas: 2}", ready,
			"2 of 2 replicas are ready"},
		{"ReplicationController cannot create pods", controller + "spec: {replicas: 2}\nstatus: {observedGeneration: 1, " +
			"conditions: [{type: ReplicaFailure, status: 'True', message: exceeded quota}]}", progressing,
			"pods cannot be created: exceeded quota"},

		{"load balancer entry without an address",
			balancer + "status: {loadBalancer: {ingress: [{ports: [{port: 80, protocol: TCP, error: x}]}]}}", progressing,
			"waiting for the address of the load balancer"},
		{"load balancer entry with an IP", balancer + "status: {loadBalancer: {ingress: [{}, {ip: 192.0.2.1}]}}", ready,
			"Service is ready"},

		{"definition whose names are not accepted", definition + "status: {conditions: [{type: Established, status: " +
			"'True'}, {type: NamesAccepted, status: 'False', message: databases is taken}]}", failed, "databases is taken"},
		{"terminating definition", definition + "status: {conditions: [{type: Established, status: " +
			"'True'}, {type: Terminating, status: 'True'}]}", progressing,
			"the definition is being removed with all of its objects"},

		{"lost PersistentVolumeClaim", "v1 PersistentVolumeClaim\nstatus: {phase: Lost}", failed,
			"the claim has lost its volume: the bound PersistentVolume no longer exists"},

		{"generation as a string", rollout + "status: {observedGeneration: '2', phase: Healthy}", ready,
			`status.phase is "Healthy"`},
		{"older generation as a string", rollout + "status: {observedGeneration: '1', phase: Healthy}", progressing,
			"the status describes generation 1; waiting for generation 2 to be observed"},
		{"hash as the observed generation",
			rollout + "status: {observedGeneration: 6f8b5cf, phase: Degraded, message: aborted}", failed,
			`status.phase is "Degraded": aborted`},
		{"generation as a string of an unknown kind",
			database + "metadata: {generation: 2}\nstatus: {observedGeneration: '2', conditions: " +
				"[{type: Ready, status: 'True'}]}", ready, "Resource is Ready"},

		{"new disruption budget", budget, progressing,
			"waiting for the controller to observe the object"},
		{
			"disruption budget whose controller fails",
			budget + "status: {observedGeneration: 1, conditions: [{type: DisruptionAllowed, status: 'False', reason: " +
				"SyncFailed}]}",
			failed, "DisruptionAllowed is False: SyncFailed",
		},
		{
			"disruption budget that allows no disruption",
			budget + "status: {observedGeneration: 1, currentHealthy: 1, desiredHealthy: 1, " +
				"conditions: [{type: DisruptionAllowed, status: 'False', reason: InsufficientPods}]}",
			ready, "AllowedDisruptions has been computed.",
		},

		{"new autoscaler", hpa, progressing, "the autoscaler has not been observed yet"},
		{"autoscaler without metrics", hpa + "status: {conditions: [{type: AbleToScale, status: 'True'}, {type: " +
			"ScalingActive, status: 'False', reason: FailedGetResourceMetric, message: no metrics}]}", failed,
			"ScalingActive is False: FailedGetResourceMetric: no metrics"},
		{"autoscaler whose target has no replicas", hpa + "status: {conditions: [{type: AbleToScale, status: 'True'}, " +
			"{type: ScalingActive, status: 'False', reason: ScalingDisabled}]}", ready, "the autoscaler is able to scale"},
		{"autoscaler without a target", hpa + "status: {conditions: [{type: AbleToScale, status: 'False', reason: " +
			"FailedGetScale, message: not found}]}", failed, "AbleToScale is False: FailedGetScale: not found"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			want := readiness.Result{Status: tc.status, Message: tc.message}
			require.Empty(t, cmp.Diff(want, readiness.Registry{}.Assess(object(t, tc.object))), "(-want +got)")
		})
	}
}

func TestCustomResources(t *testing.T) {
	const ready, progressing, failed = readiness.Ready, readiness.Progressing, readiness.Failed
	const (
		certificate = "cert-manager.io/v1 Certificate\nmetadata: {generation: 2}\n"
		gateway     = "gateway.networking.k8s.io/v1 Gateway\n"
		route       = "gateway.networking.k8s.io/v1 HTTPRoute\nmetadata: {generation: 1}\n"
	)
	for _, tc := range []struct {
		reason, object string
		status         readiness.Status
		message        string
	}{
		{"no status yet after creation", certificate, progressing, "no controller has reported a status yet"},
		{"the condition of the kind is not set yet", certificate + "status: {conditions: [{type: Issuing, status: 'True'}]}",
			progressing, "condition Ready is not set yet"},
		{"the condition is about an earlier generation", certificate +
			"status: {conditions: [{type: Ready, status: 'True', observedGeneration: 1}]}", progressing,
			"condition Ready describes generation 1; waiting for generation 2 to be observed"},
		{"ready", certificate + "status: {conditions: [{type: Ready, status: 'True', observedGeneration: 2}]}", ready,
			"Ready is True"},
		{"not ready", certificate +
			"status: {conditions: [{type: Ready, status: 'False', reason: DoesNotExist, message: issuing}]}", progressing,
			"Ready is False: DoesNotExist: issuing"},

		{"Gateway that is accepted and not programmed", gateway + "status: {conditions: [{type: Accepted, status: " +
			"'True'}, {type: Programmed, status: 'False', reason: Pending}]}", progressing, "Programmed is False: Pending"},
		{"Gateway that is not accepted",
			gateway + "status: {conditions: [{type: Accepted, status: 'False', reason: UnsupportedAddress}]}", failed,
			"Accepted is False: UnsupportedAddress"},
		{"Gateway that is programmed",
			gateway + "status: {conditions: [{type: Accepted, status: 'True'}, {type: Programmed, " +
				"status: 'True'}]}", ready, "Accepted and Programmed is True"},
		{"route without a parent", route, progressing, "no Gateway has reported on the route yet"},
		{"route that one parent does not accept", route + "status: {parents: [{parentRef: {name: a}, conditions: [{type: " +
			"Accepted, status: 'True'}, {type: ResolvedRefs, status: 'True'}]}, {parentRef: {name: b}, conditions: [{type: " +
			"Accepted, status: 'False', reason: NotAllowedByListeners}]}]}", failed,
			"parent b: Accepted is False: NotAllowedByListeners"},
		{"route that all parents accept", route + "status: {parents: [{parentRef: {name: a}, conditions: [{type: Accepted, " +
			"status: 'True'}, {type: ResolvedRefs, status: 'True'}]}]}", ready, "all parents have accepted the route"},

		{"kind without a status", "monitoring.coreos.com/v1 ServiceMonitor", ready, "the kind has no status"},
		{"degraded Application", "argoproj.io/v1alpha1 Application\nstatus: {health: {status: Degraded}}",
			failed, `status.health.status is "Degraded"`},
		{"boolean status field", "snapshot.storage.k8s.io/v1 VolumeSnapshot\nstatus: {readyToUse: false}", progressing,
			`status.readyToUse is "false"`},

		{"convention: Degraded", database + "status: {conditions: [{type: Degraded, status: 'True', reason: Lost}, " +
			"{type: Ready, status: 'True'}]}", failed, "Degraded is True: Lost"},
		{"convention: phase", database + "status: {phase: Failed, message: no disk}", failed,
			`status.phase is "Failed": no disk`},
		{"convention: state", database + "status: {state: Error}", failed, `status.state is "Error"`},
		{"convention: Synced", database + "status: {conditions: [{type: Synced, status: 'False', reason: ReconcileError, " +
			"message: forbidden}, {type: Ready, status: 'True'}]}", failed, "Synced is False: ReconcileError: forbidden"},
		{"convention: Available", database + "status: {conditions: [{type: Available, status: 'False', reason: Creating}]}",
			progressing, "Available is False: Creating"},
		{"convention: condition Unknown is not True",
			database + "status: {conditions: [{type: Programmed, status: Unknown}]}",
			progressing, "Programmed is Unknown"},
		{"message of condition Ready", database + "status: {conditions: [{type: Accepted, status: 'True'}, {type: " +
			"Ready, status: 'False', message: 3 of 5 GiB}]}", progressing, "3 of 5 GiB"},
		{"status without a known convention", database + "status: {size: 3}", ready, "Resource is current"},
		{"Kubernetes kinds have rules of their own", "apps/v1 Deployment\nmetadata: {generation: 1}\nspec: " +
			"{replicas: 0}\nstatus: {observedGeneration: 1, conditions: [{type: Available, status: 'True'}, {type: " +
			"Progressing, status: 'True', reason: NewReplicaSetAvailable}]}", ready, "Deployment is available. Replicas: 0"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			want := readiness.Result{Status: tc.status, Message: tc.message}
			require.Empty(t, cmp.Diff(want, readiness.Registry{}.Assess(object(t, tc.object))), "(-want +got)")
		})
	}
	run := readiness.Registry{}.Assess(object(t, "tekton.dev/v1 PipelineRun\nstatus: {conditions: [{type: Succeeded, "+
		"status: 'True', reason: Completed}]}"))
	require.Equal(t, readiness.Result{Status: ready, Ends: true, Complete: true, Message: "Succeeded is True: Completed"},
		run, "a PipelineRun ends")
	own := readiness.Registry{{Group: "cert-manager.io",
		Kind: "Certificate"}: func(u *unstructured.Unstructured) (readiness.Result, error) {
		return readiness.Result{Status: ready, Message: "own"}, nil
	}}
	require.Equal(t, "own", own.Assess(object(t, certificate)).Message, "the rule of a product takes precedence")
}

// TestUnreported checks custom resources without a status: Unreported is true for those of kinds without a rule.
func TestUnreported(t *testing.T) {
	for _, tc := range []struct {
		reason, object string
		want           bool
	}{
		{"unknown kind", database, true},
		{"unknown kind with an empty status", database + "status: {}", true},
		{"status without conditions", database + "status: {endpoint: x}", false},
		{"Kubernetes kind", "v1 ConfigMap", false},
		{"known kind that has no status", "monitoring.coreos.com/v1 PrometheusRule", false},
		{"known kind that has not reported yet", "cert-manager.io/v1 Certificate", false},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			result := readiness.Registry{}.Assess(object(t, tc.object))
			require.Equal(t, tc.want, result.Unreported)
			require.False(t, result.Unreported && result.Status != readiness.Ready)
		})
	}
}
