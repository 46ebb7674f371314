package addon

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/muster-sdk/muster/addon/internal/install"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	placementv1alpha1 "github.com/muster-sdk/muster/placement/v1alpha1"
)

// workChanged enqueues the MemberAddon of a changed Work.
func (c *shared) workChanged(before, after any) {
	now, is := after.(*record)
	if !is {
		return
	}
	if was, is := before.(*record); is {
		if was.ResourceVersion == now.ResourceVersion {
			return
		}
		if owner := was.owner(); owner.Name != "" && owner != now.owner() {
			c.enqueueMember(owner)
		}
	}
	if owner := now.owner(); owner.Name != "" {
		c.enqueueMember(owner)
	}
}

// userChanges passes updates of fields that users write. Updates of the status, which the controllers write, are
// dropped.
func userChanges[T client.Object]() predicate.TypedPredicate[T] {
	return predicate.TypedFuncs[T]{UpdateFunc: func(e event.TypedUpdateEvent[T]) bool {
		return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() || e.ObjectOld.GetUID() != e.ObjectNew.GetUID() ||
			(e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil) ||
			!reflect.DeepEqual(e.ObjectOld.GetFinalizers(), e.ObjectNew.GetFinalizers()) ||
			!reflect.DeepEqual(e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations())
	}}
}

// decided reports whether an update can change the decisions of a Placement.
func decided(e event.TypedUpdateEvent[*placementv1alpha1.Placement]) bool {
	return e.ObjectOld.Generation != e.ObjectNew.Generation || e.ObjectOld.UID != e.ObjectNew.UID ||
		e.ObjectOld.Status.ObservedGeneration != e.ObjectNew.Status.ObservedGeneration ||
		e.ObjectOld.Status.DecidedGeneration != e.ObjectNew.Status.DecidedGeneration ||
		e.ObjectOld.Status.SelectedClusters != e.ObjectNew.Status.SelectedClusters
}

// memberChange passes the changes of MemberClusters for which a function returns true.
func memberChange(
	matters func(a, b *membershipv1alpha1.MemberCluster) bool,
) predicate.TypedPredicate[*membershipv1alpha1.MemberCluster] {
	return predicate.TypedFuncs[*membershipv1alpha1.MemberCluster]{UpdateFunc: func(
		e event.TypedUpdateEvent[*membershipv1alpha1.MemberCluster]) bool {
		return matters(e.ObjectOld, e.ObjectNew)
	}}
}

// affectsSelection reports whether a change of a member can change which add-ons it has.
func affectsSelection(a, b *membershipv1alpha1.MemberCluster) bool {
	forced := func(m *membershipv1alpha1.MemberCluster) bool { return m.Status.Leave != nil && m.Status.Leave.Forced }
	return a.UID != b.UID || observedByHub(a) != observedByHub(b) || joined(a) != joined(b) || healthy(a) != healthy(b) ||
		leaving(a) != leaving(b) || forced(a) != forced(b) ||
		a.Status.Namespace != b.Status.Namespace || !maps.Equal(a.Labels, b.Labels)
}

// affectsManifests reports whether a change of a member can change the manifests of its add-ons; see [Input].Member.
// Changes with each heartbeat cannot.
func affectsManifests(a, b *membershipv1alpha1.MemberCluster) bool {
	return affectsSelection(a, b) || a.Spec.Claim != b.Spec.Claim || a.Status.Version != b.Status.Version ||
		!maps.Equal(a.Annotations, b.Annotations) ||
		!slices.Equal(a.Status.Properties, b.Status.Properties) || !equality.Semantic.DeepEqual(a.Status.APIs, b.Status.APIs)
}

// placementOf returns the Placement to which a PlacementDecision belongs. Empty: none.
func placementOf(d *placementv1alpha1.PlacementDecision) (namespace, name string) {
	owner := metav1.GetControllerOfNoCopy(d)
	switch {
	case owner == nil:
		return "", ""
	case owner.Kind == "ClusterPlacement" && d.Namespace == placementv1alpha1.ClusterScopeNamespace:
		return "", owner.Name
	default:
		return d.Namespace, owner.Name
	}
}

// addonsWith returns the Addons that a Placement installs.
func (c *shared) addonsWith(ctx context.Context, namespace, name string) (found []reconcile.Request) {
	for _, addon := range c.addonNames(ctx, client.MatchingFields{placementIndex: install.Key(namespace, name)}) {
		found = append(found, reconcile.Request{NamespacedName: client.ObjectKey{Name: addon}})
	}
	return found
}

func (c *shared) addonNames(ctx context.Context, options ...client.ListOption) (names []string) {
	var list v1alpha1.AddonList
	if err := c.cache.List(ctx, &list, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		c.log.Error(err, "Failed to list Addons")
	}
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names
}

// memberEvents enqueues the Addons that a member affects. Events of many members, such as at the start or in an outage,
// are collected, because a reconcile reads all members.
func (c *shared) memberEvents() handler.TypedEventHandler[*membershipv1alpha1.MemberCluster, reconcile.Request] {
	type member = *membershipv1alpha1.MemberCluster
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	look := func(ctx context.Context, before, after member) {
		for _, name := range c.addonsAbout(ctx, before, after) {
			c.enqueueAddon(name)
		}
	}
	return handler.TypedFuncs[member, reconcile.Request]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[member], _ queue) { look(ctx, nil, e.Object) },
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[member], _ queue) {
			look(ctx, e.ObjectOld, e.ObjectNew)
		},
		DeleteFunc: func(ctx context.Context, e event.TypedDeleteEvent[member], _ queue) { look(ctx, e.Object, nil) },
	}
}

// addonsAbout returns the Addons that a change of a member affects: those on the member, and those whose Placement
// selects it. The addition or deletion of a member, its first reconcile and the assignment of its namespace affect
// all Addons, because MemberAddons in namespaces of no member are reported when all members are known.
func (c *shared) addonsAbout(ctx context.Context, before, after *membershipv1alpha1.MemberCluster) (names []string) {
	if before == nil || after == nil || before.UID != after.UID || before.Status.Namespace != after.Status.Namespace ||
		observedByHub(before) != observedByHub(after) {
		return c.addonNames(ctx)
	}
	if namespace := after.Status.Namespace; namespace != "" {
		var list v1alpha1.MemberAddonList
		if err := c.cache.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
			c.log.Error(err, "Failed to list MemberAddons", "member", after.Name)
		}
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
	}
	var list placementv1alpha1.PlacementDecisionList
	if err := c.cache.List(ctx, &list, client.MatchingFields{clusterIndex: after.Name},
		client.UnsafeDisableDeepCopy); err != nil {
		c.log.Error(err, "Failed to list PlacementDecisions", "member", after.Name)
	}
	for i := range list.Items {
		namespace, name := placementOf(&list.Items[i])
		names = append(names, c.addonNames(ctx, client.MatchingFields{placementIndex: install.Key(namespace, name)})...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func namespaceOf(o client.Object) []string {
	if member, is := o.(*membershipv1alpha1.MemberCluster); is && member.Status.Namespace != "" {
		return []string{member.Status.Namespace}
	}
	return nil
}

func placementsOf(o client.Object) (keys []string) {
	if addon, is := o.(*v1alpha1.Addon); is {
		for _, p := range addon.Spec.Install.Placements {
			keys = append(keys, install.Key(p.Namespace, p.Name))
		}
	}
	return keys
}

func clustersOf(o client.Object) (names []string) {
	if slice, is := o.(*placementv1alpha1.PlacementDecision); is {
		for _, d := range slice.Decisions {
			names = append(names, d.ClusterName)
		}
	}
	return names
}

// membersOf returns the MemberAddons of an Addon.
func (c *shared) membersOf(ctx context.Context, addon *v1alpha1.Addon) (found []reconcile.Request) {
	list, err := c.memberAddons(ctx, addon.Name)
	if err != nil {
		c.log.Error(err, "Failed to list MemberAddons", "addon", addon.Name)
	}
	for i := range list {
		found = append(found, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list[i])})
	}
	return found
}

// addonsOn returns the MemberAddons of a member, and those whose agents it can host.
func (c *shared) addonsOn(ctx context.Context, member *membershipv1alpha1.MemberCluster) (found []reconcile.Request) {
	if member.Status.Namespace == "" {
		return nil
	}
	var list v1alpha1.MemberAddonList
	if err := c.cache.List(ctx, &list, client.InNamespace(member.Status.Namespace),
		client.UnsafeDisableDeepCopy); err != nil {
		c.log.Error(err, "Failed to list MemberAddons", "member", member.Name)
		return nil
	}
	for i := range list.Items {
		found = append(found, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return append(found, c.addonsHostedBy(ctx, member)...)
}

func (c *shared) enqueueAddon(name string) {
	c.queues.addons.Add(reconcile.Request{NamespacedName: client.ObjectKey{Name: name}}, 0, batchPeriod)
}

func (c *shared) enqueueMember(key types.NamespacedName) {
	c.queues.members.Add(reconcile.Request{NamespacedName: key}, 0, 0)
}

// configsChanged enqueues the users of changed configurations.
func (c *shared) configsChanged(user types.NamespacedName) {
	if user.Namespace == "" {
		c.enqueueAddon(user.Name)
		return
	}
	c.enqueueMember(user)
}

// informers are the informers that run in addition to the manager's cache.
type informers struct {
	*shared
	works, leases toolscache.SharedIndexInformer
}

// Start runs the informers until the context ends.
func (i informers) Start(ctx context.Context) error {
	var running sync.WaitGroup
	running.Go(func() { i.works.RunWithContext(ctx) })
	running.Go(func() { i.leases.RunWithContext(ctx) })
	running.Wait()
	return nil
}

// synced is a source that delays reconciles until its informers are synced. Otherwise, objects that were not observed
// yet would be treated as missing.
type synced struct {
	informers []toolscache.InformerSynced
	tenants   <-chan struct{}
}

// Start does nothing: [informers] runs the informers.
func (synced) Start(context.Context, workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	return nil
}

// WaitForSync waits until all informers are synced, and the bindings are observed.
func (s synced) WaitForSync(ctx context.Context) error {
	if !toolscache.WaitForCacheSync(ctx.Done(), s.informers...) {
		return fmt.Errorf("list Works and Leases: %w", context.Cause(ctx))
	}
	select {
	case <-s.tenants:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for ClusterSetBindings: %w", context.Cause(ctx))
	}
}
