package v1alpha1_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/work/v1alpha1"
)

// A Deployment whose replicas an autoscaler sets.
func ExampleWorkSpec() {
	spec := v1alpha1.WorkSpec{
		Manifests: []v1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(
			`{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"}, "spec": ` +
				`{"replicas": 2}}`,
		)}}},
		ManifestOptions: []v1alpha1.ManifestOption{{
			Select:        v1alpha1.ManifestSelector{Kind: "Deployment"},
			IgnoredFields: []string{".spec.replicas"},
		}},
	}
	out, err := yaml.Marshal(spec)
	if err != nil {
		panic(err)
	}
	fmt.Print(string(out))
	// Output:
	// apply: {}
	// delete: {}
	// manifestOptions:
	// - ignoredFields:
	//   - .spec.replicas
	//   select:
	//     kind: Deployment
	// manifests:
	// - apiVersion: apps/v1
	//   kind: Deployment
	//   metadata:
	//     name: web
	//     namespace: shop
	//   spec:
	//     replicas: 2
	// waves: {}
}

// Validate checks a Work before it is written, and finds errors that the API server does not find.
func ExampleWorkSpec_Validate() {
	const namespace = `{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}`
	spec := of(namespace, `{"apiVersion": "v1", "kind": "ConfigMap"}`, namespace)
	for _, err := range spec.Validate() {
		fmt.Println(err)
	}
	// Output:
	// spec.manifests[0]: Duplicate value: "Namespace shop": the manifest has the object of spec.manifests[2] as well: remove one of them
	// spec.manifests[1].metadata.name: Required value: metadata.name is required: an object without a fixed name cannot be applied twice
	// spec.manifests[2]: Duplicate value: "Namespace shop": the manifest has the object of spec.manifests[0] as well: remove one of them
}

// An invalid manifest does not prevent that the others are applied.
func ExampleWorkSpec_Decode() {
	spec := of(
		`{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login", "namespace": "shop"}, "stringData": {"user": `+
			`"web"}}`,
		`{"apiVersion": "v1", "kind": "List", "items": []}`,
	)
	manifests, _ := spec.Decode()
	for _, m := range manifests {
		if m.Object == nil {
			fmt.Println("refused:", m.Errors.ToAggregate())
			continue
		}
		fmt.Println(m, "with", m.Object.Object["data"])
	}
	// Output:
	// Secret shop/login with map[user:d2Vi]
	// refused: spec.manifests[1].items: Forbidden: a list is no object: put its items into spec.manifests
}

// The path of a server-side apply conflict identifies the field in an object.
func ExampleParseFieldPath() {
	path, err := v1alpha1.ParseFieldPath(`.spec.template.spec.containers[name="web"].image`)
	if err != nil {
		panic(err)
	}
	object := map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
		"containers": []any{map[string]any{"name": "log"}, map[string]any{"name": "web", "image": "web:1"}},
	}}}}
	fmt.Println(path.Get(object))

	_, err = v1alpha1.ParseFieldPath(`.spec.containers[?].image`)
	fmt.Println(err)
	// Output:
	// web:1 true
	// field path ".spec.containers[?].image", position 18: expected "=" and a value behind the key, such as in [name="web"]
}
