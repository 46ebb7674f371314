package clusterapi

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/tracing"
	"github.com/muster-sdk/muster/membership/clusterapi/internal/source"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// firstWait and lastWait limit the pause after a failure, which doubles.
const firstWait, lastWait = time.Second, 5 * time.Minute

// importer creates MemberClusters for Clusters.
type importer struct {
	Options

	clusters  metadata.Interface
	discovery discovery.DiscoveryInterface
	members   cache.Cache
	live      client.Reader
	client    client.Client
	recorder  events.EventRecorder
	log       logr.Logger
	// rediscover is the time between two discoveries while Clusters are not served.
	rediscover time.Duration

	// reported contains the last Event of each Cluster, so that each is sent once. Only the worker uses it.
	reported map[types.NamespacedName]string
}

// NeedLeaderElection returns true.
func (i *importer) NeedLeaderElection() bool { return true }

// Start imports Clusters until the context ends.
func (i *importer) Start(ctx context.Context) error {
	waiting := false
	for {
		resource, err := source.Discover(i.discovery)
		switch {
		case err == nil:
			i.log.Info("Importing Clusters", "namespaces", i.Namespaces, "version", resource.Version)
			waiting = false
			i.run(ctx, resource)
		case errors.Is(err, source.ErrNotServed) && !waiting:
			i.log.Info("Waiting for the definition of Clusters", "kind", source.Kind.String())
			waiting = true
		case !errors.Is(err, source.ErrNotServed) && ctx.Err() == nil:
			i.log.Error(err, "Cannot discover the definition of Clusters")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(i.rediscover):
		}
	}
}

// work is the import while one version of Clusters is served.
type work struct {
	*importer
	resource schema.GroupVersionResource
	queue    workqueue.TypedRateLimitingInterface[types.NamespacedName]
	stores   map[string]toolscache.Store // by namespace
}

// run imports Clusters until the context ends or the version is not served any more.
func (i *importer) run(ctx context.Context, resource schema.GroupVersionResource) {
	ctx, cancel := context.WithCancel(ctx)
	w := &work{
		importer: i, resource: resource, stores: map[string]toolscache.Store{},
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](firstWait, lastWait)),
	}
	var running sync.WaitGroup
	defer func() {
		cancel()
		w.queue.ShutDown()
		running.Wait()
	}()
	var synced []toolscache.InformerSynced
	for _, namespace := range i.Namespaces {
		informer := metadatainformer.NewFilteredMetadataInformer(i.clusters, resource, namespace, 0, toolscache.Indexers{},
			func(o *metav1.ListOptions) { o.LabelSelector = i.Selector.String() }).Informer()
		// These fail only for an informer that was started.
		_ = informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *toolscache.Reflector, err error) {
			if apierrors.IsNotFound(err) {
				cancel() // The version is not served any more.
				return
			}
			toolscache.DefaultWatchErrorHandler(ctx, r, err)
		})
		registration, _ := informer.AddEventHandler(handler(func(object metav1.Object) {
			w.queue.Add(types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()})
		}))
		w.stores[namespace] = informer.GetStore()
		synced = append(synced, registration.HasSynced)
		running.Go(func() { informer.RunWithContext(ctx) })
	}
	members, err := i.members.GetInformer(ctx, &v1alpha1.MemberCluster{})
	if err != nil {
		if ctx.Err() == nil {
			i.log.Error(err, "Cannot watch MemberClusters")
		}
		return
	}
	registration, err := members.AddEventHandler(handler(func(object metav1.Object) { w.memberChanged(object.GetName()) }))
	if err != nil {
		return // The cache has ended.
	}
	defer func() { _ = members.RemoveEventHandler(registration) }() // It fails only if the cache has ended.
	if !toolscache.WaitForCacheSync(ctx.Done(), append(synced, registration.HasSynced)...) {
		return
	}
	running.Go(func() { w.process(ctx) })
	<-ctx.Done()
}

// handler calls a function for each change of an object.
func handler(changed func(metav1.Object)) toolscache.ResourceEventHandler {
	call := func(object any) {
		if gone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
			object = gone.Obj
		}
		if object, ok := object.(metav1.Object); ok {
			changed(object)
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: call, UpdateFunc: func(_, object any) { call(object) }, DeleteFunc: call,
	}
}

// memberChanged enqueues the Clusters whose MemberCluster has this name.
func (w *work) memberChanged(name string) {
	for _, store := range w.stores {
		for _, key := range store.ListKeys() {
			if namespace, cluster, err := toolscache.SplitMetaNamespaceKey(key); err == nil &&
				memberName(namespace, cluster) == name {
				w.queue.Add(types.NamespacedName{Namespace: namespace, Name: cluster})
			}
		}
	}
}

func (w *work) process(ctx context.Context) {
	for {
		key, shutdown := w.queue.Get()
		if shutdown {
			return
		}
		err := w.sync(ctx, key)
		switch {
		case err == nil:
			w.queue.Forget(key)
		case ctx.Err() == nil:
			if !errors.Is(err, errChanged) && !apierrors.IsConflict(err) {
				w.log.Error(err, "Cannot import a Cluster; retrying", "cluster", key.String())
			}
			w.queue.AddRateLimited(key)
		}
		w.queue.Done(key)
	}
}

// errChanged means that an object has changed since it was observed.
var errChanged = errors.New("the object has changed since it was observed")

// sync decides on one Cluster and acts.
func (w *work) sync(ctx context.Context, key types.NamespacedName) (err error) {
	ctx, end := tracing.Start(ctx, "muster-cluster-api", key)
	defer func() { end(err) }()
	object, _, err := w.stores[key.Namespace].GetByKey(key.String())
	if err != nil {
		return fmt.Errorf("read Cluster %s from the cache: %w", key, err)
	}
	observed, _ := object.(*metav1.PartialObjectMetadata)
	if observed == nil {
		delete(w.reported, key)
		return nil // Absence changes nothing.
	}
	c, name := clusterOf(observed), memberName(key.Namespace, key.Name)
	_, m, err := readMember(ctx, w.members, name)
	if err != nil {
		return err
	}
	switch a := decide(c, m, w.LeaveDeleted); a.step {
	case create:
		return w.create(ctx, c, name)
	case leave:
		return w.leave(ctx, c, name)
	case report:
		w.event(observed, key, a)
	case nothing:
		delete(w.reported, key)
	}
	return nil
}

func clusterOf(object *metav1.PartialObjectMetadata) *cluster {
	return &cluster{namespace: object.Namespace, name: object.Name, uid: object.UID,
		deleting: object.DeletionTimestamp != nil}
}

// readMember reads a MemberCluster. Both results are nil if it does not exist.
func readMember(ctx context.Context, from client.Reader, name string) (*v1alpha1.MemberCluster, *member, error) {
	object := &v1alpha1.MemberCluster{}
	if err := from.Get(ctx, client.ObjectKey{Name: name}, object); apierrors.IsNotFound(err) {
		return nil, nil, nil
	} else if err != nil {
		return nil, nil, fmt.Errorf("read MemberCluster %s: %w", name, err)
	}
	return object, &member{source: object.Annotations[ClusterAnnotation], deleting: object.DeletionTimestamp != nil}, nil
}

func (w *work) create(ctx context.Context, c *cluster, name string) error {
	object := &v1alpha1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{ClusterAnnotation: c.source()}},
		Spec: v1alpha1.MemberClusterSpec{
			JoinMode: w.JoinMode,
			KubeConfigSecretRef: &v1alpha1.KubeConfigSecretRef{Namespace: c.namespace, Name: c.name + "-kubeconfig",
				Key: "value"},
		},
	}
	err := w.client.Create(ctx, object)
	if apierrors.IsAlreadyExists(err) {
		return errChanged
	}
	if err != nil {
		return fmt.Errorf("create MemberCluster %s: %w", name, err)
	}
	w.log.Info("Created a MemberCluster for a Cluster", "cluster", c.namespace+"/"+c.name, "member", name)
	return nil
}

// leave deletes the MemberCluster if the live objects require it as well.
func (w *work) leave(ctx context.Context, c *cluster, name string) error {
	latest, err := w.clusters.Resource(w.resource).Namespace(c.namespace).Get(ctx, c.name, metav1.GetOptions{})
	if err != nil {
		return client.IgnoreNotFound(err) // Absence changes nothing.
	}
	object, m, err := readMember(ctx, w.live, name)
	if err != nil {
		return err
	}
	if !w.Selector.Matches(labels.Set(latest.Labels)) || decide(clusterOf(latest), m, w.LeaveDeleted).step != leave {
		return errChanged
	}
	err = w.client.Delete(ctx, object, client.Preconditions{UID: &object.UID, ResourceVersion: &object.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete MemberCluster %s: %w", name, err)
	}
	w.log.Info("Deleted the MemberCluster of a Cluster that is being deleted", "cluster", c.namespace+"/"+c.name,
		"member", name)
	return nil
}

// event records an Event about a Cluster, once for each message.
func (w *work) event(object *metav1.PartialObjectMetadata, key types.NamespacedName, a action) {
	if w.reported[key] == a.message {
		return
	}
	w.reported[key] = a.message
	about := object.DeepCopy()
	about.SetGroupVersionKind(w.resource.GroupVersion().WithKind(source.Kind.Kind))
	w.log.Info("Cannot import a Cluster", "cluster", key.String(), "reason", a.reason, "message", a.message)
	// +event:object=Cluster of Cluster API
	// +event:message=that a MemberCluster with the name was not created for this Cluster, and what to do
	w.recorder.Eventf(about, nil, corev1.EventTypeWarning, reasonNameTaken, "Import", "%s", a.message)
}
