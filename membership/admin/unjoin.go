package admin

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// UnjoinOptions are the options of [Unjoin]. With the zero value, the member leaves permanently.
type UnjoinOptions struct {
	// Member is the config of the member, to remove the objects of [Join]. Default: the kubeconfig that Join stored on the
	// hub. The agent of a pull member removes its own objects.
	Member *rest.Config
	// Keep keeps the MemberCluster, with spec.state Leave, and the objects of Join, so that the cluster can join again.
	Keep bool
	// Force shortens the deadline of the leave to one second. The hub then removes the member and records the remaining
	// objects, which stay on the member. Use it for members that do not exist any more. It cannot be combined with Keep,
	// because the short deadline would apply to later leaves.
	Force bool

	// Unprepare is called with a client of the member before the objects of Join are removed, to remove the objects that
	// the Prepare of Join or Register installed, for example RemoveFromMember of package work/crds. It returns the reason
	// why objects stay, which is reported as a [Step], or "". It is not called if the member has another agent or another
	// hub has access to it. Nil: installed objects stay.
	Unprepare func(ctx context.Context, member client.Client) (kept string, err error)

	// MemberNamespace and ConnectionNamespace of Join. Default: muster-system and muster-connections.
	MemberNamespace     string
	ConnectionNamespace string

	// Timeout of the wait. Default: the deadline of the leave plus two minutes. Negative: Unjoin does not wait, and the
	// objects of Join stay until another Unjoin removes them.
	Timeout time.Duration
	// Progress is called with each step.
	Progress func(Step)
}

// Unjoin removes a member from the fleet: it deletes the MemberCluster, waits for the end of the leave, and removes the
// objects of [Join] from both sides. It removes no finalizers: the hub ends the leave, at its deadline at the latest,
// which requires a running hub.
//
// Unjoin returns the last observed status of the leave, including whether it was forced and the remaining objects; nil
// if there was none. A member that does not exist has left, which is not an error.
//
// The Secret with the member's kubeconfig is deleted last. If Unjoin ends early, the Secret is kept after the deletion
// of the MemberCluster, and another Unjoin uses it to reach the member. If the member is unreachable, the error is an
// [*UnreachableError]; a rejected credential of the Secret, for example an expired one, is an error as well. The leave
// is complete nevertheless; call Unjoin again, with Member if required. With Force both are reported only as a [Step],
// and the Secret is deleted. Without such a Secret and without Member, a Step reports that objects may be left on the
// member.
//
// Unjoin requires on the hub get and delete on memberclusters, and patch with Keep or Force; with watch on
// memberclusters, the returned status is the last one before the deletion, otherwise the last one that a poll observed;
// get, patch and delete on secrets in the connection namespace; and get on the namespace kube-system. On the member,
// the user of Member, or else the hub's credential, requires get and delete on clusterrolebindings and get on
// namespaces; and to remove the namespace, patch and delete on namespaces, and list on secrets, serviceaccounts,
// configmaps and pods in it, without which the namespace stays. Missing permissions of Unprepare, or to get the secrets
// in that namespace before it, are reported, and the installed objects stay: the hub's credential has only the
// permissions that the hub was granted.
func Unjoin(ctx context.Context, hub *rest.Config, name string, o UnjoinOptions) (*v1alpha1.LeaveStatus, error) {
	if err := checkName("name", name); err != nil {
		return nil, err
	}
	if o.Keep && o.Force {
		return nil, &membership.InvalidError{Field: "Force", Problem: "cannot be combined with Keep, because the " +
			"deadline of all later leaves would be one second: remove it, or change spec.leave.deadlineSeconds of the " +
			"MemberCluster temporarily"}
	}
	o.MemberNamespace = orDefault(o.MemberNamespace, agent.DefaultNamespace)
	o.ConnectionNamespace = orDefault(o.ConnectionNamespace, membership.ConnectionNamespace)
	u := &unjoin{UnjoinOptions: o, name: name, progress: o.Progress}
	var err error
	if u.hub, err = connect(Hub, hub); err != nil {
		return nil, err
	}
	if err := u.progress.do("notify the hub that "+name+" leaves",
		func() (string, error) { return u.begin(ctx) }); err != nil {
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

// unjoin is one call of Unjoin.
type unjoin struct {
	UnjoinOptions
	name     string
	hub      *cluster
	hubID    string
	progress reporter
	cluster  *v1alpha1.MemberCluster // as first observed; nil: none
	leave    *v1alpha1.LeaveStatus   // as last observed
	secret   *corev1.Secret          // as first observed: the access to the member; nil: Join has created none
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
		return u.setLeave(ctx)
	}
	if err := u.release(ctx); err != nil {
		return "", err
	}
	if u.cluster == nil {
		return "there is no such member", nil
	}
	if u.cluster.DeletionTimestamp == nil {
		if err := u.hub.removeRequested(ctx, u.cluster); err != nil {
			return "", err
		}
	}
	return "", u.shortenDeadline(ctx)
}

// setLeave sets spec.state to Leave without deleting the member.
func (u *unjoin) setLeave(ctx context.Context) (detail string, err error) {
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

// shortenDeadline shortens the deadline of a MemberCluster that is being deleted. Other MemberClusters would keep the
// short deadline.
func (u *unjoin) shortenDeadline(ctx context.Context) error {
	if !u.Force || u.cluster.Spec.Leave.DeadlineSeconds == 1 {
		return nil
	}
	u.cluster.Spec.Leave.DeadlineSeconds = 1
	now := &v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: u.name}}
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q},"spec":{"leave":{"deadlineSeconds":1}}}`, u.cluster.UID)
	err := u.hub.Patch(ctx, now, client.RawPatch(types.MergePatchType, patch))
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // it was deleted, and another one may have the name
	}
	return u.hub.explain("change MemberCluster "+u.name, err)
}

// await waits until the member has left.
func (u *unjoin) await(ctx context.Context) error {
	timeLimit := u.Timeout
	if timeLimit == 0 {
		timeLimit = time.Duration(u.cluster.Spec.Leave.DeadlineSeconds)*time.Second + lifecycle.NamespaceTimeout + time.Minute
	}
	last, stop := u.watch(ctx)
	defer stop()
	return u.progress.await(ctx, "wait until "+u.name+" has left", timeLimit, func(ctx context.Context) (seen, error) {
		now, err := found(ctx, u.hub, client.ObjectKey{Name: u.name}, &v1alpha1.MemberCluster{})
		if err != nil {
			return seen{}, err
		}
		if now == nil || now.UID != u.cluster.UID {
			select {
			case leave := <-last:
				if leave != nil {
					u.leave = leave
				}
			case <-ctx.Done():
			case <-clock.RealClock{}.After(time.Second): // The event may be late.
			}
			return seen{done: true, detail: u.outcome()}, nil
		}
		if now.Status.Leave != nil {
			u.leave = now.Status.Leave
		}
		if u.Keep && now.Status.Phase == v1alpha1.PhaseLeft && (now.Status.Leave == nil || now.Status.Leave.Ended) {
			return seen{done: true, detail: u.outcome()}, nil
		}
		if u.Keep && now.Spec.State != v1alpha1.StateLeave {
			return seen{}, fmt.Errorf("member %s was set to join again concurrently", u.name)
		}
		return seen{detail: leaving(now)}, nil
	})
}

// watch sends the status of the leave in the last state of the MemberCluster, which a poll can miss: the hub deletes
// the object immediately after it has recorded a forced leave. Without the permission to watch, or if the watch ends
// early, the channel is closed, and the last polled state is used. Call stop to end the watch.
func (u *unjoin) watch(ctx context.Context) (last <-chan *v1alpha1.LeaveStatus, stop func()) {
	result := make(chan *v1alpha1.LeaveStatus, 1)
	ctx, cancel := context.WithCancel(ctx)
	config := rest.CopyConfig(u.hub.config)
	config.Timeout = 0 // A watch lasts for as long as the leave.
	c, err := client.NewWithWatch(config, client.Options{Scheme: u.hub.Scheme(), Mapper: u.hub.RESTMapper()})
	if err != nil {
		close(result)
		return result, cancel
	}
	go func() {
		defer close(result)
		events, err := c.Watch(ctx, &v1alpha1.MemberClusterList{}, &client.ListOptions{
			FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, u.name),
			Raw:           &metav1.ListOptions{ResourceVersion: u.cluster.ResourceVersion},
		})
		if err != nil {
			return
		}
		defer events.Stop()
		for event := range events.ResultChan() {
			gone, is := event.Object.(*v1alpha1.MemberCluster)
			if is && event.Type == watch.Deleted && gone.UID == u.cluster.UID {
				result <- gone.Status.Leave
				return
			}
		}
	}()
	return result, cancel
}

func (u *unjoin) outcome() string {
	if u.leave != nil && u.leave.Forced {
		return "the member was removed by force, while the hub waited for " + awaited(u.leave.Waiting)
	}
	return "the member has left"
}
