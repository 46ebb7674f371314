package v1alpha1

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/version"
)

// ParseQuantity parses the value of a property as a quantity. It accepts the same values as resource.ParseQuantity,
// with two exceptions:
//
//   - A quantity must have a digit before its suffix. resource.ParseQuantity parses a suffix alone, such as M, as zero.
//   - An exponent must have at most two digits. resource.ParseQuantity needs hours for 1e-2000000000, and every
//     comparison needs hours for 1e2000000000. Every reporter of a property and every author of a policy can write such
//     a value.
//
// Use it to parse both a property and the value to compare the property with.
func ParseQuantity(value string) (resource.Quantity, error) {
	amount := strings.TrimLeft(value, "+-")
	if digits := strings.TrimPrefix(amount, "."); digits == "" || digits[0] < '0' || digits[0] > '9' {
		return resource.Quantity{}, fmt.Errorf("parse quantity %q: it does not begin with a number", value)
	}
	if at := strings.LastIndexAny(value, "eE"); at >= 0 && len(strings.TrimLeft(value[at+1:], "+-")) > 2 {
		return resource.Quantity{}, fmt.Errorf("parse quantity %q: its exponent has more than two digits", value)
	}
	quantity, err := resource.ParseQuantity(value)
	if err != nil {
		return resource.Quantity{}, fmt.Errorf("parse quantity %q: %w", value, err)
	}
	return quantity, nil
}

// ParseVersion parses the value of a property as a semantic version: three numbers, and the optional suffixes that
// https://semver.org defines. A leading "v" is optional and has no meaning.
func ParseVersion(value string) (*version.Version, error) {
	if strings.TrimSpace(value) != value { // version.ParseSemantic accepts surrounding spaces
		return nil, fmt.Errorf("parse version %q: it has spaces around it", value)
	}
	parsed, err := version.ParseSemantic(value)
	if err != nil {
		return nil, fmt.Errorf("parse version %q: %w", value, err)
	}
	return parsed, nil
}

// ValueType returns the type that the values are compared as: Type or, if Type is empty, the type that is determined
// from the values. The result is never empty.
func (r *PropertyRequirement) ValueType() PropertyType {
	switch {
	case r.Type != "":
		return r.Type
	case len(r.Values) == 0:
		return PropertyString
	case firstThatIsNot(PropertyQuantity, r.Values) < 0:
		return PropertyQuantity
	case firstThatIsNot(PropertyVersion, r.Values) < 0:
		return PropertyVersion
	default:
		return PropertyString
	}
}

// firstThatIsNot returns the index of the first value that is not of the type, or a negative number if all values are.
func firstThatIsNot(kind PropertyType, values []string) int {
	for i, value := range values {
		var err error
		switch kind {
		case PropertyQuantity:
			_, err = ParseQuantity(value)
		case PropertyVersion:
			_, err = ParseVersion(value)
		}
		if err != nil {
			return i
		}
	}
	return -1
}
