package membership

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// Member names one member to the interfaces of this package.
type Member struct {
	// Name of the MemberCluster, and its UID.
	Name string
	UID  types.UID
	// ClusterID tells the cluster from all others.
	ClusterID string
	// Namespace of the member on the hub.
	Namespace string
	// Claim is the fingerprint of the key of the one agent that speaks for the cluster.
	Claim string
	// Identity is the subject that an administrator named, if one did.
	Identity *rbacv1.Subject
	// Leave says how the member leaves.
	Leave v1alpha1.LeavePolicy
}

// A LeaveGate holds back a leave until what it stands for has been taken back. Gates open in the order in
// which they were given: add-ons before the works that carry them, on the hub; the works' own clean-up
// before the agent's credentials go, on the member.
//
// Remaining starts the clean-up, or goes on with it, and reports what is left, each entry in words that a
// person can look up ("work/guestbook"). None left opens the gate. It is called again and again until
// then, also after a restart and after it had opened, so it must be idempotent; it must not wait, and it
// has until its context ends. An error is reported in the member's status and tried again: it holds the
// leave back until the deadline, no longer.
type LeaveGate interface {
	Name() string
	Remaining(ctx context.Context, member Member) ([]string, error)
}

// A Forcer is a [LeaveGate] that can let go when the deadline of a leave has passed: it removes what would keep the
// member's namespace from going, such as finalizers that only the member's agents take off.
//
// Force is called when the member's access has ended, first before its namespace is deleted, which is the time to say what is to become of
// what goes with it, and then again and again until the namespace is gone. That may be the first that the gate hears
// of the leave, since Remaining is not called while a gate before it is shut. Force must be idempotent, and must not wait. Its failure
// keeps neither the namespace nor other gates: it is reported and tried again.
type Forcer interface {
	Force(ctx context.Context, member Member) error
}

// A Releaser is a [LeaveGate] that can let go of a member's namespace which was deleted by hand: it removes the finalizers
// of its own objects there, and has the member's agents keep everything on the member.
//
// Release is called again and again while the namespace is being deleted and the member does not leave. The namespace is
// restored afterwards. Release must be idempotent, and must not wait. Its failure is reported and tried again.
type Releaser interface {
	Release(ctx context.Context, member Member) error
}

// GateFunc makes a [LeaveGate] of a name and a function.
func GateFunc(name string, remaining func(context.Context, Member) ([]string, error)) LeaveGate {
	return gateFunc{name, remaining}
}

type gateFunc struct {
	name      string
	remaining func(context.Context, Member) ([]string, error)
}

func (g gateFunc) Name() string { return g.name }

func (g gateFunc) Remaining(ctx context.Context, member Member) ([]string, error) {
	return g.remaining(ctx, member)
}

// A Decision is what an [Acceptor] makes of a JoinRequest.
type Decision string

// The decisions of an Acceptor.
const (
	// Accept lets the cluster in.
	Accept Decision = "Accept"
	// Hold waits for an administrator to set spec.accepted of the MemberCluster.
	Hold Decision = "Hold"
	// Deny refuses the request for good. A MemberCluster that it is about stays undecided, and shows why it is not let in.
	Deny Decision = "Deny"
)

// Verdict is a decision and its reason, which is read in the status of the JoinRequest or, where there is none, in the condition Accepted of the
// MemberCluster.
type Verdict struct {
	Decision Decision
	Reason   string
}

// An Acceptor decides whether a cluster that no administrator has decided on may come in.
//
// It is asked about requests whose signature has been verified, and the JoinToken that spec.token names: the request
// was made with it, and the token lets it through. A hub that takes requests without one (AllowWithoutToken) asks
// about those as well; their spec.token is nil. All else in a request, such as its name and labels, is only what the
// asker says. It is asked each time that such a request is looked at, and must answer the same for the same request. An error
// is reported in the request's status and tried again later.
//
// It is also asked about each MemberCluster whose joinMode is Push or Install, that nobody has decided on, and that no agent speaks for: the
// hub brings an agent to those only when they are accepted, so there is none that could ask. The request is then made up of what the
// MemberCluster says. It has its name, its labels, its clusterID where that is set already, and its UID as memberUID; it has no token, no
// claim key and no signature, and it alone has no metadata.uid, by which a policy can tell it from those that somebody has made. Here labels are
// what an administrator says. To decide is a convenience and guards nothing: who may make a MemberCluster may set its spec.accepted as well. Accept
// sets that; Hold and Deny leave it unset, and the condition Accepted says why. It is asked again when the MemberCluster changes, when the hub
// starts, and ten seconds after an error.
type Acceptor interface {
	Accept(ctx context.Context, request *v1alpha1.JoinRequest) (Verdict, error)
}

// AcceptorFunc makes an [Acceptor] of a function.
type AcceptorFunc func(ctx context.Context, request *v1alpha1.JoinRequest) (Verdict, error)

// Accept calls the function.
func (f AcceptorFunc) Accept(ctx context.Context, request *v1alpha1.JoinRequest) (Verdict, error) {
	return f(ctx, request)
}

// An Issuer issues credentials of one type; see package registration for those that there are. Its methods
// may be called concurrently.
type Issuer interface {
	// Subject returns whom the permissions of a member are bound to. It follows from the member alone and
	// does no I/O. An error says what an administrator has to set right.
	Subject(member Member) (rbacv1.Subject, error)

	// Issue returns the credential. The member is what the API server said a moment ago, and no cache: an issuer may
	// end what it issued for another claim. It must be idempotent, and must not wait: where the credential takes
	// time it returns [ErrPending] and is called again. A request that can never succeed as it is gets an
	// [*InvalidError]. Nothing that it made on the way outlives its success, but for what lies in the
	// member's namespace.
	Issue(ctx context.Context, member Member, request v1alpha1.CredentialRequest) (v1alpha1.Credential, error)
}

// A Cleaner is an [Issuer] that may leave something on the hub outside of the member's namespace when it is
// interrupted. Clean removes that for a member that has left; it must be idempotent.
type Cleaner interface {
	Clean(ctx context.Context, member Member) error
}
