package apiserver

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apimachineryversion "k8s.io/apimachinery/pkg/version"

	"github.com/muster-sdk/muster/mustertest/internal/kinds"
	"github.com/muster-sdk/muster/mustertest/internal/store"
)

func compareKubeVersions(a, b string) int {
	return apimachineryversion.CompareKubeAwareVersionStrings(a, b)
}

// controllers implement the behavior of kube-controller-manager and of the background controllers of kube-apiserver.
// They react to each change of the store, in order, and need no timers.
type controllers struct {
	mu sync.Mutex // held while controllers run

	// The indexes of the garbage collector.
	byUID      map[string]store.Key
	dependents map[string]map[store.Key]bool // by the UID of the owner
	// Pending work, in the order in which it was queued.
	queue []func()
	// Namespaces and CustomResourceDefinitions whose contents must be deleted.
	namespaces map[string]bool
	crds       map[string]bool
	// aggregateRoles is in the queue. One run serves all changes of ClusterRoles before it.
	aggregation bool
}

func (c *controllers) init() {
	c.byUID, c.dependents = map[string]store.Key{}, map[string]map[store.Key]bool{}
	c.namespaces, c.crds = map[string]bool{}, map[string]bool{}
	c.queue, c.aggregation = nil, false
}

// runControllers runs the controllers until the server is closed.
func (s *Server) runControllers() {
	for {
		revision := s.store.Revision()
		s.settle()
		select {
		case <-s.store.Changed(revision):
		case <-s.ctx.Done():
			return
		}
	}
}

// Settle runs the controllers until they have no pending work: dependents of deleted owners are deleted, contents of
// terminating namespaces are deleted, approved CertificateSigningRequests are signed, and so on.
func (s *Server) Settle() { s.settle() }

func (s *Server) settle() {
	c := &s.controllers
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		events := s.store.Feed()
		for _, event := range events {
			s.observe(event)
		}
		if len(events) == 0 && len(c.queue) == 0 {
			return
		}
		for len(c.queue) > 0 {
			next := c.queue[0]
			c.queue = c.queue[1:]
			next()
		}
	}
}

// rebuild rebuilds the indexes after a restore, and reconciles every object once.
func (s *Server) rebuild() {
	s.resyncCRDs()
	for _, resource := range s.storedResources() {
		items, _ := s.store.List(resource, "")
		for _, item := range items {
			s.observe(store.Event{Type: store.Added, Item: item})
		}
	}
}

func (s *Server) storedResources() []schema.GroupResource {
	found := map[schema.GroupResource]bool{}
	for _, kind := range s.served.inOrder() {
		if !kind.Virtual() {
			found[kind.Storage] = true
		}
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b schema.GroupResource) int {
		return slices.Compare([]string{a.Group, a.Resource}, []string{b.Group, b.Resource})
	})
}

// observe updates the indexes and queues the work that a change causes.
func (s *Server) observe(event store.Event) {
	c := &s.controllers
	item := event.Item
	s.observeOwners(event)
	switch item.Key.Resource {
	case namespaces:
		s.observeNamespace(event)
	case serviceAccounts:
		if event.Type == store.Deleted {
			c.later(func() { s.fillNamespace(item.Key.Namespace) })
		}
	case configMaps:
		if event.Type == store.Deleted {
			c.later(func() { s.fillNamespace(item.Key.Namespace) })
		}
	case customResourceDefinitions:
		c.later(func() { s.reconcileCRD(item.Key.Name) })
	case signingRequests:
		if event.Type != store.Deleted {
			c.later(func() { s.reconcileSigningRequest(item.Key) })
		}
	case clusterRoles:
		if !c.aggregation {
			c.aggregation = true
			c.later(s.aggregateRoles)
		}
	case resourceQuotas:
		if event.Type != store.Deleted {
			c.later(func() { s.reconcileQuota(item.Key) })
		}
	}
	if event.Type == store.Deleted {
		if namespace := item.Key.Namespace; namespace != "" {
			if c.namespaces[namespace] {
				c.later(func() { s.reconcileNamespace(namespace) })
			}
			for _, quota := range s.quotasOf(namespace) {
				c.later(func() { s.reconcileQuota(quota) })
			}
		}
		if name := item.Key.Resource.String(); c.crds[name] {
			c.later(func() { s.reconcileCRD(name) })
		}
	}
}

func (c *controllers) later(f func()) { c.queue = append(c.queue, f) }

// controllerUser returns the user of requests that controllers send to the server.
func controllerUser(name string) user {
	return user{Name: "system:serviceaccount:kube-system:" + name, Groups: []string{groupMasters, groupAuthenticated}}
}

// controllerRequest returns a request for an object, as a controller sends it. It returns nil if no kind is stored
// under the resource.
func (s *Server) controllerRequest(key store.Key, verb string) *request {
	kind := s.served.stored(key.Resource)
	if kind == nil {
		return nil
	}
	return &request{
		ctx: context.Background(), user: controllerUser("in-memory"), verb: verb, gvr: kind.Resource,
		kind: kind, namespace: key.Namespace, name: key.Name, response: response{accept: accepted{media: kinds.JSON}},
	}
}

// edit changes an object in place, if the object exists and change returns true.
func (s *Server) edit(key store.Key, change func(obj kinds.Object) bool) {
	_ = s.store.Do(func(tx *store.Tx) error { // never returns an error
		item := tx.Get(key)
		if item == nil {
			return nil
		}
		obj := runtime.DeepCopyJSON(item.Object)
		if !change(obj) || equalObjects(obj, item.Object) {
			return nil
		}
		if goneByUpdate(obj, item.Object) {
			tx.Delete(key)
			return nil
		}
		tx.Put(key, obj)
		return nil
	})
}

// put stores an object of a controller or of the bootstrap, if the object does not exist.
func (s *Server) put(key store.Key, typed runtime.Object, manager string) error {
	r := s.controllerRequest(key, "create")
	if r == nil {
		return fmt.Errorf("no kind is stored under %s", key.Resource)
	}
	obj, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return err
	}
	obj["apiVersion"], obj["kind"] = r.kind.GVK.GroupVersion().String(), r.kind.GVK.Kind
	r.kind.Default(obj)
	return s.store.Do(func(tx *store.Tx) error {
		if tx.Get(key) != nil {
			return nil
		}
		if err := s.track(r, "", nil, obj, manager); err != nil {
			return err
		}
		_, err := s.finishCreate(tx, r, obj)
		return err
	})
}
