package kinds

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// sorted sorts errors by field. Errors that were collected from a map thereby have a stable order.
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
