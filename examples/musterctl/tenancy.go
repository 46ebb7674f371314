package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	placementv1alpha1 "github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/tenancy"
	tenancyv1alpha1 "github.com/muster-sdk/muster/tenancy/v1alpha1"
)

// loadGrants returns the grants of the hub. It returns nil if the hub has no ClusterSet, and therefore does not
// restrict namespaces.
func loadGrants(ctx context.Context, hub client.Reader) (*tenancy.Grants, error) {
	var sets tenancyv1alpha1.ClusterSetList
	err := hub.List(ctx, &sets, client.Limit(1))
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list ClusterSets: %w", err)
	}
	if len(sets.Items) == 0 {
		return nil, nil
	}
	return tenancy.Load(ctx, hub)
}

// grant is one row of can-place and who-may. It belongs to a namespace, or to a subject whose ClusterPlacements and
// ClusterWorkSets can reach every member.
type grant struct {
	Namespace string `json:"namespace,omitempty"`
	Cluster   string `json:"cluster,omitempty"`
	Binding   string `json:"binding,omitempty"`
	Set       string `json:"clusterSet,omitempty"`

	Subject            string `json:"subject,omitempty"`
	Verbs              string `json:"verbs,omitempty"`
	ClusterRoleBinding string `json:"clusterRoleBinding,omitempty"`
	ClusterRole        string `json:"clusterRole,omitempty"`
}

// grantOf returns the grant of a namespace for a member, or nil if there is none.
func grantOf(grants *tenancy.Grants, namespace string, member *membershipv1alpha1.MemberCluster) *grant {
	if grants == nil {
		return &grant{Namespace: namespace, Cluster: member.Name}
	}
	d := grants.Rules(namespace).Decide(tenancy.Cluster{Labels: labels.Set(member.Labels)})
	if d.Access != tenancy.Allowed {
		return nil
	}
	return &grant{Namespace: namespace, Cluster: member.Name, Binding: d.Binding, Set: d.Set}
}

func (a *app) canPlaceCommand() *cobra.Command {
	var namespace string
	cmd := &cobra.Command{
		Use:   "can-place",
		Short: "List the members that the Placements of a namespace may select, and the granting bindings",
		Long: `List the members that the Placements of a namespace may select, and the ClusterSetBinding that grants each. The
list includes the ServiceAccounts of the namespace that may write ClusterPlacements or ClusterWorkSets: they can reach
every member.`,
		Example: "  musterctl can-place -n shop",
		Args:    cobra.NoArgs,
	}
	format := outputFlag(cmd)
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "default", "namespace of the Placements")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		hub, err := a.hubClient()
		if err != nil {
			return err
		}
		grants, err := loadGrants(cmd.Context(), hub.Client)
		if err != nil {
			return err
		}
		var members membershipv1alpha1.MemberClusterList
		if err := hub.List(cmd.Context(), &members); err != nil {
			return err
		}
		found := []grant{}
		for i := range members.Items {
			if g := grantOf(grants, namespace, &members.Items[i]); g != nil {
				found = append(found, *g)
			}
		}
		platform, err := clusterScopeGrants(cmd.Context(), hub.Client, func(s rbacv1.Subject) bool {
			return s.Kind == rbacv1.ServiceAccountKind && s.Namespace == namespace ||
				s.Kind == rbacv1.UserKind && strings.HasPrefix(s.Name, "system:serviceaccount:"+namespace+":") ||
				s.Kind == rbacv1.GroupKind && (s.Name == "system:serviceaccounts" ||
					s.Name == "system:serviceaccounts:"+namespace || s.Name == "system:authenticated")
		})
		if grants != nil && !grants.Rules(namespace).Bound() && format.isTable() {
			if err := a.line("%s", tenancy.NotBound(namespace)); err != nil {
				return err
			}
		}
		return errors.Join(a.printGrants(format, found, platform), err)
	}
	return cmd
}

func (a *app) whoMayCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "who-may MEMBER",
		Short: "List the namespaces and users whose Placements may select a member, and the granting bindings",
		Long: `List the namespaces whose Placements may select a member, and the ClusterSetBinding that grants each. The list
includes the users, groups and ServiceAccounts that may write ClusterPlacements or ClusterWorkSets, with the
ClusterRoleBinding that grants the permission: they can reach every member.`,
		Example: "  musterctl who-may east",
		Args:    cobra.ExactArgs(1),
	}
	format := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		hub, err := a.hubClient()
		if err != nil {
			return err
		}
		member := &membershipv1alpha1.MemberCluster{}
		if err := hub.Get(cmd.Context(), client.ObjectKey{Name: args[0]}, member); err != nil {
			return err
		}
		grants, err := loadGrants(cmd.Context(), hub.Client)
		if err != nil {
			return err
		}
		var namespaces corev1.NamespaceList
		if err := hub.List(cmd.Context(), &namespaces); err != nil {
			return err
		}
		found := []grant{}
		for i := range namespaces.Items {
			if g := grantOf(grants, namespaces.Items[i].Name, member); g != nil {
				found = append(found, *g)
			}
		}
		platform, err := clusterScopeGrants(cmd.Context(), hub.Client, func(rbacv1.Subject) bool { return true })
		if len(found) == 0 && format.isTable() {
			if err := a.line("No ClusterSetBinding grants a namespace the member %s.", member.Name); err != nil {
				return err
			}
		}
		return errors.Join(a.printGrants(format, found, platform), err)
	}
	return cmd
}

// printGrants prints the grants of namespaces and those of subjects. It omits an empty table.
func (a *app) printGrants(format *output, found, platform []grant) error {
	if !format.isTable() {
		return format.print(a.out, append(found, platform...), table{})
	}
	if len(found) > 0 {
		rows := table{header: []string{"NAMESPACE", "MEMBER", "CLUSTERSETBINDING", "CLUSTERSET"}}
		for _, g := range found {
			rows.add(g.Namespace, g.Cluster, g.Binding, g.Set)
		}
		if err := rows.write(a.out); err != nil {
			return err
		}
	}
	if len(platform) == 0 {
		return nil
	}
	err := a.line("\nClusterPlacements and ClusterWorkSets can reach every member. These subjects may write them:")
	if err != nil {
		return err
	}
	rows := table{header: []string{"SUBJECT", "VERBS", "CLUSTERROLEBINDING", "CLUSTERROLE"}}
	for _, g := range platform {
		rows.add(g.Subject, g.Verbs, g.ClusterRoleBinding, g.ClusterRole)
	}
	return rows.write(a.out)
}

// clusterScopeGrants returns the subjects that may write ClusterPlacements or ClusterWorkSets, and the
// ClusterRoleBindings that grant it. A RoleBinding grants nothing for cluster-scoped kinds.
func clusterScopeGrants(ctx context.Context, hub client.Reader, wanted func(rbacv1.Subject) bool) ([]grant, error) {
	var roles rbacv1.ClusterRoleList
	var bindings rbacv1.ClusterRoleBindingList
	for _, list := range []client.ObjectList{&roles, &bindings} {
		if err := hub.List(ctx, list); err != nil {
			return nil, fmt.Errorf("the result does not contain the subjects that may write ClusterPlacements: %w", err)
		}
	}
	verbs := map[string]string{}
	for i := range roles.Items {
		verbs[roles.Items[i].Name] = strings.Join(clusterScopeVerbs(roles.Items[i].Rules), ",")
	}
	var found []grant
	for i := range bindings.Items {
		b := &bindings.Items[i]
		if verbs[b.RoleRef.Name] == "" {
			continue
		}
		for _, s := range b.Subjects {
			if !wanted(s) {
				continue
			}
			name := s.Name
			if s.Kind == rbacv1.ServiceAccountKind {
				name = s.Namespace + "/" + s.Name
			}
			found = append(found, grant{Subject: s.Kind + " " + name, Verbs: verbs[b.RoleRef.Name],
				ClusterRoleBinding: b.Name, ClusterRole: b.RoleRef.Name})
		}
	}
	slices.SortFunc(found, func(a, b grant) int {
		return cmp.Or(cmp.Compare(a.Subject, b.Subject), cmp.Compare(a.ClusterRoleBinding, b.ClusterRoleBinding))
	})
	return found, nil
}

// clusterScopeVerbs returns the verbs with which rules allow writes of ClusterPlacements or ClusterWorkSets.
func clusterScopeVerbs(rules []rbacv1.PolicyRule) (verbs []string) {
	contains := func(list []string, names ...string) bool {
		return slices.ContainsFunc(list, func(name string) bool { return name == "*" || slices.Contains(names, name) })
	}
	for _, verb := range []string{"create", "patch", "update", "delete"} {
		if slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool {
			return contains(rule.Verbs, verb) && contains(rule.APIGroups, placementv1alpha1.GroupName) &&
				contains(rule.Resources, "clusterplacements", "clusterworksets")
		}) {
			verbs = append(verbs, verb)
		}
	}
	return verbs
}
