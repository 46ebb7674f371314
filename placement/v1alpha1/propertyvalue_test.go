package v1alpha1_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

func TestParseQuantity(t *testing.T) {
	for _, test := range []struct {
		reason string
		value  string
		want   string // empty: the value is not a quantity
	}{
		{"a number", "5", "5"},
		{"a number that begins with 9", "90", "90"},
		{"a fraction", "0.5", "500m"},
		{"a fraction without a leading zero", ".5", "500m"},
		{"a point without digits after it", "5.", "5"},
		{"a binary suffix", "64Gi", "64Gi"},
		{"the suffix E", "2E", "2E"},
		{"the suffix Ei", "2Ei", "2Ei"},
		{"an exponent", "1e6", "1e6"},
		{"an exponent of two digits", "1E99", "1e99"},
		{"an exponent with a sign", "1e-9", "1e-9"},
		{"a negative number", "-3", "-3"},
		{"an exponent that is too large to compare", "1e2147483647", ""},
		{"a negative exponent that is too large to parse", "1e-2147483647", ""},
		{"an exponent of three digits", "1e+100", ""},
		{"an exponent of three digits with leading zeros", "1e001", ""},
		{"a suffix without a number", "M", ""},
		{"a suffix with a sign and without a number", "-Gi", ""},
		{"an exponent without a number", "E75", ""},
		{"a point only", ".", ""},
		{"a point with a suffix", ".k", ""},
		{"text", "eu-west", ""},
		{"an empty value", "", ""},
		{"a leading space", " 5", ""},
		{"a version", "v1.31.2", ""},
		{"an unknown suffix", "5GB", ""},
	} {
		got, err := v1alpha1.ParseQuantity(test.value)
		switch {
		case test.want == "" && err == nil:
			t.Errorf("%s: want an error for %q, got %s", test.reason, test.value, got.String())
		case test.want == "" && !strings.Contains(err.Error(), `"`+test.value+`"`):
			t.Errorf("%s: want an error that contains %q, got %v", test.reason, test.value, err)
		case test.want != "" && err != nil:
			t.Errorf("%s: %v", test.reason, err)
		case test.want != "" && got.Cmp(resource.MustParse(test.want)) != 0:
			t.Errorf("%s: want %s, got %s", test.reason, test.want, got.String())
		}
	}
}

func TestParseVersion(t *testing.T) {
	for _, test := range []struct {
		reason string
		value  string
		valid  bool
	}{
		{"three numbers", "1.31.2", true},
		{"three numbers with the prefix v", "v1.31.2", true},
		{"a pre-release of a cloud provider", "v1.31.2-gke.1000", true},
		{"a pre-release and build metadata", "1.31.2-rc.1+build.5", true},
		{"two numbers", "1.31", false},
		{"two numbers with the prefix v", "v1.31", false},
		{"four numbers", "1.2.3.4", false},
		{"a number with a leading zero", "2024.01.31", false},
		{"text", "latest", false},
		{"an empty value", "", false},
		{"a leading space of a version", " 1.31.2", false},
		{"a trailing space", "1.31.2 ", false},
		{"a number that is too large", "1.31.99999999999999999999", false},
	} {
		got, err := v1alpha1.ParseVersion(test.value)
		switch {
		case test.valid != (err == nil):
			t.Errorf("%s: want valid=%t for %q, got %v, %v", test.reason, test.valid, test.value, got, err)
		case err != nil && !strings.Contains(err.Error(), `"`+test.value+`"`):
			t.Errorf("%s: want an error that contains %q, got %v", test.reason, test.value, err)
		}
	}
	a, _ := v1alpha1.ParseVersion("v1.31.2")
	b, _ := v1alpha1.ParseVersion("1.31.10")
	if !a.LessThan(b) {
		t.Errorf("want a comparison of numbers, not of text: %s < %s", a, b)
	}
}

func TestValueType(t *testing.T) {
	for _, test := range []struct {
		reason string
		kind   v1alpha1.PropertyType
		values []string
		want   v1alpha1.PropertyType
	}{
		{"numbers", "", []string{"5", "64Gi"}, v1alpha1.PropertyQuantity},
		{"1.30 is a quantity", "", []string{"1.30"}, v1alpha1.PropertyQuantity},
		{"versions", "", []string{"v1.31.2", "1.30.0"}, v1alpha1.PropertyVersion},
		{"a quantity and a version", "", []string{"v1.31.2", "1.30"}, v1alpha1.PropertyString},
		{"a quantity and a text", "", []string{"5", "many"}, v1alpha1.PropertyString},
		{"a suffix without a number is a text", "", []string{"M"}, v1alpha1.PropertyString},
		{"a number with a large exponent is a text", "", []string{"1e2147483647"}, v1alpha1.PropertyString},
		{"an empty value", "", []string{""}, v1alpha1.PropertyString},
		{"no values", "", nil, v1alpha1.PropertyString},
		{"an explicit type", v1alpha1.PropertyString, []string{"5"}, v1alpha1.PropertyString},
		{"an explicit type that does not match the value", v1alpha1.PropertyVersion, []string{"5"}, v1alpha1.PropertyVersion},
	} {
		requirement := v1alpha1.PropertyRequirement{Name: "p", Operator: v1alpha1.PropertyIn, Values: test.values,
			Type: test.kind}
		if got := requirement.ValueType(); got != test.want {
			t.Errorf("%s: want %s for %q of type %q, got %s", test.reason, test.want, test.values, test.kind, got)
		}
	}
}

// FuzzParse tests that every value is parsed in a short time, and that parsed values can be compared.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"5", "1e-2147483647", "1e2147483647", "E75", "-.5Ki", "v1.31.2-rc.1+b",
		"0.0000000000000000000000000000001", " 1.2.3"} {
		f.Add(seed)
	}
	one := resource.MustParse("1")
	f.Fuzz(func(t *testing.T, value string) {
		if quantity, err := v1alpha1.ParseQuantity(value); err == nil {
			if quantity.Cmp(quantity.DeepCopy()) != 0 || quantity.Cmp(one) != -one.Cmp(quantity) {
				t.Errorf("the quantity of %q cannot be compared", value)
			}
			if !strings.ContainsAny(value, "0123456789") {
				t.Errorf("want an error for %q", value)
			}
		}
		if version, err := v1alpha1.ParseVersion(value); err == nil {
			if again, err := v1alpha1.ParseVersion(version.String()); err != nil || version.LessThan(again) ||
				again.LessThan(version) {
				t.Errorf("%q is parsed as %s, and the result as %s, %v", value, version, again, err)
			}
		}
	})
}
