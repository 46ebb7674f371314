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
		want   string // empty: it is none
	}{
		{"a number is one", "5", "5"},
		{"with any digit first", "90", "90"},
		{"so is a fraction", "0.5", "500m"},
		{"without a zero", ".5", "500m"},
		{"or with nothing behind the point", "5.", "5"},
		{"with a suffix", "64Gi", "64Gi"},
		{"E is a suffix", "2E", "2E"},
		{"Ei is one", "2Ei", "2Ei"},
		{"with an exponent", "1e6", "1e6"},
		{"of two digits", "1E99", "1e99"},
		{"and a sign", "1e-9", "1e-9"},
		{"negative", "-3", "-3"},
		{"what a comparison would take for ever with", "1e2147483647", ""},
		{"what reading would take for ever with", "1e-2147483647", ""},
		{"three digits are too many, wherever they are", "1e+100", ""},
		{"even if they are zeros", "1e001", ""},
		{"the size M is not zero", "M", ""},
		{"nor is a suffix with a sign", "-Gi", ""},
		{"nor an exponent of nothing", "E75", ""},
		{"nor a point", ".", ""},
		{"nor a point and a suffix", ".k", ""},
		{"text", "eu-west", ""},
		{"nothing", "", ""},
		{"a space would be overlooked", " 5", ""},
		{"a version", "v1.31.2", ""},
		{"an unknown suffix", "5GB", ""},
	} {
		got, err := v1alpha1.ParseQuantity(test.value)
		switch {
		case test.want == "" && err == nil:
			t.Errorf("%s: %q is no quantity, got %s", test.reason, test.value, got.String())
		case test.want == "" && !strings.Contains(err.Error(), `"`+test.value+`"`):
			t.Errorf("%s: want an error that has the value %q, got %v", test.reason, test.value, err)
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
		{"a v before them", "v1.31.2", true},
		{"as clouds write it", "v1.31.2-gke.1000", true},
		{"with all that may follow", "1.31.2-rc.1+build.5", true},
		{"two numbers are a quantity", "1.31", false},
		{"or no version at all", "v1.31", false},
		{"four are an address", "1.2.3.4", false},
		{"a leading zero is a date", "2024.01.31", false},
		{"text", "latest", false},
		{"nothing", "", false},
		{"a space before it would be overlooked", " 1.31.2", false},
		{"and one behind it", "1.31.2 ", false},
		{"a number beyond all numbers", "1.31.99999999999999999999", false},
	} {
		got, err := v1alpha1.ParseVersion(test.value)
		switch {
		case test.valid != (err == nil):
			t.Errorf("%s: want valid=%t for %q, got %v, %v", test.reason, test.valid, test.value, got, err)
		case err != nil && !strings.Contains(err.Error(), `"`+test.value+`"`):
			t.Errorf("%s: want an error that has the value %q, got %v", test.reason, test.value, err)
		}
	}
	a, _ := v1alpha1.ParseVersion("v1.31.2")
	b, _ := v1alpha1.ParseVersion("1.31.10")
	if !a.LessThan(b) {
		t.Errorf("want the numbers to count, not the text: %s < %s", a, b)
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
		{"1.30 alone is a number", "", []string{"1.30"}, v1alpha1.PropertyQuantity},
		{"versions", "", []string{"v1.31.2", "1.30.0"}, v1alpha1.PropertyVersion},
		{"a number among versions: neither", "", []string{"v1.31.2", "1.30"}, v1alpha1.PropertyString},
		{"text among numbers: neither", "", []string{"5", "many"}, v1alpha1.PropertyString},
		{"sizes, as of T-shirts, alone as together", "", []string{"M"}, v1alpha1.PropertyString},
		{"an endless number is text", "", []string{"1e2147483647"}, v1alpha1.PropertyString},
		{"the empty text", "", []string{""}, v1alpha1.PropertyString},
		{"nothing to compare", "", nil, v1alpha1.PropertyString},
		{"what is said counts", v1alpha1.PropertyString, []string{"5"}, v1alpha1.PropertyString},
		{"even if it is wrong, which Validate says", v1alpha1.PropertyVersion, []string{"5"}, v1alpha1.PropertyVersion},
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
				t.Errorf("%q is read as a quantity that does not compare", value)
			}
			if !strings.ContainsAny(value, "0123456789") {
				t.Errorf("%q is no quantity", value)
			}
		}
		if version, err := v1alpha1.ParseVersion(value); err == nil {
			if again, err := v1alpha1.ParseVersion(version.String()); err != nil || version.LessThan(again) ||
				again.LessThan(version) {
				t.Errorf("%q is read as %s, and that as %s, %v", value, version, again, err)
			}
		}
	})
}
