package readiness

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	jobKind = schema.GroupKind{Group: "batch", Kind: "Job"}
	podKind = schema.GroupKind{Kind: "Pod"}
)

// defaults are the kinds for which the rules of kstatus are not sufficient. Pods are among them also because kstatus
// reads the clock for them.
var defaults = map[schema.GroupKind]Func{
	jobKind:                             job,
	podKind:                             pod,
	{Kind: "Namespace"}:                 namespace,
	{Kind: "PersistentVolume"}:          volume,
	{Kind: "Service"}:                   service,
	{Group: "apps", Kind: "Deployment"}: deployment,
	{Group: "apps", Kind: "ReplicaSet"}: replicas,
	{Group: "apps", Kind: "StatefulSet"}: func(object *unstructured.Unstructured) (Result, error) {
		wanted, set := integer(object, "spec", "replicas")
		if !set {
			wanted = 1 // as the API server would
		}
		return statefulSet(object, wanted)
	},
	{Kind: "ReplicationController"}:                                   replicationController,
	{Kind: "PersistentVolumeClaim"}:                                   claim,
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: definition,
	{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}:           autoscaler,
	{Group: "policy", Kind: "PodDisruptionBudget"}:                    disruptionBudget,
	{Group: "apps", Kind: "DaemonSet"}: func(object *unstructured.Unstructured) (Result, error) {
		wanted, set := integer(object, "status", "desiredNumberScheduled")
		if !set {
			return Result{Status: Progressing, Message: "waiting for the controller to observe the object"}, nil
		}
		return replicasOnDelete(object, wanted, "numberReady")
	},
	{Group: "apiregistration.k8s.io", Kind: "APIService"}: apiService,
}

// statuses maps the statuses of kstatus.
var statuses = map[status.Status]Status{
	status.CurrentStatus:    Ready,
	status.InProgressStatus: Progressing,
	status.FailedStatus:     Failed,
}

func byKstatus(object *unstructured.Unstructured) (Result, error) {
	// Many controllers of custom resources write the generation only in the condition, which kstatus does not read.
	ready := condition(object, "Ready")
	generation, _ := integer(object, "metadata", "generation")
	if ready.generation != 0 && ready.generation < generation {
		return Result{Status: Progressing,
			Message: fmt.Sprintf("condition Ready describes generation %d; waiting for generation %d to be observed",
				ready.generation, generation)}, nil
	}
	computed, err := status.Compute(object)
	if err != nil {
		return Result{}, err
	}
	result := Result{Status: statuses[computed.Status], Message: computed.Message}
	switch {
	case computed.Message != "":
	case len(computed.Conditions) > 0 && computed.Conditions[0].Reason != "":
		result.Message = computed.Conditions[0].Reason
	default:
		result.Message = "the object reports no reason"
	}
	return result, nil
}

// counts maps the first words of replica counts in the messages of kstatus, as in Available: 1/3.
var counts = map[string]string{
	"Available": "available", "Current": "scheduled", "Ready": "ready", "Replicas": "created", "Updated": "updated",
	"Labelled": "labeled", //nolint:misspell // kstatus has it so
	"current":  "current", "updated": "updated",
}

// replicas evaluates replicas by kstatus, and rewrites its messages as sentences.
func replicas(object *unstructured.Unstructured) (Result, error) {
	result, err := byKstatus(object)
	if result.Status != Progressing {
		return result, err
	}
	topic, figures, _ := strings.Cut(result.Message, ": ")
	have, want, both := strings.Cut(figures, "/")
	switch {
	case condition(object, "ReplicaFailure").status == "True":
		result.Message = "pods cannot be created: " + condition(object, "ReplicaFailure").message
	case both && counts[topic] != "":
		result.Message = fmt.Sprintf("%s of %s replicas are %s", have, want, counts[topic])
	case topic == "Pending termination":
		result.Message = fmt.Sprintf("surplus replicas that have not terminated: %s", figures)
	}
	return result, err
}

func deployment(object *unstructured.Unstructured) (Result, error) {
	result, err := replicas(object)
	if paused, _, _ := unstructured.NestedBool(object.Object, "spec", "paused"); paused && result.Status == Progressing {
		result.Message = "the Deployment is paused; " + result.Message
	}
	return result, err
}

// replicasOnDelete evaluates a workload with the strategy OnDelete, whose Pods are replaced only when a user deletes
// them, by its ready replicas. For kstatus, such a StatefulSet is always ready, and such a DaemonSet is not ready
// until all Pods are new. Other workloads are evaluated by kstatus.
func replicasOnDelete(object *unstructured.Unstructured, wanted int64, field string) (Result, error) {
	if text(object, "spec", "updateStrategy", "type") != "OnDelete" {
		return replicas(object)
	}
	ready, _ := integer(object, "status", field)
	result := Result{Status: Ready, Message: fmt.Sprintf("%d of %d replicas are ready", ready, wanted)}
	if ready < wanted {
		result.Status = Progressing
	}
	return result, nil
}

// statefulSet evaluates minReadySeconds in addition to kstatus, and surplus replicas of a StatefulSet with the
// strategy OnDelete.
func statefulSet(object *unstructured.Unstructured, wanted int64) (Result, error) {
	result, err := replicasOnDelete(object, wanted, "readyReplicas")
	if err != nil || result.Status != Ready {
		return result, err
	}
	if there, _ := integer(object, "status", "replicas"); there > wanted {
		return Result{Status: Progressing, Message: fmt.Sprintf("surplus replicas that have not terminated: %d",
			there-wanted)}, nil
	}
	if unobserved(object) {
		return Result{Status: Progressing, Message: "waiting for the controller to observe the object"}, nil
	}
	return availableLongEnough(object, result, wanted), nil
}

// unobserved reports whether the controller of a workload has not written a status yet. The first status contains the
// observed generation.
func unobserved(object *unstructured.Unstructured) bool {
	_, generated := integer(object, "metadata", "generation")
	_, observed := integer(object, "status", "observedGeneration")
	return generated && !observed
}

// availableLongEnough returns Progressing until all replicas have been ready for minReadySeconds.
func availableLongEnough(object *unstructured.Unstructured, result Result, wanted int64) Result {
	seconds, _ := integer(object, "spec", "minReadySeconds")
	available, _ := integer(object, "status", "availableReplicas")
	if result.Status == Ready && seconds > 0 && available < wanted {
		return Result{Status: Progressing, Message: fmt.Sprintf("%d of %d replicas are available", available, wanted)}
	}
	return result
}

// replicationController evaluates a ReplicationController by its replicas. kstatus has no rule for it.
func replicationController(object *unstructured.Unstructured) (Result, error) {
	wanted, set := integer(object, "spec", "replicas")
	if !set {
		wanted = 1 // as the API server would
	}
	there, _ := integer(object, "status", "replicas")
	ready, _ := integer(object, "status", "readyReplicas")
	result := Result{Status: Progressing, Message: fmt.Sprintf("%d of %d replicas are ready", ready, wanted)}
	switch {
	case condition(object, "ReplicaFailure").status == "True":
		result.Message = "pods cannot be created: " + condition(object, "ReplicaFailure").message
	case unobserved(object):
		result.Message = "waiting for the controller to observe the object"
	case there > wanted:
		result.Message = fmt.Sprintf("surplus replicas that have not terminated: %d", there-wanted)
	case ready >= wanted:
		result.Status = Ready
		return availableLongEnough(object, result, wanted), nil
	}
	return result, nil
}

// disruptionBudget evaluates a PodDisruptionBudget. It has failed if its controller cannot compute the number of
// allowed disruptions:
// https://kubernetes.io/docs/reference/kubernetes-api/policy-resources/pod-disruption-budget-v1/.
func disruptionBudget(object *unstructured.Unstructured) (Result, error) {
	if unobserved(object) {
		return Result{Status: Progressing, Message: "waiting for the controller to observe the object"}, nil
	}
	if allowed := condition(object, "DisruptionAllowed"); allowed.reason == "SyncFailed" {
		return Result{Status: Failed, Message: "DisruptionAllowed is " + allowed.status + allowed.detail()}, nil
	}
	return byKstatus(object)
}

// claim evaluates a PersistentVolumeClaim. It has failed if its volume is lost: the data is gone, and the claim does
// not bind again.
func claim(object *unstructured.Unstructured) (Result, error) {
	if text(object, "status", "phase") == "Lost" {
		return Result{Status: Failed, Message: "the claim has lost its volume: the bound PersistentVolume " +
			"no longer exists"}, nil
	}
	return byKstatus(object)
}

// definition evaluates a CustomResourceDefinition. It evaluates all conditions before it reports that the definition
// is served, because their order has no meaning.
func definition(object *unstructured.Unstructured) (Result, error) {
	if _, err := byKstatus(object); err != nil {
		return Result{}, err
	}
	if names := condition(object, "NamesAccepted"); names.status == "False" {
		return Result{Status: Failed, Message: cmp.Or(names.message, names.reason)}, nil
	}
	if condition(object, "Terminating").status == "True" {
		return Result{Status: Progressing, Message: "the definition is being removed with all of its objects"}, nil
	}
	return byKstatus(object)
}

func namespace(object *unstructured.Unstructured) (Result, error) {
	if phase := text(object, "status", "phase"); phase != "Active" {
		return Result{Status: Progressing, Message: fmt.Sprintf("status.phase is %q", phase)}, nil
	}
	return Result{Status: Ready, Message: "the namespace is active"}, nil
}

func volume(object *unstructured.Unstructured) (Result, error) {
	phase := text(object, "status", "phase")
	result := Result{Status: Progressing, Message: fmt.Sprintf("status.phase is %q", phase)}
	switch phase {
	case "Available", "Bound", "Released":
		result.Status = Ready
	case "Failed":
		result.Status, result.Message = Failed, "the volume has failed: "+text(object, "status", "message")
	}
	return result, nil
}

func service(object *unstructured.Unstructured) (Result, error) {
	if text(object, "spec", "type") == "LoadBalancer" && !hasAddress(object) {
		return Result{Status: Progressing, Message: "waiting for the address of the load balancer"}, nil
	}
	return byKstatus(object)
}

// hasAddress reports whether the load balancer of a Service has an address. An entry may exist before it has an
// address.
func hasAddress(object *unstructured.Unstructured) bool {
	return slices.ContainsFunc(list(object, "status", "loadBalancer", "ingress"), func(entry any) bool {
		fields, _ := entry.(map[string]any)
		return fields["ip"] != nil && fields["ip"] != "" || fields["hostname"] != nil && fields["hostname"] != ""
	})
}

func apiService(object *unstructured.Unstructured) (Result, error) {
	available := condition(object, "Available")
	if available.status != "True" {
		return Result{Status: Progressing, Message: "the APIService is not available" + available.detail()}, nil
	}
	return Result{Status: Ready, Message: "the APIService is available"}, nil
}
