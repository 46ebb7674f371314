package replicas

import (
	"math/big"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Fit returns how many replicas with these requests fit into the available resources: the minimum over all resources,
// rounded down. A request of 0 is ignored. Without requests there is no limit. A requested resource that is not
// available gives 0. The result is exact for all units, up to [Unbounded].
func Fit(available, requests corev1.ResourceList) int32 {
	fit := Unbounded
	for name, request := range requests {
		if request.Sign() > 0 {
			fit = min(fit, times(available[name], request))
		}
	}
	return fit
}

// times returns how often the request, which must be positive, fits into the available quantity.
func times(available, request resource.Quantity) int32 {
	if available.Sign() <= 0 {
		return 0 // it is negative in overcommitted clusters
	}
	if a, ok := milli(available); ok {
		if r, ok := milli(request); ok {
			return int32(min(a/r, int64(Unbounded)))
		}
	}
	// Nanocores, or more than 9·10^15 units. Both quantities are unscaled·10^-scale: convert them to the same scale.
	a, r := available.AsDec(), request.AsDec() // AsDec changes the copies, not the caller's quantities
	scale := max(int64(a.Scale()), int64(r.Scale()))
	quotient := scaled(a.UnscaledBig(), scale-int64(a.Scale()))
	quotient.Quo(quotient, scaled(r.UnscaledBig(), scale-int64(r.Scale())))
	if !quotient.IsInt64() {
		return Unbounded
	}
	return int32(min(quotient.Int64(), int64(Unbounded)))
}

// milli returns the quantity in thousandths, and whether the conversion is exact.
func milli(q resource.Quantity) (int64, bool) {
	value := q.MilliValue()
	return value, q.Cmp(*resource.NewMilliQuantity(value, q.Format)) == 0
}

func scaled(n *big.Int, digits int64) *big.Int {
	factor := new(big.Int).Exp(big.NewInt(10), big.NewInt(digits), nil)
	return factor.Mul(factor, n)
}
