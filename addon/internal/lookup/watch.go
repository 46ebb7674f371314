package lookup

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/addon/v1alpha1"
)

// begin attempts to watch the kind.
func (k *kind) begin(ctx context.Context) lookupError {
	if k.handler != nil && k.handler.HasSynced() {
		return lookupError{}
	}
	if t := k.find(); !t.none() {
		return t
	}
	// An informer without permission to list stays in the manager's cache, unsynced. So check the permission first.
	t, forbidden := k.probe(ctx)
	if !t.none() {
		return t
	}
	if k.handler == nil {
		informer, err := k.finder.options.Cache.GetInformer(ctx, k.prototype(), cache.BlockUntilSynced(false))
		if err != nil {
			return unlisted(k.resource, err)
		}
		if k.handler, err = informer.AddEventHandler(k.events()); err != nil {
			return unlisted(k.resource, err)
		}
		k.informer = informer
	}
	timer := k.finder.options.Clock.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-k.synced():
		return lookupError{}
	case <-timer.C():
	case <-ctx.Done():
	}
	if forbidden != nil {
		return unreadable(k.resource, forbidden)
	}
	return unsynced(k.resource)
}

// synced returns a channel that is closed when the kind is watched. Nil: the kind is not being listed.
func (k *kind) synced() <-chan struct{} {
	if k.handler == nil {
		return nil
	}
	return k.handler.HasSyncedChecker().Done()
}

// find looks up the kind of the resource.
func (k *kind) find() lookupError {
	mapper := k.finder.options.Mapper
	kinds, err := mapper.KindsFor(k.resource.WithVersion(""))
	if err != nil {
		return unmapped(k.resource, err)
	}
	for _, candidate := range kinds { // the mapper treats an empty group as any group, and accepts singular names
		if candidate.Group != k.resource.Group {
			continue
		}
		mapping, err := mapper.RESTMapping(candidate.GroupKind())
		if err != nil {
			return unmapped(k.resource, err)
		}
		if mapping.Resource.Resource == k.resource.Resource {
			k.served = servedKind{mapping.GroupVersionKind, mapping.Scope.Name() == meta.RESTScopeNameNamespace}
			return lookupError{}
		}
	}
	return unknown(k.resource)
}

// manyNamespaces is the maximum number of namespaces that are tried if a cluster-wide list is forbidden.
const manyNamespaces = 8

// probe checks whether the kind can be listed: cluster-wide, or at least in one requested namespace if the manager's
// cache is restricted. The error is then that of the cluster-wide request.
func (k *kind) probe(ctx context.Context) (lookupError, error) {
	list := func(options ...client.ListOption) error {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		objects := &metav1.PartialObjectMetadataList{}
		objects.SetGroupVersionKind(k.served.gvk.GroupVersion().WithKind(k.served.gvk.Kind + "List"))
		return k.finder.options.Live.List(ctx, objects, append(options, client.Limit(1))...)
	}
	everywhere := list()
	switch {
	case everywhere == nil:
		return lookupError{}, nil
	case !apierrors.IsForbidden(everywhere) || !k.served.namespaced:
		return unlisted(k.resource, everywhere), nil
	}
	for _, namespace := range k.namespaces() {
		if list(client.InNamespace(namespace)) == nil {
			return lookupError{}, everywhere
		}
	}
	return unreadable(k.resource, everywhere), nil
}

// namespaces returns the namespaces of requested objects, up to the limit.
func (k *kind) namespaces() []string {
	k.finder.mu.Lock()
	defer k.finder.mu.Unlock()
	var names []string
	for name := range k.objects {
		if name.Namespace != "" {
			names = append(names, name.Namespace)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return names[:min(len(names), manyNamespaces)]
}

// events marks changed objects. If the object has a generation, and an event leaves it unchanged, only metadata or
// status has changed.
func (k *kind) events() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: k.changed, DeleteFunc: k.changed,
		UpdateFunc: func(before, after any) {
			b, a := before.(metav1.Object), after.(metav1.Object)
			if b.GetResourceVersion() == a.GetResourceVersion() || b.GetUID() == a.GetUID() &&
				b.GetGeneration() == a.GetGeneration() && a.GetGeneration() != 0 {
				return
			}
			k.changed(after)
		},
	}
}

func (k *kind) changed(event any) {
	if gone, unseen := event.(toolscache.DeletedFinalStateUnknown); unseen {
		event = gone.Obj
	}
	at, is := event.(metav1.Object)
	if !is {
		return
	}
	k.finder.mu.Lock()
	o := k.objects[v1alpha1.ObjectName{Namespace: at.GetNamespace(), Name: at.GetName()}]
	if o != nil {
		o.stale = true // also if it is being read now
	}
	k.finder.mu.Unlock()
	if o != nil {
		k.nudge()
	}
}
