package kinds

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unversionedvalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validatePod(obj runtime.Object) field.ErrorList {
	return validatePodSpec(&obj.(*corev1.Pod).Spec, field.NewPath("spec"))
}

func validatePodSpec(spec *corev1.PodSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(spec.Containers) == 0 {
		errs = append(errs, field.Required(path.Child("containers"), ""))
	}
	for i, container := range spec.Containers {
		at := path.Child("containers").Index(i)
		if container.Name == "" {
			errs = append(errs, field.Required(at.Child("name"), ""))
		} else {
			for _, message := range validation.IsDNS1123Label(container.Name) {
				errs = append(errs, field.Invalid(at.Child("name"), container.Name, message))
			}
		}
		if container.Image == "" {
			errs = append(errs, field.Required(at.Child("image"), ""))
		}
	}
	return errs
}

func validateService(obj runtime.Object) field.ErrorList {
	service := obj.(*corev1.Service)
	path := field.NewPath("spec")
	if len(service.Spec.Ports) == 0 && service.Spec.ClusterIP != corev1.ClusterIPNone &&
		service.Spec.Type != corev1.ServiceTypeExternalName {
		return field.ErrorList{field.Required(path.Child("ports"), "")}
	}
	var errs field.ErrorList
	for i, port := range service.Spec.Ports {
		for _, message := range validation.IsValidPortNum(int(port.Port)) {
			errs = append(errs, field.Invalid(path.Child("ports").Index(i).Child("port"), port.Port, message))
		}
	}
	return errs
}

func validateWorkload(selector *metav1.LabelSelector, template *corev1.PodTemplateSpec,
	replicas *int32) field.ErrorList {
	path := field.NewPath("spec")
	var errs field.ErrorList
	if replicas != nil {
		errs = append(errs, apivalidation.ValidateNonnegativeField(int64(*replicas), path.Child("replicas"))...)
	}
	at := path.Child("selector")
	if selector == nil {
		errs = append(errs, field.Required(at, ""))
	} else {
		errs = append(errs, unversionedvalidation.ValidateLabelSelector(selector,
			unversionedvalidation.LabelSelectorValidationOptions{}, at)...)
		if len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
			errs = append(errs, field.Invalid(at, selector, "empty selector is invalid for deployment"))
		}
	}
	if parsed, err := metav1.LabelSelectorAsSelector(selector); err != nil {
		errs = append(errs, field.Invalid(at, selector, "invalid label selector"))
	} else if !parsed.Empty() && !parsed.Matches(labels.Set(template.Labels)) {
		errs = append(errs, field.Invalid(path.Child("template", "metadata", "labels"), template.Labels,
			"`selector` does not match template `labels`"))
	}
	return append(errs, validatePodSpec(&template.Spec, path.Child("template", "spec"))...)
}

func validateDeployment(obj runtime.Object) field.ErrorList {
	d := obj.(*appsv1.Deployment)
	return validateWorkload(d.Spec.Selector, &d.Spec.Template, d.Spec.Replicas)
}

func validateReplicaSet(obj runtime.Object) field.ErrorList {
	rs := obj.(*appsv1.ReplicaSet)
	return validateWorkload(rs.Spec.Selector, &rs.Spec.Template, rs.Spec.Replicas)
}

func validateStatefulSet(obj runtime.Object) field.ErrorList {
	s := obj.(*appsv1.StatefulSet)
	return validateWorkload(s.Spec.Selector, &s.Spec.Template, s.Spec.Replicas)
}

func validateDaemonSet(obj runtime.Object) field.ErrorList {
	ds := obj.(*appsv1.DaemonSet)
	return validateWorkload(ds.Spec.Selector, &ds.Spec.Template, nil)
}

func immutableSelector(obj, old runtime.Object) field.ErrorList {
	selector := func(obj runtime.Object) *metav1.LabelSelector {
		switch o := obj.(type) {
		case *appsv1.Deployment:
			return o.Spec.Selector
		case *appsv1.ReplicaSet:
			return o.Spec.Selector
		case *appsv1.DaemonSet:
			return o.Spec.Selector
		case *appsv1.StatefulSet:
			return o.Spec.Selector
		}
		return nil
	}
	return apivalidation.ValidateImmutableField(selector(obj), selector(old), field.NewPath("spec", "selector"))
}
