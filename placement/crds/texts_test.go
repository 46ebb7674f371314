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
		"a quantity that would keep every client busy that reads it",
		`{resources: {cpu: "1e-2147483647"}}`, "resources", "must not have exponents",
	},
	{
		"a number is no text, and negative all the same",
		`{resources: {cpu: -1}}`, "resources", "resources must not be negative",
	},
	{
		"a list of names without one",
		`{type: PickFixed, clusterNames: []}`, "clusterNames", "clusterNames is required with type PickFixed",
	},
	{
		"a term is empty, too, if all in it is",
		`{affinity: {required: [{labelSelector: {matchLabels: {}, matchExpressions: []}, properties: [], cel: []}]}}`,
		"affinity.required[0]", "an empty term matches every cluster",
	},
	{
		"a list of values without one",
		`{affinity: {required: [{properties: [{name: p, operator: In, values: []}]}]}}`,
		"affinity.required[0].properties[0].values", "values must have at least one entry",
	},
	{
		"a weight that is said must be one",
		`{sorters: [{name: p, weight: 0}]}`, "sorters[0].weight", "weight must be from 1 to 100",
	},
	{
		"an empty key is no key",
		`{tolerations: [{key: ""}]}`, "tolerations[0].key", "key is required with operator Equal",
	},
	{
		"an empty effect is no effect; every effect is none at all",
		`{tolerations: [{key: k, effect: ""}]}`, "tolerations[0].effect", `supported values: "NoSchedule"`,
	},
	{
		"a skew that is said must be one",
		`{type: PickN, numberOfClusters: 1, topologySpread: [{topologyKey: k, maxSkew: 0}]}`, "topologySpread[0].maxSkew",
		"maxSkew must be 1 or more",
	},
	{
		"a preference without a term",
		`{affinity: {preferred: [{weight: 1}]}}`, "affinity.preferred[0].term", "Required value",
	},
	{
		"a preference without a weight",
		`{affinity: {preferred: [{term: {cel: ["true"]}}]}}`, "affinity.preferred[0].weight", "Required value",
	},
	{
		"a prioritizer without a weight",
		`{prioritizers: [{plugin: Balance}]}`, "prioritizers[0].weight", "Required value",
	},
}

var acceptedTexts = []struct{ reason, policy string }{
	{
		"empty lists are as good as none, as templates write them",
		`{type: PickFixed, clusterNames: [east], sorters: [], tolerations: [], topologySpread: [], groupSpread: [], ` +
			`prioritizers: [], resources: {}, requiredAPIs: [], profile: ""}`,
	},
	{"no names", `{clusterNames: []}`},
	{"no values", `{affinity: {required: [{properties: [{name: p, operator: Exists, values: []}]}]}}`},
	{"any value", `{tolerations: [{key: "", operator: Exists, value: ""}]}`},
	{"no bounds",
		`{groupSpread: [{label: provider, minGroups: 0, maxGroups: 0}, {label: region, minGroups: 2, maxGroups: 0}]}`},
	{"nothing of a resource", `{resources: {cpu: 0, memory: "0"}}`},
	{"a number", `{resources: {cpu: 4}}`},
}

func text(t *testing.T, policy string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	text := "{apiVersion: placement.muster.dev/v1alpha1, kind: Placement, metadata: {name: text, namespace: default}, " +
		"spec: {policy: " + policy + "}}"
	require.NoError(t, yaml.Unmarshal([]byte(text), &object.Object), policy)
	return object
}

func TestAPIServerRefusesText(t *testing.T) {
	c := installed(t)
	for _, test := range refusedTexts {
		err := c.Create(t.Context(), text(t, test.policy), client.DryRunAll)
		if !apierrors.IsInvalid(err) {
			t.Errorf("%s: want the API server to refuse it, got %v", test.reason, err)
			continue
		}
		check(t, refused{reason: test.reason, field: test.field, want: test.want}, crdtest.Complaints(t, err))
	}
}

func TestAPIServerAcceptsText(t *testing.T) {
	c := installed(t)
	for _, test := range acceptedTexts {
		if err := c.Create(t.Context(), text(t, test.policy), client.DryRunAll); err != nil {
			t.Errorf("%s: %v", test.reason, err)
		}
	}
}
