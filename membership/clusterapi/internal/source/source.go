// Package source identifies the API of Cluster API. It is a package of its own because the permissions on Clusters are
// a role of their own, which is bound in each namespace of Clusters.
package source

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters,verbs=get;list;watch

// Kind is the kind of Clusters.
var Kind = schema.GroupKind{Group: "cluster.x-k8s.io", Kind: "Cluster"}

// ErrNotServed means that the API server has no definition of Clusters.
var ErrNotServed = errors.New("the API server does not serve clusters.cluster.x-k8s.io")

// Discover returns the preferred version of Clusters. It sends one request.
func Discover(client discovery.ServerGroupsInterface) (schema.GroupVersionResource, error) {
	groups, err := client.ServerGroups()
	if err != nil {
		return schema.GroupVersionResource{}, fmt.Errorf("discover the API groups: %w", err)
	}
	for i := range groups.Groups {
		if group := &groups.Groups[i]; group.Name == Kind.Group {
			return schema.GroupVersionResource{Group: group.Name, Version: group.PreferredVersion.Version,
				Resource: "clusters"}, nil
		}
	}
	return schema.GroupVersionResource{}, ErrNotServed
}
