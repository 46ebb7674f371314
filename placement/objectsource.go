package placement

import (
	"context"
	"fmt"
	"maps"
	"slices"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/scheduler"
)

// Objects returns a [ClusterSource] of any kind of object, one cluster for each object. The kind is the type of the
// object, which is otherwise not used; an unstructured object must have its apiVersion and kind. ClusterOf returns the
// cluster of an object, or nil while the object is not a cluster. It is called by one goroutine. Neither the object nor
// the returned cluster may be modified. ClusterOf must return different names for different objects.
//
// A deleted object removes its cluster only if its deletionTimestamp was observed, so the objects should have a
// finalizer. Otherwise the cluster is missing, and the placements on it stay: if an object vanishes without a
// deletionTimestamp, such as during a restore, or if ClusterOf returns nil or another name for it.
//
// The cache needs list and watch on the kind.
func Objects[T client.Object](c cache.Cache, object T, clusterOf func(T) *scheduler.Cluster) ClusterSource {
	return &objectSource[T]{cache: c, kind: object, clusterOf: clusterOf}
}

type objectSource[T client.Object] struct {
	cache     cache.Cache
	kind      T
	clusterOf func(T) *scheduler.Cluster
}

func (s *objectSource[T]) Run(ctx context.Context, fleet Fleet) error {
	known := map[client.ObjectKey]string{} // the names of clusters by object; used by one goroutine
	set := func(changed any) {
		object, ok := changed.(T)
		if !ok {
			return
		}
		key := client.ObjectKeyFromObject(object)
		cluster := s.clusterOf(object)
		before := known[key]
		if before != "" && (cluster == nil || cluster.Name != before) { // no deletion was requested
			delete(known, key)
			if !slices.Contains(slices.Collect(maps.Values(known)), before) { // another object may have taken the name
				fleet.Set(absent(before))
			}
		}
		if cluster != nil {
			known[key] = cluster.Name
			fleet.Set(cluster)
		}
	}
	end, err := watchKind(ctx, s.cache, s.kind, toolscache.ResourceEventHandlerFuncs{
		AddFunc:    set,
		UpdateFunc: func(_, changed any) { set(changed) },
		DeleteFunc: func(deleted any) {
			if unknown, ok := deleted.(toolscache.DeletedFinalStateUnknown); ok {
				deleted = unknown.Obj
			}
			object, ok := deleted.(T)
			if !ok {
				return
			}
			key := client.ObjectKeyFromObject(object)
			name, ok := known[key]
			delete(known, key)
			switch {
			case !ok:
			case object.GetDeletionTimestamp() != nil:
				fleet.Remove(name)
			default:
				fleet.Set(absent(name))
			}
		},
	})
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("watch %T: %w", s.kind, err)
	}
	defer end()
	fleet.Synced()
	<-ctx.Done()
	return nil
}
