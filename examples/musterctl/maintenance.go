package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership/admin"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	placementv1alpha1 "github.com/muster-sdk/muster/placement/v1alpha1"
)

const (
	// cordonTaint is the key of the taint of a cordoned member.
	cordonTaint = "muster.dev/unschedulable"
	// drainLabel is a label of a PlacementEviction. Its value is the member whose drain created the eviction.
	drainLabel = "muster.dev/drain"
)

// maxNameLength is the maximum length of the name of an object.
const maxNameLength = 253

func (a *app) cordonCommand() *cobra.Command {
	return &cobra.Command{
		Use: "cordon NAME...", Short: "Mark members as unschedulable for Placements",
		Long: `Mark members as unschedulable for Placements. The command adds the taint ` + cordonTaint + `:NoSchedule.
Placements that have already selected a member stay there.`,
		Args: cobra.MinimumNArgs(1), ValidArgsFunction: a.completeMembers,
		RunE: func(cmd *cobra.Command, names []string) error {
			hub, err := a.hubClient()
			if err != nil {
				return err
			}
			return a.eachMember(cmd.Context(), hub, names, "cordoned", cordon)
		},
	}
}

func cordon(member *v1alpha1.MemberCluster) error {
	return setTaint(member, v1alpha1.Taint{Key: cordonTaint, Effect: corev1.TaintEffectNoSchedule}, true)
}

func (a *app) uncordonCommand() *cobra.Command {
	return &cobra.Command{
		Use: "uncordon NAME...", Short: "Mark members as schedulable for Placements, after cordon or drain",
		Long: `Mark members as schedulable for Placements. The command removes the taint ` + cordonTaint + ` and the evictions
that drain has created. A Placement returns to a member only if its policy selects the member.`,
		Args: cobra.MinimumNArgs(1), ValidArgsFunction: a.completeMembers,
		RunE: func(cmd *cobra.Command, names []string) error {
			hub, err := a.hubClient()
			if err != nil {
				return err
			}
			for _, name := range names {
				if err := removeEvictions(cmd.Context(), hub, name); err != nil {
					return err
				}
			}
			return a.eachMember(cmd.Context(), hub, names, "uncordoned", func(member *v1alpha1.MemberCluster) error {
				cordoned := func(t v1alpha1.Taint) bool { return t.Key == cordonTaint }
				member.Spec.Taints = slices.DeleteFunc(member.Spec.Taints, cordoned)
				return nil
			})
		},
	}
}

// removeEvictions deletes the evictions that the drain of a member has created.
func removeEvictions(ctx context.Context, hub *hubClient, member string) error {
	var evictions placementv1alpha1.PlacementEvictionList
	err := hub.List(ctx, &evictions, client.MatchingLabels{drainLabel: member})
	if err != nil {
		return fmt.Errorf("list PlacementEvictions: %w", err)
	}
	for i := range evictions.Items {
		eviction := &evictions.Items[i]
		precondition := client.Preconditions{UID: &eviction.UID, ResourceVersion: &eviction.ResourceVersion}
		if err := hub.Delete(ctx, eviction, precondition); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete PlacementEviction %s/%s: %w", eviction.Namespace, eviction.Name, err)
		}
	}
	return nil
}

// eachMember changes the taints of members, and prints one line for each of them.
func (a *app) eachMember(ctx context.Context, hub *hubClient, names []string, done string,
	change func(*v1alpha1.MemberCluster) error,
) error {
	for _, name := range names {
		changed, err := changeMember(ctx, hub, name, change)
		if err != nil {
			return err
		}
		if !changed {
			done := "already " + done
			if err := a.line("membercluster/%s %s", name, done); err != nil {
				return err
			}
			continue
		}
		if err := a.line("membercluster/%s %s", name, done); err != nil {
			return err
		}
	}
	return nil
}

// changeMember changes the taints of a member, and retries on conflicts. It reports whether the taints have changed.
func changeMember(ctx context.Context, hub *hubClient, name string, change func(*v1alpha1.MemberCluster) error) (
	changed bool, err error,
) {
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		member := &v1alpha1.MemberCluster{}
		if err := hub.Get(ctx, client.ObjectKey{Name: name}, member); err != nil {
			if apierrors.IsNotFound(err) {
				return fmt.Errorf("member %s: %w", name, admin.ErrNotFound)
			}
			return err
		}
		before := member.DeepCopy()
		if err := change(member); err != nil {
			return err
		}
		if changed = !slices.Equal(before.Spec.Taints, member.Spec.Taints); !changed {
			return nil
		}
		return hub.Patch(ctx, member, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	})
	return changed, err
}

// setTaint adds a taint. Without overwrite, it returns an error if the member has a taint with the same key and effect
// and another value.
func setTaint(member *v1alpha1.MemberCluster, taint v1alpha1.Taint, overwrite bool) error {
	for i := range member.Spec.Taints {
		is := &member.Spec.Taints[i]
		switch {
		case is.Key != taint.Key || is.Effect != taint.Effect:
		case is.Value == taint.Value:
			return nil
		case !overwrite:
			return usage("member %s has the taint %s:%s with the value %q: add --overwrite to replace the value",
				member.Name, is.Key, is.Effect, is.Value)
		default:
			is.Value, is.TimeAdded = taint.Value, taint.TimeAdded
			return nil
		}
	}
	member.Spec.Taints = append(member.Spec.Taints, taint)
	return nil
}

func (a *app) taintCommand() *cobra.Command {
	var overwrite bool
	cmd := &cobra.Command{
		Use: "taint NAME... TAINT...", Short: "Update the taints of members",
		Long: `Update the taints of members. A taint is KEY=VALUE:EFFECT or KEY:EFFECT, with the effect NoSchedule,
PreferNoSchedule or NoExecute. KEY:EFFECT- removes one taint, and KEY- removes all taints with the key. With NoExecute,
Placements that do not tolerate the taint leave the member.`,
		Example: `  musterctl taint east example.com/maintenance:NoExecute
  musterctl taint east example.com/maintenance-`,
		Args: cobra.MinimumNArgs(2), ValidArgsFunction: a.completeMembers,
	}
	cmd.Flags().BoolVar(&overwrite, "overwrite", false,
		"replace the value of an existing taint with the same key and effect")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		names, changes, err := parseTaints(args)
		if err != nil {
			return err
		}
		hub, err := a.hubClient()
		if err != nil {
			return err
		}
		now := metav1.Now()
		return a.eachMember(cmd.Context(), hub, names, "tainted", func(member *v1alpha1.MemberCluster) error {
			for _, change := range changes {
				if change.remove {
					member.Spec.Taints = slices.DeleteFunc(member.Spec.Taints, change.matches)
					continue
				}
				taint := change.taint
				if taint.Effect == corev1.TaintEffectNoExecute {
					taint.TimeAdded = &now
				}
				if err := setTaint(member, taint, overwrite); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return cmd
}

// taintChange is an argument of the command taint.
type taintChange struct {
	taint  v1alpha1.Taint
	remove bool
}

// matches reports whether a removal applies to a taint.
func (c taintChange) matches(is v1alpha1.Taint) bool {
	return is.Key == c.taint.Key && (c.taint.Effect == "" || is.Effect == c.taint.Effect)
}

// parseTaints splits the arguments into names of members and taints.
func parseTaints(args []string) (names []string, changes []taintChange, err error) {
	effects := []corev1.TaintEffect{
		corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute,
	}
	for _, arg := range args {
		text, remove := strings.CutSuffix(arg, "-")
		if !remove && !strings.Contains(text, ":") {
			if strings.Contains(text, "=") {
				return nil, nil, usage("taint %s has no effect: add :NoSchedule, :PreferNoSchedule or :NoExecute", arg)
			}
			names = append(names, arg)
			continue
		}
		key, effect, _ := strings.Cut(text, ":")
		key, value, _ := strings.Cut(key, "=")
		taint := v1alpha1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)}
		change := taintChange{remove: remove, taint: taint}
		everyEffect := remove && effect == ""
		if key == "" || !everyEffect && !slices.Contains(effects, change.taint.Effect) {
			return nil, nil, usage("taint %s: must be KEY=VALUE:EFFECT, KEY:EFFECT, KEY:EFFECT- or KEY-, with the effect "+
				"NoSchedule, PreferNoSchedule or NoExecute", arg)
		}
		changes = append(changes, change)
	}
	switch {
	case len(names) == 0:
		return nil, nil, usage("name the members to taint")
	case len(changes) == 0:
		return nil, nil, usage("name a taint, such as example.com/maintenance:NoSchedule")
	}
	return names, changes, nil
}

func (a *app) drainCommand() *cobra.Command {
	var timeout time.Duration
	var dryRun bool
	cmd := &cobra.Command{
		Use: "drain NAME", Short: "Evict Placements from a member within their disruption budgets",
		Long: `Evict Placements from a member: cordon the member, create a PlacementEviction for each Placement and
ClusterPlacement that has selected it, and wait until all evictions are executed. The disruption budget of a Placement
can delay its eviction. Works and add-ons that a user has created for this member stay. Run uncordon afterwards.`,
		Example: "  musterctl drain east\n  musterctl uncordon east",
		Args:    cobra.ExactArgs(1), ValidArgsFunction: a.completeMembers,
	}
	format := outputFlag(cmd)
	cmd.Flags().DurationVar(&timeout, "timeout", 5*time.Minute,
		"maximum time to wait until all evictions are executed; a negative value does not wait")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print the Placements that would be evicted, and change nothing")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		hub, err := a.hubClient()
		if err != nil {
			return err
		}
		return a.drain(cmd.Context(), hub, args[0], drainOptions{format: format, timeout: timeout, dryRun: dryRun})
	}
	return cmd
}

type drainOptions struct {
	format  *output
	timeout time.Duration
	dryRun  bool
}

func (a *app) drain(ctx context.Context, hub *hubClient, member string, o drainOptions) error {
	if !o.dryRun {
		if err := a.cordonQuietly(ctx, hub, member); err != nil {
			return err
		}
	}
	evictions, err := evictionsFor(ctx, hub, member)
	if err != nil {
		return err
	}
	if !o.dryRun {
		if err := a.evict(ctx, hub, member, evictions, o.timeout); err != nil {
			return err
		}
	}
	if o.format.isTable() && len(evictions) == 0 {
		a.note("No Placement has selected %s.", member)
		return nil
	}
	rows := table{header: []string{"NAMESPACE", "PLACEMENT", "EXECUTED"}}
	for _, e := range evictions {
		executed := "False"
		if meta.IsStatusConditionTrue(e.Status.Conditions, placementv1alpha1.ConditionExecuted) {
			executed = "True"
		}
		rows.add(e.Namespace, placementOf(e), executed)
	}
	return o.format.print(a.out, evictions, rows)
}

func (a *app) cordonQuietly(ctx context.Context, hub *hubClient, name string) error {
	_, err := changeMember(ctx, hub, name, cordon)
	return err
}

// evictionsFor returns an eviction for each Placement and each ClusterPlacement that has chosen a member.
func evictionsFor(ctx context.Context, hub *hubClient, member string) ([]*placementv1alpha1.PlacementEviction, error) {
	var decisions placementv1alpha1.PlacementDecisionList
	if err := hub.List(ctx, &decisions); err != nil {
		return nil, fmt.Errorf("list PlacementDecisions: %w", err)
	}
	evictions := []*placementv1alpha1.PlacementEviction{}
	for _, decision := range decisions.Items {
		placement := decision.Labels[placementv1alpha1.PlacementLabel]
		isMember := func(d placementv1alpha1.ClusterDecision) bool { return d.ClusterName == member }
		chosen := slices.ContainsFunc(decision.Decisions, isMember)
		if owner := metav1.GetControllerOf(&decision); owner != nil && owner.Kind == "Placement" {
			placement = owner.Name // The value of a label has a limited length.
		}
		if !chosen {
			continue
		}
		if eviction := clusterEviction(&decision, member); eviction != nil {
			evictions = append(evictions, eviction)
			continue
		}
		if placement == "" {
			continue
		}
		evictions = append(evictions, newEviction(decision.Namespace,
			placementv1alpha1.PlacementEvictionSpec{Placement: placement, Cluster: member}))
	}
	slices.SortFunc(evictions, func(a, b *placementv1alpha1.PlacementEviction) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(placementOf(a), placementOf(b)))
	})
	return evictions, nil
}

// clusterEviction returns an eviction for the ClusterPlacement that owns a decision, or nil if another object owns the
// decision.
func clusterEviction(decision *placementv1alpha1.PlacementDecision,
	member string) *placementv1alpha1.PlacementEviction {
	owner := metav1.GetControllerOf(decision)
	if owner == nil || owner.Kind != "ClusterPlacement" ||
		decision.Namespace != placementv1alpha1.ClusterScopeNamespace {
		return nil
	}
	return newEviction(decision.Namespace,
		placementv1alpha1.PlacementEvictionSpec{ClusterPlacement: owner.Name, Cluster: member})
}

func newEviction(namespace string,
	spec placementv1alpha1.PlacementEvictionSpec) *placementv1alpha1.PlacementEviction {
	return &placementv1alpha1.PlacementEviction{
		TypeMeta: metav1.TypeMeta{APIVersion: placementv1alpha1.GroupVersion.String(), Kind: "PlacementEviction"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: evictionName(spec), Labels: map[string]string{drainLabel: spec.Cluster},
		},
		Spec: spec,
	}
}

// placementOf returns the name of the Placement or ClusterPlacement of an eviction for messages.
func placementOf(e *placementv1alpha1.PlacementEviction) string {
	if e.Spec.ClusterPlacement != "" {
		return "clusterplacement/" + e.Spec.ClusterPlacement
	}
	return e.Spec.Placement
}

// evictionName returns the name of an eviction. Each drain uses the same name, so that a repeated drain continues. The
// hash tells apart member a-b with placement c from member a with placement b-c, and Placements from ClusterPlacements.
func evictionName(spec placementv1alpha1.PlacementEvictionSpec) string {
	sum := sha256.Sum256([]byte(spec.Cluster + "/" + spec.Placement + "/" + spec.ClusterPlacement))
	name := "drain-" + spec.Cluster + "-" + cmp.Or(spec.Placement, spec.ClusterPlacement)
	return name[:min(len(name), maxNameLength-17)] + "-" + hex.EncodeToString(sum[:8])
}

// evict creates the evictions and waits until all are executed.
func (a *app) evict(
	ctx context.Context, hub *hubClient, member string, evictions []*placementv1alpha1.PlacementEviction,
	timeout time.Duration,
) error {
	for _, eviction := range evictions {
		if err := hub.Create(ctx, eviction); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create PlacementEviction %s/%s: %w", eviction.Namespace, eviction.Name, hub.explain(err))
		}
	}
	if timeout < 0 {
		return nil
	}
	report, end := a.progress()
	defer end()
	doing := "wait until the Placements have left " + member
	return await(ctx, report, doing, timeout, func(ctx context.Context) (string, error) {
		var waiting []string
		for _, eviction := range evictions {
			err := hub.Get(ctx, client.ObjectKeyFromObject(eviction), eviction)
			if apierrors.IsNotFound(err) {
				continue // A user has canceled the eviction.
			}
			if err != nil {
				return "", err
			}
			executed := meta.FindStatusCondition(eviction.Status.Conditions, placementv1alpha1.ConditionExecuted)
			placement := eviction.Namespace + "/" + placementOf(eviction)
			switch {
			case executed == nil:
				waiting = append(waiting, placement+": the hub has not observed the eviction")
			case executed.Status != metav1.ConditionTrue:
				waiting = append(waiting, placement+": "+executed.Message)
			}
		}
		return strings.Join(waiting, "; "), nil
	})
}

// pollInterval is the time between two observations of an object for which a command waits.
const pollInterval = 200 * time.Millisecond

// await calls observe repeatedly until it returns an empty reason. It reports each reason as a step.
func await(ctx context.Context, report func(admin.Step), doing string, timeout time.Duration,
	observe func(context.Context) (waiting string, err error),
) error {
	step := admin.Step{Doing: doing}
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for end := time.Now().Add(timeout); ; {
		waiting, err := observe(ctx)
		if err != nil {
			return err
		}
		if waiting == "" {
			step.Detail, step.Done = "", true
			report(step)
			return nil
		}
		step.Detail = waiting
		report(step)
		if !time.Now().Before(end) {
			return &admin.TimeoutError{Doing: doing, After: timeout, Reason: waiting}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}
