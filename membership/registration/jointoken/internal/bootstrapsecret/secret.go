package bootstrapsecret

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	bootstraptokens "k8s.io/cluster-bootstrap/token/util"
	bootstrapsecrets "k8s.io/cluster-bootstrap/util/secrets"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

const (
	// Namespace of all bootstrap tokens.
	Namespace = metav1.NamespaceSystem

	namespaceAnnotation = "membership.muster.dev/join-token-namespace"
	uidAnnotation       = "membership.muster.dev/join-token-uid"

	// group identifies muster's bootstrap tokens in policies and audit logs, to distinguish them from those of nodes. It
	// has no permissions.
	group = bootstrapapi.BootstrapDefaultGroup + ":muster"

	yes = "true"
)

// IsName reports whether a Secret or a JoinToken of that name can be a bootstrap token.
func IsName(name string) bool {
	_, is := bootstrapsecrets.ParseName(name)
	return is
}

// User returns the user name that the API server assigns to a bootstrap token. Unlike the groups of the token it is
// unique to the token.
func User(name string) string {
	id, _ := bootstrapsecrets.ParseName(name)
	return bootstrapapi.BootstrapUserPrefix + id
}

// Token returns "<id>.<secret>", as users type it.
func Token(secret *corev1.Secret) string {
	return bootstrapsecrets.GetData(secret, bootstrapapi.BootstrapTokenIDKey) + "." +
		bootstrapsecrets.GetData(secret, bootstrapapi.BootstrapTokenSecretKey)
}

// Expiration returns the time at which a token expires, to the second; zero: never.
func Expiration(secret *corev1.Secret) time.Time {
	end, err := time.Parse(time.RFC3339, bootstrapsecrets.GetData(secret, bootstrapapi.BootstrapTokenExpirationKey))
	if err != nil {
		return time.Time{}
	}
	return end
}

// Owner describes the owner of a Secret.
type Owner string

// The owners, relative to a JoinToken with the Secret's name.
const (
	// NoOwner: the Secret does not exist.
	NoOwner Owner = "NoOwner"
	// Ours: the Secret was created for this JoinToken.
	Ours Owner = "Ours"
	// Predecessor: the Secret was created for an earlier JoinToken of the same name, which was deleted.
	Predecessor Owner = "Predecessor"
	// Other: the Secret was created for a JoinToken in another namespace.
	Other Owner = "Other"
	// Administrator: another client, such as kubeadm, created the Secret.
	Administrator Owner = "Administrator"
)

// OwnerOf returns the owner of a Secret; nil is a missing Secret. It performs no I/O.
func OwnerOf(secret *corev1.Secret, token *v1alpha1.JoinToken) Owner {
	switch {
	case secret == nil:
		return NoOwner
	case secret.Labels[membership.JoinTokenLabel] == "":
		return Administrator
	case secret.Annotations[namespaceAnnotation] != token.Namespace:
		return Other
	case secret.Annotations[uidAnnotation] != string(token.UID):
		return Predecessor
	default:
		return Ours
	}
}

// Problem returns the reason why a Secret of another owner cannot be used at a time, and the valid content. Empty: it
// can be used. It performs no I/O.
func Problem(secret *corev1.Secret, owner Owner, now time.Time) string {
	name := fmt.Sprintf("Secret %s/%s", secret.Namespace, secret.Name)
	if owner == Other {
		return fmt.Sprintf("%s belongs to a JoinToken in namespace %q: use another ID", name,
			secret.Annotations[namespaceAnnotation])
	}
	name += ", which muster does not manage, "
	id, _ := bootstrapsecrets.ParseName(secret.Name)
	if bootstrapsecrets.GetData(secret, bootstrapapi.BootstrapTokenIDKey) != id {
		return fmt.Sprintf("%shas a token-id other than %q: correct it", name, id)
	}
	if !bootstraptokens.IsValidBootstrapToken(Token(secret)) {
		return name + "has a token-secret that is not sixteen lower-case letters and digits: correct it"
	}
	for _, usage := range []string{bootstrapapi.BootstrapTokenUsageAuthentication,
		bootstrapapi.BootstrapTokenUsageSigningKey} {
		if bootstrapsecrets.GetData(secret, usage) != yes {
			return fmt.Sprintf("%slacks the usage %s: set that to \"true\"", name, usage)
		}
	}
	if end := bootstrapsecrets.GetData(secret, bootstrapapi.BootstrapTokenExpirationKey); end != "" {
		at, err := time.Parse(time.RFC3339, end)
		if err != nil {
			return name + "has an expiration that is not a time such as 2006-01-02T15:04:05Z: correct it"
		}
		if !now.Before(at) {
			return fmt.Sprintf("%sexpired at %s: create another bootstrap token, and a JoinToken with its name", name,
				at.UTC().Format(time.RFC3339))
		}
	}
	return ""
}

// Whole reports whether a Secret that was created for a JoinToken has its desired content, with any expiration.
func Whole(secret *corev1.Secret, token *v1alpha1.JoinToken) bool {
	if !bootstraptokens.IsValidBootstrapToken(Token(secret)) {
		return false
	}
	want := fill(token, bootstrapsecrets.GetData(secret, bootstrapapi.BootstrapTokenSecretKey), Expiration(secret))
	return equality.Semantic.DeepEqual(secret.Data, want)
}

func fill(token *v1alpha1.JoinToken, secret string, expiration time.Time) map[string][]byte {
	id, _ := bootstrapsecrets.ParseName(token.Name)
	data := map[string][]byte{}
	for key, value := range map[string]string{
		bootstrapapi.BootstrapTokenIDKey:               id,
		bootstrapapi.BootstrapTokenSecretKey:           secret,
		bootstrapapi.BootstrapTokenExpirationKey:       expiration.UTC().Format(time.RFC3339),
		bootstrapapi.BootstrapTokenUsageAuthentication: yes,
		bootstrapapi.BootstrapTokenUsageSigningKey:     yes,
		bootstrapapi.BootstrapTokenExtraGroupsKey:      group,
		bootstrapapi.BootstrapTokenDescriptionKey: fmt.Sprintf(
			"JoinToken %s/%s of muster: permits clusters to request to join", token.Namespace, token.Name),
	} {
		data[key] = []byte(value)
	}
	return data
}

func metaOf(token *v1alpha1.JoinToken) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: token.Name, Namespace: Namespace,
		Labels:      map[string]string{membership.JoinTokenLabel: token.Name},
		Annotations: map[string]string{namespaceAnnotation: token.Namespace, uidAnnotation: string(token.UID)},
	}
}

func keyOf(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: Namespace, Name: name}
}
