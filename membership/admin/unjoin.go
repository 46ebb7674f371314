package admin

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// UnjoinOptions say how [Unjoin] has a member leave. The zero value has it leave for good, in order.
type UnjoinOptions struct {
	// Member is how to reach the member, to remove what [Join] made there. Nil: by the kubeconfig that Join stored on the hub;
	// a member that has an agent of its own is cleaned by that.
	Member *rest.Config
	// Keep keeps the MemberCluster, with spec.state Leave, and what Join made, so that the cluster can join again.
	Keep bool
	// Force shortens the deadline of the leave to a second. The hub then removes the member whatever is missing, and puts that
	// on record; what the member has is left there. It is for members that are gone. It cannot be had with Keep, as the deadline
	// would stay that short for later leaves.
	Force bool

	// Unprepare is called with a client of the member, before what Join made is removed, to take back what the Prepare of Join or Register has installed,
	// such as RemoveFromMember of package work/crds. It returns why something stays there, which is told as a [Step], or nothing. It is not called where there is
	// an agent on the member, or another hub has access to it. Nil: what was installed stays.
	Unprepare func(ctx context.Context, member client.Client) (kept string, err error)

	// MemberNamespace and ConnectionNamespace are those that Join was given. Empty: muster-system and muster-connections.
	MemberNamespace     string
	ConnectionNamespace string

	// Timeout bounds the wait. Zero: the deadline of the leave and two minutes. Negative: Unjoin does not wait, and what Join made
	// stays until another Unjoin removes it.
	Timeout time.Duration
	// Progress is told each step.
	Progress func(Step)
}

// Unjoin has a member leave: it deletes the MemberCluster, waits until the hub has let it go, and removes what [Join] made on
// both sides. It takes off no finalizer: what keeps a member is the hub's to end, at the deadline of the leave at the latest, for
// which a hub has to be running.
//
// It returns how the leave stood when it was last seen, which tells whether it was forced and what was left; nil if there was
// none. A member that is not there has left, which is no error.
//
// The Secret with the member's kubeconfig is deleted last. If Unjoin ends early it is kept, although the MemberCluster goes, and
// another Unjoin finds the way to the member by it. What was not removed from a member that cannot be reached is an
// [*UnreachableError], and one that does not accept the credential of the Secret, such as one that has ended, an error as well:
// the leave is over nevertheless, and Unjoin may be called again, with Member if need be. With Force that is only told as a
// [Step], and the Secret goes. Where there is no such Secret and Member is nil, a Step tells that something may be left there.
//
// On the hub it needs get and delete on memberclusters, and patch with Keep or Force; get, patch and delete on secrets in the
// connection namespace; and get on the namespace kube-system. On the member, the user of Member, or else the hub by its
// credential, needs get and delete on clusterrolebindings and get on namespaces; and to remove the namespace there, patch and
// delete on namespaces, and list on secrets, serviceaccounts, configmaps and pods in it, without which that stays. What Unprepare is not allowed to
// do, or get on secrets in that namespace, which comes before it, is told, and what was installed stays: the hub's credential may do only what
// the hub was given.
func Unjoin(ctx context.Context, hub *rest.Config, name string, o UnjoinOptions) (*v1alpha1.LeaveStatus, error) {
	if err := checkName("name", name); err != nil {
		return nil, err
	}
	if o.Keep && o.Force {
		return nil, &membership.InvalidError{Field: "Force", Problem: "cannot be had with Keep: the deadline of all later leaves would be a second as well; leave it out, or change spec.leave.deadlineSeconds of the MemberCluster for a while"}
	}
	o.MemberNamespace = orDefault(o.MemberNamespace, agent.DefaultNamespace)
	o.ConnectionNamespace = orDefault(o.ConnectionNamespace, membership.ConnectionNamespace)
	u := &unjoin{UnjoinOptions: o, name: name, tell: o.Progress}
	var err error
	if u.hub, err = connect(Hub, hub); err != nil {
		return nil, err
	}
	if err := u.tell.do("tell the hub that "+name+" leaves", func() (string, error) { return u.begin(ctx) }); err != nil {
		return nil, err
	}
	if o.Timeout < 0 {
		return u.leave, nil
	}
	if u.cluster != nil {
		if err := u.await(ctx); err != nil {
			return u.leave, err
		}
	}
	if o.Keep {
		return u.leave, nil
	}
	return u.leave, u.cleanUp(ctx)
}

// unjoin is one Unjoin under way.
type unjoin struct {
	UnjoinOptions
	name    string
	hub     *cluster
	hubID   string
	tell    teller
	cluster *v1alpha1.MemberCluster // as it was at first; nil: there was none
	leave   *v1alpha1.LeaveStatus   // as last seen
	secret  *corev1.Secret          // as it was at first: how the hub reaches the member; nil: Join had made none
}

func (u *unjoin) begin(ctx context.Context) (detail string, err error) {
	if u.hubID, err = u.hub.id(ctx); err != nil {
		return "", err
	}
	if u.cluster, err = found(ctx, u.hub, client.ObjectKey{Name: u.name}, &v1alpha1.MemberCluster{}); err != nil {
		return "", err
	}
	if u.cluster != nil {
		u.leave = u.cluster.Status.Leave
	}
	if u.Keep {
		return u.turn(ctx)
	}
	if err := u.release(ctx); err != nil {
		return "", err
	}
	if u.cluster == nil {
		return "there is no such member", nil
	}
	if u.cluster.DeletionTimestamp == nil {
		if err := u.hub.remove(ctx, u.cluster); err != nil {
			return "", err
		}
	}
	return "", u.hasten(ctx)
}

// turn has the member leave without deleting it.
func (u *unjoin) turn(ctx context.Context) (detail string, err error) {
	if u.cluster == nil {
		return "there is no such member", nil
	}
	if u.cluster.DeletionTimestamp != nil || u.cluster.Spec.State == v1alpha1.StateLeave {
		return "", nil
	}
	before := u.cluster.DeepCopy()
	u.cluster.Spec.State = v1alpha1.StateLeave
	return "", u.hub.explain("change MemberCluster "+u.name, u.hub.Patch(ctx, u.cluster, client.MergeFrom(before)))
}

// hasten shortens the deadline, of a MemberCluster that is being deleted and of no other: one that lives on would leave like that
// for ever.
func (u *unjoin) hasten(ctx context.Context) error {
	if !u.Force || u.cluster.Spec.Leave.DeadlineSeconds == 1 {
		return nil
	}
	u.cluster.Spec.Leave.DeadlineSeconds = 1
	now := &v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: u.name}}
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q},"spec":{"leave":{"deadlineSeconds":1}}}`, u.cluster.UID)
	err := u.hub.Patch(ctx, now, client.RawPatch(types.MergePatchType, patch))
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // it is gone, and there may be another of that name
	}
	return u.hub.explain("change MemberCluster "+u.name, err)
}

// await waits until the member is gone, or has left.
func (u *unjoin) await(ctx context.Context) error {
	patience := u.Timeout
	if patience == 0 {
		patience = time.Duration(u.cluster.Spec.Leave.DeadlineSeconds)*time.Second + lifecycle.NamespacePatience + time.Minute
	}
	return u.tell.await(ctx, "wait until "+u.name+" has left", patience, func(ctx context.Context) (seen, error) {
		now, err := found(ctx, u.hub, client.ObjectKey{Name: u.name}, &v1alpha1.MemberCluster{})
		if err != nil {
			return seen{}, err
		}
		if now == nil || now.UID != u.cluster.UID {
			return seen{done: true, detail: u.outcome()}, nil
		}
		if now.Status.Leave != nil {
			u.leave = now.Status.Leave
		}
		if u.Keep && now.Status.Phase == v1alpha1.PhaseLeft && (now.Status.Leave == nil || now.Status.Leave.Ended) {
			return seen{done: true, detail: u.outcome()}, nil
		}
		if u.Keep && now.Spec.State != v1alpha1.StateLeave {
			return seen{}, fmt.Errorf("member %s was told to join again by somebody else", u.name)
		}
		return seen{detail: leaving(now)}, nil
	})
}

func (u *unjoin) outcome() string {
	if u.leave != nil && u.leave.Forced {
		return "it was removed by force, while the hub waited for " + awaited(u.leave.Waiting)
	}
	return "it has left"
}
