package feedback_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/muster-sdk/muster/work/feedback"
)

// The values of a Deployment: the well-known ones, and one that a Work requests.
func Example() {
	deployment := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"status": map[string]any{
			"replicas": int64(3), "readyReplicas": int64(2),
			"conditions": []any{map[string]any{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"}},
		},
	}}
	path, err := feedback.Compile(`.status.conditions[?(@.type=="Available")].reason`)
	if err != nil {
		panic(err)
	}
	value, ok, err := path.Value(deployment)
	fmt.Println(value.Type, value.Value, ok, err)
	for _, value := range feedback.WellKnown(deployment) {
		fmt.Println(value.Name, value.Value)
	}
	// Output:
	// String MinimumReplicasAvailable true <nil>
	// replicas 3
	// readyReplicas 2
	// availableReplicas 0
	// updatedReplicas 0
}
