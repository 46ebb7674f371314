package propertyaffinity_test

import (
	"cmp"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/version"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler/plugins/propertyaffinity"
)

// TestCompareVersions checks the examples of https://semver.org and cases that package version compares incorrectly.
func TestCompareVersions(t *testing.T) {
	for _, ordered := range [][]string{
		{"1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1",
			"1.0.0"},
		{"1.0.0", "2.0.0", "2.1.0", "2.1.1", "2.1.10"},
		{"1.0.0-0", "1.0.0-9", "1.0.0-10", "1.0.0-99999999999999999998", "1.0.0-99999999999999999999", "1.0.0--", "1.0.0-1x",
			"1.0.0-a"},
	} {
		for i, a := range ordered {
			for j, b := range ordered {
				got := propertyaffinity.CompareVersions(version.MustParseSemantic(a), version.MustParseSemantic(b))
				require.Equal(t, cmp.Compare(i, j), cmp.Compare(got, 0), "%s and %s", a, b)
			}
		}
	}
	require.Zero(t, propertyaffinity.CompareVersions(version.MustParseSemantic("v1.0.0+a"),
		version.MustParseSemantic("1.0.0+b")))
}

func TestCompareVersions_IsAnOrder(t *testing.T) {
	identifier := rapid.SampledFrom([]string{"0", "9", "10", "1x", "x", "-", "-1", "99999999999999999999", "a", "A"})
	drawn := rapid.Custom(func(t *rapid.T) *version.Version {
		number := rapid.IntRange(0, 2)
		text := fmt.Sprintf("%d.%d.%d", number.Draw(t, "major"), 0, number.Draw(t, "patch"))
		if before := rapid.SliceOfN(identifier, 0, 3).Draw(t, "before"); len(before) > 0 {
			text += "-" + strings.Join(before, ".")
		}
		return version.MustParseSemantic(text)
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := drawn.Draw(t, "a"), drawn.Draw(t, "b"), drawn.Draw(t, "c")
		order := propertyaffinity.CompareVersions
		require.Equal(t, cmp.Compare(order(a, b), 0), -cmp.Compare(order(b, a), 0), "%s and %s", a, b)
		if order(a, b) <= 0 && order(b, c) <= 0 {
			require.LessOrEqual(t, order(a, c), 0, "%s, %s and %s", a, b, c)
		}
		require.Equal(t, order(a, b) == 0, a.String() == b.String(), "%s and %s", a, b)
	})
}

// TestMismatch_OrderOfQuantities compares quantities with exact fractions. This includes transitivity and
// antisymmetry.
func TestMismatch_OrderOfQuantities(t *testing.T) {
	suffixes := map[string]*big.Rat{"": big.NewRat(1, 1), "m": big.NewRat(1, 1e3), "u": big.NewRat(1, 1e6),
		"n": big.NewRat(1, 1e9), "k": big.NewRat(1e3, 1),
		"M": big.NewRat(1e6, 1), "Ki": big.NewRat(1<<10, 1), "Mi": big.NewRat(1<<20, 1), "e3": big.NewRat(1e3, 1),
		"E-1": big.NewRat(1, 10)}
	type drawn struct {
		text  string
		exact *big.Rat
	}
	quantities := rapid.Custom(func(t *rapid.T) drawn {
		number := rapid.SampledFrom([]string{"0", "1", "-1", "1000", "1024", "0.1", "0.3", "300", "9007199254740993",
			"9223372036854775807", "123456789012345678901234567890"}).Draw(t, "number")
		suffix := rapid.SampledFrom([]string{"", "m", "k", "M", "Ki", "Mi", "e3", "E-1"}).Draw(t, "suffix")
		exact, _ := new(big.Rat).SetString(number)
		exact.Mul(exact, suffixes[suffix])
		// Kubernetes has no more than 63 bits of binary quantities.
		if most := big.NewRat(1<<63-1, 1); strings.HasSuffix(suffix, "i") && exact.Cmp(most) > 0 {
			exact = most
		}
		return drawn{number + suffix, exact}
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := quantities.Draw(t, "a"), quantities.Draw(t, "b")
		order := a.exact.Cmp(b.exact)
		for operator, want := range map[v1alpha1.PropertyOperator]bool{
			gt: order > 0, ge: order >= 0, eq: order == 0, ne: order != 0, lt: order < 0, le: order <= 0, in: order == 0,
			notIn: order != 0,
		} {
			r := compiled(t, v1alpha1.PropertyRequirement{Name: "p", Operator: operator, Values: []string{b.text}})
			require.Equal(t, want, r.Mismatch(property(a.text)) == "", "%s %s %s", a.text, operator, b.text)
		}
	})
}
