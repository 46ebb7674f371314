package propertyaffinity

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

// CompareVersions returns a negative number if the semantic version a precedes b, a positive number if it follows b,
// and 0 if both are equal by section 11 of https://semver.org. Build metadata after a "+" is ignored.
//
// The comparison of package version is not a total order: it compares a number with an alphanumeric identifier as text,
// so that 10 < 1x, 1x < 9 and 9 < 10.
func CompareVersions(a, b *version.Version) int {
	if order := slices.Compare(a.Components(), b.Components()); order != 0 {
		return order
	}
	x, y := a.PreRelease(), b.PreRelease()
	if x == "" || y == "" { // a release follows its pre-releases
		return cmp.Compare(len(y), len(x))
	}
	for more := true; more; {
		var left, right string
		var moreX, moreY bool
		left, x, moreX = strings.Cut(x, ".")
		right, y, moreY = strings.Cut(y, ".")
		if order := compareIdentifiers(left, right); order != 0 {
			return order
		}
		if moreX != moreY {
			if moreX {
				return 1
			}
			return -1
		}
		more = moreX
	}
	return 0
}

// compareIdentifiers compares two identifiers between dots. Numbers of any size precede alphanumeric identifiers.
func compareIdentifiers(a, b string) int {
	x, y := strings.Trim(a, "0123456789") == "", strings.Trim(b, "0123456789") == ""
	switch {
	case x && y:
		a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
		return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
	case x:
		return -1
	case y:
		return 1
	default:
		return strings.Compare(a, b)
	}
}
