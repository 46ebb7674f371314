package assembly

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/addon"
	"github.com/muster-sdk/muster/membership"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/placement"
	"github.com/muster-sdk/muster/placement/workset"
)

// deliveries combines the Works of WorkSets and the MemberAddons.
type deliveries []placement.Deliveries

func (all deliveries) ClustersOf(ctx context.Context, placement types.NamespacedName) (names []string, err error) {
	seen := map[string]bool{}
	for _, d := range all {
		found, err := d.ClustersOf(ctx, placement)
		if err != nil {
			return nil, err
		}
		for _, name := range found {
			if !seen[name] {
				seen[name] = true
				names = append(names, name)
			}
		}
	}
	return names, nil
}

func (o *HubOptions) deliveries(mgr manager.Manager, removed placement.Removals) placement.Deliveries {
	find := namespaces{
		reader: mgr.GetClient(), removed: removed,
		prefix: cmp.Or(o.Membership.NamespacePrefix, membership.DefaultNamespacePrefix),
	}
	var all deliveries
	if o.has(PartWorkSets) {
		all = append(all, workset.Deliveries{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), ClusterOf: find.clusterOf})
	}
	if o.has(PartAddons) {
		all = append(all, addon.Deliveries{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), ClusterOf: find.clusterOf})
	}
	return all
}

// namespaces finds the member of a namespace. While a backup is being restored, a MemberCluster can be missing, so the
// name of the member is derived from the name of its namespace.
type namespaces struct {
	reader  client.Reader
	removed placement.Removals
	prefix  string
}

// clusterOf returns the name of the member with a namespace. It returns an empty string if the namespace belongs to no
// member, or to a member that was removed on request.
func (n namespaces) clusterOf(ctx context.Context, namespace string) (string, error) {
	name, ours := strings.CutPrefix(namespace, n.prefix)
	if !ours || name == "" {
		return "", nil
	}
	member := &membershipv1alpha1.MemberCluster{}
	err := n.reader.Get(ctx, client.ObjectKey{Name: name}, member)
	if err == nil {
		return name, nil
	}
	if !apierrors.IsNotFound(err) {
		return "", fmt.Errorf("read MemberCluster %s: %w", name, err)
	}
	// If the name of a member is too long, its namespace contains a hash instead.
	members := &membershipv1alpha1.MemberClusterList{}
	if err := n.reader.List(ctx, members, client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("list MemberClusters: %w", err)
	}
	for i := range members.Items {
		if membership.NamespaceFor(n.prefix, members.Items[i].Name) == namespace {
			return members.Items[i].Name, nil
		}
	}
	removal, err := n.removed.LastRemoval(ctx, name)
	if err != nil {
		return "", fmt.Errorf("find out whether MemberCluster %s was removed: %w", name, err)
	}
	if removal != nil {
		return "", nil
	}
	return name, nil
}
