package readiness

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// job evaluates a Job. It is ready when it has completed; for kstatus, it is ready as soon as it runs.
func job(object *unstructured.Unstructured) (Result, error) {
	result := Result{Status: Progressing, Ends: true}
	active, _ := integer(object, "status", "active")
	succeeded, _ := integer(object, "status", "succeeded")
	failed, _ := integer(object, "status", "failed")
	suspended, _, _ := unstructured.NestedBool(object.Object, "spec", "suspend")
	switch failure := condition(object, "Failed"); {
	case condition(object, "Complete").status == "True":
		result.Status, result.Complete = Ready, true
		result.Message = fmt.Sprintf("the Job has completed: %d pods succeeded", succeeded)
	case failure.status == "True":
		result.Status, result.Message = Failed, "the Job has failed"+failure.detail()
	case suspended:
		result.Message = "the Job is suspended; set spec.suspend to false to resume the Job"
	case text(object, "status", "startTime") == "":
		result.Message = "the Job has not started yet"
	default:
		result.Message = fmt.Sprintf("the Job is running: %d pods are active, %d succeeded and %d failed", active, succeeded,
			failed)
	}
	return result, nil
}

// pod evaluates a Pod. It is ready if its condition Ready is True or, if its restart policy is Never or OnFailure,
// when it has succeeded. For kstatus, a Pod that runs to completion is ready as soon as it runs, and also when it has
// failed.
func pod(object *unstructured.Unstructured) (Result, error) {
	result := Result{Status: Progressing, Ends: ends(object)}
	ready, scheduled := condition(object, "Ready"), condition(object, "PodScheduled")
	waiting, reason := waitingContainer(object)
	switch phase := text(object, "status", "phase"); {
	case phase == "Succeeded":
		result.Status, result.Complete, result.Message = Ready, result.Ends, "the Pod has succeeded"
	case phase == "Failed":
		failure := conditionState{reason: text(object, "status", "reason"), message: text(object, "status", "message")}
		result.Status, result.Message = Failed, "the Pod has failed"+failure.detail()
	case phase == "Running" && ready.status == "True" && !result.Ends:
		result.Status, result.Message = Ready, "the Pod is ready"
	case waiting != "":
		result.Message = waiting
		if reason == crashLoop {
			result.Status = Failed
		}
	case phase == "Running" && result.Ends:
		result.Message = "waiting for the Pod to succeed"
	case phase == "Running":
		result.Message = "the Pod is running but not ready" + ready.detail()
	case scheduled.status == "False":
		// Only a caller with a clock can decide whether the Pod has been unschedulable for too long.
		result.Message = "the Pod is not scheduled" + scheduled.detail()
	case phase == "":
		result.Message = "waiting for a node to report the status of the Pod"
	default:
		result.Message = fmt.Sprintf("status.phase is %q", phase)
	}
	return result, nil
}

const crashLoop = "CrashLoopBackOff"

// temporaryReasons are the reasons of waiting containers that are temporary.
var temporaryReasons = []string{"", "ContainerCreating", "PodInitializing"}

// waitingContainer returns the message and the reason of a container that may wait forever. A container in a crash
// loop has precedence.
func waitingContainer(object *unstructured.Unstructured) (message, reason string) {
	for _, field := range []string{"initContainerStatuses", "containerStatuses"} {
		for _, container := range list(object, "status", field) {
			state, _ := container.(map[string]any)
			waiting, _, _ := unstructured.NestedMap(state, "state", "waiting")
			why, _ := waiting["reason"].(string)
			if slices.Contains(temporaryReasons, why) || reason == crashLoop || (reason != "" && why != crashLoop) {
				continue
			}
			detail, _ := waiting["message"].(string)
			reason, message = why, fmt.Sprintf("container %v is waiting%s", state["name"], conditionState{reason: why,
				message: detail}.detail())
		}
	}
	return message, reason
}
