package localplane

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// Sweep returns the names of all objects of a cluster, of every kind that can be listed, as "ConfigMap.v1
// default/settings". A test can compare the names from before and after it.
//
// Objects that Kubernetes creates are omitted: Events, all objects in the namespaces kube-*, the ServiceAccount default
// and the ConfigMap kube-root-ca.crt of each namespace, roles and similar objects that an API server may still create
// after its start, and the APIServices of CustomResourceDefinitions. The records of members that have left are omitted,
// because a hub of muster keeps them for 90 days. Objects whose owners are all deleted are omitted too, because a
// garbage collector needs half a minute to discover a new kind.
func Sweep(ctx context.Context, config *rest.Config) (sets.Set[string], error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	discoverer, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	lister, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	_, groups, err := discoverer.ServerGroupsAndResources()
	if err != nil {
		return nil, fmt.Errorf("find out what kinds there are: %w", err)
	}
	var objects []swept
	there := sets.New[types.UID]()
	for _, group := range groups {
		version, err := schema.ParseGroupVersion(group.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, resource := range group.APIResources {
			if !slices.Contains(resource.Verbs, "list") || kubernetesOwnKind(resource.Kind) {
				continue
			}
			list, err := lister.Resource(version.WithResource(resource.Name)).List(ctx, metav1.ListOptions{})
			if apierrors.IsNotFound(err) {
				continue // its definition was deleted in the meantime
			}
			if err != nil {
				return nil, fmt.Errorf("list %s of %s: %w", resource.Name, group.GroupVersion, err)
			}
			for i := range list.Items {
				objects = append(objects, swept{resource.Kind, group.GroupVersion, &list.Items[i]})
				there.Insert(list.Items[i].UID)
			}
		}
	}
	out := sets.New[string]()
	for _, each := range objects {
		if !each.kubernetesOwn() && !each.garbage(there) {
			out.Insert(each.kind + "." + each.groupVersion + " " + strings.TrimPrefix(each.Namespace+"/"+each.Name, "/"))
		}
	}
	return out, nil
}

type swept struct {
	kind, groupVersion string
	*metav1.PartialObjectMetadata
}

func kubernetesOwnKind(kind string) bool {
	return slices.Contains([]string{"Event", "ComponentStatus", "FlowSchema", "PriorityLevelConfiguration"}, kind)
}

func (s swept) kubernetesOwn() bool {
	_, bootstrapped := s.Labels["kubernetes.io/bootstrapping"]
	_, managed := s.Labels["kube-aggregator.kubernetes.io/automanaged"]
	return bootstrapped || managed || strings.HasPrefix(s.Namespace, "kube-") ||
		s.kind == "ServiceAccount" && s.Name == "default" || s.kind == "ConfigMap" && s.Name == "kube-root-ca.crt" ||
		s.record()
}

// record reports whether the object is a record of a member that left. A hub of muster keeps such a record for 90 days.
func (s swept) record() bool {
	return s.kind == "ConfigMap" && s.Namespace == "muster-registration" && strings.HasPrefix(s.Name, "left-")
}

// garbage reports whether all owners of the object are deleted, so that the garbage collector will delete it. There
// contains the UIDs of all existing objects.
func (s swept) garbage(there sets.Set[types.UID]) bool {
	return len(s.OwnerReferences) > 0 && !slices.ContainsFunc(s.OwnerReferences, func(o metav1.OwnerReference) bool {
		return there.Has(o.UID)
	})
}
