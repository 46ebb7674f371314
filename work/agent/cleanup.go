package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/muster-sdk/muster/internal/deletion"
	"github.com/muster-sdk/muster/internal/requeue"
	"github.com/muster-sdk/muster/work/apply"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// cleanUp handles a Work that is being deleted. If a user requested the deletion, it deletes the objects of the Work
// on the member and then removes the finalizer. Otherwise, it keeps the objects and removes the finalizer.
func (a *Agent) cleanUp(ctx context.Context, work *v1alpha1.Work, st *state) (time.Duration, error) {
	if !controllerutil.ContainsFinalizer(work, v1alpha1.Finalizer) {
		return 0, nil // other finalizers block the deletion, and the member has no object of the Work
	}
	if err := a.findInventory(ctx, work, st); err != nil {
		return 0, err
	}
	if st.applied.latest == nil {
		return 0, a.removeFinalizer(ctx, work, nil)
	}
	if request := st.applied.latest.Status.DeletionRequest; request == nil || request.WorkUID != work.UID {
		// The request applies to the objects that this Work contains, and not to those of an earlier Work.
		if desired := a.desired(work); adopts(st.applied.latest.Spec.Work, desired.Spec.Work) {
			if err := st.applied.open(ctx, desired, makePlan(work).objects, nil); err != nil {
				return 0, err
			}
		}
		live, reason, err := a.observeEnd(ctx, client.ObjectKeyFromObject(work))
		switch {
		case err != nil:
			return 0, err
		case live == nil || live.UID != work.UID || reason == "":
			return 0, errChangedConcurrently
		case reason != deletion.Requested:
			return a.releaseObjects(ctx, work, st, reason)
		}
		if wait := st.confirm(time.Now()); wait > 0 {
			return wait, nil
		}
	}
	if withheld := a.options.PruneGate(ctx); withheld != "" {
		return a.reportCleaning(ctx, work, st, withhold(st.applied.latest.Status.Resources, withheld), withheld)
	}
	if err := st.applied.request(ctx, work.UID); err != nil {
		return 0, err
	}
	resources := st.applied.latest.DeepCopy().Status.Resources
	for i := range resources { // the delete options of the present Work apply
		resources[i].Delete = work.Spec.OptionsFor(resources[i].ResourceIdentifier).Delete
	}
	left, err := a.deleteObjects(ctx, work.Name, st, removal{resources, true, work.Spec.Delete})
	if err != nil {
		return 0, err
	}
	if len(left) > 0 {
		return a.reportCleaning(ctx, work, st, left, "")
	}
	st.allDeleted = true
	a.recordOrphans(work.Name, st.applied.latest)
	return 0, a.removeFinalizer(ctx, work, func(before *v1alpha1.Work) { a.events.cleanedUp(before) })
}

// findInventory finds the AppliedWork of a Work that is being deleted. It creates a lost AppliedWork again, because
// the objects must be deleted nevertheless.
func (a *Agent) findInventory(ctx context.Context, work *v1alpha1.Work, st *state) error {
	desired := a.desired(work)
	if err := st.applied.read(ctx, a.member.cache, desired.Name); err != nil {
		return err
	}
	if st.applied.latest != nil || st.allDeleted || work.Status.ObservedGeneration == 0 {
		return nil
	}
	return a.openInventory(ctx, desired, st, makePlan(work).objects, true)
}

// openInventory creates or updates the AppliedWork. If there is none and the Work was applied before, openInventory
// searches the member for the objects of the Work.
func (a *Agent) openInventory(ctx context.Context, desired *v1alpha1.AppliedWork, st *state, objects []apply.Object,
	before bool) error {
	var found []v1alpha1.AppliedResource
	if st.applied.latest == nil && before {
		var err error
		if found, err = a.member.marked.ownedBy(ctx, ownerOf(desired)); err != nil {
			return err
		}
	}
	return st.applied.open(ctx, desired, objects, found)
}

// removeFinalizer removes the finalizer from a Work.
func (a *Agent) removeFinalizer(ctx context.Context, work *v1alpha1.Work, then func(before *v1alpha1.Work)) error {
	before := work.DeepCopy()
	controllerutil.RemoveFinalizer(work, v1alpha1.Finalizer)
	if err := a.patchFinalizers(ctx, work, before); err != nil {
		return err
	}
	if then != nil {
		then(before)
	}
	return nil
}

// releaseObjects keeps the objects of a Work whose deletion was not requested, and removes the finalizer from the Work.
func (a *Agent) releaseObjects(ctx context.Context, work *v1alpha1.Work, st *state,
	reason string) (time.Duration, error) {
	after, err := a.keepOrphans(ctx, client.ObjectKeyFromObject(work), st, reason)
	if err != nil {
		return 0, err
	}
	return after, a.removeFinalizer(ctx, work, nil)
}

// reportCleaning reports the remaining objects of a Work that is being deleted, and returns when to retry.
func (a *Agent) reportCleaning(ctx context.Context, work *v1alpha1.Work, st *state, left []apply.Change,
	withheld string) (time.Duration, error) {
	now := time.Now()
	status, _ := report(reportInput{generation: work.Generation, before: st.status(work), cleaning: true, left: left,
		withheld: withheld, now: now})
	wait, err := a.write(ctx, work, st, status)
	if withheld != "" {
		return requeue.Sooner(wait, jittered(gateInterval)), err
	}
	return requeue.Sooner(wait, st.retry(now)), err
}

// gateInterval is the interval at which the agent calls Options.PruneGate while the gate withholds a deletion.
const gateInterval = 5 * time.Second

// withhold returns the changes of objects that must not be deleted at this time.
func withhold(resources []v1alpha1.AppliedResource, withheld string) []apply.Change {
	changes := make([]apply.Change, len(resources))
	for i, r := range resources {
		changes[i] = apply.Change{Object: r.ResourceIdentifier, Action: apply.Skipped, Reason: v1alpha1.ReasonPruneWithheld,
			Message: withheld}
	}
	return changes
}

// deleteDue deletes the objects of an inventory that are due, and then the AppliedWork if the inventory is empty. It
// returns the objects that are due and still exist.
func (a *Agent) deleteDue(ctx context.Context, work string, st *state, ended bool,
	policy v1alpha1.DeletePolicy) ([]apply.Change, error) {
	return a.deleteObjects(ctx, work, st, removal{st.applied.latest.Status.Resources, ended, policy})
}

// removal is what deleteObjects removes from the member.
type removal struct {
	resources []v1alpha1.AppliedResource
	ended     bool // a user asked for the deletion of the Work
	policy    v1alpha1.DeletePolicy
}

func (a *Agent) deleteObjects(ctx context.Context, work string, st *state, r removal) ([]apply.Change, error) {
	applied := st.applied.latest.DeepCopy()
	applied.Status.Resources = r.resources
	gone, kept, _ := due(applied, r.ended, a.options.OrphanGracePeriod, time.Now())
	engine, err := a.engines.get(applied.Spec.Executor)
	if err != nil {
		return nil, err
	}
	a.watch(work, st, nil, nil)
	a.watches.synced(ctx, work, syncTimeout)
	pruned, err := engine.Prune(ctx, st.applied.owner(), gone, r.policy)
	if err != nil {
		return nil, err
	}
	left := remaining(pruned)
	if len(left) > 0 {
		return left, st.applied.record(ctx, sortedResources(kept, pruned.Inventory))
	}
	a.watches.setObjects(work, nil)
	a.engines.forget(applied.UID)
	if len(kept) > 0 {
		return nil, st.applied.record(ctx, kept)
	}
	return nil, st.applied.close(ctx)
}

// sortedResources joins two parts of an inventory.
func sortedResources(a, b []v1alpha1.AppliedResource) []v1alpha1.AppliedResource {
	return apply.Ahead(slices.Concat(a, b), nil)
}

// remaining returns the changes of objects that are not deleted yet.
func remaining(pruned apply.ChangeSet) []apply.Change {
	var left []apply.Change
	for _, change := range pruned.Changes {
		if !change.Done() {
			left = append(left, change)
		}
	}
	return left
}

// prune deletes the objects that a set does not contain any more. It returns the new inventory and the objects that
// are still to be deleted. Orphaned objects are kept unless they are due.
func (a *Agent) prune(ctx context.Context, work *v1alpha1.Work, st *state, in pruneInput) (pruning, error) {
	p := pruning{inventory: in.inventory}
	applied := st.applied.latest.DeepCopy()
	applied.Status.Resources = apply.Stale(in.inventory, in.set.Objects)
	var gone []v1alpha1.AppliedResource
	gone, _, p.after = due(applied, true, a.options.OrphanGracePeriod, time.Now())
	if len(gone) == 0 {
		return p, nil
	}
	if p.withheld = a.options.PruneGate(ctx); p.withheld != "" {
		p.left = withhold(gone, p.withheld)
		return p, nil
	}
	if a.options.HubRestored() != applied.Spec.Work.HubRestored {
		return p, errChangedConcurrently // the hub was restored meanwhile
	}
	if err := a.confirmLive(ctx, work); err != nil {
		return p, err
	}
	pruned, err := in.engine.Prune(ctx, in.set.Owner, gone, work.Spec.Delete)
	if err != nil {
		return p, err
	}
	done := map[objectKey]bool{}
	for _, change := range pruned.Changes {
		done[keyOf(change.Object)] = change.Done()
	}
	p.inventory = slices.DeleteFunc(slices.Clone(in.inventory), func(r v1alpha1.AppliedResource) bool {
		return done[keyOf(r.ResourceIdentifier)]
	})
	p.left = remaining(pruned)
	return p, nil
}

// pruneInput is the input of prune: the applied set, and the inventory after it was applied.
type pruneInput struct {
	engine    *engine
	set       apply.Set
	inventory []v1alpha1.AppliedResource
}

// pruning is the result of prune.
type pruning struct {
	inventory []v1alpha1.AppliedResource
	left      []apply.Change
	withheld  string        // why nothing was deleted
	after     time.Duration // when the next orphaned object is due; 0: none will be
}

// reconcileMissing handles a Work that the cache does not contain. A missing Work is not a request to delete its
// objects, so they are kept, unless the agent observed a request before the Work disappeared.
func (a *Agent) reconcileMissing(ctx context.Context, work types.NamespacedName, st *state) (time.Duration, error) {
	name := AppliedWorkName(a.options.HubName, work.Namespace, work.Name)
	if err := st.applied.read(ctx, a.member.cache, name); err != nil {
		return 0, err
	}
	if applied := st.applied.latest; applied != nil {
		live, reason, err := a.observeEnd(ctx, work)
		if err != nil {
			return 0, err
		}
		if live != nil {
			return 0, errChangedConcurrently // the cache will observe the Work
		}
		var after time.Duration
		if request := applied.Status.DeletionRequest; request != nil && request.WorkUID == applied.Spec.Work.UID {
			after, err = a.pruneDue(ctx, work.Name, st, true)
		} else {
			after, err = a.keepOrphans(ctx, work, st, reason)
		}
		if err != nil || st.applied.latest != nil {
			return after, err
		}
	}
	a.recordOrphans(work.Name, nil)
	a.watches.setObjects(work.Name, nil)
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.states, work.Name)
	return 0, nil
}

// A Cleaner deletes all objects of the Works of one hub from a member, including orphaned ones, without access to
// that hub. It is used for a member whose leave was requested. No agent of the same hub may run at the same time.
type Cleaner struct {
	member  client.Client
	engines *engines
	marked  *markedObjects
	hub     string
}

// NewCleaner returns a Cleaner for the options of an agent. Only Member is required. HubName, Apply and Log have the
// same meaning and defaults as for an agent.
func NewCleaner(o Options) (*Cleaner, error) {
	if o.HubName == "" {
		o.HubName = DefaultHubName
	}
	if o.Member == nil {
		return nil, errors.New("agent.Options.Member: is required")
	}
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	config, httpClient, err := connection(o.Member)
	if err != nil {
		return nil, fmt.Errorf("create the client of the member: %w", err)
	}
	bounded := &http.Client{Transport: httpClient.Transport, Timeout: cmp.Or(o.Apply.Timeout, apply.DefaultTimeout)}
	member, err := client.New(config, client.Options{HTTPClient: bounded, Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("create the client of the member: %w", err)
	}
	log := o.Log
	if log.GetSink() == nil {
		log = logr.Discard()
	}
	found, err := discovery.NewDiscoveryClientForConfigAndClient(config, bounded)
	if err != nil {
		return nil, fmt.Errorf("create the client of the member: %w", err)
	}
	return &Cleaner{
		member: member, engines: newEngines(member, config, o.Apply, nil), hub: o.HubName,
		marked: &markedObjects{client: member, discovery: found, log: log},
	}, nil
}

// Clean starts or continues the deletion, and returns the remaining objects. Call it until it returns none. With the
// action Orphan, all objects stay unchanged; with Delete, the delete policy of each Work applies.
//
// If the definition of AppliedWorks is missing, the delete policies of the objects are lost, so Clean deletes none of
// them. With Delete they remain until a user deletes them or removes their label.
func (c *Cleaner) Clean(ctx context.Context, action v1alpha1.DeleteAction) (remaining []string, err error) {
	var applied v1alpha1.AppliedWorkList
	err = c.member.List(ctx, &applied, client.MatchingLabels{v1alpha1.HubLabel: c.hub})
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		if action == v1alpha1.OrphanObject {
			return nil, nil
		}
		return c.unrecordedObjects(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("list AppliedWorks: %w", err)
	}
	for i := range applied.Items {
		left, err := c.cleanOne(ctx, &applied.Items[i], action)
		if err != nil {
			left = append(left, fmt.Sprintf("AppliedWork %s: %v", applied.Items[i].Name, err))
		}
		remaining = append(remaining, left...)
	}
	return remaining, nil
}

// unrecordedObjects returns the objects that Works applied, if their inventories are lost with the definition of
// AppliedWorks.
func (c *Cleaner) unrecordedObjects(ctx context.Context) ([]string, error) {
	byMark, err := c.marked.list(ctx)
	if err != nil {
		return nil, err
	}
	var objects []string
	for _, some := range byMark {
		for i := range some {
			objects = append(objects, fmt.Sprintf("%s: The CustomResourceDefinition of AppliedWorks is missing, so the "+
				"delete policy of the object is unknown. Delete the object, or remove its label %s to keep the object.",
				some[i].resource.ResourceIdentifier, v1alpha1.AppliedLabel))
		}
	}
	slices.Sort(objects)
	return slices.Compact(objects), nil
}

func (c *Cleaner) cleanOne(ctx context.Context, applied *v1alpha1.AppliedWork,
	action v1alpha1.DeleteAction) ([]string, error) {
	engine, err := c.engines.get(applied.Spec.Executor)
	if err != nil {
		return nil, err
	}
	record := appliedWork{member: c.member, latest: applied}
	policy, resources := applied.Spec.Delete, applied.DeepCopy().Status.Resources
	if action == v1alpha1.OrphanObject {
		policy.Action = v1alpha1.OrphanObject
		for i := range resources {
			resources[i].Delete = ""
		}
	}
	pruned, err := engine.Prune(ctx, record.owner(), resources, policy)
	if err != nil {
		return nil, err
	}
	var left []string
	for _, change := range remaining(pruned) {
		left = append(left, fmt.Sprintf("%s: %s", change.Object, change.Message))
	}
	if len(left) > 0 {
		return left, record.record(ctx, pruned.Inventory)
	}
	return nil, record.close(ctx)
}
