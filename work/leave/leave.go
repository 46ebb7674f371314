// Package leave connects Works with the leave of a member. On the hub, a gate delays the leave until the agent has
// deleted the objects of all Works. On the member, a cleaner deletes the remaining objects after the hub has
// deregistered the member.
//
//	hub.Options{Gates: []membership.LeaveGate{leave.Gate(client)}, AgentRules: agent.HubRules()}
//	agent.Options{Cleaners: []membership.LeaveGate{leave.Cleaner(cleaner.Clean)}}
//
// Of the packages of Works, only this one, work/companion and work/unassigned import packages of membership.
package leave

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/muster-sdk/muster/internal/precondition"
	"github.com/muster-sdk/muster/membership"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// Name is the name of the gate and of the cleaner.
const Name = "works"

// The gate needs these permissions. The hub also needs the permissions that it grants to agents (agent.HubRules).

// +kubebuilder:rbac:groups=work.muster.dev,resources=works,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups=work.muster.dev,resources=works/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Gate returns a gate that deletes the Works of a member that leaves, and is open when none is left. If the leave
// policy of the member is to orphan its resources, the gate first sets this in each Work before it deletes the Work.
// The scheme of the client must have work/v1alpha1. The permissions are in the folder rbac.
//
// A forced leave removes the agent's finalizer from Works that are being deleted, so the Works are deleted while the
// member may still have their objects. A leave may be forced before this gate is called, while another gate blocks
// the leave. The Works are set to orphan their objects in this case, too.
func Gate(c client.Client) interface {
	membership.LeaveGate
	membership.Forcer
	membership.Releaser
} {
	return gate{c}
}

type gate struct{ client client.Client }

func (gate) Name() string { return Name }

// Remaining returns the names of the Works that still exist, each with its status message.
func (g gate) Remaining(ctx context.Context, member membership.Member) ([]string, error) {
	works, err := g.list(ctx, member)
	if err != nil {
		return nil, err
	}
	var remaining []string
	var errs []error
	for i := range works {
		remaining = append(remaining, describe(&works[i]))
		errs = append(errs, g.release(ctx, member, &works[i]))
	}
	return remaining, errors.Join(errs...)
}

// release starts the deletion of a Work. It sets an annotation that marks the deletion as a request. Without the
// annotation, the agent keeps the objects of a generated Work, and of a Work that is deleted with the namespace.
func (g gate) release(ctx context.Context, member membership.Member, work *v1alpha1.Work) error {
	before := work.DeepCopy()
	changed := member.Leave.Resources == membershipv1alpha1.OrphanResources && work.Spec.Orphan()
	if work.Annotations[v1alpha1.DeletionRequestedByAnnotation] != string(member.UID) {
		metav1.SetMetaDataAnnotation(&work.ObjectMeta, v1alpha1.DeletionRequestedByAnnotation, string(member.UID))
		changed = true
	}
	if changed {
		if err := g.client.Patch(ctx, work, precondition.Patch(before)); err != nil {
			return client.IgnoreNotFound(wrapf(err, "request the deletion of Work %s/%s", work.Namespace, work.Name))
		}
	}
	if work.DeletionTimestamp != nil {
		return nil
	}
	err := g.client.Delete(ctx, work, precondition.Unchanged(work))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete Work %s/%s: %w", work.Namespace, work.Name, err)
	}
	return nil
}

func wrapf(err error, format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err)
}

func (g gate) list(ctx context.Context, member membership.Member) ([]v1alpha1.Work, error) {
	var works v1alpha1.WorkList
	err := g.client.List(ctx, &works, client.InNamespace(member.Namespace))
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil, nil // a hub without the definition has none
	}
	if err != nil {
		return nil, fmt.Errorf("list Works of member %s: %w", member.Name, err)
	}
	return works.Items, nil
}

func describe(work *v1alpha1.Work) string {
	text := "work/" + work.Name
	if work.DeletionTimestamp != nil && work.Status.Message != "" {
		text += ": " + work.Status.Message
	}
	return text
}

// orphan sets a Work to orphan its objects. It reports whether it has changed the Work.
func (g gate) orphan(ctx context.Context, work *v1alpha1.Work) (reported bool, err error) {
	before := work.DeepCopy()
	if !work.Spec.Orphan() {
		return false, nil
	}
	if err := g.client.Patch(ctx, work, precondition.Patch(before)); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("set Work %s/%s to orphan its objects: %w", work.Namespace, work.Name, err)
	}
	return true, nil
}

// Force sets Works to orphan their objects if the leave policy of the member requires it, and removes the agent's
// finalizer from Works that are being deleted. If it cannot write a Work, it continues with the others.
func (g gate) Force(ctx context.Context, member membership.Member) error {
	works, err := g.list(ctx, member)
	if err != nil {
		return err
	}
	var errs []error
	for i := range works {
		reported := false
		if member.Leave.Resources == membershipv1alpha1.OrphanResources {
			reported, err = g.orphan(ctx, &works[i])
			errs = append(errs, err)
		}
		// A running agent must first observe the changed Work or its deletion: if an agent finds that the Work is
		// missing, it acts on the state that it observed before. Force is called again.
		if !reported && works[i].DeletionTimestamp != nil {
			errs = append(errs, g.removeFinalizer(ctx, &works[i]))
		}
	}
	return errors.Join(errs...)
}

// Release removes the agent's finalizer from Works that are being deleted with the namespace of the member. The agent
// keeps their objects as orphans, because no annotation marks the deletion as a request, and adopts them when the
// Works are created again.
func (g gate) Release(ctx context.Context, member membership.Member) error {
	works, err := g.list(ctx, member)
	if err != nil {
		return err
	}
	var errs []error
	for i := range works {
		if works[i].DeletionTimestamp != nil {
			errs = append(errs, g.removeFinalizer(ctx, &works[i]))
		}
	}
	return errors.Join(errs...)
}

// removeFinalizer removes the agent's finalizer from a Work.
func (g gate) removeFinalizer(ctx context.Context, work *v1alpha1.Work) error {
	before := work.DeepCopy()
	if !controllerutil.RemoveFinalizer(work, v1alpha1.Finalizer) {
		return nil
	}
	err := g.client.Patch(ctx, work, precondition.Patch(before))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove the finalizer of Work %s/%s: %w", work.Namespace, work.Name, err)
	}
	return nil
}

// Cleaner returns a cleaner that deletes or orphans the objects of Works on a member, by the last leave policy that
// the member observed. Clean is the method of that name of an agent's Cleaner.
func Cleaner(clean func(ctx context.Context,
	action v1alpha1.DeleteAction) (remaining []string, err error)) membership.LeaveGate {
	return membership.GateFunc(Name, func(ctx context.Context, member membership.Member) ([]string, error) {
		if member.Leave.Resources == membershipv1alpha1.OrphanResources {
			return clean(ctx, v1alpha1.OrphanObject)
		}
		return clean(ctx, v1alpha1.DeleteObject)
	})
}
