package v1alpha1

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Validate returns all errors of the division, in the order of its fields, and no error if the division is valid. The
// path is the path of the division in the object that contains it. It may be nil.
//
// Validate checks the rules of the CustomResourceDefinition, except that one weight must be above 0, and the syntax of
// label selectors. CEL expressions are not compiled; package placement/internal/division compiles them.
func (d *ReplicaDivision) Validate(path *field.Path) field.ErrorList {
	errs := oneOf(d.Strategy, path.Child("strategy"), DivisionDuplicated, DivisionStaticWeight, DivisionDynamicWeight,
		DivisionAggregated)
	weights := path.Child("weights")
	if len(d.Weights) > 0 && d.Strategy != DivisionStaticWeight {
		errs = append(errs, field.Forbidden(weights,
			"weights may only be set with strategy StaticWeight: remove them, or set the strategy to StaticWeight"))
	}
	return slices.Concat(errs,
		each(d.Weights, 32, weights, (*ClusterWeight).validate),
		each(d.Objects, 16, path.Child("objects"), (*ObjectSelector).validate),
	)
}

func (w *ClusterWeight) validate(path *field.Path) field.ErrorList {
	errs := w.Clusters.validate(path.Child("clusters"))
	if w.Weight < 0 || w.Weight > 1000000 {
		errs = append(errs, field.Invalid(path.Child("weight"), w.Weight,
			"weight must be from 0 to 1000000; weights are relative to each other"))
	}
	return errs
}
