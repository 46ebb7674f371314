package addon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/muster-sdk/muster/addon/health"
	"github.com/muster-sdk/muster/addon/internal/install"
	"github.com/muster-sdk/muster/addon/internal/turn"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/memberleave"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
)

// addons is the controller of Addons: who gets them, and in which order what is new.
type addons struct{ *shared }

// moment is how long what happens to the members of an add-on is collected.
const moment = 100 * time.Millisecond

// writers is how many MemberAddons of an add-on are written at a time.
const writers = 16

// addonLook is one look at an Addon.
type addonLook struct {
	addons

	addon    *v1alpha1.Addon
	now      time.Time
	members  map[string]*membershipv1alpha1.MemberCluster // by name
	has      map[string]*v1alpha1.MemberAddon             // by name of the member
	strays   []*v1alpha1.MemberAddon                      // of no member, which go
	plan     install.Plan
	problems []health.Problem
	statuses []v1alpha1.PlacementStatus
	rollouts []rolling
	after    time.Duration
	failed   error // what is to be tried again
}

// Reconcile looks at an Addon. What has changed meanwhile is no error.
func (c addons) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	after, err := c.look(ctx, request.Name)
	return c.outcome(request, after, err)
}

// look looks at an Addon: observe, decide, act, report.
func (c addons) look(ctx context.Context, name string) (after time.Duration, err error) {
	addon := &v1alpha1.Addon{}
	switch err := c.cache.Get(ctx, client.ObjectKey{Name: name}, addon); {
	case apierrors.IsNotFound(err):
		return 0, c.orphaned(ctx, name)
	case err != nil:
		return 0, fmt.Errorf("read Addon %s: %w", name, err)
	}
	if addon.DeletionTimestamp == nil && controllerutil.AddFinalizer(addon, v1alpha1.AddonFinalizer) {
		return 0, c.guard(ctx, addon)
	}
	if addon.DeletionTimestamp != nil && controllerutil.ContainsFinalizer(addon, v1alpha1.AddonFinalizer) {
		switch is, wait, err := c.addonRequested(ctx, addon); {
		case err != nil || wait > 0:
			return wait, err
		case !is:
			return 0, c.abandon(ctx, addon)
		}
	}
	l := &addonLook{addons: c, addon: addon, now: c.Clock.Now()}
	for _, step := range []func(context.Context) error{l.observe, l.act, l.roll, l.report, l.release} {
		if err := step(ctx); err != nil {
			return 0, err
		}
	}
	return l.after, l.failed
}

// guard puts the finalizer on an Addon, before there are MemberAddons that must not outlive it.
func (c addons) guard(ctx context.Context, addon *v1alpha1.Addon) error {
	before := addon.DeepCopy()
	controllerutil.RemoveFinalizer(before, v1alpha1.AddonFinalizer)
	if err := c.client.Patch(ctx, addon, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("put the finalizer on Addon %s: %w", addon.Name, err)
	}
	return nil
}

// orphaned has the MemberAddons looked at of an Addon that is not there: they say so.
func (c addons) orphaned(ctx context.Context, name string) error {
	c.book.undecided(name)
	c.configs.Forget(keyOf("", name))
	c.calls.Forget(keyOf("", name))
	c.mu.Lock()
	delete(c.wrote, name)
	c.mu.Unlock()
	list, err := c.memberAddons(ctx, name)
	if err != nil {
		return err
	}
	for i := range list {
		c.book.memberChanged(client.ObjectKeyFromObject(&list[i]))
	}
	return nil
}

func (c *shared) memberAddons(ctx context.Context, addon string) ([]v1alpha1.MemberAddon, error) {
	var list v1alpha1.MemberAddonList
	if err := c.cache.List(ctx, &list, client.MatchingFields{nameIndex: addon}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list MemberAddons of %s: %w", addon, err)
	}
	return list.Items, nil
}

// observe finds out what there is, and decides who is to have the add-on.
func (l *addonLook) observe(ctx context.Context) error {
	var clusters membershipv1alpha1.MemberClusterList
	if err := l.cache.List(ctx, &clusters, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list MemberClusters: %w", err)
	}
	has, err := l.memberAddons(ctx, l.addon.Name)
	if err != nil {
		return err
	}
	o := install.Observed{Strategy: l.addon.Spec.Install, Deleting: l.addon.DeletionTimestamp != nil, MaxRemoving: l.MaxRemoving}
	l.members, l.has = make(map[string]*membershipv1alpha1.MemberCluster, len(clusters.Items)), make(map[string]*v1alpha1.MemberAddon, len(has))
	names := make(map[string]string, len(clusters.Items))
	for i := range clusters.Items {
		m := &clusters.Items[i]
		l.members[m.Name], names[m.Status.Namespace] = m, m.Name
		o.Members = append(o.Members, install.Member{Name: m.Name, Joined: joined(m), Leaving: leaving(m), Reachable: healthy(m)})
	}
	for i := range has {
		m := &has[i]
		name := names[m.Namespace]
		if name == "" {
			if o.Deleting { // that the MemberCluster is missing is no request; the conditions of the MemberAddon say what to do
				l.strays = append(l.strays, m)
			}
			continue
		}
		l.has[name] = m
		o.MemberAddons = append(o.MemberAddons, install.MemberAddon{
			Member: name, InstalledBy: m.Annotations[v1alpha1.InstalledByAnnotation], GoesBy: m.Status.Placement, Deleting: m.DeletionTimestamp != nil,
			Unclaimed: m.Annotations[v1alpha1.AddonUIDAnnotation] != string(l.addon.UID), Earlier: l.earlier(m),
		})
	}
	for _, p := range l.addon.Spec.Install.Placements {
		known, err := l.placement(ctx, p.Namespace, p.Name)
		if err != nil {
			return err
		}
		if known != nil {
			o.Placements = append(o.Placements, *known)
		}
	}
	if errs := l.addon.Spec.Validate(); len(errs) > 0 {
		l.problem(v1alpha1.ReasonInvalid, errs.ToAggregate().Error())
	}
	l.plan = install.Decide(o)
	for _, why := range l.plan.Problems {
		l.problem(v1alpha1.ReasonPlacementNotFound, why)
	}
	if message := keptMessage(l.plan.Decisions); message != "" {
		l.problems = append(l.problems, health.Problem{Reason: v1alpha1.ReasonEarlierAddon, Message: message, Retried: true})
	}
	return nil
}

// maxKeptNames is how many members the message about kept MemberAddons names.
const maxKeptNames = 10

// keptMessage names the members whose MemberAddons are kept although no Placement has chosen them, and the next step. It is
// empty if there are none.
func keptMessage(decisions []install.Decision) string {
	var members []string
	for _, d := range decisions {
		if d.Reason == install.EarlierAddon {
			members = append(members, d.Member)
		}
	}
	if len(members) == 0 {
		return ""
	}
	slices.Sort(members)
	names := strings.Join(members[:min(len(members), maxKeptNames)], ", ")
	if more := len(members) - maxKeptNames; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("MemberAddons of an earlier Addon with this name are kept on members that no Placement has chosen: %s. "+
		"Choose the members with a Placement in spec.install, or delete the MemberAddons", names)
}

// earlier reports whether a MemberAddon was created for an earlier Addon. MemberAddons of earlier releases name no Addon; they
// are of an earlier one if they are older than this one.
func (l *addonLook) earlier(m *v1alpha1.MemberAddon) bool {
	if uid := m.Annotations[v1alpha1.AddonUIDAnnotation]; uid != "" {
		return uid != string(l.addon.UID)
	}
	return m.CreationTimestamp.Before(&l.addon.CreationTimestamp)
}

func (l *addonLook) problem(reason, message string) {
	l.problems = append(l.problems, health.Problem{Reason: reason, Message: message})
}

// act makes, annotates and deletes MemberAddons, and says whose turn it is. One that fails keeps the others neither from it nor from
// what is rolled out.
func (l *addonLook) act(ctx context.Context) error {
	turns, errs := make(map[string]assigned, len(l.plan.Decisions)), make([]error, len(l.plan.Decisions))
	var group errgroup.Group
	group.SetLimit(writers)
	for i, d := range l.plan.Decisions {
		m := l.members[d.Member]
		if d.Action != install.Skip && m.Status.Namespace != "" {
			turns[m.Status.Namespace] = l.assign(&d)
		}
		if l.invalid() && d.Action != install.Delete {
			continue
		}
		switch d.Action {
		case install.Create, install.Annotate, install.Delete:
			group.Go(func() error {
				errs[i] = l.carryOut(ctx, &d)
				return nil
			})
		}
	}
	for _, m := range l.strays {
		if m.DeletionTimestamp == nil {
			group.Go(func() error { return l.delete(ctx, m) })
		}
	}
	l.book.decide(l.addon.Name, turns)
	err := group.Wait()
	l.failed = errors.Join(err, errors.Join(errs...))
	return nil
}

func (l *addonLook) invalid() bool {
	return slices.ContainsFunc(l.problems, func(p health.Problem) bool { return p.Reason == v1alpha1.ReasonInvalid })
}

// assign says what a decision comes to. Who gets nothing new goes by the Placement that it went by until then.
func (l *addonLook) assign(d *install.Decision) assigned {
	keeps, placement := turn.KeepsBy(*d), d.Placement
	if has := l.has[d.Member]; has != nil && keeps != "" {
		placement = firstOf(has.Annotations[v1alpha1.InstalledByAnnotation], has.Status.Placement)
	}
	for i := range l.addon.Spec.Install.Placements {
		p := &l.addon.Spec.Install.Placements[i]
		if install.Key(p.Namespace, p.Name) == placement {
			return assigned{Turn: turn.Turn{Placement: placement, Keeps: keeps}, configs: p.Configs, hosting: p.HostingMember}
		}
	}
	return assigned{Turn: turn.Turn{Keeps: keeps}}
}

func (l *addonLook) carryOut(ctx context.Context, d *install.Decision) error {
	namespace := l.members[d.Member].Status.Namespace
	if d.Action == install.Create {
		if namespace == "" {
			return nil // it joins
		}
		made := &v1alpha1.MemberAddon{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: l.addon.Name,
			Labels:      map[string]string{v1alpha1.AddonLabel: l.addon.Name},
			Annotations: map[string]string{v1alpha1.InstalledByAnnotation: d.Placement, v1alpha1.AddonUIDAnnotation: string(l.addon.UID)},
			Finalizers:  []string{v1alpha1.MemberAddonFinalizer},
		}}
		err := l.client.Create(ctx, made)
		if err != nil && !apierrors.IsAlreadyExists(err) { // which the next look sees
			return fmt.Errorf("make the MemberAddon for member %s: %w", d.Member, err)
		}
		return nil
	}
	has := l.has[d.Member]
	if d.Action == install.Annotate {
		next := has.DeepCopy()
		metav1.SetMetaDataAnnotation(&next.ObjectMeta, v1alpha1.InstalledByAnnotation, d.Placement)
		metav1.SetMetaDataAnnotation(&next.ObjectMeta, v1alpha1.AddonUIDAnnotation, string(l.addon.UID))
		err := l.client.Patch(ctx, next, client.MergeFromWithOptions(has, client.MergeFromWithOptimisticLock{}))
		return wrap(client.IgnoreNotFound(err), "annotate", has)
	}
	if err := l.delete(ctx, has); err != nil {
		return err
	}
	l.tell(l.addon, corev1.EventTypeNormal, string(d.Reason), "The add-on is removed from member %s.", d.Member)
	return nil
}

// delete deletes a MemberAddon. What a person has made theirs meanwhile is another version.
func (l *addonLook) delete(ctx context.Context, has *v1alpha1.MemberAddon) error {
	err := l.client.Delete(ctx, &v1alpha1.MemberAddon{ObjectMeta: metav1.ObjectMeta{Namespace: has.Namespace, Name: has.Name}},
		client.Preconditions{UID: &has.UID, ResourceVersion: &has.ResourceVersion})
	return wrap(client.IgnoreNotFound(err), "delete", has)
}

func wrap(err error, what string, object client.Object) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", what, client.ObjectKeyFromObject(object), err)
}

// release permits the members of the recorded rollouts to be updated, and removes the finalizer of an Addon without
// MemberAddons.
func (l *addonLook) release(ctx context.Context) error {
	for i := range l.rollouts {
		l.book.roll(l.addon.Name, &l.rollouts[i], l.now)
	}
	if l.addon.DeletionTimestamp == nil || !controllerutil.ContainsFinalizer(l.addon, v1alpha1.AddonFinalizer) || len(l.has) > 0 {
		return nil
	}
	var left v1alpha1.MemberAddonList // those that the cache does not show yet
	if err := l.live.List(ctx, &left, client.MatchingFields{"metadata.name": l.addon.Name}); err != nil {
		return fmt.Errorf("list MemberAddons of %s: %w", l.addon.Name, err)
	}
	if len(left.Items) > 0 {
		l.after = time.Second
		return nil
	}
	next := l.addon.DeepCopy()
	controllerutil.RemoveFinalizer(next, v1alpha1.AddonFinalizer)
	err := l.client.Patch(ctx, next, client.MergeFromWithOptions(l.addon, client.MergeFromWithOptimisticLock{}))
	return wrap(client.IgnoreNotFound(err), "take the finalizer off Addon", l.addon)
}

func joined(m *membershipv1alpha1.MemberCluster) bool {
	return meta.IsStatusConditionTrue(m.Status.Conditions, membershipv1alpha1.ConditionJoined)
}

func healthy(m *membershipv1alpha1.MemberCluster) bool {
	return meta.IsStatusConditionTrue(m.Status.Conditions, membershipv1alpha1.ConditionHealthy)
}

func leaving(m *membershipv1alpha1.MemberCluster) bool {
	return memberleave.Requested(m)
}

// keyOf is the member's add-on as the book has it.
func keyOf(namespace, addon string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: addon}
}
