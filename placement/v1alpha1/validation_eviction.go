package v1alpha1

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Validate returns all errors of the budget, in the order of its fields. It checks the rules of the
// CustomResourceDefinition. The path may be nil.
func (b *DisruptionBudget) Validate(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if (b.MinAvailable == nil) == (b.MaxUnavailable == nil) {
		errs = field.ErrorList{field.Invalid(path, b, "exactly one of minAvailable and maxUnavailable must be set")}
	}
	return slices.Concat(errs,
		validateShare(b.MinAvailable, 0, path.Child("minAvailable"),
			"minAvailable must be a number from 0, or a percentage from 0% to 100%"),
		validateShare(b.MaxUnavailable, 0, path.Child("maxUnavailable"),
			"maxUnavailable must be a number from 0, or a percentage from 0% to 100%"),
	)
}
