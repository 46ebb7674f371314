package workset

import (
	"context"
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// fleet contains the clusters that exist.
type fleet struct {
	namespaceOf func(cluster string) string
	changed     func(cluster string)

	mu      sync.Mutex
	members map[string]member
	names   map[string]string // of the clusters by namespace
	synced  chan struct{}
	once    sync.Once
}

func newFleet(namespaceOf func(cluster string) string, changed func(cluster string)) *fleet {
	return &fleet{
		namespaceOf: namespaceOf, changed: changed,
		members: map[string]member{}, names: map[string]string{}, synced: make(chan struct{}),
	}
}

// member contains the current state of a cluster (latest) and its state at the last change that affects Works
// (lasting).
type member struct{ lasting, latest *scheduler.Cluster }

// Set adds or updates a cluster.
func (f *fleet) Set(cluster *scheduler.Cluster) {
	namespace := f.namespaceOf(cluster.Name)
	f.mu.Lock()
	before := f.members[cluster.Name]
	moved := namespace != "" && f.names[namespace] != cluster.Name || namespace == "" && f.located(cluster.Name)
	if moved {
		f.removeLocation(cluster.Name)
	}
	if namespace != "" {
		f.names[namespace] = cluster.Name
	}
	now := member{cluster, cluster}
	if before.lasting != nil {
		// These fields change continuously, partly because of the Works themselves.
		still := *before.lasting
		still.Available, still.Scores, still.Placements = cluster.Available, cluster.Scores, cluster.Placements
		if equality.Semantic.DeepEqual(&still, cluster) {
			now.lasting = before.lasting
		}
	}
	f.members[cluster.Name] = now
	f.mu.Unlock()
	if moved || now.lasting != before.lasting {
		f.changed(cluster.Name)
	}
}

// located reports whether the namespace of a cluster is known.
func (f *fleet) located(name string) bool {
	for _, cluster := range f.names {
		if cluster == name {
			return true
		}
	}
	return false
}

// locate records the namespace of a cluster, which can become known after the cluster was set.
func (f *fleet) locate(name, namespace string) {
	f.mu.Lock()
	_, is := f.members[name]
	news := is && namespace != "" && f.names[namespace] != name
	if news {
		f.removeLocation(name)
		f.names[namespace] = name
	}
	f.mu.Unlock()
	if news {
		f.changed(name)
	}
}

// Remove removes a cluster.
func (f *fleet) Remove(name string) {
	f.mu.Lock()
	delete(f.members, name)
	f.removeLocation(name)
	f.mu.Unlock()
	f.changed(name)
}

func (f *fleet) removeLocation(name string) {
	maps.DeleteFunc(f.names, func(_, cluster string) bool { return cluster == name })
}

// Synced records that all existing clusters were set.
func (f *fleet) Synced() { f.once.Do(func() { close(f.synced) }) }

// member returns a cluster, or the zero member if the cluster does not exist.
func (f *fleet) member(name string) member {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.members[name]
}

// in returns the name of the cluster with a namespace, or the namespace itself if its cluster is unknown.
func (f *fleet) in(namespace string) (name string, known bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if name := f.names[namespace]; name != "" {
		return name, true
	}
	return namespace, false
}

// memberNamespaces returns a function that finds the namespaces of MemberClusters.
func memberNamespaces(c client.Reader) func(cluster string) string {
	return func(cluster string) string {
		member := &membershipv1alpha1.MemberCluster{}
		if err := c.Get(context.Background(), client.ObjectKey{Name: cluster}, member); err != nil {
			return "" // the cache returns only NotFound
		}
		return member.Status.Namespace
	}
}
