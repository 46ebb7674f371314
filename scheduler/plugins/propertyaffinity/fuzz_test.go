package propertyaffinity_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// FuzzCompare compares arbitrary values in both directions, because a property may have any text.
func FuzzCompare(f *testing.F) {
	for _, kind := range []string{"", "Quantity", "Version", "String", "Date"} {
		for i, value := range values {
			f.Add(kind, value, values[len(values)-1-i])
		}
		f.Add(kind, "+", ".")
		f.Add(kind, "1.0.0-00000000000000000000000000001", "1.0.0-1+a")
		f.Add(kind, "18446744073709551616.0.0", "0.0.18446744073709551615")
		f.Add(kind, "9999999999999999999E", "-9999999999999999999Ei")
		f.Add(kind, "1E99", "\xff\x00")
	}
	f.Fuzz(func(t *testing.T, kind, a, b string) {
		evaluate := func(operator v1alpha1.PropertyOperator, value, other string) (matches, valid bool) {
			r, err := compile(v1alpha1.PropertyRequirement{Name: "p", Operator: operator, Values: []string{other},
				Type: v1alpha1.PropertyType(kind)})
			if err != nil {
				return false, false
			}
			return r[0].Mismatch(property(value)) == "", true
		}
		equal, valid := evaluate(eq, a, b)
		if !valid {
			return
		}
		different, _ := evaluate(ne, a, b)
		require.False(t, equal && different)
		if equal {
			if back, valid := evaluate(eq, b, a); valid && kind != "" {
				require.True(t, back)
			}
		}
		if less, valid := evaluate(lt, a, b); valid {
			greater, _ := evaluate(gt, a, b)
			atLeast, _ := evaluate(ge, a, b)
			require.Equal(t, different, less != greater)
			require.Equal(t, greater || equal, atLeast)
			require.False(t, less && greater)
			if back, valid := evaluate(gt, b, a); valid && kind != "" && (less || greater || equal) {
				require.Equal(t, less, back)
			}
		}
	})
}
