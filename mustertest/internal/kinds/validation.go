package kinds

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unversionedvalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const maxSecretSize = corev1.MaxSecretSize

func validateSecret(obj runtime.Object) field.ErrorList {
	secret := obj.(*corev1.Secret)
	var errs field.ErrorList
	data := field.NewPath("data")
	total := 0
	for key, value := range secret.Data {
		for _, message := range validation.IsConfigMapKey(key) {
			errs = append(errs, field.Invalid(data.Key(key), key, message))
		}
		total += len(value)
	}
	if total > maxSecretSize {
		errs = append(errs, field.TooLong(data, "", maxSecretSize))
	}
	required := func(keys ...string) {
		for _, key := range keys {
			if _, ok := secret.Data[key]; !ok {
				errs = append(errs, field.Required(data.Key(key), ""))
			}
		}
	}
	switch secret.Type {
	case corev1.SecretTypeServiceAccountToken:
		if secret.Annotations[corev1.ServiceAccountNameKey] == "" {
			errs = append(errs, field.Required(
				field.NewPath("metadata", "annotations").Key(corev1.ServiceAccountNameKey), ""))
		}
	case corev1.SecretTypeTLS:
		required(corev1.TLSCertKey, corev1.TLSPrivateKeyKey)
	case corev1.SecretTypeSSHAuth:
		required(corev1.SSHAuthPrivateKey)
	case corev1.SecretTypeDockerConfigJson:
		required(corev1.DockerConfigJsonKey)
	}
	return sorted(errs)
}

// sorted makes the order of errors that come from a map stable.
func sorted(errs field.ErrorList) field.ErrorList {
	slices.SortStableFunc(errs, func(a, b *field.Error) int { return bytes.Compare([]byte(a.Field), []byte(b.Field)) })
	return errs
}

func immutable(message string, path *field.Path) field.ErrorList {
	return field.ErrorList{field.Forbidden(path, message)}
}

func validateSecretUpdate(obj, old runtime.Object) field.ErrorList {
	secret, before := obj.(*corev1.Secret), old.(*corev1.Secret)
	errs := apivalidation.ValidateImmutableField(secret.Type, before.Type, field.NewPath("type"))
	if before.Immutable != nil && *before.Immutable {
		if secret.Immutable == nil || !*secret.Immutable {
			errs = append(errs, immutable("field is immutable when `immutable` is set", field.NewPath("immutable"))...)
		}
		if !apiequality.Semantic.DeepEqual(secret.Data, before.Data) {
			errs = append(errs, immutable("field is immutable when `immutable` is set", field.NewPath("data"))...)
		}
	}
	return errs
}

func validateConfigMap(obj runtime.Object) field.ErrorList {
	cm := obj.(*corev1.ConfigMap)
	var errs field.ErrorList
	total := 0
	for key, value := range cm.Data {
		for _, message := range validation.IsConfigMapKey(key) {
			errs = append(errs, field.Invalid(field.NewPath("data").Key(key), key, message))
		}
		if _, twice := cm.BinaryData[key]; twice {
			errs = append(errs, field.Invalid(field.NewPath("data").Key(key), key, "duplicate of key present in binaryData"))
		}
		total += len(value)
	}
	for key, value := range cm.BinaryData {
		for _, message := range validation.IsConfigMapKey(key) {
			errs = append(errs, field.Invalid(field.NewPath("binaryData").Key(key), key, message))
		}
		total += len(value)
	}
	if total > maxSecretSize {
		errs = append(errs, field.TooLong(field.NewPath(""), "", maxSecretSize))
	}
	return sorted(errs)
}

func validateConfigMapUpdate(obj, old runtime.Object) field.ErrorList {
	cm, before := obj.(*corev1.ConfigMap), old.(*corev1.ConfigMap)
	if before.Immutable == nil || !*before.Immutable {
		return nil
	}
	var errs field.ErrorList
	const message = "field is immutable when `immutable` is set"
	if cm.Immutable == nil || !*cm.Immutable {
		errs = append(errs, field.Forbidden(field.NewPath("immutable"), message))
	}
	if !apiequality.Semantic.DeepEqual(cm.Data, before.Data) {
		errs = append(errs, field.Forbidden(field.NewPath("data"), message))
	}
	if !apiequality.Semantic.DeepEqual(cm.BinaryData, before.BinaryData) {
		errs = append(errs, field.Forbidden(field.NewPath("binaryData"), message))
	}
	return errs
}

func validateEvent(obj runtime.Object) field.ErrorList {
	event := obj.(*corev1.Event)
	return eventNamespace(event.Namespace, event.InvolvedObject.Namespace, "involvedObject")
}

func validateNewEvent(obj runtime.Object) field.ErrorList {
	event := obj.(*eventsv1.Event)
	errs := eventNamespace(event.Namespace, event.Regarding.Namespace, "involvedObject")
	if event.EventTime.IsZero() {
		errs = append(errs, field.Required(field.NewPath("eventTime"), ""))
	}
	if event.ReportingController == "" {
		errs = append(errs, field.Required(field.NewPath("reportingController"), ""))
	}
	if event.ReportingInstance == "" {
		errs = append(errs, field.Required(field.NewPath("reportingInstance"), ""))
	}
	if event.Action == "" {
		errs = append(errs, field.Required(field.NewPath("action"), ""))
	}
	if event.Reason == "" {
		errs = append(errs, field.Required(field.NewPath("reason"), ""))
	}
	if event.Type != corev1.EventTypeNormal && event.Type != corev1.EventTypeWarning {
		errs = append(errs, field.Invalid(field.NewPath("type"), "", fmt.Sprintf("has invalid value: %v", event.Type)))
	}
	return errs
}

func eventNamespace(namespace, involved, path string) field.ErrorList {
	if involved == "" && (namespace == metav1.NamespaceDefault || namespace == metav1.NamespaceSystem) ||
		namespace == involved {
		return nil
	}
	if involved == "" {
		return field.ErrorList{field.Invalid(field.NewPath(path, "namespace"), involved, "does not match event.namespace")}
	}
	return field.ErrorList{field.Invalid(field.NewPath(path, "namespace"), involved, "does not match event.namespace")}
}

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

func validateLease(obj runtime.Object) field.ErrorList {
	spec := obj.(*coordinationv1.Lease).Spec
	path := field.NewPath("spec")
	var errs field.ErrorList
	if spec.HolderIdentity != nil && *spec.HolderIdentity == "" {
		errs = append(errs, field.Invalid(path.Child("holderIdentity"), *spec.HolderIdentity, "must not be empty"))
	}
	if spec.LeaseDurationSeconds != nil && *spec.LeaseDurationSeconds <= 0 {
		errs = append(errs, field.Invalid(path.Child("leaseDurationSeconds"), *spec.LeaseDurationSeconds,
			"must be greater than 0"))
	}
	if spec.LeaseTransitions != nil && *spec.LeaseTransitions < 0 {
		errs = append(errs, field.Invalid(path.Child("leaseTransitions"), *spec.LeaseTransitions,
			"must be greater than or equal to 0"))
	}
	return errs
}

func validateCSR(obj runtime.Object) field.ErrorList {
	csr := obj.(*certificatesv1.CertificateSigningRequest)
	path := field.NewPath("spec")
	var errs field.ErrorList
	if _, err := ParseCSR(csr.Spec.Request); err != nil {
		errs = append(errs, field.Invalid(path.Child("request"), csr.Spec.Request, fmt.Sprintf("%v", err)))
	}
	if len(csr.Spec.Usages) == 0 {
		errs = append(errs, field.Required(path.Child("usages"), ""))
	}
	if csr.Spec.ExpirationSeconds != nil && *csr.Spec.ExpirationSeconds < 600 {
		errs = append(errs, field.Invalid(path.Child("expirationSeconds"), *csr.Spec.ExpirationSeconds,
			"may not specify a duration less than 600 seconds (10 minutes)"))
	}
	if csr.Spec.SignerName == "" {
		errs = append(errs, field.Required(path.Child("signerName"), ""))
	}
	return errs
}

// ParseCSR decodes a PEM-encoded certificate request.
func ParseCSR(request []byte) (*x509.CertificateRequest, error) {
	block, _ := pem.Decode(request)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return nil, fmt.Errorf("PEM block type must be CERTIFICATE REQUEST")
	}
	return x509.ParseCertificateRequest(block.Bytes)
}

func validateCRD(obj runtime.Object) field.ErrorList {
	crd := obj.(*apiextensionsv1.CustomResourceDefinition)
	path := field.NewPath("spec")
	var errs field.ErrorList
	if want := crd.Spec.Names.Plural + "." + crd.Spec.Group; crd.Name != want {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), crd.Name,
			"must be spec.names.plural+\".\"+spec.group"))
	}
	if crd.Spec.Group == "" {
		errs = append(errs, field.Required(path.Child("group"), ""))
	}
	if crd.Spec.Scope != apiextensionsv1.NamespaceScoped && crd.Spec.Scope != apiextensionsv1.ClusterScoped {
		errs = append(errs, field.NotSupported(path.Child("scope"), crd.Spec.Scope,
			[]apiextensionsv1.ResourceScope{apiextensionsv1.ClusterScoped, apiextensionsv1.NamespaceScoped}))
	}
	if crd.Spec.Names.Kind == "" {
		errs = append(errs, field.Required(path.Child("names", "kind"), ""))
	}
	stored := 0
	for i, version := range crd.Spec.Versions {
		if version.Storage {
			stored++
		}
		if _, err := compile(crd, version); err != nil {
			errs = append(errs, field.Invalid(path.Child("versions").Index(i).Child("schema", "openAPIV3Schema"), "",
				err.Error()))
		}
	}
	if stored != 1 {
		errs = append(errs, field.Invalid(path.Child("versions"), "",
			"must have exactly one version marked as storage version"))
	}
	if crd.Spec.Conversion != nil && crd.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter {
		errs = append(errs, field.Forbidden(path.Child("conversion", "strategy"),
			"conversion webhooks are not supported by this server"))
	}
	return errs
}

func validateCRDUpdate(obj, old runtime.Object) field.ErrorList {
	crd, before := obj.(*apiextensionsv1.CustomResourceDefinition), old.(*apiextensionsv1.CustomResourceDefinition)
	path := field.NewPath("spec")
	errs := apivalidation.ValidateImmutableField(crd.Spec.Group, before.Spec.Group, path.Child("group"))
	errs = append(errs, apivalidation.ValidateImmutableField(crd.Spec.Names.Plural, before.Spec.Names.Plural,
		path.Child("names", "plural"))...)
	if established(before) {
		errs = append(errs, apivalidation.ValidateImmutableField(crd.Spec.Scope, before.Spec.Scope, path.Child("scope"))...)
		errs = append(errs, apivalidation.ValidateImmutableField(crd.Spec.Names.Kind, before.Spec.Names.Kind,
			path.Child("names", "kind"))...)
	}
	return errs
}

func established(crd *apiextensionsv1.CustomResourceDefinition) bool {
	for _, condition := range crd.Status.Conditions {
		if condition.Type == apiextensionsv1.Established {
			return condition.Status == apiextensionsv1.ConditionTrue
		}
	}
	return false
}
