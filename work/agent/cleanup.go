package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/muster-sdk/muster/work/apply"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// takeBack takes back all that a Work has on the member, and then lets the Work go.
func (a *Agent) takeBack(ctx context.Context, work *v1alpha1.Work, st *state) (time.Duration, error) {
	if !controllerutil.ContainsFinalizer(work, v1alpha1.Finalizer) {
		return 0, nil // it is held by others, and nothing of it is here
	}
	if err := st.ledger.look(ctx, a.ours, AppliedWorkName(a.options.HubName, work.Namespace, work.Name)); err != nil {
		return 0, err
	}
	if st.ledger.latest != nil {
		resources := st.ledger.latest.DeepCopy().Status.Resources
		for i := range resources { // by what the Work says now
			resources[i].Delete = work.Spec.OptionsFor(resources[i].ResourceIdentifier).Delete
		}
		left, err := a.empty(ctx, work.Name, st, resources, work.Spec.Delete)
		if err != nil {
			return 0, err
		}
		if len(left) > 0 {
			now := time.Now()
			status, _ := report(found{generation: work.Generation, before: st.status(work), cleaning: true, left: left, now: now})
			wait, err := a.write(ctx, work, st, status)
			return sooner(wait, st.retry(now)), err
		}
	}
	before := work.DeepCopy()
	controllerutil.RemoveFinalizer(work, v1alpha1.Finalizer)
	if err := a.patchFinalizers(ctx, work, before); err != nil {
		return 0, err
	}
	a.events.cleaned(before)
	return 0, nil
}

// empty takes back what an inventory has, and closes it when it is empty. It returns what is left.
func (a *Agent) empty(ctx context.Context, work string, st *state, resources []v1alpha1.AppliedResource, policy v1alpha1.DeletePolicy) ([]apply.Change, error) {
	applied := st.ledger.latest
	engine, err := a.engines.get(applied.Spec.Executor)
	if err != nil {
		return nil, err
	}
	a.watch(work, st, nil, nil)
	a.watches.synced(ctx, work, syncPatience)
	pruned, err := engine.Prune(ctx, st.ledger.owner(), resources, policy)
	if err != nil {
		return nil, err
	}
	left := remaining(pruned)
	if len(left) > 0 {
		return left, st.ledger.record(ctx, pruned.Inventory)
	}
	a.watches.want(work, nil)
	a.engines.forget(applied.UID)
	return nil, st.ledger.close(ctx)
}

// remaining is what is not taken back yet.
func remaining(pruned apply.ChangeSet) []apply.Change {
	var left []apply.Change
	for _, change := range pruned.Changes {
		if !change.Done() {
			left = append(left, change)
		}
	}
	return left
}

// prune takes back what a set no longer has, and returns the inventory since and what is still to go.
func prune(ctx context.Context, engine *engine, set apply.Set, inventory []v1alpha1.AppliedResource, policy v1alpha1.DeletePolicy) ([]v1alpha1.AppliedResource, []apply.Change, error) {
	pruned, err := engine.Prune(ctx, set.Owner, apply.Stale(inventory, set.Objects), policy)
	if err != nil {
		return nil, nil, err
	}
	gone := map[objectKey]bool{}
	for _, change := range pruned.Changes {
		gone[keyOf(change.Object)] = change.Done()
	}
	kept := slices.DeleteFunc(slices.Clone(inventory), func(r v1alpha1.AppliedResource) bool { return gone[keyOf(r.ResourceIdentifier)] })
	return kept, remaining(pruned), nil
}

// missing is about a Work that the hub does not have, or not any more. What it left on the member is taken back as it said last: nobody
// else would. That is decided on what the hub itself says, since a cache may be behind; and a hub that cannot be reached, or
// refuses, has said nothing.
func (a *Agent) missing(ctx context.Context, work types.NamespacedName, st *state) (time.Duration, error) {
	if err := st.ledger.look(ctx, a.ours, AppliedWorkName(a.options.HubName, work.Namespace, work.Name)); err != nil {
		return 0, err
	}
	if applied := st.ledger.latest; applied != nil {
		err := a.hub.Get(ctx, work, &v1alpha1.Work{})
		if err == nil {
			return 0, errOvertaken // the cache will know it
		}
		if !apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) {
			return 0, fmt.Errorf("ask whether Work %s is gone: %w", work.Name, err)
		}
		left, err := a.empty(ctx, work.Name, st, applied.Status.Resources, applied.Spec.Delete)
		if err != nil {
			return 0, err
		}
		if len(left) > 0 {
			return st.retry(time.Now()), nil
		}
	}
	a.watches.want(work.Name, nil)
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.known, work.Name)
	return 0, nil
}

// A Cleaner takes back all that the Works of one hub have on a member, without that hub: for a member that the hub has
// forgotten. No agent of the same hub may be running.
type Cleaner struct {
	member  client.Client
	engines *engines
	hub     string
}

// NewCleaner returns a cleaner by the options of an agent, of which it needs Member and HubName.
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
		return nil, fmt.Errorf("prepare to speak to the member: %w", err)
	}
	bounded := &http.Client{Transport: httpClient.Transport, Timeout: cmp.Or(o.Apply.Timeout, apply.DefaultTimeout)}
	member, err := client.New(config, client.Options{HTTPClient: bounded, Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("prepare to speak to the member: %w", err)
	}
	return &Cleaner{member: member, engines: newEngines(member, config, o.Apply, nil), hub: o.HubName}, nil
}

// Clean begins to take back, or goes on with it, and returns what is left: call it until that is nothing. With Orphan all
// objects stay as they are; with Delete each Work's own policy counts. An API server that does not know AppliedWorks has none.
func (c *Cleaner) Clean(ctx context.Context, action v1alpha1.DeleteAction) (remaining []string, err error) {
	var applied v1alpha1.AppliedWorkList
	err = c.member.List(ctx, &applied, client.MatchingLabels{v1alpha1.HubLabel: c.hub})
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil, nil
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

func (c *Cleaner) cleanOne(ctx context.Context, applied *v1alpha1.AppliedWork, action v1alpha1.DeleteAction) ([]string, error) {
	engine, err := c.engines.get(applied.Spec.Executor)
	if err != nil {
		return nil, err
	}
	ledger := ledger{member: c.member, latest: applied}
	policy, resources := applied.Spec.Delete, applied.DeepCopy().Status.Resources
	if action == v1alpha1.OrphanObject {
		policy.Action = v1alpha1.OrphanObject
		for i := range resources {
			resources[i].Delete = ""
		}
	}
	pruned, err := engine.Prune(ctx, ledger.owner(), resources, policy)
	if err != nil {
		return nil, err
	}
	var left []string
	for _, change := range remaining(pruned) {
		left = append(left, fmt.Sprintf("%s: %s", change.Object, change.Message))
	}
	if len(left) > 0 {
		return left, ledger.record(ctx, pruned.Inventory)
	}
	return nil, ledger.close(ctx)
}
