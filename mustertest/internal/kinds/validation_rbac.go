package kinds

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validateRole(obj runtime.Object) field.ErrorList {
	var errs field.ErrorList
	rules, namespaced := []rbacv1.PolicyRule(nil), false
	switch role := obj.(type) {
	case *rbacv1.Role:
		rules, namespaced = role.Rules, true
	case *rbacv1.ClusterRole:
		rules = role.Rules
		if role.AggregationRule != nil && len(role.AggregationRule.ClusterRoleSelectors) == 0 {
			errs = append(errs, field.Required(field.NewPath("aggregationRule", "clusterRoleSelectors"),
				"at least one clusterRoleSelector required if aggregationRule is non-nil"))
		}
	}
	for i, rule := range rules {
		at := field.NewPath("rules").Index(i)
		if len(rule.Verbs) == 0 {
			errs = append(errs, field.Required(at.Child("verbs"), "verbs must contain at least one value"))
		}
		if len(rule.NonResourceURLs) > 0 {
			if namespaced {
				errs = append(errs, field.Invalid(at.Child("nonResourceURLs"), rule.NonResourceURLs,
					"namespaced rules cannot apply to non-resource URLs"))
			}
			if len(rule.APIGroups)+len(rule.Resources)+len(rule.ResourceNames) > 0 {
				errs = append(errs, field.Invalid(at.Child("nonResourceURLs"), rule.NonResourceURLs,
					"rules cannot apply to both regular resources and non-resource URLs"))
			}
			continue
		}
		if len(rule.APIGroups) == 0 {
			errs = append(errs, field.Required(at.Child("apiGroups"), "resource rules must supply at least one api group"))
		}
		if len(rule.Resources) == 0 {
			errs = append(errs, field.Required(at.Child("resources"), "resource rules must supply at least one resource"))
		}
	}
	return errs
}

func validateBinding(obj runtime.Object) field.ErrorList {
	var ref rbacv1.RoleRef
	var subjects []rbacv1.Subject
	roles := []string{"ClusterRole"}
	namespaced := false
	switch b := obj.(type) {
	case *rbacv1.RoleBinding:
		ref, subjects, roles, namespaced = b.RoleRef, b.Subjects, []string{"ClusterRole", "Role"}, true
	case *rbacv1.ClusterRoleBinding:
		ref, subjects = b.RoleRef, b.Subjects
	}
	var errs field.ErrorList
	path := field.NewPath("roleRef")
	if ref.APIGroup != rbacv1.GroupName {
		errs = append(errs, field.NotSupported(path.Child("apiGroup"), ref.APIGroup, []string{rbacv1.GroupName}))
	}
	if !slices.Contains(roles, ref.Kind) {
		errs = append(errs, field.NotSupported(path.Child("kind"), ref.Kind, roles))
	}
	if ref.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), ""))
	} else {
		for _, message := range pathSegmentName(ref.Name, false) {
			errs = append(errs, field.Invalid(path.Child("name"), ref.Name, message))
		}
	}
	for i, subject := range subjects {
		errs = append(errs, validateSubject(subject, namespaced, field.NewPath("subjects").Index(i))...)
	}
	return errs
}

func validateSubject(subject rbacv1.Subject, namespaced bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if subject.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), ""))
	}
	switch subject.Kind {
	case rbacv1.ServiceAccountKind:
		if subject.APIGroup != "" {
			errs = append(errs, field.NotSupported(path.Child("apiGroup"), subject.APIGroup, []string{""}))
		}
		if subject.Name != "" {
			for _, message := range apivalidation.ValidateServiceAccountName(subject.Name, false) {
				errs = append(errs, field.Invalid(path.Child("name"), subject.Name, message))
			}
		}
		if !namespaced && subject.Namespace == "" {
			errs = append(errs, field.Required(path.Child("namespace"), ""))
		}
	case rbacv1.UserKind, rbacv1.GroupKind:
		if subject.APIGroup != rbacv1.GroupName {
			errs = append(errs, field.NotSupported(path.Child("apiGroup"), subject.APIGroup, []string{rbacv1.GroupName}))
		}
	default:
		errs = append(errs, field.NotSupported(path.Child("kind"), subject.Kind,
			[]string{rbacv1.ServiceAccountKind, rbacv1.UserKind, rbacv1.GroupKind}))
	}
	return errs
}

func immutableRoleRef(obj, old runtime.Object) field.ErrorList {
	ref := func(obj runtime.Object) rbacv1.RoleRef {
		switch b := obj.(type) {
		case *rbacv1.RoleBinding:
			return b.RoleRef
		case *rbacv1.ClusterRoleBinding:
			return b.RoleRef
		}
		return rbacv1.RoleRef{}
	}
	if ref(obj) != ref(old) {
		value := struct{ APIGroup, Kind, Name string }(ref(obj)) // the internal type has no JSON names
		return field.ErrorList{field.Invalid(field.NewPath("roleRef"), value, "cannot change roleRef")}
	}
	return nil
}
