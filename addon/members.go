package addon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/muster-sdk/muster/addon/health"
	"github.com/muster-sdk/muster/addon/internal/turn"
	"github.com/muster-sdk/muster/addon/removal"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
)

// members is the controller of MemberAddons: what each member has of an add-on.
type members struct{ *shared }

// memory is state of a MemberAddon that is cached between reconciles. The workqueue never processes a key
// concurrently, so it needs no lock. All of it can be rebuilt from the API.
type memory struct {
	uid     types.UID
	told    told
	written map[types.NamespacedName]written
	removing

	ahead  *v1alpha1.MemberAddon // as it was written last
	behind string                // the version before that, which the cache may still show

	awaited      string // the revision that the member is to have, and since when
	awaitedSince time.Time

	busySince time.Time // since when its functions are busy; zero: they are not
}

func (c *shared) memory(m *v1alpha1.MemberAddon) *memory {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := client.ObjectKeyFromObject(m)
	if c.memories[key] == nil || c.memories[key].uid != m.UID {
		c.memories[key] = &memory{uid: m.UID, written: map[types.NamespacedName]written{}}
	}
	return c.memories[key]
}

// memberLook is one look at a MemberAddon.
type memberLook struct {
	members
	*memory

	key     types.NamespacedName
	object  *v1alpha1.MemberAddon
	addon   *v1alpha1.Addon                   // nil: there is none
	member  *membershipv1alpha1.MemberCluster // nil: the namespace is none's
	now     time.Time
	turn    assigned
	content *content
	of      string                            // the revision of the rollout that content is of
	hosting *v1alpha1.HostingStatus           // where the agent is to run; nil: on the member
	host    *membershipv1alpha1.MemberCluster // that member; nil: there is none
	aside   bool                              // what is wrong is the member's own affair
	busy    bool                              // functions of the add-on are called for others
	has     []*record
	hooks   []*record

	credentials removal.Presence

	asked      bool                       // it is known what the agent has on the hub
	credential *unstructured.Unstructured // the manifest that brings it to where the agent is; nil: it has none
	delivered  []string                   // the namespaces of Works that have all that is to be in them, or are about to

	status   v1alpha1.MemberAddonStatus
	observed health.Observed
	after    time.Duration
	failed   error // what is to be tried again
}

// Reconcile looks at a MemberAddon. What has changed meanwhile is no error.
func (c members) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	after, err := c.look(ctx, request.NamespacedName)
	return c.outcome(request, after, err)
}

// look looks at a MemberAddon: observe, decide, act, report.
func (c members) look(ctx context.Context, key types.NamespacedName) (after time.Duration, err error) {
	object := &v1alpha1.MemberAddon{}
	switch err := c.cache.Get(ctx, key, object); {
	case apierrors.IsNotFound(err):
		c.forget(key)
		// No other controller removes what it has outside of its namespace.
		_, err := c.revoke(ctx, key.Name, key.Namespace)
		return 0, errors.Join(c.takeBackHosted(ctx, key), err)
	case err != nil:
		return 0, fmt.Errorf("read MemberAddon %s: %w", key, err)
	}
	l := &memberLook{members: c, memory: c.memory(object), key: key, object: object, now: c.Clock.Now()}
	if object.ResourceVersion == l.behind {
		l.object = l.ahead.DeepCopy()
		object = l.object
	}
	if err := l.observe(ctx); err != nil {
		return 0, err
	}
	if object.DeletionTimestamp != nil {
		return l.remove(ctx)
	}
	var known bool
	if l.turn, known = c.book.turn(l.key); !known && l.addon != nil && l.member != nil {
		return 0, nil // who decides has this one looked at
	}
	if controllerutil.AddFinalizer(object, v1alpha1.MemberAddonFinalizer) {
		return 0, l.guard(ctx)
	}
	if err := l.decide(ctx); err != nil {
		return 0, err
	}
	if l.waits() {
		return l.after, nil
	}
	if err := l.report(ctx); err != nil {
		return 0, err
	}
	return l.after, l.failed
}

// waits reports whether the reconcile waits for functions of the add-on that are busy, for so short a time that no
// condition needs to say so. The end of a call triggers the waiting objects.
func (l *memberLook) waits() bool {
	switch {
	case !l.busy:
		l.busySince = time.Time{}
		return false
	case l.busySince.IsZero():
		l.busySince = l.now
	}
	if left := l.CallTimeout - l.now.Sub(l.busySince); left > 0 {
		l.lookAgain(left)
		return true
	}
	l.lookAgain(patience)
	return false
}

func (c members) forget(key types.NamespacedName) {
	c.configs.Forget(key)
	c.calls.Forget(key)
	c.mu.Lock()
	delete(c.memories, key)
	c.mu.Unlock()
	c.book.gone(key)
}

// guard adds the finalizer to a MemberAddon that a user created, before there are Works that must not outlive it.
func (l *memberLook) guard(ctx context.Context) error {
	before := l.object.DeepCopy()
	controllerutil.RemoveFinalizer(before, v1alpha1.MemberAddonFinalizer)
	metav1.SetMetaDataLabel(&l.object.ObjectMeta, v1alpha1.AddonLabel, l.key.Name)
	err := l.client.Patch(ctx, l.object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	return wrap(err, "put the finalizer on MemberAddon", l.object)
}

// observe finds out what there is.
func (l *memberLook) observe(ctx context.Context) error {
	addon := &v1alpha1.Addon{}
	err := l.cache.Get(ctx, client.ObjectKey{Name: l.key.Name}, addon)
	switch {
	case err == nil:
		l.addon = addon
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("read Addon %s: %w", l.key.Name, err)
	}
	if l.member, err = l.memberIn(ctx, l.key.Namespace); err != nil {
		return err
	}
	l.has, l.hooks, err = l.works(l.key)
	if err != nil {
		return err
	}
	l.status = *l.object.Status.DeepCopy()
	l.status.ObservedGeneration = l.object.Generation
	if l.told.revision == "" {
		l.told = toldBy(l.has, &l.status)
	}
	return nil
}

// toldBy is what a member was told, as its Works say, or else its status.
func toldBy(works []*record, status *v1alpha1.MemberAddonStatus) told {
	last := told{revision: status.AppliedRevision}
	if status.RevisionSince != nil {
		last.since = status.RevisionSince.Time
	}
	for _, r := range works {
		if r.revision != "" && !r.since.Before(last.since) {
			last = told{r.revision, r.since}
		}
	}
	return last
}

// memberIn is the member that a namespace is of; nil: it is none's.
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

// decide finds out what the member is to have, and has it written if that may be.
func (l *memberLook) decide(ctx context.Context) error {
	l.observed = health.Observed{
		Generation: l.object.Generation, Before: l.object.Status.Conditions, Now: l.now, Reachable: l.member != nil && healthy(l.member),
	}
	l.observed.Works = l.said()
	switch {
	case l.member == nil:
		l.problem(v1alpha1.ReasonUnsupported, fmt.Sprintf("Namespace %s is of no member: delete the MemberAddon, and make one in the namespace of a member", l.key.Namespace))
	case l.addon == nil:
		l.problem(v1alpha1.ReasonNoAgent, fmt.Sprintf("There is no Addon %s: make it, or delete the MemberAddon", l.key.Name))
	default:
		if errs := l.object.Spec.Validate(); len(errs) > 0 {
			l.problem(v1alpha1.ReasonConfigInvalid, errs.ToAggregate().Error())
			l.aside = true
			break
		}
		if err := l.configure(ctx); err != nil {
			return err
		}
	}
	l.observed.Current = true // as it was told, as far as one can know unless it is told again: what that was is gone
	if len(l.observed.Problems) == 0 && l.may() {
		l.act(ctx)
	}
	l.keepAccess(ctx)
	if l.content != nil && l.told.revision != "" {
		l.ask(ctx) // also of what runs by what it was told before
	}
	l.observed.Revision, l.observed.Since = l.told.revision, l.told.since
	return nil
}

func (l *memberLook) problem(reason, message string) {
	l.observed.Problems = append(l.observed.Problems, health.Problem{Reason: reason, Message: message})
}

// configure finds out what the add-on is to be on the member, and what it would be without anything of the member's own.
func (l *memberLook) configure(ctx context.Context) error {
	l.observed.Check = l.addon.Spec.Health
	hosting := firstOf(l.object.Spec.HostingMember, l.turn.hosting)
	of := contentOf{
		placement: l.turn.configs, member: l.object, installNamespace: l.object.Spec.InstallNamespace, hosting: hosting, last: l.object.Status.Configs,
	}
	all := []contentOf{of}
	if len(l.object.Spec.Configs) > 0 || of.installNamespace != "" || hosting != l.turn.hosting {
		all = append(all, contentOf{placement: l.turn.configs, hosting: l.turn.hosting})
	}
	found, err := l.contents(ctx, l.key, l.addon, all...)
	if err != nil {
		return err
	}
	plain := &found[len(found)-1]
	l.content, l.of, l.aside = &found[0], plain.revision, len(found[0].problems) > 0 && len(plain.problems) == 0
	l.observed.Problems = append(l.observed.Problems, l.content.problems...)
	l.await(l.content)
	l.observed.Desired, l.observed.Hold = l.content.revision, l.turn.Hold
	l.status.InstallNamespace, l.status.Placement = l.content.installNamespace, l.turn.Placement
	l.status.Configs, l.status.DesiredRevision = l.content.configs, l.content.revision
	return l.locate(ctx, hosting)
}

// may reports whether the member is told what it is to have, and takes down why not.
func (l *memberLook) may() bool {
	v := turn.Next(turn.Observed{
		Turn: l.turn.Turn, Desired: l.content.revision, Of: l.of, Told: l.told.revision, Before: &l.object.Status, Joined: joined(l.member), Leaving: leaving(l.member),
	})
	l.observed.Hold = v.Hold
	if v.Stays {
		l.observed.Desired, l.status.DesiredRevision = l.told.revision, l.told.revision
		l.status.Configs, l.status.InstallNamespace, l.status.Placement = l.object.Status.Configs, l.object.Status.InstallNamespace, l.object.Status.Placement
	}
	return v.Tell
}

func (l *memberLook) lookAgain(after time.Duration) {
	if after > 0 && (l.after == 0 || after < l.after) {
		l.after = after
	}
}

// report says how the add-on is doing, to people and to the controller of Addons.
func (l *memberLook) report(ctx context.Context) error {
	if l.addon != nil && l.addon.Spec.Health.Type == v1alpha1.HealthLease {
		l.observed.Renewed = l.leases.renewed(l.key)
	}
	assessed := health.Assess(l.observed)
	l.lookAgain(assessed.After)
	l.status.Conditions, l.status.Message = assessed.Conditions, assessed.Message
	before := l.object
	var failed error
	if !equality.Semantic.DeepEqual(&l.status, &before.Status) && !l.deferred() {
		next := before.DeepCopy()
		next.Status = l.status
		err := l.client.Status().Patch(ctx, next, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		switch failed = wrap(client.IgnoreNotFound(err), "write the status of MemberAddon", before); {
		case err == nil:
			l.ahead, l.behind, l.object = next.DeepCopy(), before.ResourceVersion, next
			l.announce(next, before.Status.Conditions, next.Status.Conditions)
		case apierrors.IsNotFound(err), apierrors.IsConflict(err): // it is not what was looked at
			return failed
		}
	}
	said := *l.object
	said.Status = l.status // written or not: a rollout does not wait for a status that cannot be written
	s := standing{member: health.MemberOf(l.name(), &said), Standing: turn.Standing{
		Desired: l.observed.Desired, Of: l.of, Told: l.told.revision, Since: l.told.since,
		Aside: l.aside, Health: assessed.Health, HealthSince: health.Since(l.status.Conditions),
	}}
	s.Failed = slices.ContainsFunc(l.observed.Problems, func(p health.Problem) bool { return !p.Retried })
	l.book.stands(l.key, s)
	return failed
}

// deferred reports whether the status is not to be written yet.
func (l *memberLook) deferred() bool {
	if l.failed != nil {
		return false
	}
	var open time.Time
	if l.turn.Placement != "" {
		if l.awaited != l.observed.Desired {
			l.awaited, l.awaitedSince = l.observed.Desired, l.now
		}
		open = l.awaitedSince
	}
	wait := health.Defer(l.observed, open)
	l.lookAgain(wait)
	return wait > 0
}

// name is that of the member.
func (l *memberLook) name() string {
	if l.member != nil {
		return l.member.Name
	}
	return l.key.Namespace
}
