package leave

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/muster-sdk/muster/addon/internal/messages"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/bounded"
	"github.com/muster-sdk/muster/internal/precondition"
	"github.com/muster-sdk/muster/membership"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// Name is the name of the gate.
const Name = "addons"

// gracePeriod is the time in which the controller of MemberAddons must act, including a change of the leader. The hub
// retries forced gates for twice as long (lifecycle.NamespaceTimeout).
const gracePeriod = 30 * time.Second

// +kubebuilder:rbac:groups=addon.muster.dev,resources=memberaddons,verbs=list;watch;patch;delete
// +kubebuilder:rbac:groups=work.muster.dev,resources=works,verbs=list;watch;patch

// Gate returns a gate that deletes the MemberAddons of a leaving member and is open when there are none; see the tables
// of the package. The scheme of the client must contain addon/v1alpha1 and work/v1alpha1. The client may read from
// caches. The folder rbac contains the required permissions. The gate is safe for concurrent use.
func Gate(c client.Client) interface {
	membership.LeaveGate
	membership.Forcer
	membership.Releaser
} {
	return gate{c, clock.RealClock{}}
}

type gate struct {
	client client.Client
	clock  clock.PassiveClock
}

func (gate) Name() string { return Name }

// Remaining deletes the MemberAddons and returns those that still exist, each with the reason.
func (g gate) Remaining(ctx context.Context, member membership.Member) ([]string, error) {
	addons, err := g.list(ctx, member)
	if err != nil {
		return nil, err
	}
	var remaining []string
	var errs []error
	for i := range addons {
		remaining = append(remaining, describe(&addons[i]))
		// The next reconcile observes the concurrent change.
		if err := g.release(ctx, member, &addons[i]); !apierrors.IsConflict(err) {
			errs = append(errs, err)
		}
	}
	return remaining, errors.Join(errs...)
}

// release starts the deletion of a MemberAddon.
func (g gate) release(ctx context.Context, member membership.Member, addon *v1alpha1.MemberAddon) error {
	if err := g.orphan(ctx, member, addon); err != nil {
		return err
	}
	if addon.DeletionTimestamp != nil {
		return nil
	}
	err := g.client.Delete(ctx, addon, precondition.Unchanged(addon))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete MemberAddon %s/%s: %w", addon.Namespace, addon.Name, err)
	}
	return nil
}

func (g gate) list(ctx context.Context, member membership.Member) ([]v1alpha1.MemberAddon, error) {
	var addons v1alpha1.MemberAddonList
	err := g.client.List(ctx, &addons, client.InNamespace(member.Namespace))
	if undefined(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the MemberAddons of %s: %w", member.Name, err)
	}
	return addons.Items, nil
}

// undefined reports whether the hub does not have the kind.
func undefined(err error) bool { return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) }

func describe(addon *v1alpha1.MemberAddon) string {
	text := "memberaddon/" + addon.Name
	switch {
	case addon.DeletionTimestamp == nil:
		return text // the status does not describe the deletion
	case !observed(addon):
		return text + ": no controller has observed the deletion yet"
	case addon.Status.Message == "":
		return text
	}
	return text + ": " + bounded.Text(addon.Status.Message, messages.MaxPart)
}

// observed reports whether a controller has observed the deletion, which increases the generation.
func observed(addon *v1alpha1.MemberAddon) bool {
	return addon.Status.ObservedGeneration == addon.Generation
}

// orphan sets the Works of an add-on to orphan their objects if the leave policy of the member requires it.
func (g gate) orphan(ctx context.Context, member membership.Member, addon *v1alpha1.MemberAddon) error {
	if member.Leave.Resources != membershipv1alpha1.OrphanResources {
		return nil
	}
	var works workv1alpha1.WorkList
	err := g.client.List(ctx, &works, client.InNamespace(addon.Namespace),
		client.MatchingLabels{v1alpha1.AddonLabel: addon.Name})
	if err != nil && !undefined(err) {
		return fmt.Errorf("list Works of MemberAddon %s/%s: %w", addon.Namespace, addon.Name, err)
	}
	for i := range works.Items {
		work := &works.Items[i]
		before := work.DeepCopy()
		if ofHooks(work) || !work.Spec.Orphan() {
			continue
		}
		err := g.client.Patch(ctx, work, precondition.Patch(before))
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("set Work %s/%s to orphan its objects: %w", work.Namespace, work.Name, err)
		}
	}
	return nil
}

// ofHooks reports whether a Work contains the pre-delete hooks of an add-on. Completed Jobs are not worth keeping, and
// failed ones would block the next attempt.
func ofHooks(work *workv1alpha1.Work) bool { return strings.HasSuffix(work.Name, "-hooks") }

// Force ends the removal deadlines of all MemberAddons and removes muster's finalizer if no controller acts.
func (g gate) Force(ctx context.Context, member membership.Member) error {
	addons, err := g.list(ctx, member)
	if err != nil {
		return err
	}
	var errs []error
	for i := range addons {
		errs = append(errs, g.orphan(ctx, member, &addons[i]), g.force(ctx, &addons[i]))
	}
	return errors.Join(errs...)
}

// Release removes muster's finalizer from MemberAddons that are being deleted with the member's namespace. Nothing is
// removed from the member: the MemberAddons and their Works are created again in the restored namespace.
func (g gate) Release(ctx context.Context, member membership.Member) error {
	addons, err := g.list(ctx, member)
	if err != nil {
		return err
	}
	var errs []error
	for i := range addons {
		addon := &addons[i]
		before := addon.DeepCopy()
		if addon.DeletionTimestamp == nil || !controllerutil.RemoveFinalizer(addon, v1alpha1.MemberAddonFinalizer) {
			continue
		}
		err := g.client.Patch(ctx, addon, precondition.Patch(before))
		if client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("remove the finalizer of MemberAddon %s/%s: %w", addon.Namespace, addon.Name, err))
		}
	}
	return errors.Join(errs...)
}

func (g gate) force(ctx context.Context, addon *v1alpha1.MemberAddon) error {
	before := addon.DeepCopy()
	if !forceStep(addon, g.clock.Now()) {
		return nil
	}
	err := g.client.Patch(ctx, addon, precondition.Patch(before))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("force the removal of MemberAddon %s/%s: %w", addon.Namespace, addon.Name, err)
	}
	return nil
}

// forceStep performs the next step to force a removal, if one is due. The deadline that it sets lets the controller act
// and records, for later calls, since when the controller is overdue.
func forceStep(addon *v1alpha1.MemberAddon, now time.Time) (changed bool) {
	var passed time.Duration
	if addon.DeletionTimestamp != nil {
		passed = max(0, now.Sub(addon.DeletionTimestamp.Time))
	}
	overdue := time.Duration(-1)
	if seconds := addon.Spec.RemovalDeadlineSeconds; seconds != nil {
		overdue = passed - time.Duration(*seconds)*time.Second
	}
	switch {
	case overdue >= 0 && overdue < gracePeriod:
		return false
	case overdue >= 0, passed >= gracePeriod && !observed(addon):
		return controllerutil.RemoveFinalizer(addon, v1alpha1.MemberAddonFinalizer)
	}
	addon.Spec.RemovalDeadlineSeconds = new(int32(min(passed/time.Second, maxDeadlineSeconds)))
	return true
}

// maxDeadlineSeconds is the maximum value that the API accepts.
const maxDeadlineSeconds = 86400
