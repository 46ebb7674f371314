package readiness

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// customRule is the readiness rule of a kind of custom resources. All fields are optional.
type customRule struct {
	conditions []string // all must be True; while one is missing, the object is progressing
	failing    []string // conditions that mean failure when they are True
	field      []string // of the status: a word such as a phase
	ready      []string // values of the field that mean ready
	failed     []string // values of the field that mean failure
	ends       bool     // the object ends, such as a run of a pipeline
	succeeds   string   // the condition that is True after a success and False after a failure
	noStatus   bool     // the kind has no status: ready as soon as the object exists
	reports    bool     // its controller always writes a status, which is evaluated by the conventions

	unless  exceptions // states that prevent readiness, regardless of the fields above
	entries entryRule

	also *customRule // is evaluated if the object is ready by all fields above
}

// exceptions are states that prevent an object from being ready.
type exceptions struct {
	notFalse   []string // conditions that must not be False; they may be missing
	unfinished []string // conditions that mean that something is in progress when they are True
	errors     []string // fields of the status that mean failure when they are set
	required   []string // fields of the status that must be set
}

// entryRule evaluates a word in each entry of a list, such as the health of each cluster.
type entryRule struct {
	list, name, field string
	ready, failed     []string
	notFalse          string // a field of the entry that must not be false
}

func ruleFunc(r customRule) Func {
	return func(object *unstructured.Unstructured) (Result, error) {
		result := r.assess(object)
		if result.Status != Ready || !r.reports {
			return result, nil
		}
		if result, follows := byConvention(object); follows {
			return result, nil
		}
		return byKstatus(object)
	}
}

// assess evaluates an object by the rule.
func (r customRule) assess(object *unstructured.Unstructured) Result {
	if r.noStatus {
		return Result{Status: Ready, Message: "the kind has no status"}
	}
	result := Result{Status: Progressing, Ends: r.ends}
	if !hasStatus(object) {
		result.Message = "no controller has reported a status yet"
		return result
	}
	if result, found := r.exceptional(object, result); found {
		return result
	}
	if result = r.regular(object, result); result.Status == Ready && r.also != nil {
		return r.also.assess(object)
	}
	return result
}

// exceptional evaluates the states that prevent the object from being ready, regardless of the rest of its status.
func (r customRule) exceptional(object *unstructured.Unstructured, result Result) (Result, bool) {
	for _, kind := range r.failing {
		if c := condition(object, kind); c.status == "True" {
			result.Status, result.Message = Failed, kind+" is True"+c.detail()
			return result, true
		}
	}
	for _, field := range r.unless.errors {
		if value := fieldText(object, "status", field); !slices.Contains([]string{"", "false", "0"}, value) {
			result.Status, result.Message = Failed, fmt.Sprintf("status.%s is %q", field, value)
			return result, true
		}
	}
	for _, kind := range r.unless.unfinished {
		if c := condition(object, kind); c.status == "True" {
			result.Message = kind + " is True" + c.detail()
			return result, true
		}
	}
	for _, kind := range r.unless.notFalse {
		if c := condition(object, kind); c.status == "False" {
			if permanentReason(c.reason) {
				result.Status = Failed
			}
			result.Message = kind + " is False" + c.detail()
			return result, true
		}
	}
	for _, field := range r.unless.required {
		if fieldText(object, "status", field) == "" {
			result.Message = "status." + field + " is not set yet"
			return result, true
		}
	}
	return r.entries.exceptional(object, result)
}

func (r entryRule) exceptional(object *unstructured.Unstructured, result Result) (Result, bool) {
	var items []any
	if r.list != "" {
		items = list(object, "status", r.list)
	}
	for _, item := range items {
		entry, _ := item.(map[string]any)
		word, _ := entry[r.field].(string)
		if negated, set := entry[r.notFalse].(bool); slices.Contains(r.ready, word) && (negated || !set) {
			continue
		}
		if slices.Contains(r.failed, word) {
			result.Status = Failed
		}
		result.Message = fmt.Sprintf("status.%s: %s of %v is %q", r.list, r.field, entry[r.name], word)
		return result, true
	}
	return result, false
}

// regular evaluates the condition, the field or the conditions that mean that the object is ready.
func (r customRule) regular(object *unstructured.Unstructured, result Result) Result {
	if r.succeeds != "" {
		switch c := condition(object, r.succeeds); c.status {
		case "True":
			return Result{Status: Ready, Ends: r.ends, Complete: true, Message: r.succeeds + " is True" + c.detail()}
		case "False":
			return Result{Status: Failed, Ends: r.ends, Message: r.succeeds + " is False" + c.detail()}
		default:
			result.Message = r.succeeds + " is not True" + c.detail()
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
			result.Message = fmt.Sprintf("condition %s describes generation %d; waiting for generation %d to be observed",
				kind, c.generation, generation)
			return result
		case c.status != "True":
			if c.status == "False" && permanentReason(c.reason) {
				result.Status = Failed
			}
			result.Message = fmt.Sprintf("%s is %s%s", kind, c.status, c.detail())
			return result
		case permanentReason(c.reason): // the object has ended with a failure
			result.Status, result.Message = Failed, kind+" is True"+c.detail()
			return result
		}
	}
	result.Status, result.Message = Ready, strings.Join(r.conditions, " and ")+" is True"
	if len(r.conditions) == 0 {
		result.Message = "the status reports no problem"
	}
	return result
}

// permanentReason reports whether the reason of a condition that is False means a failure, and not a step that is
// still in progress.
func permanentReason(reason string) bool {
	if strings.HasPrefix(reason, "NoError") || strings.HasPrefix(reason, "NoFail") {
		return false
	}
	for _, word := range []string{
		"Fail", "Error", "Invalid", "Unsupported", "NotPermitted", "NotAllowed", "Denied", "Refused", "Stalled", "Rejected",
	} {
		if strings.Contains(reason, word) {
			return true
		}
	}
	return false
}

// fieldText returns a string, boolean or number as text.
func fieldText(object *unstructured.Unstructured, fields ...string) string {
	value, found, _ := unstructured.NestedFieldNoCopy(object.Object, fields...)
	if !found || value == nil {
		return ""
	}
	return fmt.Sprint(value)
}

// customKind reports whether a kind is not one of Kubernetes itself.
func customKind(kind schema.GroupKind) bool {
	return strings.Contains(kind.Group, ".") && (!strings.HasSuffix(kind.Group, ".k8s.io") ||
		kind.Group == "gateway.networking.k8s.io" || strings.HasSuffix(kind.Group, ".x-k8s.io") ||
		kind.Group == "snapshot.storage.k8s.io")
}

// nestedConditions is the rule of kinds whose status has conditions for each of several referenced objects.
type nestedConditions struct {
	field      string   // of the status: the list
	reference  string   // of an entry: the map with the name of the referenced object
	conditions []string // of an entry: must all be True
	notFalse   []string // of an entry: must not be False; they may be missing
	missing    string   // the message while the list is empty
	ready      string   // the message when the object is ready
}

func (n nestedConditions) assess(object *unstructured.Unstructured) Result {
	entries := list(object, "status", n.field)
	if len(entries) == 0 {
		return Result{Status: Progressing, Message: n.missing}
	}
	generation, _ := integer(object, "metadata", "generation")
	for _, entry := range entries {
		fields, part := partOf(entry, generation)
		result := customRule{conditions: n.conditions, unless: exceptions{notFalse: n.notFalse}}.assess(part)
		if result.Status != Ready {
			reference, _ := fields[n.reference].(map[string]any)
			name := reference["name"]
			if n.reference == "" {
				name = fields["name"]
			}
			result.Message = fmt.Sprintf("%s %v: %s", strings.TrimSuffix(n.field, "s"), name, result.Message)
			return result
		}
	}
	return Result{Status: Ready, Message: n.ready}
}

// partOf returns an entry of a list in a status, and an object that has the conditions of the entry.
func partOf(entry any, generation int64) (map[string]any, *unstructured.Unstructured) {
	fields, _ := entry.(map[string]any)
	return fields, &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"generation": generation}, "status": map[string]any{"conditions": fields["conditions"]},
	}}
}

// route evaluates a route of the Gateway API. It is ready when each parent has accepted it and resolved its
// references: https://gateway-api.sigs.k8s.io/reference/spec/#routestatus.
func route(object *unstructured.Unstructured) (Result, error) {
	return nestedConditions{
		field: "parents", reference: "parentRef",
		conditions: words("Accepted", "ResolvedRefs"), notFalse: words("Programmed"),
		missing: "no Gateway has reported on the route yet", ready: "all parents have accepted the route",
	}.assess(object), nil
}

// attachedPolicy evaluates a policy of the Gateway API. It is ready when each ancestor has accepted it:
// https://gateway-api.sigs.k8s.io/reference/spec/#policystatus.
func attachedPolicy(object *unstructured.Unstructured) (Result, error) {
	conditions := words("Accepted")
	for _, entry := range list(object, "status", "ancestors") {
		if _, part := partOf(entry, 0); condition(part, "ResolvedRefs").status != "" {
			conditions = words("Accepted", "ResolvedRefs")
		}
	}
	return nestedConditions{
		field: "ancestors", reference: "ancestorRef", conditions: conditions,
		missing: "no ancestor has reported on the policy yet", ready: "all ancestors have accepted the policy",
	}.assess(object), nil
}

// openShiftRoute evaluates a Route of OpenShift. It is ready when each router has admitted it.
func openShiftRoute(object *unstructured.Unstructured) (Result, error) {
	result := nestedConditions{
		field: "ingress", conditions: words("Admitted"),
		missing: "no router has reported on the route yet", ready: "all routers have admitted the route",
	}.assess(object)
	for _, entry := range list(object, "status", "ingress") {
		_, part := partOf(entry, 0)
		if c := condition(part, "Admitted"); c.status == "False" {
			return Result{Status: Failed, Message: "Admitted is False" + c.detail()}, nil
		}
	}
	return result, nil
}

// gateway evaluates a Gateway. It is ready when it and all of its listeners are programmed:
// https://gateway-api.sigs.k8s.io/reference/spec/#gatewaystatus.
func gateway(object *unstructured.Unstructured) (Result, error) {
	result := customRule{conditions: words("Accepted", "Programmed")}.assess(object)
	if result.Status != Ready {
		return result, nil
	}
	if refs := condition(object, "ResolvedRefs"); refs.status == "False" {
		return Result{Status: Failed, Message: "ResolvedRefs is False" + refs.detail()}, nil
	}
	for _, entry := range list(object, "status", "listeners") {
		fields, part := partOf(entry, 0)
		for _, kind := range words("Accepted", "ResolvedRefs", "Programmed") {
			if c := condition(part, kind); c.status == "False" {
				return Result{Status: Failed, Message: fmt.Sprintf("listener %v: %s is False%s", fields["name"], kind,
					c.detail())}, nil
			}
		}
	}
	return result, nil
}

// gloo evaluates a resource of Gloo. It is ready when all of its reporters have accepted it. Earlier versions write
// the state as a number, and have only one reporter.
func gloo(object *unstructured.Unstructured) (Result, error) {
	reports := []any{}
	status, _, _ := unstructured.NestedMap(object.Object, "status")
	if status["state"] != nil {
		reports = append(reports, status)
	}
	statuses, _ := status["statuses"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(statuses)) {
		reports = append(reports, statuses[name])
	}
	if len(reports) == 0 {
		return Result{Status: Progressing, Message: "no controller has reported a status yet"}, nil
	}
	for _, entry := range reports {
		report, _ := entry.(map[string]any)
		state := fmt.Sprint(report["state"])
		message := fmt.Sprintf("state is %s", state)
		if reason, _ := report["reason"].(string); reason != "" {
			message += ": " + reason
		}
		switch state {
		case "Accepted", "1":
		case "Rejected", "2", "Warning", "3":
			return Result{Status: Failed, Message: message}, nil
		default:
			return Result{Status: Progressing, Message: message}, nil
		}
	}
	return Result{Status: Ready, Message: "the resource is accepted"}, nil
}

// autoscaler evaluates a HorizontalPodAutoscaler. It has failed if it cannot read metrics or scale its target.
// Disabled scaling, or metrics that were not read yet, are not failures:
// https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale-walkthrough/#appendix-horizontal-pod-autoscaler-status-conditions.
func autoscaler(object *unstructured.Unstructured) (Result, error) {
	able, active := condition(object, "AbleToScale"), condition(object, "ScalingActive")
	switch {
	case able.status == "":
		return Result{Status: Progressing, Message: "the autoscaler has not been observed yet"}, nil
	case able.status == "False" && permanentReason(able.reason):
		return Result{Status: Failed, Message: "AbleToScale is False" + able.detail()}, nil
	case active.status == "False" && permanentReason(active.reason):
		return Result{Status: Failed, Message: "ScalingActive is False" + active.detail()}, nil
	case able.status != "True":
		return Result{Status: Progressing, Message: "AbleToScale is " + able.status + able.detail()}, nil
	}
	return Result{Status: Ready, Message: "the autoscaler is able to scale"}, nil
}
