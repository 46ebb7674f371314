package override_test

import (
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/placement/bundle"
	"github.com/muster-sdk/muster/placement/override"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// ExampleApply sets more replicas in Europe, and the name of the cluster as a label.
func ExampleApply() {
	web, err := bundle.Parse([]byte(
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop"},"spec":{"replicas":2}}`))
	if err != nil {
		panic(err)
	}
	var overrides v1alpha1.Overrides
	if err := yaml.UnmarshalStrict([]byte(`
rules:
- mergePatch:
    metadata:
      labels:
        cluster: ${muster.cluster.name}
        tier: ${muster.cluster.labels["tier"]:-standard}
- clusters:
  - labelSelector: {matchLabels: {region: eu}}
  objects:
  - {group: apps, kind: Deployment}
  jsonPatch:
  - {op: replace, path: /spec/replicas, value: 5}
`), &overrides); err != nil {
		panic(err)
	}
	for _, cluster := range []*scheduler.Cluster{
		{Name: "paris", Labels: map[string]string{"region": "eu", "tier": "gold"}},
		{Name: "tokyo", Labels: map[string]string{"region": "asia"}},
	} {
		result, err := override.Apply([]bundle.Object{web}, &overrides, cluster)
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s\n", result.Objects[0].JSON)
	}
	// Output:
	// {"apiVersion":"apps/v1","kind":"Deployment","metadata":{"labels":{"cluster":"paris","tier":"gold"},"name":"web","namespace":"shop"},"spec":{"replicas":5}}
	// {"apiVersion":"apps/v1","kind":"Deployment","metadata":{"labels":{"cluster":"tokyo","tier":"standard"},"name":"web","namespace":"shop"},"spec":{"replicas":2}}
}

// ExamplePlan_For removes an object for one cluster. A cluster without a label that a patch refers to gets an error.
func ExamplePlan_For() {
	config, err := bundle.Parse([]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"region"}}`))
	if err != nil {
		panic(err)
	}
	debug, err := bundle.Parse([]byte(`{"apiVersion":"v1","kind":"Service","metadata":{"name":"debug"}}`))
	if err != nil {
		panic(err)
	}
	var overrides v1alpha1.Overrides
	if err := yaml.UnmarshalStrict([]byte(`
rules:
- clusters:
  - cel: ['cluster.labels["stage"] == "production"']
  objects:
  - {name: debug}
  delete: true
- objects:
  - {kind: ConfigMap}
  jsonPatch:
  - {op: add, path: /data, value: {region: '${muster.cluster.labels["region"]}'}}
`), &overrides); err != nil {
		panic(err)
	}
	plan, err := override.New([]bundle.Object{config, debug}, &overrides)
	if err != nil {
		panic(err)
	}
	result, err := plan.For(
		&scheduler.Cluster{Name: "paris", Labels: map[string]string{"stage": "production", "region": "eu"}})
	fmt.Println(len(result.Objects), result.Deleted, err)
	_, err = plan.For(&scheduler.Cluster{Name: "lab"})
	fmt.Println(err)
	// Output:
	// 1 [Service debug] <nil>
	// override ConfigMap region for cluster lab: rules[1].jsonPatch[0].value.region: muster.cluster.labels["region"]: the cluster has no such value, and the variable has no default
}

// ExampleExpand escapes a variable with two dollars. Other text that resembles a variable is not changed.
func ExampleExpand() {
	cluster := &scheduler.Cluster{Name: "paris", Properties: map[string]string{"example.com/cost": "5"}}
	for _, text := range []string{
		`https://${muster.cluster.name}.example.com:${PORT}`,
		`$$${muster.cluster.properties['example.com/cost']}`,
		`write $${muster.cluster.name}`,
	} {
		expanded, err := override.Expand(text, cluster)
		fmt.Println(expanded, err)
	}
	// Output:
	// https://paris.example.com:${PORT} <nil>
	// $5 <nil>
	// write ${muster.cluster.name} <nil>
}
