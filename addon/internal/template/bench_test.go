package template_test

import (
	"fmt"
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/muster-sdk/muster/addon/internal/template"
	"github.com/muster-sdk/muster/addon/v1alpha1"
)

// BenchmarkRender renders a template. The floor is to parse the manifests, which is unavoidable.
func BenchmarkRender(b *testing.B) {
	const n = 50
	spec := &v1alpha1.AddonTemplateSpec{}
	for i := range n {
		m := v1alpha1.TemplateManifest{}
		m.Raw = fmt.Appendf(nil,
			`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web-%d","labels":{"app":"web"}},
			  "spec":{"replicas":2,"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},
			"spec":{"containers":[{"name":"web","image":"quay.io/example/web:1","args":["--cluster=${CLUSTER_NAME}"],
			  "ports":[{"containerPort":80}],"resources":{"requests":{"cpu":"100m"}}}]}}}}`, i)
		spec.Manifests = append(spec.Manifests, m)
	}
	in := input(b,
		`{nodePlacement: {nodeSelector: {pool: infra}}, registries: [{source: quay.io, mirror: mirror.local}], `+
			`proxy: {http: "http://proxy"}}`)
	perManifest := func(b *testing.B) {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/1000/float64(b.N*n), "µs/manifest")
	}
	b.Run("floor", func(b *testing.B) {
		for b.Loop() {
			for i := range spec.Manifests {
				var object map[string]any
				if utiljson.Unmarshal(spec.Manifests[i].Raw, &object) != nil {
					b.Fatal()
				}
			}
		}
		perManifest(b)
	})
	b.Run("render", func(b *testing.B) {
		for b.Loop() {
			if _, err := template.Render(spec, in); err != nil {
				b.Fatal(err)
			}
		}
		perManifest(b)
	})
}
