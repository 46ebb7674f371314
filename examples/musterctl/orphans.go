package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership/admin"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

func (a *app) getOrphansCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "orphans", Aliases: []string{"orphan"},
		Short: "Show objects on members that belong to no Work any more, and whose deletion was not requested",
		Long: `Show orphans: objects on members that belong to no Work any more, and whose deletion was not requested, for
example after a hub was restored. By default, show the members that report orphans to the hub. With --member-kubeconfig
or --member-context, show the AppliedWorks of the member that have orphans. A Work with the same namespace and name
adopts the orphans. Release deletes them.`,
		Args: cobra.NoArgs,
	}
	a.memberFlags(cmd)
	format := objectOutputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if a.namesMember() {
			list, err := a.appliedWorks(cmd)
			if err != nil {
				return err
			}
			return a.printList(format, list, orphansTable(time.Now(), list.Items...))
		}
		hub, err := a.hubClient()
		if err != nil {
			return err
		}
		list, orphaned := &v1alpha1.MemberClusterList{}, []v1alpha1.MemberCluster{}
		if err := hub.List(cmd.Context(), list); err != nil {
			return err
		}
		rows := table{header: []string{"MEMBER", "OBJECTS", "WORKS", "FIRST WORKS"}}
		for _, m := range list.Items {
			if orphans := m.Status.Orphans; orphans != nil {
				rows.add(m.Name, strconv.FormatInt(orphans.Objects, 10), strconv.FormatInt(orphans.Works, 10),
					strings.Join(orphans.WorkNames, ","))
				orphaned = append(orphaned, m)
			}
		}
		list.Items = orphaned
		return a.printList(format, list, rows)
	}
	return cmd
}

// appliedWorks returns the AppliedWorks of the member that have orphaned objects.
func (a *app) appliedWorks(cmd *cobra.Command) (*workv1alpha1.AppliedWorkList, error) {
	member, err := a.memberClient()
	if err != nil {
		return nil, err
	}
	list, orphaned := &workv1alpha1.AppliedWorkList{}, []workv1alpha1.AppliedWork{}
	if err := member.List(cmd.Context(), list); err != nil {
		return nil, err
	}
	for _, applied := range list.Items {
		if meta.IsStatusConditionTrue(applied.Status.Conditions, workv1alpha1.ConditionOrphaned) {
			orphaned = append(orphaned, applied)
		}
	}
	list.Items = orphaned
	return list, nil
}

func orphansTable(now time.Time, works ...workv1alpha1.AppliedWork) table {
	rows := table{header: []string{"NAME", "WORK", "HUB", "OBJECTS", "SINCE", "REASON"}}
	for _, applied := range works {
		condition := meta.FindStatusCondition(applied.Status.Conditions, workv1alpha1.ConditionOrphaned)
		objects := 0
		for _, resource := range applied.Status.Resources {
			if resource.OrphanedTime != nil {
				objects++
			}
		}
		rows.add(applied.Name, applied.Spec.Work.Namespace+"/"+applied.Spec.Work.Name, applied.Spec.Work.Hub,
			strconv.Itoa(objects),
			age(condition.LastTransitionTime, now), condition.Reason)
	}
	return rows
}

func (a *app) releaseCommand() *cobra.Command {
	var all, yes bool
	cmd := &cobra.Command{
		Use:   "release [NAME...]",
		Short: "Delete orphans of a member",
		Long: `Delete the orphaned objects of AppliedWorks of a member. "get orphans" lists the AppliedWorks. The agent
deletes the objects, except those that a Work has adopted. NAME is the name of an AppliedWork, or the namespace and the
name of its Work on the hub.`,
		Example: `  musterctl get orphans --member-context east
  musterctl release member-east/shop --member-context east`,
	}
	a.memberFlags(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "release all orphans of the member")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask for confirmation")
	cmd.RunE = func(cmd *cobra.Command, names []string) error {
		switch {
		case !a.namesMember():
			return usage("name the member: --member-kubeconfig or --member-context")
		case all == (len(names) > 0):
			return usage("name the AppliedWorks to release, or add --all")
		}
		list, err := a.appliedWorks(cmd)
		if err != nil {
			return err
		}
		released, err := chosen(list.Items, names)
		if err != nil {
			return err
		}
		if !yes && !a.agrees(fmt.Sprintf("Delete the orphaned objects of %d AppliedWorks?", len(released))) {
			return fmt.Errorf("nothing was changed: answer with y, or add --yes")
		}
		member, err := a.memberClient()
		if err != nil {
			return err
		}
		for i := range released {
			applied := &released[i]
			before := applied.DeepCopy()
			if applied.Annotations == nil {
				applied.Annotations = map[string]string{}
			}
			applied.Annotations[workv1alpha1.ReleaseAnnotation] = string(applied.UID)
			if err := member.Patch(cmd.Context(), applied, client.MergeFromWithOptions(before,
				client.MergeFromWithOptimisticLock{})); err != nil {
				return fmt.Errorf("release AppliedWork %s: %w", applied.Name, err)
			}
			fmt.Fprintf(a.out, "appliedwork/%s released\n", applied.Name)
		}
		return nil
	}
	return cmd
}

// chosen returns the AppliedWorks with these names, or all if there are no names. A name can also be the namespace and
// name of a Work, unless AppliedWorks of several hubs match it.
func chosen(works []workv1alpha1.AppliedWork, names []string) ([]workv1alpha1.AppliedWork, error) {
	if len(names) == 0 {
		return works, nil
	}
	var out []workv1alpha1.AppliedWork
	for _, name := range names {
		var same []workv1alpha1.AppliedWork
		for _, applied := range works {
			if applied.Name == name || applied.Spec.Work.Namespace+"/"+applied.Spec.Work.Name == name {
				same = append(same, applied)
			}
		}
		switch len(same) {
		case 0:
			return nil, fmt.Errorf("AppliedWork %s with orphaned objects: %w", name, admin.ErrNotFound)
		case 1:
			out = append(out, same[0])
		default:
			return nil, usage("several hubs have a Work %s: name the AppliedWork, such as %s", name, same[0].Name)
		}
	}
	return out, nil
}
