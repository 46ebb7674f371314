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
		result.Message = fmt.Sprintf("it has completed, with %d pods that succeeded", succeeded)
	case failure.status == "True":
		result.Status, result.Message = Failed, "it failed"+failure.because()
	case suspended:
		result.Message = "it is suspended, and goes on when spec.suspend is false"
	case text(object, "status", "startTime") == "":
		result.Message = "it has not started yet"
	default:
		result.Message = fmt.Sprintf("it runs: of its pods %d are active, %d succeeded and %d failed", active, succeeded,
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
	waiting, reason := stuck(object)
	switch phase := text(object, "status", "phase"); {
	case phase == "Succeeded":
		result.Status, result.Complete, result.Message = Ready, result.Ends, "it has succeeded"
	case phase == "Failed":
		failure := conditionState{reason: text(object, "status", "reason"), message: text(object, "status", "message")}
		result.Status, result.Message = Failed, "it failed"+failure.because()
	case phase == "Running" && ready.status == "True" && !result.Ends:
		result.Status, result.Message = Ready, "it is ready"
	case waiting != "":
		result.Message = waiting
		if reason == crashLoop {
			result.Status = Failed
		}
	case phase == "Running" && result.Ends:
		result.Message = "it runs, and is ready when it has succeeded"
	case phase == "Running":
		result.Message = "it runs, but is not ready" + ready.because()
	case scheduled.status == "False":
		// Only a caller with a clock can decide whether the Pod has been unschedulable for too long.
		result.Message = "it is not scheduled" + scheduled.because()
	case phase == "":
		result.Message = "no node has seen it yet"
	default:
		result.Message = fmt.Sprintf("its phase is %q", phase)
	}
	return result, nil
}

const crashLoop = "CrashLoopBackOff"

// onItsWay are the reasons of waiting containers that are temporary.
var onItsWay = []string{"", "ContainerCreating", "PodInitializing"}

// stuck returns the message and the reason of a container that may wait forever. A container in a crash loop has
// precedence.
func stuck(object *unstructured.Unstructured) (message, reason string) {
	for _, field := range []string{"initContainerStatuses", "containerStatuses"} {
		for _, container := range list(object, "status", field) {
			state, _ := container.(map[string]any)
			waiting, _, _ := unstructured.NestedMap(state, "state", "waiting")
			why, _ := waiting["reason"].(string)
			if slices.Contains(onItsWay, why) || reason == crashLoop || (reason != "" && why != crashLoop) {
				continue
			}
			detail, _ := waiting["message"].(string)
			reason, message = why, fmt.Sprintf("its container %v is stuck%s", state["name"], conditionState{reason: why,
				message: detail}.because())
		}
	}
	return message, reason
}
