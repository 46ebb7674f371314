package v1alpha1

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/version"
)

// ParseQuantity reads the value of a property as a quantity. It takes what resource.ParseQuantity takes, with two
// exceptions:
//
//   - A quantity has a digit before its suffix. For that function a suffix alone, such as M, is a quantity of zero.
//   - An exponent has two digits at most. With 1e-2000000000 that function is busy for hours, and with 1e2000000000
//     every comparison is, while every reporter of a property and every author of a policy can write it.
//
// What is compared with a property should be read by it, and so should the property.
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

// ParseVersion reads the value of a property as a semantic version: three numbers, then what may follow by
// https://semver.org. The "v" before it may be left out and means nothing.
func ParseVersion(value string) (*version.Version, error) {
	if strings.TrimSpace(value) != value { // the parser would not mind
		return nil, fmt.Errorf("parse version %q: it has spaces around it", value)
	}
	parsed, err := version.ParseSemantic(value)
	if err != nil {
		return nil, fmt.Errorf("parse version %q: %w", value, err)
	}
	return parsed, nil
}

// ValueType returns what the values are compared as: the Type, and if that is empty what is found out from the values.
// It is never empty.
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

// firstThatIsNot returns the index of the first value that is not of the type; negative: all are.
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
