package template_test

import (
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/addon/config"
	"github.com/muster-sdk/muster/addon/internal/template"
	"github.com/muster-sdk/muster/addon/v1alpha1"
)

// The logging configuration of an add-on on the member east.
func ExampleRender() {
	var spec v1alpha1.AddonTemplateSpec
	if err := yaml.UnmarshalStrict([]byte(`
manifests:
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: collector}
  data:
    url: https://${CLUSTER_NAME}.${DOMAIN}
    run.sh: exec collect --home $${HOME}
- apiVersion: batch/v1
  kind: Job
  metadata:
    name: flush
    annotations: {addon.muster.dev/pre-delete: "true"}
`), &spec); err != nil {
		panic(err)
	}
	in := template.Input{Cluster: "east", Addon: "logs", InstallNamespace: "logging"}
	_, err := template.Render(&spec, in)
	fmt.Println(err)

	in.Settings = config.Values([]v1alpha1.AddonConfigSpec{{Variables: []v1alpha1.Variable{{Name: "DOMAIN",
		Value: "example.com"}}}})
	out, err := template.Render(&spec, in)
	if err != nil {
		panic(err)
	}
	for _, object := range out.Objects {
		text, err := yaml.Marshal(object.Object)
		if err != nil {
			panic(err)
		}
		fmt.Printf("---\n%s", text)
	}
	fmt.Println("before it is removed:", out.Hooks[0].GetKind(), out.Hooks[0].GetName())
	// Output:
	// ConfigMap collector: manifests[0].data.url: ${DOMAIN}: the variable does not exist: no applicable AddonConfig sets it
	// ---
	// apiVersion: v1
	// kind: Namespace
	// metadata:
	//   name: logging
	// ---
	// apiVersion: v1
	// data:
	//   run.sh: exec collect --home ${HOME}
	//   url: https://east.example.com
	// kind: ConfigMap
	// metadata:
	//   name: collector
	//   namespace: logging
	// before it is removed: Job flush
}
