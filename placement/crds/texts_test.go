package crds_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/internal/crdinstall/crdtest"
)

// Policies as texts, for cases that cannot be expressed in Go or that Go omits.

var refusedTexts = []struct{ reason, policy, field, want string }{
	{
		"a resource with a large negative exponent",
		`{resources: {cpu: "1e-2147483647"}}`, "resources", "must not have exponents",
	},
	{
		"a negative resource as a number",
		`{resources: {cpu: -1}}`, "resources", "resources must not be negative",
	},
	{
		"PickFixed with empty clusterNames",
		`{type: PickFixed, clusterNames: []}`, "clusterNames", "clusterNames is required with type PickFixed",
	},
	{
		"a term in which each field is empty",
		`{affinity: {required: [{labelSelector: {matchLabels: {}, matchExpressions: []}, properties: [], cel: []}]}}`,
		"affinity.required[0]", "an empty term matches every cluster",
	},
	{
		"In with an empty list of values",
		`{affinity: {required: [{properties: [{name: p, operator: In, values: []}]}]}}`,
		"affinity.required[0].properties[0].values", "values must have at least one entry",
	},
	{
		"an explicit weight of 0 of a sorter",
		`{sorters: [{name: p, weight: 0}]}`, "sorters[0].weight", "weight must be from 1 to 100",
	},
	{
		"a toleration with an empty key",
		`{tolerations: [{key: ""}]}`, "tolerations[0].key", "key is required with operator Equal",
	},
	{
		"a toleration with an empty effect",
		`{tolerations: [{key: k, effect: ""}]}`, "tolerations[0].effect", `supported values: "NoSchedule"`,
	},
	{
		"an explicit maxSkew of 0",
		`{type: PickN, numberOfClusters: 1, topologySpread: [{topologyKey: k, maxSkew: 0}]}`, "topologySpread[0].maxSkew",
		"maxSkew must be 1 or more",
	},
	{
		"a preferred term without term",
		`{affinity: {preferred: [{weight: 1}]}}`, "affinity.preferred[0].term", "Required value",
	},
	{
		"a preferred term without weight",
		`{affinity: {preferred: [{term: {cel: ["true"]}}]}}`, "affinity.preferred[0].weight", "Required value",
	},
	{
		"a prioritizer without weight",
		`{prioritizers: [{plugin: Balance}]}`, "prioritizers[0].weight", "Required value",
	},
}

var acceptedTexts = []struct{ reason, policy string }{
	{
		"empty lists and maps, as templates write them",
		`{type: PickFixed, clusterNames: [east], sorters: [], tolerations: [], topologySpread: [], groupSpread: [], ` +
			`prioritizers: [], resources: {}, requiredAPIs: [], profile: ""}`,
	},
	{"PickAll with empty clusterNames", `{clusterNames: []}`},
	{"Exists with an empty list of values",
		`{affinity: {required: [{properties: [{name: p, operator: Exists, values: []}]}]}}`},
	{"a toleration of every taint with empty key and value", `{tolerations: [{key: "", operator: Exists, value: ""}]}`},
	{"minGroups and maxGroups of 0",
		`{groupSpread: [{label: provider, minGroups: 0, maxGroups: 0}, {label: region, minGroups: 2, maxGroups: 0}]}`},
	{"resources of 0", `{resources: {cpu: 0, memory: "0"}}`},
	{"a resource as a number", `{resources: {cpu: 4}}`},
}

func text(t *testing.T, policy string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	text := "{apiVersion: placement.muster.dev/v1alpha1, kind: Placement, metadata: {name: text, namespace: default}, " +
		"spec: {policy: " + policy + "}}"
	require.NoError(t, yaml.Unmarshal([]byte(text), &object.Object), policy)
	return object
}

func TestAPIServer_RejectsInvalidTexts(t *testing.T) {
	c := installed(t)
	for _, test := range refusedTexts {
		err := c.Create(t.Context(), text(t, test.policy), client.DryRunAll)
		if !apierrors.IsInvalid(err) {
			t.Errorf("%s: want the API server to reject the object, got %v", test.reason, err)
			continue
		}
		check(t, refused{reason: test.reason, field: test.field, want: test.want}, crdtest.Complaints(t, err))
	}
}

func TestAPIServer_AcceptsValidTexts(t *testing.T) {
	c := installed(t)
	for _, test := range acceptedTexts {
		if err := c.Create(t.Context(), text(t, test.policy), client.DryRunAll); err != nil {
			t.Errorf("%s: %v", test.reason, err)
		}
	}
}
