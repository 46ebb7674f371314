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

// DefaultTokenLifetime is how long a token lives where nothing else is asked for, as that of a member does. A certificate lives for
// [csr.DefaultLifetime].
const DefaultTokenLifetime = 7 * 24 * time.Hour

// Request asks for the access of an add-on's agent to the hub.
type Request struct {
	// MemberAddon whose agent it is. It has the name of the add-on, owns what is made in its namespace, and is not written to.
	MemberAddon *v1alpha1.MemberAddon
	// Member that it is on. Name, UID, Namespace and Claim count. Its namespace is that of the MemberAddon.
	Member membership.Member
	// InstallNamespace is where the Secret goes on the member.
	InstallNamespace string
	// Want is what the agent gets.
	Want v1alpha1.TemplateRegistration
	// Lease: its health is told by a Lease, so it gets one, and may renew it.
	Lease bool
}

func (r *Request) String() string {
	return fmt.Sprintf("add-on %s of member %s", r.MemberAddon.Name, r.Member.Name)
}

// wanted is what there is to be.
type wanted struct {
	*Request
	key        client.ObjectKey // of the MemberAddon
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
		w.refusal = refuse("an add-on that is called " + membership.LeaseName + " cannot have health by Lease, since the member's own has that name: choose another health.type")
	}
	return w
}

func refuse(what string) *problem {
	return &problem{Problem: health.Problem{Reason: v1alpha1.ReasonRegistering, Message: "Its agent cannot have what it asks for: " + what}}
}

// holder says whose a credential is. Nobody else gets it or what it may: not the agent of a cluster that took over the member's name, and
// not that of a MemberAddon that was made anew.
func (r *Request) holder() string {
	sum := sha256.Sum256([]byte(strings.Join([]string{string(r.Member.UID), r.Member.Claim, string(r.MemberAddon.UID)}, "\n")))
	return hex.EncodeToString(sum[:16])
}

// Names are of parts that have no separator in them: a namespace and an add-on are DNS labels, without ':' and '.'.

func objectName(addon string) string { return "addon-" + addon }

func userPrefix(member client.ObjectKey) string {
	return "muster:addon:" + member.Namespace + ":" + member.Name + ":"
}

func (r *Registrar) secretKey(member client.ObjectKey) client.ObjectKey {
	return client.ObjectKey{Namespace: r.namespace, Name: member.Namespace + "." + member.Name}
}

// MemberAddonOf returns which MemberAddon an object of [Kinds] belongs to.
func MemberAddonOf(object client.Object) client.ObjectKey {
	key := client.ObjectKey{Namespace: object.GetNamespace(), Name: object.GetLabels()[v1alpha1.AddonLabel]}
	if _, ours := object.(*corev1.Secret); ours {
		key.Namespace, _, _ = strings.Cut(object.GetName(), ".")
	}
	return key
}

// subject is who has the credential that is there.
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
