package celaffinity_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
	"github.com/muster-sdk/muster/scheduler/plugins/celaffinity"
	"github.com/muster-sdk/muster/scheduler/plugins/clusteraffinity"
)

func compile(o celaffinity.Options, expressions ...string) ([]clusteraffinity.Requirement, error) {
	term := &v1alpha1.ClusterSelectorTerm{CEL: expressions}
	return celaffinity.Matcher(o).Compile(term, field.NewPath("policy", "affinity", "required").Index(0))
}

func compiled(t require.TestingT, expression string) clusteraffinity.Requirement {
	requirements, err := compile(celaffinity.Options{}, expression)
	require.NoError(t, err)
	require.Len(t, requirements, 1)
	return requirements[0]
}

func berlin() *scheduler.Cluster {
	return &scheduler.Cluster{
		Name: "berlin", Joined: true,
		Labels:      map[string]string{"region": "eu"},
		Properties:  map[string]string{"version": "v1.31.10", "gpu": "many"},
		Taints:      []corev1.Taint{{Key: "maintenance", Value: "soon", Effect: corev1.TaintEffectNoSchedule}},
		Capacity:    corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8")},
		Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("7500m")},
		Available: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("0.5"),
			"example.com/gpu": resource.MustParse("2")},
	}
}

func TestMatches(t *testing.T) {
	for _, expression := range []string{
		`cluster.name == "berlin" && cluster.name.startsWith("ber") && cluster.name.matches("^b.*n$")`,
		`cluster.labels["region"] in ["eu", "us"]`,
		`cluster.labels.region == "eu"`,
		`has(cluster.labels.region) && !has(cluster.labels.zone)`,
		`"region" in cluster.labels && !("zone" in cluster.labels)`,
		`cluster.labels.all(key, cluster.labels[key] != "")`,
		`cluster.joined && !cluster.healthy`,
		`cluster.taints.size() == 1 && cluster.taints[0].key == "maintenance"`,
		`cluster.taints.exists(t, t.value == "soon" && t.effect == "NoSchedule")`,
		`[cluster].exists(c, c.joined)`,
		`(cluster.joined ? cluster : cluster).name == "berlin"`,

		`cluster.capacity["cpu"] == quantity("8000m")`,
		`cluster.capacity.cpu != quantity("8001m")`,
		`cluster.allocatable["cpu"] < cluster.capacity["cpu"]`,
		`cluster.available["cpu"] <= quantity("500m") && cluster.available["cpu"] >= quantity("500m")`,
		`cluster.available["example.com/gpu"] > quantity("1")`,
		`cluster.available["cpu"].isLessThan(quantity("1Gi")) && quantity("1.5Gi").isGreaterThan(quantity("1500Mi"))`,
		`quantity("1k").compareTo(quantity("1000")) == 0 && quantity("-1").compareTo(quantity("1")) == -1 && ` +
			`quantity("2").compareTo(quantity("1")) == 1`,
		`!quantity("1").isLessThan(quantity("1")) && !quantity("1").isGreaterThan(quantity("1")) && !(quantity("1") < ` +
			`quantity("1"))`,
		`cluster.available["cpu"].asApproximateFloat() / cluster.capacity["cpu"].asApproximateFloat() < 0.1`,
		`cluster.available.exists(name, cluster.available[name] > quantity("1"))`,
		`cluster.available["cpu"] in [quantity("500m")]`,
		`isQuantity("1.5Gi") && !isQuantity("many") && !isQuantity("1e2000000000")`,

		`semver(cluster.properties["version"]) >= semver("1.31.9")`,
		`semver("1.31.0") > semver("1.31.0-rc.1")`,
		`semver("1.31.0-rc.10").isGreaterThan(semver("1.31.0-rc.9")) && semver("1.0.0").isLessThan(semver("1.0.1"))`,
		`semver("1.0.0").compareTo(semver("v1.0.0+a")) == 0 && semver("1.0.0") == semver("v1.0.0")`,
		`isSemver("v1.31.0") && !isSemver("1.31")`,

		`type(quantity("1")) != type(semver("1.0.0"))`,
		`dyn(quantity("1")) != dyn(semver("1.0.0"))`,
		`cluster == cluster`,
		// The result does not depend on the missing label.
		`cluster.labels["zone"] == "a" || cluster.joined`,
	} {
		t.Run(expression, func(t *testing.T) {
			require.Empty(t, compiled(t, expression).Mismatch(berlin()))
		})
	}
}

func TestMismatch(t *testing.T) {
	many := strings.Repeat("x", 1e6)
	tests := []struct {
		reason, expression, want string
		cluster                  *scheduler.Cluster
	}{
		{"false expression", `cluster.labels["region"] == "us"`, `does not match cluster.labels["region"] == "us"`, berlin()},
		{"missing label", `cluster.labels["zone"] == "a"`,
			`fails to evaluate cluster.labels["zone"] == "a": no such key: zone`, berlin()},
		{"expression of several lines", "cluster.joined\n\t&& false", "does not match cluster.joined && false", berlin()},
		{"cluster without labels", `cluster.labels["zone"] == "a"`,
			`fails to evaluate cluster.labels["zone"] == "a": no such key: zone`, &scheduler.Cluster{}},
		{"missing resource", `cluster.available["cpu"] > quantity("1")`,
			`fails to evaluate cluster.available["cpu"] > quantity("1"): no such key: cpu`, &scheduler.Cluster{}},
		{"cluster without taints", `cluster.taints.size() > 0`, `does not match cluster.taints.size() > 0`,
			&scheduler.Cluster{}},
		{"index of a missing taint", `cluster.taints[3].key == "a"`,
			`fails to evaluate cluster.taints[3].key == "a": index out of bounds: 3`, berlin()},
		{"property is not a quantity", `quantity(cluster.properties.gpu) > quantity("1")`,
			`fails to evaluate quantity(cluster.properties.gpu) > quantity("1"): parse quantity "many": `, berlin()},
		{"property is not a version", `semver(cluster.properties.gpu) > semver("1.0.0")`,
			`fails to evaluate semver(cluster.properties.gpu) > semver("1.0.0"): parse version "many": `, berlin()},
		{"quantity with a huge exponent", `quantity("1e-2000000000") > quantity("1")`,
			`fails to evaluate quantity("1e-2000000000") > quantity("1"): parse quantity "1e-2000000000": `, berlin()},
		{"comparison of a quantity with a version", `dyn(quantity("1")) < dyn(semver("1.0.0"))`,
			`fails to evaluate dyn(quantity("1")) < dyn(semver("1.0.0")): no such overload`, berlin()},
		{"expression constructs a cluster", `muster.Cluster{name: "a"} == cluster`,
			`fails to evaluate muster.Cluster{name: "a"} == cluster: unknown type 'muster.Cluster'`, berlin()},
		{"division by zero", `1 / 0 == 1`, `fails to evaluate 1 / 0 == 1: division by zero`, berlin()},
		{"long error message is cut", `quantity(cluster.labels.a) > quantity("1")`,
			`fails to evaluate quantity(cluster.labels.a) > quantity("1"): parse quantity "xxx`,
			&scheduler.Cluster{Labels: map[string]string{"a": many[:9000]}}},
		{"cost of a long label", `quantity(cluster.labels.a) > quantity("1")`,
			`needs more than the cost limit of 1000 for quantity(cluster.labels.a) > quantity("1")`,
			&scheduler.Cluster{Labels: map[string]string{"a": many}}},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			got := compiled(t, test.expression).Mismatch(test.cluster)
			require.True(t, strings.HasPrefix(got, test.want), "want: %s\ngot: %s", test.want, got)
			require.Less(t, len(got), 400)
		})
	}
}

func TestCompileErrors(t *testing.T) {
	tests := []struct{ reason, expression, want string }{
		{"incomplete expression", `cluster.`, "line 1, column 9: Syntax error"},
		{"empty expression", ``, "Syntax error"},
		{"unknown variable", `node.name == "a"`, "line 1, column 1: undeclared reference to 'node'"},
		{"unknown field of a cluster", `cluster.labelz.region == "eu"`, "line 1, column 8: undefined field 'labelz'"},
		{"unknown field of a taint", "cluster.taints.exists(t,\n  t.kye == \"a\")",
			"line 2, column 4: undefined field 'kye'"},
		{"comparison of different types", `cluster.name == 3`, "found no matching overload for '_==_'"},
		{"comparison of a quantity with a number", `cluster.available["cpu"] > 3`, "found no matching overload for '_>_'"},
		{"comparison of a quantity with a version", `quantity("1") > semver("1.0.0")`,
			"found no matching overload for '_>_'"},
		{"result of type string", `cluster.name`, "must be true or false, but is of type string"},
		{"result of type dyn", `dyn(true)`, "must be true or false, but is of type dyn"},
		{"invalid regular expression", `cluster.name.matches("(")`, "invalid matches argument"},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			_, err := compile(celaffinity.Options{}, "true", test.expression)
			require.ErrorContains(t, err, "policy.affinity.required[0].cel[1]: ")
			require.ErrorContains(t, err, test.want)
			require.NotContains(t, err.Error(), "\n", "the error fits into a condition")
		})
	}
}

// TestCostLimit_ExpensiveExpressions checks that an expensive expression is stopped, and that other requests are not
// affected.
func TestCostLimit_ExpensiveExpressions(t *testing.T) {
	ten := "[0,1,2,3,4,5,6,7,8,9]"
	nested := "true"
	for i := range 12 { // 10 to the 12 rounds
		nested = fmt.Sprintf("%s.all(x%d, %s)", ten, i, nested)
	}
	for name, expression := range map[string]string{
		"loops":    nested,
		"texts":    ten + `.all(x, cluster.labels["long"].matches("(a*)*(b*)*(c*)*(d*)*$"))`,
		"parsing":  ten + `.all(x, isSemver(cluster.labels["long"]) || isQuantity(cluster.labels["long"]) || true)`,
		"doubling": `["a"]` + strings.Repeat(`.map(a, a+a+a+a+a+a+a+a)`, 8) + `.size() == 1`,
	} {
		t.Run(name, func(t *testing.T) {
			cluster := &scheduler.Cluster{Name: "a", Labels: map[string]string{"long": strings.Repeat("a", 2000)}}
			r := compiled(t, expression)
			require.Equal(t, "needs more than the cost limit of 1000 for "+expression, r.Mismatch(cluster))

			cache := &scheduler.Cache{}
			cache.Update(cluster)
			left := cache.Snapshot().All().Clone()
			r.Retain(cache.Snapshot(), left)
			require.True(t, left.Empty())
		})
	}
}

func TestCostLimit(t *testing.T) {
	expression := `cluster.taints.all(t, t.key != "a")`
	cluster := berlin()
	for range 100 {
		cluster.Taints = append(cluster.Taints, corev1.Taint{Key: "b"})
	}
	less, err := compile(celaffinity.Options{CostLimit: 100}, expression)
	require.NoError(t, err)
	more, err := compile(celaffinity.Options{CostLimit: 10000}, expression)
	require.NoError(t, err)
	require.Equal(t, "needs more than the cost limit of 100 for "+expression, less[0].Mismatch(cluster))
	require.Empty(t, more[0].Mismatch(cluster))

	// Requirements with different limits do not share results.
	cache := &scheduler.Cache{}
	cache.Update(cluster)
	snapshot := cache.Snapshot()
	for want, r := range []clusteraffinity.Requirement{less[0], more[0]} {
		left := snapshot.All().Clone()
		r.Retain(snapshot, left)
		require.Equal(t, want, left.Len())
	}
}

func drawCluster(t *rapid.T, name string) *scheduler.Cluster {
	keys, texts := rapid.SampledFrom([]string{"a", "b"}),
		rapid.SampledFrom([]string{"", "1", "1.5", "2Gi", "v1.2.3", "many"})
	c := &scheduler.Cluster{
		Name: name, Joined: rapid.Bool().Draw(t, "joined"),
		Labels:     rapid.MapOfN(keys, texts, 0, 2).Draw(t, "labels"),
		Properties: rapid.MapOfN(keys, texts, 0, 2).Draw(t, "properties"),
		Available:  corev1.ResourceList{},
	}
	for range rapid.IntRange(0, 3).Draw(t, "taints") {
		c.Taints = append(c.Taints, corev1.Taint{Key: keys.Draw(t, "key"), Effect: corev1.TaintEffectNoExecute})
	}
	if rapid.Bool().Draw(t, "available") {
		c.Available[corev1.ResourceCPU] = *resource.NewMilliQuantity(rapid.Int64Range(0, 2000).Draw(t, "cpu"),
			resource.DecimalSI)
	}
	return c
}

func TestRetain_AgreesWithMismatch(t *testing.T) {
	requirements := make([]clusteraffinity.Requirement, 0, 8)
	for _, expression := range []string{
		`cluster.joined`, `cluster.labels["a"] == "1"`, `quantity(cluster.properties["a"]) > quantity("1")`,
		`semver(cluster.properties["b"]) >= semver("1.0.0")`,
		`cluster.available["cpu"] >= quantity("1")`, `!cluster.taints.exists(t, t.key == "a")`,
		`cluster.labels.all(l, cluster.properties[l] != "1")`, `1/0 == 0`,
	} {
		requirements = append(requirements, compiled(t, expression))
	}
	rapid.Check(t, func(t *rapid.T) {
		cache := &scheduler.Cache{}
		var snapshots []*scheduler.Snapshot
		for range rapid.IntRange(1, 6).Draw(t, "steps") {
			for range rapid.IntRange(0, 4).Draw(t, "changes") {
				name := fmt.Sprint("c", rapid.IntRange(0, 70).Draw(t, "cluster"))
				if rapid.IntRange(0, 4).Draw(t, "goes") == 0 {
					cache.Remove(name)
				} else {
					cache.Update(drawCluster(t, name))
				}
			}
			snapshots = append(snapshots, cache.Snapshot())
			snapshot := rapid.SampledFrom(snapshots).Draw(t, "snapshot")
			for _, r := range requirements {
				left := snapshot.All().Clone()
				r.Retain(snapshot, left)
				for slot := range snapshot.All().All() {
					require.Equal(t, r.Mismatch(snapshot.Cluster(slot)) == "", left.Has(slot), "%+v", snapshot.Cluster(slot))
				}
			}
		}
	})
}

func TestRetain_EvaluatesOnlyChangedClusters(t *testing.T) {
	cache := &scheduler.Cache{}
	for i := range 1000 {
		cache.Update(&scheduler.Cluster{Name: fmt.Sprintf("c%03d", i), Joined: i%2 == 0})
	}
	r, snapshot := compiled(t, "cluster.joined"), cache.Snapshot()
	left := snapshot.All().Clone()
	r.Retain(snapshot, left)
	require.Equal(t, 500, left.Len())
	require.LessOrEqual(t, testing.AllocsPerRun(100, func() {
		r.Retain(snapshot, left)
	}), 8.0, "unchanged clusters are not evaluated again")
}

func TestConcurrentUse(t *testing.T) {
	cache, r := &scheduler.Cache{},
		compiled(t, `cluster.taints.all(t, t.key != "x") && cluster.available["cpu"] > quantity("1")`)
	for i := range 8 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			for range 50 {
				cluster := berlin()
				cluster.Name = fmt.Sprint(i)
				cache.Update(cluster)
				snapshot := cache.Snapshot()
				r.Retain(snapshot, snapshot.All().Clone())
				require.NotEmpty(t, r.Mismatch(cluster))
			}
		})
	}
}
