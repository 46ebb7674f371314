package readiness

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// MaxMessageBytes is the maximum length of a message. The messages of the 1000 manifests that a Work may have then
// need half of its status.
const MaxMessageBytes = 256

// Status is the readiness of an object.
type Status string

const (
	// Ready means that the object is in its desired state.
	Ready Status = "Ready"
	// Progressing means that the object is being brought to its desired state, or waits for something.
	Progressing Status = "Progressing"
	// Failed means that the object reports a failure, or needs an action of a user.
	Failed Status = "Failed"
	// Unknown means that the readiness cannot be determined, because the Func or the rule failed.
	Unknown Status = "Unknown"
)

// Result is the readiness of an object.
type Result struct {
	// Status is the readiness.
	Status Status
	// Message explains the status to users, on one line of at most [MaxMessageBytes].
	Message string
	// Ends is true if the object runs to completion: a Job, a Pod that is not restarted after it has succeeded, or a
	// kind such as a pipeline run.
	Ends bool
	// Complete is true if the object has ended successfully.
	Complete bool
	// Unreported is true for a custom resource that is Ready only because it has no status and its kind has no rule. If
	// the kind has the subresource status, its controller may not have observed the object yet. A caller with a clock
	// can wait some time for the status.
	Unreported bool
}

// Func evaluates the objects of a kind. It must not change the object, and may be called concurrently.
//
// It is called for an object that is being deleted only if the object runs to completion, and not for an object whose
// status describes an earlier generation. If it panics or returns an error, the Status is Unknown, and the Message
// has the error.
type Func func(object *unstructured.Unstructured) (Result, error)

// Registry has the Funcs of a product, by kind. They have precedence over the default rules. Nil: only the default
// rules apply.
//
// It may be used concurrently as long as it does not change.
type Registry map[schema.GroupKind]Func

// Assess evaluates whether the object is ready. It does not change the object.
func (r Registry) Assess(object *unstructured.Unstructured) Result {
	return assess(object, func(object *unstructured.Unstructured) (Result, error) {
		kind := object.GroupVersionKind().GroupKind()
		if own := r[kind]; own != nil {
			return own(object)
		}
		if known := defaults[kind]; known != nil {
			return known(object)
		}
		if known := knownCustom(kind); known != nil {
			return known(object)
		}
		if customKind(kind) {
			if result, follows := byConvention(object); follows {
				return result, nil
			}
			result, err := byKstatus(object)
			result.Unreported = result.Status == Ready && !hasStatus(object)
			return result, err
		}
		return byKstatus(object)
	})
}

// assess evaluates an object by f. It does not call f if the metadata are sufficient, recovers a panic of f, and
// bounds the message.
func assess(object *unstructured.Unstructured, f Func) (result Result) {
	defer func() {
		if cause := recover(); cause != nil {
			result = Result{Status: Unknown, Message: fmt.Sprintf("the readiness rule panicked: %v",
				cause)}
		}
		result.Message = bounded(result.Message)
	}()
	if object == nil || object.Object == nil {
		return Result{Status: Unknown, Message: "there is no object"}
	}
	object = withNumericGeneration(object)
	generation, generated := integer(object, "metadata", "generation")
	observed, observes := integer(object, "status", "observedGeneration")
	switch {
	case text(object, "metadata", "deletionTimestamp") != "":
		// A Job that has failed is still failed while the TTL controller deletes it.
		if ends(object) {
			if result, err := f(object); err == nil && result.Ends && result.Status == Failed {
				return result
			}
		}
		return Result{Status: Progressing, Message: "the object is being deleted", Ends: ends(object)}
	case generated && observes && observed != generation:
		return Result{Status: Progressing, Ends: ends(object),
			Message: fmt.Sprintf("the status describes generation %d; waiting for generation %d to be observed", observed,
				generation)}
	}
	result, err := f(object)
	if err != nil {
		return Result{Status: Unknown, Message: fmt.Sprintf("the readiness rule failed: %v", err)}
	}
	switch result.Status {
	case Ready, Progressing, Failed, Unknown:
		return result
	}
	return Result{Status: Unknown, Message: fmt.Sprintf("the readiness rule returned the invalid status %q",
		result.Status)}
}

// withNumericGeneration returns an object whose status.observedGeneration is a number. Some controllers, such as that
// of Argo Rollouts, write a string. A string that is not a number, such as a hash, has no relation to the generation
// and is omitted.
func withNumericGeneration(object *unstructured.Unstructured) *unstructured.Unstructured {
	observed := text(object, "status", "observedGeneration")
	status, _, _ := unstructured.NestedFieldNoCopy(object.Object, "status")
	fields, _ := status.(map[string]any)
	if observed == "" || fields == nil {
		return object
	}
	fields = maps.Clone(fields)
	delete(fields, "observedGeneration")
	if number, err := strconv.ParseInt(observed, 10, 64); err == nil {
		fields["observedGeneration"] = number
	}
	copied := &unstructured.Unstructured{Object: maps.Clone(object.Object)}
	copied.Object["status"] = fields
	return copied
}

// ends reports whether an object runs to completion, by its kind.
func ends(object *unstructured.Unstructured) bool {
	switch kind := object.GroupVersionKind().GroupKind(); kind {
	case jobKind:
		return true
	case podKind:
		policy := text(object, "spec", "restartPolicy")
		return policy == "Never" || policy == "OnFailure"
	default:
		return operatorKinds[kind.Group][kind.Kind].ends || reportingKinds[kind.Group][kind.Kind].ends
	}
}

// bounded returns a message on one line of at most MaxMessageBytes.
func bounded(message string) string {
	const cut = "…"
	// Text beyond this length would be cut anyway, unless the message consists of spaces.
	message = message[:min(len(message), 4*MaxMessageBytes)]
	message = strings.ToValidUTF8(strings.Join(strings.Fields(message), " "), "")
	if len(message) <= MaxMessageBytes {
		return message
	}
	return strings.ToValidUTF8(message[:MaxMessageBytes-len(cut)], "") + cut
}
