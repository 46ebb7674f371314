package celaffinity_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/scheduler"
	"github.com/muster-sdk/muster/scheduler/plugins/celaffinity"
)

// FuzzExpression compiles arbitrary text, and evaluates it for a cluster if it is a valid expression.
func FuzzExpression(f *testing.F) {
	for _, expression := range []string{
		"", "true", "cluster", `cluster.labels["a"] == "b"`, `cluster.taints.exists(t, t.key == "a")`,
		`quantity("1") < quantity("1Gi")`, `semver("1.0.0") < semver("v2.0.0")`,
		`has(cluster.labels.a)`, `[cluster].map(c, c.name)[0] == "a"`, `dyn(cluster).name == 1`,
		`muster.Cluster{name: ""} == cluster`, `{cluster: 1}[cluster] == 1`,
		`cluster.available.all(k, cluster.available[k].asApproximateFloat() > 1.0)`, `type(cluster) == muster.Cluster`,
		`string(cluster.capacity) == ""`, `cluster.name.matches(cluster.name)`,
		`cluster.labels == cluster.properties`, `cluster.capacity == cluster.available`, `cluster.taints == cluster.taints`,
		`duration("1s") < timestamp("2020-01-01T00:00:00Z") - timestamp("2019-01-01T00:00:00Z")`,
		"((((((((((((((((((((((true))))))))))))))))))))))", "-----------1 == 1", "\xff\x00", `quantity(cluster) == 1`,
		`cluster.taints.map(t, t.key) == []`, `b"\xff" == bytes("a")`,
	} {
		f.Add(expression, "1")
	}
	matcherOptions := celaffinity.Options{CostLimit: 500}
	f.Fuzz(func(t *testing.T, expression, text string) {
		if len(expression) > 1024 {
			return // no policy can have a longer expression
		}
		requirements, err := compile(matcherOptions, expression)
		if err != nil {
			return
		}
		cluster := berlin()
		cluster.Labels["a"], cluster.Properties["a"] = text, text
		cache := &scheduler.Cache{}
		cache.Update(cluster)
		left := cache.Snapshot().All().Clone()
		requirements[0].Retain(cache.Snapshot(), left)
		require.Equal(t, requirements[0].Mismatch(cluster) == "", !left.Empty())
	})
}
