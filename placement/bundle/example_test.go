package bundle_test

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/muster-sdk/muster/placement/bundle"
)

// An object of the hub becomes one that a member can have. Some have no business there.
func ExampleClean() {
	for _, object := range []map[string]any{
		{
			"apiVersion": "v1", "kind": "Service",
			"metadata": map[string]any{"name": "web", "namespace": "shop", "uid": "7b1f", "resourceVersion": "812"},
			"spec":     map[string]any{"clusterIP": "10.96.4.11", "ports": []any{map[string]any{"port": int64(80), "nodePort": int64(30080)}}},
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
	// Secret shop/robot does not travel: a token of the hub gives access to the hub, and to nothing else
}

// What is in a Work stays there, whatever comes.
func ExamplePack() {
	parse := func(names ...string) (out []bundle.Object) {
		for _, name := range names {
			object, err := bundle.Parse(fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"large":"%0300000d"}}`, name, 0))
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
