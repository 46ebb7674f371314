package readiness

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A missing value, or one of another type, is treated as empty: the objects come from API servers of other versions.

func text(object *unstructured.Unstructured, fields ...string) string {
	value, _, _ := unstructured.NestedString(object.Object, fields...)
	return value
}

func integer(object *unstructured.Unstructured, fields ...string) (value int64, set bool) {
	value, set, err := unstructured.NestedInt64(object.Object, fields...)
	return value, set && err == nil
}

func list(object *unstructured.Unstructured, fields ...string) []any {
	value, _, _ := unstructured.NestedFieldNoCopy(object.Object, fields...)
	items, _ := value.([]any)
	return items
}

// hasStatus reports whether the object has a status that is not empty.
func hasStatus(object *unstructured.Unstructured) bool {
	status, _, _ := unstructured.NestedFieldNoCopy(object.Object, "status")
	fields, _ := status.(map[string]any)
	return len(fields) > 0
}

// conditionState is a condition of an object. It is empty if the object does not have the condition.
type conditionState struct {
	status, reason, message string
	generation              int64
}

func condition(object *unstructured.Unstructured, kind string) conditionState {
	for _, item := range list(object, "status", "conditions") {
		fields, _ := item.(map[string]any)
		if fields["type"] != kind {
			continue
		}
		var state conditionState
		state.status, _ = fields["status"].(string)
		state.reason, _ = fields["reason"].(string)
		state.message, _ = fields["message"].(string)
		state.generation, _ = fields["observedGeneration"].(int64)
		return state
	}
	return conditionState{}
}

// detail returns the reason and the message of the condition as the end of a sentence; empty if it has neither.
func (c conditionState) detail() string {
	var out strings.Builder
	for _, part := range []string{c.reason, c.message} {
		if part != "" {
			out.WriteString(": " + part)
		}
	}
	return out.String()
}
