package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership/admin"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

func (a *app) getCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "get", Short: "Show what is in the fleet"}
	cmd.AddCommand(a.getMembersCommand(), a.getTokensCommand(), a.getTokenCommand(), a.getOrphansCommand())
	return cmd
}

func (a *app) getMembersCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "members [NAME...]", Aliases: []string{"member", "mc"}, Short: "Show members, and why one is not well", ValidArgsFunction: a.completeMembers,
	}
	var selector string
	format := outputFlag(cmd)
	cmd.Flags().StringVarP(&selector, "selector", "l", "", "label selector")
	cmd.RunE = func(cmd *cobra.Command, names []string) error {
		hub, err := a.hubClient()
		if err != nil {
			return err
		}
		options := &client.ListOptions{Raw: &metav1.ListOptions{LabelSelector: selector}}
		list := &v1alpha1.MemberClusterList{}
		if err := hub.List(cmd.Context(), list, options); err != nil {
			return err
		}
		if list.Items, err = named(list.Items, names); err != nil {
			return err
		}
		return a.printList(format, list, membersTable(time.Now(), list.Items...))
	}
	return cmd
}

// named returns the members of these names, or all when there are none.
func named(members []v1alpha1.MemberCluster, names []string) ([]v1alpha1.MemberCluster, error) {
	if len(names) == 0 {
		return members, nil
	}
	for _, name := range names {
		if !slices.ContainsFunc(members, func(m v1alpha1.MemberCluster) bool { return m.Name == name }) {
			return nil, fmt.Errorf("member %s: %w", name, admin.ErrNotFound)
		}
	}
	return slices.DeleteFunc(members, func(m v1alpha1.MemberCluster) bool { return !slices.Contains(names, m.Name) }), nil
}

func membersTable(now time.Time, members ...v1alpha1.MemberCluster) table {
	rows := table{header: []string{"NAME", "PHASE", "HEALTHY", "MODE", "VERSION", "CPU", "MEMORY", "AGE", "WHY"}}
	for _, m := range members {
		healthy, why := "Unknown", ""
		for _, kind := range []string{
			v1alpha1.ConditionAccepted, v1alpha1.ConditionReachable, v1alpha1.ConditionInstalled, v1alpha1.ConditionReadyToJoin, v1alpha1.ConditionJoined,
			v1alpha1.ConditionHealthy, v1alpha1.ConditionCredentialValid, v1alpha1.ConditionClusterIDUnique,
			v1alpha1.ConditionNoOrphans,
		} {
			c := meta.FindStatusCondition(m.Status.Conditions, kind)
			if c == nil {
				continue
			}
			if kind == v1alpha1.ConditionHealthy {
				healthy = string(c.Status)
			}
			if c.Status != metav1.ConditionTrue && why == "" {
				why = c.Message
			}
		}
		switch accepted := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionAccepted); {
		case len(m.Status.Conditions) == 0:
			why = "the hub has not looked at it yet"
		case accepted != nil && accepted.ObservedGeneration < m.Generation:
			why = "the hub has not looked at it since it was changed"
		}
		resources := m.Status.Resources.Allocatable
		var cpu, memory string
		if len(resources) > 0 {
			cpu, memory = resources.Cpu().String(), resources.Memory().String()
		}
		rows.add(m.Name, cmp.Or(string(m.Status.Phase), string(v1alpha1.PhasePending)), healthy, cmp.Or(string(m.Spec.JoinMode), string(v1alpha1.JoinPull)),
			m.Status.Version.Kubernetes, cpu, memory, age(m.CreationTimestamp, now), why)
	}
	return rows
}

func (a *app) acceptCommand() *cobra.Command {
	return a.decideCommand("accept", "Let a cluster in that waits for it", admin.Accept)
}

func (a *app) denyCommand() *cobra.Command {
	return a.decideCommand("deny", "Refuse a cluster; a member loses its permissions on the hub at once", admin.Deny)
}

func (a *app) decideCommand(verb, short string, decide func(context.Context, *rest.Config, string, admin.DecideOptions) (*v1alpha1.MemberCluster, error)) *cobra.Command {
	o := admin.DecideOptions{}
	cmd := &cobra.Command{
		Use: verb + " NAME", Short: short,
		Long: short + ".\n\nIt is named by its MemberCluster, by its JoinRequest, or by the name that its JoinRequest wants.",
		Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeMembers,
	}
	format := outputFlag(cmd)
	namespaceFlag(cmd, &o.RegistrationNamespace)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		hub, err := a.hub()
		if err != nil {
			return err
		}
		member, err := decide(cmd.Context(), hub, args[0], o)
		if err != nil {
			return err
		}
		return format.print(a.out, asObject(member), membersTable(time.Now(), *member))
	}
	return cmd
}

// asObject has an object say what it is.
func asObject(object client.Object) client.Object {
	switch object.(type) {
	case *v1alpha1.MemberCluster:
		object.GetObjectKind().SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("MemberCluster"))
	case *v1alpha1.JoinToken:
		object.GetObjectKind().SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("JoinToken"))
	}
	object.SetManagedFields(nil)
	return object
}

// printList prints a list, whose objects say what they are as kubectl has it.
func (a *app) printList(format *output, list client.ObjectList, rows table) error {
	switch l := list.(type) {
	case *v1alpha1.MemberClusterList:
		l.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("MemberClusterList"))
		for i := range l.Items {
			asObject(&l.Items[i])
		}
	case *workv1alpha1.AppliedWorkList:
		kind := workv1alpha1.GroupVersion.WithKind("AppliedWork")
		l.SetGroupVersionKind(workv1alpha1.GroupVersion.WithKind("AppliedWorkList"))
		for i := range l.Items {
			l.Items[i].SetGroupVersionKind(kind)
			l.Items[i].ManagedFields = nil
		}
	case *v1alpha1.JoinTokenList:
		l.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("JoinTokenList"))
		for i := range l.Items {
			asObject(&l.Items[i])
		}
	}
	if *format == "table" && len(rows.rows) == 0 {
		a.note("There are none.")
		return nil
	}
	return format.print(a.out, list, rows)
}

// note tells a person something that is no result.
func (a *app) note(format string, args ...any) { fmt.Fprintf(a.err, format+"\n", args...) }

// line writes a result.
func (a *app) line(format string, args ...any) error {
	_, err := fmt.Fprintf(a.out, format+"\n", args...)
	return err
}

const completionTimeout = 3 * time.Second

// completeMembers lists the names of members for a shell.
func (a *app) completeMembers(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return a.complete(cmd, &v1alpha1.MemberClusterList{})
}

// completeTokens lists the names of join tokens.
func (a *app) completeTokens(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	namespace, _ := cmd.Flags().GetString("registration-namespace")
	return a.complete(cmd, &v1alpha1.JoinTokenList{}, client.InNamespace(namespace))
}

func (a *app) complete(cmd *cobra.Command, list client.ObjectList, options ...client.ListOption) ([]cobra.Completion, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()
	hub, err := a.hubClient()
	if err != nil || hub.List(ctx, list, options...) != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []cobra.Completion
	err = meta.EachListItem(list, func(object runtime.Object) error {
		names = append(names, object.(client.Object).GetName())
		return nil
	})
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
