package readiness

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// customRule says what the status of a kind of custom resources means. All of it is optional.
type customRule struct {
	conditions []string // must all be True; while one is missing, no controller has reported
	failing    []string // conditions that mean failure when they are True
	field      []string // of the status: a word such as a phase
	ready      []string // values of the field that mean ready
	failed     []string // values of the field that mean failure
	ends       bool     // the object ends, such as a run of a pipeline
	succeeds   string   // the condition that is True when it has ended well and False when it failed
	noStatus   bool     // the kind has no status: ready as soon as it is there

	also *customRule // must hold as well where the field says that the object is ready
}

func ruleFunc(r customRule) Func {
	return func(object *unstructured.Unstructured) (Result, error) { return r.assess(object), nil }
}

// assess evaluates an object of a kind in the table.
func (r customRule) assess(object *unstructured.Unstructured) Result {
	if r.noStatus {
		return Result{Status: Ready, Message: "the kind has no status"}
	}
	result := Result{Status: Progressing, Ends: r.ends}
	status, _, _ := unstructured.NestedFieldNoCopy(object.Object, "status")
	if fields, _ := status.(map[string]any); len(fields) == 0 {
		result.Message = "no controller has reported a status yet"
		return result
	}
	for _, kind := range r.failing {
		if c := condition(object, kind); c.status == "True" {
			result.Status, result.Message = Failed, kind+" is True"+c.because()
			return result
		}
	}
	if r.succeeds != "" {
		switch c := condition(object, r.succeeds); c.status {
		case "True":
			return Result{Status: Ready, Ends: r.ends, Complete: true, Message: r.succeeds + " is True" + c.because()}
		case "False":
			return Result{Status: Failed, Ends: r.ends, Message: r.succeeds + " is False" + c.because()}
		default:
			result.Message = r.succeeds + " is not True" + c.because()
			return result
		}
	}
	if len(r.field) > 0 {
		return r.byField(object, result)
	}
	return r.byConditions(object, result)
}

func (r customRule) byField(object *unstructured.Unstructured, result Result) Result {
	value := fieldText(object, append([]string{"status"}, r.field...)...)
	result.Message = fmt.Sprintf("status.%s is %q", strings.Join(r.field, "."), value)
	message := text(object, "status", "message")
	if message != "" {
		result.Message += ": " + message
	}
	switch {
	case slices.Contains(r.failed, value):
		result.Status = Failed
	case slices.Contains(r.ready, value) && r.also != nil:
		return r.also.byField(object, Result{Status: Progressing, Ends: r.ends})
	case slices.Contains(r.ready, value):
		result.Status, result.Complete = Ready, r.ends
	}
	return result
}

func (r customRule) byConditions(object *unstructured.Unstructured, result Result) Result {
	for _, kind := range r.conditions {
		c := condition(object, kind)
		generation, _ := integer(object, "metadata", "generation")
		switch {
		case c.status == "":
			result.Message = "condition " + kind + " is not set yet"
			return result
		case c.generation != 0 && c.generation < generation:
			result.Message = fmt.Sprintf("condition %s is about generation %d, not about generation %d", kind, c.generation, generation)
			return result
		case c.status != "True":
			if c.status == "False" && permanentReason(c.reason) {
				result.Status = Failed
			}
			result.Message = fmt.Sprintf("%s is %s%s", kind, c.status, c.because())
			return result
		}
	}
	result.Status, result.Message = Ready, strings.Join(r.conditions, " and ")+" is True"
	return result
}

// permanentReason reports whether a reason of a condition that is False says that something has failed, as opposed to
// not being done yet.
func permanentReason(reason string) bool {
	for _, word := range []string{
		"Fail", "Error", "Invalid", "Unsupported", "NotPermitted", "NotAllowed", "Denied", "Refused", "Stalled", "Rejected",
	} {
		if strings.Contains(reason, word) {
			return true
		}
	}
	return false
}

// fieldText is a string, boolean or number as text.
func fieldText(object *unstructured.Unstructured, fields ...string) string {
	value, found, _ := unstructured.NestedFieldNoCopy(object.Object, fields...)
	if !found || value == nil {
		return ""
	}
	return fmt.Sprint(value)
}

// byConvention evaluates a custom resource of which no more is known than the conventions that most operators follow.
// The second result is false where the object follows none of them.
func byConvention(object *unstructured.Unstructured) (Result, bool) {
	for _, kind := range []string{"Failed", "Degraded"} {
		if c := condition(object, kind); c.status == "True" {
			return Result{Status: Failed, Message: kind + " is True" + c.because()}, true
		}
	}
	for _, field := range []string{"phase", "state"} {
		if value := text(object, "status", field); value == "Failed" || value == "Error" {
			message := fmt.Sprintf("status.%s is %q", field, value)
			if detail := text(object, "status", "message"); detail != "" {
				message += ": " + detail
			}
			return Result{Status: Failed, Message: message}, true
		}
	}
	for _, kind := range []string{"Accepted", "Programmed", "Synced", "Available", "Ready"} {
		c := condition(object, kind)
		switch {
		case c.status == "" || c.status == "True":
			continue
		case c.status == "False" && permanentReason(c.reason) && kind != "Ready":
			return Result{Status: Failed, Message: kind + " is False" + c.because()}, true
		case kind == "Ready":
			return Result{}, false // kstatus has the better message
		}
		return Result{Status: Progressing, Message: fmt.Sprintf("%s is %s%s", kind, c.status, c.because())}, true
	}
	return Result{}, false
}

// customKind reports whether a kind is none of Kubernetes' own.
func customKind(kind schema.GroupKind) bool {
	return strings.Contains(kind.Group, ".") && (!strings.HasSuffix(kind.Group, ".k8s.io") ||
		kind.Group == "gateway.networking.k8s.io" || strings.HasSuffix(kind.Group, ".x-k8s.io") || kind.Group == "snapshot.storage.k8s.io")
}

// route is ready when each parent has accepted it and resolved what it refers to:
// https://gateway-api.sigs.k8s.io/reference/spec/#routestatus.
func route(object *unstructured.Unstructured) (Result, error) {
	parents := list(object, "status", "parents")
	if len(parents) == 0 {
		return Result{Status: Progressing, Message: "no Gateway has reported on the route yet"}, nil
	}
	generation, _ := integer(object, "metadata", "generation")
	for _, entry := range parents {
		fields, _ := entry.(map[string]any)
		reference, _ := fields["parentRef"].(map[string]any)
		parent := &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"generation": generation}, "status": map[string]any{"conditions": fields["conditions"]},
		}}
		result := customRule{conditions: []string{"Accepted", "ResolvedRefs"}}.byConditions(parent, Result{Status: Progressing})
		if result.Status != Ready {
			result.Message = fmt.Sprintf("parent %v: %s", reference["name"], result.Message)
			return result, nil
		}
	}
	return Result{Status: Ready, Message: "all parents have accepted the route"}, nil
}

// autoscaler fails where it cannot read metrics or scale its target. That scaling is disabled, or that no metric was
// read yet, is no failure:
// https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale-walkthrough/#appendix-horizontal-pod-autoscaler-status-conditions.
func autoscaler(object *unstructured.Unstructured) (Result, error) {
	able, active := condition(object, "AbleToScale"), condition(object, "ScalingActive")
	switch {
	case able.status == "":
		return Result{Status: Progressing, Message: "the autoscaler has not been observed yet"}, nil
	case able.status == "False" && permanentReason(able.reason):
		return Result{Status: Failed, Message: "AbleToScale is False" + able.because()}, nil
	case active.status == "False" && permanentReason(active.reason):
		return Result{Status: Failed, Message: "ScalingActive is False" + active.because()}, nil
	case able.status != "True":
		return Result{Status: Progressing, Message: "AbleToScale is " + able.status + able.because()}, nil
	}
	return Result{Status: Ready, Message: "the autoscaler is able to scale"}, nil
}
