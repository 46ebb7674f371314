package v1alpha1

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Validate returns all errors of the spec in the order of its fields. An empty list means that the spec is valid.
//
// Validate checks the rules of the CustomResourceDefinition and the rules that the API server cannot check: the full
// syntax of tolerations and node selectors, that no request exceeds its limit, and the length of the whole spec.
func (s *AddonConfigSpec) Validate() field.ErrorList {
	spec := field.NewPath("spec")
	variables := spec.Child("variables")
	errs := slices.Concat(
		shorter(s, MaxAddonConfigBytes, spec),
		optional(namespaceName, s.InstallNamespace, spec.Child("installNamespace")),
		each(s.Variables, 128, variables, (*Variable).validate),
		unique(s.Variables, variables, func(v Variable) string { return v.Name }),
	)
	if s.NodePlacement != nil {
		at := spec.Child("nodePlacement")
		errs = slices.Concat(errs,
			validateNodeSelector(s.NodePlacement.NodeSelector, at.Child("nodeSelector")),
			each(s.NodePlacement.Tolerations, 32, at.Child("tolerations"), validateToleration),
		)
	}
	errs = append(errs, each(s.Registries, 64, spec.Child("registries"), (*Registry).validate)...)
	if s.Proxy != nil {
		at := spec.Child("proxy")
		errs = slices.Concat(errs,
			httpProxy.check(s.Proxy.HTTP, at.Child("http")),
			httpsProxy.check(s.Proxy.HTTPS, at.Child("https")),
			noProxy.check(s.Proxy.NoProxy, at.Child("noProxy")),
		)
	}
	return append(errs, each(s.Resources, 64, spec.Child("resources"), (*ContainerResources).validate)...)
}

func (v *Variable) validate(path *field.Path) field.ErrorList {
	errs := slices.Concat(
		variableName.check(v.Name, path.Child("name")),
		longest(v.Value, 4096, path.Child("value")),
	)
	if slices.Contains([]string{"CLUSTER_NAME", "ADDON_NAME", "INSTALL_NAMESPACE"}, v.Name) {
		errs = append(errs, field.Forbidden(path.Child("name"), "CLUSTER_NAME, ADDON_NAME and INSTALL_NAMESPACE are "+
			"set by the hub: take another name"))
	}
	return errs
}

func validateNodeSelector(selector map[string]string, path *field.Path) field.ErrorList {
	if len(selector) > 32 {
		return field.ErrorList{field.TooMany(path, len(selector), 32)}
	}
	var errs field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(selector)) {
		at, value := path.Key(key), selector[key]
		if len(validation.IsQualifiedName(key)) > 0 {
			errs = append(errs, field.Invalid(at, key, "nodeSelector must have keys of labels such as "+
				"node-role.kubernetes.io/infra"))
		}
		if len(validation.IsValidLabelValue(value)) > 0 {
			errs = append(errs, field.Invalid(at, value, "nodeSelector must have values of labels: up to 63 letters, "+
				"digits, '-', '_' or '.', starting and ending with a letter or digit"))
		}
	}
	return errs
}

// validateToleration checks the rules of Kubernetes. CEL cannot express them here: the API server estimates the cost of
// a rule as if each string were as long as a whole request.
func validateToleration(t *corev1.Toleration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	key, value := path.Child("key"), path.Child("value")
	if !slices.Contains(
		[]corev1.TolerationOperator{
			"",
			corev1.TolerationOpEqual,
			corev1.TolerationOpExists,
			corev1.TolerationOpLt,
			corev1.TolerationOpGt,
		},
		t.Operator,
	) {
		errs = append(errs, field.Invalid(path.Child("operator"), t.Operator, "operator must be Equal, Exists, Lt or Gt"))
	}
	if !slices.Contains(
		[]corev1.TaintEffect{
			"",
			corev1.TaintEffectNoSchedule,
			corev1.TaintEffectPreferNoSchedule,
			corev1.TaintEffectNoExecute,
		},
		t.Effect,
	) {
		errs = append(errs, field.Invalid(path.Child("effect"), t.Effect, "effect must be NoSchedule, "+
			"PreferNoSchedule or NoExecute, or empty for all effects"))
	}
	if t.Key == "" && t.Operator != corev1.TolerationOpExists {
		errs = append(errs, field.Required(key, "key is required unless the operator is Exists, which tolerates every taint"))
	}
	errs = slices.Concat(errs, optional(taintKey, t.Key, key), taintValue.check(t.Value, value))
	if t.Operator == corev1.TolerationOpExists && t.Value != "" {
		errs = append(errs, field.Forbidden(value, "operator Exists tolerates every value: remove value, or use "+
			"operator Equal"))
	}
	if t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute {
		errs = append(errs, field.Forbidden(path.Child("tolerationSeconds"), "tolerationSeconds may only be set with effect "+
			"NoExecute: remove it, or set the effect to NoExecute"))
	}
	return errs
}

func (r *Registry) validate(path *field.Path) field.ErrorList {
	return slices.Concat(
		optional(sourceImage, r.Source, path.Child("source")),
		mirrorImage.check(r.Mirror, path.Child("mirror")),
	)
}

func (r *ContainerResources) validate(path *field.Path) field.ErrorList {
	resources := path.Child("resources")
	requests, limits := resources.Child("requests"), resources.Child("limits")
	errs := slices.Concat(
		optional(workload, r.Workload, path.Child("workload")),
		optional(containerName, r.Container, path.Child("container")),
		validateQuantities(r.Resources.Requests, "requests", requests),
		validateQuantities(r.Resources.Limits, "limits", limits),
	)
	if len(errs) > 0 {
		return errs
	}
	for _, name := range slices.Sorted(maps.Keys(r.Resources.Requests)) {
		request := r.Resources.Requests[name]
		if limit, limited := r.Resources.Limits[name]; limited && request.Cmp(limit) > 0 {
			errs = append(
				errs,
				field.Invalid(requests.Key(string(name)), request.String(), "must not exceed its limit, which is "+limit.String()),
			)
		}
	}
	return errs
}

func validateQuantities(quantities corev1.ResourceList, what string, path *field.Path) field.ErrorList {
	if len(quantities) > 16 {
		return field.ErrorList{field.TooMany(path, len(quantities), 16)}
	}
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(quantities)) {
		quantity, at := quantities[name], path.Key(string(name))
		if len(validation.IsQualifiedName(string(name))) > 0 {
			errs = append(errs, field.Invalid(at, name, what+" must have qualified names such as cpu or nvidia.com/gpu"))
		}
		if quantity.Sign() < 0 {
			errs = append(errs, field.Invalid(at, quantity.String(), what+" must not be negative"))
		}
	}
	return errs
}
