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
	"github.com/muster-sdk/muster/addon/internal/permit"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/memberleave"
	"github.com/muster-sdk/muster/internal/precondition"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
)

// addons is the controller of Addons: it decides which members get an add-on, and the order of rollouts.
type addons struct{ *shared }

// batchPeriod is how long events of the members of an add-on are collected.
const batchPeriod = 100 * time.Millisecond

// writers is the number of MemberAddons of an add-on that are written concurrently.
const writers = 16

// addonReconciliation is one reconcile of an Addon.
type addonReconciliation struct {
	addons

	addon    *v1alpha1.Addon
	now      time.Time
	members  map[string]*membershipv1alpha1.MemberCluster // by name
	existing map[string]*v1alpha1.MemberAddon             // by name of the member
	orphans  []*v1alpha1.MemberAddon                      // of no member
	plan     install.Plan
	problems []health.Problem
	statuses []v1alpha1.PlacementStatus
	rollouts []rolling
	after    time.Duration
	failed   error // an error that is retried
}

// Reconcile reconciles an Addon. A conflict with another client is not an error.
func (c addons) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	after, err := c.reconcile(ctx, request.Name)
	return c.reconcileResult(request, after, err)
}

// reconcile observes, decides, acts and reports.
func (c addons) reconcile(ctx context.Context, name string) (after time.Duration, err error) {
	addon := &v1alpha1.Addon{}
	switch err := c.cache.Get(ctx, client.ObjectKey{Name: name}, addon); {
	case apierrors.IsNotFound(err):
		return 0, c.enqueueMembersOf(ctx, name)
	case err != nil:
		return 0, fmt.Errorf("read Addon %s: %w", name, err)
	}
	if addon.DeletionTimestamp == nil && controllerutil.AddFinalizer(addon, v1alpha1.AddonFinalizer) {
		return 0, c.addFinalizer(ctx, addon)
	}
	if addon.DeletionTimestamp != nil && controllerutil.ContainsFinalizer(addon, v1alpha1.AddonFinalizer) {
		switch is, wait, err := c.addonRequested(ctx, addon); {
		case err != nil || wait > 0:
			return wait, err
		case !is:
			return 0, c.keepMemberAddons(ctx, addon)
		}
	}
	l := &addonReconciliation{addons: c, addon: addon, now: c.Clock.Now()}
	for _, step := range []func(context.Context) error{l.observe, l.act, l.roll, l.report, l.release} {
		if err := step(ctx); err != nil {
			return 0, err
		}
	}
	return l.after, l.failed
}

// addFinalizer adds the finalizer to an Addon before its first MemberAddon exists.
func (c addons) addFinalizer(ctx context.Context, addon *v1alpha1.Addon) error {
	before := addon.DeepCopy()
	controllerutil.RemoveFinalizer(before, v1alpha1.AddonFinalizer)
	if err := c.client.Patch(ctx, addon,
		client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("add the finalizer to Addon %s: %w", addon.Name, err)
	}
	return nil
}

// enqueueMembersOf enqueues the MemberAddons of an Addon that does not exist, so that they report this.
func (c addons) enqueueMembersOf(ctx context.Context, name string) error {
	c.state.removePermits(name)
	c.configs.Forget(keyOf("", name))
	c.calls.Forget(keyOf("", name))
	c.cached.mu.Lock()
	delete(c.cached.wrote, name)
	c.cached.mu.Unlock()
	list, err := c.memberAddons(ctx, name)
	if err != nil {
		return err
	}
	for i := range list {
		c.state.memberChanged(client.ObjectKeyFromObject(&list[i]))
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

// observe reads the state and decides which members have the add-on.
func (l *addonReconciliation) observe(ctx context.Context) error {
	var clusters membershipv1alpha1.MemberClusterList
	if err := l.cache.List(ctx, &clusters, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list MemberClusters: %w", err)
	}
	has, err := l.memberAddons(ctx, l.addon.Name)
	if err != nil {
		return err
	}
	o := install.Observed{Strategy: l.addon.Spec.Install, Deleting: l.addon.DeletionTimestamp != nil,
		MaxRemoving: l.MaxRemoving}
	l.members, l.existing = make(map[string]*membershipv1alpha1.MemberCluster, len(clusters.Items)),
		make(map[string]*v1alpha1.MemberAddon, len(has))
	names := make(map[string]string, len(clusters.Items))
	for i := range clusters.Items {
		m := &clusters.Items[i]
		l.members[m.Name], names[m.Status.Namespace] = m, m.Name
		o.Members = append(o.Members, install.Member{Name: m.Name, Joined: joined(m), Leaving: leaving(m),
			Reachable: healthy(m)})
	}
	for i := range has {
		m := &has[i]
		name := names[m.Namespace]
		if name == "" {
			if o.Deleting { // a missing MemberCluster is not a request; the conditions of the MemberAddon contain the next step
				l.orphans = append(l.orphans, m)
			}
			continue
		}
		l.existing[name] = m
		o.MemberAddons = append(o.MemberAddons, install.MemberAddon{
			Member: name, InstalledBy: m.Annotations[v1alpha1.InstalledByAnnotation], GoesBy: m.Status.Placement,
			Deleting:  m.DeletionTimestamp != nil,
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
	if message := notPermittedMessage(l.plan.Decisions); message != "" {
		l.problem(v1alpha1.ReasonNotAllowed, message)
	}
	if message := keptMessage(l.plan.Decisions); message != "" {
		l.problems = append(l.problems, health.Problem{Reason: v1alpha1.ReasonEarlierAddon, Message: message, Retried: true})
	}
	return nil
}

// maxKeptNames is the maximum number of members in a message.
const maxKeptNames = 10

// keptMessage names the members whose MemberAddons are kept although no Placement selects them, and the next step.
// Empty: there are none.
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
	return fmt.Sprintf(
		"MemberAddons of an earlier Addon with this name are kept on members that no Placement has selected: %s. "+
			"Select the members with a Placement in spec.install, or delete the MemberAddons", firstNames(members))
}

// firstNames returns the first of some names.
func firstNames(members []string) string {
	slices.Sort(members)
	names := strings.Join(members[:min(len(members), maxKeptNames)], ", ")
	if more := len(members) - maxKeptNames; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	return names
}

// earlier reports whether a MemberAddon was created for an earlier Addon with this name. MemberAddons of earlier
// releases contain no UID; they belong to an earlier Addon if they are older than this one.
func (l *addonReconciliation) earlier(m *v1alpha1.MemberAddon) bool {
	if uid := m.Annotations[v1alpha1.AddonUIDAnnotation]; uid != "" {
		return uid != string(l.addon.UID)
	}
	return m.CreationTimestamp.Before(&l.addon.CreationTimestamp)
}

func (l *addonReconciliation) problem(reason, message string) {
	l.problems = append(l.problems, health.Problem{Reason: reason, Message: message})
}

// act creates, annotates and deletes MemberAddons, and sets the rollout permits. A failed write does not stop the
// others or the rollouts.
func (l *addonReconciliation) act(ctx context.Context) error {
	permits, errs := make(map[string]memberPermit, len(l.plan.Decisions)), make([]error, len(l.plan.Decisions))
	var group errgroup.Group
	group.SetLimit(writers)
	for i, d := range l.plan.Decisions {
		m := l.members[d.Member]
		if d.Action != install.Skip && m.Status.Namespace != "" {
			permits[m.Status.Namespace] = l.assign(&d)
		}
		if l.invalid() && d.Action != install.Delete {
			continue
		}
		switch d.Action {
		case install.Create, install.Annotate, install.Delete:
			group.Go(func() error {
				errs[i] = l.execute(ctx, &d)
				return nil
			})
		}
	}
	for _, m := range l.orphans {
		if m.DeletionTimestamp == nil {
			group.Go(func() error { return l.delete(ctx, m) })
		}
	}
	l.state.setPermits(l.addon.Name, permits)
	err := group.Wait()
	l.failed = errors.Join(err, errors.Join(errs...))
	return nil
}

func (l *addonReconciliation) invalid() bool {
	return slices.ContainsFunc(l.problems, func(p health.Problem) bool { return p.Reason == v1alpha1.ReasonInvalid })
}

// assign returns the permit for a decision. A member that gets no new revision keeps its former Placement.
func (l *addonReconciliation) assign(d *install.Decision) memberPermit {
	blocked, placement := permit.BlockedBy(*d), d.Placement
	if has := l.existing[d.Member]; has != nil && blocked != "" {
		placement = firstOf(has.Annotations[v1alpha1.InstalledByAnnotation], has.Status.Placement)
	}
	for i := range l.addon.Spec.Install.Placements {
		p := &l.addon.Spec.Install.Placements[i]
		if install.Key(p.Namespace, p.Name) == placement {
			return memberPermit{Permit: permit.Permit{Placement: placement, BlockedBy: blocked}, configs: p.Configs,
				hosting: p.HostingMember}
		}
	}
	return memberPermit{Permit: permit.Permit{BlockedBy: blocked}}
}

func (l *addonReconciliation) execute(ctx context.Context, d *install.Decision) error {
	namespace := l.members[d.Member].Status.Namespace
	if d.Action == install.Create {
		if namespace == "" {
			return nil // the member joins
		}
		made := &v1alpha1.MemberAddon{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: l.addon.Name,
			Labels: map[string]string{v1alpha1.AddonLabel: l.addon.Name},
			Annotations: map[string]string{v1alpha1.InstalledByAnnotation: d.Placement,
				v1alpha1.AddonUIDAnnotation: string(l.addon.UID)},
			Finalizers: []string{v1alpha1.MemberAddonFinalizer},
		}}
		err := l.client.Create(ctx, made)
		if err != nil && !apierrors.IsAlreadyExists(err) { // the next reconcile observes it
			return fmt.Errorf("create the MemberAddon for member %s: %w", d.Member, err)
		}
		return nil
	}
	has := l.existing[d.Member]
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
	// +event:object=Addon
	// +event:reason=the reason of the removal
	l.event(l.addon, corev1.EventTypeNormal, string(d.Reason), "The add-on is removed from member %s.", d.Member)
	return nil
}

// delete deletes a MemberAddon. A MemberAddon that a user changed meanwhile has another resourceVersion and is not
// deleted.
func (l *addonReconciliation) delete(ctx context.Context, has *v1alpha1.MemberAddon) error {
	err := l.client.Delete(ctx,
		&v1alpha1.MemberAddon{ObjectMeta: metav1.ObjectMeta{Namespace: has.Namespace, Name: has.Name}},
		precondition.Unchanged(has))
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
func (l *addonReconciliation) release(ctx context.Context) error {
	for i := range l.rollouts {
		l.state.roll(l.addon.Name, &l.rollouts[i], l.now)
	}
	if l.addon.DeletionTimestamp == nil || !controllerutil.ContainsFinalizer(l.addon, v1alpha1.AddonFinalizer) ||
		len(l.existing) > 0 {
		return nil
	}
	var left v1alpha1.MemberAddonList // also those that the cache does not contain yet
	if err := l.live.List(ctx, &left, client.MatchingFields{"metadata.name": l.addon.Name}); err != nil {
		return fmt.Errorf("list MemberAddons of %s: %w", l.addon.Name, err)
	}
	if len(left.Items) > 0 {
		l.after = time.Second
		return nil
	}
	next := l.addon.DeepCopy()
	controllerutil.RemoveFinalizer(next, v1alpha1.AddonFinalizer)
	err := l.client.Patch(ctx, next, precondition.Patch(l.addon))
	return wrap(client.IgnoreNotFound(err), "remove the finalizer of Addon", l.addon)
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

// keyOf returns the key of a member's add-on in the shared state.
func keyOf(namespace, addon string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: addon}
}
