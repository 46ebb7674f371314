package readiness

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// convention evaluates an object by one convention; false: the object does not follow it.
type convention func(object *unstructured.Unstructured) (Result, bool)

// byConvention evaluates a custom resource without a rule by the conventions that most operators follow. It returns
// false if the object follows none of them. A condition Ready or Available that is True has precedence over signs
// that something is in progress.
func byConvention(object *unstructured.Unstructured) (Result, bool) {
	for _, find := range []convention{failedByCondition, failedByWord, failedByMessage, byNamedConditions} {
		if result, found := find(object); found {
			return result, true
		}
	}
	if condition(object, "Ready").status != "" || condition(object, "Available").status == "True" {
		return Result{}, false // kstatus has the better message
	}
	for _, entry := range list(object, "status", "ancestors") {
		if _, part := partOf(entry, 0); condition(part, "Accepted").status != "" {
			result, _ := attachedPolicy(object)
			return result, true
		}
	}
	if ancestors := list(object, "status", "ancestors"); ancestors != nil && len(ancestors) == 0 {
		return Result{Status: Progressing, Message: "no ancestor has reported on the policy yet"}, true
	}
	for _, find := range []convention{byOtherConditions, progressingByWord, byReadyField, byReplicas} {
		if result, found := find(object); found {
			return result, true
		}
	}
	return Result{}, false
}

// failedByCondition returns Failed if a condition that is named after a failure is True.
func failedByCondition(object *unstructured.Unstructured) (Result, bool) {
	for _, kind := range conditionTypes(object) {
		if c := condition(object, kind); c.status == "True" && meansFailure(kind) {
			return Result{Status: Failed, Message: kind + " is True" + c.detail()}, true
		}
	}
	// These cases are resources that copy the conditions of a Deployment, and resources that run a Job.
	if c := condition(object, "Progressing"); c.status == "False" && c.reason == "ProgressDeadlineExceeded" {
		return Result{Status: Failed, Message: "Progressing is False" + c.detail()}, true
	}
	if c := condition(object, "Complete"); c.status == "True" && permanentReason(c.reason) {
		return Result{Status: Failed, Message: "Complete is True" + c.detail()}, true
	}
	return Result{}, false
}

// failedByMessage returns Failed if the object has an error that the resources of Cluster API report:
// https://cluster-api.sigs.k8s.io/developer/providers/contracts/control-plane.
func failedByMessage(object *unstructured.Unstructured) (Result, bool) {
	message := text(object, "status", "failureMessage")
	if message == "" {
		return Result{}, false
	}
	return Result{Status: Failed, Message: "status.failureMessage: " + message}, true
}

// byReadyField evaluates status.ready, which resources of Cluster API have.
func byReadyField(object *unstructured.Unstructured) (Result, bool) {
	if ready, set, err := unstructured.NestedBool(object.Object, "status", "ready"); err != nil || !set || ready {
		return Result{}, false
	}
	return Result{Status: Progressing, Message: "status.ready is false"}, true
}

// meansFailure reports whether a condition of this type means a failure when it is True. Operators agree on these
// words, and not on their prefixes or suffixes.
func meansFailure(kind string) bool {
	if strings.HasPrefix(kind, "No") {
		return false
	}
	if strings.HasPrefix(kind, "Failed") || kind == "ErrorOccurred" {
		return true
	}
	return slices.ContainsFunc([]string{
		"Failed", "Failure", "Error", "Errored", "Degraded", "Invalid", "Rejected", "Unhealthy",
	}, func(word string) bool { return strings.HasSuffix(kind, word) })
}

// statusWords are the fields of a status in which operators write one word about the whole object.
var statusWords = []string{"phase", "state", "status", "health", "currentState"}

// failedByWord returns Failed if a field such as status.phase has a word that means failure.
func failedByWord(object *unstructured.Unstructured) (Result, bool) {
	return byWord(object, Failed, func(word string) bool {
		word, _, _ = strings.Cut(word, ",") // some go on with a message
		switch strings.ToLower(word) {
		case "failed", "failure", "error", "errored", "degraded", "unhealthy", "invalid", "rejected", "red":
			return true
		}
		return strings.HasSuffix(word, "Failed") || strings.HasSuffix(word, "Failure") || strings.HasSuffix(word, "Error")
	})
}

// progressingByWord returns Progressing if a field such as status.phase has a word that means a transition.
func progressingByWord(object *unstructured.Unstructured) (Result, bool) {
	return byWord(object, Progressing, func(word string) bool {
		word = strings.ToLower(strings.NewReplacer(" ", "", "_", "", "-", "").Replace(word))
		return slices.Contains([]string{
			"bootstrapping", "building", "configuring", "creating", "deleting", "deploying", "init",
			"initialising", //nolint:misspell // some operators write it so
			"initializing", "inprogress", "installing", "notready", "notreconciled", "pending", "preparing", "progressing",
			"promoting", "provisioning", "reconciling", "restarting", "scaling", "starting", "stopping", "terminating",
			"updating", "upgrading", "waiting",
		}, word)
	})
}

func byWord(object *unstructured.Unstructured, status Status, is func(string) bool) (Result, bool) {
	for _, field := range statusWords {
		value := text(object, "status", field)
		if value == "" || !is(value) {
			continue
		}
		message := fmt.Sprintf("status.%s is %q", field, value)
		if detail := text(object, "status", "message"); detail != "" {
			message += ": " + detail
		}
		return Result{Status: status, Message: message}, true
	}
	return Result{}, false
}

// byNamedConditions evaluates the conditions that most operators have, regardless of the condition Ready.
func byNamedConditions(object *unstructured.Unstructured) (Result, bool) {
	for _, kind := range []string{"Accepted", "Programmed", "Synced", "Available"} {
		c := condition(object, kind)
		switch {
		case c.status == "" || c.status == "True":
			continue
		case c.status == "False" && permanentReason(c.reason):
			return Result{Status: Failed, Message: kind + " is False" + c.detail()}, true
		}
		return Result{Status: Progressing, Message: fmt.Sprintf("%s is %s%s", kind, c.status, c.detail())}, true
	}
	return Result{}, false
}

// byOtherConditions evaluates all conditions of an object that has no condition Ready. The object has failed if a
// condition is False with a reason that means failure. It is progressing if a condition that is named after a desired
// state is not True.
func byOtherConditions(object *unstructured.Unstructured) (Result, bool) {
	kinds := conditionTypes(object)
	if conditions, set, _ := unstructured.NestedFieldNoCopy(object.Object, "status", "conditions"); set &&
		len(kinds) == 0 {
		if _, is := conditions.([]any); is {
			return Result{Status: Progressing, Message: "no controller has reported a condition yet"}, true
		}
	}
	for _, kind := range kinds {
		if c := condition(object, kind); c.status == "False" && permanentReason(c.reason) && !meansFailure(kind) {
			return Result{Status: Failed, Message: kind + " is False" + c.detail()}, true
		}
	}
	for _, kind := range kinds {
		desired := slices.ContainsFunc([]string{
			"Admitted", "Applied", "Deployed", "Healthy", "Initialized", "Provisioned", "Ready", "Reconciled", "Succeeded",
			"Synced", "Synchronized", "Valid",
		}, func(word string) bool { return strings.HasSuffix(kind, word) })
		if c := condition(object, kind); desired && c.status != "True" && c.status != "" {
			return Result{Status: Progressing, Message: fmt.Sprintf("%s is %s%s", kind, c.status, c.detail())}, true
		}
	}
	return Result{}, false
}

// byReplicas compares the replica counts that kinds with the subresource scale report.
func byReplicas(object *unstructured.Unstructured) (Result, bool) {
	wanted, set := integer(object, "spec", "replicas")
	if !set {
		wanted, set = integer(object, "status", "replicas")
	}
	ready, reported := integer(object, "status", "readyReplicas")
	if nodes, daemon := integer(object, "status", "desiredNumberScheduled"); daemon {
		wanted, set = nodes, true
		ready, reported = integer(object, "status", "numberReady")
	}
	if !set || !reported || ready >= wanted {
		return Result{}, false
	}
	return Result{Status: Progressing, Message: fmt.Sprintf("%d of %d replicas are ready", ready, wanted)}, true
}

// conditionTypes returns the types of the conditions of an object, in their order.
func conditionTypes(object *unstructured.Unstructured) []string {
	var kinds []string
	for _, entry := range list(object, "status", "conditions") {
		fields, _ := entry.(map[string]any)
		if kind, _ := fields["type"].(string); kind != "" {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}
