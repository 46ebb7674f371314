package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/deploy"
	"github.com/muster-sdk/muster/membership/admin"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

const (
	actionDelete = "delete"
	actionKeep   = "keep"
)

func (a *app) cleanHubCommand() *cobra.Command {
	var yes, dryRun bool
	cmd := &cobra.Command{
		Use:   "hub",
		Short: "Remove the hub program that init has deployed",
		Long: `Remove the hub program that init has deployed, and its permissions. Objects that another tool manages stay.

The command fails if the hub has MemberClusters or JoinTokens: members would keep an agent without a hub, and the
credentials of join tokens would stay valid. Namespaces, CustomResourceDefinitions and their objects stay, because the
deletion of a CustomResourceDefinition deletes all of its objects. To run the hub again with these objects, use init.`,
		Args: cobra.NoArgs,
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask for confirmation")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print what would be deleted, and delete nothing")
	format := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		hub, err := a.hubClient()
		if err != nil {
			return err
		}
		results, err := a.cleanHub(cmd.Context(), hub, yes, dryRun)
		if err != nil {
			return hub.explain(err)
		}
		return format.print(a.out, results, appliedTable(results))
	}
	return cmd
}

func (a *app) cleanHub(ctx context.Context, hub *hubClient, yes, dryRun bool) ([]applied, error) {
	if err := a.mayCleanHub(ctx, hub); err != nil {
		return nil, err
	}
	objects, err := deploy.Hub(deploy.HubComponents()...)
	if err != nil {
		return nil, err
	}
	if !dryRun && !yes && !a.agrees(fmt.Sprintf("Remove the hub program from the cluster at %s?", hub.server)) {
		return nil, errNotConfirmed
	}
	results, err := remove(ctx, hub.Client, objects, dryRun)
	if err == nil && !dryRun {
		a.note("Namespaces, CustomResourceDefinitions and their objects stay.")
	}
	return results, err
}

var errNotConfirmed = errors.New("nothing was changed: answer with y, or add --yes")

// remove deletes objects in the reverse order of apply. The program is deleted first, because it must not run without
// its permissions. Namespaces and CustomResourceDefinitions, which may contain other objects, and objects that
// musterctl has not applied remain. An error names the object, and the next call continues.
func remove(ctx context.Context, c client.Client, objects []*unstructured.Unstructured,
	dryRun bool) ([]applied, error) {
	var results []applied
	for _, object := range slices.Backward(objects) {
		if kind := object.GetKind(); kind == "Namespace" || kind == "CustomResourceDefinition" {
			continue
		}
		current := &unstructured.Unstructured{}
		current.SetGroupVersionKind(object.GroupVersionKind())
		err := c.Get(ctx, client.ObjectKeyFromObject(object), current)
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			continue
		}
		doing := fmt.Sprintf("delete %s %s", object.GetKind(), object.GetName())
		if err != nil {
			return results, fmt.Errorf("%s: %w", doing, err)
		}
		result := about(object, actionDelete)
		if !ownedByMusterctl(current) {
			result.Action = actionKeep
		} else if !dryRun {
			err := c.Delete(ctx, current, preconditions(current), client.PropagationPolicy(metav1.DeletePropagationBackground))
			if client.IgnoreNotFound(err) != nil {
				return results, fmt.Errorf("%s: %w", doing, err)
			}
		}
		results = append(results, result)
	}
	return results, nil
}

// mayCleanHub returns a [*admin.PreflightError] with the objects whose deletion requires a running hub.
func (a *app) mayCleanHub(ctx context.Context, hub *hubClient) error {
	members, tokens := &v1alpha1.MemberClusterList{}, &v1alpha1.JoinTokenList{}
	for _, list := range []client.ObjectList{members, tokens} {
		if err := hub.Client.List(ctx, list); err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
			return fmt.Errorf("list the members and join tokens of the hub: %w", err)
		}
	}
	var findings []admin.Finding
	if count := len(members.Items); count > 0 {
		findings = append(findings, admin.Finding{
			Check:   "members",
			Problem: fmt.Sprintf("the hub has %d members: %s", count, someNames(members)),
			Fix:     fmt.Sprintf("remove the members first: %s unjoin NAME", a.program),
		})
	}
	if count := len(tokens.Items); count > 0 {
		findings = append(findings, admin.Finding{
			Check:   "join tokens",
			Problem: fmt.Sprintf("the hub has %d join tokens, whose credentials stay valid: %s", count, someNames(tokens)),
			Fix:     fmt.Sprintf("delete the join tokens first: %s token delete NAME...", a.program),
		})
	}
	if len(findings) == 0 {
		return nil
	}
	return &admin.PreflightError{Findings: findings}
}

// someNames returns the first five names of a list.
func someNames(list client.ObjectList) string {
	const limit = 5
	var names []string
	_ = meta.EachListItem(list, func(item runtime.Object) error {
		names = append(names, item.(client.Object).GetName())
		return nil
	})
	if len(names) > limit {
		names = append(names[:limit], "…")
	}
	return strings.Join(names, ", ")
}

// ownedByMusterctl reports whether musterctl has applied an object.
func ownedByMusterctl(object client.Object) bool {
	return slices.ContainsFunc(object.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == fieldOwner && entry.Operation == metav1.ManagedFieldsOperationApply
	})
}

// preconditions returns the preconditions of a delete. Those of a Deployment do not contain the resourceVersion,
// because its controller writes the status at any time.
func preconditions(object client.Object) client.Preconditions {
	uid, version := object.GetUID(), object.GetResourceVersion()
	if object.GetObjectKind().GroupVersionKind().Kind == "Deployment" {
		return client.Preconditions{UID: &uid}
	}
	return client.Preconditions{UID: &uid, ResourceVersion: &version}
}

func (a *app) cleanAgentCommand() *cobra.Command {
	var yes, dryRun bool
	var namespace string
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Remove the agent that register has deployed from a cluster that is not a member any more",
		Long: `Remove the agent that register has deployed, and its permissions, from a cluster that is not a member any more.
Objects that another tool manages, the namespace, the CustomResourceDefinition of AppliedWork and the objects of Works
stay.

The command fails if the cluster is a member. Run unjoin first, or clean if the hub does not exist any more.`,
		Args: cobra.NoArgs,
	}
	a.memberFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&namespace, "namespace", agent.DefaultNamespace, "namespace of the agent")
	flags.BoolVarP(&yes, "yes", "y", false, "do not ask for confirmation")
	flags.BoolVar(&dryRun, "dry-run", false, "print what would be deleted, and delete nothing")
	format := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if !a.namesMember() {
			return usage("name the cluster of the agent: --member-kubeconfig or --member-context")
		}
		config, err := a.member()
		if err != nil {
			return err
		}
		member, err := newClient(config)
		if err != nil {
			return err
		}
		if err := a.mayCleanAgent(cmd.Context(), member, namespace); err != nil {
			return err
		}
		objects, err := deployedAgent(cmd.Context(), member, namespace)
		if err != nil {
			return err
		}
		if !dryRun && !yes && !a.agrees(fmt.Sprintf("Remove the agent from the cluster at %s?", config.Host)) {
			return errNotConfirmed
		}
		results, err := remove(cmd.Context(), member, objects, dryRun)
		if err != nil {
			return err
		}
		return format.print(a.out, results, appliedTable(results))
	}
	return cmd
}

// deployedAgent returns the objects that register may have deployed in a namespace. One cluster can have the agent of
// that cluster and several hosted agents of other clusters. The objects of a hosted agent are therefore only those in
// its namespace.
func deployedAgent(ctx context.Context, c client.Client, namespace string) ([]*unstructured.Unstructured, error) {
	exists := func(object client.Object, name string) (bool, error) {
		key := client.ObjectKey{Namespace: namespace, Name: name}
		err := c.Get(ctx, key, object)
		if client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("find the agent in namespace %s: %w", namespace, err)
		}
		return err == nil, nil
	}
	hosted, err := exists(&corev1.Secret{}, memberSecret)
	if err != nil {
		return nil, err
	}
	// The ServiceAccount is the last object that is removed of an agent on its member.
	account, err := exists(&corev1.ServiceAccount{}, agentName)
	if err != nil || !account && !hosted {
		return nil, err
	}
	program := deploy.Customization{Image: agentName, Namespace: namespace}
	objects, err := agentObjects(program, true, true)
	if hosted {
		objects, err = hostedObjects(program, true)
	}
	if err != nil {
		return nil, err
	}
	secrets := []*unstructured.Unstructured{}
	for _, name := range []string{memberSecret, hubSecret} {
		secret := &unstructured.Unstructured{}
		secret.SetAPIVersion("v1")
		secret.SetKind("Secret")
		secret.SetNamespace(namespace)
		secret.SetName(name)
		secrets = append(secrets, secret)
	}
	return append(secrets, objects...), nil
}

// mayCleanAgent returns a [*admin.PreflightError] if the cluster is a member, according to the Secret of the agent.
func (a *app) mayCleanAgent(ctx context.Context, member client.Client, namespace string) error {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: namespace, Name: agent.DefaultStoreSecret}
	if err := member.Get(ctx, key, secret); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("read Secret %s of the agent: %w", key, err)
	}
	is, err := agent.ParseRegistration(secret)
	switch {
	case errors.Is(err, agent.ErrNotRegistered):
		return nil
	case err != nil:
		return err
	}
	return &admin.PreflightError{Findings: []admin.Finding{{
		Check:   "the member",
		Problem: fmt.Sprintf("the cluster is member %s of the hub at %s", is.Name, is.Server),
		Fix: fmt.Sprintf("remove the member first: %s unjoin %s; if that hub does not exist any more, clean the member",
			a.program, is.Name),
	}}}
}
