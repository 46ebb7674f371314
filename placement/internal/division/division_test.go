package division_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/placement/bundle"
	"github.com/muster-sdk/muster/placement/internal/division"
	"github.com/muster-sdk/muster/placement/override"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

func parse(t testing.TB, texts ...string) []bundle.Object {
	t.Helper()
	var out []bundle.Object
	for _, text := range texts {
		raw, err := yaml.YAMLToJSON([]byte(text))
		require.NoError(t, err, text)
		o, err := bundle.Parse(raw)
		require.NoError(t, err, text)
		out = append(out, o)
	}
	return out
}

func read[T any](t testing.TB, text string) *T {
	t.Helper()
	out := new(T)
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), out), text)
	return out
}

func divided(t testing.TB, spec string) *division.Division {
	t.Helper()
	d, err := division.New(read[v1alpha1.ReplicaDivision](t, spec))
	require.NoError(t, err, spec)
	return d
}

// members returns the clusters a, b and c of the regions eu, eu and us, with the objects after overrides.
func members(t testing.TB, objects []bundle.Object, overrides string) []division.Cluster {
	t.Helper()
	plan, err := override.New(objects, read[v1alpha1.Overrides](t, overrides))
	require.NoError(t, err, overrides)
	var out []division.Cluster
	for name, region := range map[string]string{"a": "eu", "b": "eu", "c": "us"} {
		cluster := &scheduler.Cluster{Name: name, Labels: map[string]string{"region": region}}
		result, err := plan.For(cluster)
		require.NoError(t, err, overrides)
		out = append(out, division.Cluster{Cluster: cluster, Objects: result.Objects, Current: map[bundle.Key]int32{}})
	}
	slices.SortFunc(out, func(x, y division.Cluster) int { return strings.Compare(x.Name, y.Name) })
	return out
}

// numbered returns the text at spec.replicas of an object. "-" means that there is none.
func numbered(t require.TestingT, o *bundle.Object) string {
	var content map[string]any
	require.NoError(t, utiljson.Unmarshal(o.JSON, &content))
	spec, _ := content["spec"].(map[string]any)
	n, found := spec["replicas"]
	if !found {
		return "-"
	}
	return fmt.Sprint(n)
}

func deployment(name, replicas string) string {
	return `{apiVersion: apps/v1, kind: Deployment, metadata: {name: ` + name + `, namespace: shop}, spec: {replicas: ` +
		replicas + `}}`
}

func of(apiVersion, kind, name, spec string) string {
	return fmt.Sprintf(`{apiVersion: %s, kind: %s, metadata: {name: %s, namespace: shop}, spec: %s}`, apiVersion, kind,
		name, spec)
}

func TestDivide(t *testing.T) {
	const equal = `{strategy: StaticWeight}`
	for _, test := range []struct {
		reason, spec string
		objects      []string
		overrides    string
		current      map[string]map[string]int32 // by cluster and name
		room         map[string]int32
		want         []string // of each cluster: all replicas, then those of each object that it gets
		unplaced     string
		errs         []string
	}{
		{
			reason: "without weights the shares are equal", spec: equal,
			objects: []string{deployment("web", "6")}, want: []string{"2: 2", "2: 2", "2: 2"},
		},
		{
			reason: "the first matching weight applies, and a cluster without a weight gets none",
			spec: `{strategy: StaticWeight, weights: [
				{clusters: {names: [a]}, weight: 3}, {clusters: {labelSelector: {matchLabels: {region: eu}}}, weight: 1}]}`,
			objects: []string{deployment("web", "8")}, want: []string{"6: 6", "2: 2", "0: 0"},
		},
		{
			reason:  "weights by an expression",
			spec:    `{strategy: StaticWeight, weights: [{clusters: {cel: ["cluster.labels['region'] == 'us'"]}, weight: 1}]}`,
			objects: []string{deployment("web", "8")}, want: []string{"0: 0", "0: 0", "8: 8"},
		},
		{
			reason: "a matching weight of 0 excludes the cluster from later weights",
			spec: `{strategy: StaticWeight, weights: [
				{clusters: {names: [a]}, weight: 0}, {clusters: {labelSelector: {matchLabels: {region: eu}}}, weight: 1}]}`,
			objects: []string{deployment("web", "8")}, want: []string{"0: 0", "8: 8", "0: 0"},
		},
		{
			reason: "Duplicated does not change the objects or their overrides",
			spec:   `{strategy: Duplicated}`,
			objects: []string{deployment("web", "5"), of("apps/v1", "DaemonSet", "log", "{}"),
				of("apps/v1", "StatefulSet", "db", "{}")},
			overrides: `{rules: [{clusters: [{names: [b]}], objects: [{name: web}], jsonPatch: [{op: replace, ` +
				`path: /spec/replicas, value: 7}]}]}`,
			current: map[string]map[string]int32{"a": {"web": 1}},
			want:    []string{"6: 5 - -", "8: 7 - -", "6: 5 - -"},
		},
		{
			reason: "workload kinds of Kubernetes are divided, with 1 replica by default", spec: equal,
			objects: []string{
				of("apps/v1", "Deployment", "a", "{replicas: 3}"), of("apps/v1", "StatefulSet", "b", "{}"),
				of("apps/v1", "ReplicaSet", "c", "{replicas: null}"),
				of("v1", "ReplicationController", "d", "null"), of("apps/v1", "DaemonSet", "e", "{replicas: 3}"),
				of("example.com/v1", "Deployment", "f", "{replicas: 3}"),
				of("v1", "ConfigMap", "g", "{replicas: 3}"), of("example.com/v1", "ReplicationController", "h", "{replicas: 3}"),
			},
			want: []string{"2: 1 0 0 1 3 3 3 3", "2: 1 0 1 0 3 3 3 3", "2: 1 1 0 0 3 3 3 3"},
		},
		{
			reason: "selected kinds with a whole number are divided, and no others",
			spec:   `{strategy: StaticWeight, objects: [{group: example.com}, {kind: Deployment, name: web}]}`,
			objects: []string{
				of("example.com/v1", "Rollout", "a", "{replicas: 3}"), of("example.com/v1", "Rollout", "b", "{}"),
				of("example.com/v1", "Rollout", "c", "{replicas: 50%}"),
				of("example.com/v1", "Rollout", "d", "{replicas: 1.5}"), of("example.com/v1", "Rollout", "e", "text"),
				of("example.com/v1", "Rollout", "f", "{replicas: null}"),
				of("example.com/v1", "Rollout", "i", "{replicas: {a: 1}}"),
				of("apps/v1", "Deployment", "web", "{}"), deployment("other", "3"),
			},
			want: []string{"1: 1 - 50% 1.5 - <nil> map[a:1] 0 3", "2: 1 - 50% 1.5 - <nil> map[a:1] 1 3",
				"1: 1 - 50% 1.5 - <nil> map[a:1] 0 3"},
		},
		{
			reason: "an override of the number is ignored", spec: equal,
			objects: []string{deployment("web", "6")},
			overrides: `{rules: [{clusters: [{names: [b]}], jsonPatch: [{op: replace, path: /spec/replicas, value: 100}]}, ` +
				`{clusters: [{names: [c]}], mergePatch: {spec: {replicas: null}}}]}`,
			want: []string{"2: 2", "2: 2", "2: 2"},
		},
		{
			reason: "an override of the number that is a text is ignored",
			spec:   equal, objects: []string{deployment("web", "6")},
			overrides: `{rules: [{clusters: [{names: [b]}], mergePatch: {spec: {replicas: many}}}]}`,
			want:      []string{"2: 2", "2: 2", "2: 2"},
		},
		{
			reason: "a cluster without the object gets no replicas", spec: equal,
			objects:   []string{deployment("web", "6"), deployment("api", "6")},
			overrides: `{rules: [{clusters: [{names: [b]}], objects: [{name: web}], delete: true}]}`,
			want:      []string{"5: 3 2", "2: 2", "5: 3 2"},
		},
		{
			reason: "an object that no cluster gets is not unplaced", spec: equal, objects: []string{deployment("web", "6")},
			overrides: `{rules: [{objects: [{name: web}], delete: true}]}`,
			want:      []string{"0: ", "0: ", "0: "},
		},
		{
			reason: "DynamicWeight: current replicas are added to the room", spec: `{strategy: DynamicWeight}`,
			objects: []string{deployment("web", "7")},
			current: map[string]map[string]int32{"a": {"web": 2}}, room: map[string]int32{"a": 0, "b": 6, "c": 2},
			want: []string{"2: 2", "4: 4", "1: 1"},
		},
		{
			reason: "DynamicWeight: a negative estimate does not remove current replicas", spec: `{strategy: DynamicWeight}`,
			objects: []string{deployment("web", "4")},
			current: map[string]map[string]int32{"a": {"web": 2}}, room: map[string]int32{"a": -5, "b": -1, "c": 2},
			want: []string{"2: 2", "0: 0", "2: 2"},
		},
		{
			reason: "DynamicWeight: replicas without room are unplaced", spec: `{strategy: DynamicWeight}`,
			objects: []string{deployment("web", "7"), deployment("api", "2")}, room: map[string]int32{"a": 1, "b": 1, "c": 0},
			want: []string{"2: 1 1", "2: 1 1", "0: 0 0"}, unplaced: "web 5",
		},
		{
			reason: "StaticWeight: shares are limited by the room", spec: equal, objects: []string{deployment("web", "6")},
			room: map[string]int32{"a": 1, "b": 9, "c": 9},
			want: []string{"1: 1", "3: 3", "2: 2"},
		},
		{
			reason: "Aggregated: clusters in use are filled first", spec: `{strategy: Aggregated}`,
			objects: []string{deployment("web", "5")},
			current: map[string]map[string]int32{"c": {"web": 1}}, room: map[string]int32{"a": 9, "b": 3, "c": 3},
			want: []string{"1: 1", "0: 0", "4: 4"},
		},
		{
			reason:  "zero replicas need no weight",
			spec:    `{strategy: StaticWeight, weights: [{clusters: {names: [z]}, weight: 1}]}`,
			objects: []string{deployment("web", "0")},
			want:    []string{"0: 0", "0: 0", "0: 0"},
		},
		{
			reason:  "the sum of replicas is limited to the largest int32",
			spec:    `{strategy: StaticWeight, weights: [{clusters: {names: [a]}, weight: 1}]}`,
			objects: []string{deployment("web", "2147483647"), deployment("api", "2147483647")},
			want:    []string{"2147483647: 2147483647 2147483647", "0: 0 0", "0: 0 0"},
		},
		{
			reason: "invalid numbers keep the current replicas, and other objects are divided", spec: equal,
			objects: []string{deployment("a", "-1"), deployment("b", "2147483648"), deployment("c", "many"),
				deployment("d", "1.5"), deployment("e", "99999999999999999999"), deployment("web", "6")},
			current: map[string]map[string]int32{"a": {"a": 4, "b": 3, "c": 2, "d": 1, "e": -7}},
			want:    []string{"12: 4 3 2 1 0 2", "2: 0 0 0 0 0 2", "2: 0 0 0 0 0 2"},
			errs: []string{
				"divide the replicas of apps/Deployment shop/a: .spec.replicas: must be from 0 to 2147483647",
				"divide the replicas of apps/Deployment shop/b: .spec.replicas: must be from 0 to 2147483647",
				"divide the replicas of apps/Deployment shop/c: .spec.replicas: must be a whole number",
				"divide the replicas of apps/Deployment shop/d: .spec.replicas: must be a whole number",
				"divide the replicas of apps/Deployment shop/e: .spec.replicas: must be from 0 to 2147483647",
			},
		},
		{
			reason:  "a negative number of another kind is an error",
			spec:    `{strategy: StaticWeight, objects: [{kind: Rollout}]}`,
			objects: []string{of("example.com/v1", "Rollout", "web", "{replicas: -3}")},
			want:    []string{"0: 0", "0: 0", "0: 0"},
			errs:    []string{"divide the replicas of example.com/Rollout shop/web: .spec.replicas: must be from 0"},
		},
		{
			reason: "spec is a text", spec: equal,
			objects: []string{of("apps/v1", "Deployment", "web", "text")},
			current: map[string]map[string]int32{"a": {"web": 4}},
			want:    []string{"4: -", "0: -", "0: -"},
			errs:    []string{"divide the replicas of apps/Deployment shop/web: .spec: must be a map"},
		},
		{
			reason: "an override that replaces spec by a text moves no replicas", spec: equal,
			objects: []string{deployment("web", "9"), deployment("api", "3")},
			overrides: `{rules: [{clusters: [{names: [b]}], objects: [{name: web}], jsonPatch: [{op: replace, path: /spec, ` +
				`value: text}]}]}`,
			current: map[string]map[string]int32{"a": {"web": 4}, "b": {"web": 2}},
			want:    []string{"5: 4 1", "3: - 1", "1: 0 1"},
			errs:    []string{"divide the replicas of apps/Deployment shop/web for cluster b: .spec: must be a map"},
		},
		{
			reason:  "weights without a matching cluster keep the current replicas",
			spec:    `{strategy: StaticWeight, weights: [{clusters: {names: [z]}, weight: 1}]}`,
			objects: []string{deployment("web", "6")}, current: map[string]map[string]int32{"b": {"web": 6}},
			want: []string{"0: 0", "6: 6", "0: 0"},
			errs: []string{"divide the replicas of apps/Deployment shop/web: weights: no cluster that receives the object"},
		},
		{
			reason:    "weights of clusters without the object only are an error",
			spec:      `{strategy: StaticWeight, weights: [{clusters: {names: [a]}, weight: 1}]}`,
			objects:   []string{deployment("web", "6"), deployment("api", "1")},
			overrides: `{rules: [{clusters: [{names: [a]}], objects: [{name: web}], delete: true}]}`,
			want:      []string{"1: 1", "0: 0 0", "0: 0 0"},
			errs:      []string{"apps/Deployment shop/web: weights: no cluster that receives the object"},
		},
		{
			reason: "an object that occurs twice keeps the current replicas", spec: equal,
			objects: []string{deployment("web", "6"), deployment("web", "7"), deployment("api", "3")},
			current: map[string]map[string]int32{"a": {"web": 6}},
			want:    []string{"13: 6 6 1", "1: 0 0 1", "1: 0 0 1"},
			errs:    []string{"divide the replicas of apps/Deployment shop/web: the object occurs more than once"},
		},
	} {
		t.Run(test.reason, func(t *testing.T) {
			objects := parse(t, test.objects...)
			clusters := members(t, objects, cmp.Or(test.overrides, "{}"))
			for i := range clusters {
				for name, n := range test.current[clusters[i].Name] {
					key := objects[slices.IndexFunc(objects, func(o bundle.Object) bool { return o.Name == name })].Key()
					clusters[i].Current[key] = n
				}
			}
			var room func(bundle.Key, string) int32
			if test.room != nil {
				room = func(_ bundle.Key, cluster string) int32 { return test.room[cluster] }
			}
			result, err := divided(t, test.spec).Divide(objects, clusters, room)
			var got []string
			for i := range result.Clusters {
				var numbers []string
				for j := range result.Clusters[i].Objects {
					numbers = append(numbers, numbered(t, &result.Clusters[i].Objects[j]))
				}
				got = append(got, fmt.Sprintf("%d: %s", result.Clusters[i].Replicas, strings.Join(numbers, " ")))
			}
			if diff := gocmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			var unplaced []string
			for _, u := range result.Unplaced {
				unplaced = append(unplaced, fmt.Sprint(u.Workload.Name, " ", u.Replicas))
			}
			require.Equal(t, test.unplaced, strings.Join(unplaced, ", "))
			if len(test.errs) == 0 {
				require.NoError(t, err)
				return
			}
			require.Error(t, err)
			lines := strings.Split(err.Error(), "\n")
			require.Len(t, lines, len(test.errs))
			for i := range lines {
				require.Contains(t, lines[i], test.errs[i])
			}
		})
	}
}

// TestDivide_SharesEqualTexts checks that equal texts are shared between clusters.
func TestDivide_SharesEqualTexts(t *testing.T) {
	objects := parse(t, deployment("web", "6"), deployment("api", "3"), of("v1", "ConfigMap", "config", "{}"))
	clusters := members(t, objects, `{rules: [{clusters: [{labelSelector: {matchLabels: {region: eu}}}], `+
		`objects: [{name: api}], mergePatch: {metadata: {labels: {region: eu}}}}]}`)
	result, err := divided(t, `{strategy: StaticWeight}`).Divide(objects, clusters, nil)
	require.NoError(t, err)
	text := func(cluster, object int) *byte { return &result.Clusters[cluster].Objects[object].JSON[0] }
	require.Same(t, text(0, 0), text(1, 0), "a number that differs from the hub's object")
	require.Same(t, text(0, 0), text(2, 0))
	require.Same(t, text(0, 1), text(1, 1), "a number in an object with an override")
	require.NotSame(t, text(0, 1), text(2, 1))
	require.Same(t, &objects[2].JSON[0], text(0, 2), "an object that is not divided is that of the hub")

	applied := make([]division.Cluster, len(clusters))
	for i := range clusters {
		applied[i] = division.Cluster{Cluster: clusters[i].Cluster, Objects: result.Clusters[i].Objects}
	}
	again, err := divided(t, `{strategy: StaticWeight}`).Divide(objects, applied, nil)
	require.NoError(t, err)
	for i := range again.Clusters {
		require.Same(t, &applied[i].Objects[0], &again.Clusters[i].Objects[0],
			"a list without changes is not copied")
	}
	require.Empty(t,
		gocmp.Diff(parse(t, deployment("web", "6"), deployment("api", "3"), of("v1", "ConfigMap", "config", "{}")), objects))
}

// TestDivide_DuplicateClusterName checks that two clusters of the same name, which is an error of the caller, do not
// remove replicas.
func TestDivide_DuplicateClusterName(t *testing.T) {
	objects := parse(t, deployment("web", "6"))
	clusters := members(t, objects, "{}")[:2]
	clusters[0].Current[objects[0].Key()] = 4
	clusters[1].Cluster = clusters[0].Cluster
	result, err := divided(t, `{strategy: DynamicWeight}`).Divide(objects, clusters, nil)
	require.EqualError(t, err, `divide the replicas of apps/Deployment shop/web: clusters[1].name: Duplicate value: "a"`)
	require.Equal(t, int32(4), result.Clusters[0].Replicas)
	require.Equal(t, int32(0), result.Clusters[1].Replicas)
}
