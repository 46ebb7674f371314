package registration

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/addon/health"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/registration/csr"
)

// DefaultTokenLifetime is the default lifetime of a token, the same as for a member. The default for a certificate is
// [csr.DefaultLifetime].
const DefaultTokenLifetime = 7 * 24 * time.Hour

// Request describes the desired access of an add-on's agent to the hub.
type Request struct {
	// MemberAddon is the MemberAddon of the agent. It has the name of the add-on and owns the objects in its namespace.
	// It is not modified.
	MemberAddon *v1alpha1.MemberAddon
	// Member is the member of the MemberAddon. Name, UID, Namespace and Claim are used. Its namespace is that of the
	// MemberAddon.
	Member membership.Member
	// InstallNamespace is the namespace of the Secret on the member.
	InstallNamespace string
	// Want is the desired access.
	Want v1alpha1.TemplateRegistration
	// Lease is true if the health type is Lease. The agent then gets a Lease, and permission to renew it.
	Lease bool
}

func (r *Request) String() string {
	return fmt.Sprintf("add-on %s of member %s", r.MemberAddon.Name, r.Member.Name)
}

// wanted is the desired state of a registration.
type wanted struct {
	*Request
	key        client.ObjectKey // the key of the MemberAddon
	holder     string
	credential v1alpha1.RegistrationCredential
	seconds    int64
	refusal    *problem
}

func want(request *Request) *wanted {
	w := &wanted{
		Request: request, key: client.ObjectKeyFromObject(request.MemberAddon), holder: request.holder(),
		credential: cmp.Or(request.Want.Credential, v1alpha1.RegistrationToken),
	}
	lifetime := DefaultTokenLifetime
	if w.credential == v1alpha1.RegistrationCertificate {
		lifetime = csr.DefaultLifetime
	}
	w.seconds = int64(lifetime / time.Second)
	if asked := request.Want.ExpirationSeconds; asked != nil {
		w.seconds = int64(*asked)
	}
	switch refused := ValidateRules(w.key.Name, request.Want.Rules, field.NewPath("registration", "rules")); {
	case len(refused) > 0:
		w.refusal = refuse(refused.ToAggregate().Error())
	case request.Lease && w.key.Name == membership.LeaseName:
		w.refusal = refuse("an add-on with the name " + membership.LeaseName + " cannot have health type Lease, " +
			"because the member's own Lease has that name: choose another health.type")
	}
	return w
}

func refuse(what string) *problem {
	return &problem{Problem: health.Problem{Reason: v1alpha1.ReasonRegistering,
		Message: "The add-on agent cannot get the requested rules: " + what}}
}

// holder identifies the owner of a credential. The agent of a cluster that took over the member's name, or of a
// MemberAddon that was created again, is another holder and gets neither the credential nor its permissions.
func (r *Request) holder() string {
	sum := sha256.Sum256([]byte(strings.Join([]string{string(r.Member.UID), r.Member.Claim, string(r.MemberAddon.UID)},
		"\n")))
	return hex.EncodeToString(sum[:16])
}

// Parts of names contain no separator: a namespace and an add-on are DNS labels, without ':' and '.'.

func objectName(addon string) string { return "addon-" + addon }

func userPrefix(member client.ObjectKey) string {
	return "muster:addon:" + member.Namespace + ":" + member.Name + ":"
}

func (r *Registrar) secretKey(member client.ObjectKey) client.ObjectKey {
	return client.ObjectKey{Namespace: r.namespace, Name: member.Namespace + "." + member.Name}
}

// MemberAddonOf returns the key of the MemberAddon to which an object of [Kinds] belongs.
func MemberAddonOf(object client.Object) client.ObjectKey {
	key := client.ObjectKey{Namespace: object.GetNamespace(), Name: object.GetLabels()[v1alpha1.AddonLabel]}
	if _, ours := object.(*corev1.Secret); ours {
		key.Namespace, _, _ = strings.Cut(object.GetName(), ".")
	}
	return key
}

// subject returns the holder of the current credential.
func (w *wanted) subject(o *observed) (rbacv1.Subject, error) {
	if o.record.Credential == v1alpha1.RegistrationToken {
		return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: w.key.Namespace, Name: objectName(w.key.Name)}, nil
	}
	member, _, err := w.claim(o)
	if err != nil {
		return rbacv1.Subject{}, err
	}
	return (&csr.Issuer{UserPrefix: userPrefix(w.key)}).Subject(member)
}
