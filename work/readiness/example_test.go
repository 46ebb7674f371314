package readiness_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/muster-sdk/muster/work/readiness"
)

// A product adds a rule for its own kind, and a Work contains a rule for another one.
func Example() {
	registry := readiness.Registry{
		{Group: "example.com", Kind: "Database"}: func(object *unstructured.Unstructured) (readiness.Result, error) {
			if object.GetAnnotations()["example.com/restoring"] != "" {
				return readiness.Result{Status: readiness.Progressing, Message: "the database is being restored"}, nil
			}
			return readiness.Result{Status: readiness.Ready, Message: "the database serves requests"}, nil
		},
	}
	database := &unstructured.Unstructured{}
	database.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Database"})
	database.SetAnnotations(map[string]string{"example.com/restoring": "yes"})

	job := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"suspend": true}}}
	job.SetGroupVersionKind(schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"})

	for _, object := range []*unstructured.Unstructured{database, job} {
		result := registry.Assess(object)
		fmt.Printf("%s: %s, %s\n", object.GetKind(), result.Status, result.Message)
	}

	rule, err := readiness.CompileCEL(`object.status.phase == "Running"`)
	if err != nil {
		panic(err)
	}
	fmt.Println(rule.Assess(database).Message)
	database.Object["status"] = map[string]any{"phase": "Running"}
	fmt.Println(rule.Assess(database).Message)
	// Output:
	// Database: Progressing, the database is being restored
	// Job: Progressing, the Job is suspended; set spec.suspend to false to resume the Job
	// the readiness rule cannot be evaluated: no such key: status, in object.status.phase == "Running"
	// the readiness rule is true
}
