package readiness

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// MaxMessageBytes is how long a message may be: those of the 1000 manifests that a Work may have take half of its
// status.
const MaxMessageBytes = 256

// Status of an object.
type Status string

const (
	// Ready says that the object is what it shall be.
	Ready Status = "Ready"
	// Progressing says that it is on its way there, or waits for something.
	Progressing Status = "Progressing"
	// Failed says that it will not come right by itself, or has said so.
	Failed Status = "Failed"
	// Unknown says that the readiness cannot be determined: the Func or the rule failed.
	Unknown Status = "Unknown"
)

// Result is what is known of the readiness of an object.
type Result struct {
	// Status of the object.
	Status Status
	// Message says for people why, in at most [MaxMessageBytes] on one line.
	Message string
	// Ends says that the object is one that is to end: a Job, or a Pod that is not started anew when it has succeeded.
	Ends bool
	// Complete says that it has ended well.
	Complete bool
	// Unreported is true for a custom resource that is Ready only because it has no status and no rule knows its kind.
	// If the kind has a status, its controller may not have observed the object yet. A caller with a clock can wait some
	// time for the status.
	Unreported bool
}

// Func assesses the objects of a kind. It must not change the object, and may be called concurrently.
//
// It is asked about an object that is being deleted only if the object is one that ends, and not about an object whose
// status is about an older generation. If it panics or returns an error, the Status is Unknown, and the Message says
// so.
type Func func(object *unstructured.Unstructured) (Result, error)

// Registry has the Funcs of a product, by kind. They come before the defaults; nil has the defaults alone.
//
// It may be used concurrently as long as it does not change.
type Registry map[schema.GroupKind]Func

// Assess says whether the object is ready. It does not change it.
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

// assess asks f if that is worth it, and takes whatever comes back.
func assess(object *unstructured.Unstructured, f Func) (result Result) {
	defer func() {
		if cause := recover(); cause != nil {
			result = Result{Status: Unknown, Message: fmt.Sprintf("its readiness cannot be told, for there was a panic: %v",
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
		// A Job that has failed stays so while its TTL removes it.
		if ends(object) {
			if result, err := f(object); err == nil && result.Ends && result.Status == Failed {
				return result
			}
		}
		return Result{Status: Progressing, Message: "it is being deleted", Ends: ends(object)}
	case generated && observes && observed != generation:
		return Result{Status: Progressing, Ends: ends(object),
			Message: fmt.Sprintf("its status is about generation %d, not about generation %d, which it is now", observed,
				generation)}
	}
	result, err := f(object)
	if err != nil {
		return Result{Status: Unknown, Message: fmt.Sprintf("its readiness cannot be told: %v", err)}
	}
	switch result.Status {
	case Ready, Progressing, Failed, Unknown:
		return result
	}
	return Result{Status: Unknown, Message: fmt.Sprintf("its readiness cannot be told: %q is no status", result.Status)}
}

// withNumericGeneration returns an object whose status.observedGeneration is a number. Some controllers, such as that
// of Argo Rollouts, write a string; one that is no number, such as a hash, says nothing about the generation and is
// left out.
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

// ends says whether an object is to end, by its kind.
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

// bounded makes one line of a message that is not too long.
func bounded(message string) string {
	const cut = "…"
	// What is beyond this is cut off anyway, if not every character of it is a space.
	message = message[:min(len(message), 4*MaxMessageBytes)]
	message = strings.ToValidUTF8(strings.Join(strings.Fields(message), " "), "")
	if len(message) <= MaxMessageBytes {
		return message
	}
	return strings.ToValidUTF8(message[:MaxMessageBytes-len(cut)], "") + cut
}
