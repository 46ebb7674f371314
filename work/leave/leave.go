// Package leave ties the Works of a member to its leave: on the hub a gate that holds the leave back until the member
// has taken back all of them, and on the member a cleaner for what is left when the hub has forgotten it.
//
//	hub.Options{Gates: []membership.LeaveGate{leave.Gate(client)}, AgentRules: agent.HubRules()}
//	agent.Options{Cleaners: []membership.LeaveGate{leave.Cleaner(cleaner.Clean)}}
//
// It is the one package of work that knows of membership.
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

// Name of the gate and of the cleaner.
const Name = "works"

// What the gate needs, and what a hub must have itself to let agents have it (agent.HubRules).

// +kubebuilder:rbac:groups=work.muster.dev,resources=works,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups=work.muster.dev,resources=works/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Gate deletes the Works of a member that leaves, and is open when there are none. A member whose leave policy is to
// orphan its resources is told so by each Work before that is deleted. The client's scheme knows work/v1alpha1. The
// permissions are in the folder rbac.
//
// A leave that is forced takes the agent's finalizer off Works that are being deleted, so they go while the member may
// still have their objects. It may be forced before this gate has been asked, while another is shut: the Works are told
// to orphan then, too.
func Gate(c client.Client) interface {
	membership.LeaveGate
	membership.Forcer
	membership.Releaser
} {
	return gate{c}
}

type gate struct{ client client.Client }

func (gate) Name() string { return Name }

// Remaining names the Works that are still there, each with what its agent says of it.
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

// release begins to delete a Work. A note on it says that this is a request: without the note the agent keeps the
// objects of a generated Work, and of one that is deleted with the namespace.
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
		return nil, fmt.Errorf("list the Works of %s: %w", member.Name, err)
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

// orphan has a Work leave all its objects as they are. It reports whether the Work has just been told.
func (g gate) orphan(ctx context.Context, work *v1alpha1.Work) (reported bool, err error) {
	before := work.DeepCopy()
	if !work.Spec.Orphan() {
		return false, nil
	}
	if err := g.client.Patch(ctx, work, precondition.Patch(before)); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("have Work %s/%s orphan its objects: %w", work.Namespace, work.Name, err)
	}
	return true, nil
}

// Force has Works orphan their objects, where the member's leave policy says so, and takes the agent's finalizer off
// those that are being deleted. One Work that cannot be written does not keep the others.
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
		// An agent that lives still has to see what it was told, or a deletion: one that comes to find the Work missing goes
		// by what it knew before. Force is called again.
		if !reported && works[i].DeletionTimestamp != nil {
			errs = append(errs, g.letGo(ctx, &works[i]))
		}
	}
	return errors.Join(errs...)
}

// Release takes the agent's finalizer off Works that are being deleted with the member's namespace. The agent keeps
// their objects as orphans, because nothing notes that their deletion was requested, and adopts them when the Works are
// back.
func (g gate) Release(ctx context.Context, member membership.Member) error {
	works, err := g.list(ctx, member)
	if err != nil {
		return err
	}
	var errs []error
	for i := range works {
		if works[i].DeletionTimestamp != nil {
			errs = append(errs, g.letGo(ctx, &works[i]))
		}
	}
	return errors.Join(errs...)
}

// letGo takes the agent's finalizer off a Work.
func (g gate) letGo(ctx context.Context, work *v1alpha1.Work) error {
	before := work.DeepCopy()
	if !controllerutil.RemoveFinalizer(work, v1alpha1.Finalizer) {
		return nil
	}
	err := g.client.Patch(ctx, work, precondition.Patch(before))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("let go of Work %s/%s: %w", work.Namespace, work.Name, err)
	}
	return nil
}

// Cleaner takes back what Works have left on a member, by the leave policy that the member knew last. Clean is the
// method of that name of an agent's Cleaner.
func Cleaner(clean func(ctx context.Context,
	action v1alpha1.DeleteAction) (remaining []string, err error)) membership.LeaveGate {
	return membership.GateFunc(Name, func(ctx context.Context, member membership.Member) ([]string, error) {
		if member.Leave.Resources == membershipv1alpha1.OrphanResources {
			return clean(ctx, v1alpha1.OrphanObject)
		}
		return clean(ctx, v1alpha1.DeleteObject)
	})
}
