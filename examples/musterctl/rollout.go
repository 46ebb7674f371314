package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

func (a *app) rolloutCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "rollout", Short: "Manage the rollout of a WorkSet"}
	cmd.AddCommand(a.rolloutStatusCommand(), a.rolloutHistoryCommand(), a.rolloutApproveCommand(), a.rolloutUndoCommand(),
		a.rolloutStateCommand("pause", "Pause a rollout after the updates in progress", v1alpha1.RolloutPause),
		a.rolloutStateCommand("resume", "Resume a paused or stopped rollout", v1alpha1.RolloutRun))
	return requireSubcommand(cmd)
}

// workSetFlags are the flags of commands for one WorkSet.
type workSetFlags struct {
	namespace    string
	clusterScope bool
}

func (f *workSetFlags) add(cmd *cobra.Command) {
	cmd.Args = cobra.ExactArgs(1)
	cmd.Flags().StringVarP(&f.namespace, "namespace", "n", "", "namespace of the WorkSet (default that of the context)")
	cmd.Flags().BoolVar(&f.clusterScope, "cluster-scope", false, "the WorkSet is a ClusterWorkSet")
	cmd.MarkFlagsMutuallyExclusive("namespace", "cluster-scope")
}

// workSet returns the hub and the key of the WorkSet.
func (a *app) workSet(f *workSetFlags, args []string) (*hubClient, client.ObjectKey, error) {
	hub, err := a.hubClient()
	if err == nil && f.namespace == "" && !f.clusterScope {
		f.namespace, err = a.contextNamespace()
	}
	return hub, client.ObjectKey{Namespace: f.namespace, Name: args[0]}, err
}

func getWorkSet(ctx context.Context, hub *hubClient, key client.ObjectKey) (*v1alpha1.WorkSet, error) {
	set := &v1alpha1.WorkSet{}
	set.Namespace = key.Namespace
	err := hub.Get(ctx, key, workSetObject(set))
	if apierrors.IsNotFound(err) && key.Namespace == "" {
		return nil, fmt.Errorf("ClusterWorkSet %s: %w", key.Name, errNotFoundHere)
	}
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("WorkSet %s in namespace %s: %w", key.Name, key.Namespace, errNotFoundHere)
	}
	return set, err
}

// workSetObject returns the ClusterWorkSet if a WorkSet has no namespace. Both kinds have the same fields.
func workSetObject(set *v1alpha1.WorkSet) client.Object {
	if set.Namespace == "" {
		return (*v1alpha1.ClusterWorkSet)(set)
	}
	return set
}

// changeWorkSet changes the spec of a WorkSet, and retries on conflicts with other writers.
func changeWorkSet(
	ctx context.Context, hub *hubClient, key client.ObjectKey, change func(*v1alpha1.WorkSet) error,
) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		set, err := getWorkSet(ctx, hub, key)
		if err != nil {
			return err
		}
		before := set.DeepCopy()
		if err := change(set); err != nil {
			return err
		}
		return hub.Patch(ctx, workSetObject(set), client.MergeFromWithOptions(workSetObject(before),
			client.MergeFromWithOptimisticLock{}))
	})
}

func (a *app) rolloutStatusCommand() *cobra.Command {
	var watch bool
	var timeout time.Duration
	f := &workSetFlags{}
	cmd := &cobra.Command{
		Use: "status WORKSET", Short: "Wait until a rollout is complete, and show its stages",
		Long: `Wait until a rollout is complete, and show its stages. The exit code is 1 if the rollout has failed or was
rolled back, and 4 if it is not complete within --timeout.`,
	}
	f.add(cmd)
	format := outputFlag(cmd)
	cmd.Flags().BoolVarP(&watch, "watch", "w", true, "wait until the rollout is complete")
	cmd.Flags().DurationVar(&timeout, "timeout", 10*time.Minute, "maximum time to wait until the rollout is complete")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		hub, key, err := a.workSet(f, args)
		if err != nil {
			return err
		}
		var set *v1alpha1.WorkSet
		observe := func(ctx context.Context) (waiting string, err error) {
			if set, err = getWorkSet(ctx, hub, key); err != nil {
				return "", err
			}
			return rolloutWaits(set)
		}
		if watch {
			report, end := a.progress()
			err = await(cmd.Context(), report, "wait for the rollout of WorkSet "+key.Name, timeout, observe)
			end()
		} else {
			set, err = getWorkSet(cmd.Context(), hub, key)
		}
		if set == nil {
			return err
		}
		if printed := format.print(a.out, set.Status.Rollout, rolloutTable(set)); printed != nil {
			return printed
		}
		return err
	}
	return cmd
}

// rolloutWaits returns the reason why a rollout is not complete. It returns an error if the rollout does not continue
// by itself.
func rolloutWaits(set *v1alpha1.WorkSet) (waiting string, err error) {
	rollout := set.Status.Rollout
	if set.Status.ObservedGeneration < set.Generation || rollout.Phase == "" {
		return "the hub has not observed the WorkSet", nil
	}
	switch rollout.Phase {
	case v1alpha1.PhaseSucceeded:
		return "", nil
	case v1alpha1.PhaseFailed, v1alpha1.PhaseRolledBack, v1alpha1.PhaseStopped:
		return "", fmt.Errorf("the rollout of WorkSet %s is %s: %s", set.Name, rollout.Phase, rollout.Message)
	default:
		return cmp.Or(rollout.Message, string(rollout.Phase)), nil
	}
}

func rolloutTable(set *v1alpha1.WorkSet) table {
	rows := table{header: []string{"STAGE", "PHASE", "CLUSTERS", "SUCCEEDED", "PROGRESSING", "FAILED", "REVISION"}}
	add := func(name string, phase v1alpha1.RolloutPhase, c v1alpha1.RolloutCounts) {
		number := func(n int32) string { return strconv.Itoa(int(n)) }
		rows.add(name, string(phase), number(c.Total), number(c.Succeeded), number(c.Progressing+c.Soaking),
			number(c.Failed+c.TimedOut), set.Status.Rollout.Revision)
	}
	for _, stage := range set.Status.Rollout.Stages {
		add(stage.Name, stage.Phase, stage.RolloutCounts)
	}
	add("(all)", set.Status.Rollout.Phase, set.Status.Rollout.RolloutCounts)
	return rows
}

func (a *app) rolloutHistoryCommand() *cobra.Command {
	f := &workSetFlags{}
	cmd := &cobra.Command{Use: "history WORKSET", Short: "List the revisions of a WorkSet"}
	f.add(cmd)
	format := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		hub, key, err := a.workSet(f, args)
		if err != nil {
			return err
		}
		set, err := getWorkSet(cmd.Context(), hub, key)
		if err != nil {
			return err
		}
		return format.print(a.out, set.Status.Revisions, historyTable(set, time.Now()))
	}
	return cmd
}

func historyTable(set *v1alpha1.WorkSet, now time.Time) table {
	rows := table{header: []string{"NUMBER", "REVISION", "CLUSTERS", "STATE", "AGE"}}
	for _, r := range byNumber(set.Status.Revisions) {
		var state string
		switch r.Name {
		case set.Status.Rollout.Revision:
			state = "Desired"
		case set.Status.Rollout.StableRevision:
			state = "Stable"
		}
		rows.add(strconv.FormatInt(r.Number, 10), r.Name, strconv.Itoa(int(r.Clusters)), state, age(r.CreatedAt, now))
	}
	return rows
}

func byNumber(revisions []v1alpha1.RevisionSummary) []v1alpha1.RevisionSummary {
	return slices.SortedFunc(slices.Values(revisions), func(a, b v1alpha1.RevisionSummary) int {
		return cmp.Compare(a.Number, b.Number)
	})
}

func (a *app) rolloutStateCommand(verb, short string, state v1alpha1.RolloutState) *cobra.Command {
	f := &workSetFlags{}
	cmd := &cobra.Command{Use: verb + " WORKSET", Short: short}
	f.add(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		hub, key, err := a.workSet(f, args)
		if err != nil {
			return err
		}
		err = changeWorkSet(cmd.Context(), hub, key, func(set *v1alpha1.WorkSet) error {
			set.Spec.Rollout.State = state
			return nil
		})
		if err != nil {
			return err
		}
		return a.line("workset/%s %sd", key.Name, verb)
	}
	return cmd
}

func (a *app) rolloutApproveCommand() *cobra.Command {
	f := &workSetFlags{}
	var stage, revision string
	var after bool
	cmd := &cobra.Command{
		Use: "approve WORKSET", Short: "Approve the stage that waits for approval",
		Long: `Approve the stage that waits for approval. An approval is valid for one revision. With --stage, a stage
can be approved before the rollout reaches it.`,
		Example: "  musterctl rollout approve shop -n apps\n  musterctl rollout approve shop -n apps --stage production",
	}
	f.add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&stage, "stage", "", "stage to approve (default the stage that waits for approval)")
	flags.BoolVar(&after, "after", false,
		"approve the gate after the stage instead of the gate before it; requires --stage")
	flags.StringVar(&revision, "revision", "", "revision to approve (default the revision that is being rolled out)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if after && stage == "" {
			return usage("--after requires --stage")
		}
		hub, key, err := a.workSet(f, args)
		if err != nil {
			return err
		}
		approval := v1alpha1.RolloutApproval{Revision: revision, Stage: stage, Gate: v1alpha1.GateBefore}
		if after {
			approval.Gate = v1alpha1.GateAfter
		}
		err = changeWorkSet(cmd.Context(), hub, key, func(set *v1alpha1.WorkSet) error {
			if err := complete(&approval, set); err != nil {
				return err
			}
			if !slices.Contains(set.Spec.Approvals, approval) {
				set.Spec.Approvals = append(set.Spec.Approvals, approval)
			}
			return nil
		})
		if err != nil {
			return err
		}
		return a.line("workset/%s: stage %s approved (gate %s, revision %s)",
			key.Name, approval.Stage, approval.Gate, approval.Revision)
	}
	return cmd
}

// complete sets the revision, and the gate for which the rollout waits, in an approval that does not contain them.
func complete(approval *v1alpha1.RolloutApproval, set *v1alpha1.WorkSet) error {
	if approval.Revision = cmp.Or(approval.Revision, set.Status.Rollout.Revision); approval.Revision == "" {
		return fmt.Errorf("WorkSet %s has no revision yet: retry when the hub has observed it", set.Name)
	}
	if approval.Stage != "" {
		named := func(s v1alpha1.RolloutStage) bool { return s.Name == approval.Stage }
		if !slices.ContainsFunc(set.Spec.Rollout.Stages, named) {
			return usage("WorkSet %s has no stage %s in spec.rollout.stages", set.Name, approval.Stage)
		}
		return nil
	}
	for _, status := range set.Status.Rollout.Stages {
		if status.Phase != v1alpha1.PhaseWaitingForApproval {
			continue
		}
		approval.Stage = status.Name
		// A stage whose clusters are updated waits for the gate after it.
		if status.Succeeded > 0 && status.Succeeded+status.Failed+status.TimedOut == status.Total {
			approval.Gate = v1alpha1.GateAfter
		}
		return nil
	}
	return fmt.Errorf("the rollout of WorkSet %s does not wait for an approval: its phase is %s. "+
		"Name a --stage to approve it in advance", set.Name, cmp.Or(set.Status.Rollout.Phase, "unknown"))
}

func (a *app) rolloutUndoCommand() *cobra.Command {
	f := &workSetFlags{}
	var to string
	cmd := &cobra.Command{
		Use: "undo WORKSET", Short: "Roll back a WorkSet to an earlier revision",
		Long: `Roll back a WorkSet to an earlier revision, by default to the revision before the current one. The WorkSet
stays at this revision, even if its objects change. To roll out its current objects again, run
"rollout undo --to-revision latest".`,
		Example: "  musterctl rollout undo shop -n apps\n  musterctl rollout undo shop -n apps --to-revision 3\n" +
			"  musterctl rollout undo shop -n apps --to-revision latest",
	}
	f.add(cmd)
	cmd.Flags().StringVar(&to, "to-revision", "", `number or name of the revision as in "rollout history", or latest`)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		hub, key, err := a.workSet(f, args)
		if err != nil {
			return err
		}
		var revision string
		err = changeWorkSet(cmd.Context(), hub, key, func(set *v1alpha1.WorkSet) error {
			if revision, err = earlierRevision(set, to); err != nil {
				return err
			}
			set.Spec.Revision = revision
			return nil
		})
		if err != nil {
			return err
		}
		if revision == "" {
			return a.line("workset/%s follows its objects", key.Name)
		}
		return a.line("workset/%s rolled back to revision %s", key.Name, revision)
	}
	return cmd
}

// earlierRevision returns the name of the revision for a rollback. An empty name means the latest content.
func earlierRevision(set *v1alpha1.WorkSet, to string) (string, error) {
	if to == "latest" {
		return "", nil
	}
	revisions := byNumber(set.Status.Revisions)
	if to != "" {
		for _, r := range revisions {
			if r.Name == to || strconv.FormatInt(r.Number, 10) == to {
				return r.Name, nil
			}
		}
		return "", usage("WorkSet %s has no revision %s: see rollout history", set.Name, to)
	}
	current := slices.IndexFunc(revisions, func(r v1alpha1.RevisionSummary) bool {
		return r.Name == set.Status.Rollout.Revision
	})
	if current <= 0 {
		return "", fmt.Errorf("WorkSet %s has no revision before the current one", set.Name)
	}
	return revisions[current-1].Name, nil
}
