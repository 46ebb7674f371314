// Package source identifies the API of Cluster API. It is a separate package because the permissions on Clusters are
// in a separate role, which is bound in each namespace of Clusters.
package source

import (
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters,verbs=get;list;watch

// Kind is the kind of Clusters.
var Kind = schema.GroupKind{Group: "cluster.x-k8s.io", Kind: "Cluster"}

const clusters = "clusters"

// ErrNotServed means that the API server has no definition of Clusters.
var ErrNotServed = errors.New("the API server does not serve clusters.cluster.x-k8s.io")

// Discover returns the version of Clusters to use: the preferred one of the group, if it has Clusters. It sends one
// request if the group does not exist.
func Discover(client discovery.DiscoveryInterface) (schema.GroupVersionResource, error) {
	groups, err := client.ServerGroups()
	if err != nil {
		return schema.GroupVersionResource{}, fmt.Errorf("discover the API groups: %w", err)
	}
	for i := range groups.Groups {
		group := &groups.Groups[i]
		if group.Name != Kind.Group {
			continue
		}
		for _, version := range append([]metav1.GroupVersionForDiscovery{group.PreferredVersion}, group.Versions...) {
			resources, err := client.ServerResourcesForGroupVersion(version.GroupVersion)
			if err != nil && !apierrors.IsNotFound(err) {
				return schema.GroupVersionResource{}, fmt.Errorf("discover %s: %w", version.GroupVersion, err)
			}
			if err == nil && slices.ContainsFunc(resources.APIResources,
				func(r metav1.APIResource) bool { return r.Name == clusters }) {
				return schema.GroupVersionResource{Group: group.Name, Version: version.Version, Resource: clusters}, nil
			}
		}
	}
	return schema.GroupVersionResource{}, ErrNotServed
}
