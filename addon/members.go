package addon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/muster-sdk/muster/addon/health"
	"github.com/muster-sdk/muster/addon/internal/permit"
	"github.com/muster-sdk/muster/addon/internal/removal"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
)

// members is the controller of MemberAddons: it delivers an add-on to a member.
type members struct{ *shared }

// memory is state of a MemberAddon that is cached between reconciles. The workqueue never processes a key
// concurrently, so it needs no lock. All of it can be rebuilt from the API.
type memory struct {
	uid      types.UID
	assigned assignment
	written  map[types.NamespacedName]written
	removing

	lastWritten  *v1alpha1.MemberAddon // after the last write
	staleVersion string                // the former resourceVersion, which the cache may still contain

	awaitedRevision string // the desired revision, and since when
	awaitedSince    time.Time

	busySince time.Time // since when its functions are busy; zero: not busy
}

func (c *shared) memory(m *v1alpha1.MemberAddon) *memory {
	c.cached.mu.Lock()
	defer c.cached.mu.Unlock()
	key := client.ObjectKeyFromObject(m)
	if c.cached.memories[key] == nil || c.cached.memories[key].uid != m.UID {
		c.cached.memories[key] = &memory{uid: m.UID, written: map[types.NamespacedName]written{}}
	}
	return c.cached.memories[key]
}

// memberReconciliation is one reconcile of a MemberAddon.
type memberReconciliation struct {
	members
	*memory

	key      types.NamespacedName
	object   *v1alpha1.MemberAddon
	now      time.Time
	observed memberObserved
	desired  memberDesired
	access   memberAccess
	result   memberResult
}

// memberObserved is the state that a reconcile of a MemberAddon observes first.
type memberObserved struct {
	addon  *v1alpha1.Addon                   // nil: there is none
	member *membershipv1alpha1.MemberCluster // nil: the namespace belongs to no member
	permit memberPermit
	works  []*record
	hooks  []*record
}

// memberDesired is the desired content of a MemberAddon, and the place of the agent.
type memberDesired struct {
	content          *content
	rolloutRevision  string                            // the revision of the rollout, without overrides of the member
	hosting          *v1alpha1.HostingStatus           // the desired place of the agent; nil: the member
	host             *membershipv1alpha1.MemberCluster // the hosting member; nil: none
	overridesInvalid bool                              // only overrides of the member are invalid
}

// memberAccess is the registration of the agent with the hub, and the objects that grant its access.
type memberAccess struct {
	present    removal.Presence
	registered bool                       // the registration was observed
	manifest   *unstructured.Unstructured // the manifest of the credential; nil: none
	delivered  []string                   // the namespaces whose Works are up to date, or will be after this reconcile
}

// memberResult is what a reconcile of a MemberAddon reports.
type memberResult struct {
	status v1alpha1.MemberAddonStatus
	health health.Observed
	busy   bool // functions of the agent are busy with other members
	after  time.Duration
	failed error // an error that is retried
}

// Reconcile reconciles a MemberAddon. A conflict with another client is not an error.
func (c members) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	after, err := c.reconcile(ctx, request.NamespacedName)
	return c.reconcileResult(request, after, err)
}

// reconcile observes, decides, acts and reports.
func (c members) reconcile(ctx context.Context, key types.NamespacedName) (after time.Duration, err error) {
	object := &v1alpha1.MemberAddon{}
	switch err := c.cache.Get(ctx, key, object); {
	case apierrors.IsNotFound(err):
		c.dropState(key)
		// Objects outside of the namespace are removed by no other controller.
		_, err := c.revoke(ctx, key.Name, key.Namespace)
		return 0, errors.Join(c.deleteHostedWorks(ctx, key), err)
	case err != nil:
		return 0, fmt.Errorf("read MemberAddon %s: %w", key, err)
	}
	l := &memberReconciliation{members: c, memory: c.memory(object), key: key, object: object, now: c.Clock.Now()}
	if object.ResourceVersion == l.staleVersion {
		l.object = l.lastWritten.DeepCopy()
		object = l.object
	}
	if err := l.observe(ctx); err != nil {
		return 0, err
	}
	if object.DeletionTimestamp != nil {
		return l.remove(ctx)
	}
	var known bool
	if l.observed.permit, known = c.state.permit(l.key); !known && l.observed.addon != nil && l.observed.member != nil {
		return 0, nil // the next decision enqueues the MemberAddon
	}
	if controllerutil.AddFinalizer(object, v1alpha1.MemberAddonFinalizer) {
		return 0, l.addFinalizer(ctx)
	}
	if err := l.decide(ctx); err != nil {
		return 0, err
	}
	if l.waitsForCalls() {
		return l.result.after, nil
	}
	if err := l.report(ctx); err != nil {
		return 0, err
	}
	return l.result.after, l.result.failed
}

// waitsForCalls reports whether the reconcile must wait because functions of the add-on are busy. It returns false
// after [Options].CallTimeout, so that a condition reports it. The end of a call enqueues the waiting objects.
func (l *memberReconciliation) waitsForCalls() bool {
	switch {
	case !l.result.busy:
		l.busySince = time.Time{}
		return false
	case l.busySince.IsZero():
		l.busySince = l.now
	}
	if left := l.CallTimeout - l.now.Sub(l.busySince); left > 0 {
		l.requeueAfter(left)
		return true
	}
	l.requeueAfter(pollInterval)
	return false
}

func (c members) dropState(key types.NamespacedName) {
	c.configs.Forget(key)
	c.calls.Forget(key)
	c.cached.mu.Lock()
	delete(c.cached.memories, key)
	c.cached.mu.Unlock()
	c.state.removeMember(key)
}

// addFinalizer adds the finalizer to a MemberAddon that a user created, before there are Works that must not outlive
// it.
func (l *memberReconciliation) addFinalizer(ctx context.Context) error {
	before := l.object.DeepCopy()
	controllerutil.RemoveFinalizer(before, v1alpha1.MemberAddonFinalizer)
	metav1.SetMetaDataLabel(&l.object.ObjectMeta, v1alpha1.AddonLabel, l.key.Name)
	err := l.client.Patch(ctx, l.object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	return wrap(err, "add the finalizer to MemberAddon", l.object)
}

// observe reads the state.
func (l *memberReconciliation) observe(ctx context.Context) error {
	addon := &v1alpha1.Addon{}
	err := l.cache.Get(ctx, client.ObjectKey{Name: l.key.Name}, addon)
	switch {
	case err == nil:
		l.observed.addon = addon
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("read Addon %s: %w", l.key.Name, err)
	}
	if l.observed.member, err = l.memberIn(ctx, l.key.Namespace); err != nil {
		return err
	}
	l.observed.works, l.observed.hooks, err = l.works(l.key)
	if err != nil {
		return err
	}
	l.result.status = *l.object.Status.DeepCopy()
	l.result.status.ObservedGeneration = l.object.Generation
	if l.assigned.revision == "" {
		l.assigned = assignmentOf(l.observed.works, &l.result.status)
	}
	return nil
}

// assignmentOf returns the assigned revision of a member according to its Works, or to its status if it has no Works.
func assignmentOf(works []*record, status *v1alpha1.MemberAddonStatus) assignment {
	last := assignment{revision: status.AppliedRevision}
	if status.RevisionSince != nil {
		last.since = status.RevisionSince.Time
	}
	for _, r := range works {
		if r.revision != "" && !r.since.Before(last.since) {
			last = assignment{r.revision, r.since}
		}
	}
	return last
}

// memberIn returns the member of a namespace. Nil: the namespace belongs to no member.
func (c *shared) memberIn(ctx context.Context, namespace string) (*membershipv1alpha1.MemberCluster, error) {
	var found membershipv1alpha1.MemberClusterList
	if err := c.cache.List(ctx, &found, client.MatchingFields{namespaceIndex: namespace}); err != nil {
		return nil, fmt.Errorf("find the member of namespace %s: %w", namespace, err)
	}
	if len(found.Items) == 0 {
		return nil, nil
	}
	return &found.Items[0], nil
}

// decide computes the desired content, and delivers it if the rollout permits it.
func (l *memberReconciliation) decide(ctx context.Context) error {
	l.result.health = health.Observed{
		Generation: l.object.Generation, Before: l.object.Status.Conditions, Now: l.now,
		Reachable: l.observed.member != nil &&
			healthy(l.observed.member),
	}
	l.result.health.Works = l.workHealth()
	switch {
	case l.observed.member == nil:
		l.problem(v1alpha1.ReasonUnsupported, fmt.Sprintf(
			"Namespace %s does not belong to a member: delete the MemberAddon, or create it in the namespace of a member",
			l.key.Namespace))
	case l.observed.addon == nil:
		l.problem(v1alpha1.ReasonNoAgent, fmt.Sprintf(
			"Addon %s does not exist: create the Addon, or delete the MemberAddon", l.key.Name))
	default:
		if errs := l.object.Spec.Validate(); len(errs) > 0 {
			l.problem(v1alpha1.ReasonConfigInvalid, errs.ToAggregate().Error())
			l.desired.overridesInvalid = true
			break
		}
		if err := l.configure(ctx); err != nil {
			return err
		}
	}
	l.result.health.Current = true // assumed, unless it is updated: the assigned manifests are not known any more
	if len(l.result.health.Problems) == 0 && l.permitted() {
		l.act(ctx)
	}
	l.keepAccess(ctx)
	if l.desired.content != nil && l.assigned.revision != "" {
		l.checkHealth(ctx) // also for an earlier assigned revision
	}
	l.result.health.Revision, l.result.health.Since = l.assigned.revision, l.assigned.since
	return nil
}

func (l *memberReconciliation) problem(reason, message string) {
	l.result.health.Problems = append(l.result.health.Problems, health.Problem{Reason: reason, Message: message})
}

// configure computes the content for the member, and the one without configurations of the member.
func (l *memberReconciliation) configure(ctx context.Context) error {
	l.result.health.Check = l.observed.addon.Spec.Health
	hosting := firstOf(l.object.Spec.HostingMember, l.observed.permit.hosting)
	of := contentOf{
		placement: l.observed.permit.configs, member: l.object, installNamespace: l.object.Spec.InstallNamespace,
		hosting: hosting,
		last:    l.object.Status.Configs,
	}
	all := []contentOf{of}
	if len(l.object.Spec.Configs) > 0 || of.installNamespace != "" || hosting != l.observed.permit.hosting {
		all = append(all, contentOf{placement: l.observed.permit.configs, hosting: l.observed.permit.hosting})
	}
	found, err := l.contents(ctx, l.key, l.observed.addon, all...)
	if err != nil {
		return err
	}
	plain := &found[len(found)-1]
	l.desired.content, l.desired.rolloutRevision, l.desired.overridesInvalid = &found[0], plain.revision,
		len(found[0].problems) > 0 && len(plain.problems) == 0
	l.result.health.Problems = append(l.result.health.Problems, l.desired.content.problems...)
	l.await(l.desired.content)
	l.result.health.Desired, l.result.health.Hold = l.desired.content.revision, l.observed.permit.Hold
	l.result.status.InstallNamespace, l.result.status.Placement = l.desired.content.installNamespace,
		l.observed.permit.Placement
	l.result.status.Configs, l.result.status.DesiredRevision = l.desired.content.configs, l.desired.content.revision
	l.result.status.SupportedConfigs = supportedConfigs(l.observed.addon)
	return l.locate(ctx, hosting)
}

// supportedConfigs returns the kinds of configuration that an add-on supports. An Addon lists each of them once.
func supportedConfigs(addon *v1alpha1.Addon) (kinds []metav1.GroupResource) {
	for i := range addon.Spec.Configs {
		kinds = append(kinds, metav1.GroupResource{Group: addon.Spec.Configs[i].Group,
			Resource: addon.Spec.Configs[i].Resource})
	}
	return kinds
}

// permitted reports whether the member may be updated to the desired revision, and records the reason if not.
func (l *memberReconciliation) permitted() bool {
	v := permit.Next(permit.Observed{
		Permit: l.observed.permit.Permit, Desired: l.desired.content.revision, Of: l.desired.rolloutRevision,
		Assigned: l.assigned.revision,
		Before:   &l.object.Status, Joined: joined(l.observed.member), Leaving: leaving(l.observed.member),
	})
	l.result.health.Hold = v.Hold
	if v.Keep {
		l.result.health.Desired, l.result.status.DesiredRevision = l.assigned.revision, l.assigned.revision
		l.result.status.Configs, l.result.status.InstallNamespace, l.result.status.Placement = l.object.Status.Configs,
			l.object.Status.InstallNamespace, l.object.Status.Placement
	}
	return v.Update
}

func (l *memberReconciliation) requeueAfter(after time.Duration) {
	if after > 0 && (l.result.after == 0 || after < l.result.after) {
		l.result.after = after
	}
}

// report writes the status, and informs the controller of Addons.
func (l *memberReconciliation) report(ctx context.Context) error {
	if l.observed.addon != nil && l.observed.addon.Spec.Health.Type == v1alpha1.HealthLease {
		l.result.health.Renewed = l.leases.renewed(l.key)
	}
	assessed := health.Assess(l.result.health)
	l.requeueAfter(assessed.After)
	l.result.status.Conditions, l.result.status.Message = assessed.Conditions, assessed.Message
	before := l.object
	var failed error
	if !equality.Semantic.DeepEqual(&l.result.status, &before.Status) && !l.deferred() {
		next := before.DeepCopy()
		next.Status = l.result.status
		err := l.client.Status().Patch(ctx, next, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		switch failed = wrap(client.IgnoreNotFound(err), "write the status of MemberAddon", before); {
		case err == nil:
			l.lastWritten, l.staleVersion, l.object = next.DeepCopy(), before.ResourceVersion, next
			l.recordTransitions(next, before.Status.Conditions, next.Status.Conditions)
			l.metrics.observeConditions(next.Name, before.Status.Conditions, next.Status.Conditions)
		case apierrors.IsNotFound(err), apierrors.IsConflict(err): // the object changed meanwhile
			return failed
		}
	}
	reported := *l.object
	reported.Status = l.result.status // also if it could not be written: rollouts do not wait for that
	s := memberState{member: health.MemberOf(l.name(), &reported), MemberState: permit.MemberState{
		Desired: l.result.health.Desired, Of: l.desired.rolloutRevision, Assigned: l.assigned.revision,
		Since: l.assigned.since,
		Aside: l.desired.overridesInvalid, Health: assessed.Health, HealthSince: health.Since(l.result.status.Conditions),
	}}
	s.Failed = slices.ContainsFunc(l.result.health.Problems, func(p health.Problem) bool { return !p.Retried })
	l.state.setMember(l.key, s)
	return failed
}

// deferred reports whether the status is written later.
func (l *memberReconciliation) deferred() bool {
	if l.result.failed != nil {
		return false
	}
	var open time.Time
	if l.observed.permit.Placement != "" {
		if l.awaitedRevision != l.result.health.Desired {
			l.awaitedRevision, l.awaitedSince = l.result.health.Desired, l.now
		}
		open = l.awaitedSince
	}
	wait := health.Defer(l.result.health, open)
	l.requeueAfter(wait)
	return wait > 0
}

// name returns the name of the member.
func (l *memberReconciliation) name() string {
	if l.observed.member != nil {
		return l.observed.member.Name
	}
	return l.key.Namespace
}

// observedByHub reports whether the hub has reconciled a member. This is false for a new member, and for one that was
// restored without its status: such a member has no namespace.
func observedByHub(m *membershipv1alpha1.MemberCluster) bool {
	return m.Status.Namespace != "" ||
		meta.FindStatusCondition(m.Status.Conditions, membershipv1alpha1.ConditionAccepted) != nil
}
