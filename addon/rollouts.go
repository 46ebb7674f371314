package addon

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/addon/health"
	"github.com/muster-sdk/muster/addon/internal/install"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/withdrawal"
	"github.com/muster-sdk/muster/placement/rollout"
	placementv1alpha1 "github.com/muster-sdk/muster/placement/v1alpha1"
)

// rolling is the plan of a rollout to the members of a Placement.
type rolling struct {
	placement string
	plan      rollout.Plan
	hold      map[string]rollout.HoldReason // by namespace of the member; empty: not on hold
}

// readPlacement reads a Placement or, without a namespace, a ClusterPlacement, and its PlacementDecisions. Both kinds
// have the same fields. Nil: it does not exist.
func (l *addonReconciliation) readPlacement(ctx context.Context, key client.ObjectKey) (*placementv1alpha1.Placement,
	*placementv1alpha1.PlacementDecisionList, error) {
	placement := &placementv1alpha1.Placement{}
	object, within, label := client.Object(placement), key.Namespace, placementv1alpha1.PlacementLabel
	if key.Namespace == "" {
		object = (*placementv1alpha1.ClusterPlacement)(placement)
		within, label = placementv1alpha1.ClusterScopeNamespace, placementv1alpha1.ClusterPlacementLabel
	}
	err := l.cache.Get(ctx, key, object)
	if apierrors.IsNotFound(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", install.Describe(key.Namespace, key.Name), err)
	}
	slices := &placementv1alpha1.PlacementDecisionList{}
	err = l.cache.List(ctx, slices, client.InNamespace(within), client.UnsafeDisableDeepCopy,
		client.MatchingLabels{label: placementv1alpha1.LabelValue(key.Name)})
	if err != nil {
		return nil, nil, fmt.Errorf("list PlacementDecisions of %s: %w", install.Describe(key.Namespace, key.Name), err)
	}
	return placement, slices, nil
}

// placement returns the observed state of a Placement or, without a namespace, a ClusterPlacement. Nil: it does not
// exist.
func (l *addonReconciliation) placement(ctx context.Context, namespace, name string) (*install.Placement, error) {
	placement, slices, err := l.readPlacement(ctx, client.ObjectKey{Namespace: namespace, Name: name})
	if err != nil || placement == nil {
		return nil, err
	}
	known, seen := &install.Placement{Namespace: namespace, Name: name, State: install.Undecided}, map[string]bool{}
	groups := map[string]int32{}
	for i := range placement.Spec.DecisionGroups {
		group := rollout.Group{Name: placement.Spec.DecisionGroups[i].Name, Index: int32(i)}
		groups[group.Name] = group.Index
		known.Groups = append(known.Groups, group)
	}
	known.Groups = append(known.Groups, rollout.Group{Index: int32(len(groups))}) // clusters in no group
	for i := range slices.Items {
		if !metav1.IsControlledBy(&slices.Items[i], placement) {
			continue
		}
		for _, d := range slices.Items[i].Decisions {
			index, in := groups[d.Group]
			if !in {
				index = int32(len(groups))
			}
			if !seen[d.ClusterName] {
				seen[d.ClusterName] = true
				group := rollout.Group{Name: d.Group, Index: index, Part: d.GroupPart}
				known.Clusters = append(known.Clusters, install.Cluster{Name: d.ClusterName, Group: group,
					Refusal: l.refusal(namespace, &d)})
			}
		}
	}
	if withdrawal.Complete(placement, len(known.Clusters)) {
		known.State = install.Decided
	}
	return known, nil
}

// roll computes the next step of the rollout for each Placement.
func (l *addonReconciliation) roll(ctx context.Context) error {
	if len(l.plan.Shares) == 0 {
		l.configs.Forget(keyOf("", l.addon.Name))
		return nil
	}
	of := make([]contentOf, len(l.plan.Shares))
	for i := range of {
		p := &l.addon.Spec.Install.Placements[i]
		of[i].placement, of[i].hosting = p.Configs, p.HostingMember
	}
	contents, err := l.contents(ctx, keyOf("", l.addon.Name), l.addon, of...)
	if err != nil {
		return err
	}
	for i := range l.plan.Shares {
		if contents[i].late {
			l.requeueAfter(pollInterval)
		}
		share, p := &l.plan.Shares[i], &l.addon.Spec.Install.Placements[i]
		status := v1alpha1.PlacementStatus{Namespace: p.Namespace, Name: p.Name}
		for j := range l.addon.Status.Placements {
			if before := &l.addon.Status.Placements[j]; before.Namespace == p.Namespace && before.Name == p.Name {
				status.Rollout = before.Rollout
			}
		}
		if r := l.next(share, p, &contents[i], &status); r != nil {
			status.Rollout = r.plan.Status
			l.rollouts = append(l.rollouts, *r)
			l.requeueAfter(r.plan.After)
		}
		l.statuses = append(l.statuses, status)
	}
	return nil
}

func (l *addonReconciliation) requeueAfter(after time.Duration) {
	if after > 0 && (l.after == 0 || after < l.after) {
		l.after = after
	}
}

// next returns the next step of a rollout. Nil: the rollout does not continue now; the status contains the reason if
// a user has to act.
func (l *addonReconciliation) next(share *install.Share, p *v1alpha1.PlacementInstall, content *content,
	status *v1alpha1.PlacementStatus) *rolling {
	if !share.Decided {
		status.Message = "The Placement does not exist or has no decision yet. The add-on stays on its members."
		return nil
	}
	for _, problem := range content.problems {
		// The members report the same problem, and each fails.
		status.Message = problem.Message
		if problem.Retried {
			return nil // the desired content is not known
		}
	}
	o := rollout.Observed{Now: l.now, Strategy: p.Rollout, Revision: content.revision, Groups: share.Groups,
		Approvals: p.Approvals, Status: status.Rollout}
	states, permits, namespaces := l.state.members(l.addon.Name), l.state.permits(l.addon.Name), map[string]string{}
	for _, cluster := range share.Clusters {
		member, has := l.members[cluster.Name], l.existing[cluster.Name]
		if member == nil || member.Status.Namespace == "" || leaving(member) || has != nil && has.DeletionTimestamp != nil {
			continue
		}
		namespace := member.Status.Namespace
		s, known := states[namespace]
		if !s.Participates(joined(member)) {
			continue
		}
		if has != nil && !known {
			return nil // the MemberAddon will be reconciled soon
		}
		namespaces[cluster.Name] = namespace
		target := s.Target(o.Revision, permits[namespace].Permit)
		target.Name, target.Group, target.Labels = cluster.Name, cluster.Group, member.Labels
		o.Targets = append(o.Targets, target)
	}
	plan, err := rollout.Next(o)
	if err != nil {
		status.Message = err.Error()
		l.problem(v1alpha1.ReasonInvalid, fmt.Sprintf("spec.install: the rollout to Placement %s: %s", share.Placement, err))
		return nil
	}
	if plan.Problem != "" {
		l.problem(v1alpha1.ReasonInvalid, fmt.Sprintf("spec.install: the rollout to Placement %s: %s", share.Placement,
			plan.Problem))
	}
	r := &rolling{placement: share.Placement, plan: plan, hold: make(map[string]rollout.HoldReason, len(namespaces))}
	for _, namespace := range namespaces {
		r.hold[namespace] = ""
	}
	for _, h := range plan.Hold {
		r.hold[namespaces[h.Target]] = h.Reason
	}
	return r
}

// complete reports whether all members with the add-on were reconciled.
func (l *addonReconciliation) complete(standings map[string]memberState) bool {
	for _, m := range l.existing {
		if _, known := standings[m.Namespace]; !known {
			return false
		}
	}
	return true
}

// statusPeriod is the minimum time between two writes of a status that differ only in progress.
const statusPeriod = time.Second

// report writes the status if it changed. The state of a rollout is written immediately, and before the rollout
// continues.
func (l *addonReconciliation) report(ctx context.Context) error {
	standings := l.state.members(l.addon.Name)
	if !l.complete(standings) {
		l.rollouts = nil
		return nil // the members that were not observed yet trigger this Addon again
	}
	o := health.AddonObserved{
		Generation: l.addon.Generation, Before: l.addon.Status, Now: l.now, Deleting: l.addon.DeletionTimestamp != nil,
		Placements: l.statuses, Problems: l.problems, Forced: l.state.forced(l.addon.Name),
	}
	for _, m := range l.existing {
		o.Members = append(o.Members, standings[m.Namespace].member)
	}
	for _, d := range l.plan.Decisions {
		if d.Action == install.Create {
			o.Awaited++
		}
	}
	status := health.Status(o)
	status.Trim()
	if equality.Semantic.DeepEqual(status, l.addon.Status) {
		return nil
	}
	if wait := statusPeriod - l.now.Sub(l.lastStatus(l.addon)); wait > 0 &&
		equality.Semantic.DeepEqual(withoutCounts(&status), withoutCounts(&l.addon.Status)) {
		l.requeueAfter(wait)
		return nil
	}
	before := l.addon
	next := before.DeepCopy()
	next.Status = status
	if err := l.client.Status().Patch(ctx, next,
		client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return wrap(client.IgnoreNotFound(err), "write the status of Addon", before)
	}
	l.addon = next
	l.wroteStatus(next, l.now)
	l.recordTransitions(next, before.Status.Conditions, next.Status.Conditions)
	return nil
}

// withoutCounts returns the parts of a status whose changes are written immediately.
func withoutCounts(s *v1alpha1.AddonStatus) *v1alpha1.AddonStatus {
	g := s.DeepCopy()
	g.Message, g.Counts = "", v1alpha1.AddonCounts{}
	for i := range g.Conditions {
		g.Conditions[i].Message = ""
	}
	for i := range g.Placements {
		p := &g.Placements[i]
		p.Message, p.Rollout.Message, p.Rollout.RolloutCounts = "", "", placementv1alpha1.RolloutCounts{}
		for j := range p.Rollout.Stages {
			p.Rollout.Stages[j].RolloutCounts = placementv1alpha1.RolloutCounts{}
		}
	}
	return g
}
