package v1alpha1_test

import (
	"fmt"
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/muster-sdk/muster/work/v1alpha1"
)

func deployments(n int) v1alpha1.WorkSpec {
	var texts []string
	for i := range n {
		texts = append(texts, fmt.Sprintf(`{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web-%d",
			    "namespace": "shop",
			  "labels": {"app": "web"}},
			"spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}},
			  "template": {"metadata": {"labels": {"app": "web"}},
			"spec": {"containers": [{"name": "web", "image": "web:1", "ports": [{"containerPort": 80}],
			  "resources": {"requests": {"cpu": "100m"}}}]}}}}`, i))
	}
	return of(texts...)
}

// BenchmarkDecode compares Decode with the lower bound, which is the time to parse the JSON.
func BenchmarkDecode(b *testing.B) {
	const n = 1000
	spec := deployments(n)
	perManifest := func(b *testing.B) {
		b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n), "µs/manifest")
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
	b.Run("decode", func(b *testing.B) {
		for b.Loop() {
			if _, errs := spec.Decode(); len(errs) > 0 {
				b.Fatal(errs)
			}
		}
		perManifest(b)
	})
}
