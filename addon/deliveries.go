package addon

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/addon/v1alpha1"
)

// Deliveries finds the clusters that have add-ons which a Placement installed. It implements Deliveries of package
// placement. It needs the permissions of the controller of add-ons.
type Deliveries struct {
	// Client lists Addons. It can be a cache.
	Client client.Reader
	// Live lists MemberAddons. It must not be a cache, which can be older than the MemberAddons.
	Live client.Reader
	// ClusterOf returns the name of the cluster whose MemberAddons are in a namespace. Empty: none.
	ClusterOf func(ctx context.Context, namespace string) (string, error)
}

// ClustersOf returns the names of the clusters that have MemberAddons which a Placement installed, without MemberAddons
// that are being deleted.
func (d Deliveries) ClustersOf(ctx context.Context, placement types.NamespacedName) ([]string, error) {
	addons := &v1alpha1.AddonList{}
	if err := d.Client.List(ctx, addons, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list Addons: %w", err)
	}
	clusters := sets.New[string]()
	for i := range addons.Items {
		addon := &addons.Items[i]
		installs := slices.ContainsFunc(addon.Spec.Install.Placements, func(p v1alpha1.PlacementInstall) bool {
			return p.Namespace == placement.Namespace && p.Name == placement.Name
		})
		if !installs || addon.DeletionTimestamp != nil {
			continue
		}
		members := &metav1.PartialObjectMetadataList{}
		members.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("MemberAddonList"))
		// The name of a MemberAddon is the name of its Addon.
		if err := d.Live.List(ctx, members, client.MatchingFields{"metadata.name": addon.Name}); err != nil {
			return nil, fmt.Errorf("list MemberAddons %s: %w", addon.Name, err)
		}
		for i := range members.Items {
			member := &members.Items[i]
			if member.DeletionTimestamp != nil || member.Annotations[v1alpha1.InstalledByAnnotation] != placement.String() {
				continue
			}
			cluster, err := d.ClusterOf(ctx, member.Namespace)
			if err != nil {
				return nil, fmt.Errorf("find the cluster of namespace %s: %w", member.Namespace, err)
			}
			if cluster != "" {
				clusters.Insert(cluster)
			}
		}
	}
	return sets.List(clusters), nil
}
