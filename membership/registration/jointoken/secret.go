package jointoken

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-sdk/muster/membership/registration"
)

// The annotations of a token's Secret, which describe the credential in it.
const (
	annotationPrefix = "membership.muster.dev/credential-"
	// By the hub's clock, which also determines the time of the renewal.
	issuedAtAnnotation  = annotationPrefix + "issued-at"
	lifetimeAnnotation  = annotationPrefix + "lifetime-seconds"
	sourceUIDAnnotation = annotationPrefix + "source-uid"
	// It stays after the credential was removed: a token that an administrator has deleted is not created again.
	adoptedAnnotation = annotationPrefix + "adopted"
)

const (
	keySize = 32
	// spentKey is the only key in the Secret of a token that has ended.
	spentKey = "key"
)

// macKey returns the key with which requests prove a token, before and after its end; nil: there is none.
func macKey(secret *corev1.Secret) []byte {
	if secret == nil {
		return nil
	}
	if bootstrap := bootstrapIn(secret); bootstrap != nil {
		return bootstrap.Key
	}
	if key := secret.Data[spentKey]; len(key) == keySize {
		return key
	}
	return nil
}

// bootstrapIn returns the bootstrap in a Secret; nil: there is none that an agent could use.
func bootstrapIn(secret *corev1.Secret) *registration.Bootstrap {
	if secret == nil {
		return nil
	}
	bootstrap, err := registration.ParseBootstrap(secret.Data[registration.BootstrapKey])
	if err != nil {
		return nil
	}
	return bootstrap
}

// fill replaces the data of a Secret with a credential and the chart values for the credential.
func fill(secret *corev1.Secret, joinYAML, values []byte, credential existing, source types.UID) {
	secret.Data = map[string][]byte{registration.BootstrapKey: joinYAML, registration.ValuesKey: values}
	if secret.Annotations == nil {
		secret.Annotations = map[string]string{}
	}
	secret.Annotations[issuedAtAnnotation] = credential.IssuedAt.UTC().Format(time.RFC3339Nano)
	secret.Annotations[lifetimeAnnotation] = strconv.FormatInt(int64(credential.Lifetime/time.Second), 10)
	secret.Annotations[sourceUIDAnnotation] = string(source)
	delete(secret.Annotations, adoptedAnnotation)
	if credential.Adopted {
		secret.Annotations[adoptedAnnotation] = "true"
	}
}

func isAdopted(secret *corev1.Secret) bool {
	return secret != nil && secret.Annotations[adoptedAnnotation] != ""
}

// empty removes all data except the MAC key, and reports whether there was other data.
func empty(secret *corev1.Secret) bool {
	key := macKey(secret)
	if _, only := secret.Data[spentKey]; len(secret.Data) == 0 || only && len(secret.Data) == 1 {
		return false
	}
	secret.Data = map[string][]byte{}
	if key != nil {
		secret.Data[spentKey] = key
	}
	for _, annotation := range []string{issuedAtAnnotation, lifetimeAnnotation, sourceUIDAnnotation} {
		delete(secret.Annotations, annotation)
	}
	return true
}

// lifeOf returns the lifetime from the annotations, and zero if the annotations are invalid.
func lifeOf(secret *corev1.Secret) (issuedAt time.Time, lifetime time.Duration) {
	issuedAt, err := time.Parse(time.RFC3339Nano, secret.Annotations[issuedAtAnnotation])
	if err != nil {
		return time.Time{}, 0
	}
	seconds, err := strconv.ParseInt(secret.Annotations[lifetimeAnnotation], 10, 32)
	if err != nil {
		return time.Time{}, 0
	}
	return issuedAt, time.Duration(seconds) * time.Second
}
