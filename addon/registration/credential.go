package registration

import (
	"encoding/json"
	"hash/fnv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-sdk/muster/addon/v1alpha1"
)

// Keys of the hub's own Secret, and of that on the member beside [KubeconfigKey].
const (
	tokenKey       = "token"
	certificateKey = "tls.crt"
	privateKey     = "tls.key"
)

// recordAnnotation is on the hub's Secret, as JSON.
const recordAnnotation = v1alpha1.GroupName + "/credential"

// record says what the hub's Secret holds.
type record struct {
	// For says whose it is; see [Request.holder].
	For string `json:"for"`
	// Credential that it holds. Empty: none yet, but the key of one that is on its way.
	Credential v1alpha1.RegistrationCredential `json:"credential,omitempty"`
	// Asked is the lifetime that was asked for, in seconds.
	Asked int64 `json:"asked,omitempty"`
	// Account is the UID of the ServiceAccount that the token is of.
	Account types.UID `json:"account,omitempty"`
	// Issued and Expires are by the hub's clock.
	Issued  metav1.Time `json:"issued,omitzero"`
	Expires metav1.Time `json:"expires,omitzero"`
}

// recordOf reads the record of a Secret. What cannot be read is none: the credential is issued anew.
func recordOf(secret *corev1.Secret) record {
	var found record
	if secret == nil || json.Unmarshal([]byte(secret.Annotations[recordAnnotation]), &found) != nil {
		return record{}
	}
	whole := found.Credential == ""
	switch found.Credential {
	case v1alpha1.RegistrationToken:
		whole = len(secret.Data[tokenKey]) > 0
	case v1alpha1.RegistrationCertificate:
		whole = len(secret.Data[certificateKey]) > 0 && len(secret.Data[privateKey]) > 0
	}
	if !whole {
		return record{For: found.For}
	}
	return found
}

// renewAt is when 60 to 75 % of the life of a credential are over, as agents of members have it. Where in between depends on whose it is,
// so that a thousand that were issued together are not renewed together.
func (c record) renewAt(holder string) time.Time {
	hash := fnv.New32a()
	hash.Write([]byte(holder))
	part := 0.60 + 0.15*float64(hash.Sum32())/(1<<32)
	return c.Issued.Add(time.Duration(part * float64(c.Expires.Sub(c.Issued.Time))))
}

// due reports whether a credential is to be issued.
func (w *wanted) due(o *observed, now time.Time) bool {
	c := o.record
	return c.For != w.holder || c.Credential != w.credential || c.Asked != w.seconds ||
		c.Credential == v1alpha1.RegistrationToken && (o.account == nil || o.account.UID != c.Account) ||
		!now.Before(c.renewAt(w.key.String()))
}

// usable reports whether the credential that is there gets its holder in, though perhaps not for long.
func (w *wanted) usable(o *observed, now time.Time) bool {
	c := o.record
	switch {
	case c.For != w.holder || !now.Before(c.Expires.Time):
		return false
	case c.Credential == v1alpha1.RegistrationToken:
		return o.account != nil && o.account.UID == c.Account
	}
	return c.Credential == v1alpha1.RegistrationCertificate
}
