package feedback

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/muster-sdk/muster/work/v1alpha1"
)

// WellKnown returns the well-known values of the object that exist, in the order of the table in the package
// documentation. Other kinds have none. A count that the API omits because it is 0 is reported as 0 as soon as the
// object has a status.
func WellKnown(object *unstructured.Unstructured) []v1alpha1.FeedbackValue {
	if object == nil {
		return nil
	}
	status, _ := object.Object["status"].(map[string]any)
	var values []v1alpha1.FeedbackValue
	for _, known := range wellKnown()[object.GroupVersionKind().GroupKind()] {
		value, ok, err := known.path.Value(object)
		if err != nil {
			continue // treated as missing: a value that conforms to its API is within the limits
		}
		if !ok && known.counts && len(status) > 0 {
			value, ok = v1alpha1.FeedbackValue{Type: v1alpha1.FeedbackNumber, Value: "0"}, true
		}
		if ok {
			value.Name = known.name
			values = append(values, value)
		}
	}
	return values
}

type wellKnownValue struct {
	name   string
	path   *Path
	counts bool
}

var wellKnown = sync.OnceValue(func() map[schema.GroupKind][]wellKnownValue {
	at := func(name, path string) wellKnownValue {
		compiled, err := Compile(path)
		if err != nil {
			panic(fmt.Sprintf("well-known path %s: %v", path, err)) // a test compiles all of them
		}
		return wellKnownValue{name: name, path: compiled}
	}
	count := func(name, field string) wellKnownValue {
		known := at(name, ".status."+field)
		known.counts = true
		return known
	}
	counts := func(fields ...string) []wellKnownValue {
		all := make([]wellKnownValue, 0, len(fields))
		for _, field := range fields {
			all = append(all, count(field, field))
		}
		return all
	}
	return map[schema.GroupKind][]wellKnownValue{
		{Group: "apps", Kind: "Deployment"}:  counts("replicas", "readyReplicas", "availableReplicas", "updatedReplicas"),
		{Group: "apps", Kind: "StatefulSet"}: counts("replicas", "readyReplicas", "availableReplicas", "updatedReplicas"),
		{Group: "apps", Kind: "ReplicaSet"}:  counts("replicas", "readyReplicas", "availableReplicas"),
		{Group: "apps", Kind: "DaemonSet"}: counts("desiredNumberScheduled", "numberReady", "numberAvailable",
			"updatedNumberScheduled"),
		{Group: "batch", Kind: "Job"}: {
			at("jobComplete", `.status.conditions[?(@.type=="Complete")].status`),
			count("jobSucceeded", "succeeded"), count("jobFailed", "failed"), count("jobActive", "active"),
		},
		{Kind: "Pod"}: {
			at("podPhase", `.status.phase`),
			at("podReady", `.status.conditions[?(@.type=="Ready")].status`),
		},
		{Kind: "Service"}:               {at("loadBalancerAddress", `.status.loadBalancer.ingress[*]['ip','hostname']`)},
		{Kind: "PersistentVolumeClaim"}: {at("claimPhase", `.status.phase`)},
	}
})
