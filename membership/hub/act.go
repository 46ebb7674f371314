package hub

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/muster-sdk/muster/internal/precondition"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// act carries out the actions of a step in order, up to the first that fails. A failure of ForceGates does not stop the
// other actions. The Membership that the actions write replaces the observed one.
func (r *members) act(ctx context.Context, o *memberObserved, step lifecycle.HubStep) (out outcome) {
	for _, action := range step.Actions {
		err := r.carryOut(ctx, o, step, action, &out)
		if err == nil {
			continue
		}
		err = fmt.Errorf("%s of member %s: %w", action, o.cluster.Name, err)
		if action != lifecycle.ForceGates {
			out.failed = errors.Join(out.failed, err)
			return out
		}
		out.failed = err
	}
	// The Membership also changes without an action: its period, its taints, the answer to a renewal.
	if out.failed == nil && o.membership != nil && o.lifecycle.Namespace == lifecycle.Present {
		out.failed = r.syncMembership(ctx, o, lifecycle.MembershipSeen{
			State: o.membership.Spec.State, Rejoin: o.membership.Spec.Rejoin, Clean: o.membership.Spec.Clean,
		}, &out)
	}
	return out
}

func (r *members) carryOut(ctx context.Context, o *memberObserved, step lifecycle.HubStep, action lifecycle.HubAction,
	out *outcome) error {
	switch action {
	case lifecycle.AddFinalizer:
		return r.patch(ctx, o.cluster, func() { controllerutil.AddFinalizer(o.cluster, membership.Finalizer) })
	case lifecycle.SetAccepted:
		return r.patch(ctx, o.cluster, func() { o.cluster.Spec.Accepted = new(true) })
	case lifecycle.RemoveFinalizer:
		err := r.patch(ctx, o.cluster, func() { controllerutil.RemoveFinalizer(o.cluster, membership.Finalizer) })
		out.gone = err == nil
		return ignore(err, apierrors.IsNotFound)
	case lifecycle.WriteTombstone:
		return r.writeTombstone(ctx, o)
	case lifecycle.ReleaseClaim:
		return r.patch(ctx, o.cluster, func() {
			o.cluster.Spec.Claim, o.cluster.Spec.ClaimKeys, o.cluster.Spec.Credential = "", nil, ""
		})
	case lifecycle.CreateNamespace:
		return r.createNamespace(ctx, o)
	case lifecycle.WriteMembership:
		return r.syncMembership(ctx, o, step.Membership, out)
	case lifecycle.GrantAccess:
		return r.grantAccess(ctx, o)
	case lifecycle.RevokeAccess:
		return r.revokeAccess(ctx, o)
	case lifecycle.ForceGates:
		return r.extensions.forceGates(ctx, o.member)
	case lifecycle.ReleaseNamespace:
		return r.extensions.releaseNamespace(ctx, o.member)
	case lifecycle.DeleteNamespace:
		return r.deleteNamespace(ctx, o)
	default:
		return fmt.Errorf("action %s: not supported by this version of the hub", action)
	}
}

// writeTombstone records that the member leaves because a user requested it. A MemberCluster that was never bound to a
// cluster needs no record.
func (r *members) writeTombstone(ctx context.Context, o *memberObserved) error {
	cluster := o.cluster
	if cluster.Spec.ClusterID == "" {
		return nil
	}
	// The status already records a leave that cannot be called off (lifecycle.NextHub), so the tombstone is true even if
	// the leader is paused between this read and the write. The comparison excludes a MemberCluster that was restored in
	// the meantime.
	latest := &v1alpha1.MemberCluster{}
	if err := r.reader.Get(ctx, client.ObjectKeyFromObject(cluster), latest); err != nil {
		return fmt.Errorf("read MemberCluster %s: %w", cluster.Name, err)
	}
	if latest.UID != cluster.UID || latest.ResourceVersion != cluster.ResourceVersion {
		return apierrors.NewConflict(v1alpha1.GroupVersion.WithResource("memberclusters").GroupResource(), cluster.Name,
			errChanged)
	}
	return r.tombstones.write(ctx, lifecycle.Tombstone{
		MemberUID: cluster.UID, MemberName: cluster.Name, ClusterID: cluster.Spec.ClusterID, Claim: cluster.Spec.Claim,
		Decided: cluster.Spec.Accepted != nil, Kept: cluster.DeletionTimestamp == nil,
		Resources: cluster.Spec.Leave.Resources, Time: r.options.Clock.Now(),
	})
}

// errChanged is the error of an action on an object that changed since it was observed.
var errChanged = errors.New("the object was changed since it was observed")

// patch applies a change to a MemberCluster. It sends no request if nothing changes, and fails with a conflict if
// another client has written the MemberCluster.
func (r *members) patch(ctx context.Context, cluster *v1alpha1.MemberCluster, change func()) error {
	before := cluster.DeepCopy()
	change()
	if equality.Semantic.DeepEqual(before, cluster) {
		return nil
	}
	status := cluster.Status
	err := r.client.Patch(ctx, cluster, precondition.Patch(before))
	if err == nil {
		r.memory.written.Record(cluster)
	}
	cluster.Status = status // keep the desired status, which the caller reports
	return err
}

func (r *members) createNamespace(ctx context.Context, o *memberObserved) error {
	member := o.member
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: member.Namespace, Labels: map[string]string{membership.MemberLabel: member.Name},
	}}
	err := r.client.Create(ctx, namespace)
	if err == nil {
		r.event(ctx, o.cluster, reasonNamespaceCreated, "Prepare",
			fmt.Sprintf("Namespace %s was created for the member.", namespace.Name))
	}
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	if err := r.reader.Get(ctx, client.ObjectKeyFromObject(namespace), namespace); err != nil {
		return err
	}
	if owner := namespace.Labels[membership.MemberLabel]; owner != member.Name {
		return fmt.Errorf("namespace %s exists and does not belong to this member: delete the namespace, or set its label "+
			"%s=%s to assign it to the member",
			member.Namespace, membership.MemberLabel, member.Name)
	}
	return nil
}

// revokeAccess deletes the observed RoleBinding.
func (r *members) revokeAccess(ctx context.Context, o *memberObserved) error {
	if o.binding == nil {
		return nil
	}
	if err := r.client.Delete(ctx, o.binding, precondition.Unchanged(o.binding)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete RoleBinding %s/%s: %w", o.binding.Namespace, o.binding.Name, err)
	}
	r.event(ctx, o.cluster, reasonAccessRevoked, "Revoke", fmt.Sprintf(
		"RoleBinding %s/%s was deleted: the agent has no access to the hub any more.", o.binding.Namespace, o.binding.Name))
	return nil
}

// deleteNamespace deletes the observed namespace, and objects of issuers outside of it.
func (r *members) deleteNamespace(ctx context.Context, o *memberObserved) error {
	member := o.member
	for kind, issuer := range r.options.Issuers {
		cleaner, ok := issuer.(membership.Cleaner)
		if !ok {
			continue
		}
		if err := cleaner.Clean(ctx, member); err != nil {
			return fmt.Errorf("clean up after the issuer of type %s: %w", kind, err)
		}
	}
	if o.namespace == nil {
		return nil
	}
	if err := r.client.Delete(ctx, o.namespace, precondition.Unchanged(o.namespace)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete namespace %s: %w", member.Namespace, err)
	}
	r.event(ctx, o.cluster, reasonNamespaceDeleted, "Leave",
		fmt.Sprintf("Namespace %s of the member is being deleted.", member.Namespace))
	return nil
}

func (r *members) newBinding(o *memberObserved) *rbacv1.RoleBinding {
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: o.member.Namespace, Name: membership.AgentName,
			Labels: map[string]string{membership.MemberLabel: o.member.Name},
		},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: membership.AgentClusterRole},
	}
	if o.subject != nil {
		binding.Subjects = []rbacv1.Subject{*o.subject}
	}
	return binding
}

func (r *members) grantAccess(ctx context.Context, o *memberObserved) error {
	if o.binding == nil {
		binding := r.newBinding(o)
		err := r.client.Create(ctx, binding)
		if err == nil {
			r.event(ctx, o.cluster, reasonAccessGranted, "Prepare", fmt.Sprintf(
				"RoleBinding %s/%s was created: the agent has the ClusterRole %s in its namespace.",
				binding.Namespace, binding.Name, binding.RoleRef.Name))
		}
		return ignore(err, apierrors.IsAlreadyExists)
	}
	binding := o.binding.DeepCopy()
	binding.Subjects = r.newBinding(o).Subjects
	return r.client.Update(ctx, binding)
}

// syncMembership updates the Membership to its desired content. It writes only if the content changes.
func (r *members) syncMembership(ctx context.Context, o *memberObserved, want lifecycle.MembershipSeen,
	out *outcome) error {
	spec := o.cluster.Spec
	object := &v1alpha1.Membership{ObjectMeta: metav1.ObjectMeta{
		Namespace: o.member.Namespace, Name: membership.MembershipName,
		Labels: map[string]string{membership.MemberLabel: o.member.Name},
	}}
	if o.membership != nil {
		object = o.membership.DeepCopy()
	}
	var renewal *v1alpha1.RenewalAnswer
	renewal, out.renewing = r.answerRenewal(ctx, o) // this failure, and that to confirm an epoch, do not stop the rest
	shown, confirming, err := r.epochs.identityIn(ctx, o.membership)
	if err != nil {
		return err
	}
	out.confirming = confirming
	object.Spec = v1alpha1.MembershipSpec{
		MemberName: o.cluster.Name, MemberUID: o.cluster.UID, Claim: spec.Claim, Hub: shown,
		State: want.State, Rejoin: want.Rejoin, Clean: want.Clean,
		HeartbeatPeriodSeconds: spec.HeartbeatPeriodSeconds, Leave: spec.Leave, Taints: spec.Taints,
		Renewal: renewal,
	}
	switch {
	case o.membership == nil:
		// The Lease is first: an agent that observes its Membership can renew it.
		if err := r.createLease(ctx, o.member); err != nil {
			return err
		}
		if err := r.createMembership(ctx, object); err != nil {
			return err
		}
	case !equality.Semantic.DeepEqual(o.membership.Spec, object.Spec):
		if err := r.client.Update(ctx, object); err != nil {
			return err
		}
	}
	o.membership = object
	return nil
}

// createMembership creates the Membership, and replaces that of an earlier member with the same name. If a Membership
// of this member exists, the observation is outdated, and the error is errUnseen.
func (r *members) createMembership(ctx context.Context, object *v1alpha1.Membership) error {
	created := object.DeepCopy()
	err := r.client.Create(ctx, created)
	if apierrors.IsAlreadyExists(err) {
		var there v1alpha1.Membership
		if err := r.reader.Get(ctx, client.ObjectKeyFromObject(object), &there); err != nil {
			return err
		}
		switch {
		case there.DeletionTimestamp != nil:
			return err
		case there.Spec.MemberUID == object.Spec.MemberUID:
			return errUnseen
		}
		if err := r.client.Delete(ctx, &there, precondition.Unchanged(&there)); err != nil {
			return err
		}
		created = object.DeepCopy()
		err = r.client.Create(ctx, created)
	}
	if err != nil {
		return err
	}
	*object = *created
	return nil
}
