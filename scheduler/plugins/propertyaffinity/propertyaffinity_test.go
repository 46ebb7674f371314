package propertyaffinity_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
	"github.com/muster-sdk/muster/scheduler/plugins/clusteraffinity"
	"github.com/muster-sdk/muster/scheduler/plugins/propertyaffinity"
)

const (
	gt, ge, eq, ne    = v1alpha1.PropertyGt, v1alpha1.PropertyGe, v1alpha1.PropertyEq, v1alpha1.PropertyNe
	lt, le, in, notIn = v1alpha1.PropertyLt, v1alpha1.PropertyLe, v1alpha1.PropertyIn, v1alpha1.PropertyNotIn
	exists, existsNot = v1alpha1.PropertyExists, v1alpha1.PropertyDoesNotExist
	quantity, ver     = v1alpha1.PropertyQuantity, v1alpha1.PropertyVersion
	text              = v1alpha1.PropertyString
	found             = v1alpha1.PropertyType("")
)

func compiled(t require.TestingT, spec v1alpha1.PropertyRequirement) clusteraffinity.Requirement {
	requirements, err := compile(spec)
	require.NoError(t, err)
	require.Len(t, requirements, 1)
	return requirements[0]
}

func compile(spec v1alpha1.PropertyRequirement) ([]clusteraffinity.Requirement, error) {
	term := &v1alpha1.ClusterSelectorTerm{Properties: []v1alpha1.PropertyRequirement{spec}}
	return propertyaffinity.Matcher().Compile(term, field.NewPath("policy", "affinity", "required").Index(0))
}

func property(value string) *scheduler.Cluster {
	return &scheduler.Cluster{Name: "one", Properties: map[string]string{"p": value}}
}

func TestMismatch(t *testing.T) {
	tests := []struct {
		reason   string
		kind     v1alpha1.PropertyType
		operator v1alpha1.PropertyOperator
		values   []string
		property string
		want     string
	}{
		{"equal quantities with different notations", found, eq, []string{"0.5"}, "500m", ""},
		{"binary and decimal quantities are different", found, eq, []string{"1M"}, "1Mi", "does not match p = 1M"},
		{"integer beyond the precision of a float", found, gt, []string{"9007199254740992"}, "9007199254740993", ""},
		{"integer beyond 64 bits", found, lt, []string{"1e30"}, "999999999999999999999999999999", ""},
		{"10 is greater than 9", found, gt, []string{"9"}, "10", ""},
		{"> is false for equal values", found, gt, []string{"9"}, "9.0", "does not match p > 9"},
		{">= is true for equal values", found, ge, []string{"9"}, "9.0", ""},
		{">= is false for a lesser value", found, ge, []string{"9"}, "8", "does not match p >= 9"},
		{"< is true for a lesser value", found, lt, []string{"9"}, "-10", ""},
		{"< is false for equal values", found, lt, []string{"9"}, "9", "does not match p < 9"},
		{"<= is true for equal values", found, le, []string{"9"}, "9", ""},
		{"<= is false for a greater value", found, le, []string{"9"}, "9.1", "does not match p <= 9"},
		{"in is true for one of the values", found, in, []string{"1", "2"}, "2000m", ""},
		{"in is false for another value", found, in, []string{"1", "2"}, "3", "does not match p in (1,2)"},
		{"!= is true for another value", found, ne, []string{"1"}, "2", ""},
		{"!= is false for an equal value", found, ne, []string{"1"}, "1000m", "does not match p != 1"},
		{"notin is true for another value", found, notIn, []string{"1", "2"}, "3", ""},
		{"notin is false for one of the values", found, notIn, []string{"1", "2"}, "2", "does not match p notin (1,2)"},

		{"patch 10 is greater than patch 9", found, gt, []string{"v1.31.9"}, "v1.31.10", ""},
		{"prefix v of a version is ignored", found, eq, []string{"v1.31.9"}, "1.31.9", ""},
		{"release candidate is less than the release", found, ge, []string{"v1.31.0"}, "v1.31.0-rc.1",
			"does not match p >= v1.31.0"},
		{"identifier with letters is greater than a number", found, gt, []string{"v1.31.0-9"}, "v1.31.0-1x", ""},
		{"build metadata is ignored", found, eq, []string{"v1.31.0"}, "v1.31.0+k3s1", ""},
		{"1.30 is a quantity", found, eq, []string{"1.30"}, "1.3", ""},
		{"1.30 is a string with type String", text, eq, []string{"1.30"}, "1.3", "does not match p = 1.30"},
		{"a quantity and a version are compared as strings", found, in, []string{"1", "v1.0.0"}, "1.0",
			"does not match p in (1,v1.0.0)"},
		{"equal strings", found, eq, []string{"west"}, "west", ""},
		{"empty string equals the empty string", text, eq, []string{""}, "", ""},

		{"> with a property that is not a quantity", quantity, gt, []string{"1"}, "many",
			`has property p with value "many", which is no quantity`},
		{"in with a property that is not a quantity", found, in, []string{"1"}, "many",
			`has property p with value "many", which is no quantity`},
		{"!= with a property that is not a quantity", found, ne, []string{"1"}, "many",
			`has property p with value "many", which is no quantity`},
		{"notin with a property that is not a quantity", found, notIn, []string{"1"}, "many",
			`has property p with value "many", which is no quantity`},
		{"1.31 is not a semantic version", ver, ge, []string{"1.30.0"}, "1.31",
			`has property p with value "1.31", which is no semantic version`},
		{"quantity with a huge exponent", found, gt, []string{"1"}, "1e-2000000000",
			`has property p with value "1e-2000000000", which is no quantity`},
		{"long value is cut in the reason", found, gt, []string{"1"}, string(make([]byte, 1e6)),
			fmt.Sprintf("has property p with value %q, which is no quantity", make([]byte, 64))},

		{"exists with a value", found, exists, nil, "many", ""},
		{"doesnotexist with a value", found, existsNot, nil, "many", "has property p"},
		{"exists ignores the type", quantity, exists, nil, "many", ""},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			r := compiled(t, v1alpha1.PropertyRequirement{Name: "p", Operator: test.operator, Type: test.kind,
				Values: test.values})
			require.Equal(t, test.want, r.Mismatch(property(test.property)))
		})
	}
}

func TestMissingProperty(t *testing.T) {
	for _, operator := range []v1alpha1.PropertyOperator{gt, ge, eq, ne, lt, le, in, notIn, exists, existsNot} {
		t.Run(string(operator), func(t *testing.T) {
			spec := v1alpha1.PropertyRequirement{Name: "p", Operator: operator, Values: []string{"1"}}
			want := "has no property p"
			switch operator {
			case ne, notIn:
				want = ""
			case exists:
				spec.Values = nil
			case existsNot:
				spec.Values, want = nil, ""
			}
			r := compiled(t, spec)
			require.Equal(t, want, r.Mismatch(&scheduler.Cluster{}))
			require.Equal(t, want, r.Mismatch(&scheduler.Cluster{Properties: map[string]string{"q": "1"}}))
		})
	}
}

func TestCompileErrors(t *testing.T) {
	tests := []struct {
		reason string
		spec   v1alpha1.PropertyRequirement
		want   string
	}{
		{"missing name", v1alpha1.PropertyRequirement{Operator: exists},
			"policy.affinity.required[0].properties[0].name: must be"},
		{"unknown operator", v1alpha1.PropertyRequirement{Name: "p", Operator: "Like", Values: []string{"1"}},
			`properties[0].operator: operator "Like" is not supported`},
		{"unknown type", v1alpha1.PropertyRequirement{Name: "p", Operator: eq, Type: "Date", Values: []string{"1"}},
			`properties[0].type: type "Date" is not supported`},
		{"= without a value", v1alpha1.PropertyRequirement{Name: "p", Operator: eq},
			"properties[0].values: operator Eq does not allow this number of values: 0"},
		{"> with two values", v1alpha1.PropertyRequirement{Name: "p", Operator: gt, Values: []string{"1", "2"}},
			"properties[0].values: operator Gt does not allow this number of values: 2"},
		{"in without values", v1alpha1.PropertyRequirement{Name: "p", Operator: in},
			"properties[0].values: operator In does not allow this number of values: 0"},
		{"exists with a value", v1alpha1.PropertyRequirement{Name: "p", Operator: exists, Values: []string{"1"}},
			"properties[0].values: operator Exists does not allow this number of values: 1"},
		{"value is not a quantity", v1alpha1.PropertyRequirement{Name: "p", Operator: in, Type: quantity,
			Values: []string{"1", "many"}}, `properties[0].values[1]: parse quantity "many"`},
		{"value is not a version", v1alpha1.PropertyRequirement{Name: "p", Operator: eq, Type: ver, Values: []string{"1.31"}},
			`properties[0].values[0]: parse version "1.31"`},
		{"> with a string", v1alpha1.PropertyRequirement{Name: "p", Operator: gt, Values: []string{"many"}},
			`properties[0].values[0]: "many" has no order`},
		{"<= with a string of digits", v1alpha1.PropertyRequirement{Name: "p", Operator: le, Type: text,
			Values: []string{"1"}}, `properties[0].values[0]: "1" has no order`},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			_, err := compile(test.spec)
			require.ErrorContains(t, err, test.want)
		})
	}
}

// values are values of each type, and some that are only text.
var values = []string{"", "many", "1", "1.0", "1000m", "2", "-1", "1Ki", "1024", "1e3", "v1.2.3", "1.2.3", "1.2.3-rc.1",
	"1.10.0", "1.30", "1e-2000000000"}

func drawRequirement(t *rapid.T) v1alpha1.PropertyRequirement {
	value := rapid.SampledFrom(values)
	for {
		spec := v1alpha1.PropertyRequirement{
			Name: rapid.SampledFrom([]string{"p", "q"}).Draw(t, "name"),
			Operator: rapid.SampledFrom([]v1alpha1.PropertyOperator{gt, ge, eq, ne, lt, le, in, notIn, exists, existsNot}).Draw(
				t, "operator"),
			Type: rapid.SampledFrom([]v1alpha1.PropertyType{found, quantity, ver, text}).Draw(t, "type"),
		}
		switch spec.Operator {
		case in, notIn:
			spec.Values = rapid.SliceOfN(value, 1, 3).Draw(t, "values")
		case exists, existsNot:
		default:
			spec.Values = []string{value.Draw(t, "value")}
		}
		if _, err := compile(spec); err == nil {
			return spec
		}
	}
}

func drawCluster(t *rapid.T, name string) *scheduler.Cluster {
	properties := rapid.MapOfN(rapid.SampledFrom([]string{"p", "q"}), rapid.SampledFrom(values), 0, 2).Draw(t,
		"properties")
	return &scheduler.Cluster{Name: name, Properties: properties}
}

func TestRetain_AgreesWithMismatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cache := &scheduler.Cache{}
		requirements := make([]clusteraffinity.Requirement, 4)
		for i := range requirements {
			requirements[i] = compiled(t, drawRequirement(t))
		}
		var snapshots []*scheduler.Snapshot
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			for range rapid.IntRange(0, 5).Draw(t, "changes") {
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
					cluster := snapshot.Cluster(slot)
					require.Equal(t, r.Mismatch(cluster) == "", left.Has(slot), "%v", cluster.Properties)
				}
			}
		}
	})
}

func TestRetain_EvaluatesOnlyChangedClusters(t *testing.T) {
	cache := &scheduler.Cache{}
	for i := range 1000 {
		cache.Update(&scheduler.Cluster{Name: fmt.Sprintf("c%03d", i), Properties: map[string]string{"p": fmt.Sprint(i)}})
	}
	r := compiled(t, v1alpha1.PropertyRequirement{Name: "p", Operator: ge, Values: []string{"500"}})
	snapshot := cache.Snapshot()
	left := snapshot.All().Clone()
	r.Retain(snapshot, left)
	require.Equal(t, 500, left.Len())
	require.LessOrEqual(t, testing.AllocsPerRun(100, func() { r.Retain(snapshot, left) }), 8.0,
		"unchanged clusters are not evaluated again")
}

func TestConcurrentUse(t *testing.T) {
	cache := &scheduler.Cache{}
	r := compiled(t, v1alpha1.PropertyRequirement{Name: "p", Operator: ge, Values: []string{"1000000000000000000000"}})
	for i := range 10 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			for range 50 {
				cache.Update(&scheduler.Cluster{Name: fmt.Sprint(i),
					Properties: map[string]string{"p": fmt.Sprint(rand.Int64(), "000")}})
				snapshot := cache.Snapshot()
				r.Retain(snapshot, snapshot.All().Clone())
			}
		})
	}
}
