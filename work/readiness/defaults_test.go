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
		{"a kind without a status is ready as soon as it is there", "v1 ConfigMap\ndata: {a: b}", ready,
			"Resource is always ready"},
		{"so is a role", "rbac.authorization.k8s.io/v1 Role\nrules: []", ready, "Resource is current"},
		{"so is a webhook, although it has a generation",
			"admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration\nmetadata: {generation: 1}", ready,
			"Resource is current"},

		{"a controller has not seen it", deployment + "spec: {replicas: 2}", progressing, "0 of 2 replicas are created"},
		{"all is well", deployment + "spec: {replicas: 2, progressDeadlineSeconds: 600}\n" + rolledOut, ready,
			"Deployment is available. Replicas: 2"},
		{"old pods are still there", deployment + "spec: {replicas: 1}\n" + rolledOut, progressing,
			"surplus replicas that have not terminated: 1"},
		{"pods start", deployment + "spec: {replicas: 2}\nstatus: {observedGeneration: 1, replicas: 2, updatedReplicas: 2, " +
			"readyReplicas: 1, availableReplicas: 1}", progressing, "1 of 2 replicas are available"},
		{"a pause looks like slowness",
			deployment + "spec: {replicas: 2, paused: true}\nstatus: {observedGeneration: 1, replicas: 2}", progressing,
			"the Deployment is paused; 0 of 2 replicas are updated"},
		{"a quota is in the way, which nobody would guess from a count", deployment + "spec: {replicas: 2}\nstatus: " +
			"{conditions: [{type: ReplicaFailure, status: 'True', message: exceeded quota}]}", progressing,
			"pods cannot be created: exceeded quota"},
		{"time is up",
			deployment + "status: {conditions: [{type: Progressing, status: 'False', reason: ProgressDeadlineExceeded}]}",
			failed, "Progress deadline exceeded"},
		{"a ReplicaSet counts as well",
			"apps/v1 ReplicaSet\nspec: {replicas: 2}\nstatus: {replicas: 2, fullyLabeledReplicas: 1}", progressing,
			"1 of 2 replicas are labeled"},

		{"a StatefulSet starts one after the other",
			"apps/v1 StatefulSet\nspec: {replicas: 3}\nstatus: {replicas: 2, readyReplicas: 1}", progressing,
			"2 of 3 replicas are created"},
		{"OnDelete is no excuse for pods that are not ready", set + "status: {replicas: 2, readyReplicas: 1}", progressing,
			"1 of 2 replicas are ready"},
		{"OnDelete is done with old pods", set + "status: {replicas: 2, readyReplicas: 2, updatedReplicas: 0}", ready,
			"2 of 2 replicas are ready"},
		{"one replica is the default", "apps/v1 StatefulSet\nspec: {updateStrategy: {type: OnDelete}}", progressing,
			"0 of 1 replicas are ready"},
		{"a DaemonSet that nobody has seen yet wants no pods yet", daemons, progressing,
			"waiting for the controller to observe the object"},
		{"a DaemonSet may have old pods when it is told so", daemons + "status: {observedGeneration: 1, " +
			"desiredNumberScheduled: 2, numberReady: 2, updatedNumberScheduled: 0}", ready, "2 of 2 replicas are ready"},
		{"a DaemonSet rolls out", "apps/v1 DaemonSet\nmetadata: {generation: 1}\nstatus: {observedGeneration: 1, " +
			"desiredNumberScheduled: 2, currentNumberScheduled: 2, updatedNumberScheduled: 1}", progressing,
			"1 of 2 replicas are updated"},

		{"a definition is of no use before it is served", definition, progressing, "Install in progress"},
		{"a definition is served", definition + "status: {conditions: [{type: Established, status: 'True'}]}", ready,
			"CRD is established"},
		{"another definition has its names",
			definition + "status: {conditions: [{type: NamesAccepted, status: 'False', message: databases is taken}]}", failed,
			"databases is taken"},
		{"an aggregated API is of no use before it answers", "apiregistration.k8s.io/v1 APIService\nstatus: {conditions: " +
			"[{type: Available, status: 'False', reason: MissingEndpoints, message: no endpoints}]}", progressing,
			"the APIService is not available: MissingEndpoints: no endpoints"},
		{"nor before anybody has tried", "apiregistration.k8s.io/v1 APIService", progressing,
			"the APIService is not available"},
		{"it answers", "apiregistration.k8s.io/v1 APIService\nstatus: {conditions: [{type: Available, status: 'True'}]}",
			ready, "the APIService is available"},

		{"a namespace takes objects", "v1 Namespace\nstatus: {phase: Active}", ready, "the namespace is active"},
		{"a namespace does not take objects any more", "v1 Namespace\nstatus: {phase: Terminating}", progressing,
			`status.phase is "Terminating"`},
		{"a claim waits", "v1 PersistentVolumeClaim\nstatus: {phase: Pending}", progressing,
			"PVC is not Bound. phase: Pending"},
		{"a claim has its volume", "v1 PersistentVolumeClaim\nstatus: {phase: Bound}", ready, "PVC is Bound"},
		{"a volume is there", "v1 PersistentVolume\nstatus: {phase: Available}", ready, `status.phase is "Available"`},
		{"a volume is not", "v1 PersistentVolume", progressing, `status.phase is ""`},
		{"a volume is broken", "v1 PersistentVolume\nstatus: {phase: Failed, message: no such disk}", failed,
			"the volume has failed: no such disk"},
		{"a service within the cluster needs nothing", "v1 Service\nspec: {type: ClusterIP}", ready, "Service is ready"},
		{"nobody gets to a balancer without an address",
			"v1 Service\nspec: {type: LoadBalancer, clusterIP: 10.0.0.1}\nstatus: {loadBalancer: {}}", progressing,
			"waiting for the address of the load balancer"},
		{"a balancer has one", "v1 Service\nspec: {type: LoadBalancer, clusterIP: 10.0.0.1}\nstatus: {loadBalancer: " +
			"{ingress: [{hostname: a}]}}", ready, "Service is ready"},

		{"the custom of custom resources", database + "status: {conditions: [{type: Ready, status: 'True'}]}", ready,
			"Resource is Ready"},
		{"it is not ready",
			database + "status: {conditions: [{type: Ready, status: 'False', reason: Restoring, message: 3 of 5 GiB}]}",
			progressing, "3 of 5 GiB"},
		{"it has but one word for it", database + "status: {conditions: [{type: Ready, status: 'False', reason: Restoring}]}",
			progressing, "Restoring"},
		{"it has no word for it", database + "status: {conditions: [{type: Ready, status: 'False'}]}", progressing,
			"the object reports no reason"},
		{"it was ready before it was changed", database + "metadata: {generation: 2}\nstatus: {conditions: [{type: Ready, " +
			"status: 'True', observedGeneration: 1}]}", progressing,
			"condition Ready describes generation 1; waiting for generation 2 to be observed"},
		{"its status is not what anybody expects", database + "status: {conditions: nonsense}", readiness.Unknown,
			"the readiness rule failed: "},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			got := readiness.Registry{}.Assess(object(t, test.object))
			want := readiness.Result{Status: test.status, Message: test.message}
			if test.status == readiness.Unknown { // the rest is in the words of apimachinery
				require.Contains(t, got.Message, test.message)
				want.Message = got.Message
			}
			require.Empty(t, cmp.Diff(want, got), "(-want +got)")
		})
	}
}

func TestEnding(t *testing.T) {
	const ready, progressing, failed = readiness.Ready, readiness.Progressing, readiness.Failed
	const job, pod, once = "batch/v1 Job\n", "v1 Pod\n", "v1 Pod\nspec: {restartPolicy: Never}\n"
	tests := []struct {
		reason, object string
		want           readiness.Result
	}{
		{"a Job that nobody has seen yet is not ready", job, readiness.Result{Status: progressing,
			Message: "the Job has not started yet", Ends: true}},
		{"a Job that runs is not ready", job + "status: {startTime: now, active: 2, succeeded: 1, failed: 3}",
			readiness.Result{Status: progressing, Message: "the Job is running: 2 pods are active, 1 succeeded and 3 failed",
				Ends: true}},
		{"a suspended Job waits for somebody", job + "spec: {suspend: true}\nstatus: {startTime: now}",
			readiness.Result{Status: progressing, Message: "the Job is suspended; set spec.suspend to false to resume the Job",
				Ends: true}},
		{"a Job is ready when it has completed",
			job + "status: {succeeded: 2, conditions: [{type: Complete, status: 'True'}]}", readiness.Result{Status: ready,
				Message: "the Job has completed: 2 pods succeeded", Ends: true, Complete: true}},
		{"a Job that failed says why",
			job + "status: {conditions: [{type: Failed, status: 'True', reason: BackoffLimitExceeded}]}",
			readiness.Result{Status: failed, Message: "the Job has failed: BackoffLimitExceeded", Ends: true}},
		{"a Job that goes has not ended well for anybody who looks again",
			job + "metadata: {deletionTimestamp: now}\nstatus: {conditions: [{type: Complete, status: 'True'}]}",
			readiness.Result{Status: progressing, Message: "the object is being deleted", Ends: true}},

		{"a pod that runs once is not ready while it runs",
			once + "status: {phase: Running, conditions: [{type: Ready, status: 'True'}]}", readiness.Result{Status: progressing,
				Message: "waiting for the Pod to succeed", Ends: true}},
		{"a pod that has succeeded", once + "status: {phase: Succeeded}", readiness.Result{Status: ready,
			Message: "the Pod has succeeded",
			Ends:    true, Complete: true}},
		{"a pod that is started anew until it succeeds is to end, too",
			"v1 Pod\nspec: {restartPolicy: OnFailure}\nstatus: {phase: Succeeded}", readiness.Result{Status: ready,
				Message: "the Pod has succeeded", Ends: true, Complete: true}},
		{"a pod that failed is not ready, whatever kstatus says",
			once + "status: {phase: Failed, reason: Evicted, message: no memory}", readiness.Result{Status: failed,
				Message: "the Pod has failed: Evicted: no memory", Ends: true}},

		{"a pod serves", pod + "status: {phase: Running, conditions: [{type: Ready, status: 'True'}]}",
			readiness.Result{Status: ready, Message: "the Pod is ready"}},
		{"a pod does not serve yet", pod + "status: {phase: Running, conditions: [{type: Ready, status: 'False', reason: " +
			"ContainersNotReady}]}", readiness.Result{Status: progressing,
			Message: "the Pod is running but not ready: ContainersNotReady"}},
		{"a pod crashes again and again", pod + "status: {phase: Running, containerStatuses: [{name: a, state: {waiting: " +
			"{reason: ErrImagePull}}}, {name: web, state: {waiting: {reason: CrashLoopBackOff}}}]}",
			readiness.Result{Status: failed, Message: "container web is waiting: CrashLoopBackOff"}},
		{"so does what it has to do first", pod + "status: {phase: Pending, initContainerStatuses: [{name: init, state: " +
			"{waiting: {reason: CrashLoopBackOff, message: back-off}}}], containerStatuses: [{name: web, state: {waiting: " +
			"{reason: PodInitializing}}}]}", readiness.Result{Status: failed,
			Message: "container init is waiting: CrashLoopBackOff: back-off"}},
		{"an image may come yet", pod + "status: {phase: Pending, containerStatuses: [{name: web, state: {waiting: " +
			"{reason: ImagePullBackOff}}}, {name: b, state: {waiting: {reason: InvalidImageName}}}]}",
			readiness.Result{Status: progressing, Message: "container web is waiting: ImagePullBackOff"}},
		{"a container is made", pod + "status: {phase: Pending, containerStatuses: [{name: web, state: {waiting: {reason: " +
			"ContainerCreating}}}]}", readiness.Result{Status: progressing, Message: `status.phase is "Pending"`}},
		{"a node may come yet, so that it has not failed", pod + "status: {phase: Pending, conditions: [{type: " +
			"PodScheduled, status: 'False', reason: Unschedulable, message: 0/3 nodes}]}", readiness.Result{Status: progressing,
			Message: "the Pod is not scheduled: Unschedulable: 0/3 nodes"}},
		{"a pod without a phase", pod, readiness.Result{Status: progressing,
			Message: "waiting for a node to report the status of the Pod"}},
		{"nonsense is not ready", pod + "status: {phase: Running, conditions: [1, {}], containerStatuses: [1, {state: 1}, " +
			"{state: {waiting: {reason: 1}}}]}", readiness.Result{Status: progressing,
			Message: "the Pod is running but not ready"}},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			require.Empty(t, cmp.Diff(test.want, readiness.Registry{}.Assess(object(t, test.object))), "(-want +got)")
		})
	}
}
