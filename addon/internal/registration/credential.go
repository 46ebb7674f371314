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

// Keys of the Secret on the hub, and of the Secret on the member in addition to [KubeconfigKey].
const (
	tokenKey       = "token"
	certificateKey = "tls.crt"
	privateKey     = "tls.key"
)

// recordAnnotation on the Secret of the hub contains the record as JSON.
const recordAnnotation = v1alpha1.GroupName + "/credential"

// record describes the contents of the Secret of the hub.
type record struct {
	// For is the holder of the credential; see [Request.holder].
	For string `json:"for"`
	// Credential is the type of the credential. Empty: only the key of a requested certificate.
	Credential v1alpha1.RegistrationCredential `json:"credential,omitempty"`
	// Asked is the requested lifetime in seconds.
	Asked int64 `json:"asked,omitempty"`
	// Account is the UID of the ServiceAccount of the token.
	Account types.UID `json:"account,omitempty"`
	// Issued and Expires are times of the hub's clock.
	Issued  metav1.Time `json:"issued,omitzero"`
	Expires metav1.Time `json:"expires,omitzero"`
}

// recordOf parses the record of a Secret. An invalid record is ignored: the credential is issued again.
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

// renewAt returns a time after 60 to 75 % of the lifetime of a credential, as for agents of members. The exact time
// depends on the holder, so that credentials that were issued together are not renewed together.
func (c record) renewAt(holder string) time.Time {
	hash := fnv.New32a()
	hash.Write([]byte(holder))
	part := 0.60 + 0.15*float64(hash.Sum32())/(1<<32)
	return c.Issued.Add(time.Duration(part * float64(c.Expires.Sub(c.Issued.Time))))
}

// due reports whether a credential must be issued.
func (w *wanted) due(o *observed, now time.Time) bool {
	c := o.record
	return c.For != w.holder || c.Credential != w.credential || c.Asked != w.seconds ||
		c.Credential == v1alpha1.RegistrationToken && (o.account == nil || o.account.UID != c.Account) ||
		!now.Before(c.renewAt(w.key.String()))
}

// usable reports whether the current credential is valid, even if it expires soon.
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
