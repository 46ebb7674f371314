package override_test

import (
	"encoding/json"
	"fmt"
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/muster-sdk/muster/placement/bundle"
	"github.com/muster-sdk/muster/placement/override"
	"github.com/muster-sdk/muster/scheduler"
)

// BenchmarkManifests applies overrides to a thousand Deployments for one cluster. The floor is to decode and encode the
// changed objects, which every patch requires.
func BenchmarkManifests(b *testing.B) {
	const n = 1000
	var objects []bundle.Object
	for i := range n {
		objects = append(objects,
			parse(b, fmt.Sprintf(
				`{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web-%d", "namespace": "shop",
				  "labels": {"app": "web"}},
			"spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}},
			  "template": {"metadata": {"labels": {"app": "web"}},
			"spec": {"containers": [{"name": "web", "image": "web:1", "ports": [{"containerPort": 80}],
			  "resources": {"requests": {"cpu": "100m"}}}]}}}}`, i)))
	}
	const patches = `jsonPatch: [{op: replace, path: /spec/template/spec/containers/0/image, ` +
		`value: "${muster.cluster.labels['region']}.example.com/web:2"}], mergePatch: {spec: {replicas: 3}}`
	cluster := &scheduler.Cluster{Name: "east", Labels: map[string]string{"region": "eu"}}
	perManifest := func(b *testing.B) {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/1e3/float64(b.N*n), "µs/manifest")
		b.ReportAllocs()
	}

	b.Run("floor", func(b *testing.B) {
		for b.Loop() {
			for i := range objects {
				var content map[string]any
				if utiljson.Unmarshal(objects[i].JSON, &content) != nil {
					b.Fatal()
				}
				if _, err := json.Marshal(content); err != nil {
					b.Fatal(err)
				}
			}
		}
		perManifest(b)
	})
	for _, some := range []struct{ name, objects string }{{"all patched", "[]"},
		{"one of ten patched", "[{name: web-%d}]"}, {"none patched", "[{kind: Service}]"}} {
		rules := ""
		switch some.name {
		case "one of ten patched":
			for i := 0; i < n; i += 160 { // 7 rules of 16 objects: as good as 100
				selectors := ""
				for j := i; j < i+160 && j < n; j += 10 {
					selectors += fmt.Sprintf("{name: web-%d}, ", j)
				}
				rules += "{objects: [" + selectors + "], " + patches + "}, "
			}
		default:
			rules = "{objects: " + some.objects + ", " + patches + "}"
		}
		plan, err := override.New(objects, overrides(b, "{rules: ["+rules+"]}"))
		if err != nil {
			b.Fatal(err)
		}
		b.Run(some.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := plan.For(cluster); err != nil {
					b.Fatal(err)
				}
			}
			perManifest(b)
		})
		result, err := plan.For(cluster)
		if err != nil {
			b.Fatal(err)
		}
		works, err := bundle.Pack("web", nil, objects)
		if err != nil {
			b.Fatal(err)
		}
		b.Run("pack, "+some.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := bundle.Pack("web", works, result.Objects); err != nil {
					b.Fatal(err)
				}
			}
			perManifest(b)
		})
	}
	b.Run("plan", func(b *testing.B) {
		spec := overrides(b, "{rules: [{"+patches+"}]}")
		for b.Loop() {
			if _, err := override.New(objects, spec); err != nil {
				b.Fatal(err)
			}
		}
		perManifest(b)
	})
}
