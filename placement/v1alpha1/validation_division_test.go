package v1alpha1_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

func TestValidateDivision(t *testing.T) {
	list := func(n int, item string) string { return "[" + strings.Repeat(item+", ", n-1) + item + "]" }
	const east = `clusters: {names: [east]}`
	for _, test := range []struct {
		reason, division string
		want             []string // fields and parts of their messages, in pairs
	}{
		{"a strategy without other fields", `{strategy: Duplicated}`, nil},
		{"the smallest and the largest weight", `{strategy: StaticWeight, weights: [{` + east + `, weight: 0}, {` + east +
			`, weight: 1000000}], objects: [{group: ""}]}`, nil},
		{"empty weights with strategy DynamicWeight", `{strategy: DynamicWeight, weights: []}`, nil},
		{"no strategy", `{}`,
			[]string{"strategy", `supported values: "Duplicated", "StaticWeight", "DynamicWeight", "Aggregated"`}},
		{"an unknown strategy", `{strategy: Even}`, []string{"strategy", "Unsupported value"}},
		{"weights with strategy Aggregated", `{strategy: Aggregated, weights: [{` + east + `, weight: 1}]}`,
			[]string{"weights", "weights may only be set with strategy StaticWeight: remove them, or set the strategy to " +
				"StaticWeight"}},
		{"a weight below 0", `{strategy: StaticWeight, weights: [{` + east + `, weight: -1}]}`,
			[]string{"weights[0].weight", "from 0 to 1000000"}},
		{"a weight that is too large", `{strategy: StaticWeight, weights: [{` + east + `, weight: 1}, {` + east +
			`, weight: 1000001}]}`, []string{"weights[1].weight", "from 0 to 1000000"}},
		{"a weight with an empty cluster selector", `{strategy: StaticWeight, weights: [{clusters: {}, weight: 1}]}`,
			[]string{"weights[0].clusters", "an empty selector"}},
		{"an invalid label",
			`{strategy: StaticWeight, weights: [{clusters: {labelSelector: {matchLabels: {"a b": c}}}, weight: 1}]}`,
			[]string{"weights[0].clusters.labelSelector.matchLabels", "name part"}},
		{"too many weights", `{strategy: StaticWeight, weights: ` + list(33, `{`+east+`, weight: 1}`) + `}`,
			[]string{"weights", "at most 32"}},
		{"an empty object selector", `{strategy: Duplicated, objects: [{}]}`,
			[]string{"objects[0]", "name a group, kind, namespace or name, or remove the selector"}},
		{"too many object selectors", `{strategy: Duplicated, objects: ` + list(17, `{kind: A}`) + `}`,
			[]string{"objects", "at most 16"}},
	} {
		var division v1alpha1.ReplicaDivision
		require.NoError(t, yaml.UnmarshalStrict([]byte(test.division), &division), test.reason)
		errs := division.Validate(field.NewPath("spec", "replicas"))
		require.Len(t, errs, len(test.want)/2, test.reason)
		for i, err := range errs {
			require.Equal(t, "spec.replicas."+test.want[2*i], err.Field, test.reason)
			require.Contains(t, err.Error(), test.want[2*i+1], test.reason)
		}
	}
}
