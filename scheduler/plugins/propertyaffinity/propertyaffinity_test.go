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
		{"quantities are compared by what they are, not by how they are written", found, eq, []string{"0.5"}, "500m", ""},
		{"binary and decimal quantities are different", found, eq, []string{"1M"}, "1Mi", "does not match p = 1M"},
		{"64 bits are not enough for a float", found, gt, []string{"9007199254740992"}, "9007199254740993", ""},
		{"nor for an int", found, lt, []string{"1e30"}, "999999999999999999999999999999", ""},
		{"10 is more than 9, unlike text", found, gt, []string{"9"}, "10", ""},
		{"greater means not equal", found, gt, []string{"9"}, "9.0", "does not match p > 9"},
		{"greater or equal may be equal", found, ge, []string{"9"}, "9.0", ""},
		{"greater or equal is not less", found, ge, []string{"9"}, "8", "does not match p >= 9"},
		{"less", found, lt, []string{"9"}, "-10", ""},
		{"less means not equal", found, lt, []string{"9"}, "9", "does not match p < 9"},
		{"less or equal may be equal", found, le, []string{"9"}, "9", ""},
		{"less or equal is not greater", found, le, []string{"9"}, "9.1", "does not match p <= 9"},
		{"one of several", found, in, []string{"1", "2"}, "2000m", ""},
		{"none of several", found, in, []string{"1", "2"}, "3", "does not match p in (1,2)"},
		{"not the one", found, ne, []string{"1"}, "2", ""},
		{"the one after all", found, ne, []string{"1"}, "1000m", "does not match p != 1"},
		{"not any of several", found, notIn, []string{"1", "2"}, "3", ""},
		{"any of several after all", found, notIn, []string{"1", "2"}, "2", "does not match p notin (1,2)"},

		{"the 10th patch comes after the 9th", found, gt, []string{"v1.31.9"}, "v1.31.10", ""},
		{"the v means nothing", found, eq, []string{"v1.31.9"}, "1.31.9", ""},
		{"a release candidate comes before its release", found, ge, []string{"v1.31.0"}, "v1.31.0-rc.1",
			"does not match p >= v1.31.0"},
		{"a word comes after every number", found, gt, []string{"v1.31.0-9"}, "v1.31.0-1x", ""},
		{"how it was built does not matter", found, eq, []string{"v1.31.0"}, "v1.31.0+k3s1", ""},
		{"two numbers alone are a quantity", found, eq, []string{"1.30"}, "1.3", ""},
		{"unless they are text by their type", text, eq, []string{"1.30"}, "1.3", "does not match p = 1.30"},
		{"one quantity and one version are text together", found, in, []string{"1", "v1.0.0"}, "1.0",
			"does not match p in (1,v1.0.0)"},
		{"text", found, eq, []string{"west"}, "west", ""},
		{"the empty text is a text", text, eq, []string{""}, "", ""},

		{"what is no quantity is not greater", quantity, gt, []string{"1"}, "many",
			`has property p with value "many", which is no quantity`},
		{"and not in either", found, in, []string{"1"}, "many", `has property p with value "many", which is no quantity`},
		{"but not different either: nobody knows what was meant", found, ne, []string{"1"}, "many",
			`has property p with value "many", which is no quantity`},
		{"nor out of a list", found, notIn, []string{"1"}, "many", `has property p with value "many", which is no quantity`},
		{"two numbers are no semantic version", ver, ge, []string{"1.30.0"}, "1.31",
			`has property p with value "1.31", which is no semantic version`},
		{"what takes hours to work out is no quantity", found, gt, []string{"1"}, "1e-2000000000",
			`has property p with value "1e-2000000000", which is no quantity`},
		{"a long story does not become a long reason", found, gt, []string{"1"}, string(make([]byte, 1e6)),
			fmt.Sprintf("has property p with value %q, which is no quantity", make([]byte, 64))},

		{"any value will do", found, exists, nil, "many", ""},
		{"no value will do", found, existsNot, nil, "many", "has property p"},
		{"a type changes nothing about that", quantity, exists, nil, "many", ""},
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
		{"a property has a name", v1alpha1.PropertyRequirement{Operator: exists},
			"policy.affinity.required[0].properties[0].name: must be"},
		{"operators are known", v1alpha1.PropertyRequirement{Name: "p", Operator: "Like", Values: []string{"1"}},
			`properties[0].operator: operator "Like" is not supported`},
		{"types are known", v1alpha1.PropertyRequirement{Name: "p", Operator: eq, Type: "Date", Values: []string{"1"}},
			`properties[0].type: type "Date" is not supported`},
		{"there is something to compare with", v1alpha1.PropertyRequirement{Name: "p", Operator: eq},
			"properties[0].values: operator Eq does not allow this number of values: 0"},
		{"one thing", v1alpha1.PropertyRequirement{Name: "p", Operator: gt, Values: []string{"1", "2"}},
			"properties[0].values: operator Gt does not allow this number of values: 2"},
		{"one of nothing is nothing", v1alpha1.PropertyRequirement{Name: "p", Operator: in},
			"properties[0].values: operator In does not allow this number of values: 0"},
		{"to be there has no value", v1alpha1.PropertyRequirement{Name: "p", Operator: exists, Values: []string{"1"}},
			"properties[0].values: operator Exists does not allow this number of values: 1"},
		{"values are of the type", v1alpha1.PropertyRequirement{Name: "p", Operator: in, Type: quantity,
			Values: []string{"1", "many"}}, `properties[0].values[1]: parse quantity "many"`},
		{"versions too", v1alpha1.PropertyRequirement{Name: "p", Operator: eq, Type: ver, Values: []string{"1.31"}},
			`properties[0].values[0]: parse version "1.31"`},
		{"text has no order", v1alpha1.PropertyRequirement{Name: "p", Operator: gt, Values: []string{"many"}},
			`properties[0].values[0]: "many" has no order`},
		{"even if it looks as if it had", v1alpha1.PropertyRequirement{Name: "p", Operator: le, Type: text,
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

func TestRetainAgreesWithMismatch(t *testing.T) {
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

func TestRetainAsksOnlyForWhatHasChanged(t *testing.T) {
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
		"the clusters were asked already")
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
