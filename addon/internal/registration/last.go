package registration

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/muster-sdk/muster/addon/health"
	"github.com/muster-sdk/muster/addon/v1alpha1"
)

// last reconstructs the request that led to the existing objects. Nil: there is no credential, or its purpose is
// unknown.
func (r *Request) last(o *observed) *Request {
	credential := o.record.Credential
	if said := r.MemberAddon.Status.Registration; credential == "" && said != nil { // the Secret was deleted
		credential = said.Credential
	}
	if credential == "" || o.role == nil {
		return nil
	}
	last := *r
	last.Want.Credential, last.Want.ExpirationSeconds = credential, nil
	if o.record.Asked > 0 {
		last.Want.ExpirationSeconds = new(int32(o.record.Asked))
	}
	last.Want.Rules, last.Lease = o.role.Rules, false
	if end := len(o.role.Rules) - 1; end >= 0 &&
		equality.Semantic.DeepEqual(o.role.Rules[end], leaseRule(r.MemberAddon.Name)) {
		last.Want.Rules, last.Lease = o.role.Rules[:end], true
	}
	return &last
}

// lost returns the result if there is no last request.
func (r *Request) lost(o *observed) Result {
	if o.record.Credential == "" {
		return Result{}
	}
	return Result{
		Registration: health.Registration{State: health.Registering},
		Problem: &health.Problem{Reason: v1alpha1.ReasonRegistering, Retried: true, Message: fmt.Sprintf(
			"Role %s/%s of the add-on agent does not exist, and its rules are unknown until the next update of the member.",
			r.MemberAddon.Namespace, objectName(r.MemberAddon.Name))},
		After: problemPause,
	}
}

// IsManifest reports whether a Secret for a member was a [Result].Secret of an add-on, by its label and its keys.
func IsManifest(secret *corev1.Secret, addon string) bool {
	has := func(key string) bool { return len(secret.Data[key]) > 0 }
	switch len(secret.Data) {
	case 2:
		return secret.Labels[v1alpha1.AddonLabel] == addon && has(KubeconfigKey) && has(tokenKey)
	case 3:
		return secret.Labels[v1alpha1.AddonLabel] == addon && has(KubeconfigKey) && has(certificateKey) && has(privateKey)
	}
	return false
}
