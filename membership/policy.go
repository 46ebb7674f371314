package membership

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// Member identifies a member to the interfaces of this package.
type Member struct {
	// Name and UID of the MemberCluster.
	Name string
	UID  types.UID
	// ClusterID is the unique identifier of the cluster.
	ClusterID string
	// Namespace of the member on the hub.
	Namespace string
	// Claim is the fingerprint of the key of the agent that represents the cluster.
	Claim string
	// Identity is the subject that an administrator has assigned. Nil: none.
	Identity *rbacv1.Subject
	// Leave is the leave policy of the member.
	Leave v1alpha1.LeavePolicy
}

// A LeaveGate blocks a leave until its objects are removed. Gates are evaluated in the given order: on the hub, add-ons
// before the Works that contain them; on the member, the removal of Works before the agent's credentials.
//
// Remaining starts or continues the removal and returns what is left, as names that a user can look up, for example
// "work/guestbook". An empty list opens the gate. Remaining is called repeatedly, also after a restart and after the
// gate has opened, so it must be idempotent. It must not block, and must return before its context ends. An error is
// reported in the status of the member and retried. It blocks the leave until the deadline at most.
type LeaveGate interface {
	Name() string
	Remaining(ctx context.Context, member Member) ([]string, error)
}

// A Forcer is a [LeaveGate] that can release its objects after the deadline of a leave: it removes finalizers that
// would block the deletion of the member's namespace, for example those that only agents of the member remove.
//
// Force is called after the access of the member has ended: before the namespace is deleted, when deletion policies can
// still be set, and then repeatedly until the namespace is gone. It may be called without an earlier call of Remaining,
// which is not called while an earlier gate is closed. Force must be idempotent and must not block. Its errors are
// reported and retried, and block neither the namespace nor other gates.
type Forcer interface {
	Force(ctx context.Context, member Member) error
}

// A Releaser is a [LeaveGate] that can release its objects in a member's namespace that a user has deleted: it removes
// its finalizers there, and makes sure that the member's agents keep all objects on the member.
//
// Release is called repeatedly while the namespace is being deleted and the member is not leaving. The namespace is
// restored afterwards. Release must be idempotent and must not block. Its errors are reported and retried.
type Releaser interface {
	Release(ctx context.Context, member Member) error
}

// GateFunc returns a [LeaveGate] with a name and a function.
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

// A Decision is the decision of an [Acceptor] on a request.
type Decision string

// The decisions of an Acceptor.
const (
	// Accept admits the cluster.
	Accept Decision = "Accept"
	// Hold waits for an administrator to set spec.accepted of the MemberCluster.
	Hold Decision = "Hold"
	// Deny rejects the request permanently. A MemberCluster of the request stays undecided and shows the reason.
	Deny Decision = "Deny"
)

// Acceptance is a decision and its reason. The reason is written to the status of the JoinRequest or, if there is none,
// to the condition Accepted of the MemberCluster.
type Acceptance struct {
	Decision Decision
	Reason   string
}

// An Acceptor decides whether to admit a cluster on which no administrator has decided.
//
// It is called for requests whose signature and JoinToken (spec.token) the hub has verified. If the hub permits
// requests without a token (AllowWithoutToken), it is called for those too; their spec.token is nil. All other fields
// of a request, such as its name and labels, are unverified claims of the client. The Acceptor is called at each
// reconcile of such a request and must be deterministic. An error is reported in the status of the request and retried.
//
// It is also called for each undecided MemberCluster with joinMode Push or Install that has no agent yet, because the
// hub provides an agent only for accepted members. The request then contains the name, the labels and the clusterID (if
// set) of the MemberCluster, and its UID as memberUID. It has no token, claim key or signature, and no metadata.uid,
// which distinguishes it from requests of clients. Its labels are set by an administrator. This call is a convenience
// and not a security boundary: a user who can create a MemberCluster can set its spec.accepted. Accept sets the field;
// Hold and Deny leave it unset, and the condition Accepted contains the reason. The Acceptor is called again when the
// MemberCluster changes, when the hub starts, and ten seconds after an error.
type Acceptor interface {
	Accept(ctx context.Context, request *v1alpha1.JoinRequest) (Acceptance, error)
}

// AcceptorFunc is an [Acceptor] that calls a function.
type AcceptorFunc func(ctx context.Context, request *v1alpha1.JoinRequest) (Acceptance, error)

// Accept calls the function.
func (f AcceptorFunc) Accept(ctx context.Context, request *v1alpha1.JoinRequest) (Acceptance, error) {
	return f(ctx, request)
}

// An Issuer issues credentials of one type; see package registration for the available ones. Its methods must be safe
// for concurrent use.
type Issuer interface {
	// Subject returns the subject to which the permissions of a member are bound. It depends only on the member and
	// performs no I/O. An error says what an administrator must change.
	Subject(member Member) (rbacv1.Subject, error)

	// Issue returns the credential. The member is a live read, not from a cache, since an issuer may revoke what it issued
	// for another claim. Issue must be idempotent and must not block: while the credential is being issued it returns
	// [ErrPending] and is called again. It returns an [*InvalidError] for a request that cannot succeed. After its
	// success, no temporary object may remain outside of the member's namespace.
	Issue(ctx context.Context, member Member, request v1alpha1.CredentialRequest) (v1alpha1.Credential, error)
}

// A Cleaner is an [Issuer] that may leave objects outside of the member's namespace when it is interrupted. Clean
// removes them after the member has left. It must be idempotent.
type Cleaner interface {
	Clean(ctx context.Context, member Member) error
}
