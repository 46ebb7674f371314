package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/tenancy"
	tenancyv1alpha1 "github.com/muster-sdk/muster/tenancy/v1alpha1"
)

// loadGrants returns the grants of the hub, or nil if the hub does not restrict namespaces: it has no ClusterSet then.
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

// grant is one line of can-place and who-may.
type grant struct {
	Namespace string `json:"namespace"`
	Cluster   string `json:"cluster"`
	Binding   string `json:"binding,omitempty"`
	Set       string `json:"clusterSet,omitempty"`
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
		Use:     "can-place",
		Short:   "List the members on which the Placements of a namespace may be, and the binding that grants each",
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
		if grants != nil && !grants.Rules(namespace).Bound() && format.isTable() {
			return a.line("%s", tenancy.NotBound(namespace))
		}
		return a.printGrants(format, found)
	}
	return cmd
}

func (a *app) whoMayCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "who-may MEMBER",
		Short:   "List the namespaces whose Placements may be on a member, and the binding that grants each",
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
		return a.printGrants(format, found)
	}
	return cmd
}

func (a *app) printGrants(format *output, found []grant) error {
	rows := table{header: []string{"NAMESPACE", "MEMBER", "CLUSTERSETBINDING", "CLUSTERSET"}}
	for _, g := range found {
		rows.add(g.Namespace, g.Cluster, g.Binding, g.Set)
	}
	return format.print(a.out, found, rows)
}
