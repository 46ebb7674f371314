package bundle_test

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/muster-sdk/muster/placement/bundle"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// ExampleClean removes the fields of the hub from an object. Clean refuses objects that no member should get.
func ExampleClean() {
	for _, object := range []map[string]any{
		{
			"apiVersion": "v1", "kind": "Service",
			"metadata": map[string]any{"name": "web", "namespace": "shop", "uid": "7b1f", "resourceVersion": "812"},
			"spec": map[string]any{"clusterIP": "10.96.4.11",
				"ports": []any{map[string]any{"port": int64(80), "nodePort": int64(30080)}}},
		},
		{
			"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
			"metadata": map[string]any{"name": "robot", "namespace": "shop"},
		},
	} {
		cleaned, err := bundle.Clean(&unstructured.Unstructured{Object: object})
		if refusal, isRefusal := errors.AsType[*bundle.RefusedError](err); isRefusal {
			fmt.Println(refusal)
			continue
		}
		fmt.Printf("%s\n", cleaned.JSON)
	}
	// Output:
	// {"apiVersion":"v1","kind":"Service","metadata":{"name":"web","namespace":"shop"},"spec":{"ports":[{"port":80}]}}
	// Secret shop/robot cannot be distributed: the token gives access to the hub only
}

// ExamplePack adds and removes objects. The other objects stay in their Works.
func ExamplePack() {
	parse := func(names ...string) (out []bundle.Object) {
		for _, name := range names {
			object, err := bundle.Parse(fmt.Appendf(nil,
				`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"large":"%0300000d"}}`, name, 0))
			if err != nil {
				panic(err)
			}
			out = append(out, object)
		}
		return out
	}
	var works []bundle.Work
	for _, names := range [][]string{{"b", "c", "d"}, {"a", "b", "c", "d"}, {"a", "b", "d"}} {
		var err error
		if works, err = bundle.Pack("web", works, parse(names...)); err != nil {
			panic(err)
		}
		for _, work := range works {
			names := []string{}
			for _, object := range work.Objects {
				names = append(names, object.Name)
			}
			fmt.Println(work.Name, names)
		}
	}
	// Output:
	// web-0 [b c]
	// web-1 [d]
	// web-0 [b c]
	// web-1 [a d]
	// web-0 [b]
	// web-1 [a d]
}

// ExampleArrange moves an object that has outgrown its Work. The member applies the new Work before the old one gives
// up the object.
func ExampleArrange() {
	parse := func(name string, size int) bundle.Object {
		object, err := bundle.Parse(fmt.Appendf(nil,
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"large":"%0*d"}}`, name, size, 0))
		if err != nil {
			panic(err)
		}
		return object
	}
	spec := workv1alpha1.WorkSpec{Apply: workv1alpha1.ApplyPolicy{Drift: workv1alpha1.DriftReport}}
	wanted := bundle.Wanted{Objects: []bundle.Object{parse("a", 100_000), parse("b", 700_000)},
		Options: bundle.HashOptions(&spec)}

	// The existing state on the hub: one Work, with a smaller b.
	spec.Manifests = (&bundle.Work{Objects: []bundle.Object{parse("a", 100_000), parse("b", 200_000)}}).Manifests()
	onHub := map[string]*workv1alpha1.Work{"web-0": {Spec: spec}}

	for round := range 3 {
		var existing []bundle.Existing
		for name, work := range onHub {
			existing = append(existing, bundle.Existing{
				Work: bundle.Read(name, work.Spec.Manifests), Options: bundle.HashOptions(&work.Spec),
				Marked: true, Noted: true, Processed: bundle.Processed(work), Deleting: work.DeletionTimestamp != nil,
			})
		}
		steps, err := bundle.Arrange("web", existing, wanted)
		if err != nil {
			panic(err)
		}
		fmt.Printf("round %d: %d steps\n", round, len(steps))
		for _, step := range steps {
			if step.Waits != "" {
				fmt.Printf("  %s %s has to wait: %s\n", step.Act, step.Work.Name, step.Waits)
				continue
			}
			fmt.Printf("  %s %s\n", step.Act, step.Work.Name)
			spec.Manifests = step.Work.Manifests()
			onHub[step.Work.Name] = &workv1alpha1.Work{Spec: spec, Status: workv1alpha1.WorkStatus{ // the member applies at once
				Conditions: []metav1.Condition{{Type: workv1alpha1.ConditionApplied, Status: metav1.ConditionTrue}},
			}}
		}
	}
	// Output:
	// round 0: 2 steps
	//   update web-0 has to wait: ConfigMap b moves to Work web-1, which is not applied yet
	//   create web-1
	// round 1: 1 steps
	//   update web-0
	// round 2: 0 steps
}
