package division_test

import (
	"crypto/sha256"
	"fmt"
	"testing"

	"github.com/muster-sdk/muster/placement/bundle"
	"github.com/muster-sdk/muster/placement/internal/division"
	"github.com/muster-sdk/muster/placement/override"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// BenchmarkDivide divides ten Deployments among a thousand clusters. If clusters get different objects, the floor is a
// hash for each cluster and object; otherwise it is to find the objects.
func BenchmarkDivide(b *testing.B) {
	const n, workloads = 1000, 10
	var texts []string
	for i := range workloads {
		texts = append(texts,
			fmt.Sprintf(
				`{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web-%d", "namespace": "shop",
				  "labels": {"app": "web"}},
			"spec": {"replicas": %d, "selector": {"matchLabels": {"app": "web"}},
			  "template": {"metadata": {"labels": {"app": "web"}},
			"spec": {"containers": [{"name": "web", "image": "web:1", "env": [{"name": "A", "value": "b"}],
			  "ports": [{"containerPort": 80}], "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}}}]}}}}`, i, 7000+i))
	}
	objects := parse(b, texts...)
	fleet := func(rules string) []division.Cluster {
		plan, err := override.New(objects, read[v1alpha1.Overrides](b, rules))
		if err != nil {
			b.Fatal(err)
		}
		clusters := make([]division.Cluster, n)
		for i := range clusters {
			clusters[i] = division.Cluster{Cluster: &scheduler.Cluster{Name: fmt.Sprintf("cluster-%d", i),
				Labels: map[string]string{"size": fmt.Sprint(i % 8)}}, Current: map[bundle.Key]int32{}}
			result, err := plan.For(clusters[i].Cluster)
			if err != nil {
				b.Fatal(err)
			}
			clusters[i].Objects = result.Objects
			for j := range objects {
				clusters[i].Current[objects[j].Key()] = int32(i % 13)
			}
		}
		return clusters
	}
	perCluster := func(b *testing.B) {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/1e3/float64(b.N*n), "µs/cluster")
		b.ReportAllocs()
	}
	room := func(_ bundle.Key, cluster string) int32 { return int32(len(cluster) * 3) }
	same, different := fleet("{}"),
		fleet(`{rules: [{mergePatch: {metadata: {labels: {cluster: "${muster.cluster.name}"}}}}]}`)
	for _, some := range []struct {
		name, spec string
		clusters   []division.Cluster
	}{
		{"duplicated", `{strategy: Duplicated}`, same},
		{"equal", `{strategy: StaticWeight}`, same},
		{"weights", `{strategy: StaticWeight, weights: [{clusters: {labelSelector: {matchLabels: {size: "1"}}}, ` +
			`weight: 2}, {clusters: {cel: ["cluster.labels['size'] != '2'"]}, weight: 3}]}`, same},
		{"dynamic", `{strategy: DynamicWeight}`, same},
		{"dynamic, all overridden", `{strategy: DynamicWeight}`, different},
	} {
		d := divided(b, some.spec)
		b.Run(some.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := d.Divide(objects, some.clusters, room); err != nil {
					b.Fatal(err)
				}
			}
			perCluster(b)
		})
	}
	b.Run("floor, all overridden", func(b *testing.B) {
		for b.Loop() {
			for i := range different {
				for j := range different[i].Objects {
					sha256.Sum256(different[i].Objects[j].JSON)
				}
			}
		}
		perCluster(b)
	})
	b.Run("workloads", func(b *testing.B) {
		d := divided(b, `{strategy: DynamicWeight}`)
		for b.Loop() {
			d.Workloads(objects, same)
		}
		perCluster(b)
	})
	b.Run("current", func(b *testing.B) {
		d := divided(b, `{strategy: DynamicWeight}`)
		for b.Loop() {
			for i := range same {
				d.Current(same[i].Objects)
			}
		}
		perCluster(b)
	})
}
