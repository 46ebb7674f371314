package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership/admin"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

func (a *app) getCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "get", Short: "Show objects of the fleet"}
	cmd.AddCommand(a.getMembersCommand(), a.getTokensCommand(), a.getTokenCommand(), a.getOrphansCommand())
	for _, r := range shownKinds {
		cmd.AddCommand(a.getResourceCommand(r))
	}
	return requireSubcommand(cmd)
}

func (a *app) getMembersCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "members [NAME...]", Aliases: []string{"member", "mc"},
		Short:             "Show members, their health and the reason of a problem",
		ValidArgsFunction: a.completeMembers,
	}
	var selector string
	var watch bool
	format := objectOutputFlag(cmd)
	cmd.Flags().StringVarP(&selector, "selector", "l", "", "label selector")
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "after the list, show changes until the command is interrupted")
	cmd.RunE = func(cmd *cobra.Command, names []string) error {
		if watch && !format.isTable() {
			return usage("--watch requires -o table or wide")
		}
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
		if err := a.printMembers(format, list, len(names) == 1); err != nil || !watch {
			return err
		}
		return a.watchMembers(cmd.Context(), format, names, &metav1.ListOptions{
			LabelSelector: selector, ResourceVersion: list.ResourceVersion,
		})
	}
	return cmd
}

// watchMembers prints a row for each change until the context ends.
func (a *app) watchMembers(ctx context.Context, format *output, names []string, options *metav1.ListOptions) error {
	config, err := a.hub()
	if err != nil {
		return err
	}
	config.Timeout = 0 // A watch has no end.
	hub, err := newClient(config)
	if err != nil {
		return err
	}
	changes, err := hub.Watch(ctx, &v1alpha1.MemberClusterList{}, &client.ListOptions{Raw: options})
	if err != nil {
		return err
	}
	defer changes.Stop()
	for change := range changes.ResultChan() {
		member, is := change.Object.(*v1alpha1.MemberCluster)
		switch {
		case ctx.Err() != nil:
			return nil // The user has ended the watch, which may return an error.
		case !is:
			return apierrors.FromObject(change.Object)
		}
		if len(names) > 0 && !slices.Contains(names, member.Name) {
			continue
		}
		rows := membersTable(time.Now(), *member)
		if format.format == outputWide {
			rows = wideMembersTable(time.Now(), *member)
		}
		if err := rows.writeRows(a.out, false); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return errors.New("the API server has ended the watch: repeat the command")
}

// named returns the members with these names, or all members if there are no names.
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
			v1alpha1.ConditionAccepted, v1alpha1.ConditionReachable, v1alpha1.ConditionInstalled, v1alpha1.ConditionReadyToJoin,
			v1alpha1.ConditionJoined,
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
			why = "the hub has not observed the MemberCluster"
		case accepted != nil && accepted.ObservedGeneration < m.Generation:
			why = "the hub has not observed the last change of the MemberCluster"
		}
		resources := m.Status.Resources.Allocatable
		var cpu, memory string
		if len(resources) > 0 {
			cpu, memory = resources.Cpu().String(), resources.Memory().String()
		}
		rows.add(m.Name, cmp.Or(string(m.Status.Phase), string(v1alpha1.PhasePending)), healthy,
			cmp.Or(string(m.Spec.JoinMode), string(v1alpha1.JoinPull)),
			m.Status.Version.Kubernetes, cpu, memory, age(m.CreationTimestamp, now), why)
	}
	return rows
}

// wideMembersTable returns membersTable with additional columns.
func wideMembersTable(now time.Time, members ...v1alpha1.MemberCluster) table {
	rows := membersTable(now, members...)
	why := len(rows.header) - 1
	rows.header = slices.Insert(rows.header, why, "NODES", "LAST SEEN", "NAMESPACE", "CLUSTER-ID")
	for i, m := range members {
		var nodes, seen string
		for _, property := range m.Status.Properties {
			if property.Name == agent.PropertyNodeCount {
				nodes = property.Value
			}
		}
		for _, a := range m.Status.Agents {
			if a.Type == v1alpha1.MembershipAgent && a.LastHeartbeat != nil {
				seen = age(metav1.NewTime(a.LastHeartbeat.Time), now)
			}
		}
		rows.rows[i] = slices.Insert(rows.rows[i], why, nodes, seen, m.Status.Namespace, m.Spec.ClusterID)
	}
	return rows
}

func (a *app) acceptCommand() *cobra.Command {
	return a.decideCommand("accept", "Accept clusters that have requested to join", admin.Accept)
}

func (a *app) denyCommand() *cobra.Command {
	return a.decideCommand("deny",
		"Deny clusters and revoke the permissions of members on the hub immediately", admin.Deny)
}

type decideFunc func(context.Context, *rest.Config, string, admin.DecideOptions) (*v1alpha1.MemberCluster, error)

func (a *app) decideCommand(verb, short string, decide decideFunc) *cobra.Command {
	o := admin.DecideOptions{}
	var all bool
	var wait time.Duration
	cmd := &cobra.Command{
		Use: verb + " NAME...", Short: short,
		Long: short + `.

NAME is the name of the MemberCluster or of the JoinRequest of a cluster, or the name that its JoinRequest requests.`,
		ValidArgsFunction: a.completeMembers,
	}
	format := objectOutputFlag(cmd)
	flags := cmd.Flags()
	namespaceFlag(cmd, &o.RegistrationNamespace)
	if verb == "accept" {
		cmd.Example = "  musterctl accept east west --wait 2m\n  musterctl accept --all"
		flags.BoolVar(&all, "all", false, "accept all clusters on which no administrator has decided")
		flags.DurationVar(&wait, "wait", 0, "maximum time to wait until the clusters have joined (default do not wait)")
	}
	cmd.RunE = func(cmd *cobra.Command, names []string) error {
		if all == (len(names) > 0) {
			if verb == "accept" {
				return usage("name the clusters to accept, or use --all: see musterctl get members")
			}
			return usage("name the clusters to %s", verb)
		}
		hub, err := a.hubClient()
		if err != nil {
			return err
		}
		if all {
			if names, err = undecided(cmd.Context(), hub); err != nil {
				return err
			}
		}
		config, err := a.hub()
		if err != nil {
			return err
		}
		members := &v1alpha1.MemberClusterList{}
		for _, name := range names {
			member, err := decide(cmd.Context(), config, name, o)
			if err != nil {
				return err
			}
			members.Items = append(members.Items, *member)
		}
		if wait > 0 {
			if err := a.awaitJoined(cmd.Context(), hub, members.Items, wait); err != nil {
				return err
			}
		}
		return a.printMembers(format, members, len(names) == 1 && !all)
	}
	return cmd
}

// undecided returns the members that an administrator has neither accepted nor denied.
func undecided(ctx context.Context, hub *hubClient) (names []string, err error) {
	var members v1alpha1.MemberClusterList
	if err := hub.List(ctx, &members); err != nil {
		return nil, err
	}
	for _, m := range members.Items {
		if m.Spec.Accepted == nil && m.DeletionTimestamp == nil {
			names = append(names, m.Name)
		}
	}
	return names, nil
}

// awaitJoined waits until members have joined, and reads them again.
func (a *app) awaitJoined(
	ctx context.Context, hub *hubClient, members []v1alpha1.MemberCluster, timeout time.Duration,
) error {
	report, end := a.progress()
	defer end()
	for i := range members {
		member := &members[i]
		doing := "wait until " + member.Name + " has joined"
		err := await(ctx, report, doing, timeout, func(ctx context.Context) (string, error) {
			if err := hub.Get(ctx, client.ObjectKeyFromObject(member), member); err != nil {
				return "", err
			}
			joined := meta.FindStatusCondition(member.Status.Conditions, v1alpha1.ConditionJoined)
			switch {
			case joined == nil:
				return "the hub has not observed the MemberCluster", nil
			case joined.Status != metav1.ConditionTrue:
				return joined.Message, nil
			}
			return "", nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// printMembers prints a list of members, or the member itself if single is true.
func (a *app) printMembers(format *output, members *v1alpha1.MemberClusterList, single bool) error {
	rows := membersTable(time.Now(), members.Items...)
	if format.format == outputWide {
		rows = wideMembersTable(time.Now(), members.Items...)
	}
	if single {
		return format.print(a.out, asObject(&members.Items[0]), rows)
	}
	return a.printList(format, members, rows)
}

// asObject sets the apiVersion and kind of an object, and removes its managed fields.
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

// printList prints a list. It sets the apiVersion and kind of the list and its items, as kubectl does.
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
	if format.isTable() && len(rows.rows) == 0 {
		a.note("No resources found.")
		return nil
	}
	return format.print(a.out, list, rows)
}

// note prints a message that is not part of the result to stderr.
func (a *app) note(format string, args ...any) { fmt.Fprintf(a.err, format+"\n", args...) }

// line prints a line of the result to stdout.
func (a *app) line(format string, args ...any) error {
	_, err := fmt.Fprintf(a.out, format+"\n", args...)
	return err
}

const completionTimeout = 3 * time.Second

// completeMembers returns the names of members for shell completion.
func (a *app) completeMembers(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return a.complete(cmd, &v1alpha1.MemberClusterList{})
}

// completeTokens returns the names of join tokens for shell completion.
func (a *app) completeTokens(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	namespace, _ := cmd.Flags().GetString("registration-namespace")
	return a.complete(cmd, &v1alpha1.JoinTokenList{}, client.InNamespace(namespace))
}

func (a *app) complete(cmd *cobra.Command, list client.ObjectList,
	options ...client.ListOption) ([]cobra.Completion, cobra.ShellCompDirective) {
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
