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
		want             []string // fields and what is said of them, in pairs
	}{
		{"every strategy", `{strategy: Duplicated}`, nil},
		{"weights of all sizes", `{strategy: StaticWeight, weights: [{` + east + `, weight: 0}, {` + east +
			`, weight: 1000000}], objects: [{group: ""}]}`, nil},
		{"no weights are weights", `{strategy: DynamicWeight, weights: []}`, nil},
		{"to take one strategy for another multiplies a workload", `{}`,
			[]string{"strategy", `supported values: "Duplicated", "StaticWeight", "DynamicWeight", "Aggregated"`}},
		{"a strategy that does not exist", `{strategy: Even}`, []string{"strategy", "Unsupported value"}},
		{"weights that would not count", `{strategy: Aggregated, weights: [{` + east + `, weight: 1}]}`,
			[]string{"weights", "weights may only be set with strategy StaticWeight: remove them, or set the strategy to " +
				"StaticWeight"}},
		{"a weight below 0", `{strategy: StaticWeight, weights: [{` + east + `, weight: -1}]}`,
			[]string{"weights[0].weight", "from 0 to 1000000"}},
		{"a weight that is too large", `{strategy: StaticWeight, weights: [{` + east + `, weight: 1}, {` + east +
			`, weight: 1000001}]}`, []string{"weights[1].weight", "from 0 to 1000000"}},
		{"no cluster in particular", `{strategy: StaticWeight, weights: [{clusters: {}, weight: 1}]}`,
			[]string{"weights[0].clusters", "an empty selector"}},
		{"no label", `{strategy: StaticWeight, weights: [{clusters: {labelSelector: {matchLabels: {"a b": c}}}, weight: 1}]}`,
			[]string{"weights[0].clusters.labelSelector.matchLabels", "name part"}},
		{"too many weights", `{strategy: StaticWeight, weights: ` + list(33, `{`+east+`, weight: 1}`) + `}`,
			[]string{"weights", "at most 32"}},
		{"no object in particular", `{strategy: Duplicated, objects: [{}]}`,
			[]string{"objects[0]", "name a group, kind, namespace or name, or remove the selector"}},
		{"too many objects", `{strategy: Duplicated, objects: ` + list(17, `{kind: A}`) + `}`,
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
