package readiness_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/work/readiness"
)

func TestDefaults(t *testing.T) {
	const ready, progressing, failed = readiness.Ready, readiness.Progressing, readiness.Failed
	const (
		deployment = "apps/v1 Deployment\nmetadata: {generation: 1}\n"
		rolledOut  = "status: {observedGeneration: 1, replicas: 2, updatedReplicas: 2, readyReplicas: 2, " +
			"availableReplicas: 2, conditions: [{type: Available, status: 'True'}, {type: Progressing, status: 'True', " +
			"reason: NewReplicaSetAvailable}]}"
		definition = "apiextensions.k8s.io/v1 CustomResourceDefinition\n"
		set        = "apps/v1 StatefulSet\nspec: {replicas: 2, updateStrategy: {type: OnDelete}}\n"
		daemons    = "apps/v1 DaemonSet\nmetadata: {generation: 1}\nspec: {updateStrategy: {type: OnDelete}}\n"
	)
	tests := []struct {
		reason, object string
		status         readiness.Status
		message        string
	}{
		{"kind without a status is ready when it exists", "v1 ConfigMap\ndata: {a: b}", ready,
			"Resource is always ready"},
		{"Role is ready when it exists", "rbac.authorization.k8s.io/v1 Role\nrules: []", ready, "Resource is current"},
		{"webhook with a generation is ready when it exists",
			"admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration\nmetadata: {generation: 1}", ready,
			"Resource is current"},

		{"Deployment not observed by its controller", deployment + "spec: {replicas: 2}", progressing,
			"0 of 2 replicas are created"},
		{"Deployment is rolled out", deployment + "spec: {replicas: 2, progressDeadlineSeconds: 600}\n" + rolledOut, ready,
			"Deployment is available. Replicas: 2"},
		{"Deployment with surplus pods", deployment + "spec: {replicas: 1}\n" + rolledOut, progressing,
			"surplus replicas that have not terminated: 1"},
		{"Deployment with starting pods",
			deployment + "spec: {replicas: 2}\nstatus: {observedGeneration: 1, replicas: 2, updatedReplicas: 2, " +
				"readyReplicas: 1, availableReplicas: 1}", progressing, "1 of 2 replicas are available"},
		{"paused Deployment",
			deployment + "spec: {replicas: 2, paused: true}\nstatus: {observedGeneration: 1, replicas: 2}", progressing,
			"the Deployment is paused; 0 of 2 replicas are updated"},
		{"Deployment cannot create pods", deployment + "spec: {replicas: 2}\nstatus: " +
			"{conditions: [{type: ReplicaFailure, status: 'True', message: exceeded quota}]}", progressing,
			"pods cannot be created: exceeded quota"},
		{"Deployment exceeds its progress deadline",
			deployment + "status: {conditions: [{type: Progressing, status: 'False', reason: ProgressDeadlineExceeded}]}",
			failed, "Progress deadline exceeded"},
		{"ReplicaSet with missing labeled pods",
			"apps/v1 ReplicaSet\nspec: {replicas: 2}\nstatus: {replicas: 2, fullyLabeledReplicas: 1}", progressing,
			"1 of 2 replicas are labeled"},

		{"StatefulSet with missing pods",
			"apps/v1 StatefulSet\nspec: {replicas: 3}\nstatus: {replicas: 2, readyReplicas: 1}", progressing,
			"2 of 3 replicas are created"},
		{"OnDelete StatefulSet with pods that are not ready", set + "status: {replicas: 2, readyReplicas: 1}", progressing,
			"1 of 2 replicas are ready"},
		{"OnDelete StatefulSet with old pods is ready", set + "status: {replicas: 2, readyReplicas: 2, updatedReplicas: 0}",
			ready,
			"2 of 2 replicas are ready"},
		{"StatefulSet with the default of one replica", "apps/v1 StatefulSet\nspec: {updateStrategy: {type: OnDelete}}",
			progressing,
			"0 of 1 replicas are ready"},
		{"DaemonSet not observed by its controller", daemons, progressing,
			"waiting for the controller to observe the object"},
		{"OnDelete DaemonSet with old pods is ready", daemons + "status: {observedGeneration: 1, " +
			"desiredNumberScheduled: 2, numberReady: 2, updatedNumberScheduled: 0}", ready, "2 of 2 replicas are ready"},
		{"DaemonSet rolls out", "apps/v1 DaemonSet\nmetadata: {generation: 1}\nstatus: {observedGeneration: 1, " +
			"desiredNumberScheduled: 2, currentNumberScheduled: 2, updatedNumberScheduled: 1}", progressing,
			"1 of 2 replicas are updated"},

		{"definition that is not served yet", definition, progressing, "Install in progress"},
		{"definition that is served", definition + "status: {conditions: [{type: Established, status: 'True'}]}", ready,
			"CRD is established"},
		{"definition with names of another definition",
			definition + "status: {conditions: [{type: NamesAccepted, status: 'False', message: databases is taken}]}", failed,
			"databases is taken"},
		{"APIService that is not available", "apiregistration.k8s.io/v1 APIService\nstatus: {conditions: " +
			"[{type: Available, status: 'False', reason: MissingEndpoints, message: no endpoints}]}", progressing,
			"the APIService is not available: MissingEndpoints: no endpoints"},
		{"APIService without a status", "apiregistration.k8s.io/v1 APIService", progressing,
			"the APIService is not available"},
		{"APIService that is available",
			"apiregistration.k8s.io/v1 APIService\nstatus: {conditions: [{type: Available, status: 'True'}]}",
			ready, "the APIService is available"},

		{"active namespace", "v1 Namespace\nstatus: {phase: Active}", ready, "the namespace is active"},
		{"terminating namespace", "v1 Namespace\nstatus: {phase: Terminating}", progressing,
			`status.phase is "Terminating"`},
		{"pending PersistentVolumeClaim", "v1 PersistentVolumeClaim\nstatus: {phase: Pending}", progressing,
			"PVC is not Bound. phase: Pending"},
		{"bound PersistentVolumeClaim", "v1 PersistentVolumeClaim\nstatus: {phase: Bound}", ready, "PVC is Bound"},
		{"available PersistentVolume", "v1 PersistentVolume\nstatus: {phase: Available}", ready,
			`status.phase is "Available"`},
		{"PersistentVolume without a phase", "v1 PersistentVolume", progressing, `status.phase is ""`},
		{"failed PersistentVolume", "v1 PersistentVolume\nstatus: {phase: Failed, message: no such disk}", failed,
			"the volume has failed: no such disk"},
		{"Service of type ClusterIP", "v1 Service\nspec: {type: ClusterIP}", ready, "Service is ready"},
		{"load balancer without an address",
			"v1 Service\nspec: {type: LoadBalancer, clusterIP: 10.0.0.1}\nstatus: {loadBalancer: {}}", progressing,
			"waiting for the address of the load balancer"},
		{"load balancer with an address",
			"v1 Service\nspec: {type: LoadBalancer, clusterIP: 10.0.0.1}\nstatus: {loadBalancer: " +
				"{ingress: [{hostname: a}]}}", ready, "Service is ready"},

		{"custom resource with condition Ready", database + "status: {conditions: [{type: Ready, status: 'True'}]}", ready,
			"Resource is Ready"},
		{"custom resource that is not ready, with a message",
			database + "status: {conditions: [{type: Ready, status: 'False', reason: Restoring, message: 3 of 5 GiB}]}",
			progressing, "3 of 5 GiB"},
		{"custom resource that is not ready, with a reason",
			database + "status: {conditions: [{type: Ready, status: 'False', reason: Restoring}]}",
			progressing, "Restoring"},
		{"custom resource that is not ready, without a reason",
			database + "status: {conditions: [{type: Ready, status: 'False'}]}", progressing,
			"the object reports no reason"},
		{"custom resource with condition Ready of an earlier generation",
			database + "metadata: {generation: 2}\nstatus: {conditions: [{type: Ready, " +
				"status: 'True', observedGeneration: 1}]}", progressing,
			"condition Ready describes generation 1; waiting for generation 2 to be observed"},
		{"custom resource with invalid conditions", database + "status: {conditions: nonsense}", readiness.Unknown,
			"the readiness rule failed: "},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			got := readiness.Registry{}.Assess(object(t, test.object))
			want := readiness.Result{Status: test.status, Message: test.message}
			if test.status == readiness.Unknown { // the rest is an error of apimachinery
				require.Contains(t, got.Message, test.message)
				want.Message = got.Message
			}
			require.Empty(t, cmp.Diff(want, got), "(-want +got)")
		})
	}
}

func TestDefaults_JobsAndPods(t *testing.T) {
	const ready, progressing, failed = readiness.Ready, readiness.Progressing, readiness.Failed
	const job, pod, once = "batch/v1 Job\n", "v1 Pod\n", "v1 Pod\nspec: {restartPolicy: Never}\n"
	tests := []struct {
		reason, object string
		want           readiness.Result
	}{
		{"Job not observed by its controller", job, readiness.Result{Status: progressing,
			Message: "the Job has not started yet", Ends: true}},
		{"running Job is not ready", job + "status: {startTime: now, active: 2, succeeded: 1, failed: 3}",
			readiness.Result{Status: progressing, Message: "the Job is running: 2 pods are active, 1 succeeded and 3 failed",
				Ends: true}},
		{"suspended Job", job + "spec: {suspend: true}\nstatus: {startTime: now}",
			readiness.Result{Status: progressing, Message: "the Job is suspended; set spec.suspend to false to resume the Job",
				Ends: true}},
		{"completed Job is ready",
			job + "status: {succeeded: 2, conditions: [{type: Complete, status: 'True'}]}", readiness.Result{Status: ready,
				Message: "the Job has completed: 2 pods succeeded", Ends: true, Complete: true}},
		{"failed Job reports the reason",
			job + "status: {conditions: [{type: Failed, status: 'True', reason: BackoffLimitExceeded}]}",
			readiness.Result{Status: failed, Message: "the Job has failed: BackoffLimitExceeded", Ends: true}},
		{"completed Job that is being deleted",
			job + "metadata: {deletionTimestamp: now}\nstatus: {conditions: [{type: Complete, status: 'True'}]}",
			readiness.Result{Status: progressing, Message: "the object is being deleted", Ends: true}},

		{"running Pod with restartPolicy Never",
			once + "status: {phase: Running, conditions: [{type: Ready, status: 'True'}]}", readiness.Result{Status: progressing,
				Message: "waiting for the Pod to succeed", Ends: true}},
		{"succeeded Pod with restartPolicy Never", once + "status: {phase: Succeeded}", readiness.Result{Status: ready,
			Message: "the Pod has succeeded",
			Ends:    true, Complete: true}},
		{"succeeded Pod with restartPolicy OnFailure",
			"v1 Pod\nspec: {restartPolicy: OnFailure}\nstatus: {phase: Succeeded}", readiness.Result{Status: ready,
				Message: "the Pod has succeeded", Ends: true, Complete: true}},
		{"failed Pod with restartPolicy Never",
			once + "status: {phase: Failed, reason: Evicted, message: no memory}", readiness.Result{Status: failed,
				Message: "the Pod has failed: Evicted: no memory", Ends: true}},

		{"ready Pod", pod + "status: {phase: Running, conditions: [{type: Ready, status: 'True'}]}",
			readiness.Result{Status: ready, Message: "the Pod is ready"}},
		{"running Pod that is not ready",
			pod + "status: {phase: Running, conditions: [{type: Ready, status: 'False', reason: " +
				"ContainersNotReady}]}", readiness.Result{Status: progressing,
				Message: "the Pod is running but not ready: ContainersNotReady"}},
		{"Pod with a container in CrashLoopBackOff",
			pod + "status: {phase: Running, containerStatuses: [{name: a, state: {waiting: " +
				"{reason: ErrImagePull}}}, {name: web, state: {waiting: {reason: CrashLoopBackOff}}}]}",
			readiness.Result{Status: failed, Message: "container web is waiting: CrashLoopBackOff"}},
		{"Pod with an init container in CrashLoopBackOff",
			pod + "status: {phase: Pending, initContainerStatuses: [{name: init, state: " +
				"{waiting: {reason: CrashLoopBackOff, message: back-off}}}], containerStatuses: [{name: web, state: {waiting: " +
				"{reason: PodInitializing}}}]}", readiness.Result{Status: failed,
				Message: "container init is waiting: CrashLoopBackOff: back-off"}},
		{"Pod that cannot pull an image is progressing",
			pod + "status: {phase: Pending, containerStatuses: [{name: web, state: {waiting: " +
				"{reason: ImagePullBackOff}}}, {name: b, state: {waiting: {reason: InvalidImageName}}}]}",
			readiness.Result{Status: progressing, Message: "container web is waiting: ImagePullBackOff"}},
		{"Pod whose container is being created",
			pod + "status: {phase: Pending, containerStatuses: [{name: web, state: {waiting: {reason: " +
				"ContainerCreating}}}]}", readiness.Result{Status: progressing, Message: `status.phase is "Pending"`}},
		{"unschedulable Pod is progressing", pod + "status: {phase: Pending, conditions: [{type: " +
			"PodScheduled, status: 'False', reason: Unschedulable, message: 0/3 nodes}]}", readiness.Result{Status: progressing,
			Message: "the Pod is not scheduled: Unschedulable: 0/3 nodes"}},
		{"Pod without a phase", pod, readiness.Result{Status: progressing,
			Message: "waiting for a node to report the status of the Pod"}},
		{"Pod with an invalid status",
			pod + "status: {phase: Running, conditions: [1, {}], containerStatuses: [1, {state: 1}, " +
				"{state: {waiting: {reason: 1}}}]}", readiness.Result{Status: progressing,
				Message: "the Pod is running but not ready"}},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			require.Empty(t, cmp.Diff(test.want, readiness.Registry{}.Assess(object(t, test.object))), "(-want +got)")
		})
	}
}
