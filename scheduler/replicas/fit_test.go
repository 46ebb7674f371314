package replicas

import (
	"math/big"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func resources(namesAndQuantities ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(namesAndQuantities); i += 2 {
		list[corev1.ResourceName(namesAndQuantities[i])] = resource.MustParse(namesAndQuantities[i+1])
	}
	return list
}

func TestFit(t *testing.T) {
	for _, test := range []struct {
		reason              string
		available, requests corev1.ResourceList
		want                int32
	}{
		{"rounded down", resources("cpu", "1"), resources("cpu", "300m"), 3},
		{"exact quotient", resources("cpu", "1"), resources("cpu", "250m"), 4},
		{"memory is the scarcest resource", resources("cpu", "10", "memory", "1Gi"),
			resources("cpu", "1", "memory", "300Mi"), 3},
		{"cpu is the scarcest resource", resources("cpu", "2", "memory", "1Gi"), resources("cpu", "1", "memory", "300Mi"), 2},
		{"binary and decimal units", resources("memory", "1Gi"), resources("memory", "1G"), 1},
		{"no request", resources("cpu", "1"), nil, Unbounded},
		{"request of 0 of a missing resource", resources("cpu", "1"), resources("nvidia.com/gpu", "0"),
			Unbounded},
		{"request of a missing resource", resources("cpu", "1"), resources("nvidia.com/gpu", "1"), 0},
		{"negative available quantity", resources("cpu", "-1"), resources("cpu", "1m"), 0},
		{"negative request", resources("cpu", "1"), resources("cpu", "-1"), Unbounded},
		{"nanocores are exact, and not rounded to millicores", resources("cpu", "1"), resources("cpu", "100n"),
			10_000_000},
		{"available microcores are exact: 1.5m is less than 2m", resources("cpu", "1500u"), resources("cpu", "2m"), 0},
		{"fractions of bytes are exact", resources("memory", "10"), resources("memory", "5001m"), 1},
		{"quotient above 32 bits", resources("memory", "8Ei"), resources("memory", "1"), Unbounded},
		{"quotient above 64 bits", resources("memory", "7Ei"), resources("memory", "1n"), Unbounded},
		{"quotient of large quantities", resources("memory", "7Ei"), resources("memory", "1Ei"), 7},
		{"quotient one above 32 bits", resources("pods", "2147483648"), resources("pods", "1"), Unbounded},
	} {
		if got := Fit(test.available, test.requests); got != test.want {
			t.Errorf("%s: Fit(%v, %v) = %d, want %d", test.reason, test.available, test.requests, got, test.want)
		}
	}
}

// FuzzFit compares Fit with a calculation by fractions for all valid quantities, and checks that Fit does not change
// them.
func FuzzFit(f *testing.F) {
	for _, pair := range [][2]string{{"1", "300m"}, {"8Ei", "1n"}, {"1Gi", "1G"}, {"1.5", "1e-3"}, {"-1", "1"},
		{"9223372036854775807", "3"}, {"123456789n", "7u"}} {
		f.Add(pair[0], pair[1])
	}
	f.Fuzz(func(t *testing.T, a, r string) {
		available, err := resource.ParseQuantity(a)
		if err != nil {
			return // not a quantity
		}
		request, err := resource.ParseQuantity(r)
		if err != nil {
			return
		}
		aBefore, rBefore := available.String(), request.String()
		got := Fit(corev1.ResourceList{"cpu": available}, corev1.ResourceList{"cpu": request})

		want := Unbounded
		if request.Sign() > 0 {
			ratio := new(big.Rat).Quo(fraction(t, available), fraction(t, request))
			times := new(big.Int).Div(ratio.Num(), ratio.Denom())
			switch {
			case times.Sign() <= 0:
				want = 0
			case times.IsInt64():
				want = int32(min(times.Int64(), int64(Unbounded)))
			default:
				want = Unbounded
			}
		}
		if got != want {
			t.Errorf("Fit(%s, %s) = %d, want %d", a, r, got, want)
		}
		if available.String() != aBefore || request.String() != rBefore {
			t.Errorf("the quantities %s and %s were changed to %s and %s", aBefore, rBefore, &available, &request)
		}
	})
}

func fraction(t *testing.T, q resource.Quantity) *big.Rat {
	q = q.DeepCopy()
	value, ok := new(big.Rat).SetString(q.AsDec().String())
	if !ok {
		t.Fatalf("%s is not a number", &q)
	}
	return value
}
