package v1alpha1

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func (a *ClusterAffinity) validate(path *field.Path) field.ErrorList {
	if a == nil {
		return nil
	}
	return slices.Concat(
		each(a.Required, 16, path.Child("required"), (*ClusterSelectorTerm).validate),
		each(a.Preferred, 32, path.Child("preferred"), (*PreferredTerm).validate),
	)
}

func (t *PreferredTerm) validate(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if t.Weight < -100 || t.Weight > 100 || t.Weight == 0 {
		errs = append(errs, field.Invalid(path.Child("weight"), t.Weight,
			"weight must be from -100 to 100 and not 0; remove a term that must not count"))
	}
	return append(errs, t.Term.validate(path.Child("term"))...)
}

func (t *ClusterSelectorTerm) validate(path *field.Path) field.ErrorList {
	labels := t.LabelSelector != nil && len(t.LabelSelector.MatchLabels)+len(t.LabelSelector.MatchExpressions) > 0
	if !labels && len(t.Properties) == 0 && len(t.CEL) == 0 {
		return field.ErrorList{field.Invalid(path, t,
			"an empty term matches every cluster: give it a labelSelector, properties or cel, or remove it")}
	}
	return slices.Concat(
		validateSelector(t.LabelSelector, path.Child("labelSelector")),
		each(t.Properties, 16, path.Child("properties"), (*PropertyRequirement).validate),
		each(t.CEL, 8, path.Child("cel"), func(expression *string, path *field.Path) field.ErrorList {
			if *expression == "" {
				return field.ErrorList{field.Invalid(path, *expression,
					"an expression must not be empty: write an expression on the variable cluster, or remove it")}
			}
			return longest(*expression, 1024, path)
		}),
	)
}

func validateSelector(selector *metav1.LabelSelector, path *field.Path) field.ErrorList {
	if selector == nil {
		return nil
	}
	var errs field.ErrorList
	// Validate one label at a time, in sorted order, so that the order of the errors is deterministic.
	for _, key := range slices.Sorted(maps.Keys(selector.MatchLabels)) {
		one := map[string]string{key: selector.MatchLabels[key]}
		errs = append(errs, metav1validation.ValidateLabels(one, path.Child("matchLabels"))...)
	}
	expressions := &metav1.LabelSelector{MatchExpressions: selector.MatchExpressions}
	return append(errs, metav1validation.ValidateLabelSelector(expressions,
		metav1validation.LabelSelectorValidationOptions{}, path)...)
}

func (r *PropertyRequirement) validate(path *field.Path) field.ErrorList {
	errs := longest(r.Name, 253, path.Child("name"))
	if r.Name == "" {
		errs = append(errs, field.Invalid(path.Child("name"), r.Name, "name must be the name of a property"))
	}
	errs = append(errs, oneOf(r.Operator, path.Child("operator"), PropertyGt, PropertyGe, PropertyEq, PropertyNe,
		PropertyLt, PropertyLe,
		PropertyIn, PropertyNotIn, PropertyExists, PropertyDoesNotExist)...)
	if r.Type != "" {
		errs = append(errs, oneOf(r.Type, path.Child("type"), PropertyQuantity, PropertyVersion, PropertyString)...)
	}

	values := path.Child("values")
	errs = append(errs, each(r.Values, 64, values, func(value *string, path *field.Path) field.ErrorList {
		return longest(*value, 1024, path)
	})...)
	ordered := false
	switch r.Operator {
	case PropertyGt, PropertyGe, PropertyLt, PropertyLe, PropertyEq, PropertyNe:
		ordered = r.Operator != PropertyEq && r.Operator != PropertyNe
		if len(r.Values) != 1 {
			errs = append(errs, field.Invalid(values, r.Values,
				"values must have exactly one entry with the operators Gt, Ge, Eq, Ne, Lt and Le; use In or NotIn for several"))
		}
	case PropertyIn, PropertyNotIn:
		if len(r.Values) == 0 {
			errs = append(errs, field.Invalid(values, r.Values, "values must have at least one entry with the operators In "+
				"and NotIn; use Exists or DoesNotExist if the value does not matter"))
		}
	case PropertyExists, PropertyDoesNotExist:
		if len(r.Values) > 0 {
			errs = append(errs, field.Invalid(values, r.Values,
				"values must be empty with the operators Exists and DoesNotExist; use In or NotIn to compare values"))
		}
	}
	if len(errs) > 0 {
		return errs // the types of the values matter only if the rest of the requirement is valid
	}

	wrong := firstThatIsNot(r.Type, r.Values)
	switch {
	case ordered && r.Type == PropertyString:
		errs = append(errs, field.Invalid(path.Child("operator"), r.Operator, "operator must not be Gt, Ge, Lt or Le with "+
			"type String, which has no order; use Eq, Ne, In or NotIn, or type Quantity or Version"))
	case ordered && r.ValueType() == PropertyString:
		errs = append(errs, field.Invalid(values.Index(0), r.Values[0], "values must be a quantity such as 64Gi or a "+
			"semantic version such as v1.31.2 with the operators Gt, Ge, Lt and Le; use Eq, Ne, In or NotIn for strings"))
	case wrong >= 0 && r.Type == PropertyQuantity:
		errs = append(errs, field.Invalid(values.Index(wrong), r.Values[wrong], "values must be quantities such as 500m, "+
			"1.5 or 64Gi with type Quantity, and an exponent have at most two digits; leave type out to detect it"))
	case wrong >= 0 && r.Type == PropertyVersion:
		errs = append(errs, field.Invalid(values.Index(wrong), r.Values[wrong], "values must be semantic versions of three "+
			"numbers such as v1.31.2 with type Version; leave type out to detect it"))
	}
	return errs
}
